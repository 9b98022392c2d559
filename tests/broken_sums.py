"""Private estimators that release sums with noise on a grid, and what their authors may get wrong.

Three are right: a classifier, a regressor and a density, with natural names and without a certificate.
Each broken one has one mistake. All of them fit and predict ordinary records.
"""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpselect.base.estimator import PrivateClassifier, PrivateDensity, PrivateRegressor
from dpselect.noise import grid_noise, release
from dpselect.records.public_shape import PublicShape
from dpselect.records.records import numeric_rows
from dpselect.utils.validation import number

STEPS = 2**16


@dataclass(frozen=True)
class GridNoise:
    shape: PublicShape
    scale: float


class _Sums:
    """Sums of integers that come of rows, with discrete Laplace noise."""

    sensitivity = 2.0 * STEPS
    parameter_checks = {
        "data_norm": number(
            why="rows are scaled down to it", instead="write a number greater than 0, such as 1.0"
        ),
    }

    def _what(self):
        return "sums of rows"

    def _calibration(self, shape, epsilon):
        return GridNoise(shape, self.sensitivity / epsilon)

    def _standard_noise(self, generator, n_features, n_problems, epsilon):
        return grid_noise(generator, self._size(n_features), self.sensitivity / epsilon, step=1.0)

    def _steps(self, X):
        with np.errstate(over="ignore"):
            norms = np.abs(X).sum(axis=1, keepdims=True)
        return np.trunc(STEPS * (X / np.maximum(norms, self.data_norm)))


# a classifier


class NoisyCentroids(_Sums, PrivateClassifier):
    """Nearest centroid, from sums and counts of each class; two classes."""

    # a record goes from one class, with its count, and comes to another
    sensitivity = 4.0 * STEPS

    def __init__(self, epsilon=1.0, *, data_norm=1.0, classes=None, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.data_norm = data_norm
        self.classes = classes
        self.ledger = ledger
        self.random_state = random_state

    def _size(self, n_features):
        return np.size(self.classes), n_features + 1

    def _member(self, records):
        return (records.y[:, np.newaxis] == records.classes).astype(float)

    def _release(self, records, calibration, noise):
        member = self._member(records)
        sums = np.column_stack([member.T @ self._steps(records.X), STEPS * member.sum(axis=0)])
        noisy = release(sums, noise, step=1.0)
        return {"sums_": noisy[:, :-1], "counts_": np.maximum(noisy[:, -1], STEPS)}

    def decision_function(self, X):
        check_is_fitted(self)
        rows = self._steps(numeric_rows(self, X, reset=False)) / STEPS
        centroids = self.sums_ / self.counts_[:, np.newaxis]
        scores = 2 * rows @ centroids.T - (centroids**2).sum(axis=1)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores


class ForgetsCounts(NoisyCentroids):
    """The noise is that of the sums alone."""

    sensitivity = 2.0 * STEPS


class ForgetsThatARecordComes(NoisyCentroids):
    """The noise is that of the count that goes."""

    sensitivity = 3.0 * STEPS


class ClippedInAnotherNorm(NoisyCentroids):
    """Rows have an l2 norm, the noise is that of an l1 norm."""

    def _steps(self, X):
        with np.errstate(over="ignore"):
            norms = np.linalg.norm(X, axis=1, keepdims=True)
        return np.trunc(STEPS * (X / np.maximum(norms, self.data_norm)))


class _Rescaled(NoisyCentroids):
    def _release(self, records, calibration, noise):
        with np.errstate(all="ignore"):
            X = np.nan_to_num(self._rescaled(records.X))
        return super()._release(replace(records, X=X), calibration, noise)


class ScaledByTheLongestRow(_Rescaled):
    def _rescaled(self, X):
        return X / np.maximum(np.abs(X).sum(axis=1).max(), 1e-12)


class ScaledByTheLargestEntries(_Rescaled):
    def _rescaled(self, X):
        return X / np.maximum(np.abs(X).max(axis=0), 1e-12)


class Standardised(_Rescaled):
    def _rescaled(self, X):
        return (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)


class OutliersDropped(_Rescaled):
    """Rows far from the median of the records count as 0."""

    def _rescaled(self, X):
        far = np.abs(X - np.median(X, axis=0))
        return np.where(far <= 3 * np.median(far, axis=0) + 1e-9, X, 0.0)


class ExactCounts(NoisyCentroids):
    def _release(self, records, calibration, noise):
        counts = STEPS * np.maximum(self._member(records).sum(axis=0), 1)
        return {**super()._release(records, calibration, noise), "counts_": counts}


class KeepsCounts(NoisyCentroids):
    def _release(self, records, calibration, noise):
        self._counts = self._member(records).sum(axis=0)
        return super()._release(records, calibration, noise)


class OneNoiseForAllClasses(NoisyCentroids):
    def _standard_noise(self, *args):
        noise = super()._standard_noise(*args)
        return np.broadcast_to(noise[:1], noise.shape).copy()


class NoiseForSmallClasses(NoisyCentroids):
    """Classes with many rows have none."""

    def _release(self, records, calibration, noise):
        counts = self._member(records).sum(axis=0)
        return super()._release(records, calibration, np.where(counts[:, np.newaxis] < 100, noise, 0.0))


class NoiseForOneEpsilon(NoisyCentroids):
    def _standard_noise(self, generator, n_features, n_problems, epsilon):
        return super()._standard_noise(generator, n_features, n_problems, 1.0)


class BesideTheGate(NoisyCentroids):
    """Adds the noise of integers to sums that are none."""

    def _release(self, records, calibration, noise):
        member = self._member(records)
        rows = self._steps(records.X) * 0.7
        sums = np.column_stack([member.T @ rows, STEPS * member.sum(axis=0)]) + noise
        return {"sums_": sums[:, :-1], "counts_": sums[:, -1]}


# a regressor


class NoisyMoments(_Sums, PrivateRegressor):
    """Predict by the sum of all rows, each times its target."""

    def __init__(self, epsilon=1.0, *, data_norm=1.0, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.data_norm = data_norm
        self.ledger = ledger
        self.random_state = random_state

    def _size(self, n_features):
        return n_features

    def _targets(self, y):
        return np.clip(y, -1, 1)

    def _release(self, records, calibration, noise):
        terms = np.trunc(self._targets(records.y)[:, np.newaxis] * self._steps(records.X))
        return {"moments_": release(terms.sum(axis=0), noise, step=1.0)}

    def predict(self, X):
        check_is_fitted(self)
        return self._steps(numeric_rows(self, X, reset=False)) @ (self.moments_ / STEPS**2)


class TargetsOfTheirOwnRange(NoisyMoments):
    def _targets(self, y):
        return y / np.maximum(np.abs(y).max(), 1e-12)


class TargetsCentred(NoisyMoments):
    """The mean of the targets is taken off first."""

    def _targets(self, y):
        return np.clip(y, -1, 1) - np.clip(y, -1, 1).mean()


class HalfTheNoise(NoisyMoments):
    def _standard_noise(self, *args):
        return np.rint(super()._standard_noise(*args) / 2)


class GaussianNoise(NoisyMoments):
    """The variance is that of the noise with a proof."""

    def _standard_noise(self, generator, n_features, n_problems, epsilon):
        scale = 2**0.5 * self.sensitivity / epsilon
        return np.rint(scale * generator.normal(size=n_features))


class NoiseCutOff(NoisyMoments):
    def _standard_noise(self, generator, n_features, n_problems, epsilon):
        noise = super()._standard_noise(generator, n_features, n_problems, epsilon)
        end = np.rint(4 * self.sensitivity / epsilon)
        return np.clip(noise, -end, end)


# a density


class NoisyCells(PrivateDensity):
    """Counts of the cells of the first column, from -1 to 1."""

    parameter_checks = {}
    n_cells = 4

    def __init__(self, epsilon=1.0, *, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.ledger = ledger
        self.random_state = random_state

    def _what(self):
        return "counts of cells"

    def _calibration(self, shape, epsilon):
        return GridNoise(shape, 2 / epsilon)

    def _standard_noise(self, generator, n_features, n_problems, epsilon):
        return grid_noise(generator, self.n_cells, 2 / epsilon, step=1.0)

    def _edges(self, X):
        return np.linspace(-1, 1, self.n_cells + 1)

    def _counts(self, X, edges):
        place = np.searchsorted(edges[1:-1], X[:, 0], side="right")
        return np.bincount(place, minlength=self.n_cells).astype(float)

    def _release(self, records, calibration, noise):
        counts = self._counts(records.X, self._edges(records.X))
        return {"cell_counts_": release(counts, noise, step=1.0)}

    def score_samples(self, X):
        check_is_fitted(self)
        rows = numeric_rows(self, X, reset=False)
        place = np.searchsorted(np.linspace(-1, 1, self.n_cells + 1)[1:-1], rows[:, 0], side="right")
        counts = np.maximum(self.cell_counts_, 1)
        return np.log(counts / counts.sum())[place]


class EmptyCellsStayEmpty(NoisyCells):
    def _release(self, records, calibration, noise):
        counts = self._counts(records.X, self._edges(records.X))
        return {"cell_counts_": np.where(counts > 0, release(counts, noise, step=1.0), 0.0)}


class CellsOfTheRecords(NoisyCells):
    """The cells end where the records do."""

    def _edges(self, X):
        return np.linspace(X[:, 0].min(), X[:, 0].max(), self.n_cells + 1)


class TwoReleasesForOne(NoisyCells):
    """Releases the halves, too, with the noise of a single release."""

    def _standard_noise(self, generator, n_features, n_problems, epsilon):
        return grid_noise(generator, self.n_cells + 2, 2 / epsilon, step=1.0)

    def _release(self, records, calibration, noise):
        counts = self._counts(records.X, self._edges(records.X))
        halves = counts.reshape(2, -1).sum(axis=1)
        return {
            "cell_counts_": release(counts, noise[:-2], step=1.0),
            "half_counts_": release(halves, noise[-2:], step=1.0),
        }


RIGHT = (NoisyCentroids, NoisyMoments, NoisyCells)
BROKEN = (
    ForgetsCounts,
    ForgetsThatARecordComes,
    ClippedInAnotherNorm,
    ScaledByTheLongestRow,
    ScaledByTheLargestEntries,
    Standardised,
    OutliersDropped,
    ExactCounts,
    KeepsCounts,
    OneNoiseForAllClasses,
    NoiseForSmallClasses,
    NoiseForOneEpsilon,
    BesideTheGate,
    TargetsOfTheirOwnRange,
    TargetsCentred,
    HalfTheNoise,
    GaussianNoise,
    NoiseCutOff,
    EmptyCellsStayEmpty,
    CellsOfTheRecords,
    TwoReleasesForOne,
)
