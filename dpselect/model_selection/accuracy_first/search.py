"""AccuracyFirstSearchCV: the smallest epsilon of a grid that is accurate enough."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier

from ...accounting.privacy_loss import PrivacyLoss
from ...base.capabilities import HasAccuracyForm
from ...base.estimator import ReleaseMixin
from ...base.fit_warnings import warn_if_seeded
from ...exceptions import AccuracyNotReachedError, CertificateError
from ...ledger import PrivacyLedger
from ...metrics import AccuracyScore, AtLeastScore, Score, get_score
from ...noise.generators import RandomState, search_stream
from ...utils.type_aliases import CrossValidation, Estimator, MatrixLike
from ..budget import Budget, refuse_overspent, refuse_unbudgeted
from ..candidates import make_candidates, n_columns, seed_features
from ..delegation import SearchDelegationMixin
from ..engine import price, release, upper_bound
from ..exact_scores import names_the_example, records_for_steps
from ..learned_first import without_optional_numbers
from ..private_steps import last_step
from ..problem import SearchProblem, open_records, planned_problem, read_records, with_shape
from ..progress import CallbackSupportMixin, with_callbacks
from ..routing import check_groups_are_taken, check_weights_are_taken, take_weights
from ..set_aside import check_evaluation, with_forecast
from ..stages import HoldOut, PrivateSteps
from ..strategies.dry_run import dry_run_fit
from .accuracy_plan import AccuracyPlan, with_reachable
from .reach_target import ReachTarget
from .target_checks import RISKS, check_parameters, check_steps_afforded, epsilon_grid, is_risk


class AccuracyFirstSearchCV(
    SearchDelegationMixin, ReleaseMixin, CallbackSupportMixin, MetaEstimatorMixin, BaseEstimator
):
    """Find the smallest epsilon of a grid whose model it can show to be accurate enough; release it.

    Where :class:`StabilityGridSearchCV` fixes the privacy loss and seeks accuracy, this search
    fixes the accuracy: with probability 1 - `failure_probability`, the released model meets
    `target`. What it cost is in `privacy_`. Only ``method="certified"`` (and "theory") is
    differentially private for an epsilon known in advance; the other methods test models on
    the records until one is good enough, and bound the loss of the outcome that came
    out: *ex-post* privacy. A test has noise, so it passes when a model is better than the target by as
    much as this noise may take, and the epsilon that is found can be much larger than the least that
    would do. The plan tells how much that is.

    Neighbouring data sets differ in one record. Public are the number of records, the
    columns, the labels, and every parameter. Released are the models that were tried, the noisy
    answers of their tests, the fact that one passed, and `evaluation_` if it was asked for.

    Read more in :doc:`/target_accuracy`.

    Parameters
    ----------
    estimator : estimator
        A private linear model, ridge regression or density of this library, or a Pipeline that
        ends with one and whose other steps treat each row by itself. Its `epsilon` and
        `random_state` are set by the search. With a score as the criterion ``alpha="auto"`` is a number
        that the public rule finds before any data, the same one at all levels; a risk needs a number.
    param_grid : dict
        One key, the estimator's epsilon (``"epsilon"``, or ``"<step>__epsilon"`` in a Pipeline),
        and increasing values, from the most private one on.
    target : float
        What the criterion may be at most. Of a score that should be large, what it shall be at least, in
        (0, 1): 0.8 with ``criterion="accuracy"``.
    criterion : "excess_risk", "risk", str or score, default="excess_risk"
        "excess_risk": how far the risk that the estimator minimises exceeds the least one, on
        all records. "risk": that risk itself. A score of :mod:`dpselect.metrics`, or its name:
        its mean penalty on records that were held out ("brier": the mean squared error of the
        probability; "ramp": the ramp loss). "accuracy", "roc_auc", "balanced_accuracy", "f1" and "r2"
        shall be at least the target on records that were held out.
    failure_probability : float, default=0.1
        Probability in (0, 1) with which the released model may miss the target.
    method : str, default="auto"
        "certified": one fit, with noise so small that the excess risk is, whatever the
        data; nothing is tested. "predict_verify": the excess is forecast from what is
        released, and one question is asked when the forecast is good. "above_threshold":
        every model along a noise-reduction path is compared with a noisy threshold.
        "reduced_above_threshold": these comparisons get more expensive along the path. "brownian":
        likewise, with a Gaussian path; needs `delta`. "doubling": new models with epsilons
        that double, each tested. "theory": one fit whose *expected* excess risk meets the
        target. "published_above_threshold": with the constants of the source, for
        comparison. "auto": of those that are expected to reach the target, the one whose planned
        loss is least; if none is, the one whose planned loss is least (see :meth:`plan`).
    delta : float, default=0.0
        Probability in [0, 1) with which the loss of the Gaussian path of "brownian" may exceed its
        bound. A `delta` of the estimator is beside it: each model that is tried can cost it, so with
        ``delta=0`` here and 1e-6 there, six models cost 6e-6.
    max_epsilon : float or "auto", default="auto"
        The most that the search may spend on any records, private steps of a Pipeline included;
        greater than 0. Levels of the grid at which it could spend more are left out. "auto": eight
        times what the method is expected to pay, beside the steps. ``inf``: no limit but the end of
        the grid, and all tests up to there, which is what a search that finds no model pays.
        As a whole the search is differentially private for ``plan_.at_most``.
    on_failure : {"raise", "last"}, default="raise"
        What to do if no model of the grid is accurate enough: raise AccuracyNotReachedError, or
        release the last one that was read. The minimiser without noise is never released.
    cv : int, splitter, iterable or None, default=None
        With a score: its first split says which records train and which are held out; None
        holds out a random fifth. The model is not trained again on all records.
    verbose : int, default=0
        1 or more prints which step begins. scikit-learn's callbacks (``set_callbacks``, from its version
        1.9 on) and the logger "dpselect" of Python's logging are told the same; none is told a result.
    public_splits : bool, default=False
        Your word that `cv` does not depend on the records.
    trusted_steps : collection of str or class, default=()
        Steps of your own that treat each row by itself.
    evaluation : float, default=None
        Share of the records in (0, 1) that is set aside by chance, takes no part in the search, and on
        which the released model is evaluated with an epsilon of all that the search has spent: see
        `evaluation_`. One record is in one of the two parts, so this costs no privacy, but fewer
        records train. Of a regression, the `target_range` (or `target_bound`) of the model says which
        errors are counted. None evaluates nothing.
    ledger : PrivacyLedger, default=None
        Pays for all that is released, in place of one that is open (``with ledger:``). It is asked for
        ``plan_.at_most``, and if less is left, BudgetExceededError is raised. All that was looked at
        then is the shape of the records (and the labels of a model without `classes`).
    random_state : None, int, SeedSequence, RandomState or Generator, default=None
        None takes all noise from the operating system's entropy. Everything else is for
        tests: the noise can be drawn again.

    Attributes
    ----------
    best_epsilon_ : float
        The level of the released model; not the whole loss, which is `privacy_`.
    best_params_ : dict
        The same under its name in `param_grid`.
    best_index_ : int
        Its index in the grid.
    best_estimator_ : estimator
        The released model. "certified" takes objective perturbation for linear models, whatever
        `perturbation` says.
    reached_ : bool
        Whether it was found accurate enough.
    privacy_ : PrivacyLoss
        The loss of everything that was released, models and tests apart. After an
        AccuracyNotReachedError it is there too, with `plan_`, `method_` and `reached_`, and no model.
    path_ : dict of arrays
        The released prefix: `epsilon` and `model` of each level up to the last one; `tested`
        (indices into them) and `answer`, the noisy answers to questions about single models
        (for the excess risk, "predict_verify" asks for its square root; a score that should be large is
        told by the guess of the classes' shares, or of the targets' deviation, that tests are made for).
    plan_ : AccuracyPlan
        What was planned.
    method_ : str
        The method that was used.
    scorer_ : callable
        What :meth:`score` uses.
    evaluation_ : Evaluation
        How good `best_estimator_` is, as :func:`~dpselect.evaluate` tells it. Released. Only with
        `evaluation`.
    n_features_in_, feature_names_in_, classes_
        Those of `best_estimator_`.

    References
    ----------
    Ligett, Neel, Roth, Waggoner and Wu, *Accuracy First: Selecting a Differential Privacy
    Level for Accuracy-Constrained ERM*, NeurIPS 2017. Whitehouse, Ramdas, Wu and Rogers,
    *Brownian Noise Reduction*, NeurIPS 2022. The page "Accuracy first" has statements and
    proofs, and what differs from the sources.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_blobs
    >>> from dpselect import AccuracyFirstSearchCV, DPLogisticRegression
    >>> X, y = make_blobs(21_000, centers=[(-0.5, 0), (0.5, 0)], cluster_std=0.2, random_state=0)
    >>> search = AccuracyFirstSearchCV(
    ...     DPLogisticRegression(alpha=0.01, classes=[0, 1]),
    ...     {"epsilon": np.geomspace(0.001, 10, 200)},
    ...     target=0.01,
    ... ).fit(X[:20_000], y[:20_000])
    >>> search.method_
    'certified'
    >>> round(search.best_epsilon_, 3)
    0.035
    >>> bool(search.score(X[20_000:], y[20_000:]) > 0.9)  # other records
    True
    """

    stages: ClassVar = (HoldOut(), PrivateSteps(), ReachTarget())
    # what the delegation asks of a search
    refit = True
    scoring = None

    def __init__(
        self,
        estimator: Estimator,
        param_grid: Mapping[str, Any],
        *,
        target: float,
        criterion: str | Score = "excess_risk",
        failure_probability: float = 0.1,
        method: str = "auto",
        delta: float = 0.0,
        max_epsilon: float | Literal["auto"] = "auto",
        on_failure: Literal["raise", "last"] = "raise",
        cv: CrossValidation = None,
        verbose: int = 0,
        public_splits: bool = False,
        trusted_steps: Collection[str | type] = (),
        evaluation: float | None = None,
        ledger: PrivacyLedger | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.target = target
        self.criterion = criterion
        self.failure_probability = failure_probability
        self.method = method
        self.delta = delta
        self.max_epsilon = max_epsilon
        self.on_failure = on_failure
        self.cv = cv
        self.verbose = verbose
        self.public_splits = public_splits
        self.trusted_steps = trusted_steps
        self.evaluation = evaluation
        self.ledger = ledger
        self.random_state = random_state

    @with_callbacks
    def fit(self, X: MatrixLike, y: npt.ArrayLike | None = None, **params: Any) -> Self:
        """Search and release.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        **params : dict
            `groups`, the id of the person whose row it is: neighbours then differ in all rows of one
            person, and risks and scores are means over persons, each of them the mean of their rows.
            `sample_weight` of a model that takes it, as ``step__sample_weight`` for a Pipeline, or as
            metadata routing sends it. A risk is that of the weighted loss; scores weigh all records
            alike.

        Returns
        -------
        self : object

        Raises
        ------
        AccuracyNotReachedError
            If no model of the grid is found accurate enough. Its `privacy`, and `privacy_`, say what
            was spent.
        BudgetExceededError
            If the ledger has less than ``plan_.at_most`` left.
        CertificateError
            If the method or the score does not serve the estimator.
        ValueError, TypeError
            If a parameter or a step would break the guarantee; raised before the data is
            touched wherever that is possible.
        """
        check_parameters(self)
        groups = params.pop("groups", None)
        weight = take_weights(self, params)
        name, epsilons = epsilon_grid(self.estimator, self.param_grid)
        problem = self._problem(search_stream(self.random_state), groups is not None)
        if weight is not None:
            check_weights_are_taken([problem.winner.model])
        # dummy shapes: refuses what cannot work on any records
        price(self.stages, problem.dummy(1000))
        warn_if_seeded(self)

        records = read_records(X, y, groups, weight)
        public = records_for_steps(problem.candidates, records.X)[1]
        problem = replace(with_shape(problem, records), public=public)
        if problem.n_samples == 0:
            raise ValueError(
                f"Found array with 0 sample(s) while a minimum of 1 is required by "
                f"{type(self).__name__}."
            )
        if problem.winner.model.get_params().get("classes", 0) is None:
            # what models cost depends on the number of labels; a warning says that they are read
            problem, records = open_records(problem, records)
        prices = price(self.stages, problem)
        planned, most = prices[0].problem.decided, upper_bound(prices, type(self).__name__)
        self._forget()
        self.plan_, self.method_ = planned.plan, planned.name
        if planned.plan.at_most.epsilon == 0.0:
            self._fail([])
        refuse_unbudgeted(most, planned.plan.at_most.epsilon)
        released, losses = release(
            self.stages,
            replace(problem, decided=planned),
            most,
            opened=lambda problem: open_records(problem, records),
            composed=partial(self._composed, planned.plan.at_most),
            evaluation_epsilon=attrgetter("epsilon"),
        )
        if released["estimator"] is None:
            self._fail(losses)
        epsilon, scorer = float(epsilons[released["best_index_"]]), problem.score or own_score
        self._publish(**released, best_epsilon_=epsilon, best_params_={name: epsilon}, scorer_=scorer)
        return self

    def _problem(self, stream, persons):
        """Return the problem before the records, or refuse what breaks the guarantee on any."""
        estimator, score = seed_features(self.estimator, stream.child("features")), self._score()
        candidates_of = partial(self._candidates, persons)
        candidates = candidates_of(estimator)
        model = candidates[0].model
        if persons:
            check_groups_are_taken(estimator, [model], score)
        self._check_scored(candidates[0], score)
        check_evaluation(self, [model])
        budget = Budget(math.inf if isinstance(self.max_epsilon, str) else float(self.max_epsilon))
        return SearchProblem(self, stream, estimator, candidates, score, budget, candidates_of, persons)

    def _composed(self, most, losses, problem, charge):
        """Return the loss of all stages, or refuse what is more than was reserved."""
        loss = PrivacyLoss.sequential(losses, label=type(self).__name__)
        refuse_overspent(loss, most, f"method={problem.decided.name!r}", charge)
        return loss

    @names_the_example
    def plan(
        self,
        n_samples: int,
        n_features: int,
        n_classes: int = 2,
        example: MatrixLike | None = None,
        persons: bool = False,
        reachable: float | None = None,
    ) -> AccuracyPlan:
        """Plan what each method is expected to pay, and the most that it can, before any data is read.

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
        reachable : float, default=None
            What models of similar, public data reach without privacy, in units of `target`; None if
            nobody knows. Where it is worse than the target and the noise of the tests together ask
            for, no method is expected to find a model.

        Returns
        -------
        AccuracyPlan

        Raises
        ------
        ValueError
            If `reachable` is given for the criterion "excess_risk".

        Examples
        --------
        >>> import numpy as np
        >>> from dpselect import AccuracyFirstSearchCV, DPRidge
        >>> search = AccuracyFirstSearchCV(
        ...     DPRidge(alpha=0.01, target_range=(-1, 1)), {"epsilon": np.geomspace(0.01, 100, 500)},
        ...     target=0.02,
        ... )
        >>> print(search.plan(n_samples=50_000, n_features=20).messages[0])
        The cheapest method is certified; it costs epsilon=..., known before the data is touched.
        """
        check_parameters(self)
        given = planned_problem(
            self._problem(search_stream(0), persons), n_samples, n_features, n_classes, example
        )
        if example is not None:
            given = replace(given, n_features=n_columns(example))
        (priced,) = price(self.stages, given)
        planned, n_held = priced.problem.decided, given.n_samples - priced.problem.n_samples
        plan = planned.plan
        if reachable is not None:
            plan = with_reachable(plan, planned.method.question, float(self.target), reachable)
        if not n_held or math.isinf(plan.chosen.total):
            return plan
        model = priced.problem.winner.model
        return with_forecast(plan, model, n_classes, n_held, plan.chosen.total, persons)

    def _candidates(self, persons, estimator, frozen=()):
        (candidate,) = make_candidates(
            estimator,
            {},
            trusted_steps=(*self.trusted_steps, *frozen),
            persons=persons,
            needs=HasAccuracyForm,
            search="AccuracyFirstSearchCV",
        )
        check_steps_afforded(candidate.estimator, self.max_epsilon)
        return [without_optional_numbers(candidate)]

    def _score(self):
        if is_risk(self.criterion):
            return None
        return get_score(self.criterion, "criterion", RISKS, last_step(self.estimator))

    def _check_scored(self, candidate, score):
        """Refuse a score that should be large, and is not about the model."""
        model = candidate.model
        if isinstance(score, AccuracyScore) and not is_classifier(model):
            raise CertificateError(
                f"criterion={self.criterion!r} counts labels that are predicted right, and a "
                f"{type(model).__name__} predicts none; use another criterion, such as 'excess_risk'."
            )
        if isinstance(score, AtLeastScore):
            dry_run_fit(candidate, 1.0, score)

    def _fail(self, losses):
        """Leave what was spent and planned, and say so."""
        self.reached_ = False
        self.privacy_ = (
            PrivacyLoss.sequential(losses, label=type(self).__name__)
            if losses
            else PrivacyLoss(0.0, adjacency=self.plan_.at_most.adjacency, label="nothing was released")
        )
        larger = "larger epsilons, an easier target, more records, a model that fits better"
        if self.plan_.last_epsilon < np.max(next(iter(self.param_grid.values()))):
            tried = f"no epsilon above {self.plan_.last_epsilon:.4g} was tried"
            larger = (
                f"a larger max_epsilon ({tried}), an easier target, more records, a model that fits "
                "better"
            )
        raise AccuracyNotReachedError(
            f"No model of param_grid was found to meet target={self.target!r} for "
            f"criterion={self.criterion!r}; finding that out has cost epsilon="
            f"{self.privacy_.epsilon:.6g}, which stays spent: another search of these records adds to "
            f"it. It would need {larger}, or on_failure='last' for the last model.",
            self.privacy_,
        )

    def __sklearn_is_fitted__(self):
        # a search that has failed knows what it spent, and has no model
        return hasattr(self, "best_estimator_")


def own_score(estimator, X, y=None, **params):
    """Score by the estimator's own method: unlike scikit-learn's scorer, skops reads it back."""
    return estimator.score(X, y, **params)
