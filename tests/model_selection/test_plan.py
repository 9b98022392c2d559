import json

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from dpselect import DPLogisticRegression, StabilityGridSearchCV

CV13_GRID = [0.001, 0.112, 0.223, 0.334, 0.445, 0.556, 0.667, 0.778, 0.889, 1]


def plan(grid, n=17_118, d=10, scoring="ramp", **parameters):
    search = StabilityGridSearchCV(
        DPLogisticRegression(fit_intercept=False), {"alpha": grid}, scoring=scoring, **parameters
    )
    return search.plan(n, d)


def test_the_smallest_lambda_of_the_papers_grid_sets_the_noise():
    with_it, without = plan(CV13_GRID), plan(CV13_GRID[1:])
    said = " ".join(with_it.messages)
    assert "alpha=0.001 sets the noise of all candidates" in said
    assert "coin toss" in said and "drop alpha=0.001" in said
    assert not any("coin toss" in text for text in without.messages)
    gain = with_it.noise_scale.max() / without.noise_scale.max()
    assert f"{gain:.3g} times less" in said and gain > 50


def test_the_mends_it_names_are_enough():
    poor = plan([0.01, 0.1, 1.0], n=1000)
    mends = poor.messages[-1]
    n = int(mends.partition("n_samples >= ")[2].split(",")[0].rstrip("."))
    epsilon = float(mends.partition("epsilon >= ")[2].rstrip("."))
    goal = 0.05
    assert plan([0.01, 0.1, 1.0], n=1000).resolution > 0.25
    assert plan([0.01, 0.1, 1.0], n=n).resolution <= 1.01 * goal
    assert plan([0.01, 0.1, 1.0], n=n // 2).resolution > goal
    assert plan([0.01, 0.1, 1.0], n=1000, epsilon=epsilon).resolution <= 1.01 * goal


def test_few_records_for_many_columns():
    said = plan([0.1, 1.0], n=500, d=50).messages[0]
    assert "base rate" in said and "n_samples >=" in said
    assert not any("base rate" in text for text in plan([0.1, 1.0], n=5000, d=50).messages)


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


def test_a_made_up_row_stands_for_categories():
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
