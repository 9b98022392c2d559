"""Forecasts of quality: by the results that they were made of, and how plans use them."""

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpselect import (
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    StabilityGridSearchCV,
)
from dpselect.base.fit_warnings import LEAST_SIGNAL
from dpselect.model_selection.plan import RECORDS_PER_DIMENSION
from dpselect.model_selection.quality_forecast import LINES, forecast, signal_for
from dpselect.records import PublicShape

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks"))
import quality_forecast as benchmark  # noqa: E402

FIRST, FRESH = (benchmark.shares(pd.read_csv(benchmark.RESULTS / name)) for name in benchmark.FILES)
RESULTS = benchmark.fitted(FIRST, FRESH)
LOGISTIC = DPLogisticRegression(classes=[0, 1])


def plan(model, n=4000, p=10, epsilon=1.0, **parameters):
    return StabilityGridSearchCV(model, {}, epsilon=epsilon, **parameters).plan(n, p)


def test_the_lines_are_those_of_the_results():
    assert benchmark.fitted_lines(RESULTS) == LINES


def check_coverage(found):
    """Check that eight of ten shares lie in a band of which their table was no part."""
    for metric, inside in benchmark.coverage(found).items():
        assert 0.75 < np.mean(list(inside.values())) < 0.95, (metric, inside)


def test_bands_hold_for_tables_that_took_no_part():
    check_coverage(RESULTS)


def test_a_twin_with_the_quartiles_is_seen(monkeypatch):
    monkeypatch.setattr(benchmark, "QUANTILES", dict.fromkeys(LINES, (0.25, 0.5, 0.75)))
    with pytest.raises(AssertionError):
        check_coverage(RESULTS)


def check_fresh_tables(lines):
    """Check that bands hold 70 to 90 % of the shares of fresh tables, on average."""
    inside = benchmark.in_band(lines, FRESH)["inside"].groupby("metric").mean()
    assert inside.between(0.7, 0.9).all(), inside


def test_bands_hold_for_fresh_tables_and_are_no_wider_than_they_need_be():
    check_fresh_tables(LINES)
    halves = benchmark.halves(FIRST, FRESH, "r2").values()
    assert len(halves) == 20 and 0.7 < np.mean([half["inside"].mean() for half in halves]) < 0.9


@pytest.mark.parametrize("metric", LINES)
def test_lines_that_are_wider_or_steeper_miss_fresh_tables(metric):
    low, median, high = LINES[metric]
    wider = (low[0] - 2, low[1]), median, (high[0] + 2, high[1])
    for other in (wider, (median, median, median)):
        with pytest.raises(AssertionError):
            check_fresh_tables(LINES | {metric: other})


@pytest.mark.parametrize("metric", LINES)
def test_more_signal_keeps_more(metric):
    bands = [forecast(metric, signal) for signal in np.geomspace(0.01, 1e6, 60)]
    for less, more in zip(bands, bands[1:]):
        assert 0 <= less.low <= less.median <= less.high <= 1
        assert less.median < more.median and less.low <= more.low
    for share in (0.1, 0.5, 0.8):
        assert forecast(metric, signal_for(metric, share)).median == pytest.approx(share)


def test_fit_warns_where_less_than_half_is_expected():
    # of an AUC about half; of a Brier score and R^2 far less
    kept = {metric: forecast(metric, LEAST_SIGNAL).median for metric in LINES}
    assert kept.pop("roc_auc") == pytest.approx(0.5, abs=0.05) and max(kept.values()) < 0.2
    assert 0.8 < forecast("roc_auc", RECORDS_PER_DIMENSION).median < 0.85


def test_a_plan_knows_the_signal_of_what_will_be_trained():
    for epsilon, delta in ((0.3, 0.0), (2.0, 1e-6)):
        model = LOGISTIC.set_params(delta=delta)
        found = plan(model, 5000, 20, epsilon, evaluation=0.2)
        signal = model.calibration(PublicShape(4000, 20), epsilon).signal
        assert found.expected_quality == (forecast("roc_auc", signal), forecast("brier", signal))
        assert [each["metric"] for each in found.to_dict()["expected_quality"]] == ["roc_auc", "brier"]
        assert found.advice[0] in str(found)
    LOGISTIC.set_params(delta=0.0)


def test_a_rare_class_counts_as_fewer_records():
    common, rare = (plan(DPLogisticRegression(classes=[0, 1], base_rate=rate)) for rate in (0.5, 0.02))
    fewer = plan(DPLogisticRegression(classes=[0, 1], base_rate=0.5), round(4000 * 4 * 0.02 * 0.98))
    assert rare.expected_quality[0].median < common.expected_quality[0].median
    assert rare.expected_quality[0].median == pytest.approx(fewer.expected_quality[0].median, rel=1e-2)


def test_the_number_of_records_that_is_asked_for_is_enough():
    for n in (100, 1000, 4000):
        found = plan(LOGISTIC, n, 30)
        asked = [re.findall(r"n_samples >= (\d+)", line) for line in found.advice]
        asked = [int(number) for numbers in asked for number in numbers]
        assert bool(asked) == (found.expected_quality[0].median < 0.8)
        for number in asked:
            assert plan(LOGISTIC, number, 30).expected_quality[0].median == pytest.approx(0.8, abs=1e-3)
            assert ("choose nothing" in " ".join(found.advice)) == (
                found.expected_quality[0].median < 0.2
            )


def test_what_has_no_forecast():
    metrics = {
        DPLinearSVC(classes=[0, 1]): ["roc_auc"],
        DPLogisticRegression(classes=[0, 1, 2]): [],
        DPHuberRegressor(target_range=(0, 1)): ["r2"],
        DPRidge(target_range=(0, 1)): [],
        DPPoissonRegressor(target_bound=9): [],
    }
    for model, expected in metrics.items():
        assert [each.metric for each in plan(model).expected_quality] == expected
    density = DPHistogramDensity(1.0, bounds=(0, 1), bin_width=0.1)
    assert plan(density, p=1).expected_quality == ()
