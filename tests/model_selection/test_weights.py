"""Weights of records in searches: each goes with its own record, to models and to nothing else."""

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.pipeline import make_pipeline

from dpselect import (
    AccuracyFirstSearchCV,
    CertificateError,
    DPHuberRegressor,
    DPLogisticRegression,
    DPRidge,
    PrivacyLedger,
    RowChunks,
    StabilityGridSearchCV,
)
from dpselect.evaluation.release import EvaluationPlan
from dpselect.linear_model.model import LinearModel
from dpselect.metrics import get_score
from dpselect.model_selection import grid_search
from dpselect.model_selection.strategies import STRATEGIES
from dpselect.noise import root_stream
from dpselect.preprocessing import BoundedScaler, tabular_pipeline
from dpselect.records.records import Weighted
from dpselect.rows import Parts
from tests.trials import trial

N = 600
RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, size=(N, 3))
Y = (X @ [1.0, -2.0, 0.5] > 0).astype(int)
# so that a weight tells its record
WEIGHT = X[:, 0] + 1.0
MODEL = DPLogisticRegression(classes=[0, 1], alpha=0.1, max_sample_weight=1.2)
PIPE = make_pipeline(BoundedScaler((-1, 1)), MODEL)  # which changes no row
NAME = "dplogisticregression__sample_weight"


def search(estimator=MODEL, name="data_norm", **params):
    prefix = "dplogisticregression__" if estimator is PIPE else ""
    return StabilityGridSearchCV(
        estimator,
        {f"{prefix}{name}": [1.0, 2.0]},
        epsilon=5.0,
        random_state=root_stream(0),
        **params,
    )


def accuracy_first(method, criterion):
    how = "output" if "above" in method else "objective"
    model = DPLogisticRegression(classes=[0, 1], alpha=0.1, max_sample_weight=1.2, perturbation=how)
    return AccuracyFirstSearchCV(
        model,
        {"epsilon": [1.0, 10.0]},
        target=0.4,
        method=method,
        criterion=criterion,
        on_failure="last",
        random_state=root_stream(0),
    )


CASES = {
    **{name: search(strategy=name) for name in sorted(set(STRATEGIES) - {"data_independent"})},
    "data_independent": search(strategy="data_independent", name="alpha"),
    **{
        f"{name} of a Pipeline": search(PIPE, strategy=name)
        for name in ("stability", "data_split", "auto")
    },
    **{
        f"{method} {criterion}": accuracy_first(method, criterion)
        for method in ("certified", "doubling", "reduced_above_threshold", "predict_verify")
        for criterion in ("excess_risk", "brier")
        if (method, criterion) != ("certified", "brier")
    },
}


@pytest.fixture
def seen(monkeypatch):
    """How many records each check of records saw; all with their own weights, or with none."""
    sizes, original = [], LinearModel._check_records

    def spy(self, X, y):
        records = original(self, X, y)
        if isinstance(y, Weighted):
            assert np.array_equal(records.weight, np.asarray(records.X)[:, 0] + 1.0)
            sizes.append(len(records.weight))
        else:
            # a dry run on dummy rows
            assert len(records.X) <= 2
        return records

    monkeypatch.setattr(LinearModel, "_check_records", spy)
    return sizes


@pytest.mark.filterwarnings("ignore::dpselect.PrivacyLeakWarning")
@pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning")
@pytest.mark.parametrize("name", CASES)
def test_each_record_keeps_its_weight(name, seen):
    name_of_weights = NAME if "Pipeline" in name else "sample_weight"
    CASES[name].fit(X, Y, **{name_of_weights: WEIGHT})
    assert seen and max(seen) <= N


@pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning")
@pytest.mark.parametrize("name", ["stability", "optimal_risk", "data_split", "doubling brier"])
def test_weights_have_an_effect_and_equal_ones_have_none(name):
    plain, ones, weighted = (
        CASES[name].fit(X, Y, sample_weight=weight).best_estimator_.coef_
        for weight in (None, np.ones(N), WEIGHT)
    )
    assert np.array_equal(plain, ones) and not np.allclose(plain, weighted)


@pytest.mark.parametrize("model, y, score", [
    (MODEL, Y, "brier"),
    (DPHuberRegressor(target_range=(-1, 1), max_sample_weight=1.2), X[:, 1], "clipped_absolute_error"),
])  # fmt: skip
def test_split_scores_are_those_of_models_alone(model, y, score):
    """Models are weighted; scores weigh all records alike."""
    try:
        score = get_score(score)
    except ValueError:
        score = model.default_scoring
    splits = [(np.arange(200, N), np.arange(200)), (np.arange(0, N, 2), np.arange(1, N, 2))]
    one = trial(model.set_params(random_state=root_stream(1)))
    (found,) = (
        type(model).split_scores([one], score, X, Weighted(y, WEIGHT), Parts.from_splits(splits, X)).T
    )
    assert len(found) == len(splits)
    for value, (train, test) in zip(found, splits):
        fitted = one.fitted(X[train], Weighted(y[train], WEIGHT[train]))
        assert value == pytest.approx(score(fitted, X[test], y[test]), abs=1e-9)


@pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning")
def test_metadata_routing_sends_weights_to_the_model():
    by_name = search(PIPE).fit(X, Y, **{NAME: WEIGHT}).best_estimator_[-1].coef_
    with sklearn.config_context(enable_metadata_routing=True):
        with pytest.raises(UnsetMetadataPassedError, match="set_fit_request"):
            search(PIPE).fit(X, Y, sample_weight=WEIGHT)
        with pytest.raises(UnsetMetadataPassedError, match="set_fit_request"):
            search().fit(X, Y, sample_weight=WEIGHT)
        asks = sklearn.clone(MODEL).set_fit_request(sample_weight=True)
        pipe = make_pipeline(BoundedScaler((-1, 1)), asks)
        grid = {"dplogisticregression__data_norm": [1.0, 2.0]}
        routed = search().set_params(estimator=pipe, param_grid=grid).fit(X, Y, sample_weight=WEIGHT)
        assert np.array_equal(routed.best_estimator_[-1].coef_, by_name)
        alone = search(asks).fit(X, Y, sample_weight=WEIGHT).best_estimator_.coef_
        refuses = sklearn.clone(MODEL).set_fit_request(sample_weight=False)
        with pytest.raises(TypeError):
            search(refuses).fit(X, Y, sample_weight=WEIGHT)
    assert np.array_equal(search().fit(X, Y, sample_weight=WEIGHT).best_estimator_.coef_, alone)


@pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning")
def test_tables_and_chunks():
    model = tabular_pipeline({"a": (-0.5, 0.5), "b": (-0.5, 0.5), "c": (-0.5, 0.5)}, MODEL)
    grid = {"encoder__expansion": ["linear", 2]}
    table = StabilityGridSearchCV(model, grid, epsilon=5.0, random_state=root_stream(0))
    by_step = table.fit(X, Y, model__sample_weight=WEIGHT).best_estimator_[-1].coef_
    assert np.array_equal(table.fit(X, Y, sample_weight=WEIGHT).best_estimator_[-1].coef_, by_step)
    assert table.privacy_.epsilon == 5.0
    with pytest.raises(TypeError, match="model__sample_weight"):
        table.fit(X, Y, sample_weight=WEIGHT, model__sample_weight=WEIGHT)
    thirds = np.split(np.arange(N), 3)

    def chunks(values, width):
        return RowChunks(lambda i: values[thirds[i]], [N // 3] * 3, width)

    for name in ("stability", "data_split"):
        expected = search(strategy=name).fit(X, Y, sample_weight=WEIGHT).best_estimator_.coef_
        found = search(strategy=name).fit(chunks(X, 3), Y, sample_weight=chunks(WEIGHT, 1))
        assert found.best_estimator_.coef_ == pytest.approx(expected, abs=1e-6)


@pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning")
@pytest.mark.parametrize("epsilon", [5.0, np.inf])
@pytest.mark.parametrize("estimator, name", [(MODEL, "sample_weight"), (PIPE, NAME)])
def test_what_was_set_aside_is_weighed_as_the_model_is(epsilon, estimator, name, monkeypatch):
    seen, original = [], EvaluationPlan._counts

    def spy(self, model, X, y, by=None, persons=None, weight=None):
        seen.append((np.asarray(X)[:, 0], weight))
        return original(self, model, X, y, by, persons, weight)

    monkeypatch.setattr(EvaluationPlan, "_counts", spy)
    asked = search(estimator, evaluation=0.25).set_params(epsilon=epsilon)
    found = asked.fit(X, Y, **{name: WEIGHT}).evaluation_
    assert found.max_weight == 1.2 and "weighted counts" in str(found.privacy_)
    ((column, weight),) = seen
    assert len(weight) == N // 4 and weight == pytest.approx(np.minimum(column + 1.0, 1.2) / 1.2)
    plain = search(estimator, evaluation=0.25).set_params(epsilon=epsilon).fit(X, Y).evaluation_
    assert plain.max_weight is None and seen[1][1] is None


def test_weights_that_were_set_aside_are_checked_before_anything_is_paid(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=10.0)
    for i in range(0, N, 150):  # some are set aside, some train
        weight = WEIGHT.copy()
        weight[i : i + 150] = -1.0
        with pytest.raises(ValueError, match="negative"):
            search(evaluation=0.25, ledger=ledger).set_params(random_state=None).fit(
                X, Y, sample_weight=weight
            )
    assert ledger.spent() == (0.0, 0.0)


@pytest.mark.parametrize("estimator, params, error, said", [
    (DPRidge(target_range=(-1, 1)), {"sample_weight": WEIGHT}, CertificateError,
        "sample_weight.*write DPHuberRegressor"),
    (DPLogisticRegression(classes=[0, 1]), {"sample_weight": WEIGHT}, ValueError, "max_sample_weight"),
    (PIPE, {"sample_weight": WEIGHT}, TypeError, f"write {NAME}"),
    (PIPE, {"boundedscaler__sample_weight": WEIGHT}, TypeError, "leave it out"),
    (MODEL, {"weights": WEIGHT}, TypeError, "leave it out"),
    (MODEL, {"sample_weight": -WEIGHT}, ValueError, "negative"),
    (MODEL, {"sample_weight": WEIGHT[1:]}, ValueError, "one number for each row"),
])  # fmt: skip
def test_what_is_refused(estimator, params, error, said):
    with pytest.raises(error, match=said):
        search(estimator).set_params(random_state=None).fit(X, Y, **params)
    if not isinstance(estimator, DPRidge):
        accuracy = AccuracyFirstSearchCV(estimator, {"epsilon": [1.0]}, target=1.0)
        prefix = "dplogisticregression__" if estimator is PIPE else ""
        accuracy.set_params(param_grid={f"{prefix}epsilon": [1.0]}, **{f"estimator__{prefix}alpha": 0.1})
        with pytest.raises(error, match=said):
            accuracy.fit(X, Y, **params)


def test_a_grid_may_vary_the_weights_of_classes():
    grid = {"class_weight": [None, {0: 1.0, 1: 5.0}], "max_sample_weight": [1.2, 2.0]}
    fitted = StabilityGridSearchCV(MODEL, grid, epsilon=5.0, strategy="stability")
    fitted.fit(X, Y, sample_weight=WEIGHT)
    assert fitted.best_params_["class_weight"] in grid["class_weight"]
    # the noise of each candidate is that of its own largest weight
    moved = fitted.cv_results_["training_stability"]
    assert moved[2] > 4 * moved[0] and len(moved) == 4


@pytest.mark.filterwarnings("ignore")
def test_without_privacy_it_is_grid_search():
    twin = search(cv=2).set_params(epsilon=float("inf"), random_state=None)
    assert twin.fit(X, Y, sample_weight=WEIGHT).best_estimator_.coef_.shape == (1, 3)
    scaled = make_pipeline(BoundedScaler((-0.5, 0.5)), MODEL)
    twin = StabilityGridSearchCV(scaled, {}, epsilon=float("inf"), cv=2)
    assert twin.fit(X, Y, **{NAME: WEIGHT}).best_params_ == {}


def reads_until_refused(values, tmp_path):
    """Return how many chunks a search reads before it refuses weights, and what it has spent."""
    read = []

    def rows(i):
        read.append(i)
        return X[i * N // 3 : (i + 1) * N // 3]

    ledger = PrivacyLedger(tmp_path / f"{len(list(tmp_path.iterdir()))}.ledger", epsilon=10.0)
    refuses = StabilityGridSearchCV(MODEL, {"max_sample_weight": values}, strategy="stability")
    with ledger, pytest.raises(ValueError, match="max_sample_weight"):
        refuses.fit(RowChunks(rows, [N // 3] * 3, 3), Y, sample_weight=WEIGHT)
    return len(read), len(ledger.history())


def test_each_candidate_takes_weights_or_nothing_is_read(tmp_path, monkeypatch):
    for values in ([None, 1.2], [1.2, None], [1.2, 1.5, None]):
        assert reads_until_refused(values, tmp_path) == (0, 0)
    looked_at = grid_search.check_weights_are_taken
    monkeypatch.setattr(grid_search, "check_weights_are_taken", lambda models: looked_at(models[:1]))
    assert reads_until_refused([1.2, None], tmp_path) != (0, 0)
