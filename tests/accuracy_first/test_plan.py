import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures

from dpselect import (
    AccuracyFirstSearchCV,
    CertificateError,
    DPHistogramDensity,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
)
from dpselect.model_selection.accuracy_first.limit import TIMES_EXPECTED
from dpselect.model_selection.accuracy_first.methods import PredictVerify
from dpselect.preprocessing import DPBoundsScaler

GRID = np.geomspace(0.001, 100, 200)
TESTING = ["predict_verify", "above_threshold", "reduced_above_threshold", "doubling"]
COMPARED = ["published_above_threshold", "theory"]


def plan(estimator=None, n=10_000, p=5, n_classes=2, grid=GRID, target=0.05, **parameters):
    estimator = estimator or DPRidge(alpha=0.1, perturbation="output", target_range=(-1, 1))
    return AccuracyFirstSearchCV(
        estimator, {"epsilon": grid}, target=target, **{"delta": 1e-6, **parameters}
    ).plan(n, p, n_classes)


def totals(plan):
    return {method.method: method.total for method in plan.methods}


@pytest.mark.parametrize("method", ["certified", "brownian", *TESTING, *COMPARED])
@pytest.mark.parametrize(
    "estimator",
    [
        DPRidge(alpha=0.1, perturbation="output", target_range=(-1, 1)),
        DPLogisticRegression(alpha=0.1, perturbation="output"),
        DPLinearSVC(alpha=0.1, perturbation="output", norm="l1"),
        DPHistogramDensity(bin_width=0.5, bounds=(0, 1)),
    ],
    ids=lambda e: type(e).__name__,
)
def test_every_method_has_a_plan(estimator, method):
    named = plan(estimator, p=2, method=method)
    assert named.method == named.chosen.method == method and len(named.methods) == 1
    chosen = named.chosen
    assert chosen.total == chosen.generating + chosen.testing and chosen.reason == ""
    assert chosen.generating in GRID or method == "doubling"
    assert chosen.total <= chosen.most == named.at_most.epsilon <= TIMES_EXPECTED * chosen.total
    static = method in ("certified", "theory")
    assert chosen.kind == ("differential privacy" if static else "ex-post")
    assert (chosen.testing == 0) == static
    message = named.messages[0]
    assert message.startswith(f"The method is {method}; it ")
    assert chosen.expected_to_reach
    assert f"epsilon={chosen.total:.4g}" in message
    assert ("known before the data" in message) == static
    assert ("about" in message and "privacy_" in message) != static
    assert (f"epsilon={chosen.most:.4g} at most" in message) != static
    last = f"No epsilon above {named.last_epsilon:.4g} is tried"
    cut = [message for message in named.messages if message.startswith(last)]
    assert len(cut) == (named.last_epsilon < GRID[-1]) == (not static)


@pytest.mark.parametrize(
    "estimator",
    [
        DPRidge(alpha=0.1, target_range=(-1, 1)),
        DPRidge(alpha=0.1, perturbation="objective", target_range=(-1, 1)),
        DPLogisticRegression(alpha=0.1),
        DPLinearSVC(alpha=0.1, perturbation="output"),
        DPHistogramDensity(bin_width=0.25, bounds=(0, 1)),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"delta": 0.0},
        {"criterion": "risk", "target": 1.0},
        {"criterion": "score", "target": 0.5},
    ],
    ids=str,
)
def test_auto_takes_the_least_of_all_that_serve(estimator, parameters):
    if parameters.get("criterion") == "score":
        parameters = {**parameters, "criterion": estimator.default_scoring}
    automatic = plan(estimator, p=1, **parameters)
    # those that are there for comparison only are left out
    assert set(totals(automatic)) == {"certified", "brownian", *TESTING}
    assert automatic.chosen.total == min(totals(automatic).values()) < np.inf
    for method in automatic.methods:
        if method.reason:
            assert method.total == np.inf
            with pytest.raises(CertificateError) as caught:
                plan(estimator, p=1, method=method.method, **parameters)
            assert str(caught.value) == method.reason
        else:
            assert plan(estimator, p=1, method=method.method, **parameters).chosen == method
    assert automatic.messages[0].startswith(f"The cheapest method is {automatic.method}; it ")


def test_models_and_tests_of_a_score_are_not_added():
    for method in ("above_threshold", "doubling"):
        chosen = plan(criterion="clipped_squared_error", target=0.5, method=method).chosen
        assert chosen.total == max(chosen.generating, chosen.testing)
        assert chosen.generating > 0 and chosen.testing > 0


@pytest.mark.parametrize("method", ["certified", "brownian", *TESTING, *COMPARED])
def test_more_records_and_larger_targets_cost_less(method):
    base = plan(method=method).chosen
    for other in (plan(method=method, n=100_000).chosen, plan(method=method, target=0.5).chosen):
        assert other.total < base.total and other.generating <= base.generating
    assert plan(method=method, p=50).chosen.generating > base.generating
    assert plan(method=method, failure_probability=1e-4).chosen.total >= base.total


def test_the_published_constants_cost_more():
    published, tighter, reduced = (
        plan(method=f"{name}above_threshold").chosen.testing for name in ("published_", "", "reduced_")
    )
    assert published > 2.5 * tighter > 2.5 * reduced


def test_the_sensitivity_is_that_of_the_documentation():
    alpha, n, R = 0.1, 10_000, np.sqrt(2)
    risk = (1 + R / (2 * np.sqrt(alpha))) ** 2 / (2 * n)
    assert plan().sensitivity == pytest.approx(2 * risk)
    assert plan(criterion="risk").sensitivity == pytest.approx(risk)
    # a fifth is held out
    score = plan(criterion="clipped_squared_error").sensitivity
    assert score == pytest.approx(1 / 2000)
    density = DPHistogramDensity(bin_width=0.25, bounds=(0, 1))
    assert plan(density, p=1).sensitivity == pytest.approx(4 / (n * 0.25))
    assert plan(density, p=1, criterion="risk", target=-0.1).sensitivity == pytest.approx(2 / (n * 0.25))


def test_classes_share_the_loss():
    estimator = DPLogisticRegression(alpha=0.1)
    two, three = (plan(estimator, n_classes=k, method="certified").chosen.total for k in (2, 3))
    assert 2 * two < three < 5 * two
    named = DPLogisticRegression(alpha=0.1, classes=["a", "b", "c"])
    assert plan(named, method="certified").chosen.total == three


def test_a_grid_that_is_too_small():
    for parameters in ({"method": "certified"}, {"method": "theory"}):
        few = plan(n=10, grid=[0.01, 0.1], **parameters)
        assert few.chosen.total == np.inf and not few.chosen.expected_to_reach
        (message,) = few.messages
        # nothing would be released
        assert few.chosen.most == few.at_most.epsilon == 0.0
        assert "No epsilon up to 0.1" in message and "n_samples=10" in message
        assert "larger grid, target, max_epsilon or n_samples" in message
        last = plan(n=10, grid=[0.01, 0.1], on_failure="last", **parameters)
        assert last.chosen.most == 0.1 and "on_failure='last'" in last.messages[1]


@pytest.mark.slow
def test_a_method_that_is_expected_to_fail_is_no_cheap_one():
    kinds = set()
    model = DPLogisticRegression(alpha=0.05, classes=[0, 1], perturbation="output")
    for limit in np.geomspace(0.5, 6, 8):
        found = plan(model, target=0.02, delta=0.0, max_epsilon=limit, n=1000, p=20)
        chosen, served = found.chosen, [m for m in found.methods if not m.reason]
        reaching = [m for m in served if m.expected_to_reach]
        assert chosen.total == min(m.total for m in reaching or served)
        assert not any(m.expected_to_reach for m in found.methods if m.reason)
        said = found.messages[0]
        dearer = chosen.total > min(m.total for m in served)
        kinds.add((chosen.expected_to_reach, dearer))
        assert said.startswith(("No method is expected to reach", "No epsilon up")) == (not reaching)
        assert ("method that is expected to reach the target is" in said) == bool(reaching and dearer)
        assert any("No epsilon up to" in m for m in found.messages) == (not reaching)
        # what is printed and written down says the same
        lines = [line.split() for line in str(found).splitlines()[1 : len(served) + 1]]
        printed = {line[0]: line[5] for line in lines}
        assert printed == {m.method: "yes" if m.expected_to_reach else "no" for m in served}
        assert lines[0][0] == found.method
        assert [m["expected_to_reach"] for m in found.to_dict()["methods"]] == [
            m.expected_to_reach for m in found.methods
        ]
    assert kinds == {(False, False), (True, True), (True, False)}


@pytest.mark.slow
def test_predict_verify_takes_a_test_with_which_it_can_reach_the_target(monkeypatch):
    margins, mixed = PredictVerify.MARGINS, 0
    for last in np.geomspace(0.5, 20, 30):

        def reaches(shares):
            monkeypatch.setattr(PredictVerify, "MARGINS", shares)
            grid = np.geomspace(0.01, last, 100)
            return plan(
                n=1000, target=0.05, method="predict_verify", grid=grid, max_epsilon=np.inf
            ).chosen.expected_to_reach

        alone = [reaches([share]) for share in margins[::8]]
        assert reaches(margins[::8]) == any(alone)
        mixed += any(alone) and not all(alone)
    assert mixed


def test_the_delta_of_models_is_told():
    def messages(delta, **parameters):
        model = DPLogisticRegression(alpha=0.1, classes=[0, 1], delta=delta)
        found = plan(model, p=50, n=5000, criterion="risk", delta=0.0, target=0.5, **parameters)
        return found, [said for said in found.messages if "delta=" in said]

    found, (said,) = messages(1e-6, method="doubling")
    assert f"delta={found.at_most.delta:.4g} at most" in said and "each model" in said
    assert found.at_most.delta > 2e-6
    assert messages(0.0, method="doubling")[1] == []


@pytest.mark.parametrize("alpha, told", [(0.1, True), ("auto", False)])
def test_an_alpha_that_was_written_is_told_where_auto_would_serve(alpha, told):
    model = DPLogisticRegression(alpha=alpha, classes=[0, 1])
    found = plan(model, criterion="accuracy", target=0.8)
    assert any(said.startswith("alpha=0.1 was written") for said in found.messages) == told
    # a risk needs a number, and so does ridge regression
    assert not any("alpha=" in said for said in plan(DPLogisticRegression(alpha=0.1)).messages)
    ridge = plan(DPRidge(alpha=0.1, target_range=(-1, 1)), criterion="clipped_squared_error")
    assert not any("alpha=" in said for said in ridge.messages)


@pytest.mark.slow
def test_text():
    text = str(plan())
    head, *lines = text.splitlines()
    assert head.split()[:6] == ["method", "generating", "testing", "total", "at", "most"]
    methods = [line.split()[0] for line in lines[:6]]
    assert sorted(methods) == sorted(["certified", "brownian", *TESTING])
    assert {line.split()[5] for line in lines[:6]} == {"yes"}
    by_total = [float(line.split()[3]) for line in lines[:6]]
    assert by_total == sorted(by_total) and methods[0] == plan().method
    assert lines[6:] == list(plan().messages)
    refused = str(plan(delta=0.0))
    # a reason is no entry of a table
    (why,) = (line for line in refused.splitlines() if "write for instance delta=1e-6" in line)
    assert why.startswith("No plan for brownian: ") and refused.splitlines().index(why) == 6
    together = str(plan(DPLogisticRegression(alpha=0.1, classes=[0, 1]), delta=0.0, criterion="risk"))
    (why,) = (line for line in together.splitlines() if "perturbation='output'" in line)
    assert "above_threshold, " in why.partition(":")[0]


def test_steps_change_the_columns():
    pipeline = make_pipeline(
        DPBoundsScaler(0.5), PolynomialFeatures(2), DPRidge(alpha=0.1, target_range=(-1, 1))
    )

    def search(estimator, name):
        return AccuracyFirstSearchCV(estimator, {name: GRID}, target=0.05)

    whole = search(pipeline, "dpridge__epsilon").plan(10_000, 3)
    # 1, three columns, their squares and products
    bare = search(DPRidge(alpha=0.1, target_range=(-1, 1)), "epsilon").plan(10_000, 10).chosen
    assert whole.chosen == replace(bare, total=0.5 + bare.total, most=0.5 + bare.most)
    assert whole.messages[-1].endswith("released before them: 0.5 for DPBoundsScaler.")
    encoder = OneHotEncoder(categories=[["a", "b", "c"]], handle_unknown="ignore")
    coded = search(make_pipeline(encoder, DPRidge(alpha=0.1, target_range=(-1, 1))), "dpridge__epsilon")
    assert (
        coded.plan(10_000, 1, example=[["a"]]).chosen
        == search(DPRidge(alpha=0.1, target_range=(-1, 1)), "epsilon").plan(10_000, 3).chosen
    )


@pytest.mark.parametrize("random_state", [None, 0, np.random.RandomState(0)])
def test_plan_touches_no_state_and_warns_of_no_seed(random_state):
    np.random.seed(0)
    before = pickle.dumps(np.random.get_state())
    search = AccuracyFirstSearchCV(
        DPLogisticRegression(alpha=0.1),
        {"epsilon": GRID},
        target=0.3,
        criterion="brier",
        random_state=random_state,
    )
    key = pickle.dumps(random_state)
    assert str(search.plan(1000, 3)) == str(search.plan(1000, 3))
    assert pickle.dumps(np.random.get_state()) == before and pickle.dumps(random_state) == key
    assert not [name for name in vars(search) if name.endswith("_")]
    assert search.estimator.classes is None


@pytest.mark.parametrize(
    "shape, name",
    [
        ((0, 3), "n_samples"),
        ((10, 0), "n_features"),
        ((10.5, 3), "n_samples"),
        ((10, "3"), "n_features"),
        ((float("nan"), 3), "n_samples"),
        ((10, 3, 1), "classes"),
    ],
)
def test_bad_shapes(shape, name):
    search = AccuracyFirstSearchCV(DPLogisticRegression(alpha=0.1), {"epsilon": GRID}, target=0.3)
    with pytest.raises((ValueError, TypeError), match=name):
        search.plan(*shape)


def test_bad_parameters_are_refused_by_the_plan_too():
    with pytest.raises(CertificateError, match="delta=1e-6"):
        plan(method="brownian", delta=0.0)
    with pytest.raises(ValueError, match="does not increase"):
        plan(grid=[1.0, 0.5])


@pytest.mark.parametrize("target", [0.0, -1.0])
def test_targets_that_cannot_be_met_are_refused_by_the_plan_too(target):
    with pytest.raises(ValueError, match="target=.*greater than 0"):
        plan(target=target)


@pytest.mark.parametrize("parameters", [{}, dict(max_epsilon=float("inf"), method="above_threshold")])
def test_a_plan_as_numbers_and_strings(parameters):
    found = plan(target=1e-9, **parameters)
    said = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert said["method"] == found.method and said["messages"] == list(found.messages)
    assert said["at_most"]["epsilon"] == found.at_most.epsilon
    assert [method["method"] for method in said["methods"]] == list(totals(found))
    assert said["last_epsilon"] == found.last_epsilon and said["sensitivity"] == found.sensitivity


def with_reachable(reachable, target=0.84, criterion="accuracy"):
    model = DPLogisticRegression(classes=[0, 1], alpha=0.01 if criterion == "excess_risk" else "auto")
    search = AccuracyFirstSearchCV(model, {"epsilon": GRID}, target=target, criterion=criterion)
    return search.plan(30_000, 5, reachable=reachable)


@pytest.mark.parametrize("criterion, target, sign", [("accuracy", 0.84, 1), ("brier", 0.1, -1)])
def test_what_no_model_reaches_is_not_expected(criterion, target, sign):
    unknown = with_reachable(None, target, criterion)
    assert unknown.chosen.expected_to_reach
    # a model is found only if models reach this
    needed = float(unknown.messages[-1].rpartition("models reach ")[2].rstrip("."))
    assert sign * (needed - target) > 0
    for reachable, expected in ((needed + sign * 1e-3, True), (needed - sign * 1e-3, False)):
        known = with_reachable(reachable, target, criterion)
        assert known.chosen.expected_to_reach == expected
        assert ("said to reach" in known.messages[0]) != expected
        assert totals(known) == totals(unknown)  # what it costs stays
    assert "yes" not in str(with_reachable(target - sign * 0.01, target, criterion))


@pytest.mark.parametrize("reachable", ["0.9", float("nan"), float("inf"), True])
def test_what_is_reachable_is_a_number(reachable):
    with pytest.raises((TypeError, ValueError), match="reachable"):
        with_reachable(reachable)


def test_an_excess_is_reached_without_privacy():
    with pytest.raises(ValueError, match="leave it out"):
        with_reachable(0.1, 0.01, "excess_risk")
