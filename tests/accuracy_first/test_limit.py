"""The most that an accuracy-first search can spend: what is planned, reserved, and never exceeded."""

import math

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline

from dpselect import (
    AccuracyFirstSearchCV,
    AccuracyNotReachedError,
    BudgetExceededError,
    CertificateError,
    DPHistogramDensity,
    DPLogisticRegression,
    DPRidge,
    PrivacyLedger,
    StabilityGridSearchCV,
)
from dpselect.model_selection import engine
from dpselect.model_selection.accuracy_first import reach_target as stage
from dpselect.model_selection.accuracy_first.limit import TIMES_EXPECTED, Limit
from dpselect.model_selection.accuracy_first.methods import (
    METHODS,
    PredictVerify,
    ReducedAboveThreshold,
)
from dpselect.preprocessing import BoundedScaler, DPBoundsScaler
from tests.marks import slow_but

GRID = np.geomspace(0.01, 100, 40)
N, STEP = 400, 0.125
LOGISTIC = DPLogisticRegression(alpha=0.1, classes=[0, 1])
ESTIMATORS = {
    "objective": LOGISTIC,
    "output": clone(LOGISTIC).set_params(perturbation="output"),
    "covariance": DPRidge(alpha=0.1, target_range=(-1, 1)),
    "histogram": DPHistogramDensity(bin_width=0.25, bounds=(-0.5, 0.5)),
    "private step": make_pipeline(
        DPBoundsScaler(STEP), clone(LOGISTIC).set_params(perturbation="output")
    ),
}
# absolute targets that no model of random labels meets, and that ask for many questions
CRITERIA = {
    "objective": ("excess_risk", "risk", "brier"),
    "output": ("excess_risk", "risk", "brier"),
    "private step": ("risk", "brier"),
    "covariance": ("excess_risk", "risk", "clipped_squared_error"),
    "histogram": ("excess_risk", "risk", "integrated_squared_error"),
}


def served(name, criterion, method):
    """Whether there is a proof for a method: of noise on a path, or of a loss before any question."""
    if method in ("certified", "theory"):
        return criterion == "excess_risk" and (method, name) != ("theory", "covariance")
    return name != "objective" or method in ("auto", "predict_verify", "doubling")


ASKED = [
    (name, criterion, method)
    for name in ESTIMATORS
    for criterion in CRITERIA[name]
    for method in ("auto", *METHODS)
    if criterion == "risk" or method not in ("auto", "published_above_threshold")
]
CASES = [case for case in ASKED if served(*case)]
REFUSED = [case for case in ASKED if not served(*case)]


def epsilon_name(estimator):
    return f"{estimator.steps[-1][0]}__epsilon" if hasattr(estimator, "steps") else "epsilon"


def make_search(name, criterion="risk", method="auto", **parameters):
    target = 0.3 if criterion in ("excess_risk", "risk") else 0.05
    if name == "histogram":
        target = 0.3 if criterion == "excess_risk" else -3.0
    parameters = {"delta": 1e-6, "target": target, **parameters}
    return AccuracyFirstSearchCV(
        ESTIMATORS[name],
        {epsilon_name(ESTIMATORS[name]): GRID},
        criterion=criterion,
        method=method,
        **parameters,
    )


def random_labels(seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-0.5, 0.5, size=(N, 1)), rng.integers(2, size=N)


def check_spending(search, path):
    """Plan, fit under a ledger, and hold the three of them against each other.

    Returns
    -------
    plan : AccuracyPlan
    spent : PrivacyLoss
    reached : bool
    """
    X, y = random_labels()
    if isinstance(search.estimator, DPHistogramDensity):
        y = None
    plan, ledger = search.plan(*X.shape), PrivacyLedger(path, epsilon=1e9, delta=0.5)
    error = None
    with ledger:
        try:
            search.fit(X, y)
        except AccuracyNotReachedError as caught:
            error = caught
    spent = search.privacy_
    assert search.reached_ == (error is None) or search.on_failure == "last"
    if error is not None:
        assert error.privacy == spent
    assert spent.epsilon <= plan.at_most.epsilon and spent.delta <= plan.at_most.delta
    assert search.plan_ == plan and plan.chosen.most == plan.at_most.epsilon
    if plan.at_most.epsilon == 0.0:
        assert ledger.history() == []
    else:
        (entry,) = ledger.history()
        reserved = entry.reserved_epsilon, entry.reserved_delta
        assert reserved == (plan.at_most.epsilon, plan.at_most.delta)
        assert (entry.epsilon, entry.delta) == (spent.epsilon, spent.delta)
        assert entry.committed_at is not None
    if not isinstance(search.max_epsilon, str):
        assert plan.at_most.epsilon <= search.max_epsilon
    elif plan.chosen.total < math.inf:
        steps = STEP if hasattr(search.estimator, "steps") and plan.chosen.most else 0.0
        expected = plan.chosen.total - steps
        assert plan.chosen.most - steps <= TIMES_EXPECTED * expected * (1 + 1e-12)
    assert plan.last_epsilon in GRID
    return plan, spent, search.reached_


def test_what_has_no_proof_is_refused():
    assert len(REFUSED) == 31
    for case in REFUSED:
        with pytest.raises(CertificateError):
            make_search(*case).plan(N, 1)


@pytest.mark.parametrize("name, criterion, method", slow_but(CASES, *range(0, len(CASES), 3)))
def test_no_search_spends_more_than_its_plan_says(name, criterion, method, tmp_path):
    search = make_search(name, criterion, method)
    plan, _, _ = check_spending(search, tmp_path / "auto")
    if criterion in ("brier", "clipped_squared_error", "integrated_squared_error"):
        return
    # what comes after the first level is the same for each limit
    most = search.set_params(max_epsilon=math.inf, method=plan.method).plan(N, 1).chosen.most
    # the second is too little by less than any part of the loss
    for name, limit in (("third", most / 3), ("nearly", most * (1 - 1e-9))):
        if limit > 0:
            search.set_params(max_epsilon=limit)
            try:
                search.plan(N, 1)
            except ValueError as error:
                assert f"max_epsilon={limit!r}" in str(error)
            else:
                check_spending(search, tmp_path / name)
    check_spending(search.set_params(max_epsilon=math.inf, on_failure="last"), tmp_path / "inf")


@pytest.mark.parametrize("method", [m for m in METHODS if m not in ("certified", "theory")])
def test_the_most_is_what_a_search_that_fails_spends(method, tmp_path):
    """An upper bound that is never reached would say little; this one is, on random labels."""
    plan, spent, reached = check_spending(
        make_search("output", "risk", method, target=0.1), tmp_path / "ledger"
    )
    assert not reached and plan.at_most == spent
    assert plan.last_epsilon < GRID[-1] or "published" in method


# --- broken twins of what keeps a search within its plan


def forgets_the_steps(monkeypatch):
    bare = Limit.at_most
    monkeypatch.setattr(
        Limit, "at_most", lambda self, method: bare(Limit((), None, self.disjoint), method)
    )


def walks_the_whole_grid(monkeypatch):
    real = stage.make_plan

    def make_plan(question, method, limit):
        plan, setup = real(question, method, limit)
        return plan, type(setup)(question)

    monkeypatch.setattr(stage, "make_plan", make_plan)


def forgets_a_question(monkeypatch):
    real = PredictVerify.most_expensive

    def most_expensive(self):
        outcome = real(self)
        outcome.tests = outcome.tests[:-1]
        return outcome

    monkeypatch.setattr(PredictVerify, "most_expensive", most_expensive)


def counts_the_first_test(monkeypatch):
    real = ReducedAboveThreshold.most_expensive

    def most_expensive(self):
        outcome = real(self)
        outcome.tests = [min(self.test.epsilons)]
        return outcome

    monkeypatch.setattr(ReducedAboveThreshold, "most_expensive", most_expensive)


def knows_no_limit(monkeypatch):
    monkeypatch.setattr(Limit, "allows", lambda self, method: True)


def reserves_what_is_expected(monkeypatch):
    real = engine.spending
    monkeypatch.setattr(
        engine,
        "spending",
        lambda owner, most: real(owner, type(most)(owner.plan_.chosen.total, most.delta)),
    )


@pytest.mark.parametrize(
    "twin, name, method",
    [
        (forgets_the_steps, "private step", "above_threshold"),
        (walks_the_whole_grid, "output", "above_threshold"),
        (walks_the_whole_grid, "objective", "doubling"),
        (walks_the_whole_grid, "covariance", "predict_verify"),
        (forgets_a_question, "output", "predict_verify"),
        (counts_the_first_test, "output", "reduced_above_threshold"),
        (knows_no_limit, "output", "above_threshold"),
        (reserves_what_is_expected, "output", "predict_verify"),
    ],
)
def test_the_check_catches_broken_twins(twin, name, method, monkeypatch, tmp_path):
    twin(monkeypatch)
    with pytest.raises((AssertionError, ValueError)):
        check_spending(make_search(name, "risk", method, target=0.1), tmp_path / "ledger")


# --- what the limit is


def test_a_larger_limit_reads_more_of_the_grid():
    ends = []
    for limit in (3.0, 10.0, 30.0, 60.0, math.inf):
        plan = make_search("output", "risk", "above_threshold", max_epsilon=limit).plan(N, 1)
        ends.append(plan.last_epsilon)
        i = list(GRID).index(plan.last_epsilon)
        if limit < math.inf:
            # one level more would be too much
            longer = AccuracyFirstSearchCV(
                ESTIMATORS["output"],
                {"epsilon": GRID[: i + 2]},
                target=0.3,
                criterion="risk",
                method="above_threshold",
                max_epsilon=math.inf,
            )
            assert plan.chosen.most <= limit < longer.plan(N, 1).chosen.most
    assert ends == sorted(ends) and len(set(ends)) == 5 and ends[-1] == GRID[-1]


def test_a_search_within_a_limit_is_that_of_the_shorter_grid():
    X, y = random_labels()
    limited = make_search(
        "output", "risk", "predict_verify", max_epsilon=30.0, random_state=0, on_failure="last"
    )
    last = limited.plan(N, 1).last_epsilon
    assert GRID[0] < last < GRID[-1]
    shorter = clone(limited).set_params(param_grid={"epsilon": GRID[GRID <= last]}, max_epsilon=math.inf)
    with pytest.warns(UserWarning, match="random_state"):
        limited.fit(X, y), shorter.fit(X, y)
    assert limited.privacy_ == shorter.privacy_
    np.testing.assert_array_equal(limited.path_["model"], shorter.path_["model"])
    np.testing.assert_array_equal(limited.path_["answer"], shorter.path_["answer"])


@pytest.mark.parametrize(
    "method, criterion",
    [
        ("auto", "risk"),
        ("above_threshold", "risk"),
        ("predict_verify", "brier"),
    ],
)
def test_too_small_a_limit_is_refused_with_the_least_that_serves(method, criterion):
    class Shape:
        """Records that have a shape and nothing else."""

        shape, ndim, dtype = (N, 1), 2, np.dtype(float)

        def __len__(self):
            return N

        def touched(self, *_, **__):
            raise AssertionError("the data was touched")

        __array__ = __getitem__ = __iter__ = touched

    search = make_search("output", criterion, method, max_epsilon=0.0101)
    for refused in (lambda: search.plan(N, 1), lambda: search.fit(Shape(), Shape())):
        with pytest.raises(ValueError, match="max_epsilon=0.0101 .*write .* or more") as caught:
            refused()
    least = float(str(caught.value).split("write ")[1].split()[0])
    plan = search.set_params(max_epsilon=least).plan(N, 1)
    assert plan.chosen.most <= least and plan.last_epsilon >= GRID[0]
    with pytest.raises(ValueError, match="max_epsilon"):
        search.set_params(max_epsilon=least * 0.999).plan(N, 1)


@pytest.mark.parametrize("limit", [STEP, STEP / 2])
def test_steps_that_take_all_are_refused_before_the_data(limit):
    search = make_search("private step", max_epsilon=limit)
    for refused in (lambda: search.plan(N, 1), lambda: search.fit(object(), object())):
        with pytest.raises(ValueError, match=r"0.125 for DPBoundsScaler.*write more than 0.125"):
            refused()


def test_certified_within_a_limit():
    X, y = random_labels()
    search = make_search("output", "excess_risk", "certified", target=0.01)
    needed = search.plan(N, 1).chosen.most
    assert 0.01 < needed < 100
    assert search.set_params(max_epsilon=needed).fit(X, y).privacy_.epsilon == needed
    search.set_params(max_epsilon=needed * 0.999)
    assert search.plan(N, 1).chosen.most == 0.0
    with pytest.raises(AccuracyNotReachedError, match="max_epsilon") as caught:
        search.fit(X, y)
    assert caught.value.privacy.epsilon == search.privacy_.epsilon == 0.0
    search.set_params(on_failure="last").fit(X, y)
    assert search.privacy_.epsilon == search.plan_.at_most.epsilon < needed
    assert not search.reached_


@pytest.mark.slow
def test_auto_takes_what_is_forecast_to_be_enough():
    # within this limit the cheaper plan is one of models that would not be found
    for limit in np.geomspace(0.5, 50, 6):
        search = make_search("output", "excess_risk", max_epsilon=limit, target=0.05)
        plan = search.plan(N, 1)
        enough = [
            m.method
            for m in plan.methods
            if m.total < math.inf
            and not any(
                "No epsilon" in said
                for said in clone(search).set_params(method=m.method).plan(N, 1).messages
            )
        ]
        assert not enough or plan.method in enough


@pytest.mark.parametrize(
    "value, error",
    [
        (0.0, ValueError),
        (-1.0, ValueError),
        (math.nan, ValueError),
        ("none", TypeError),
        (None, TypeError),
        (True, TypeError),
    ],
)
def test_bad_limits(value, error):
    with pytest.raises(error, match="max_epsilon"):
        make_search("output", max_epsilon=value).fit(object(), object())


# --- the ledger is asked first


@pytest.mark.parametrize("method", ["certified", "predict_verify", "above_threshold", "doubling"])
@pytest.mark.parametrize("name", ["output", "private step"])
def test_nothing_is_read_or_learned_before_the_ledger_agrees(name, method, tmp_path):
    X, y = random_labels()
    ledger = PrivacyLedger(tmp_path / "small", epsilon=STEP)
    search = make_search(name, "excess_risk", method, target=0.05, delta=0.0, ledger=ledger)
    for change in (
        lambda X, y: (X, y),
        lambda X, y: (X, np.where(np.arange(N) == 3, 7, y)),
        lambda X, y: (np.where(np.arange(N)[:, None] == 3, np.nan, X), y),
    ):
        with pytest.raises(BudgetExceededError):
            search.fit(*change(X, y))
    assert ledger.history() == [] and ledger.spent() == (0.0, 0.0)
    assert not hasattr(search, "privacy_")
    # the same errors come as they are where there is a budget
    with pytest.raises(ValueError, match="classes"):
        search.set_params(ledger=None).fit(X, np.where(np.arange(N) == 3, 7, y))


def test_plans_spend_nothing(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=1.0)
    grid = StabilityGridSearchCV(
        make_pipeline(DPBoundsScaler(STEP), LOGISTIC), {"dplogisticregression__alpha": [0.1, 1.0]}
    )
    with ledger:
        make_search("private step").plan(N, 1)
        grid.plan(N, 1)
    assert ledger.history() == []


# --- after a failure


def test_what_a_failed_search_leaves():
    X, y = random_labels()
    search = make_search("output", "risk", "predict_verify", target=0.1)
    # what an earlier search left is gone
    search.set_params(target=5.0).fit(X, y)
    assert search.reached_ and hasattr(search, "best_estimator_")
    with pytest.raises(AccuracyNotReachedError, match="a larger max_epsilon") as caught:
        search.set_params(target=0.1).fit(X, y)
    assert {name for name in vars(search) if name.endswith("_")} == {
        "privacy_",
        "plan_",
        "method_",
        "reached_",
    }
    assert search.privacy_ == caught.value.privacy and not search.reached_
    assert search.privacy_.epsilon == search.plan_.at_most.epsilon > 0
    for use in (search.predict, lambda X: search.score(X, y)):
        with pytest.raises(NotFittedError):
            use(X.copy() / 2)
    assert not hasattr(search, "n_features_in_") and f"{search.privacy_.epsilon:.6g}" in (
        search._repr_html_()
    )


# --- low findings


@pytest.mark.parametrize("strategy", ["auto", "random", "budget_split"])
def test_models_that_only_look_private_are_refused_before_any_data(strategy):
    search = StabilityGridSearchCV(
        SGDClassifier(), {"alpha": [0.1, 1.0]}, strategy=strategy, scoring="accuracy"
    )
    with pytest.raises(CertificateError, match="SGDClassifier"):
        search.fit(object(), object())


def test_steps_without_privacy_have_no_part():
    pipeline = make_pipeline(BoundedScaler((-1, 1)), ESTIMATORS["output"])
    search = AccuracyFirstSearchCV(
        pipeline, {epsilon_name(pipeline): GRID}, target=0.3, criterion="risk"
    )
    assert (
        search.plan(N, 1).chosen
        == clone(search)
        .set_params(estimator=ESTIMATORS["output"], param_grid={"epsilon": GRID})
        .plan(N, 1)
        .chosen
    )
