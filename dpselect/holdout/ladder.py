"""The Ladder: a leaderboard of the best loss so far, on a holdout set."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..accounting.privacy_loss import PrivacyLoss
from ..base.estimator import ReleaseMixin
from ..ledger import spending
from ..records.held_records import HeldRecords
from ..records.persons import adjacency_of
from ..utils.type_aliases import MatrixLike
from ..utils.validation import check_number

# decimal digits for comparisons of losses
DIGITS = 12
SMALLEST_STEP = 10.0**-DIGITS


class Ladder(ReleaseMixin, BaseEstimator):
    """A leaderboard that reports the best loss so far, and updates it only on a clear improvement.

    A submission that does not beat the best one by a step learns nothing but that. So a sequence of
    submissions takes few different courses, and the best loss holds on new records.

    **Not private**: no noise is added, and ``privacy_`` says so.

    Parameters
    ----------
    step : float, default=None
        eta in [1e-12, 1]. A submission is accepted if its loss is less than the best so far minus
        eta; its loss is then reported as a multiple of eta. None: the step is the standard deviation of
        the difference of the two submissions' losses, over sqrt(n), and the loss is reported as a
        multiple of 1 / n.

    Attributes
    ----------
    best_loss_ : float
        What was reported last; ``inf`` before the first submission.
    n_submissions_, n_accepted_ : int
    privacy_ : PrivacyLoss
        epsilon is ``inf``.

    See Also
    --------
    Thresholdout : Answers every question, with a privacy loss.

    Notes
    -----
    Blum and Hardt, theorem 3.1, for n holdout records drawn independently, with R the loss on new
    ones: after t submissions f_1, ..., f_t with losses in [0, 1], however each depends on the
    reports before it, and for every a > 0::

        P(|min_i R(f_i) - best_loss_| > a + eta)
            <= exp(-2 a^2 n + (1 / eta + 2) ln(4 t / eta) + 1).

    That is about the *best* loss only: nothing is promised for the other submissions. With
    ``step=None`` there is no theorem.

    References
    ----------
    Blum and Hardt, *The Ladder: A Reliable Leaderboard for Machine Learning Competitions*, ICML
    2015, algorithm 1 and, for ``step=None``, algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect import Ladder
    >>> labels = np.repeat([0, 1], 50)
    >>> ladder = Ladder(step=0.1).fit(np.zeros((100, 1)), labels)
    >>> ladder.query(lambda X, y: y != 0)
    0.5
    >>> guess = np.repeat([0, 1], [58, 42])
    >>> ladder.query(lambda X, y: y != guess)
    0.1
    >>> better = np.repeat([0, 1], [53, 47])  # a loss of 0.03, better by less than a step
    >>> ladder.query(lambda X, y: y != better)
    0.1
    >>> ladder.n_accepted_, ladder.n_submissions_
    (2, 3)
    """

    def __init__(self, step: float | None = None) -> None:
        self.step = step

    def fit(
        self,
        X: MatrixLike,
        y: npt.ArrayLike | None = None,
        *,
        groups: npt.ArrayLike | None = None,
    ) -> Self:
        """Keep the holdout records, with an empty leaderboard.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Holdout records. No submission may have been trained on them.
        y : array-like of shape (n,), default=None
        groups : array-like of shape (n,), default=None
            The id of the person whose row it is. Losses are then means over persons of the mean of their
            rows, and n is the number of persons.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError, TypeError
            If `step` is out of range, or records and labels differ in number.
        BudgetExceededError
            Within ``with ledger:``, because no budget pays for exact comparisons.
        """
        if self.step is not None:
            check_number(
                "step",
                self.step,
                low=SMALLEST_STEP,
                low_included=True,
                high=1.0,
                high_included=True,
                why="losses lie in [0, 1], and each step up the ladder must cost one",
                instead="write for instance 0.01, or None",
            )
        loss = PrivacyLoss(
            math.inf,
            adjacency=adjacency_of(groups is not None),
            label=f"{type(self).__name__}: exact comparisons of holdout losses",
        )
        with spending(self, loss):
            self._holdout = HeldRecords(X, y, groups)
            self._best_losses = np.zeros(len(self._holdout))
            self.best_loss_ = math.inf
            self.n_submissions_ = self.n_accepted_ = 0
            self.privacy_ = loss
        return self

    def query(self, function: Callable[[Any, Any], npt.ArrayLike]) -> float:
        """Submit a model, and return the best loss so far.

        Parameters
        ----------
        function : callable
            ``function(X, y)`` returns the loss of each record, shape (n,), in [0, 1]; other
            numbers are clipped. For a classifier, ``lambda X, y: model.predict(X) != y``.

        Returns
        -------
        float
            `best_loss_`, which may be that of an earlier submission.

        Raises
        ------
        ValueError
            If the function does not return one number for each record, or fails.
        """
        check_is_fitted(self)
        losses = self._holdout.values(function, missing=1.0)
        self.n_submissions_ += 1
        loss, n = float(losses.mean()), len(losses)
        if self.step is None:
            step, unit = float(np.std(losses - self._best_losses)) / math.sqrt(n), 1 / n
        else:
            step = unit = float(self.step)
        # rounded, so that 0.4 - 0.3 is at most 0.1, and 3 * 0.1 is 0.3
        if round(self.best_loss_ - loss, DIGITS) > step:
            self.best_loss_ = round(unit * round(loss / unit), DIGITS)
            self._best_losses = losses
            self.n_accepted_ += 1
        return self.best_loss_
