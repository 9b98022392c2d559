"""Records that a search sets aside: they have no part in the model, and cost nothing on top."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, DensityMixin
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, PolynomialFeatures

from dpselect import (
    AccuracyFirstSearchCV,
    BudgetExceededError,
    DPHistogramDensity,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    PrivacyLedger,
    PrivateModel,
    RowChunks,
    SeededNoiseWarning,
    StabilityGridSearchCV,
    evaluate,
)
from dpselect.evaluation.density import DensityCells
from dpselect.evaluation.forecast import forecast
from dpselect.evaluation.multiclass import MulticlassCells
from dpselect.evaluation.regression import RegressionCells
from dpselect.evaluation.score_bins import BinaryCells
from dpselect.model_selection.set_aside import SetAside, cells_before
from dpselect.model_selection.strategies import STRATEGIES
from dpselect.noise import root_stream
from dpselect.preprocessing import DPBoundsScaler

INF = float("inf")
RNG = np.random.default_rng(0)
N = 4000
X = RNG.uniform(-0.5, 0.5, size=(N, 2))
Z = X[:, 0] + 0.2 * RNG.normal(size=N)
Y = (Z > 0).astype(int)
EPSILONS = np.geomspace(0.1, 10, 20)


def stability(model=None, epsilon=1.0, grid=None, **given):
    model = DPLogisticRegression(classes=[0, 1]) if model is None else model
    return StabilityGridSearchCV(
        model,
        {"alpha": [0.01, 0.1]} if grid is None else grid,
        epsilon=epsilon,
        **({"evaluation": 0.25} | given),
    )


def accuracy_first(model=None, target=0.05, **given):
    model = DPLogisticRegression(alpha=0.1, classes=[0, 1]) if model is None else model
    return AccuracyFirstSearchCV(
        model, {"epsilon": EPSILONS}, target=target, **({"evaluation": 0.25} | given)
    )


SEARCHES = {
    "stability": (stability, Y),
    "held out": (lambda **given: stability(strategy="budget_split", **given), Y),
    "ridge": (lambda **given: stability(DPRidge(target_range=(-1, 1)), **given), Z),
    "counts": (lambda **given: stability(DPPoissonRegressor(target_bound=3.0), **given), Y),
    "certified": (accuracy_first, Y),
    "tested": (
        lambda **given: accuracy_first(criterion="brier", target=0.24, max_epsilon=INF, **given),
        Y,
    ),
    "path": (
        lambda **given: accuracy_first(
            DPLogisticRegression(alpha=0.1, classes=[0, 1], perturbation="output"),
            method="above_threshold",
            max_epsilon=INF,
            **given,
        ),
        Y,
    ),
}


@pytest.mark.parametrize("kind", SEARCHES)
def test_the_larger_loss_counts(kind, tmp_path):
    make, y = SEARCHES[kind]
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=100.0)
    search = make(ledger=ledger).fit(X, y)
    loss = search.privacy_
    assert search.evaluation_.n_records == N // 4
    assert search.evaluation_.privacy_.epsilon == loss.epsilon == ledger.spent()[0]
    assert search.evaluation_.privacy_ in loss.releases and loss.composition == "parallel"
    assert not loss.seeded


def fitted(kind, X, y):
    with pytest.warns(SeededNoiseWarning):
        return SEARCHES[kind][0](random_state=7).fit(X, y)


@pytest.mark.parametrize("kind", SEARCHES)
def test_what_is_set_aside_has_no_part_in_the_model(kind, monkeypatch):
    aside = SetAside.of(0.25, N, root_stream(7))
    changed, y = X.copy(), SEARCHES[kind][1].copy()
    changed[aside.held] = 0.4
    y[aside.held] = 1
    first, second = fitted(kind, X, SEARCHES[kind][1]), fitted(kind, changed, y)
    np.testing.assert_array_equal(first.best_estimator_.coef_, second.best_estimator_.coef_)
    assert (first.evaluation_.counts_ != second.evaluation_.counts_).any()

    # a twin trains on all records
    n = 3 * N // 4
    monkeypatch.setattr(SetAside, "cut", lambda self, X, y: ((X[:n], y[:n]), (X, y)))
    first, second = fitted(kind, X, SEARCHES[kind][1]), fitted(kind, changed, y)
    assert (first.best_estimator_.coef_ != second.best_estimator_.coef_).any()


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "control"])
def test_figures_are_of_the_pipeline_that_is_released(strategy):
    """Whichever candidate was chosen: its steps need not be those of another one."""
    n, chosen = 600, set()
    for thresholds, groups in (([5.0, 0.0], {}), ([0.0, 5.0], {"groups": np.arange(n)})):
        # of the two, one gives the model nothing to learn from
        model = make_pipeline(
            DPBoundsScaler(50.0), Binarizer(), DPLogisticRegression(alpha=0.01, classes=[0, 1])
        )
        varied = (
            {"dplogisticregression__alpha": [0.01, 0.1]}
            if strategy == "data_independent"
            else {"binarizer__threshold": thresholds}
        )
        search = stability(model, 1000.0, varied, strategy=strategy, random_state=3)
        with pytest.warns(SeededNoiseWarning):
            search.fit(X[:n], Y[:n], **groups)
        held = SetAside.of(0.25, n, root_stream(3)).held
        exact = evaluate(search.best_estimator_, X[held], Y[held], epsilon=INF)
        assert search.evaluation_.counts_ == pytest.approx(exact.counts_, abs=0.5)
        chosen.add(search.best_index_)
    assert 1 in chosen or strategy == "data_independent"


def test_every_record_is_in_one_part():
    for n, share in ((10, 0.2), (11, 0.01), (4001, 0.333), (2, 0.9)):
        try:
            aside = SetAside.of(share, n, root_stream())
        except ValueError as error:
            assert n == 2 and "leaves none to train" in str(error)
            continue
        both = np.concatenate([aside.training, aside.held])
        np.testing.assert_array_equal(np.sort(both), np.arange(n))
        assert len(aside.held) == max(1, round(share * n))


def test_which_records_are_set_aside_is_drawn_anew():
    first, second = (SetAside.of(0.5, 1000, root_stream()).held for _ in range(2))
    assert (first != second).any()


def test_without_a_share_nothing_changes():
    given = dict(evaluation=None)
    search = stability(**given).fit(X, Y)
    assert not hasattr(search, "evaluation_") and "evaluate" not in str(search.privacy_)
    with pytest.raises(AttributeError, match="evaluation=0.2"):
        _ = search.best_score_
    search.set_params(evaluation=0.5).fit(X, Y)
    assert search.evaluation_.n_records == N // 2
    assert not hasattr(search.set_params(evaluation=None).fit(X, Y), "evaluation_")


def test_pipelines_classes_and_rows_in_pieces():
    pipeline = make_pipeline(PolynomialFeatures(2), DPLogisticRegression(classes=[0, 1, 2]))
    grid = {"dplogisticregression__alpha": [0.01, 0.1]}
    chunks = RowChunks(
        lambda i: X[1000 * i : 1000 * (i + 1)],
        lengths=[1000] * 4,
        n_columns=2,
    )
    for rows in (X, chunks):
        found = stability(pipeline, grid=grid).fit(rows, Y + (X[:, 1] > 0)).evaluation_
        assert len(found.classes) == 3 and found.n_records == N // 4


def test_weights_are_cut():
    weight = np.ones(N)
    weight[:5] = 0.5
    model = DPLogisticRegression(classes=[0, 1], max_sample_weight=1.0)
    for make in (stability, accuracy_first):
        search = make(model.set_params(alpha=0.1)).fit(X, Y, sample_weight=weight)
        assert search.evaluation_.n_records == N // 4


def test_without_privacy():
    search = stability(epsilon=INF).fit(X, Y)
    assert search.evaluation_.privacy_.epsilon == INF and search.evaluation_.counts_.sum() == N // 4
    exact = StabilityGridSearchCV(LogisticRegression(), {"C": [1.0]}, epsilon=INF, evaluation=0.25)
    assert exact.fit(X, Y).evaluation_.metric("accuracy").value > 0.7


def test_the_budget_is_asked_before_any_record_is_read(tmp_path):
    class Unreadable:
        shape = (N, 2)

        def __array__(self, *args, **kwargs):
            raise AssertionError("read")

    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=0.5)
    with pytest.raises(BudgetExceededError):
        stability(ledger=ledger).fit(Unreadable(), Y)
    assert ledger.spent()[0] == 0


def test_plans_forecast_how_well_the_model_will_be_known():
    plan = stability().plan(20_000, 2)
    assert "5000 records are set aside" in plan.messages[-1] and "roc_auc +-0.01" in plan.messages[-1]
    assert plan.n_samples == 15_000 and "evaluate" not in str(stability(evaluation=None).plan(20_000, 2))
    assert "records are set aside" in accuracy_first().plan(20_000, 2).messages[-1]
    small = stability(epsilon=0.01).plan(1000, 2).messages[-1]
    assert "tell nothing (too few records at this epsilon for accuracy and roc_auc)." in small


@pytest.mark.parametrize(
    "cells",
    [
        BinaryCells(np.arange(2), True),
        MulticlassCells(np.arange(4), True),
        MulticlassCells(np.array(["a", "b", "c"]), False),
        RegressionCells((-3.0, 5.0)),
        DensityCells.invented(),
    ],
)
def test_forecasts_shrink_with_epsilon_and_records(cells):
    def reach(n, epsilon):
        return [e.high - e.low for e in forecast(cells, n, epsilon).values()]

    near = reach(10_000, 1.0)
    assert all(a > b for a, b in zip(reach(5_000, 1.0), near))
    assert all(a > b for a, b in zip(near, reach(10_000, 3.0)))
    assert near == reach(10_000, 1.0)


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, 1.5, "0.2", True, np.nan, [0.2]])
@pytest.mark.parametrize("make", [stability, accuracy_first])
def test_bad_shares(make, bad):
    with pytest.raises((ValueError, TypeError), match="evaluation"):
        make(evaluation=bad).fit(X, Y)
    with pytest.raises((ValueError, TypeError), match="evaluation"):
        make(evaluation=bad).plan(1000, 2)


def test_what_cannot_be_evaluated_is_refused_before_any_record_is_read():
    with pytest.raises(ValueError, match="refit=False"):
        stability(refit=False).fit("no records", None)
    with pytest.raises(ValueError, match="evaluation"):
        cells_before(Ridge(), 2)
    with pytest.raises(ValueError, match="evaluation .* PassiveLabels has neither predict_proba"):
        cells_before(PassiveLabels(), 2)
    assert cells_before(PassiveLabels(), 3).shape


class PassiveLabels(ClassifierMixin, BaseEstimator):
    """Labels and no scores."""


class Normal(DensityMixin, BaseEstimator):
    """A density that is no histogram."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def fit(self, X, y=None):
        raise AssertionError("paid")

    def score_samples(self, X):
        return np.zeros(len(X))


def test_a_density_that_cannot_be_evaluated_is_refused_before_it_is_paid(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=1.0)
    model = PrivateModel(Normal(), epsilon="scale", adjacency="replace one record")
    search = stability(model, 1.0, {}, ledger=ledger)
    with pytest.raises(ValueError, match="evaluation counts"):
        search.fit(X)
    with pytest.raises(ValueError, match="evaluation counts"):
        search.plan(N, 2)
    assert ledger.spent()[0] == 0.0
    with pytest.raises(ValueError, match="by the densities of a histogram, and Normal is none"):
        cells_before(Normal(), 2)


@pytest.mark.parametrize(
    "search",
    [
        stability(DPHistogramDensity(bounds=(-0.5, 0.5)), grid={"bin_width": [0.1, 0.2]}),
        accuracy_first(DPHistogramDensity(bounds=(-0.5, 0.5), bin_width=0.5), target=0.1),
    ],
)
def test_densities(search):
    assert "log_gain" in search.plan(N, 2).messages[-1]
    found = search.fit(X).evaluation_
    assert found.n_records == N // 4 and found.counts_.shape == found.densities[:, 0].shape
    assert found.privacy_.epsilon == search.privacy_.epsilon
