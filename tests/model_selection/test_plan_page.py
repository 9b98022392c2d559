"""The page of a plan: its numbers are those of plans, it needs nothing else, and it reads no record."""

import json
import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone

from dpselect import DPHuberRegressor, DPLogisticRegression, DPRidge, StabilityGridSearchCV
from dpselect.model_selection import plan_grid
from dpselect.preprocessing import tabular_pipeline

SCHEMA = {"age": (0, 100), "</script><b>": ["yes", "no"], "bmi": (10, 60), "job": list("abcdefgh")}
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
        assert cell["advice"] == list(plan.advice) and cell["strategy"] == plan.strategy
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
    # a rare class says less
    common, rare = found["plans"][0][0][0][0]["kept"]
    assert common[0] != rare[0]
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_a_twin_that_forgets_the_columns_is_seen(monkeypatch):
    usual = plan_grid.PlanGrid.plan
    monkeypatch.setattr(
        plan_grid.PlanGrid, "plan", lambda self, epsilon, n, delta, k: usual(self, epsilon, n, delta)
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
    from dpselect import PrivacyLedger

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
