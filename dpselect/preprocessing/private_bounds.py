"""Learn unknown bounds of columns by private quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..accounting.zcdp import ROUNDING, zcdp_budget
from ..base.estimator import PrivateEstimator
from ..ledger import PrivacyLedger
from ..mechanisms.selection import GRID_COST, gumbel_choice, largest_sum
from ..noise import grid_step, gumbel, nearest_multiple
from ..noise.generators import RandomState
from ..records.persons import cell_counts
from ..records.public_shape import PublicShape
from ..records.records import numeric_rows
from ..rows import block_map
from ..utils.type_aliases import FloatArray, MatrixLike
from ..utils.validation import number
from .plain_rows import scaling
from .scalers import scale_to_bounds

# Ends of the cells: 0 and plus or minus (1 + j / 8) 2^e. Eight to an octave place a bound
# within an eighth of its size, and the exponents hold every unit that people measure in.
STEPS, SMALLEST_EXPONENT, LARGEST_EXPONENT = 8, -40, 40
# target ranks are multiples of this, so that differences of ranks are exact
RANK_UNIT = 2.0**-10


@dataclass(frozen=True)
class BoundsNoise:
    """The noise of one choice of bounds."""

    shape: PublicShape
    epsilon: float
    allowed_delta: float = 0.0

    @property
    def n_bounds(self):
        return 2 * self.shape.n_features

    @cached_property
    def concentrated_epsilon(self):
        """float : Epsilon of each bound by theorem 3; 0 without a delta, or if theorem 1 is better."""
        if self.allowed_delta == 0 or self.epsilon == np.inf:
            return 0.0
        budget = zcdp_budget(self.epsilon, self.allowed_delta) * (1 - ROUNDING)
        each = float(np.sqrt(8 * budget / self.n_bounds)) - GRID_COST
        return each if each > self.epsilon / self.n_bounds else 0.0

    @property
    def delta(self):
        """float : Delta of the fit; 0 if theorem 1 gives each bound more epsilon."""
        return self.allowed_delta if self.concentrated_epsilon else 0.0

    @property
    def scale(self):
        """float : Scale of Gumbel noise for ranks: 2 / epsilon, with the epsilon of one bound."""
        if self.concentrated_epsilon:
            return 2 / self.concentrated_epsilon
        return 4 * self.shape.n_features / self.epsilon

    @property
    def step(self):
        """float : Step of a grid that contains the ranks."""
        return grid_step(self.scale, unit=RANK_UNIT)

    def event(self, learned=False):
        """Return the Event of all choices."""
        each = self.concentrated_epsilon or self.epsilon / self.n_bounds
        return gumbel_choice(each, self.n_bounds) if self.epsilon < np.inf else None

    def scaled(self, noise):
        """Return the noise of the utilities, on the grid."""
        return nearest_multiple(self.scale * noise, self.step)


class DPBoundsScaler(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):
    """Learn each column's bounds privately, then map the column from them to [-1, 1].

    For columns whose bounds are not known. Values outside the learned bounds are clipped.
    If you do know bounds, :class:`BoundedScaler` costs nothing.

    Neighbouring data sets differ in one record. Public are the number of records, the
    columns and every parameter.

    Read more in :doc:`/weak_model`.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of all bounds together, greater than 0; ``inf`` takes exact quantiles.
    delta : float, default=0.0
        In [0, 1). With a small one, such as 1e-6, bounds of 3 columns or more are found with less noise,
        that grows with the square root of their number. Where it does not help, none is spent.
    tail : float, default=0.02
        Share of the records, in (0, 1/2), that may lie beyond each bound. A larger one is
        found more reliably: the rank of a bound is off by up to 50 n_features / epsilon
        records, without a delta, which should be less than `tail` times the number of records.
    ledger : PrivacyLedger, default=None
        Pays for each fit, in place of one that is open (``with ledger:``). If too little is left,
        BudgetExceededError is raised before any data is touched.
    random_state : None, int, SeedSequence, RandomState or Generator, default=None
        None draws noise from a cryptographic generator keyed by the operating system.
        Everything else is for tests: the noise can be drawn again.

    Attributes
    ----------
    bounds_ : ndarray of shape (n_features, 2)
        Released lower and upper bounds.
    privacy_ : PrivacyLoss
        What the fit spent.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X had names.

    Notes
    -----
    For each of the 2 p bounds the exponential mechanism chooses the cell of a fixed grid that
    holds the target quantile. The utility of a cell is minus the number of records by which
    it misses the rank k of the quantile; replacing one record changes it by at most 1. Smith,
    *Privacy-preserving Statistical Estimation with Optimal Convergence Rates*, 2011, with
    fixed cells in place of the intervals between records, so that no range has to be known.
    The page "Private bounds" has statement and proof.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect.preprocessing import DPBoundsScaler
    >>> ages = np.random.default_rng(0).uniform(18, 90, size=(20_000, 1))
    >>> scaler = DPBoundsScaler(epsilon=1.0).fit(ages)
    >>> bool(15 <= scaler.bounds_[0, 0] <= 22 and 80 <= scaler.bounds_[0, 1] <= 96)
    True
    >>> scaler.privacy_.epsilon
    1.0
    """

    # allows this step in a Pipeline although it learns: privacy_ states its loss
    releases_privately = True
    reads = {"lazily": True}
    takes_groups = True
    parameter_checks = {
        "delta": number(
            low_included=True,
            high=1.0,
            why="it is a probability",
            instead="write 0.0, or a number such as 1e-6",
        ),
        "tail": number(
            high=0.5,
            why="a bound is the value beyond which this share of the records lies",
            instead="write a number between 0 and 0.5, such as 0.02",
        ),
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        tail: float = 0.02,
        ledger: PrivacyLedger | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.tail = tail
        self.ledger = ledger
        self.random_state = random_state

    def _what(self):
        return "bounds of all columns"

    def _calibration(self, shape, epsilon):
        return BoundsNoise(shape, epsilon, float(self.delta))

    def _standard_noise(self, generator, n_features, n_problems, epsilon):
        # independent Gumbel variables for the lower and the upper bound of each column
        return gumbel(generator, (n_features, 2, len(bound_grid()) - 1))

    def _release(self, records, calibration, noise):
        grid, tail = bound_grid(), float(self.tail)
        target = nearest_multiple(np.array([tail, 1 - tail]) * records.shape.n_samples, RANK_UNIT)
        ranks = ranks_of(records.X, grid, records.persons, calibration.step)
        utility = cell_utility(ranks[:, None, :], target[:, None])
        cells = np.sort(largest_sum(utility, calibration.scaled(noise)), axis=1)
        # the outer ends of both cells, so that equal cells still give an interval
        return {"bounds_": np.column_stack([grid[cells[:, 0]], grid[cells[:, 1] + 1]])}

    def transform(self, X: MatrixLike) -> FloatArray:
        """Scale rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Values in [-1, 1].
        """
        check_is_fitted(self)
        X = numeric_rows(self, X, lazily=True, reset=False)
        low, high = self.bounds_.T
        return block_map(lambda rows: scale_to_bounds(rows, low, high), X)

    def to_sklearn(self) -> Pipeline:
        """Return an equal step of scikit-learn alone, with the released bounds.

        Returns
        -------
        sklearn.pipeline.Pipeline
        """
        check_is_fitted(self)
        low, high = self.bounds_.T
        return scaling(low, high, getattr(self, "feature_names_in_", None))


def bound_grid():
    """Return the ends of the cells, in ascending order."""
    mantissas = 1 + np.arange(STEPS) / STEPS
    positive = np.outer(2.0 ** np.arange(SMALLEST_EXPONENT, LARGEST_EXPONENT + 1), mantissas).ravel()
    return np.concatenate([-positive[::-1], [0.0], positive])


def cell_utility(ranks, target):
    """Return minus the distance of each cell from a rank, in records; 0 for the cell of the rank."""
    return -np.maximum(0.0, np.maximum(ranks[..., :-1] - target, target - ranks[..., 1:]))


def ranks_of(X, grid, persons=None, step=1.0):
    """Count the records of each column that are at most each value of a grid, shape (p, c)."""
    p, n_bins = X.shape[1], len(grid) + 1

    def bins(block):
        # the index of the first value that is at least x; the last bin is for larger x
        return np.searchsorted(grid, block) + np.arange(p) * n_bins

    counts = cell_counts(bins, p * n_bins, X, persons, step)
    return counts.reshape(p, n_bins)[:, :-1].cumsum(axis=1)
