"""Stability certificates: bounds on the sensitivity of scores, and splits of the records.

A procedure is a pair (G, F): a random r from G that does not depend on the data, and a
deterministic F(data, parameters, r). A certificate bounds how far one record can move
the score of F at the noise that was drawn. Because selection noise is independent of the
data and no model trained with them is released, a selection that is private for every
fixed noise is private, with no failure probability delta.

Chaudhuri and Vinterbo 2013, section 3; the page "Selection by stability" of the
documentation has the proofs and the corrections to their theorem 4.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..exceptions import CertificateError
from ..mechanisms import noisy_argmax
from ..rows.cutting import all_indices


@dataclass(frozen=True)
class Certificate:
    """Bounds on the sensitivity of a score to one record, at fixed noise.

    Attributes
    ----------
    training : float
        a, the sensitivity when one training record is replaced.
    span : float
        The largest difference between two records' contributions to the score; one of m
        validation records moves it by at most b = span / m.
    residual : float, default=0.0
        c, the change that the solver's inexactness allows when no training record is replaced:
        models of several splits are computed together.
    """

    training: float
    span: float
    residual: float = 0.0


def margin_certificate(score, radius, sensitivity, norm, residual=0.0):
    """Return the Certificate of a margin score, of Lipschitz constant L, for linear classifiers.

    Rows have l2 norms of at most `radius`, R. One training record moves w by at most `sensitivity`,
    and two solutions for the same training records are at most `residual` apart. `norm` bounds
    ||w|| at the noise sample.

    a = min(span, L R sensitivity) and the span of g over margins up to R ||w||, both averaged over
    the entries of `norm` (one for each one-vs-rest problem); c as a, with `residual` as the
    sensitivity.
    """
    span = np.asarray(score.span(radius * np.asarray(norm)))
    training, apart = (
        np.minimum(span, score.lipschitz * radius * moved) for moved in (sensitivity, residual)
    )
    return Certificate(float(training.mean()), float(span.mean()), float(apart.mean()))


@dataclass(frozen=True)
class SplitPatterns:
    """The distinct patterns in which records take part in J splits, and the splits' sizes.

    `in_train` and `in_test`, of shape (n_patterns, J), count how often a record of each pattern
    occurs in T_j and V_j; `train_sizes` and `test_sizes` are |T_j| and |V_j|.
    """

    in_train: np.ndarray
    in_test: np.ndarray
    train_sizes: np.ndarray
    test_sizes: np.ndarray

    @classmethod
    def from_splits(cls, splits, n_samples):
        """Count the patterns of J pairs of index arrays, which must not depend on the records.

        An index may occur several times.
        """
        counts = [_counts(part, n_samples) for split in splits for part in split]
        # merge column by column, which keeps the labels small
        pattern, first = np.zeros(n_samples, dtype=np.uint8), np.zeros(1, dtype=np.int64)
        for column in counts:
            # renumber: few distinct counts occur, but they may be large
            place, known = _relabelled(column)
            pattern = pattern.astype(np.min_scalar_type(len(first) * len(known)))
            pattern *= len(known)
            pattern += place
            pattern, first = _relabelled(pattern)
        table = np.array([column[first] for column in counts]).T
        sizes = np.array([[len(part) for part in split] for split in splits])
        return cls(table[:, 0::2], table[:, 1::2], sizes[:, 0], sizes[:, 1])

    def scaled(self, factor):
        """Return the same splits of `factor` times as many records, for planning."""
        train, test = (
            np.maximum(1, np.rint(factor * sizes)).astype(int)
            for sizes in (self.train_sizes, self.test_sizes)
        )
        return SplitPatterns(self.in_train, self.in_test, train, test)

    def sensitivities(self, training, span, residual=0.0):
        """Return the sensitivity of each of k candidates' scores, averaged over the splits.

        Delta_i = max over records r of (1/J) sum_j [(count of r in T_j) a_ij + (count of r in V_j)
        span_ij / |V_j| + c_ij unless r is in T_j]. `training`, `span` and `residual`, of shape (k,
        J), are the certificates a, span and c of candidate i trained on T_j; c is 0 where each
        model is a function of the records of T_j alone.
        """
        sensitivity = training @ self.in_train.T + (span / self.test_sizes) @ self.in_test.T
        sensitivity += np.broadcast_to(residual, training.shape) @ (self.in_train == 0).T
        return sensitivity.max(axis=1) / len(self.test_sizes)


def _counts(part, n_samples):
    # few records are named often, so a short type saves memory
    counts = np.bincount(part, minlength=n_samples)
    return counts.astype(np.min_scalar_type(counts.max()))


def _relabelled(labels):
    """Renumber labels from 0 on; return them and where each occurs.

    As numpy's unique does, which sorts; but the labels here are small, and stay of short types.
    """
    where = np.full(int(labels.max()) + 1, -1)
    where[labels] = all_indices(len(labels))
    known = np.flatnonzero(where >= 0)
    if len(known) == len(where):
        return labels, where
    number = np.empty(len(where), dtype=np.min_scalar_type(len(known)))
    number[known] = np.arange(len(known))
    return number[labels], where[known]


# Bound on the error of computed values, relative to their sensitivity.
INEXACTNESS = 1e-3

# Largest useful cost of a choice's noise, in the mean loss, the least useful radius of the ball, and one
# that suffices. Chosen by experiment.
LARGEST_LOSS, LEAST_RADIUS, LARGEST_RADIUS = 0.035, 2.0, 10.0


@dataclass(frozen=True)
class RiskBound:
    """Public numbers about the optimal value of one candidate, before any data.

    Attributes
    ----------
    sensitivity : float
        How far one record moves the computed value.
    inexactness : float
        Half the length of an interval, placed by public numbers about the exact value, in which
        the computed one lies. Twice this is part of `sensitivity`.
    forecast : float
        A guess of what the noise of the release adds to the value. Promises nothing.
    ball : float
        Radius of the ball over which the value is taken, or less: a bound on the minimiser.
    unit : tuple
        What the value is a mean of. Values of different units cannot be compared.
    stake : float
        Largest gain of a perfect model over an uninformative one; for plans only.
    """

    sensitivity: float
    inexactness: float
    forecast: float
    ball: float
    unit: tuple
    stake: float = math.nan

    @classmethod
    def of(cls, span, n_samples, residual, forecast, ball, unit, stake):
        """Make the bound from the largest difference of two records' losses at a minimiser."""
        sensitivity = span / n_samples + 2 * residual
        if not math.isfinite(sensitivity + forecast):
            raise ValueError(
                "strategy='optimal_risk' was given candidates of which some bound on the risk is "
                "beyond the range of float64; bring the columns to a scale near 1, or write a larger "
                "alpha."
            )
        return cls(float(sensitivity), float(residual), float(forecast), float(ball), unit, float(stake))


def select_by_risk_bound(values, bounds, epsilon, random_state=None):
    """Return the candidate with the least bound on its risk, epsilon-differentially private.

    `values`, of shape (k,), are the optimal values: exact functions of the records, which must not
    leave a search. `bounds` are the candidates' RiskBounds, from public numbers, all of one unit.
    """
    check_units(bounds)
    forecasts = np.array([bound.forecast for bound in bounds])
    sensitivities = [bound.sensitivity for bound in bounds]
    return noisy_argmax(-(np.asarray(values) + forecasts), sensitivities, epsilon, random_state)


def check_units(bounds):
    """Refuse candidates whose values are means of different losses."""
    units = sorted({bound.unit for bound in bounds}, key=repr)
    if len(units) > 1:
        raise CertificateError(
            "Candidates cannot be compared by their risk, because they minimise different losses: "
            f"{', '.join(' '.join(map(str, unit)) for unit in units)}; let candidates differ in "
            'features or regularisation only, or use strategy="stability".'
        )


def public_reach(n_samples, n_candidates, epsilon):
    """Return the radius of the ball of models whose risks are compared, or None for no comparison.

    The largest prediction of a model in the ball, in units of the largest target, which is 1 for
    classifiers. None if models that say little are all that could be compared; it is then better to
    spend everything on one candidate that was named in advance.

    A choice among k candidates whose values move by 2 U / n is off by about 2 U ln(k) / (n
    epsilon): this U makes it ``LARGEST_LOSS``. Found by experiment.
    """
    radius = LARGEST_LOSS * n_samples * epsilon / (2 * math.log(max(n_candidates, 2)))
    return min(radius, LARGEST_RADIUS) if radius >= LEAST_RADIUS else None
