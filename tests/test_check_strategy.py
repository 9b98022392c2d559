"""The check of strategies passes those that keep their statement, and finds what others break."""

import pytest
from sklearn.pipeline import make_pipeline

from dpselect import DPLogisticRegression, DPRidge
from dpselect.model_selection.strategies import STRATEGIES
from dpselect.preprocessing import BoundedScaler
from dpselect.testing import check_strategy, strategy_checks

from . import broken_strategies as broken
from .broken_strategies import Third

# the check that is meant to find each mistake, on models that tell; others may find it too
FOUND_BY = {
    broken.NoNoise: ("check_choice", "guesses"),
    broken.HalfTheNoise: ("check_choice", "guesses"),
    broken.WidthOfOne: ("check_choice", "guesses"),
    broken.StatesHalf: ("check_choice", "guesses"),
    broken.BreaksTies: ("check_choice", "guesses"),
    broken.PartsOfTheLabels: ("check_choice", "guesses"),
    broken.SameSeed: ("check_choice", "guesses"),
    broken.GlobalNoise: ("check_choice", "guesses"),
    broken.TrainsOnAll: ("check_choice_by_models", "guesses"),
    broken.SameTrainingRecords: ("check_choice_by_models", "guesses"),
    broken.RowsOfPersons: ("check_choice_of_persons", "guesses"),
    broken.ForgetsTheTraining: ("check_training", "released model has cost epsilon"),
    broken.LargerEpsilon: ("check_training", "released model has cost epsilon"),
    broken.NoiseTwice: ("check_noise", "has the noise of another one"),
    broken.KeepsScores: ("check_what_is_kept", "The search keeps cv_results_.*score"),
    broken.RemembersScores: ("check_what_is_kept", "The class of the strategy keeps .*last"),
    broken.ReadsInPrepare: ("check_ledger", "records were read before it was refused"),
    broken.StatementOfTheRecords: ("check_the_statement", "depends on the records"),
    broken.LabelOfTheRecords: ("check_the_statement", "stated and said .* depends on the records"),
    **dict.fromkeys(
        (
            broken.Prints,
            broken.PrintsErrors,
            broken.Warns,
            broken.Logs,
            broken.WarnsOfSomeRecords,
        ),
        ("check_the_statement", "stated and said .* depends on the records"),
    ),
    broken.ReservesLess: ("check_the_statement", "spent more than"),
    broken.PlansLess: ("check_plan", "its plan is 0"),
}
SLOW = {kind for kind, (check, _) in FOUND_BY.items() if check.startswith("check_choice")}


def checks(strategy, **parameters):
    """Return the checks on models that tell, by their names."""
    found = strategy_checks(strategy, **parameters)
    return {check.__name__: check for check in found if "Telling" in str(check)}


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow) if kind in SLOW else kind for kind in FOUND_BY]
)
def test_broken_ones_are_refused(kind):
    """For what is wrong, where their parent passes."""
    check, said = FOUND_BY[kind]
    with pytest.raises(AssertionError, match=said):
        checks(kind)[check]()


def test_no_broken_one_is_forgotten():
    classes = [kind for kind in vars(broken).values() if isinstance(kind, type)]
    assert {kind for kind in classes if issubclass(kind, Third)} == {Third, broken.Says, *FOUND_BY}


def passed(report):
    return [result.name for result in report.results if result.n_comparisons]


def test_the_right_one_passes_all_but_attacks():
    report = check_strategy(Third, n_trials=0)
    assert len(passed(report)) == 10
    assert [(result.name, result.left_out) for result in report.results if result.left_out] == [
        ("attacks on the choice", ("n_trials is 0",))
    ]


@pytest.mark.slow
def test_the_right_one_passes():
    report = check_strategy(Third)
    assert len(passed(report)) == 13 and not any(result.left_out for result in report.results)
    assert str(report).startswith("Third passes 13 of 13 checks of strategies, with ")


@pytest.mark.parametrize("strategy", ["auto", "data_independent", "optimal_risk", "random"])
def test_the_library_s_strategies_state_and_keep_what_they_may(strategy):
    report = check_strategy(strategy, n_trials=0)
    assert len(passed(report)) >= 4


# "auto" takes one of the others, which is attacked itself; how it takes it has a law of its own
@pytest.mark.slow
@pytest.mark.parametrize("strategy", sorted(set(STRATEGIES) - {"auto", "control"}))
def test_the_library_s_strategies_pass(strategy):
    report = check_strategy(strategy)
    names = {text.partition(" ")[0] for text in passed(report)}
    assert "check_choice" in names


def test_control_is_not_private():
    with pytest.raises(AssertionError, match="privacy_ states an infinite loss"):
        check_strategy("control", n_trials=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy, estimator, grid, parameters",
    [
        ("stability", DPRidge(target_range=(-1, 1)), {"alpha": [0.01, 1.0]}, {}),
        ("stability", DPLogisticRegression(classes=[0, 1]), {"alpha": [0.1, 1.0]}, {"delta": 1e-3}),
        ("budget_split", DPLogisticRegression(classes=[0, 1]), {"alpha": [0.1, 1.0]}, {"delta": 1e-3}),
        (
            "data_split",
            DPLogisticRegression(classes=[0, 1]),
            {"data_norm": [0.5, 2.0]},
            {"scoring": "accuracy", "cv": 3, "epsilon": 0.5},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_other_models_and_settings(strategy, estimator, grid, parameters):
    report = check_strategy(strategy, estimator, grid, n_trials=0, **parameters)
    own = [text for text in passed(report) if type(estimator).__name__ in text]
    assert len(own) == 4


def test_what_serves_no_model_is_not_passed():
    class Refuses(Third):
        def prepare(self):
            raise ValueError("not today")

    with pytest.raises(AssertionError, match="serves none of the models.*give an estimator"):
        check_strategy(Refuses)


def test_a_strategy_that_refuses_persons_is_left_out_there():
    class NoPersons(Third):
        def prepare(self):
            super().prepare()
            if self.problem.adjacency.unit == "person":
                raise ValueError("no proof for persons")

    assert "no proof for persons" in checks(NoPersons)["check_choice_of_persons"]().left_out[0]


def test_the_checks_have_names_for_pytest():
    found = strategy_checks("optimal_risk")
    assert len({str(check) for check in found}) == len(found) == 13
    assert all(check.__doc__ for check in found)


@pytest.mark.slow
def test_a_step_before_the_model_is_no_hindrance():
    steps = make_pipeline(BoundedScaler((-1, 1)), DPLogisticRegression(classes=[0, 1]))
    grid = {"dplogisticregression__alpha": [0.1, 1.0]}
    report = check_strategy("stability", steps, grid, n_trials=0)
    assert "check_what_is_kept (Pipeline)" in passed(report)
