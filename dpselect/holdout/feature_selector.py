"""Forward selection of columns, scored through a reusable holdout."""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from ..base.estimator import ReleaseMixin
from ..base.fit_warnings import warn_if_seeded
from ..config import warn_caller, with_config
from ..exceptions import BudgetExceededError
from ..ledger import PrivacyLedger, refuse_inner_ledger, spending, without_spending
from ..metrics import Score
from ..model_selection.splits import check_splitter, disjoint_parts, make_splits
from ..noise import root_stream
from ..noise.generators import RandomState
from ..records.held_records import HeldRecords
from ..records.persons import Persons, check_one_label_a_row, check_weighs_persons
from ..records.records import Weighted, numeric_rows, one_label_a_row, split_groups, take_part
from ..utils.type_aliases import CrossValidation, Estimator, MatrixLike
from ..utils.validation import check_estimator, check_n_jobs, check_number
from .thresholdout import (
    both_scores,
    bounded_score,
    check_thresholdout_parameters,
    make_answers,
    thresholdout_loss,
)


class ThresholdoutFeatureSelector(ReleaseMixin, SelectorMixin, MetaEstimatorMixin, BaseEstimator):
    """Forward selection of columns, scored on holdout records through Thresholdout.

    Each step fits the model with every column that is left, on the training records, and takes the
    column that improves the score most. Improvements are answered by :class:`Thresholdout`: the
    training value, unless the holdout set differs by more than a noisy threshold.

    Neighbouring data sets differ in one *holdout* record. **The training records are not
    protected.** Public are the number of records, the split, the order in which columns are tried
    (drawn anew at each step), and every parameter. Released are `order_` and all answers.

    Parameters
    ----------
    estimator : estimator
        Any one that `scoring` can score. It is cloned, and needs no guarantee of its own.
    n_features_to_select : int
        Number of columns to select.
    scoring : str or Score, default="accuracy"
        A score of :mod:`dpselect.metrics` with a finite `width` w, or its name.
    threshold : float, default=0.04
        As in :class:`Thresholdout`, in units of a question's width. That is w at the first
        column and 2 w at the others: one record's score improves by a number from -w to w.
    noise_rate : float, default=0.01
        sigma, in the same unit.
    budget : int, default=10
        B >= 1: how many answers may come from the holdout records. When it is spent in the middle
        of a step, the step is dropped, and the columns chosen before it are the selection.
    cv : int, splitter, iterable or None, default=None
        Its first split says which records train and which are held out; None holds out a random
        fifth.
    public_splits : bool, default=False
        Your word that `cv` does not depend on the records.
    n_jobs : int, default=None
        Number of processes that fit the candidates of a step.
    ledger : PrivacyLedger, default=None
        Pays for all answers of a fit, in place of one that is open (``with ledger:``). If too little is
        left, BudgetExceededError is raised before any model is trained.
    random_state : None, int, SeedSequence, RandomState or Generator, default=None
        None takes all noise from the operating system's entropy. Everything else is for
        tests: the noise can be drawn again.

    Attributes
    ----------
    support_ : ndarray of bool of shape (n_features,)
        The selected columns.
    n_features_ : int
        How many they are; fewer than `n_features_to_select` if the budget was spent.
    order_ : ndarray of int of shape (n_selected,)
        The selected columns, in the order in which they were chosen.
    improvements_ : ndarray of shape (n_selected,)
        The answer that each was chosen for. It is the largest of many, and promises no improvement.
    uses_ : int
        How many answers came from the holdout records.
    privacy_ : PrivacyLoss
        2 B / (sigma n) for n holdout records.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X had names.

    See Also
    --------
    Thresholdout : Answers questions of your own.
    sklearn.feature_selection.SequentialFeatureSelector : Scores by cross-validation, not private.

    Notes
    -----
    Answers are compared as they are, negative ones too. If they were cut off at 0, all columns
    without an improvement would tie, and the first in the list would win. The page "Reusable
    holdout" shows what that can feign.

    References
    ----------
    Dwork, Feldman, Hardt, Pitassi, Reingold and Roth, *The Reusable Holdout: Preserving Validity in
    Adaptive Data Analysis*, Science 349, 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from dpselect import ThresholdoutFeatureSelector
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=100_000)
    >>> X = rng.normal(size=(100_000, 6))
    >>> X[:, [1, 4]] += y[:, None]
    >>> selector = ThresholdoutFeatureSelector(
    ...     LogisticRegression(), n_features_to_select=2, threshold=0.1, noise_rate=0.001
    ... ).fit(X, y)
    >>> selector.get_support(indices=True)
    array([1, 4])
    >>> selector.privacy_.epsilon
    1.0
    """

    def __init__(
        self,
        estimator: Estimator,
        *,
        n_features_to_select: int,
        scoring: str | Score = "accuracy",
        threshold: float = 0.04,
        noise_rate: float = 0.01,
        budget: int = 10,
        cv: CrossValidation = None,
        public_splits: bool = False,
        n_jobs: int | None = None,
        ledger: PrivacyLedger | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.n_features_to_select = n_features_to_select
        self.scoring = scoring
        self.threshold = threshold
        self.noise_rate = noise_rate
        self.budget = budget
        self.cv = cv
        self.public_splits = public_splits
        self.n_jobs = n_jobs
        self.ledger = ledger
        self.random_state = random_state

    def fit(
        self,
        X: MatrixLike,
        y: npt.ArrayLike,
        *,
        groups: npt.ArrayLike | None = None,
    ) -> Self:
        """Select columns.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Numbers.
        y : array-like of shape (n_samples,)
        groups : array-like of shape (n_samples,), default=None
            The id of the person whose row it is. Neighbours then differ in all rows of one holdout
            person, splits are of persons, and scores are means over persons of the mean of their rows.
            Models train on rows as they are.

        Returns
        -------
        self : object

        Raises
        ------
        BudgetExceededError
            If the budget was spent before the first column was chosen. The message says what
            that has cost.
        CertificateError
            If one record can move the score by more than any noise hides.
        ValueError, TypeError
            If a parameter is out of range, the split may depend on the records, or X or y is
            malformed.

        Warns
        -----
        UserWarning
            If the budget was spent before all columns were chosen.
        SeededNoiseWarning
            If `random_state` is not None.
        """
        check_thresholdout_parameters(self)
        check_n_jobs(self.n_jobs)
        check_estimator(self.estimator)
        refuse_inner_ledger(self.estimator, type(self).__name__)
        check_splitter(self.cv, self.public_splits)
        score = bounded_score(self.scoring, self.estimator)
        warn_if_seeded(self)
        if groups is not None:
            check_weighs_persons(score)
            check_one_label_a_row(X, y)
        y = one_label_a_row(y, type(self).__name__)
        X, y = numeric_rows(
            self,
            X,
            y,
            accept_sparse="csr",
            ensure_all_finite=not self.__sklearn_tags__().input_tags.allow_nan,
        )
        n_features = X.shape[1]
        n_target = check_number(
            "n_features_to_select",
            self.n_features_to_select,
            integer=True,
            high=n_features,
            high_included=True,
            why=f"X has {n_features} columns",
            instead=f"write 1 to {n_features}",
        )

        stream = root_stream(self.random_state)
        persons = None if groups is None else Persons.of(groups, X)
        n = len(y) if persons is None else persons.n
        split = disjoint_parts(make_splits(self.cv, n, stream.child("split"), persons is not None))
        answers = make_answers(self, len(split[1]), stream.child("noise"))
        loss = thresholdout_loss(self, answers, persons is not None)
        number = None if persons is None else persons.number
        parts = [take_part(X, Weighted.of(y, None, number), part) for part in split]
        order = np.random.default_rng(stream.child("order").integer())
        fit_and_score = with_config(_fit_and_score)
        with spending(self, loss) as reservation, Parallel(n_jobs=self.n_jobs) as parallel:
            reservation.begin()

            def scores(candidates):
                return parallel(
                    delayed(fit_and_score)(clone(self.estimator), score, columns, *parts)
                    for columns in candidates
                )

            chosen, improvements = forward_selection(
                scores, answers.answer, n_features, n_target, float(score.width), order.permutation
            )
        self._report_early_stop(len(chosen), n_target, answers.epsilon)
        self.order_ = np.array(chosen)
        self.improvements_ = np.array(improvements)
        self.support_ = np.isin(np.arange(n_features), self.order_)
        self.n_features_ = len(chosen)
        self.uses_ = answers.uses
        self.privacy_ = loss
        return self

    def _report_early_stop(self, n_chosen, n_target, epsilon):
        remedy = "write a larger budget or threshold, or a smaller noise_rate"
        if n_chosen == 0:
            raise BudgetExceededError(
                f"budget={self.budget} was used up before the first column was chosen, and its "
                f"epsilon={epsilon:.6g} is spent; {remedy}."
            )
        if n_chosen < n_target:
            warn_caller(
                f"budget={self.budget} was spent after {n_chosen} of {n_target} columns, which are "
                f"the selection; {remedy}.",
                UserWarning,
            )

    def _get_support_mask(self):
        check_is_fitted(self)
        return self.support_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator).input_tags
        tags.input_tags.allow_nan = inner.allow_nan
        tags.input_tags.sparse = inner.sparse
        tags.target_tags.required = True
        return tags


def forward_selection(scores, answer, n_features, n_steps, width, permutation):
    """Select columns one by one, each with the largest answer about its improvement.

    Parameters
    ----------
    scores : callable
        Maps a list of lists of columns to a list of pairs (training score, holdout score).
    answer : callable
        ``answer(train, holdout, width)`` answers a question of this width from its two values; as
        :meth:`dpselect.mechanisms.reusable_holdout.ReusableHoldout.answer`.
    n_features, n_steps : int
        How many columns there are, and how many are to be selected.
    width : float
        w, that of the score.
    permutation : callable
        Puts an array of columns into the order in which they are tried. Of equal answers the first
        counts, so the order must not follow what anyone expects of the columns.

    Returns
    -------
    chosen : list of int
        Fewer than `n_steps`, if `answer` raises BudgetExceededError: the unfinished step is
        dropped.
    improvements : list of float
        The answer that each was chosen for.
    """
    chosen, improvements, base = [], [], (0.0, 0.0)
    for _ in range(n_steps):
        left = permutation(np.setdiff1d(np.arange(n_features), chosen)).tolist()
        found = scores([[*chosen, column] for column in left])
        # the first query is a score, later ones are differences of two
        question_width = 2 * width if chosen else width
        try:
            # not clipped, because ties would be broken by the order of the columns
            answers = [answer(t - base[0], h - base[1], question_width) for t, h in found]
        except BudgetExceededError:
            break
        best = int(np.argmax(answers))
        chosen.append(left[best])
        improvements.append(answers[best])
        base = found[best]
    return chosen, improvements


def _fit_and_score(model, score, columns, *parts):
    """Fit on the training records; return the exact scores on them and on the held-out ones."""
    train, holdout = ((X[:, columns], *split_groups(y)) for X, y in parts)
    with without_spending():
        model.fit(*train[:2])
    return both_scores(score, model, HeldRecords(*train), HeldRecords(*holdout))
