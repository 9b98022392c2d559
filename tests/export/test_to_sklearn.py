"""What is handed over predicts the same, in scikit-learn alone, and knows no more."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import VotingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

from dpselect import (
    AccuracyFirstSearchCV,
    DPHistogramDensity,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    PrivacyLedger,
    StabilityGridSearchCV,
)
from dpselect.export import to_sklearn
from dpselect.linear_model.model import LinearModel
from dpselect.linear_model.sklearn_models import linear_part
from dpselect.preprocessing import (
    BoundedScaler,
    DPBoundsScaler,
    NormClipper,
    TableEncoder,
    plain_tables,
    tabular_pipeline,
)
from tests.marks import a_third

from ..glue import cases
from .rows import MODELS, ROWS, SCHEMA, SETTINGS, X, table

METHODS = ("decision_function", "predict", "predict_proba", "transform")


def same(model, plain, rows, others=None):
    """Whether two models predict the same of rows, to 1e-12 of the largest number."""
    others = rows if others is None else others
    found = [name for name in METHODS if hasattr(model, name)]
    assert found
    for name in found:
        own, theirs = getattr(model, name)(rows), getattr(plain, name)(others)
        if own.dtype.kind != "f":
            assert np.array_equal(own, theirs), name
        else:
            largest = max(1.0, np.abs(own).max())
            np.testing.assert_allclose(theirs, own, rtol=0, atol=1e-12 * largest, err_msg=name)


@pytest.fixture(autouse=True)
def no_warning():
    """scikit-learn says nothing, of names of columns neither."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "n epsilon over the length")  # there are few records
        yield


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    model = clone(MODELS[name])
    model.fit(*cases.records_for(model))
    plain = to_sklearn(model)
    same(model, plain, ROWS)
    assert np.array_equal(linear_part(plain[-1]).coef_, model.coef_)
    assert b"dpselect" not in pickle.dumps(plain)


@pytest.mark.parametrize("norms", [{}, {"norm": "l1"}, {"data_norm": 0.5, "data_norm_l1": 0.6}])
@pytest.mark.parametrize("max_derivative", [None, "auto", 0.75])
@pytest.mark.parametrize("n_classes", a_third([2, 3, 5]))
@pytest.mark.parametrize("middle", [0.0, 1.0])
def test_models_with_large_coefficients(n_classes, max_derivative, norms, middle):
    """They predict the same of the rows for which all classes are unlikely, or are refused."""
    model = DPLogisticRegression(
        classes=list(range(n_classes)),
        max_derivative=max_derivative,
        **norms,
    )
    model.fit(X, np.arange(len(X)) % n_classes)
    direction, same_at, refused_at = np.random.default_rng(0).normal(size=model.coef_.shape), [], []
    direction += (middle - 1) * direction.mean(axis=0)
    aims = -np.vstack([direction, direction.mean(axis=0), direction[:2].mean(axis=0)])
    rows = np.vstack([ROWS, aims, 1e3 * aims, np.sign(aims), np.eye(X.shape[1]), -np.eye(X.shape[1])])
    for scale in np.geomspace(1.0, 1e6, 13):
        model.coef_ = scale * direction
        try:
            plain = to_sklearn(model)
        except ValueError as error:
            assert "coefficients so large" in str(error)
            refused_at.append(scale)
        else:
            same(model, plain, rows)
            same_at.append(scale)
    # coefficients that cancel leave each row a class that is likely
    assert bool(refused_at) == (n_classes > 2 and middle > 0) and max(same_at) > 100


@pytest.mark.parametrize(
    "step",
    [
        BoundedScaler([(-1, 2), (0, 1e-3), (1e9, 1e9 + 1)]),
        NormClipper("l1", 0.7),
        NormClipper(bound=2.0),
        DPBoundsScaler(),
        BoundedScaler((-4e307, 4e307)),
        ColumnTransformer(
            [("scaled", BoundedScaler((0, 1)), [2, 0]), ("rest", "passthrough", [1])],
            sparse_threshold=0,
        ),
        make_union(BoundedScaler((-1, 1)), make_pipeline(NormClipper(), DPBoundsScaler(), memory=None)),
    ],
)
def test_steps(step):
    step = clone(step).fit(X)
    same(step, to_sklearn(step), ROWS)
    assert b"dpselect" not in pickle.dumps(to_sklearn(step))


@pytest.mark.parametrize(
    "container",
    [
        lambda rows: np.clip(rows, -1e30, 1e30).astype(np.float32),
        sparse.csr_matrix,
        sparse.csr_array,
        list,
        pd.DataFrame,
        lambda rows: pl.DataFrame(rows.tolist(), schema=["x0", "x1", "x2"], orient="row"),
        lambda rows: (
            pd.DataFrame(np.clip(rows, -1e9, 1e9)).convert_dtypes().rename(columns="x{}".format)
        ),
    ],
)
@pytest.mark.parametrize(
    "name",
    [
        "logistic-objective-l1-3 classes-1",
        "ridge-covariance-l1-1-ball None",
    ],
)
def test_containers(container, name):
    model, rows = clone(cases.VARIANTS[name]), container(ROWS)
    model.fit(rows[: cases.N], cases.records_for(model)[1])
    same(model, to_sklearn(model), rows)


def test_what_scikit_learn_sets_is_of_no_account():
    model = make_pipeline(BoundedScaler((-1, 1)), DPRidge(target_range=(-1, 1)))
    model.fit(X, cases.targets(X))
    plain = to_sklearn(model)
    with sklearn.config_context(transform_output="pandas"):
        np.testing.assert_allclose(plain.predict(X), model[-1].predict(model[0].transform(X).to_numpy()))
    encoder = TableEncoder(SCHEMA).fit(table())
    expected = encoder.transform(table())
    with sklearn.config_context(transform_output="pandas"):
        found = to_sklearn(encoder).transform(table())
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


# ---- tables


def polars(frame):
    def plain(value):
        return None if value is None or value != value else str(value)

    texts = ("job", "grade", "kind")
    frame = frame.assign(hours=frame["hours"].astype(float))
    return pl.DataFrame(
        {name: [plain(cell) if name in texts else cell for cell in frame[name]] for name in frame},
        strict=False,
    )


CONTAINERS = {
    "pandas": lambda frame: frame,
    "nullable": lambda frame: frame.assign(hours=frame["hours"].astype(float)).convert_dtypes(),
    "polars": polars,
    "array": lambda frame: frame.to_numpy(dtype=object),
    "list": lambda frame: frame.to_numpy(dtype=object).tolist(),
}


def dense(rows):
    return rows.toarray() if sparse.issparse(rows) else rows


# each setting in two containers: the encoder that is exported does not depend on them
TABLES = [
    pytest.param(setting, name, marks=[] if j in (0, 1 + i % 4) else [pytest.mark.slow])
    for i, setting in enumerate(SETTINGS)
    for j, name in enumerate(CONTAINERS)
]


@pytest.mark.parametrize("setting, container", TABLES, ids=str)
def test_tables(setting, container):
    rows = CONTAINERS[container](table())
    encoder = TableEncoder(SCHEMA, **setting).fit(rows)
    plain = to_sklearn(encoder)
    np.testing.assert_allclose(plain.transform(rows), dense(encoder.transform(rows)), rtol=0, atol=1e-14)
    assert b"dpselect" not in pickle.dumps(plain)


def test_a_spelling_that_is_not_known_is_seen(monkeypatch):
    monkeypatch.setattr(plain_tables, "WRITTEN_GAPS", ())
    monkeypatch.setattr(plain_tables, "MISSING_TEXTS", ())  # most of them are written so, too
    with pytest.raises(AssertionError):
        test_tables({}, "pandas")


def test_columns_are_known_by_name():
    frame = table()
    encoder = TableEncoder(SCHEMA).fit(frame)
    plain = to_sklearn(encoder)
    turned = plain.transform(frame[frame.columns[::-1]])
    np.testing.assert_allclose(turned, encoder.transform(frame), rtol=0, atol=1e-14)
    with pytest.raises(ValueError, match="age"):
        plain.transform(frame.drop(columns="age"))
    model = DPRidge(target_range=(-1, 1)).fit(pd.DataFrame(X, columns=list("abc")), cases.targets(X))
    with pytest.raises(ValueError, match="same order"):
        to_sklearn(model).predict(pd.DataFrame(X, columns=list("acb")))


@pytest.mark.parametrize("cell", [np.nan, np.inf, "much"])
def test_cells_that_no_record_has_are_refused(cell):
    frame = table().astype({"age": object})
    plain = to_sklearn(TableEncoder(SCHEMA).fit(frame))
    frame.loc[0, "age"] = cell
    with pytest.raises(ValueError):
        plain.transform(frame)


@pytest.mark.parametrize("category", ["None", "nan ", "<NA>"])
def test_a_category_that_is_written_as_a_gap_is_refused(category):
    encoder = TableEncoder({"a": ["x", category]}).fit([["x"]])
    with pytest.raises(ValueError, match="cannot tell from a missing cell"):
        to_sklearn(encoder)


# ---- pipelines and searches

Y = cases.labels(2, X)
ONEHOT = OneHotEncoder(categories=[[-1, 0, 1]] * 3, handle_unknown="ignore", sparse_output=False)


@pytest.mark.parametrize(
    "pipeline",
    [
        tabular_pipeline(SCHEMA, DPLogisticRegression(classes=[0, 1])),
        tabular_pipeline(SCHEMA, DPLogisticRegression(classes=[0, 1]), pairs=[("age", "debt")]),
        tabular_pipeline(SCHEMA, DPLogisticRegression(classes=[0, 1], data_norm="auto")),
        tabular_pipeline(SCHEMA, DPLogisticRegression(200.0, classes=[0, 1]), ranges="auto"),
    ],
)
def test_tabular_pipelines(pipeline):
    frame = table()
    y = (frame["age"] > 60).astype(int)
    pipeline = clone(pipeline).fit(frame, y)
    for plain in (to_sklearn(pipeline), pipeline.to_sklearn()):
        assert type(plain) is Pipeline and list(plain.named_steps) == ["encoder", "model"]
        same(pipeline, plain, table(seed=1))
        assert b"dpselect" not in pickle.dumps(plain)


@pytest.mark.parametrize(
    "steps",
    [
        (PolynomialFeatures(2), NormClipper(bound=3.0)),
        (DPBoundsScaler(), "passthrough"),
        (make_pipeline(BoundedScaler((-1, 1)), PolynomialFeatures(2)),),
        (BoundedScaler((-1, 1)), ONEHOT),
    ],
)
def test_pipelines_and_searches(steps, tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.json", epsilon=100.0)
    model = make_pipeline(*map(clone, steps[:-1]), steps[-1], DPLogisticRegression(classes=[0, 1]))
    search = StabilityGridSearchCV(
        clone(model), {"dplogisticregression__alpha": [0.1, 1.0]}, epsilon=10.0, ledger=ledger
    )
    for fitted in (model, search):
        fitted.fit(X, Y)
        plain = to_sklearn(fitted)
        same(fitted, plain, ROWS[: cases.N + 20])
        assert b"dpselect" not in pickle.dumps(plain) and b"ledger" not in pickle.dumps(plain)
    spent = ledger.spent()
    to_sklearn(search)
    assert ledger.spent() == spent


def test_accuracy_first():
    search = AccuracyFirstSearchCV(
        DPRidge(target_range=(-1, 1)), {"epsilon": [10.0, 1000.0]}, target=0.5
    ).fit(X, cases.targets(X))
    same(search, search.to_sklearn(), ROWS)


@pytest.mark.parametrize("max_derivative", [None, "auto"])
def test_a_change_of_what_was_handed_over_changes_nothing(max_derivative):
    model = DPLogisticRegression(classes=[0, 1], max_derivative=max_derivative).fit(X, Y)
    before, last = model.coef_.copy(), to_sklearn(model)[-1]
    getattr(last, "estimators_", [last])[0].coef_[:] = 0
    assert np.array_equal(model.coef_, before)


# ---- what is refused

MODEL = DPLogisticRegression(classes=[0, 1])


@pytest.mark.parametrize(
    "estimator, error, said",
    [
        (
            DPHistogramDensity(bounds=(-4, 4), bin_width=2.0),
            TypeError,
            r"write to_frame\(\)",
        ),
        (make_pipeline(BoundedScaler((-1, 1)), LogisticRegression()), TypeError, "LogisticRegression"),
        (LogisticRegression(), TypeError, "paid for"),
        (GridSearchCV(MODEL, {"alpha": [1.0]}, cv=KFold(2)), TypeError, "GridSearchCV"),
        (VotingRegressor([("a", DPRidge(target_range=(0, 1)))]), TypeError, "VotingRegressor"),
        (make_pipeline(StandardScaler(), MODEL), ValueError, "learns from the data"),
        (make_union(BoundedScaler((0, 1)), StandardScaler()), ValueError, "learns from the data"),
        (StabilityGridSearchCV(MODEL, {"alpha": [1.0]}, refit=False), AttributeError, "refit"),
    ],
)
def test_what_has_no_equal_is_refused(estimator, error, said):
    warnings.filterwarnings("ignore", "A search or cross-validation")
    estimator = clone(estimator).fit(X, Y)
    with pytest.raises(error, match=said):
        to_sklearn(estimator)


def test_a_histogram_says_what_to_hand_over():
    model = DPHistogramDensity(bounds=(-4, 4), bin_width=2.0)
    assert not hasattr(model, "to_sklearn")
    with pytest.raises(AttributeError, match=r"no histograms; write to_frame\(\)"):
        model.to_sklearn()
    with pytest.raises(AttributeError, match="'DPHistogramDensity' object has no attribute 'to_pmml'"):
        model.to_pmml()


@pytest.mark.parametrize(
    "estimator",
    [
        MODEL,
        DPRidge(),
        BoundedScaler((0, 1)),
        NormClipper(),
        DPBoundsScaler(),
        TableEncoder(SCHEMA),
        make_pipeline(BoundedScaler((0, 1)), MODEL),
        make_union(NormClipper()),
        tabular_pipeline(SCHEMA, MODEL),
        StabilityGridSearchCV(MODEL, {"alpha": [1.0]}),
    ],
)
def test_before_a_fit(estimator):
    with pytest.raises(NotFittedError):
        to_sklearn(clone(estimator))


def test_trusted_steps():
    model = make_pipeline(StandardScaler(), clone(MODEL)).fit(X, Y)
    same(model, to_sklearn(model, trusted_steps=[StandardScaler]), X)


def test_a_model_that_predicts_in_its_own_way_says_so():
    class Mine(DPPoissonRegressor):
        _plain_predictor = LinearModel._plain_predictor

    model = Mine(target_bound=3.0).fit(X, Y)
    with pytest.raises(TypeError, match="Mine does not say which model"):
        model.to_sklearn()
