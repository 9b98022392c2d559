"""Sums of values and noise inside an estimator, with the law of the noise."""

import math

import numpy as np

from .laws import is_cut_off, law_of
from .sums_checks import SEEDS, plain_places
from .tally import leave_out, require
from .watched_gate import Watched

# numbers of draws to estimate a scale, and of fits, which take longer: at first, and for exactness
DRAWS, FITS = (400, 2000), (150, 500)
# largest count of numbers whose noise is drawn
MAX_NUMBERS = 200


class Sums:
    """Sums of values and noise at the gate, where the values depend on the records alone."""

    def __init__(self, case, params, data_sets):
        self.watched, self.data = Watched(case, params), data_sets[0]
        self.hooked = self.watched.hooked
        self.first = self.watched.fit(self.data)
        self.delta = self.first.model.privacy_.delta
        self.places = []
        if self.first.passed:
            self.places = plain_places(self.watched, data_sets[:3], self.first)
        runs = [self.watched.fit(self.data, seed, self.first.passed) for seed in (0, *SEEDS)]
        numbers = [case.numbers(run.model) for run in runs]
        # whether these sums explain all randomness
        self.complete = len(self.places) == len(self.first.passed) > 0 and all(
            np.array_equal(numbers[0], other) for other in numbers[1:]
        )
        self.size = sum(len(self.first.passed[place].noise) for place in self.places)
        small = self.size <= MAX_NUMBERS
        self.sources = [self._source(place, runs) if small else None for place in self.places]

    def _source(self, place, runs):
        """Return the standard noise and the factors that make up a noise, or None."""
        noise = np.array([run.passed[place].noise for run in runs])
        if not self.hooked or any(len(run.drawn) != 1 for run in runs):
            return None
        try:
            self.watched.draw(self.first.asked, 1)
        except ValueError:  # the noise depends on a parameter that is learned first
            return None
        if (np.count_nonzero(noise, axis=0) < 2).any():  # integer noise that is nearly always 0
            return None
        drawn = np.array([run.drawn[0] for run in runs])
        norms = (drawn**2).sum(axis=0)
        factors = drawn.T @ noise / np.maximum(norms, 1e-300)[:, np.newaxis]
        apart = np.abs(drawn[:, :, np.newaxis] * factors - noise[:, np.newaxis]).max(axis=0)
        column = np.argmin(apart, axis=0)
        numbers = np.arange(noise.shape[1])
        if (apart[column, numbers] > 1e-9 * np.abs(noise).max(axis=0)).any():
            return None
        return column, factors[column, numbers]

    def keep_only_other_noise(self):
        """Drop sums whose noise is the standard noise, which other checks cover."""
        kept = [i for i, source in enumerate(self.sources) if source is None]
        self.places, self.sources = ([part[i] for i in kept] for part in (self.places, self.sources))

    def laws(self, exactly):
        """Return the Law of the noise of each sum, None where it is unknown."""
        fits, laws = None, []
        for place, source in zip(self.places, self.sources):
            passed = self.first.passed[place]
            if source is None:
                if fits is None:
                    seeds = range(FITS[exactly])
                    fits = [self.watched.fit(self.data, seed, self.first.passed) for seed in seeds]
                draws = np.array([run.passed[place].noise for run in fits])
            else:
                draws = self.watched.draw(self.first.asked, DRAWS[exactly])[:, source[0]] * source[1]
            law = law_of(draws, passed.step, (passed.shape[-1:] or (1,)) + (len(passed.noise),))
            require(
                law is None or not is_cut_off(draws, law),
                "The noise has an end, beyond which a release tells the records; draw it from a law "
                "that has none, and do not clip it.",
            )
            laws.append(law)
        return laws

    def values(self, data_sets):
        """Return the values of each sum for each data set, or None where the gate has another shape."""
        found = []
        for data in data_sets:
            run = self.watched.fit(data, 0, self.first.passed)
            require(
                not run.other_shape,
                "How many numbers pass dpselect.noise.release, or their shape, depends on the records; "
                "let public numbers decide it.",
            )
            for place in self.places:
                require(
                    np.array_equal(run.passed[place].noise, self.first.passed[place].noise),
                    "At one seed the noise that dpselect.noise.release is given differs between "
                    "neighbours: its size, or whether there is any, depends on the records; scale it "
                    "by public numbers.",
                )
            found.append([run.passed[place].values for place in self.places])
        return found

    def losses(self, values, laws, slack):
        """Return the losses of all pairs, each reduced by its statistical error."""
        total = np.zeros((len(values),) * 2)
        for i, law in enumerate(laws):
            part = np.array([value[i] for value in values])
            moved = law.loss(part[:, np.newaxis] - part)
            # for Gaussian noise the loss is a square
            total += moved / (1 + slack * law.error) ** (2 if law.kind == "gaussian" else 1)
        return total


class ReleasedSums:
    """Released numbers that are sums of values and noise, where nothing passes the gate."""

    places, complete = (0,), True

    def __init__(self, case, params, data_sets):
        self.case, self.params, self.data = case, params, data_sets[0]
        self.delta = case.fit(self.data, **params).privacy_.delta
        self.usual = np.array([self._numbers(self.data, seed) for seed in (0, *SEEDS)])
        self.size = self.usual.shape[1]
        self.spread = np.abs(self.usual - np.median(self.usual, axis=0)).mean(axis=0)

    def _numbers(self, data, seed=0, **params):
        return self.case.numbers(self.case.fit(data, seed, **{**self.params, **params}), derived=False)

    def laws(self, exactly):
        exact, seeds = self._numbers(self.data, epsilon=math.inf), range(FITS[exactly])
        draws = np.array([self._numbers(self.data, seed) - exact for seed in seeds])
        return [law_of(draws, 0.0, (draws.shape[1],))]

    def values(self, data_sets):
        """Return the numbers of each data set, without those that are not such sums."""
        found = []
        for data in data_sets:
            moved = np.array([self._numbers(data, seed) for seed in (0, *SEEDS)]) - self.usual
            same = np.ptp(moved, axis=0) <= 1e-6 * self.spread + 1e-9 * np.abs(moved).max(axis=0)
            if same.all():
                found.append([self.usual[0] + moved[0]])
            else:
                leave_out("a release on some records is no sum of values and noise")
        return found

    losses = Sums.losses
