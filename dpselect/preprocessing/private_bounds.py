"""Bounds of columns that nobody knew beforehand, learned by private quantiles."""

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..base import release_loss
from ..checks import check_epsilon, check_number
from ..noise import as_generator, check_random_state, gumbel
from ..rows import block_sum
from .scalers import scale_to_bounds

# Candidates for a bound: 0 and plus or minus (1 + j / 8) 2^e. Eight to an octave place a bound
# within an eighth of its size, and the exponents hold every unit that people measure in.
STEPS, LEAST, MOST = 8, -40, 40


class DPBoundsScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
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
        found more reliably: the rank of a bound is off by about 20 n_features / epsilon
        records, which should be less than `tail` times the number of records.
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
    Each of the 2 p bounds is chosen by the exponential mechanism among fixed candidates c,
    with the utility -abs(#{i : x_i <= c} - k) for the rank k that is wanted. Replacing one
    record changes the count by at most 1. Smith, *Privacy-preserving Statistical Estimation
    with Optimal Convergence Rates*, 2011, with candidates on a grid in place of the
    intervals between records, so that no range has to be known. The page "Private bounds"
    has statement and proof.

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

    def __init__(self, epsilon=1.0, *, tail=0.02, random_state=None):
        self.epsilon = epsilon
        self.tail = tail
        self.random_state = random_state

    def fit(self, X, y=None):
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
        X = validate_data(self, X, dtype=np.float64)
        loss = release_loss(self, f"bounds of {X.shape[1]} columns")
        candidates = bound_candidates()
        ranks = ranks_of(X, candidates)
        # a bound leaves tail n records beyond it: those up to it, and those from it on
        wanted = np.array([self.tail, 1 - self.tail]) * len(X)
        utility = -np.abs(ranks[:, None, :] - wanted[:, None])
        scale = 2 * 2 * X.shape[1] / self.epsilon
        chosen = np.argmax(utility + scale * self.unit_noise(X.shape[1]), axis=2)
        chosen.sort(axis=1)
        # one step wider: a record between two candidates belongs to the outer one, and bounds
        # that coincide become an interval
        low = np.maximum(chosen[:, 0] - 1, 0)
        high = np.minimum(chosen[:, 1] + 1, len(candidates) - 1)
        self.bounds_ = np.column_stack([candidates[low], candidates[high]])
        self.privacy_ = loss
        return self

    def unit_noise(self, n_features):
        """Draw the noise of one fit at unit scale, from `random_state` and public shapes alone.

        Parameters
        ----------
        n_features : int

        Returns
        -------
        ndarray of shape (n_features, 2, n_candidates)
            Independent standard Gumbel variables.
        """
        shape = (n_features, 2, len(bound_candidates()))
        return gumbel(as_generator(self.random_state), shape)

    def transform(self, X):
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
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return scale_to_bounds(X, *self.bounds_.T)


def bound_candidates():
    """Return the values among which a bound is chosen, in ascending order."""
    mantissas = 1 + np.arange(STEPS) / STEPS
    positive = np.outer(2.0 ** np.arange(LEAST, MOST + 1), mantissas).ravel()
    return np.concatenate([-positive[::-1], [0.0], positive])


def ranks_of(X, candidates):
    """Count the records of each column that are at most each candidate.

    Parameters
    ----------
    X : ndarray or memmap of shape (n, p)
    candidates : ndarray of shape (c,)
        Ascending.

    Returns
    -------
    ndarray of shape (p, c)
    """

    def count(block):
        # the index of the first candidate that is at least x; the last bin is for larger x
        bins = np.searchsorted(candidates, block)
        bins += np.arange(block.shape[1]) * (len(candidates) + 1)
        size = block.shape[1] * (len(candidates) + 1)
        return (np.bincount(bins.ravel(), minlength=size).reshape(block.shape[1], -1),)

    (counts,) = block_sum(count, X)
    return counts[:, :-1].cumsum(axis=1)
