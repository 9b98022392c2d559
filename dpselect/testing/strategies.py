"""The list of checks that every strategy of a search must pass, here and in other packages."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..linear_model import DPLogisticRegression
from ..model_selection import Strategy
from ..model_selection.strategies import strategy_class
from ..utils.type_aliases import CrossValidation, Estimator, ParamGrid
from .strategy_attacks import (
    check_choice,
    check_choice_by_models,
    check_choice_of_persons,
)
from .strategy_case import StrategyCase, Subject, revealing_subject
from .strategy_statement import (
    check_ledger,
    check_noise,
    check_plan,
    check_the_statement,
    check_training,
    check_what_is_kept,
)
from .tally import CheckReport, CheckResult, counted, run_checks
from .telling import BoundedTelling, ColumnScore, Telling

# checks on searches of any model, on models made for attacks, and attacks, which may be left out
CHECKS: tuple[Callable[..., Any], ...] = (
    check_the_statement,
    check_what_is_kept,
    check_plan,
    check_ledger,
)
CHECKS_OF_TELLING = (check_training, check_noise)
ATTACKS = (check_choice, check_choice_by_models, check_choice_of_persons)


def check_strategy(
    strategy: str | type[Strategy],
    estimator: Estimator | None = None,
    param_grid: ParamGrid | None = None,
    *,
    scoring: Any = None,
    cv: CrossValidation = None,
    epsilon: float = 2.0,
    delta: float = 0.0,
    n_trials: int = 3000,
) -> CheckReport:
    """Check that a strategy of a search keeps what it states.

    The attacks bring their own models, score and records, which show as much of one record as they may:
    models answer a question by randomised response, and a record says itself how it scores each
    candidate. On pairs of data sets that differ in one record, in the part that trains or in the part
    that validates, the choice is repeated, and guesses are made which data set was searched. They must
    not be right more often than the loss of the choice allows, and that of choice and model together;
    likewise where a person has many rows. Noise of Python's and numpy's global generators is the same
    each time, and so it hides nothing.

    Other checks fit the search, with these models and with `estimator`, to data sets of one shape:

    - losses add up to no more than `epsilon` and `delta`, and are the same for all records;
    - the ledger reserves what is spent, and a search beyond the budget is refused before any record is
      read; a plan, which is made before, reserves no less than `fit` states;
    - nothing but the choice and the model depends on the records: attributes of the search, `plan_`,
      `cv_results_`, the strategy and its class, and what is printed, logged and warned of;
    - the model is trained with no more than was planned, and is the same again with the same seed; its
      noise is not that of models that were compared, or of the choice.

    That it passes is no proof. It does not see a loss on records of another kind, or with scores and
    models for which a strategy has ways of its own; a loss that is less than about one and a half times
    what is stated; a delta that is too small; what is kept in other modules, or on disk; and time. The
    report says what was left out.

    Parameters
    ----------
    strategy : subclass of Strategy, or str
        The class, or the name of a strategy of the library.
    estimator : estimator, default=None
        A private model as the search takes it, that the strategy serves. None is a
        :class:`~dpselect.DPLogisticRegression`.
    param_grid : dict or list of dict, default=None
        Its grid; None varies `alpha`.
    scoring, cv : as in :class:`~dpselect.StabilityGridSearchCV`, default=None
    epsilon : float, default=2.0
        Of the searches whose statements are checked. The attacks have their own.
    delta : float, default=0.0
        Of all searches.
    n_trials : int, default=3000
        Most choices for each pair of data sets that is attacked closely; a wrong statement mostly needs
        some hundred. Fewer find larger mistakes only, and 0 leaves these attacks out.

    Returns
    -------
    CheckReport
        What ran, and what was left out.

    Raises
    ------
    AssertionError
        If a check fails; it names all that fail, and what each found. Also if the strategy serves none
        of the models.

    See Also
    --------
    dpselect.model_selection.Strategy : The base class, with an example.
    strategy_checks : The same checks one by one, for pytest.
    check_private_estimator : The same for an estimator.

    Notes
    -----
    All attacks together raise a false alarm with a probability below 1e-6, by exact tests of guesses, as
    in :func:`~dpselect.audit.guessing_game`. What a strategy draws from a stream that is not
    `for_release`, such as the parts of the records, is the same in all choices that are compared: no
    proof may need that it is secret.

    Examples
    --------
    A strategy that takes the best exact score, and states a third of epsilon for it:

    >>> import numpy as np
    >>> from dpselect.base import Trial
    >>> from dpselect.model_selection import Choice, Strategy
    >>> from dpselect.testing import check_strategy
    >>> class Exact(Strategy):
    ...     def prepare(self):
    ...         self.selection_epsilon = self.problem.selection_epsilon(1 / 3)
    ...         self.training_epsilon = self.problem.epsilon - self.selection_epsilon
    ...
    ...     def choose(self, X, y, stream):
    ...         scores = [
    ...             self.problem.score(Trial(c.model, 1e6, stream.child(i)).fitted(X, y), X, y)
    ...             for i, c in enumerate(self.problem.candidates)
    ...         ]
    ...         return Choice(int(np.argmax(scores)), [self.choice_loss(self.selection_epsilon)])
    >>> check_strategy(Exact, n_trials=300)
    Traceback (most recent call last):
    ...
    AssertionError: Exact fails ... of ... checks of strategies.
    check_choice (Telling): With epsilon=6 and a Telling, ...
    """
    checks = strategy_checks(
        strategy,
        estimator,
        param_grid,
        scoring=scoring,
        cv=cv,
        epsilon=epsilon,
        delta=delta,
        n_trials=n_trials,
    )
    name = strategy_class(strategy).name
    report = run_checks(name, "strategies", [(str(check), check) for check in checks])
    if not any(result.n_comparisons for result in report.results):
        raise AssertionError(
            f"{name} serves none of the models that it was tried on; give an estimator and a param_grid "
            f"that it serves.\n{report}"
        )
    if n_trials:
        return report
    attacks = CheckResult("attacks on the choice", 0, ("n_trials is 0",))
    return replace(report, results=(*report.results, attacks))


def strategy_checks(
    strategy: str | type[Strategy],
    estimator: Estimator | None = None,
    param_grid: ParamGrid | None = None,
    *,
    scoring: Any = None,
    cv: CrossValidation = None,
    epsilon: float = 2.0,
    delta: float = 0.0,
    n_trials: int = 3000,
) -> list["StrategyCheck"]:
    """Return the checks of :func:`check_strategy`, to be run one by one.

    Parameters
    ----------
    strategy : subclass of Strategy, or str
    estimator, param_grid, scoring, cv, epsilon, delta, n_trials
        As there.

    Returns
    -------
    list of StrategyCheck
        ``check()`` raises an AssertionError if it fails, and returns a CheckResult.

    Examples
    --------
    >>> import pytest
    >>> from dpselect.testing import strategy_checks
    >>> @pytest.mark.parametrize("check", strategy_checks("optimal_risk"), ids=str)
    ... def test_strategy(check):
    ...     check()
    """
    if estimator is None:
        estimator = DPLogisticRegression(classes=[0, 1])
    if param_grid is None:
        param_grid = {"alpha": [0.01, 0.1, 1.0]}
    name, given = type(estimator).__name__, {"epsilon": epsilon, "delta": delta}
    own = Subject(name, estimator, param_grid, scoring, parameters={**given, "cv": cv})
    cases = [StrategyCase(strategy, own), *_telling_cases(strategy, given)]
    found = []
    for case in cases:
        checks = CHECKS + (CHECKS_OF_TELLING if case.subject.made_for_attacks else ())
        found += [StrategyCheck(check, case) for check in checks]
        if case.subject.made_for_attacks and n_trials:
            found += [StrategyCheck(check, case, n_trials) for check in ATTACKS]
    if n_trials and all(case.refusal for case in cases if case.subject.made_for_attacks):
        # attack the choice by made-up scores, where models made for attacks are not supported
        points = own.points
        scored = replace(own, scoring=ColumnScore(points), d=2 * len(points) + 1)
        found.append(StrategyCheck(check_choice, StrategyCase(strategy, scored), n_trials))
    return found


class StrategyCheck:
    """A check of a strategy on one kind of model, with a name for pytest."""

    def __init__(self, check, case, *arguments):
        self.check, self.case, self.arguments = check, case, arguments
        self.__name__, self.__doc__ = check.__name__, check.__doc__

    def __str__(self):
        return f"{self.__name__} ({self.case.subject.name})"

    def __call__(self):
        with counted() as tally:
            refusal = self.case.refusal and f"not served ({self.case.refusal})"
            said = refusal or self.check(self.case, *self.arguments)
        if said:
            return CheckResult(str(self), 0, (said,))
        return CheckResult(str(self), tally.n_comparisons, tuple(tally.left_out))


def _telling_cases(strategy, given):
    """Return cases of models made for attacks; with more capabilities where that makes a difference."""
    plain, bounded = (
        StrategyCase(strategy, revealing_subject(kind, 2, cv=2, **given))
        for kind in (Telling, BoundedTelling)
    )
    if plain.refusal:
        return [bounded]
    if bounded.refusal or repr(plain.plan()) == repr(bounded.plan()):
        return [plain]
    return [plain, bounded]
