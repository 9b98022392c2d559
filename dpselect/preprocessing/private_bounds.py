"""Bounds of columns that nobody knew beforehand, learned by private quantiles."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..atomic import all_or_nothing
from ..estimator import PrivacyHTMLMixin, release_loss
from ..ledger import PrivacyLedger, charged
from ..mechanisms.selection import largest_sum
from ..noise import as_generator, check_random_state, grid_step, gumbel, nearest_multiple
from ..noise.generators import RandomState
from ..records import numeric_rows
from ..rows import block_map, block_sum
from ..type_aliases import FloatArray, MatrixLike
from ..validation import check_epsilon, check_number
from .scalers import scale_to_bounds

# Ends of the cells: 0 and plus or minus (1 + j / 8) 2^e. Eight to an octave place a bound
# within an eighth of its size, and the exponents hold every unit that people measure in.
STEPS, LEAST, MOST = 8, -40, 40
# ranks that are wanted are multiples of it, so that no difference of ranks is rounded
RANK_UNIT = 2.0**-10


class DPBoundsScaler(PrivacyHTMLMixin, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Learn each column's bounds privately, then map the column from them to [-1, 1].

    For columns whose bounds are not known. Values outside the learned bounds are clipped.
    If you do know bounds, :class:`BoundedScaler` costs nothing.

    Neighbouring data sets differ in one record. Public are the number of records, the
    columns and every parameter.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of all bounds together, greater than 0; ``inf`` takes exact quantiles.
    tail : float, default=0.02
        Share of the records, in (0, 1/2), that may lie beyond each bound. A larger one is
        found more reliably: the rank of a bound is off by up to 50 n_features / epsilon
        records, which should be less than `tail` times the number of records.
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
    holds the wanted quantile. The utility of a cell is minus the number of records by which
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

    # a Pipeline may contain this step although it learns: its loss is stated in privacy_
    releases_privately = True

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        tail: float = 0.02,
        ledger: PrivacyLedger | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.tail = tail
        self.ledger = ledger
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: MatrixLike, y: Any = None) -> Self:
        """Learn and release the bounds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.

        Returns
        -------
        self : object
        """
        check_epsilon(self.epsilon)
        check_number(
            "tail", self.tail, high=0.5,
            why="a bound is the value beyond which this share of the records lies",
            instead="write a number between 0 and 0.5, such as 0.02",
        )
        check_random_state(self.random_state)
        loss = release_loss(self, "bounds of all columns")
        with charged(self, loss):
            self._choose(numeric_rows(self, X, lazily=True))
            self.privacy_ = loss
        return self

    def _choose(self, X):
        """Choose the cells of the bounds of each column."""
        grid = bound_grid()
        # numbers of low precision would weaken the noise
        tail, epsilon = float(self.tail), float(self.epsilon)
        wanted = nearest_multiple(np.array([tail, 1 - tail]) * len(X), RANK_UNIT)
        utility = cell_utility(ranks_of(X, grid)[:, None, :], wanted[:, None])
        # epsilon / (2 p) for each bound, and a Gumbel scale of 2 / (epsilon / (2 p))
        scale = 4 * X.shape[1] / epsilon
        noise = scale * self.unit_noise(X.shape[1])
        if scale > 0:
            noise = nearest_multiple(noise, grid_step(scale, unit=RANK_UNIT))
        cells = largest_sum(utility, noise)
        cells.sort(axis=1)
        # the outer ends, so that a single cell is still an interval
        self.bounds_ = np.column_stack([grid[cells[:, 0]], grid[cells[:, 1] + 1]])

    def unit_noise(self, n_features: int) -> FloatArray:
        """Draw the noise of one fit at unit scale, from `random_state` and public shapes alone.

        Parameters
        ----------
        n_features : int

        Returns
        -------
        ndarray of shape (n_features, 2, n_cells)
            Independent standard Gumbel variables.
        """
        shape = (n_features, 2, len(bound_grid()) - 1)
        return gumbel(as_generator(self.random_state), shape)

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


def bound_grid():
    """Return the ends of the cells, in ascending order."""
    mantissas = 1 + np.arange(STEPS) / STEPS
    positive = np.outer(2.0 ** np.arange(LEAST, MOST + 1), mantissas).ravel()
    return np.concatenate([-positive[::-1], [0.0], positive])


def cell_utility(ranks, wanted):
    """Return minus the number of records by which each cell misses the wanted rank.

    Parameters
    ----------
    ranks : ndarray of shape (..., c)
        Records at or below each end of the cells.
    wanted : float or ndarray
        Rank k of the quantile.

    Returns
    -------
    ndarray of shape (..., c - 1)
        0 for cells that hold the quantile: rank(low end) <= k <= rank(high end).
    """
    return -np.maximum(0.0, np.maximum(ranks[..., :-1] - wanted, wanted - ranks[..., 1:]))


def ranks_of(X, grid):
    """Count the records of each column that are at most each value of a grid.

    Parameters
    ----------
    X : ndarray or lazy rows of shape (n, p)
    grid : ndarray of shape (c,)
        Ascending.

    Returns
    -------
    ndarray of shape (p, c)
    """

    def count(block):
        # the index of the first value that is at least x; the last bin is for larger x
        bins = np.searchsorted(grid, block)
        bins += np.arange(block.shape[1]) * (len(grid) + 1)
        size = block.shape[1] * (len(grid) + 1)
        return (np.bincount(bins.ravel(), minlength=size).reshape(block.shape[1], -1),)

    (counts,) = block_sum(count, X)
    return counts[:, :-1].cumsum(axis=1)
