import json
import pickle
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from dpselect import (
    DPHistogramDensity,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    StabilityGridSearchCV,
)
from dpselect.model_selection import planned as planned_module
from dpselect.model_selection.strategies import STRATEGIES
from dpselect.model_selection.strategies.stability_plan import _at_least

CV13_GRID = [0.001, 0.112, 0.223, 0.334, 0.445, 0.556, 0.667, 0.778, 0.889, 1]


ALONE = DPLogisticRegression(fit_intercept=False)


def plan(grid, n=17_118, d=10, scoring="ramp", estimator=ALONE, **parameters):
    search = StabilityGridSearchCV(
        estimator,
        {"alpha": grid},
        scoring=scoring,
        **{"strategy": "stability", **parameters},
    )
    return search.plan(n, d)


def test_the_smallest_lambda_of_the_papers_grid_sets_the_noise():
    with_it, without = plan(CV13_GRID), plan(CV13_GRID[1:])
    said = " ".join(with_it.messages)
    assert "alpha=0.001 sets the noise of all candidates" in said
    assert "underpowered" in said and "drop alpha=0.001" in said
    assert not any("underpowered" in text for text in without.messages)
    gain = with_it.noise_scale.max() / without.noise_scale.max()
    assert f"{gain:.3g} times less" in said and gain > 50


def test_the_fixes_it_names_are_enough():
    poor = plan([0.01, 0.1, 1.0], n=1000)
    fixes = next(text for text in poor.messages if text.startswith("To see differences"))
    n = int(fixes.partition("n_samples >= ")[2].split(",")[0].rstrip("."))
    epsilon = float(fixes.partition("epsilon >= ")[2].rstrip("."))
    goal = 0.05
    assert plan([0.01, 0.1, 1.0], n=1000).minimum_detectable_difference > 0.25
    assert plan([0.01, 0.1, 1.0], n=n).minimum_detectable_difference <= 1.01 * goal
    assert plan([0.01, 0.1, 1.0], n=n // 2).minimum_detectable_difference > goal
    assert plan([0.01, 0.1, 1.0], n=1000, epsilon=epsilon).minimum_detectable_difference <= 1.01 * goal


@pytest.mark.parametrize("powers", [(1.0, 1.0, 1.0), (2.0, 2.0, 0.5), (2.0, 2.0, 0.0)])
def test_a_fix_is_enough_for_a_candidate_that_becomes_the_loudest(powers):
    """The two loudest candidates are asked first, and with more records they may be others."""
    loudness, asked = np.array([9.0, 8.0, 4.0]), []

    def blur(factor, some):
        asked.append(len(some))
        return float((loudness * factor ** -np.array(powers))[list(some)].max())

    fix = _at_least("n_samples", 1000, blur, np.arange(3), 1.0)
    if powers[2] == 0:
        assert fix is None
        return
    least = 1000 * max(loudness ** (1 / np.array(powers)))
    assert least <= int(fix.removeprefix("n_samples >= ")) <= 1.011 * least
    assert asked.count(3) == 1 or powers[2] != 1


def test_few_records_for_many_columns():
    assert any("n_samples >=" in text for text in plan([0.1, 1.0], n=500, d=50).advice)
    assert not any("n_samples >=" in text for text in plan([0.1, 1.0], n=5000, d=50).advice)
    # of other models there is no forecast, and a rule of thumb
    three = clone(ALONE).set_params(classes=[0, 1, 2])
    said = plan([0.1, 1.0], n=500, d=50, scoring="brier", estimator=three).messages[0]
    assert "below 5 most of it" in said and "n_samples >=" in said


def test_one_candidate():
    only = plan([0.1])
    assert "nothing is selected" in only.messages[-1] and only.noise_scale == 0


def test_noise_is_never_below_the_sensitivity():
    p = plan(CV13_GRID)
    assert (p.noise_scale >= 2 * p.sensitivity / 0.5 * (1 - 1e-12)).sum() >= 1
    assert p.noise_scale.min() >= p.sensitivity.max() / 0.5


def test_text_and_json():
    p = plan([0.1, 1.0])
    text = str(p)
    assert text.splitlines()[0].startswith("Plan for 17118 records and 10 columns")
    assert len([line for line in text.splitlines() if line.startswith("alpha=")]) >= 2
    assert json.loads(json.dumps(p.to_dict()))["candidates"][1]["params"] == {"alpha": 1.0}
    assert "ruled out" not in text and "ruled out" in str(replace(p, considered=np.array([True, False])))
    persons = str(replace(p, persons=True))
    assert persons.startswith("Plan for 17118 persons") and "on 17118 persons" in persons
    assert "records" not in persons.splitlines()[0]


def test_a_dummy_row_stands_for_categories():
    pipeline = make_pipeline(
        OneHotEncoder(categories=[["a", "b", "c"]], handle_unknown="ignore"), DPLogisticRegression()
    )
    search = StabilityGridSearchCV(pipeline, {"dplogisticregression__alpha": [0.1, 1.0]})
    assert search.plan(1000, 1, example=[["a"]]).n_features == 1


def test_plan_touches_no_state():
    import pickle

    np.random.seed(0)
    before = pickle.dumps(np.random.get_state())
    search = StabilityGridSearchCV(DPLogisticRegression(), {"alpha": [0.1, 1.0]})
    assert str(search.plan(1000, 3)) == str(search.plan(1000, 3))
    assert pickle.dumps(np.random.get_state()) == before
    assert not [name for name in vars(search) if name.endswith("_")]


@pytest.mark.parametrize("shape", [(0, 3), (10, 0), (10.5, 3)])
def test_bad_shapes(shape):
    with pytest.raises((ValueError, TypeError), match="n_samples|n_features"):
        StabilityGridSearchCV(DPLogisticRegression(), {"alpha": [0.1, 1.0]}).plan(*shape)


def test_no_plan_without_noise():
    with pytest.raises(ValueError, match="finite epsilon"):
        plan([0.1], epsilon=float("inf"))


def test_every_strategy_is_planned_beside_the_others():
    grid = {"alpha": [0.01, 0.1, 1.0]}
    whole = StabilityGridSearchCV(DPLogisticRegression(), grid).plan(17_118, 10)
    names = [planned.strategy for planned in whole.comparison]
    assert names == [name for name in STRATEGIES if name != "auto"]
    for planned in whole.comparison:
        own = plan(
            grid["alpha"], scoring=None, strategy=planned.strategy, estimator=DPLogisticRegression()
        )
        for name in (
            "training_epsilon",
            "training_size",
            "selection_epsilon",
            "minimum_detectable_difference",
            "stake",
        ):
            np.testing.assert_equal(getattr(planned, name), getattr(own, name))
        assert planned.refusal == ""
    *lines, seen, others = str(whole).splitlines()[-2 - len(names) :]
    assert [line.split()[0] for line in lines] == names
    assert seen.startswith("(detects: the smallest difference") and "not private" in others
    assert json.loads(json.dumps(whole.to_dict(), allow_nan=False))["comparison"][-1] == {
        "strategy": "control",
        "training_epsilon": 1.0,
        "training_size": 13_694,
        "selection_epsilon": "inf",
        "minimum_detectable_difference": 0.0,
        "stake": 0.25,
        "refusal": "",
    }


def test_strategies_are_compared_when_somebody_reads_it(monkeypatch):
    compared, original = [], planned_module.compare_strategies
    monkeypatch.setattr(
        planned_module, "compare_strategies", lambda *a: (compared.append(1), original(*a))[1]
    )
    whole = plan([0.01, 0.1])
    assert not compared
    again = pickle.loads(pickle.dumps(whole))
    assert str(again) == str(whole) == str(whole) and len(again.comparison) == 8
    assert compared == [1]


@pytest.mark.parametrize(
    "estimator", [ALONE, DPRidge(target_range=(-1, 1)), DPPoissonRegressor(target_bound=9)]
)
def test_nothing_in_a_plan_grows_with_the_square_of_the_columns(estimator):
    tracemalloc.start()
    try:
        plan([0.01, 0.1], 10_000, 100_000, scoring=None, estimator=estimator, strategy="auto")
        assert tracemalloc.get_traced_memory()[1] < 5e6  # of 4e10 entries
    finally:
        tracemalloc.stop()


def test_what_does_not_serve_is_listed_with_the_reason():
    search = StabilityGridSearchCV(DPHistogramDensity(bounds=(0, 1)), {"bin_width": [0.5, 0.25]})
    planned = {row.strategy: row for row in search.plan(10_000, 1).comparison}
    served = {name for name, row in planned.items() if not row.refusal}
    assert served == {"stability", "random"}
    assert "IntegratedSquaredErrorScore" in planned["budget_split"].refusal
    assert planned["optimal_risk"].training_epsilon is None
    assert "budget_split      does not serve here" in str(search.plan(10_000, 1)).splitlines()


def test_what_a_choice_can_tell_apart():
    """By simulation: the chosen score is within what is detected of the best half of the time."""
    rng = np.random.default_rng(0)
    k, runs = 10, 4000
    scores = np.linspace(0, 1, k)
    for name in ("stability", "optimal_risk", "random_stopping"):
        found = plan(CV13_GRID, strategy=name, n=50_000)
        scale = found.noise_scale.max()
        spread = scores * 20 * scale
        if name == "random_stopping":
            chosen = []
            for _ in range(runs):
                ran = rng.integers(k, size=3 * k)
                chosen.append(ran[np.argmax(spread[ran] + rng.laplace(scale=scale, size=3 * k))])
        else:
            chosen = np.argmax(spread + rng.exponential(scale, size=(runs, k)), axis=1)
        assert np.mean(spread.max() - spread[chosen] <= found.minimum_detectable_difference) > 0.5
