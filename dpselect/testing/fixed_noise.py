"""Attacks on the noise: a release as a function of it, and the law of what comes out."""

import math

import numpy as np
from scipy.stats import gamma, kstest

from ..noise import as_generator
from .attempts import require
from .case import as_records, parameters_to_try

# a map from noise to release that is worse conditioned is taken for one that loses noise
MOST_BENT = 1e5
# a release is computed for each number of its noise, and some hundred noises are looked at
MOST_NOISE = 64
# where an estimator draws its noise: see `dpselect.estimator.PrivateEstimator`
HOOK = "_standard_noise"


class FixedNoise:
    """An estimator whose standard noise is given: its release as a function of the noise."""

    def __init__(self, case, params):
        self.case, self.params = case, {**case.params, **params}
        kind, self.given, self.call = type(case.estimator), None, None

        def noise(model, generator, *shape):
            self.call = shape
            if self.given is None:
                return getattr(kind, HOOK)(model, generator, *shape)
            return self.given.copy()

        self.kind = type(kind.__name__, (kind,), {HOOK: noise})

    def release(self, data, given=None):
        self.given = given
        model = self.kind(**self.params).fit(*data)
        self.delta = model.privacy_.delta
        return self.case.numbers(model, derived=False)

    def prepare(self, data):
        """Find the part of the noise that moves the release, and its law; tell whether that is known."""
        self.params["random_state"] = 0
        usual = self.release(data)
        if self.call is None or self.delta:
            return False
        draw = getattr(type(self.case.estimator)(**self.params), HOOK)
        draws = [draw(as_generator(0), *self.call)]
        if np.size(draws[0]) > MOST_NOISE:
            return False
        draws += [draw(as_generator(seed), *self.call) for seed in range(1, 400)]
        if len({np.shape(one) for one in draws}) > 1:
            return False
        draws = np.array(draws, dtype=np.float64)
        self.base = draws[0]
        if not np.array_equal(self.release(data, self.base), usual) or not self.base.ndim:
            return False
        blocks = np.arange(self.base.size).reshape(-1, self.base.shape[-1])
        draws, moves = draws.reshape(len(draws), -1), []
        for block in blocks:
            r = self.base.copy()
            r.ravel()[block] += np.abs(draws[:, block]).mean(axis=0)
            moves.append(self.release(data, r) - usual)
        sizes = np.linalg.norm(moves, axis=1)
        kept = sizes > 1e-5 * sizes.max(initial=0.0)
        self.columns = np.flatnonzero(np.any(np.array(moves)[kept] != 0, axis=0))
        self.places = blocks[kept].ravel()
        self.laws = [_law(draws[:, block]) for block in blocks[kept]]
        return len(self.columns) == len(self.places) > 0 and None not in self.laws

    def at(self, data, r):
        given = self.base.copy()
        given.ravel()[self.places] = r
        return self.release(data, given)[self.columns]

    def log_density(self, r):
        parts = np.split(r, len(self.laws))
        return -sum(np.linalg.norm(part, order) / b for part, (order, b) in zip(parts, self.laws))

    def slopes(self, data, r):
        step = 1e-4 * (1 + np.abs(r).max())
        moves = step * np.eye(len(r))
        return (np.array([self.at(data, r + move) for move in moves]) - self.at(data, r)).T / step

    def tells(self, data, r, slopes):
        """Tell whether the release shows all of the noise: a clipped model does not."""
        if not np.linalg.cond(slopes) < MOST_BENT:
            return False
        moved = 1e-4 * (1 + np.abs(r).max()) * np.resize([0.9, -0.7, 0.8], len(r))
        found = np.linalg.solve(slopes, self.at(data, r + moved) - self.at(data, r))
        return bool((np.abs(found - moved) < 0.1 * np.abs(moved)).all())

    def loss(self, data, neighbour, r):
        """Return the loss of what comes out of `data` at the noise r."""
        slopes, target, s = self.slopes(data, r), self.at(data, r), r
        bent = slopes
        if not self.tells(data, r, slopes):
            return 0.0
        for _ in range(8):
            move = np.linalg.solve(bent, target - self.at(neighbour, s))
            s, size = s + move, np.abs(move).max() / (1 + np.abs(s).max())
            bent = self.slopes(neighbour, s)
            if not self.tells(neighbour, s, bent):
                return 0.0
            if size < 1e-4:
                signs = np.linalg.slogdet(slopes)[1], np.linalg.slogdet(bent)[1]
                return abs(self.log_density(r) - signs[0] - self.log_density(s) + signs[1])
        return 0.0  # the noise that explains it was not found


def _law(draws):
    """Return the order of the norm and the scale of noise of density exp(-norm / scale)."""
    d, fits = draws.shape[1], []
    # with the logarithms of the integrals of exp(-norm)
    for order, values, shape, volume in (
        (2, np.linalg.norm(draws, axis=1), d,
         math.log(2) + d / 2 * math.log(math.pi) + math.lgamma(d) - math.lgamma(d / 2)),
        (1, np.abs(draws).ravel(), 1, d * math.log(2)),
    ):
        scale = values.mean() / shape
        if scale > 0 and kstest(values / scale, gamma(shape).cdf).pvalue > 1e-4:
            # (a mean of some hundred draws is that far from 1)
            standard = 0.85 < scale < 1.15
            law = order, 1.0 if standard else scale
            fits.append((not standard, d * math.log(scale) + volume, law))
    # of two that fit, the standard law, or the likelier one
    return min(fits)[-1] if fits else None


def check_the_loss_of_each_noise(case):
    """At every noise, what comes out is as likely on neighbouring records as is stated."""
    if not hasattr(case.estimator, HOOK):
        return
    d, n, found = min(case.some, 2), 3, []
    for params in parameters_to_try(case, 1.0):
        edge = case.edge(d, params)
        data = [as_records([record] + [edge[0]] * (n - 1)) for record in edge]
        fixed = FixedNoise(case, params)
        try:
            if not fixed.prepare(data[0]):
                continue
        except (TypeError, ValueError):
            continue  # a value that the estimator does not take
        r, along = np.full(len(fixed.places), 0.1), None
        for length in (0.0, -3.0, 3.0, -30.0, 30.0):
            r = r if along is None else length * along
            slopes = fixed.slopes(data[0], r)
            if not fixed.tells(data[0], r, slopes):
                continue
            released = np.array([fixed.at(records, r) for records in data])
            moves = np.linalg.solve(slopes, (released[:, None] - released).reshape(-1, len(r)).T).T
            if along is None:
                longest = moves[np.argmax(np.linalg.norm(moves, axis=1))]
                along = longest / max(np.linalg.norm(longest), 1e-300)
                continue
            density = fixed.log_density(r)
            losses = np.array([abs(density - fixed.log_density(r + move)) for move in moves])
            for pair in np.argsort(-losses)[:2]:
                i, j = divmod(int(pair), len(data))
                found.append((-losses[pair], len(found), fixed, params, data[i], data[j], r))
    for _, _, fixed, params, records, neighbour, r in sorted(found, key=lambda one: one[:2])[:6]:
        loss = fixed.loss(records, neighbour, r)
        require(
            loss <= 1.02 * params["epsilon"] + 0.01,
            f"With {params} and {n} records there is a noise at which one record makes what comes "
            f"out exp({loss:.3g}) times as likely, and not exp({params['epsilon']:g}) times.",
        )
