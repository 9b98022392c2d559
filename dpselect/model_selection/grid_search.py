"""StabilityGridSearchCV: GridSearchCV for private models, with one statement of the loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone

from ..accounting.joint import jointly
from ..accounting.privacy_loss import PrivacyLoss
from ..base.capabilities import HasDefaultScore
from ..base.estimator import ReleaseMixin
from ..base.fit_warnings import warn_if_seeded
from ..exceptions import CertificateError
from ..ledger import PrivacyLedger
from ..metrics import get_score
from ..metrics.score import check_task
from ..noise.generators import RandomState, search_stream
from ..preprocessing.pipeline_check import keep_their_columns
from ..records.persons import adjacency_of
from ..utils.type_aliases import CrossValidation, Estimator, MatrixLike, ParamGrid
from ..utils.validation import check_epsilon
from .budget import Budget, most_of, refuse_overspent, refuse_unbudgeted, steps_at_most
from .candidates import make_candidates, seed_features
from .delegation import SearchDelegationMixin
from .engine import price, release, upper_bound
from .exact_scores import names_the_example
from .nonprivate import fit_without_noise
from .plan import SelectionPlan
from .plan_grid import PlanGrid
from .planned import plan_of
from .private_steps import steps_before
from .problem import SearchProblem, open_records, planned_problem, read_records
from .progress import CallbackSupportMixin, with_callbacks
from .routing import check_groups_are_taken, check_weights_are_taken, take_weights
from .search_checks import check_parameters, check_share
from .set_aside import check_evaluation
from .sklearn_forms import scoring_that_chooses
from .stages import Choose, HoldOut, LearnedNumbers, PrivateSteps, Train
from .strategies import Strategy, strategy_class


class StabilityGridSearchCV(
    SearchDelegationMixin, ReleaseMixin, CallbackSupportMixin, MetaEstimatorMixin, BaseEstimator
):
    """Choose parameters of a private model and release it, within one privacy loss.

    Takes the place of :class:`sklearn.model_selection.GridSearchCV`. What needs no look at the
    records is decided by public numbers, and costs nothing; what does is chosen with noise, in the
    way that fits the grid, and the chosen model is trained with the rest of `epsilon`. `plan`
    says what will be done, before any data is read. `strategy` names one way to choose; the class
    has its name from the first that was proved, by stability: with noise that is fixed for each
    candidate, one record moves scores by a known amount only.

    Neighbouring data sets differ in one record. Public are the number of records, the
    columns, the labels, the grid, the splits, and every parameter. Released are
    `best_index_` (and with it `best_params_`), the final model, and `evaluation_` if it was asked
    for: nothing else.

    Read more in :doc:`/tuning`.

    Parameters
    ----------
    estimator : estimator
        A private model of dpselect, or a Pipeline that ends with one and whose other steps
        treat each row by itself (:func:`~dpselect.preprocessing.check_pipeline_privacy`).
        Its parameters `epsilon` and `random_state` are set by the search.
    param_grid : dict, list of dict or ParameterSampler
        As for GridSearchCV, ``step__parameter`` included. Sampled candidates are a ParameterSampler with
        an integer as `random_state`, which is public, or the list of its points. In a list, a dict with
        a value that is no list is one point.
    epsilon : float, default=1.0
        Privacy loss of everything together, greater than 0: the choice, the model, and steps that
        learn privately, such as :class:`~dpselect.preprocessing.DPBoundsScaler`. A step takes its
        own `epsilon` out of this one, and the choice and the model share the rest; if nothing is
        left, the search refuses before any data. ``inf`` is not private: the search then is
        scikit-learn's GridSearchCV, exact scores included.
    delta : float, default=0.0
        "stability": with 0 the certificates hold for the very noise that was drawn, and no
        failure probability is needed: leave it at 0. (A number in (0, 1) bounds the noise by its
        tail, as Chaudhuri and Vinterbo do, for comparison.) "budget_split": a
        number in (0, 1) leaves more to each of many models. "random_stopping": the runs of models
        with a delta share it, in place of theirs. Other strategies do not use it: a model that
        shall have less noise has a `delta` of its own, ``DPLogisticRegression(delta=1e-6)``.
    selection_fraction : "auto" or float, default="auto"
        Share of `epsilon` for the selection, in (0, 1); "auto" is a tenth for "optimal_risk" and
        one half for "stability", where a tenth will do if only `alpha` of a classifier varies, and
        three tenths for histograms.
        With a single candidate nothing is selected, and training gets the whole. Other
        strategies need no share.
    scoring : str, score, list, dict or None, default=None
        The name of a score ("brier", "ramp", ...) or a score of :mod:`dpselect.metrics`;
        None is the estimator's `default_scoring`; `score` of the search is then the estimator's own, as
        for GridSearchCV. "accuracy", "balanced_accuracy", "roc_auc", "f1",
        "neg_log_loss", "r2", "neg_mean_absolute_error", "neg_mean_squared_error" and
        "neg_root_mean_squared_error" have no certificate, but serve strategies that choose on held-out
        records (errors of a regression count in the `target_range` of its model); "logistic" and "hinge"
        serve "stability" only, for which ``RampScore(-4, 4)`` is better than a classifier's own.
        "data_independent", "optimal_risk" and "random" use none. Of several, in a list or by names in a
        dict, the one that `refit` names is used. The others are not computed: `evaluation_` has figures
        of the model.
    strategy : str or subclass of Strategy, default="auto"
        How to select; the page "Strategies of a private search" has the proofs. One of your own is a
        :class:`~dpselect.model_selection.Strategy`.

        - "auto": the one that fits the grid, the shapes and the budget. If only `alpha` of a
          classifier varies, "data_independent". If features or kernels vary, `alpha` from its formula
          and the rest by "optimal_risk", with a tenth of epsilon. Otherwise "stability" if its noise is
          small, or "random_stopping". Where there are too few records to choose, the first candidate, or
          the one of the public rule.
        - "stability": by scores on all splits, at fixed noise. The `alpha` or `bin_width` of a public
          rule wins unless another one is clearly better. A grid that only varies how one release is read
          (`alpha` of :class:`~dpselect.DPRidge`) trains once, on the first split's training part, and
          chooses on the other, with the whole epsilon each.
        - "data_independent": `alpha` of a classifier, from public numbers; nothing is selected.
        - "optimal_risk": by the least risk of each linear model, and what its noise will add.
        - "budget_split": models that share epsilon, and a choice on held-out records.
        - "data_split": models on parts of the records, and a choice on held-out records.
        - "random_stopping": the best of a random number of runs, ten for each candidate on average,
          each with about a third of epsilon. The time of the fit tells the number of
          runs: do not publish it.
        - "random": one candidate by chance.
        - "control": by exact scores on held-out records. Not private; for comparison only.
    n_noise_samples : int, default=1
        Noise samples over which "stability" averages a candidate's score; costs time, not
        privacy.
    n_jobs : int, default=None
        Jobs of joblib for the splits of "stability", on whatever backend is active.
    refit : bool or str, default=True
        Of several scores the name of the one that chooses. Else whether to train and release the chosen
        model. If not, only the selection's share of
        `epsilon` is spent; that is all of it where models are trained on the first split.
    cv : int, splitter, iterable or None, default=None
        None means five shuffled folds and an int that many. Stratified splitters look at
        the labels and are refused. Strategies that choose on held-out records use the first
        split only, whose parts must be disjoint and name no record twice; "data_independent",
        "optimal_risk" and "random" use none.
    verbose : int, default=0
        1 or more prints public facts: the step, which candidates are done, and how many are left.
        scikit-learn's callbacks (``set_callbacks``, from its version 1.9 on) and the logger "dpselect"
        of Python's logging are told the same. Times are not: they depend on the records.
    pre_dispatch : int or str, default="2*n_jobs"
        As for GridSearchCV.
    error_score : "raise" or float, default=nan
        Used with ``epsilon=inf`` only. A private search raises: a candidate that failed
        because of the data would tell of it.
    return_train_score : bool, default=False
        Used with ``epsilon=inf`` only.
    public_splits : bool, default=False
        Your word that `cv` does not depend on the records: needed for index lists, and splitters of
        your own. To keep public groups together, list the indices that a splitter makes of them.
    trusted_steps : collection of str or class, default=()
        Steps of your own that treat each row by itself.
    evaluation : float, default=None
        Share of the records in (0, 1) that is set aside by chance, takes no part in the choice or the
        training, and on which the released model is evaluated with the same `epsilon`: see
        `evaluation_`. One record is in one of the two parts, so this costs no privacy, but fewer
        records train; with `groups` they are persons, each with all rows. `cv` is about the others. Of
        a regression, the `target_range` (or `target_bound`) of the model says which errors are counted.
        None evaluates nothing.
    ledger : PrivacyLedger, default=None
        Pays for all that is released, in place of one that is open (``with ledger:``). If too little is
        left, BudgetExceededError is raised before any data is touched.
    random_state : None, int, SeedSequence, RandomState or Generator, default=None
        None takes all noise from the operating system's entropy. Everything else is for
        tests: the noise can be drawn again.

    Attributes
    ----------
    best_index_ : int
        The selected candidate. Released.
    best_params_ : dict
        Its parameters.
    best_estimator_ : estimator
        The model. Released. Trained on all records, or on the first split's training part
        (a piece of it for "data_split") by strategies that choose on held-out records.
    privacy_ : PrivacyLoss
        The loss of everything that was released. With a delta it can state less than `epsilon`: "Within
        one fit" on the page "How losses add up".
    cv_results_ : dict of arrays
        For each candidate its parameters and the public numbers of the selection:
        `considered`, `training_stability`, `score_span`, `sensitivity`, `noise_scale`. No score
        is among them: none was paid for.
    plan_ : SelectionPlan
        The same numbers with their meaning in words, the `strategy` that was taken, and what it
        spent on training and on the choice.
    scorer_ : score
        The score that was used for the choice.
    evaluation_ : Evaluation
        How good `best_estimator_` is, as :func:`~dpselect.evaluate` tells it. Released. Only with
        `evaluation`.
    n_splits_ : int
        Number of splits.
    n_features_in_, feature_names_in_, classes_
        Those of `best_estimator_`.

    References
    ----------
    Chaudhuri and Vinterbo, *A Stability-based Validation Procedure for Differentially
    Private Machine Learning*, NIPS 2013, algorithms 1 and 2. The page "Selection by
    stability" has statement and proof, and the corrections to their theorem 4; other
    strategies are on the page "Strategies of a private search".

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from dpselect import DPLogisticRegression, StabilityGridSearchCV
    >>> X, y = make_blobs(2000, centers=[(-0.5, 0), (0.5, 0)], cluster_std=0.2, random_state=0)
    >>> search = StabilityGridSearchCV(
    ...     DPLogisticRegression(classes=[0, 1]), {"alpha": [0.01, 0.1, 1.0]}, epsilon=1.0
    ... ).fit(X, y)
    >>> search.best_params_["alpha"] in (0.01, 0.1, 1.0)
    True
    >>> print(search.privacy_)
    (epsilon = 1, delta = 0) differential privacy, adjacency: replace one record
      epsilon 1: DPLogisticRegression: coefficients by objective perturbation

    The values of `alpha` needed no choice. Kernels do:

    >>> from sklearn.kernel_approximation import RBFSampler
    >>> from sklearn.pipeline import make_pipeline
    >>> kernels = make_pipeline(
    ...     RBFSampler(n_components=20), DPLogisticRegression(classes=[0, 1], data_norm=2**0.5)
    ... )
    >>> search = StabilityGridSearchCV(
    ...     kernels, {"rbfsampler__gamma": [0.1, 1.0, 10.0]}, epsilon=4.0
    ... ).fit(X, y)
    >>> print(search.privacy_)
    (epsilon = 4, delta = 0) differential privacy, adjacency: replace one record
      sum of
        epsilon 0.4: choice among 3 candidates
        epsilon 3.6: DPLogisticRegression: coefficients by objective perturbation
    """

    stages: ClassVar = (HoldOut(), PrivateSteps(), LearnedNumbers(), Choose(), Train())

    def __init__(
        self,
        estimator: Estimator,
        param_grid: ParamGrid,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        selection_fraction: float | Literal["auto"] = "auto",
        scoring: str | Callable[..., Any] | Collection[str] | Mapping[str, Any] | None = None,
        strategy: str | type[Strategy] = "auto",
        n_noise_samples: int = 1,
        n_jobs: int | None = None,
        refit: bool | str = True,
        cv: CrossValidation = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        error_score: float | Literal["raise"] = np.nan,
        return_train_score: bool = False,
        public_splits: bool = False,
        trusted_steps: Collection[str | type] = (),
        evaluation: float | None = None,
        ledger: PrivacyLedger | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.selection_fraction = selection_fraction
        self.scoring = scoring
        self.strategy = strategy
        self.n_noise_samples = n_noise_samples
        self.n_jobs = n_jobs
        self.refit = refit
        self.cv = cv
        self.verbose = verbose
        self.pre_dispatch = pre_dispatch
        self.error_score = error_score
        self.return_train_score = return_train_score
        self.public_splits = public_splits
        self.trusted_steps = trusted_steps
        self.evaluation = evaluation
        self.ledger = ledger
        self.random_state = random_state

    @with_callbacks
    def fit(self, X: MatrixLike, y: npt.ArrayLike | None = None, **params: Any) -> Self:
        """Select and release.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        **params : dict
            `groups`, the id of the person whose row it is: neighbours then differ in all rows of one
            person, splits are of persons, scores are means over persons, and each of them is a mean
            over their rows. `sample_weight` of models that take it, as ``step__sample_weight`` for a
            Pipeline, or as metadata routing sends it; scores weigh all records alike, and `evaluation_`
            as the model does. With
            ``epsilon=inf``, everything that GridSearchCV takes.

        Returns
        -------
        self : object

        Raises
        ------
        CertificateError
            If no certificate exists for the model with the score.
        ValueError, TypeError
            If a parameter, a step or a splitter would break the guarantee; raised before
            the data is touched wherever that is possible.
        """
        check_epsilon(self.epsilon)
        if self.epsilon == math.inf:
            fitted = fit_without_noise(self, X, y, params)
            self._forget()
            self.__dict__.update(fitted)
            return self
        check_parameters(self)
        groups = params.pop("groups", None)
        weight = take_weights(self, params)
        problem = self._problem(search_stream(self.random_state), groups is not None)
        if weight is not None:
            check_weights_are_taken([candidate.model for candidate in problem.candidates])
        # dummy shapes: refuses bad parameters, and what no strategy can do, early
        prices = price(self.stages, problem.dummy(1000 * len(problem.candidates)))
        prices[0].problem.decided.dry_run()
        warn_if_seeded(self)
        most = upper_bound(prices, type(self).__name__)
        refuse_unbudgeted(most, self.epsilon)
        released, _ = release(
            self.stages,
            problem,
            most,
            opened=lambda problem: open_records(problem, read_records(X, y, groups, weight)),
            composed=partial(self._composed, most),
            evaluation_epsilon=lambda _: problem.budget.total,
        )
        self._forget()
        self._publish(**released)
        return self

    def _problem(self, stream, persons):
        """Return the problem before the records, or refuse what breaks the guarantee on any."""
        estimator = seed_features(self.estimator, stream.child("features"))
        budget = Budget(float(self.epsilon))
        budget.spend(steps_at_most(estimator, adjacency_of(persons)))  # refused before all else
        candidates_of = partial(self._candidates, persons)
        candidates = candidates_of(estimator)
        models = [candidate.model for candidate in candidates]
        check_evaluation(self, models)
        score, kind = self._score(models[0]), strategy_class(self.strategy)
        for model in models[1:]:
            check_task(score, model)
        if persons:
            check_groups_are_taken(estimator, models, score, kind)
        return SearchProblem(self, stream, estimator, candidates, score, budget, candidates_of, persons)

    def _composed(self, most, losses, problem, charge):
        """Return the loss of all stages, or refuse what is more than was reserved."""
        loss = (
            jointly(losses, label=type(self).__name__)
            if losses
            else PrivacyLoss(0.0, label="nothing depends on the data", adjacency=problem.adjacency)
        )
        if not keep_their_columns(step for _, step in steps_before(self.estimator)):
            loss = most_of(loss, most)
        refuse_overspent(loss, most, f"strategy={problem.decided.name!r}", charge)
        return loss

    def _given(self, n_samples, n_features, n_classes=2, example=None, persons=False):
        """Return the problem of a plan, in which epsilon decides nothing yet but the budget."""
        check_epsilon(self.epsilon)
        if self.epsilon == math.inf:
            raise ValueError(
                "epsilon=inf adds no noise, so there is nothing to plan; give a finite epsilon."
            )
        check_parameters(self)
        problem = self._problem(search_stream(0), persons)
        return planned_problem(problem, n_samples, n_features, n_classes, example)

    @names_the_example
    def plan(
        self,
        n_samples: int,
        n_features: int,
        n_classes: int = 2,
        example: MatrixLike | None = None,
        persons: bool = False,
        class_share: float | None = None,
    ) -> SelectionPlan:
        """Plan what would be spent on what, and what a selection could detect.

        From public numbers, before any data is read.

        Parameters
        ----------
        n_samples : int
            Number of records, or of persons.
        n_features : int
            Columns of X.
        n_classes : int, default=2
            Number of labels, for models without `classes`.
        example : array-like of shape (1, n_features), default=None
            One dummy row in the form of X, of which names, and whether columns hold numbers or
            text, are used. Needed if the steps of a Pipeline want them; None is a row of zeros.
        persons : bool, default=False
            Whether `fit` will be given `groups`: then n_samples counts persons.
        class_share : float, default=None
            Public guess of the share of the second of two classes, in sorted order: the rarer a class
            is, the less can be learned, and known of the model. None is the model's `base_rate`, if it
            is a number, and else 1/2.

        Returns
        -------
        SelectionPlan
            Of the strategy that `fit` would use, with all others in its `comparison`. "stability"
            is planned for noise of median length: the noise that `fit` draws varies around it.

        Examples
        --------
        >>> from dpselect import DPLogisticRegression, StabilityGridSearchCV
        >>> search = StabilityGridSearchCV(
        ...     DPLogisticRegression(), {"alpha": [0.0001, 0.1]}, scoring="ramp",
        ...     strategy="stability",
        ... )
        >>> for line in search.plan(n_samples=10_000, n_features=10).messages:
        ...     print(line)
        alpha=0.0001 sets the noise of all candidates: one record can move its score by 0.8, \
the next one's by 0.0025. Without it one candidate is left, and nothing is to be selected.
        This selection is underpowered: its minimum detectable difference of scores is 11, and \
a perfect model scores only 1 better than one that says nothing (a ratio of 11; at most 0.25 is \
worth the price of a choice).
        To see differences of 0.05: n_samples >= 6670000, or epsilon >= 223.
        Where scores cannot be distinguished, the public rule decides: it prefers alpha=0.0001, and \
another alpha is taken only if its score is better by about 22.
        >>> search.set_params(strategy="auto").plan(n_samples=10_000, n_features=10).strategy
        'data_independent'
        """
        check_share(class_share)
        given = self._given(n_samples, n_features, n_classes, example, persons)
        plan, usual = plan_of(given, class_share), clone(self).set_params(evaluation=None)
        public, given_of = (n_features, n_classes, example, persons), type(self)._given
        grid = PlanGrid(usual, given_of, *public, plan.n_samples, given.n_samples - plan.n_samples)
        return replace(plan, _grid=grid)

    def _candidates(self, persons, estimator, frozen=()):
        trusted = (*self.trusted_steps, *frozen)
        return make_candidates(estimator, self.param_grid, trusted_steps=trusted, persons=persons)

    def _score(self, model):
        scoring = scoring_that_chooses(self)
        if scoring is None and not isinstance(model, HasDefaultScore):
            raise CertificateError(
                f"scoring=None needs a model with default_scoring, and {type(model).__name__} has "
                "none, so it is not known how far one record can move its score; write for instance "
                "scoring='accuracy' or 'clipped_squared_error'."
            )
        return get_score(model.default_scoring if scoring is None else scoring, model=model)

    @property
    def refit_time_(self) -> float:
        """float : Seconds of the last training; only with ``epsilon=inf``, as it depends on records."""
        if "refit_time_" not in vars(self):
            raise AttributeError(
                "refit_time_ depends on the records, and was not paid for; measure the time of the "
                "whole fit yourself, and do not publish it."
            )
        return vars(self)["refit_time_"]

    @property
    def best_score_(self) -> float:
        """float : The exact score of the choice; only with ``epsilon=inf``, never released."""
        if "best_score_" not in vars(self):
            raise AttributeError(
                "best_score_ is an exact function of the data that was not paid for; write "
                "evaluation=0.2 and read evaluation_, for the same epsilon, or call dpselect.evaluate "
                "on records that are not part of the training data."
            )
        return vars(self)["best_score_"]
