"""Private estimators as their authors may get them wrong: one mistake each, in Poisson regression.

All of them train and predict on ordinary records.
"""

import warnings
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from dpselect import DPPoissonRegressor
from dpselect.base.fit_warnings import warn_if_seeded
from dpselect.linear_model.design import Design
from dpselect.linear_model.linear_noise import LinearNoise, LinearProblem
from dpselect.linear_model.losses import PoissonLoss
from dpselect.linear_model.weights import Weights
from dpselect.noise import (
    as_generator,
    laplace,
    release,
    release_step,
    root_stream,
    scale_with_rounding,
)
from dpselect.records.records import numeric_rows
from dpselect.rows import block_sum, distinct


class NoLedger(DPPoissonRegressor):
    """Its own `fit` states the loss and spends it from no ledger."""

    def fit(self, X, y=None):
        self._check_parameters()
        warn_if_seeded(self)
        self._train(X, y, self.epsilon, self.random_state)
        self.privacy_ = self._loss_of_a_fit()
        return self


class MeanBeside(DPPoissonRegressor):
    """Releases the mean count at epsilon too, and states the loss of the coefficients alone."""

    takes_groups = False  # or the rows of one person, which it counts each, would give it away

    def _release(self, records, calibration, noise):
        n, B, epsilon = records.shape.n_samples, self.target_bound, calibration.epsilon
        (total,) = block_sum(lambda y: (np.clip(y, 0, B).sum(),), records.y)
        step = release_step(B / (n * epsilon))
        scale = scale_with_rounding(B / (n * epsilon), step, epsilon)
        unscaled = laplace(as_generator(root_stream(self.random_state).child("mean")), ())
        mean = float(release(total / n, scale * unscaled, step))
        return {**super()._release(records, calibration, noise), "mean_count_": mean}


class PlainUnclipped(DPPoissonRegressor):
    """What it hands over has its coefficients, and takes rows as they come."""

    def to_sklearn(self):
        return Pipeline(super().to_sklearn().steps[-1:])


class ExactObjective(DPPoissonRegressor):
    """Leaves the noise of the objective out; what hides the solver's error is all there is."""

    def _standard_noise(self, *args):
        return super()._standard_noise(*args) * np.array([0.0, 1.0])[:, None, None]


class _RadiusWithoutConstant(LinearProblem):
    @property
    def radius(self):
        return self.data_norm


class InterceptForgotten(DPPoissonRegressor):
    """The radius to which the noise is proportional leaves out the intercept's column."""

    def problem(self, epsilon=None):
        return _RadiusWithoutConstant(**vars(super().problem(epsilon)))


class NoiseOfTheLargestCount(DPPoissonRegressor):
    """Noise is proportional to the largest count among the records, not to the largest allowed."""

    def _release(self, records, calibration, noise):
        largest = np.clip(distinct(records.y).max(), 0, self.target_bound)
        return super()._release(records, calibration, noise * (largest / self.target_bound))


class OwnEpsilonAlways(DPPoissonRegressor):
    """Calibrates to the epsilon it was made with, also where a search gives it a smaller one."""

    def _calibration(self, shape, epsilon):
        return super()._calibration(shape, float(self.epsilon))


class _AddedOrRemoved(LinearNoise):
    def certificate(self, score, noise=None, failure_probability=None):
        right = super().certificate(score, noise, failure_probability)
        return replace(right, training=right.training / 2)


class CertificateOfHalf(DPPoissonRegressor):
    """Certifies how far a score moves when a record is added, not when one is replaced."""

    def _calibration(self, shape, epsilon):
        return _AddedOrRemoved(**vars(super()._calibration(shape, epsilon)))


@dataclass(frozen=True)
class _ClippedAbove(PoissonLoss):
    def _clipped(self, target):
        return np.minimum(target, self.target_bound)


class NegativeCounts(DPPoissonRegressor):
    """Clips counts at `target_bound` only; a negative one moves the model without limit."""

    def _loss(self):
        return _ClippedAbove(float(self.target_bound))


class _UnclippedWeights(Weights):
    def of_records(self, records):
        return replace(Weights(**vars(self)), of_samples=10 * self.of_samples).of_records(records)


class WeightsUnclipped(DPPoissonRegressor):
    """Takes weights up to ten times the bound, and has the noise of those that are within it."""

    def problem(self, epsilon=None):
        right = super().problem(epsilon)
        return replace(right, weights=_UnclippedWeights(**vars(right.weights)))


class NoiseForgetsWeights(DPPoissonRegressor):
    """Clips weights, and has the noise of records that weigh 1."""

    def problem(self, epsilon=None):
        right = super().problem(epsilon)
        return replace(right, loss=right.loss.unweighted)


class _DenseClipped(LinearProblem):
    def design(self, X):
        design = super().design(X)
        if sparse.issparse(X):
            design.factor[:] = 1.0
        return design


class SparseRowsUnclipped(DPPoissonRegressor):
    """Scales long rows down in training, but for those of a sparse matrix."""

    def problem(self, epsilon=None):
        return _DenseClipped(**vars(super().problem(epsilon)))


class PredictsUnclipped(DPPoissonRegressor):
    """Scales long rows down in training, and not in prediction, as the certificate takes for granted."""

    def _predictor(self, X, function):
        check_is_fitted(self)
        X = numeric_rows(self, X, **self.reads, reset=False)
        rows = Design(X, np.inf, None, self.n_jobs)
        return rows.dot(self.coef_[:, None], lambda z: function(z + self.intercept_))


class _StartsAtZero:
    def fit(self, X, y=None, **fit_params):
        vars(self).update(coef_=np.zeros(1), intercept_=0.0)
        return super().fit(X, y, **fit_params)


class HalfAModel(_StartsAtZero, DPPoissonRegressor):
    """A `fit` that fails leaves other coefficients than before, beside the loss of the old ones."""


class SameNoise(DPPoissonRegressor):
    """Draws the same noise in each fit, from a seed of its own, so that anyone can remove it."""

    def _standard_noise(self, generator, *shape):
        return super()._standard_noise(as_generator(0), *shape)


class KeepsTheMinimiser(DPPoissonRegressor):
    """Keeps the minimiser without noise in a private attribute, and so in its pickle."""

    keeps = ("_start",)

    def _release(self, records, calibration, noise):
        self._start = super()._release(records, calibration, np.zeros_like(noise))["coef_"]
        return super()._release(records, calibration, noise)


def _as_floats(values):
    if isinstance(values, list) or np.dtype(object) == getattr(values, "dtype", float):
        return np.asarray(values, dtype=np.float64)
    return values


class QuotesText(DPPoissonRegressor):
    """Converts records by numpy before they are checked, whose error quotes the text that it met."""

    def _check_records(self, X, y):
        return super()._check_records(_as_floats(X), _as_floats(y))


class WarnsOfClipping(DPPoissonRegressor):
    """Warns if a count was clipped, which tells that somebody has such a count."""

    def _check_records(self, X, y):
        records = super()._check_records(X, y)
        if distinct(records.y).max() > self.target_bound:
            warnings.warn("Some counts are beyond target_bound; write a larger one.", UserWarning)
        return records


class RowsOfPersonsInFull(DPPoissonRegressor):
    """Lets all rows of a person count in full."""

    def _release(self, records, calibration, noise):
        return super()._release(replace(records, persons=None), calibration, noise)


BROKEN = (
    NoLedger,
    MeanBeside,
    ExactObjective,
    InterceptForgotten,
    NoiseOfTheLargestCount,
    OwnEpsilonAlways,
    CertificateOfHalf,
    NegativeCounts,
    SparseRowsUnclipped,
    PredictsUnclipped,
    HalfAModel,
    SameNoise,
    KeepsTheMinimiser,
    QuotesText,
    WarnsOfClipping,
    WeightsUnclipped,
    NoiseForgetsWeights,
    PlainUnclipped,
    RowsOfPersonsInFull,
)
