"""Thresholdout: a holdout set for many adaptive queries."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..accounting.privacy_loss import Adjacency, PrivacyLoss
from ..base.estimator import ReleaseMixin
from ..base.fit_warnings import warn_if_seeded
from ..exceptions import CertificateError
from ..ledger import PrivacyLedger, spending
from ..mechanisms.reusable_holdout import ReusableHoldout
from ..metrics import Score, get_score
from ..metrics.score import check_task
from ..noise import check_random_state, is_seeded
from ..noise.generators import RandomState
from ..records.held_records import HeldRecords
from ..records.persons import check_weighs_persons
from ..utils.type_aliases import Estimator, MatrixLike
from ..utils.validation import check_number


class Thresholdout(ReleaseMixin, BaseEstimator):
    """A holdout set that answers adaptive queries, with differential privacy.

    While training and holdout records agree on a question, the answer is the training value. When
    they differ by more than a noisy threshold, the answer is the holdout value with noise, and one
    unit of the budget is used. After the last one there are no more answers.

    Neighbouring data sets differ in one *holdout* record. **The training records are not
    protected**: their means are given as they are. Public are the numbers of records, the
    questions, and every parameter.

    Parameters
    ----------
    threshold : float, default=0.04
        T in [0, 1], in units of a question's width (1 for `query`, ``scoring.width`` for `score`):
        larger differences of training and holdout are overfitting.
    noise_rate : float, default=0.01
        sigma > 0, in the same unit: the scale of an answer's Laplace noise. Twice of it is
        added to the threshold, anew after each use, and four times of it to each difference.
    budget : int, default=10
        B >= 1: how many answers may come from the holdout records.
    ledger : PrivacyLedger, default=None
        Pays for all answers of a fit, in place of one that is open (``with ledger:``). If too little is
        left, BudgetExceededError is raised before any data is touched.
    random_state : None, int, SeedSequence, RandomState or Generator, default=None
        None takes all noise from the operating system's entropy. Everything else is for
        tests: the noise can be drawn again.

    Attributes
    ----------
    privacy_ : PrivacyLoss
        2 B / (sigma n) for n holdout records: the loss of all answers that can ever be given.
        Each fit on the same holdout records has a budget, and a loss, of its own.
    spent_ : PrivacyLoss
        The ex-post loss of the answers so far, (2 u + 1/2) / (sigma n) after u uses.
    uses_ : int
        u, how many answers came from the holdout records.

    See Also
    --------
    Ladder : Reports the best loss so far; not private.
    ThresholdoutFeatureSelector : Forward selection of columns.

    Notes
    -----
    A fitted object is not pickled or deep-copied, and answers only in the process that fitted it:
    a copy would spend the whole budget again. ``clone`` gives an unfitted one.

    The privacy loss is not yet a bound on the error of the answers for new records: see the page
    "Reusable holdout" for what follows for that, and from how many records on.

    References
    ----------
    Dwork, Feldman, Hardt, Pitassi, Reingold and Roth, *Generalization in Adaptive Data Analysis and
    Holdout Reuse*, NIPS 2015, algorithm Thresholdout; *The Reusable Holdout*, Science 349, 2015.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import train_test_split
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from dpselect import Thresholdout
    >>> X, y = make_classification(40_000, flip_y=0.3, random_state=0)
    >>> X, X_holdout, y, y_holdout = train_test_split(X, y, train_size=0.5, random_state=0)
    >>> holdout = Thresholdout(threshold=0.1, noise_rate=0.001, budget=10)
    >>> holdout = holdout.fit(X, y, X_holdout=X_holdout, y_holdout=y_holdout)
    >>> print(holdout.privacy_)
    (epsilon = 1, delta = 0) differential privacy, adjacency: replace one holdout record
      epsilon 1: Thresholdout: at most 10 noisy answers from 20000 holdout records; training
      records are not protected

    A tree that knows its training records by heart is found out, for one unit of the budget:

    >>> careful = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> bool(holdout.score(careful) == careful.score(X, y)), holdout.uses_
    (True, 0)
    >>> parrot = DecisionTreeClassifier(random_state=0).fit(X, y)
    >>> parrot.score(X, y)
    1.0
    >>> bool(holdout.score(parrot) < 0.8), holdout.uses_
    (True, 1)
    """

    def __init__(
        self,
        threshold: float = 0.04,
        noise_rate: float = 0.01,
        budget: int = 10,
        *,
        ledger: PrivacyLedger | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.threshold = threshold
        self.noise_rate = noise_rate
        self.budget = budget
        self.ledger = ledger
        self.random_state = random_state

    def fit(
        self,
        X: MatrixLike,
        y: npt.ArrayLike | None = None,
        *,
        X_holdout: MatrixLike,
        y_holdout: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
        groups_holdout: npt.ArrayLike | None = None,
    ) -> Self:
        """Keep the records, with a full budget.

        Parameters
        ----------
        X : array-like of shape (n_train, n_features)
            Training records, which are not protected.
        y : array-like of shape (n_train,), default=None
        X_holdout : array-like of shape (n, n_features)
            Holdout records, disjoint from the training records and split off without looking at
            either.
        y_holdout : array-like of shape (n,), default=None
        groups : array-like of shape (n_train,), default=None
        groups_holdout : array-like of shape (n,), default=None
            The ids of the persons whose rows they are: both, or neither. Neighbours then differ in all
            holdout rows of one person, n is the number of holdout persons, and means are those over
            persons of the mean of their rows. A person must not be on both sides.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError, TypeError
            If a parameter is out of range, or records and labels differ in number.

        Warns
        -----
        SeededNoiseWarning
            If `random_state` is not None.
        """
        check_thresholdout_parameters(self)
        if (groups is None) != (groups_holdout is None):
            given, other = "groups", "groups_holdout"
            if groups is None:
                given, other = other, given
            raise ValueError(
                f"{given} was given without {other}, and means over persons do not compare with means "
                f"over rows; write {other}=..., or leave {given} out."
            )
        train, holdout = HeldRecords(X, y, groups), HeldRecords(X_holdout, y_holdout, groups_holdout)
        warn_if_seeded(self)
        answers = make_answers(self, len(holdout), self.random_state)
        loss = thresholdout_loss(self, answers, holdout.persons is not None)
        with spending(self, loss) as reservation:
            # answers will be released later, so the loss counts from now on
            reservation.begin()
            self._train, self._holdout, self._answers = train, holdout, answers
            self.privacy_ = loss
        return self

    def query(self, function: Callable[[Any, Any], npt.ArrayLike]) -> float:
        """Answer the mean of a function over records.

        Parameters
        ----------
        function : callable
            ``function(X, y)`` returns one number in [0, 1] for each record, shape (n,), computed
            from this record alone: that is your word. Numbers outside [0, 1] are clipped.

        Returns
        -------
        float
            The training mean, or the holdout mean with noise of scale sigma.

        Raises
        ------
        BudgetExceededError
            If the budget is spent.
        ValueError
            If the function does not return one number for each record, or fails. What it says on
            holdout records is not repeated; *that* it failed there is not covered by the loss.
        """
        check_is_fitted(self)
        self._answers.refuse_if_spent()
        train = self._train.values(function, quietly=False).mean()
        return self._answers.answer(float(train), float(self._holdout.values(function).mean()))

    def score(self, estimator: Estimator, scoring: str | Score = "accuracy") -> float:
        """Answer the score of an estimator that was fitted on the training records.

        Parameters
        ----------
        estimator : estimator
            Fitted on the training records, or on anything but the holdout records. Its predictions
            must treat each row by itself: that is your word.
        scoring : str or Score, default="accuracy"
            A score of :mod:`dpselect.metrics` with a finite `width`, or its name: "accuracy",
            "brier", "ramp" or "clipped_squared_error". Greater is better.

        Returns
        -------
        float
            In the unit of the score: the training score, or the holdout score with noise of scale
            sigma times `width`.

        Raises
        ------
        BudgetExceededError
            If the budget is spent.
        CertificateError
            If one record can move the score by more than any noise hides.
        ValueError
            If the score fails, or is not finite. *That* it failed on holdout records is not covered
            by the loss.
        """
        check_is_fitted(self)
        self._answers.refuse_if_spent()
        score = bounded_score(scoring, estimator)
        if self._holdout.persons is not None:
            check_weighs_persons(score)
        train, holdout = both_scores(score, estimator, self._train, self._holdout)
        return self._answers.answer(train, holdout, float(score.width))

    @property
    def uses_(self) -> int:
        """int : Number of answers from the holdout records."""
        check_is_fitted(self)
        return self._answers.uses

    @property
    def spent_(self) -> PrivacyLoss:
        """PrivacyLoss : The ex-post loss of the answers so far."""
        check_is_fitted(self)
        return PrivacyLoss(
            self._answers.spent,
            kind="ex-post",
            adjacency=self.privacy_.adjacency,
            label=f"{type(self).__name__}: {self.uses_} noisy answers so far; training records are "
            "not protected",
            seeded=self.privacy_.seeded,
        )

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_answers")


def check_thresholdout_parameters(estimator):
    """Refuse parameters outside their range; `estimator` has those of :class:`Thresholdout`."""
    check_number(
        "threshold",
        estimator.threshold,
        high=1.0,
        low_included=True,
        high_included=True,
        why="means of numbers in [0, 1] are compared with it",
        instead="write for instance 0.04",
    )
    check_number(
        "noise_rate",
        estimator.noise_rate,
        high=1.0,
        high_included=True,
        why="without noise an answer has no finite privacy loss",
        instead="write for instance 0.01",
    )
    check_number(
        "budget",
        estimator.budget,
        integer=True,
        why="it counts the answers that the privacy loss covers",
        instead="write 1 or more",
    )
    check_random_state(estimator.random_state)


def make_answers(estimator, n_holdout, random_state):
    """Return the mechanism with the parameters of `estimator`."""
    return ReusableHoldout(
        float(estimator.threshold),
        float(estimator.noise_rate),
        int(estimator.budget),
        n_holdout,
        random_state,
    )


def thresholdout_loss(estimator, answers, persons=False):
    """Return the total loss of all answers that `answers` can give."""
    adjacency = Adjacency.REPLACE_HOLDOUT_PERSON if persons else Adjacency.REPLACE_HOLDOUT_RECORD
    return PrivacyLoss(
        answers.epsilon,
        adjacency=adjacency,
        label=f"{type(estimator).__name__}: at most {answers.budget} noisy answers from "
        f"{answers.n_holdout} holdout {adjacency.unit}s; training records are not protected",
        seeded=is_seeded(estimator.random_state),
    )


def bounded_score(scoring, estimator):
    """Return the score for `scoring`, or refuse one of unbounded sensitivity, or of other estimators."""
    score = get_score(scoring)
    if not math.isfinite(score.width):
        raise CertificateError(
            f"scoring={type(score).__name__} has no finite width, so no noise hides what one "
            "holdout record does to it; use 'accuracy', 'brier', 'ramp' or 'clipped_squared_error'."
        )
    check_task(score, estimator)
    return score


def both_scores(score, estimator, train, holdout):
    """Return the exact scores of a fitted estimator on training and holdout records.

    Parameters
    ----------
    score : Score
    estimator : estimator
    train, held : HeldRecords
        Means are over their persons, if they have any.

    Returns
    -------
    train_score, holdout_score : float

    Raises
    ------
    ValueError
        If one of them is not finite: no noise hides that.
    """

    def of(records):
        given = {} if records.persons is None else {"sample_weight": records.persons.weight}
        return lambda X, y: float(score(estimator, X, y, **given))

    found = train.evaluate(of(train)), holdout.evaluate_quietly(of(holdout))
    if not np.isfinite(found).all():
        raise ValueError(
            "The score is not finite, so no noise hides which records made it so; score models "
            "whose predictions are finite for all records."
        )
    return found
