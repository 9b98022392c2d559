"""Searches on rows of every kind decide and release what they do on the same rows in memory."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures

from dpselect import (
    AccuracyFirstSearchCV,
    DPHistogramDensity,
    DPLogisticRegression,
    DPRidge,
    PrivateModel,
    RowChunks,
    StabilityGridSearchCV,
)
from dpselect.model_selection import exact_scores as evaluation
from dpselect.preprocessing import BoundedScaler, DPBoundsScaler, TableEncoder
from dpselect.rows import distributed as distributed_rows

from .kinds import chunked, few_forms

pytestmark = [
    pytest.mark.usefixtures("serial"),
    pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::dpselect.PrivacyLeakWarning"),
]

STRATEGIES = [
    "auto",
    "stability",
    "data_independent",
    "optimal_risk",
    "budget_split",
    "data_split",
    "random",
    "control",
]


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_searches(records, tmp_path, strategy):
    X, labels, _ = records
    model = make_pipeline(
        PolynomialFeatures(interaction_only=True),
        BoundedScaler((-1, 1)),
        DPLogisticRegression(classes=[0, 1]),
    )
    grid = {"dplogisticregression__alpha": [0.01, 1.0]}
    search = StabilityGridSearchCV(model, grid, strategy=strategy, cv=3, random_state=0)
    expected = clone(search).fit(X, labels)
    for name, given in few_forms(X, labels, tmp_path).items():
        search.fit(*given)
        assert search.best_index_ == expected.best_index_, name
        np.testing.assert_allclose(
            search.best_estimator_[-1].coef_, expected.best_estimator_[-1].coef_, atol=1e-9
        )
        assert str(search.privacy_) == str(expected.privacy_)


SWEEPS = [
    (DPLogisticRegression(classes=[0, 1]), {"alpha": np.geomspace(0.05, 5, 8)}),
    (DPRidge(perturbation="objective", target_range=(-1, 1)), {"alpha": np.geomspace(0.05, 5, 8)}),
    (DPHistogramDensity(bounds=(-1, 1)), {"bin_width": [0.5, 0.25, 1.0, 2.0]}),
]


@pytest.mark.parametrize("model, grid", SWEEPS, ids=["logistic", "ridge", "histogram"])
def test_all_candidates_share_the_passes(records, monkeypatch, model, grid):
    """Eight candidates on five folds need hardly more passes than two on two."""
    da = pytest.importorskip("dask.array")
    X, labels, _ = records
    monkeypatch.setattr(evaluation, "_scores_of", None)
    rows, y = da.from_array(X[:, :2], chunks=(500, 2)), da.from_array(labels, chunks=500)
    ((name, values),) = grid.items()

    def passes(values, cv):
        computed, compute = [], distributed_rows.compute
        search = StabilityGridSearchCV(
            model, {name: values}, strategy="stability", cv=cv, random_state=0
        )
        with monkeypatch.context() as patch:
            patch.setattr(
                distributed_rows, "compute", lambda tasks: computed.append(1) or compute(tasks)
            )
            search.fit(rows, y)
        return len(computed)

    assert passes(values, 5) <= passes(values[:2], 2) + 4


def test_random_stopping(records):
    X, labels, _ = records
    search = StabilityGridSearchCV(
        DPLogisticRegression(classes=[0, 1]),
        {"alpha": [0.1]},
        strategy="random_stopping",
        random_state=0,
    )
    expected = clone(search).fit(X, labels).best_estimator_.coef_
    np.testing.assert_allclose(
        search.fit(chunked(X), chunked(labels)).best_estimator_.coef_, expected, atol=1e-9
    )


def test_one_release_that_is_read(records, tmp_path):
    X, _, targets = records
    search = StabilityGridSearchCV(DPRidge(target_range=(-1, 1)), {"alpha": [0.01, 1.0]}, random_state=0)
    expected = clone(search).fit(X, targets)
    for name, given in few_forms(X, targets, tmp_path).items():
        search.fit(*given)
        assert search.best_index_ == expected.best_index_, name
        # the sums of a part, in another order
        np.testing.assert_array_equal(search.best_estimator_.gram_, expected.best_estimator_.gram_)


def test_private_steps(records, tmp_path):
    X, labels, _ = records
    model = make_pipeline(
        PolynomialFeatures(include_bias=False),
        DPBoundsScaler(0.5),
        DPLogisticRegression(classes=[0, 1]),
    )
    grid = {"dplogisticregression__alpha": [0.01, 1.0]}
    search = StabilityGridSearchCV(model, grid, random_state=0)
    expected = clone(search).fit(X, labels)
    for name, given in few_forms(X, labels, tmp_path).items():
        search.fit(*given)
        np.testing.assert_array_equal(
            search.best_estimator_[1].bounds_, expected.best_estimator_[1].bounds_, err_msg=name
        )
        np.testing.assert_allclose(
            search.best_estimator_[-1].coef_, expected.best_estimator_[-1].coef_, atol=1e-9
        )
    hidden = make_pipeline(make_pipeline(DPBoundsScaler(0.5)), DPLogisticRegression(classes=[0, 1]))
    with pytest.raises(ValueError, match="would gather"):
        StabilityGridSearchCV(hidden, {}, random_state=0).fit(chunked(X), labels)


@pytest.mark.parametrize(
    "model, criterion, target",
    [
        (DPLogisticRegression(alpha=0.1, classes=[0, 1], perturbation="output"), "brier", 0.4),
        (DPLogisticRegression(alpha=0.1, classes=[0, 1]), "excess_risk", 0.1),
        (DPRidge(alpha=0.1, target_range=(-1, 1)), "risk", 0.4),
        (DPHistogramDensity(bounds=(-1, 1), bin_width=1.0), "excess_risk", 0.1),
    ],
    ids=repr,
)
def test_accuracy_first(records, tmp_path, model, criterion, target):
    X, labels, targets = records
    y = targets if isinstance(model, DPRidge) else labels
    method = "auto" if criterion == "excess_risk" else "above_threshold"
    search = AccuracyFirstSearchCV(
        make_pipeline(BoundedScaler((-1, 1)), model),
        {f"{type(model).__name__.lower()}__epsilon": np.geomspace(0.01, 10, 20)},
        target=target,
        criterion=criterion,
        method=method,
        random_state=0,
        on_failure="last",
    )
    expected = clone(search).fit(X, y)
    for name, given in few_forms(X, y, tmp_path).items():
        search.fit(*given)
        assert search.best_index_ == expected.best_index_, name
        attribute = "density_" if "Histogram" in repr(model) else "coef_"
        np.testing.assert_allclose(
            getattr(search.best_estimator_[-1], attribute),
            getattr(expected.best_estimator_[-1], attribute),
            atol=1e-9,
        )


@pytest.mark.slow
def test_steps_that_want_names_and_categories(records):
    import dask.dataframe as dd
    import pandas as pd

    X, labels, _ = records
    frame = pd.DataFrame({"age": X[:, 0], "town": np.where(X[:, 1] > 0, "Ulm", "Bonn")})
    one_hot = OneHotEncoder(categories=[["Bonn", "Ulm"]], sparse_output=False)
    steps = ColumnTransformer(
        [("age", BoundedScaler((-1, 1)), ["age"]), ("town", one_hot, ["town"])],
        sparse_threshold=0,
    )
    search = StabilityGridSearchCV(
        make_pipeline(steps, DPLogisticRegression(classes=[0, 1])),
        {"dplogisticregression__norm": ["l1", "l2"]},
        random_state=0,
    )
    expected = clone(search).fit(frame, labels).best_estimator_[-1].coef_
    parts = [frame[:800], frame[800:]]
    for X in (
        dd.from_pandas(frame, npartitions=3),
        RowChunks(parts.__getitem__, [800, 1200], 2, feature_names=["age", "town"]),
    ):
        coef = search.fit(X, labels).best_estimator_[-1].coef_
        np.testing.assert_allclose(coef, expected, atol=1e-9)


def test_a_search_without_privacy_does_not_gather(records, tmp_path):
    X, labels, _ = records
    search = StabilityGridSearchCV(
        DPLogisticRegression(classes=[0, 1]), {"alpha": [0.1, 1.0]}, epsilon=float("inf")
    )
    for name in ("chunks", "dask"):
        with pytest.raises(ValueError, match="gather all rows"):
            search.fit(*few_forms(X, labels, tmp_path)[name])
    search.fit(few_forms(X, labels, tmp_path)["memory map"][0], labels)


@pytest.mark.parametrize("step", [BoundedScaler((-1, 1)), TableEncoder((-1, 1), expansion="linear")])
def test_names_of_chunks_without_names_are_those_of_the_search(step, records):
    """A fit and a prediction see the same names, whether chunks are arrays or frames."""
    pd = pytest.importorskip("pandas")
    X, labels, _ = records
    names = [f"column {j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names)
    half = len(X) // 2
    search = StabilityGridSearchCV(
        make_pipeline(step, DPLogisticRegression(classes=[0, 1])), {}, random_state=0
    )
    expected = clone(search).fit(frame, labels)
    for rows in (X, frame):
        parts = [rows[:half], rows[half:]]
        chunks = RowChunks(parts.__getitem__, [half, len(X) - half], len(names), feature_names=names)
        # any warning is an error
        search.fit(chunks, labels)
        assert search.feature_names_in_.tolist() == names
        np.testing.assert_array_equal(search.predict(chunks), expected.predict(frame))


STEPS = [
    PolynomialFeatures(),
    make_pipeline(BoundedScaler((-1, 1)), FunctionTransformer(np.abs)),
    ColumnTransformer(
        [("code", OneHotEncoder(categories=[[2.0, 3.0]]), [0])],
        remainder="passthrough",
        sparse_threshold=0,
    ),
]


@pytest.mark.parametrize("step", STEPS, ids=["polynomial", "function", "one-hot"])
def test_predictions_are_made_by_chunk_behind_steps_of_scikit_learn(records, tmp_path, step):
    X, labels, _ = records
    X = np.column_stack([2.0 + labels, X])  # of a category that no dummy row has
    model = make_pipeline("passthrough", step, DPLogisticRegression(classes=[0, 1]))
    search = StabilityGridSearchCV(model, {}, random_state=0).fit(X, labels)
    for name, (rows, y) in few_forms(X, labels, tmp_path).items():
        for method in ("predict", "predict_proba", "decision_function"):
            found = getattr(search, method)(rows)
            assert hasattr(found, "compute") == (name == "dask"), "rows were gathered"
            np.testing.assert_allclose(found, getattr(search, method)(X), rtol=1e-12, err_msg=name)
        assert search.score(rows, y) == search.score(X, labels)


def test_predictions_of_models_that_gather_read_chunks(records, tmp_path):
    class Nothing(LogisticRegression):
        """Private, as it learns nothing of its records."""

        def __init__(self, epsilon=1.0):
            super().__init__()
            self.epsilon = epsilon

        def fit(self, X, y):
            return super().fit(np.eye(X.shape[1])[:2], [0, 1])

    X, labels, _ = records
    model = PrivateModel(Nothing(), adjacency="replace one record", classes=[0, 1])
    search = StabilityGridSearchCV(make_pipeline(FunctionTransformer(np.abs), model), {})
    search.fit(X, labels)
    rows = few_forms(X, labels, tmp_path)
    np.testing.assert_array_equal(search.predict(rows["chunks"][0]), search.predict(X))
    with pytest.raises(TypeError, match="none is gathered; give X in memory"):
        search.predict(rows["dask"][0])
