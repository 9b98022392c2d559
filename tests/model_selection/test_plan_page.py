"""The page of a plan: its numbers are those of plans, it needs nothing else, and it reads no record."""

import json
import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone

from dpselect import (
    DPHuberRegressor,
    DPLogisticRegression,
    DPRidge,
    PrivacyLedger,
    PrivacyLoss,
    StabilityGridSearchCV,
    StabilitySearchDisplay,
    coef_interval_forecast,
)
from dpselect.model_selection import plan_grid
from dpselect.preprocessing import tabular_pipeline

SCHEMA = {"age": (0, 100), "</script><b>": ["yes", "no"], "bmi": (10, 60), "job": list("abcdefgh")}
MODEL = DPLogisticRegression(classes=[0, 1])
EXAMPLE = np.array([[40, "yes", 20, "a"]], dtype=object)


@pytest.fixture(autouse=True)
def small_grid(monkeypatch):
    monkeypatch.setattr(plan_grid, "EPSILONS", (3.0,))
    monkeypatch.setattr(plan_grid, "RECORDS", (1 / 4, 1))
    monkeypatch.setattr(plan_grid, "COLUMNS", (1 / 2, 1))
    monkeypatch.setattr(plan_grid, "HELD", (1 / 9, 1 / 4))
    monkeypatch.setattr(plan_grid, "SHARES", (0.5, 0.1))


def search(model=None, grid=None, **parameters):
    if model is None:
        model = tabular_pipeline(SCHEMA, DPLogisticRegression(classes=[0, 1]))
    return StabilityGridSearchCV(model, grid or {}, epsilon=1.0, **parameters)


def planned(searched, n=4000):
    return searched.plan(n, 4, example=EXAMPLE)


def check_cells(searched, found):
    """Check some points of a grid against plans of the search that they are about."""
    axes, names = found["axes"], [*SCHEMA]
    assert axes["epsilon"] == [1.0, 3.0] and axes["columns"] == [2, 4]
    assert axes["records"] == [800, 3200] and axes["delta"] == [0.0, 1e-6]
    for e, n, k, d in ((0, 0, 0, 0), (0, 1, 1, 0), (1, 1, 0, 1), (1, 0, 1, 0)):
        cell = found["plans"][e][n][k][d]
        other = clone(searched).set_params(
            epsilon=axes["epsilon"][e],
            evaluation=None,
            estimator__model__delta=axes["delta"][d],
            estimator__encoder__columns=names[: axes["columns"][k]],
        )
        plan = planned(other, axes["records"][n])
        kept = [
            f"{each.median:.0%} ({each.low:.0%} to {each.high:.0%})" for each in plan.expected_quality
        ]
        assert [f"{median} ({low} to {high})" for low, median, high in cell["kept"][0]] == kept
        assert cell["quality"][0] + cell["advice"] == list(plan.advice)
        assert f"(epsilon = {plan.epsilon:g}, delta = {plan.delta:g})" in cell["statement"]


def test_every_number_is_that_of_a_plan():
    searched = search(evaluation=0.2)
    found = planned(searched).to_grid()
    check_cells(searched, found)
    start, axes = found["start"], found["axes"]
    assert {name: axes[name][start[name]] for name in ("epsilon", "records", "columns", "delta")} == {
        "epsilon": 1.0,
        "records": 3200,  # a fifth is set aside
        "columns": 4,
        "delta": 0.0,
    }
    assert axes["target"][start["target"]] == axes["reachable"][start["reachable"]] - 0.05
    # the records that were held out, whatever their share
    for share in (0.2, 0.3):
        held = planned(search(evaluation=share)).to_grid()
        assert held["axes"]["held"][held["start"]["held"]] == round(share * 4000)
    # a rare class says less
    common, rare = found["plans"][0][0][0][0]["kept"]
    assert common[0] != rare[0]
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_what_an_auc_would_be_follows_from_what_is_kept():
    found = planned(search(), 3200).to_grid()
    (expected,) = {e for e in planned(search(), 3200).expected_quality if e.metric == "roc_auc"}
    j = found["axes"]["reachable"].index(0.9)
    reached = found["plans"][0][-1][-1][0]["reached"][0][j]
    assert reached == [
        f"{0.5 + 0.4 * part:.2f}" for part in (expected.low, expected.median, expected.high)
    ]


def test_leaving_out_a_long_column_gains_most():
    found = planned(search(), 3200).to_grid()
    for epsilon, without in zip(found["axes"]["epsilon"], found["without"], strict=True):
        gains = {each["column"]: float(each["times"]) for each in without}
        assert list(gains)[0] == "job" and list(gains.values())[-1] > 1
        # fewer columns as another search has them; "age" and "bmi" are encoded alike, and one is asked
        whole = planned(search().set_params(epsilon=epsilon), 3200).expected_quality[0].signal
        for left_out in SCHEMA:
            three = {name: entry for name, entry in SCHEMA.items() if name != left_out}
            model = tabular_pipeline(three, DPLogisticRegression(classes=[0, 1]))
            other = search(model).set_params(epsilon=epsilon).plan(3200, 3)
            times = other.expected_quality[0].signal / whole
            assert times < 1.05 or gains[left_out] == pytest.approx(times, abs=0.01)


def test_a_twin_that_takes_all_columns_for_one_kind_is_seen(monkeypatch):
    monkeypatch.setattr(plan_grid, "_kind", lambda column: 0)
    with pytest.raises(AssertionError):
        test_leaving_out_a_long_column_gains_most()


def test_intervals_of_coefficients_are_those_of_their_forecast():
    model = tabular_pipeline({"age": (0, 100), "bmi": (10, 60)}, MODEL, expansion="linear")
    found = search(model).plan(1500, 2).to_grid()["intervals"]
    assert [float(each["median"]) <= float(each["widest"]) for each in found] == [True, True]
    assert float(found[1]["median"]) < float(found[0]["median"])  # by a larger epsilon
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.uniform(0, 100, 20_000), rng.uniform(10, 60, 20_000)])
    y = rng.integers(2, size=20_000)
    fitted = clone(model).fit(X[:10_000], y[:10_000])
    widths = coef_interval_forecast(fitted, X[10_000:], y[10_000:], epsilon=1.0, n_samples=1500)
    del widths["intercept"]
    assert float(found[0]["widest"]) == pytest.approx(max(widths.values()), rel=0.3)
    # of so few nothing is known
    (few, _) = planned(search(), 400).to_grid()["intervals"]
    assert "says nothing of" in few["why"]
    of_persons = search(model).plan(1500, 2, persons=True).to_grid()["intervals"]
    assert float(of_persons[1]["median"]) >= float(found[1]["median"])


def test_a_page_counts_what_a_ledger_carries(tmp_path):
    ledger, persons = PrivacyLedger(tmp_path / "l", epsilon=10.0, delta=1e-6), tmp_path / "persons"
    ledger.spend(2.5)
    plan = search(MODEL).plan(2000, 3)
    found = plan.to_grid(ledger)
    assert found["releases"][0]["carried"] == {"1": 1, "2": 2, "5": 5, "10": 10}
    # delta is reserved, and there is enough for one
    assert [cell["carried"] for cell in found["plans"][0][-1][0]] == [7, 1]
    assert found["ledger"] == str(ledger)
    assert ledger.spent() == (2.5, 0.0) and plan.loss == PrivacyLoss(1.0, label="plan")
    with pytest.raises(ValueError, match="adjacency"):
        plan.to_html(PrivacyLedger(persons, epsilon=1.0, adjacency="replace all rows of one person"))


def test_a_page_and_the_picture_of_a_search_agree():
    pytest.importorskip("matplotlib")
    plan = search(MODEL, {"alpha": [0.001, 0.1]}, scoring="ramp", strategy="stability").plan(5000, 3)
    said = plan.to_grid()["plans"][0][-1][0][0]
    display = StabilitySearchDisplay.from_plan(plan).plot()
    noise, stake = (line.get_xdata()[0] for line in display.ax_.lines)
    assert said["division"] == (
        f"{display.ax_.get_title()}; minimum detectable difference of scores {noise:.2g}, and a perfect "
        f"model gains {stake:.2g}."
    )
    assert {*said["quality"][0], *said["advice"]} == {*plan.messages, *plan.advice}


def test_a_twin_that_forgets_the_columns_is_seen(monkeypatch):
    usual = plan_grid.PlanGrid.plan
    monkeypatch.setattr(
        plan_grid.PlanGrid,
        "plan",
        lambda self, epsilon, n, delta=0.0, k=None: usual(self, epsilon, n, delta),
    )
    searched = search()
    with pytest.raises(AssertionError):
        check_cells(searched, planned(searched, 3200).to_grid())


def test_the_page_is_one_file_that_needs_nothing():
    plan = planned(search(), 3200)
    page = plan.to_html()
    assert len(page) < 1e6 and not re.search(r"https?:|src=|@import|url\(", page)
    numbers = re.search(r'<script type="application/json" id="numbers">(.*?)</script>', page, re.DOTALL)
    assert json.loads(numbers[1]) == plan.to_grid()
    # names of a schema are text and no markup
    assert "</script><b>" not in page and page.count("</script>") == 2
    for row in ("<th scope=row>3</th>", "<th scope=row>1</th>"):
        assert row in page
    assert "$" not in page.partition("<script>")[0].replace("</", "")


def test_a_page_spends_nothing_and_leaves_the_search_as_it_is(tmp_path):
    ledger = PrivacyLedger(tmp_path / "l", epsilon=1.0)
    searched = search(ledger=ledger)
    before = str(searched.get_params())
    planned(searched, 3200).to_html()
    assert ledger.spent() == (0.0, 0.0) and str(searched.get_params()) == before


def test_searches_of_other_models():
    found = search(DPHuberRegressor(target_range=(0, 1))).plan(2000, 3).to_grid()
    assert found["metrics"] == ["r2"] and found["axes"]["share"] == [] and found["columns"] == []
    assert found["axes"]["columns"] == [3]
    found = search(DPRidge(target_range=(0, 1))).plan(2000, 3).to_grid()
    assert found["plans"][0][0][0][0]["kept"] == [[]] or found["plans"][0][0][0][0]["kept"] == []
    given = DPLogisticRegression(classes=[0, 1], base_rate=0.9, delta=1e-7)
    found = search(given).plan(2000, 3).to_grid()
    assert found["axes"]["share"] == pytest.approx([0.1]) and found["axes"]["delta"] == [0.0, 1e-7]
    assert found["start"]["delta"] == 1
    three = search(DPLogisticRegression(classes=[0, 1, 2])).plan(2000, 3, 3)
    assert "There is no forecast" in three.to_html()


def test_a_plan_from_a_file_says_how_to_get_the_page():
    plan = pickle.loads(pickle.dumps(planned(search(), 3200)))
    for asked in (plan.to_html, plan.to_grid):
        with pytest.raises(ValueError, match="call plan of the search"):
            asked()
    assert "expected to keep" in str(plan)


def test_notebooks_show_the_forecast():
    plan = planned(search(), 3200)
    shown = plan._repr_html_()
    assert all(str(each) in shown for each in plan.expected_quality) and "<script" not in shown


def test_what_no_epsilon_changes_is_made_once(monkeypatch):
    monkeypatch.setattr(plan_grid, "RECORDS", (1,))
    monkeypatch.setattr(plan_grid, "COLUMNS", (1 / 2, 1))
    made, usual = [], StabilityGridSearchCV._given
    monkeypatch.setattr(
        StabilityGridSearchCV, "_given", lambda self, *args: made.append(args) or usual(self, *args)
    )
    searched = search(grid={"model__alpha": [0.01, 0.1]})
    planned(searched).to_grid()
    at_two = len(made)
    monkeypatch.setattr(plan_grid, "EPSILONS", (0.5, 7.0))
    found = planned(searched).to_grid()
    assert len(made) == 2 * at_two and len(found["axes"]["epsilon"]) == 3
    # nothing of another epsilon stays in it
    alone = planned(clone(searched).set_params(epsilon=7.0)).to_grid()
    assert found["plans"][-1] == alone["plans"][-1] and found["without"][-1] == alone["without"][-1]
