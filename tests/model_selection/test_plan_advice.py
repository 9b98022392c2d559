"""What a plan says about a delta: against the noise that is drawn, and the delta that a fit states."""

import re

import numpy as np
import pytest
from sklearn.base import clone

from dpselect import (
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    StabilityGridSearchCV,
)
from dpselect.model_selection import plan_advice
from dpselect.preprocessing import tabular_pipeline
from dpselect.records import PublicShape

LOGISTIC = DPLogisticRegression(classes=[0, 1])


def said(model, n=4000, p=3, epsilon=1.0, grid=None, **options):
    """Return the messages of a plan about delta."""
    search = StabilityGridSearchCV(model, grid or {}, epsilon=epsilon)
    return [line for line in search.plan(n, p, **options).advice if line.startswith("delta=")]


def gained(line):
    """Return the gain in a message, or the smallest and largest; None if there is none."""
    found = re.findall(r"([0-9.]+)(?: to ([0-9.]+))? times smaller", line)
    return [float(number) for number in found[0] if number] if found else None


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("p", [2, 6, 12, 25, 120])
def test_a_delta_that_gains_nothing_is_not_used(p, n_classes):
    model = DPLogisticRegression(classes=range(n_classes))
    (offered,), (given,) = said(model, p=p), said(clone(model).set_params(delta=1e-6), p=p)
    assert " of the model would " in offered and " of the model would " not in given
    assert gained(offered) == gained(given)
    rng = np.random.default_rng(0)
    fit = model.set_params(delta=1e-6, epsilon=1.0).fit(
        rng.normal(size=(60, p)), np.arange(60) % n_classes
    )
    # (a gain of less than a twentieth is used, and not offered)
    assert (fit.privacy_.delta == 1e-6) == bool(gained(offered))


def listed(k):
    return {"categories": [f"c{j}" for j in range(k)], "missing": True, "unknown": True}


# for the first one codes of categories without a delta are others than those with one
LISTS = [
    {f"k{k}": listed(k) for k in (2, 4, 12)}
    | {f"x{j}": {"bounds": (0, 1), "missing": True} for j in range(3)},
    {"icd": list("ABCDEFGHIJKL"), "ward": list("abcd"), "x": (0, 1)},
]


@pytest.mark.parametrize("schema", LISTS, ids=len)
@pytest.mark.parametrize("n", [600, 6000])
def test_what_a_delta_gains_is_the_same_before_and_after_it_is_given(schema, n):
    """Whatever codes of categories the encoder takes for the noise of one and of the other."""
    offered, given = (
        said(tabular_pipeline(schema, clone(LOGISTIC).set_params(delta=delta)), n, len(schema))
        for delta in (0.0, 1e-6)
    )
    assert len(offered) == len(given) == 1 and gained(offered[0]) == gained(given[0])


def test_a_twin_that_keeps_the_codes_is_seen(monkeypatch):
    monkeypatch.setattr(plan_advice, "TabularPipeline", type(None))
    with pytest.raises(AssertionError):
        test_what_a_delta_gains_is_the_same_before_and_after_it_is_given(LISTS[0], 600)


def drawn_length(model, n, p, runs=60):
    """Return the root mean square noise in the gradient of fits on rows of zeros."""
    rows, squares = np.zeros((n, p)), 0.0
    targets = np.arange(n) % 2 if hasattr(model, "classes") else np.zeros(n)
    for seed in range(runs):
        fit = clone(model).set_params(random_state=seed).fit(rows, targets)
        mu = fit.calibration(PublicShape(n, p)).scales.mu
        squares += (mu * np.linalg.norm(fit.coef_) / getattr(fit.problem().loss, "unit", 1.0)) ** 2
    return (squares / runs) ** 0.5


@pytest.mark.filterwarnings("ignore::dpselect.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize(
    "model",
    [
        DPLogisticRegression(classes=[0, 1], fit_intercept=False),
        DPLogisticRegression(classes=[0, 1], fit_intercept=False, perturbation="output", alpha=0.1),
        DPLinearSVC(classes=[0, 1], fit_intercept=False),
        DPHuberRegressor(target_range=(-1, 1), fit_intercept=False),
    ],
    ids=["objective", "output", "svc", "huber"],
)
def test_the_gain_is_that_of_the_noise_that_is_drawn(model):
    n, p = 300, 30
    drawn = [drawn_length(clone(model).set_params(delta=delta), n, p) for delta in (0.0, 1e-6)]
    (line,) = said(model, n, p)
    # two digits are said, and 60 lengths vary by some hundredths, 6 deviations by less than a fifth
    assert gained(line)[0] == pytest.approx(drawn[0] / drawn[1], rel=0.25)


def test_a_twin_that_forgets_the_delta_is_seen(monkeypatch):
    usual = plan_advice.noise_length
    monkeypatch.setattr(plan_advice, "noise_length", lambda *given: usual(*given[:-1], 0.0))
    with pytest.raises(AssertionError):
        test_a_delta_that_gains_nothing_is_not_used(120, 2)


def test_models_of_one_grid_are_one_line():
    schema = {f"x{j}": (0, 1) for j in range(9)}
    grid = {"encoder__expansion": ["linear", 8]}
    pipeline = tabular_pipeline(schema, LOGISTIC)
    (line,) = said(pipeline, 4000, 9, grid=grid, example=np.zeros((1, 9)))
    low, high = gained(line)
    assert low < high
    mixed = said(LOGISTIC, p=50, grid={"delta": [0.0, 1e-5]})
    assert [line.partition(" ")[0] for line in mixed] == ["delta=1e-06", "delta=1e-05"]


def test_the_plan_states_the_delta_that_it_may_spend():
    search = StabilityGridSearchCV(clone(LOGISTIC).set_params(delta=1e-6), {}, epsilon=1.0)
    plan = search.plan(4000, 50)
    assert plan.delta == plan.to_dict()["delta"] == 1e-6
    assert "epsilon 1 and delta 1e-06 in all" in str(plan)
    plan = search.set_params(estimator=LOGISTIC).plan(4000, 50)
    assert plan.delta == 0.0 and "epsilon 1 in all" in str(plan)


@pytest.mark.parametrize(
    "n, delta", [(100, "1e-06"), (100_000, "1e-06"), (100_001, "1e-07"), (3_000_000, "1e-08")]
)
def test_the_delta_that_is_offered_is_far_below_one_over_n(n, delta):
    (line,) = said(LOGISTIC, n, 50)
    assert line.startswith(f"delta={delta} ")


def test_nothing_is_said_where_no_delta_is_taken():
    density = DPHistogramDensity(1.0, bounds=(0, 1), bin_width=0.1)
    assert said(density, p=1) == []
    assert said(DPRidge(target_range=(0, 1), norm="l1", data_norm_l1=1.0)) == []
    assert said(DPRidge(target_range=(0, 1), perturbation="objective")) == []
    assert gained(said(DPRidge(target_range=(0, 1)), p=50)[0])[0] > 5


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_the_noise_of_sums_is_that_of_a_fit(norm, delta):
    """Fits cover rounding to a grid, too, which is a few millionths of it."""
    model = DPRidge(target_range=(0, 1), norm="auto" if delta else norm, delta=delta, data_norm_l1=2.0)
    for p in (1, 7, 40):
        shape = PublicShape(5000, p)
        fitted = model.calibration(shape, 0.7)
        expected = fitted.gradient_noise(model.problem().ball / 2)
        assert model.noise_length(shape, 0.7) == pytest.approx(expected, rel=1e-5)


def test_a_plan_says_what_it_is_for_where_weights_or_shares_are_not_known():
    plans = [
        StabilityGridSearchCV(model, {}, epsilon=1.0, evaluation=0.25).plan(4000, 3)
        for model in (LOGISTIC, clone(LOGISTIC).set_params(base_rate=0.05, max_sample_weight=20.0))
    ]
    equal, rare = ("\n".join((*plan.messages, *plan.advice)) for plan in plans)
    assert "equally frequent" in equal and "less of a rare class" in equal and "recall" not in equal
    assert "equally frequent" not in rare and "less of a rare class" not in rare and "recall" in rare
    assert "plan for n_samples * w / 20 records" in rare and "eights" not in equal
    medians = [plan.expected_quality[0].median for plan in plans]
    assert medians[1] < medians[0]
    guessed = StabilityGridSearchCV(LOGISTIC, {}, epsilon=1.0, evaluation=0.25)
    for share in (0.05, 0.95):
        plan = guessed.plan(4000, 3, class_share=share)
        text = "\n".join((*plan.messages, *plan.advice))
        assert f"recall of {int(share == 0.05)}" in text and "equally frequent" not in text
        assert plan.expected_quality[0].median == pytest.approx(medians[1], rel=1e-12)
    for share in (0, 1, "half", -0.1):
        with pytest.raises((TypeError, ValueError), match="class_share"):
            guessed.plan(4000, 3, class_share=share)


def test_a_plan_invents_a_row_by_the_schema():
    """So that a table with categories needs no example, and what is planned is the same with one."""
    schema = {
        "age": (18, 90),
        "job": ["clerk", "farmer"],
        "since": {"date": ["2015-01-01", "2026-12-31"]},
    }
    search = StabilityGridSearchCV(tabular_pipeline(schema, LOGISTIC), {}, epsilon=1.0)
    example = np.array([[30, "farmer", "2020-02-02"]], dtype=object)
    assert search.plan(4000, 3).to_dict() == search.plan(4000, 3, example=example).to_dict()
    with pytest.raises(ValueError, match="columns"):
        search.plan(4000, 2)


@pytest.mark.parametrize("n, share, warned", [
    (10_000, 0.08, True), (10_000, 0.92, True), (10_000, 0.3, False), (10_000, None, False),
    (300_000, 0.08, False),
])  # fmt: skip
def test_a_choice_by_the_losses_of_a_rare_class_is_nearly_chance(n, share, warned):
    schema = {"age": (18, 90), "sex": ["f", "m"], "ward": [*"abcdef"], "pressure": (60, 220)}
    grid = {"encoder__expansion": ["linear", 2, 4]}
    plan = StabilityGridSearchCV(tabular_pipeline(schema, LOGISTIC), grid, epsilon=1.0).plan(
        n, 4, class_share=share
    )
    said = [line for line in plan.advice if "nearly chance" in line]
    assert plan.strategy == "optimal_risk" and bool(said) == warned
    if warned:
        loss_of_a_constant = -(share * np.log(share) + (1 - share) * np.log(1 - share))
        gain, blur = re.search(
            r"perfect model ([\d.]+) to gain.* differences of ([\d.]+) is", *said
        ).groups()
        assert float(gain) == pytest.approx(loss_of_a_constant, abs=0.006)
        assert float(blur) == pytest.approx(plan.minimum_detectable_difference, rel=0.06)
