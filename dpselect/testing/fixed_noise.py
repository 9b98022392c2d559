"""A release as a function of its noise, to find the noise that gives the same release on a neighbour."""

import math

import numpy as np

from ..noise import as_generator
from .case import fit_to
from .laws import law_of
from .watched_gate import HOOK

# largest condition number of a map from noise to release that counts as invertible
MAX_CONDITION = 1e5
# largest dimension of noise: each number costs a release at each of some hundred noises
MAX_NOISE = 64
# draws to estimate the law of the noise
DRAWS = 400


class FixedNoise:
    """An estimator with given standard noise, so that its release is a function of the noise."""

    def __init__(self, case, params):
        self.case, self.params = case, {**case.params, **params}
        kind, self.given, self.call = type(case.estimator), None, None
        # a release is a fit, and several steps ask for the same one
        self.known = {}

        def noise(model, generator, *shape):
            self.call = shape
            if self.given is None:
                return getattr(kind, HOOK)(model, generator, *shape)
            return self.given.copy()

        self.kind = type(kind.__name__, (kind,), {HOOK: noise})

    def release(self, data, given=None):
        self.given = given
        model = fit_to(self.kind(**self.params), data)
        self.delta = model.privacy_.delta
        return self.case.numbers(model, derived=False)

    def prepare(self, data):
        """Find the noise that moves the release, and its law; return the obstacle, or None."""
        self.params["random_state"] = 0
        usual = self.release(data)
        if self.call is None:
            return f"{HOOK} is not called"
        if self.delta:
            return "of a release with a delta no exact loss is known"
        draw = getattr(type(self.case.estimator)(**self.params), HOOK)
        draws = [draw(as_generator(0), *self.call)]
        if np.size(draws[0]) > MAX_NOISE:
            return f"more than {MAX_NOISE} numbers are drawn"
        draws += [draw(as_generator(seed), *self.call) for seed in range(1, DRAWS)]
        if len({np.shape(one) for one in draws}) > 1:
            return "the shape of the noise varies"
        draws = np.array(draws, dtype=np.float64)
        self.base = draws[0]
        if not np.array_equal(self.release(data, self.base), usual) or not self.base.ndim:
            return f"the release has other noise than that of {HOOK}"
        self.unit, self.scale = _unit(draws), np.abs(draws).mean()
        blocks = np.arange(self.base.size).reshape(-1, self.base.shape[-1])
        draws, moves = draws.reshape(len(draws), -1), []
        for block in blocks:
            r = self.base.copy()
            r.ravel()[block] += self.on_grid(np.abs(draws[:, block]).mean(axis=0))
            moves.append(self.release(data, r) - usual)
        sizes = np.linalg.norm(moves, axis=1)
        kept = sizes > 1e-5 * sizes.max(initial=0.0)
        self.columns = np.flatnonzero(np.any(np.array(moves)[kept] != 0, axis=0))
        self.places = blocks[kept].ravel()
        self.laws = [_law(draws[:, block], self.unit) for block in blocks[kept]]
        if None in self.laws:
            return "the noise has no law that is known here"
        if not len(self.columns) == len(self.places) > 0:
            return "fewer numbers are released than noise was drawn for, or more"
        self.error = max(law.error for law in self.laws)
        return None

    def on_grid(self, noise):
        """Round noise to the grid on which it is drawn, and never to 0."""
        if not self.unit:
            return noise
        steps = np.rint(noise / self.unit)
        return self.unit * np.where((steps == 0) & (noise != 0), np.sign(noise), steps)

    def at(self, data, r):
        key = id(data), np.asarray(r).tobytes()
        if key not in self.known:
            given = self.base.copy()
            given.ravel()[self.places] = r
            # with the data, so that no other object gets their id
            self.known[key] = data, self.release(data, given)[self.columns]
        return self.known[key][1]

    def log_density(self, r):
        """Return the logarithms of the densities of noises of shape (..., m), but for a constant."""
        parts = np.split(r, len(self.laws), axis=-1)
        return -sum(law.loss(part) for part, law in zip(parts, self.laws))

    def slopes(self, data, r):
        step = float(self.on_grid(1e-4 * (self.scale + np.abs(r).max())))
        moves = step * np.eye(len(r))
        return (np.array([self.at(data, r + move) for move in moves]) - self.at(data, r)).T / step

    def determines_noise(self, data, r, slopes):
        """Return whether the release determines all of the noise: a clipped model does not."""
        if not np.linalg.cond(slopes) < MAX_CONDITION:
            return False
        moved = 1e-4 * (self.scale + np.abs(r).max()) * np.resize([0.9, -0.7, 0.8], len(r))
        moved = self.on_grid(moved)
        found = np.linalg.solve(slopes, self.at(data, r + moved) - self.at(data, r))
        return bool((np.abs(found - moved) < 0.1 * np.abs(moved)).all())

    def loss(self, data, neighbour, r):
        """Return the privacy loss of the release of `data` at the noise r, or None if none is found."""
        slopes, target, s = self.slopes(data, r), self.at(data, r), r
        bent = slopes
        if not self.determines_noise(data, r, slopes):
            return None
        for _ in range(8):
            move = np.linalg.solve(bent, target - self.at(neighbour, s))
            if self.unit:
                steps = move / self.unit
                if np.abs(steps).max() < 0.5 and np.abs(steps).max() > 1e-3:
                    return math.inf  # releases of one data set lie between grid points of the other's
                move = self.unit * np.rint(steps)
            s, size = s + move, np.abs(move).max() / (self.scale + np.abs(s).max())
            bent = self.slopes(neighbour, s)
            if not self.determines_noise(neighbour, s, bent):
                return None
            if size < 1e-4:
                signs = np.linalg.slogdet(slopes)[1], np.linalg.slogdet(bent)[1]
                return abs(self.log_density(r) - signs[0] - self.log_density(s) + signs[1])
        return None

    def hardest(self, data_sets, lengths):
        """Yield (estimated losses of all pairs, noise) at several noises along the longest move."""
        r, along = self.on_grid(np.full(len(self.places), 0.1 * self.scale)), None
        for length in (0.0, *lengths):
            r = r if along is None else self.on_grid(length * self.scale * along)
            slopes = self.slopes(data_sets[0], r)
            if not self.determines_noise(data_sets[0], r, slopes):
                continue
            released = np.array([self.at(records, r) for records in data_sets])
            moves = np.linalg.solve(slopes, (released[:, None] - released).reshape(-1, len(r)).T).T
            if along is None:
                longest = moves[np.argmax(np.linalg.norm(moves, axis=1))]
                along = longest / max(np.linalg.norm(longest), 1e-300)
                continue
            losses = np.abs(self.log_density(r) - self.log_density(r + moves))
            yield losses.reshape(len(data_sets), -1), r


def _unit(draws):
    """Return a power of two that divides all draws, or 0 if it is much smaller than they are."""
    sizes = np.abs(draws[draws != 0])
    if not sizes.size:
        return 0.0
    exponent = math.frexp(sizes.mean())[1]
    for power in range(exponent, exponent - 24, -1):
        unit = math.ldexp(1.0, power)
        if not np.remainder(sizes, unit).any():
            return unit
    return 0.0


def _law(draws, unit):
    law = law_of(draws, unit, (draws.shape[1],))
    if law is None or law.kind == "gaussian":
        return None
    if (np.abs(law.scales - 1) < 0.15).all():
        # the sampling error of a mean of some hundred draws
        return type(law)(law.kind, np.ones(len(law.scales)), 0.0, law.block, law.same)
    return law
