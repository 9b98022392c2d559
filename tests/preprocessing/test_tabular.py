"""A TabularPipeline: bounds that follow from the encoder, in a fit, a search and a plan."""

import io
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline

from dpselect import (
    AccuracyFirstSearchCV,
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    RowChunks,
    SeededNoiseWarning,
    StabilityGridSearchCV,
    evaluate,
    privacy_of,
)
from dpselect.accounting.gaussian import gaussian_mu
from dpselect.model_selection import exact_scores, stages
from dpselect.model_selection.candidates import bound, make_candidates
from dpselect.noise import root_stream
from dpselect.preprocessing import (
    BoundedScaler,
    DPBoundsScaler,
    TableEncoder,
    TabularPipeline,
    table_form,
    tabular_pipeline,
)
from dpselect.preprocessing.table_encoding import TableEncoding
from dpselect.records.public_shape import n_problems
from dpselect.rows import computed, cutting
from tests.marks import a_third

SCHEMA = {
    "age": (18, 100),
    "income": {"bounds": (0, 1e5), "transform": "log1p", "missing": True},
    "job": ["farmer", "clerk", "cook"],
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 2000
    age, income = rng.integers(18, 100, n), rng.lognormal(9, 1, n)
    X = np.array([age, income, rng.choice(SCHEMA["job"], n)], dtype=object).T
    X[rng.random(n) < 0.1, 1] = np.nan
    return X, (age > 55).astype(int)


def bounds(model):
    return {name: value for name, value in model.get_params().items() if name.startswith("data_norm")}


@pytest.mark.parametrize(
    "model",
    [
        DPLogisticRegression(classes=[0, 1]),
        DPLinearSVC(classes=[0, 1]),
        DPPoissonRegressor(target_bound=10.0),
        DPRidge(target_range=(-1, 1)),
    ],
)
@pytest.mark.parametrize("expansion", ["linear", 3])
def test_a_fit_reads_bounds_from_the_encoder(model, expansion, table):
    pipeline = tabular_pipeline(SCHEMA, model, expansion=expansion).fit(*table)
    encoder = TableEncoder(SCHEMA, expansion=expansion)
    assert bounds(pipeline[-1]) == {
        "data_norm": encoder.typical_norm("l2"),
        "data_norm_l1": encoder.typical_norm("l1"),
    }
    assert privacy_of(pipeline).epsilon == 1.0
    assert model.data_norm == 1.0  # it was cloned


def test_a_base_rate_is_learned_where_nothing_is_given():
    def given(model):
        made = tabular_pipeline({"age": (0, 1)}, model)["model"]
        return made.get_params().get("base_rate", "none such")

    assert given(DPLogisticRegression()) == given(DPPoissonRegressor()) == "auto"
    assert given(DPLogisticRegression(base_rate=0.2)) == 0.2
    assert given(DPLinearSVC()) == "none such"


def test_groups_reach_the_model(table):
    X, y = table
    ids = np.arange(len(y)) % 500
    model = DPLogisticRegression(classes=[0, 1], random_state=0)
    with pytest.warns(SeededNoiseWarning):
        by_step = tabular_pipeline(SCHEMA, model).fit(X, y, model__groups=ids)
        fitted = tabular_pipeline(SCHEMA, model).fit(X, y, groups=ids)
        rows = tabular_pipeline(SCHEMA, model).fit(X, y, groups=None)
    assert privacy_of(fitted).adjacency == "replace all rows of one person"
    assert privacy_of(rows).adjacency == "replace one record"
    assert np.array_equal(fitted["model"].coef_, by_step["model"].coef_)
    assert fitted["encoder"].n_epsilon == 500  # persons, not rows
    with pytest.raises(TypeError, match="groups and model__groups"):
        tabular_pipeline(SCHEMA, model).fit(X, y, groups=ids, model__groups=ids)


def test_weights_reach_the_model(table):
    X, y = table
    weight = 1.0 + y
    model = DPLogisticRegression(float("inf"), classes=[0, 1], alpha=0.1, max_sample_weight=2.0)
    by_step, fitted, plain = (
        tabular_pipeline(SCHEMA, model).fit(X, y, **given)["model"].coef_
        for given in (
            {"model__sample_weight": weight},
            {"sample_weight": weight},
            {"sample_weight": None},
        )
    )
    assert np.array_equal(fitted, by_step) and not np.allclose(fitted, plain)
    with pytest.raises(TypeError, match="sample_weight and model__sample_weight"):
        tabular_pipeline(SCHEMA, model).fit(X, y, sample_weight=weight, model__sample_weight=weight)
    with pytest.raises(TypeError, match="sample_weight"):  # of a model that takes none
        tabular_pipeline(SCHEMA, DPRidge(target_range=(0, 1))).fit(X, y, sample_weight=weight)


def test_a_schema_that_says_nothing_is_refused_where_it_is_written():
    with pytest.raises(ValueError, match="'letter'.*HashingVectorizer"):
        tabular_pipeline({**SCHEMA, "letter": "text"}, DPLogisticRegression(classes=[0, 1]))


def test_a_histogram_is_refused_because_it_counts_in_units_of_the_columns():
    with pytest.raises(TypeError, match="number the categories"):
        tabular_pipeline(SCHEMA, DPHistogramDensity(bounds=(0, 1)))


@pytest.mark.parametrize(
    "name, meant",
    [
        ("alpha", "write 'model__alpha'."),
        ("dplogisticregression__alpha", "write 'model__alpha'."),
        ("tableencoder__expansion", "write 'encoder__expansion'."),
        ("alhpa", r"write 'encoder__\.\.\.' or 'model__\.\.\.'."),
    ],
)
def test_a_name_that_says_no_step_is_told_which_one_is_meant(name, meant):
    model = tabular_pipeline(SCHEMA, DPLogisticRegression(classes=[0, 1]))
    with pytest.raises(ValueError, match=meant) as raised:
        StabilityGridSearchCV(model, {name: [1, 2]}, epsilon=1.0).plan(n_samples=2000, n_features=3)
    assert len(str(raised.value)) < 200


def test_steps_can_be_exchanged_by_name():
    model = tabular_pipeline(SCHEMA, DPLogisticRegression(classes=[0, 1]))
    model.set_params(model=DPLinearSVC(classes=[0, 1]), verbose=True)
    model.set_params(steps=[("rows", model["encoder"]), ("svc", model["model"])], svc__alpha=0.5)
    assert model["svc"].alpha == 0.5 and model.verbose


def test_bounds_follow_the_encoder(table):
    pipeline = tabular_pipeline(SCHEMA, DPLogisticRegression(classes=[0, 1])).fit(*table)
    before = bounds(pipeline[-1])
    for other in (clone(pipeline), pickle.loads(pickle.dumps(pipeline)), pipeline):
        other.set_params(encoder__expansion=5).fit(*table)
        assert bounds(other[-1])["data_norm"] > before["data_norm"]


def test_each_candidate_of_a_search_has_its_own(table):
    pipeline = tabular_pipeline(SCHEMA, DPLogisticRegression(classes=[0, 1]))
    grid = {"encoder__expansion": ["linear", 4]}
    found = [bounds(c.model) for c in make_candidates(pipeline, grid, trusted_steps=())]
    assert [one["data_norm"] for one in found] == [
        TableEncoder(SCHEMA, expansion=k).typical_norm("l2") for k in grid["encoder__expansion"]
    ]
    search = StabilityGridSearchCV(pipeline, grid, epsilon=2.0, random_state=0)
    search.plan(2000, 3, example=table[0][:1])
    with pytest.warns(UserWarning, match="seed"):
        search.fit(*table)
    assert bounds(search.best_estimator_[-1]) == found[search.best_index_]
    assert search.privacy_.epsilon == 2.0
    assert bounds(pipeline[-1])["data_norm"] == 1.0


# --- the map follows public numbers

NUMBERS = {"age": (18, 100), "income": SCHEMA["income"]}
# (4 cosines have 9 columns)
EXPANSIONS = [(1, 2), (2699, 2), (2701, 4), (1e5, 4)]


def numbers(n, seed=0, n_classes=2):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.integers(18, 100, n), rng.lognormal(9, 1, n)]), np.arange(n) % n_classes


@pytest.mark.parametrize("told, expansion", EXPANSIONS)
def test_a_fit_tells_the_encoder_how_many_records_times_epsilon(told, expansion):
    pipeline = tabular_pipeline(NUMBERS, DPLogisticRegression(told / 500, classes=[0, 1]))
    alike = np.tile([[50.0, 0.0]], (500, 1)), np.zeros(500, dtype=int)
    for data in (numbers(500), alike):  # what the records hold does not matter
        fitted = clone(pipeline).fit(*data)
        assert fitted[0].expansion_ == expansion and fitted[0].n_epsilon == pytest.approx(told)
        assert fitted[1].n_features_in_ == fitted[0].transform(numbers(3)[0]).shape[1]
        assert (
            bounds(fitted[1])["data_norm"] == TableEncoder(NUMBERS, expansion=expansion).typical_norm()
        )
    # the next fit has other records
    assert clone(fitted).fit(*numbers(5))[0].expansion_ == fitted.fit(*numbers(5))[0].expansion_ == 2
    assert pipeline.get_params()["encoder__n_epsilon"] is None
    named = fitted.set_params(encoder__expansion="linear").fit(*numbers(500))
    assert named[0].expansion_ == "linear"


def test_more_classes_and_no_noise():
    data, three = numbers(600, n_classes=3), DPLogisticRegression(3.0, classes=[0, 1, 2])
    assert tabular_pipeline(NUMBERS, three).fit(*data)[0].n_epsilon == 600
    without = tabular_pipeline(NUMBERS, three.set_params(epsilon=np.inf)).fit(*data)
    assert without[0].expansion_ == 4
    search = StabilityGridSearchCV(without, {"model__alpha": [1.0]}, epsilon=np.inf).fit(*data)
    assert search.best_estimator_[0].expansion_ == 4


@pytest.mark.parametrize(
    "strategy",
    [
        "auto",
        "data_independent",
        "random",
        "optimal_risk",
        "stability",
        "budget_split",
        "data_split",
        "random_stopping",
    ],
)
def test_the_map_of_a_search_is_that_of_what_trains_its_model(strategy):
    kind = {"encoder__categories": ["simplex", "onehot"]}
    grid = {"model__alpha": [0.1, 1.0]} if strategy == "data_independent" else kind
    # a pipeline that has seen more records before
    pipeline = tabular_pipeline(NUMBERS, DPLogisticRegression(100.0, classes=[0, 1])).fit(*numbers(500))
    search = StabilityGridSearchCV(pipeline, grid, epsilon=20.0, strategy=strategy).fit(*numbers(600))
    plan, encoder = search.plan_, search.best_estimator_[0]
    told = plan.training_size * plan.training_epsilon
    assert encoder.n_epsilon == pytest.approx(told) and encoder.expansion_ == 2 + 2 * (told >= 2700)
    assert search.predict(numbers(4)[0]).shape == (4,)
    planned = search.plan(600, 2, example=numbers(1)[0])
    assert planned.training_size * planned.training_epsilon == told


def test_the_map_of_one_release_is_that_of_the_records_that_it_is_made_of():
    pipeline = tabular_pipeline(NUMBERS, DPRidge(target_range=(-1, 1)))
    search = StabilityGridSearchCV(pipeline, {"model__alpha": [0.1, 1.0]}, epsilon=20.0)
    search.fit(*numbers(600))
    assert search.plan_.strategy == "one_release" and search.plan_.training_size == 480
    assert search.best_estimator_[0].n_epsilon == 480 * 20.0


def test_a_fit_tells_the_encoder_of_the_delta_of_its_model():
    def told(model, epsilon=None, n_classes=2):
        X, y = numbers(600, n_classes=n_classes)
        pipeline = tabular_pipeline(NUMBERS, model.set_params(classes=range(n_classes)))
        if epsilon is None:
            encoder = pipeline.fit(X, y)[0]
        else:
            encoder = StabilityGridSearchCV(pipeline, {}, epsilon=epsilon).fit(X, y).best_estimator_[0]
        # a search may learn the base rate first
        assert encoder.n_mu is None or encoder.n_mu == pytest.approx(
            600
            * gaussian_mu(encoder.n_epsilon * n_problems(pipeline[-1]) / 600, model.delta)
            / n_problems(pipeline[-1]) ** 0.5
        )
        return encoder.n_mu

    for epsilon, delta in ((0.3, 1e-6), (2.0, 1e-3)):
        model = DPLogisticRegression(epsilon, delta=delta)
        mu = gaussian_mu(epsilon, delta)
        assert told(model) == pytest.approx(600 * mu)
        assert told(model, n_classes=4) == pytest.approx(600 * mu / 2)
        assert told(model, epsilon) == told(clone(model).set_params(epsilon=9.0), epsilon)
    for model in (DPLogisticRegression(1.0), DPLogisticRegression(np.inf, delta=1e-6)):
        assert told(model) is None
    grid = {"model__delta": [0.0, 1e-6]}
    pure, mixed = make_candidates(tabular_pipeline(NUMBERS, model), grid, trusted_steps=())
    assert pure.steps_key != mixed.steps_key  # their maps may differ


def test_accuracy_first_knows_no_epsilon_beforehand():
    pipeline = tabular_pipeline(NUMBERS, DPLogisticRegression(100.0, classes=[0, 1], alpha=1.0))
    assert pipeline.fit(*numbers(500))[0].expansion_ == 4
    grid = {"model__epsilon": np.geomspace(0.1, 100, 20)}
    search = AccuracyFirstSearchCV(pipeline, grid, target=0.5).fit(*numbers(500))
    encoder = search.best_estimator_[0]
    assert (encoder.expansion_, encoder.n_epsilon) == (2, None)


def test_models_of_one_grid_may_have_maps_of_their_own():
    """Equal parameters make equal maps for models of equally many classes only."""
    pipeline = tabular_pipeline(NUMBERS, DPLogisticRegression())
    classes = {"model__classes": [[0, 1], [0, 1, 2]]}
    two, three = make_candidates(pipeline, classes, trusted_steps=())
    two, three = bound([two, three], 300, 10.0)
    assert (two.steps[0].n_epsilon, three.steps[0].n_epsilon) == (3000, 1000)
    assert two.steps_key != three.steps_key


@pytest.mark.parametrize("name", ["model__data_norm", "model__data_norm_l1", "encoder__n_epsilon"])
def test_a_grid_that_contradicts_the_encoder_is_refused(name, table):
    pipeline = tabular_pipeline(SCHEMA, DPLogisticRegression(classes=[0, 1]))
    with pytest.raises(ValueError, match=name):
        StabilityGridSearchCV(pipeline, {name: [1.0, 2.0]}).fit(*table)


def test_a_search_tunes_columns(table):
    X, y = table
    pipeline = tabular_pipeline(SCHEMA, DPLogisticRegression(classes=[0, 1]))
    grid = {"encoder__columns": [["income", "job"], ["age"], "first", None]}
    search = StabilityGridSearchCV(pipeline, grid, epsilon=50.0).fit(X[:1500], y[:1500])
    encoder = search.best_estimator_[0]
    assert "age" in encoder.columns_ and np.mean(search.predict(X[1500:]) == y[1500:]) > 0.9
    # a number of each column that is not read changes nothing
    alone = StabilityGridSearchCV(pipeline, {"encoder__columns": [["age"]]}, epsilon=50.0)
    frame = pd.DataFrame(X, columns=list(SCHEMA))
    alone.fit(frame[:1500], y[:1500])
    mixed = frame.assign(income="?", job=7)
    assert np.array_equal(alone.predict(mixed), alone.predict(frame))


MANY = {f"n{j}": (0, 1) for j in range(9)}


def test_a_share_that_the_model_is_told_decides_how_many_columns_are_read():
    rng = np.random.default_rng(0)
    X, y = rng.random((600, 9)), np.arange(600) % 2

    def read(rate, epsilon=1.0, model=DPLogisticRegression, **options):
        kind = {"classes": [0, 1]} if model is DPLogisticRegression else {"target_bound": 1.0}
        pipeline = tabular_pipeline(MANY, model(epsilon, **kind), columns="first", **options)
        pipeline.set_params(model__base_rate=rate).fit(X, y)
        return len(pipeline[0].columns_)

    # 600 / 30 = 20 columns of cosines, at a share of .1 times .36
    assert read(None) == read("auto") == read(0.5) == 9
    assert read(0.1) == read(0.9) == read(None, class_share=0.1) == 3
    assert read(0.1, 2.0) == 7 and read("auto", class_share=0.1) == 3
    # a mean count is no share
    assert read(0.1, model=DPPoissonRegressor) == 9


@pytest.mark.parametrize("strategy", ["auto", "optimal_risk", "stability"])
def test_models_of_one_grid_may_read_other_columns(strategy):
    rng = np.random.default_rng(0)
    X, y = rng.random((600, 9)), np.arange(600) % 2
    pipeline = tabular_pipeline(MANY, DPLogisticRegression(classes=[0, 1]), columns="first")
    grid = {"model__base_rate": [0.5, 0.02]}
    search = StabilityGridSearchCV(pipeline, grid, epsilon=2.0, strategy=strategy).fit(X, y)
    rate, encoder = search.best_params_["model__base_rate"], search.best_estimator_[0]
    assert encoder.class_share == rate and (len(encoder.columns_) == 9) == (rate == 0.5)
    with pytest.raises(ValueError, match="encoder__class_share.* writes from public numbers"):
        grid = {"encoder__class_share": [0.1, 0.2]}
        StabilityGridSearchCV(pipeline.set_params(model__base_rate=0.1), grid).fit(X, y)


CONTAINERS = {
    "array": lambda X: X,
    "pandas": lambda X: pd.DataFrame(X, columns=list(SCHEMA)).astype({"age": int, "income": float}),
    "polars": lambda X: pl.from_pandas(CONTAINERS["pandas"](X)),
    "Arrow": lambda X: CONTAINERS["polars"](X).to_arrow(),
}


def coefficients(estimator, container, table):
    X, y = table
    fitted = clone(estimator).fit(CONTAINERS[container](X), y)
    return getattr(fitted, "best_estimator_", fitted)[-1].coef_


@pytest.mark.slow
@pytest.mark.parametrize("container", ["array", "polars", "Arrow"])
def test_rows_that_are_encoded_in_each_pass_give_the_same_models(container, table, monkeypatch):
    model = DPLogisticRegression(classes=[0, 1], random_state=root_stream(0))
    pipeline = tabular_pipeline(SCHEMA, model, expansion=3)
    estimators = [
        pipeline,
        tabular_pipeline(SCHEMA, DPRidge(target_range=(0, 1), random_state=root_stream(0))),
        StabilityGridSearchCV(pipeline, {"model__alpha": [1e-3, 1e-2]}, random_state=root_stream(0)),
    ]
    monkeypatch.setattr(cutting, "BLOCK_ELEMENTS", 4000)
    stored = [coefficients(estimator, container, table) for estimator in estimators]
    monkeypatch.setattr(computed, "FEW_NUMBERS", 0)
    read, kinds = [], (computed.TableRows, computed.SlicedRows)
    loads = {kind: kind.load for kind in kinds}

    def noted(rows, part):
        read.append(part)
        return loads[type(rows)](rows, part)

    for kind in kinds:
        monkeypatch.setattr(kind, "load", noted)
    # a search makes more passes, and stores what it may
    np.testing.assert_array_equal(coefficients(estimators[-1], container, table), stored[-1])
    assert not read
    with config_context(working_memory=0):
        for estimator, expected in zip(estimators, stored):
            np.testing.assert_array_equal(coefficients(estimator, container, table), expected)
            assert len(read) > 3 and max(part.stop - part.start for part in read) < 1000
            del read[:]
        # a twin that reads the first row in place of others
        for kind in kinds:
            monkeypatch.setattr(
                kind,
                "load",
                lambda rows, part: loads[type(rows)](rows, slice(0, part.stop - part.start)),
            )
        for estimator, expected in zip(estimators, stored):
            assert (coefficients(estimator, container, table) != expected).any()


LONG = [f"c{i}" for i in range(300)]
MODELS_OF_LONG = [
    DPLogisticRegression(classes=[0, 1], alpha=0.01, random_state=root_stream(0)),
    DPLinearSVC(classes=[0, 1], alpha=0.01, random_state=root_stream(0)),
    DPPoissonRegressor(target_bound=1.0, alpha=0.01, random_state=root_stream(0)),
    DPRidge(target_range=(0, 1), random_state=root_stream(0)),
]


@pytest.mark.parametrize("model", MODELS_OF_LONG, ids=lambda model: type(model).__name__)
def test_long_lists_are_read_by_their_codes(model, monkeypatch):
    """Rows with few entries are never dense, and models of them are the same."""
    rng = np.random.default_rng(0)
    z, codes = rng.random(3000), rng.integers(0, 301, 3000)
    X = pd.DataFrame({"z": z, "c": np.array([*LONG, "other"], dtype=object)[codes]})
    y = (rng.random(3000) < 0.2 + 0.3 * (codes % 2) + 0.3 * z).astype(int)
    schema = {"z": {"bounds": (0, 1), "missing": True}, "c": LONG}
    pipeline = tabular_pipeline(schema, model, categories="onehot", expansion=2)
    rows = pipeline[0].fit(X).transform(X)
    expected = clone(pipeline.bound(3000)[-1]).fit(rows, y).coef_

    monkeypatch.setattr(computed, "FEW_NUMBERS", 0)
    sparse_rows, dense_rows, blocks = TableEncoding.sparse, TableEncoding.__call__, []

    def one_row(encoding, rows):
        assert encoding.n_records == 1
        return dense_rows(encoding, rows)

    monkeypatch.setattr(TableEncoding, "__call__", one_row)
    monkeypatch.setattr(
        TableEncoding, "sparse", lambda *args: blocks.append(sparse_rows(*args)) or blocks[-1]
    )
    with config_context(working_memory=0):
        found = pipeline.fit(X, y)[-1].coef_
        np.testing.assert_allclose(found, expected, atol=1e-7)
        assert {block.nnz for block in blocks} == {4 * block.shape[0] for block in blocks}

        def shifted(*args):
            rows = sparse_rows(*args)
            rows.indices = np.minimum(rows.indices + 1, rows.shape[1] - 1)
            return rows

        monkeypatch.setattr(TableEncoding, "sparse", shifted)  # a twin
        assert np.abs(pipeline.fit(X, y)[-1].coef_ - expected).max() > 1e-3


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("once", [True, False])
def test_how_often_records_are_encoded(once, n_jobs, table, monkeypatch):
    """Once for each pass: their features are finite, and their norms are kept from the first one."""
    monkeypatch.setattr(cutting, "BLOCK_ELEMENTS", 4000)
    monkeypatch.setattr(computed, "FEW_NUMBERS", 0)
    passes, read = [], []
    block_sum = computed.SlicedRows.block_sum
    for name in ("coded", "__call__"):
        encode = getattr(TableEncoding, name)
        monkeypatch.setattr(
            TableEncoding, name, lambda rows, part, f=encode: read.append(part) or f(rows, part)
        )
    monkeypatch.setattr(
        computed.SlicedRows, "block_sum", lambda *args: passes.append(args) or block_sum(*args)
    )
    model = DPRidge(target_range=(0, 1)) if once else DPLogisticRegression(classes=[0, 1], n_jobs=n_jobs)
    tabular_pipeline(SCHEMA, model).fit(*table)
    parts = [part for part in read if isinstance(part, slice)]  # of a sample there is a list
    n_rows = sum(part.stop - part.start for part in parts if part.stop > 1)  # the first one is a trial
    assert n_rows / len(table[0]) == len(passes)


def shifted(read):
    """A twin that reads the first records in place of others."""
    return lambda rows, part: read(rows, slice(0, part.stop - part.start))


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_products_by_codes_fit_the_model_of_dense_rows(n_classes, norm, monkeypatch):
    """Also of rows that are clipped, and of values that the schema does not list."""
    rng = np.random.default_rng(0)
    schema = {
        "age": (18, 100),
        "job": [*"abcde"],
        "income": {"bounds": (0, 9), "missing": True},
        "town": {"categories": [*"xyz"], "missing": True},
    }
    columns = rng.integers(18, 100, 900), rng.choice([*"abcdef"], 900), rng.uniform(0, 9, 900)
    X = pd.DataFrame(dict(zip(schema, (*columns, rng.choice([*"xyz", None], 900)))))
    X.loc[rng.random(900) < 0.1, "income"] = np.nan
    y = X.age.to_numpy() * n_classes // 101
    model = DPLogisticRegression(classes=range(n_classes), norm=norm, random_state=root_stream(0))
    cuts = {"age": [30, 50]}

    def coefficients(code):
        return tabular_pipeline(schema, model, cut_points=cuts, categories=code).fit(X, y)[-1].coef_

    monkeypatch.setattr(cutting, "BLOCK_ELEMENTS", 1000)
    for code in ("simplex", "onehot"):
        expected = coefficients(code)  # of dense rows, which are few
        with monkeypatch.context() as patched:
            patched.setattr(computed, "FEW_NUMBERS", 0)
            np.testing.assert_allclose(coefficients(code), expected, rtol=1e-6, atol=1e-9)
            coded = TableEncoding.coded
            patched.setattr(TableEncoding, "coded", shifted(coded))
            assert np.abs(coefficients(code) - expected).max() > 1e-4


@pytest.mark.parametrize("levels", [3, 200])
def test_predictions_store_no_encoded_rows(levels, monkeypatch):
    """They are those of stored rows, also where a long list makes the rows sparse."""
    rng = np.random.default_rng(0)
    towns = [f"t{j}" for j in range(levels)]
    X = pd.DataFrame({"age": rng.uniform(18, 100, 500), "town": rng.choice(towns, 500)})
    y = (X.age > 60).to_numpy()
    pipeline = tabular_pipeline(
        {"age": (18, 100), "town": towns}, DPLogisticRegression(classes=[False, True])
    ).fit(X, y)
    methods = "predict_proba", "predict_log_proba", "decision_function"
    expected = [getattr(pipeline, name)(X) for name in methods]
    accuracy = pipeline.score(X, y, sample_weight=X.age)
    monkeypatch.setattr(computed, "FEW_NUMBERS", 0)
    one_row = TableEncoding.__call__

    def dense(encoding, rows):
        assert rows == slice(0, 1)  # of which the form is read
        return one_row(encoding, rows)

    monkeypatch.setattr(TableEncoding, "__call__", dense)
    for name, values in zip(methods, expected):
        np.testing.assert_allclose(getattr(pipeline, name)(X), values, rtol=1e-12)
    assert pipeline.score(X, y, sample_weight=X.age) == accuracy
    np.testing.assert_array_equal(pipeline.predict(X), expected[-1] > 0)
    assert not hasattr(tabular_pipeline({"age": (0, 1)}, DPRidge()), "predict_proba")


@pytest.mark.parametrize("container", ["pandas", "polars", "Arrow"])
def test_a_search_of_one_candidate_needs_no_more_memory_than_a_fit(container, table, monkeypatch):
    """Its cells are neither converted nor stored, and it gives the same model."""
    model = DPLogisticRegression(classes=[0, 1], random_state=root_stream(0))
    search = StabilityGridSearchCV(
        tabular_pipeline(SCHEMA, model, expansion=3), {}, random_state=root_stream(0)
    )
    convert, for_steps = table_form.TableForm.convert, exact_scores.records_for_steps

    def converting(candidates, X, public=None):
        found, public = for_steps(candidates, X, public)
        return convert(public.form, found), public

    with monkeypatch.context() as patched:
        patched.setattr(stages, "records_for_steps", converting)
        expected = coefficients(search, container, table)  # from cells as float64 and text, all stored
    monkeypatch.setattr(cutting, "BLOCK_ELEMENTS", 4000)
    monkeypatch.setattr(computed, "FEW_NUMBERS", 0)
    monkeypatch.setattr(table_form.TableForm, "convert", None)
    read, coded = [], TableEncoding.coded
    monkeypatch.setattr(
        TableEncoding, "coded", lambda rows, part: read.append(part) or coded(rows, part)
    )
    np.testing.assert_allclose(coefficients(search, container, table), expected, rtol=1e-9)
    assert len(read) > 3 and max(part.stop - part.start for part in read) <= 1000
    monkeypatch.setattr(TableEncoding, "coded", shifted(coded))
    assert np.abs(coefficients(search, container, table) - expected).max() > 1e-6


@pytest.mark.parametrize("stored", [True, False])
def test_a_step_with_private_parts_takes_rows_of_any_size(stored, monkeypatch):
    """It needs rows that are stored, and X is in memory."""
    if not stored:
        monkeypatch.setattr(computed, "FEW_NUMBERS", 0)
    X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    parts = [("bounds", DPBoundsScaler(epsilon=0.3), [0])]
    columns = ColumnTransformer(parts, remainder="passthrough", sparse_threshold=0)
    model = DPLogisticRegression(classes=[False, True])
    pipeline = Pipeline([("s", BoundedScaler([(-1, 1)] * 2)), ("c", columns), ("model", model)])
    search = StabilityGridSearchCV(pipeline, {"model__alpha": [0.1, 1.0]})
    with config_context(working_memory=1024 if stored else 0):
        assert search.fit(X, X[:, 0] > 0).privacy_.epsilon == 1.0


@pytest.mark.parametrize("container", ["array", "Arrow"])
@pytest.mark.parametrize("kind", [DPRidge, DPHuberRegressor])
def test_encoded_rows_are_not_stored(kind, container):
    X = np.random.default_rng(0).uniform(-1, 1, (150_000, 10)).astype(np.float32)
    schema = {f"x{j}": (-1, 1) for j in range(10)}
    pipeline = tabular_pipeline(schema, kind(target_range=(-1, 1)), expansion=4)
    rows = X
    if container == "Arrow":
        # in pieces, which numpy cannot share
        tables = [pl.DataFrame(part, schema=list(schema)).to_arrow() for part in np.array_split(X, 3)]
        rows = pa.concat_tables(tables)
    tracemalloc.start()
    try:
        pipeline.fit(rows, X[:, 0])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # 40 numbers a row would be 48 MB
    assert peak < 12e6


def test_accuracy_first(table):
    pipeline = tabular_pipeline(SCHEMA, DPLogisticRegression(classes=[0, 1], alpha=0.1))
    grid = {"model__epsilon": np.geomspace(0.1, 100, 20)}
    search = AccuracyFirstSearchCV(pipeline, grid, target=0.1).fit(*table)
    assert bounds(search.best_estimator_[-1])["data_norm"] == TableEncoder(SCHEMA).typical_norm("l2")


def test_without_an_encoder_nothing_is_known(table):
    steps = make_pipeline(DPLogisticRegression(classes=[0, 1])).steps
    with pytest.raises(TypeError, match="no TableEncoder"):
        TabularPipeline(steps).fit(*table)


def test_predictions_and_evaluation_of_arrow_tables(table):
    frame, y = CONTAINERS["pandas"](table[0]), table[1]
    rows, labels = CONTAINERS["Arrow"](table[0]), pa.array(y)
    model = tabular_pipeline(SCHEMA, DPLogisticRegression(classes=[0, 1])).fit(rows, labels)
    assert model.feature_names_in_.tolist() == list(SCHEMA)
    np.testing.assert_array_equal(model.predict_proba(rows[5:50]), model.predict_proba(frame[5:50]))
    of_rows, of_frame = (
        evaluate(model, X, y, epsilon=1.0, random_state=root_stream(0)) for X in (rows.slice(0), frame)
    )
    assert repr(of_rows) == repr(of_frame)
    search = StabilityGridSearchCV(make_pipeline(BoundedScaler((0, 99)), model[-1]), {})
    numbers = rows.select(["age"])
    assert search.fit(numbers, y).predict(numbers).shape == y.shape


def test_errors_quote_no_cell_of_arrow_tables():
    encoder, dates = TableEncoder({"a": (0, 1)}), pa.array([1234567891234567891], pa.timestamp("ns"))
    wrong = [pa.array(["1234567x"]), dates, pa.array([[1234567]]), pa.array([1234567, None])]
    for column in [*wrong, pa.array(["1234567x"]).dictionary_encode()]:
        rows = pa.table({"a": column})
        with pytest.raises(ValueError, match="^Column 'a' of X") as error:
            encoder.fit(rows).transform(rows)
        assert "1234567" not in str(error.value)


# --- the same table, however it is stored

GAPS = {
    "age": {"bounds": (18, 100), "missing": True, "fill": 40},
    "gain": {"bounds": (0, 1e5), "transform": "log1p", "missing": True},
    "job": {"categories": ["farmer", "clerk", "cook"], "missing": True},
    "degree": {"categories": ["1", "2", "3"], "unknown": True},
    "member": [False, True],
}


def with_gaps(n=300, first_age=None):
    """Records as lists, with gaps, None for each; the first one may differ."""
    rng = np.random.default_rng(0)
    columns = [
        rng.integers(18, 100, n),
        rng.choice([0.0, 2174.0, 99999.0], n),
        rng.choice([*GAPS["job"]["categories"], None], n),
        rng.integers(1, 5, n),
        rng.random(n) < 0.5,
    ]
    rows = [list(row) for row in np.array(columns, dtype=object).T]
    for i in range(0, n, 7):
        rows[i][(i // 7) % 2] = None
    rows[0][:2] = [first_age, 5.0]
    return rows


def frame(rows, **kwargs):
    return pd.DataFrame(rows, columns=list(GAPS), **kwargs)


def written(rows, **kwargs):
    return pd.read_csv(io.StringIO(frame(rows).to_csv(index=False)), **kwargs)


def arrow():
    pytest.importorskip("pyarrow", exc_type=ImportError)
    return {"dtype_backend": "pyarrow"}


STORED = {
    "list": lambda rows: rows,
    "array of objects": lambda rows: np.array(rows, dtype=object),
    "pandas": frame,
    "pandas objects": lambda rows: frame(rows, dtype=object),
    "nullable": lambda rows: frame(rows).convert_dtypes(),
    "arrow": lambda rows: frame(rows).convert_dtypes(**arrow()),
    "categories": lambda rows: frame(rows).astype({"job": "category", "degree": "category"}),
    "polars": lambda rows: pl.DataFrame(rows, schema=list(GAPS), orient="row", strict=False),
    "Arrow table": lambda rows: STORED["polars"](rows).to_arrow(),
    "csv": written,
    "csv, arrow": lambda rows: written(rows, **arrow(), engine="pyarrow"),
    "other order": lambda rows: frame(rows)[list(GAPS)[::-1]],
    "chunks": lambda rows: RowChunks(
        lambda i: frame(rows).iloc[100 * i : 100 * (i + 1)], [100, 100, 100], 5, list(GAPS)
    ),
}
SEARCHES = {
    "fit": lambda pipeline: pipeline,
    "search": lambda pipeline: StabilityGridSearchCV(
        pipeline, {"encoder__expansion": ["linear", 3]}, epsilon=5.0, strategy="stability"
    ),
    "accuracy first": lambda pipeline: AccuracyFirstSearchCV(
        pipeline, {"model__epsilon": [5.0, 50.0]}, target=10.0
    ),
}


def released(how, X):
    """What is released of a table, and what it predicts for the same records."""
    y = np.arange(300) % 2
    pipeline = tabular_pipeline(GAPS, DPLogisticRegression(classes=[0, 1], alpha=0.1))
    search = SEARCHES[how](pipeline)
    owner = pipeline.named_steps["model"] if search is pipeline else search
    owner.random_state = root_stream(0)
    fitted = getattr(search.fit(X, y), "best_estimator_", search)
    kept = fitted[0].get_feature_names_out().tolist(), fitted[0].terms_
    return kept, fitted[-1].coef_, fitted.decision_function(X)


@pytest.mark.parametrize("how", SEARCHES)
@pytest.mark.parametrize("container", a_third(STORED))
def test_a_table_is_the_same_however_it_is_stored(how, container):
    expected, coef, margins = released(how, STORED["list"](with_gaps()))
    kept, *found = released(how, STORED[container](with_gaps()))
    assert kept == expected
    # chunks are summed in another order
    exact = 0 if container != "chunks" else 1e-10
    np.testing.assert_allclose(found[0], coef, rtol=0, atol=exact)
    np.testing.assert_allclose(found[1], margins, rtol=0, atol=exact)


@pytest.mark.parametrize("container", [name for name in STORED if name != "chunks"])
def test_a_gap_reaches_no_step(container):
    """Neighbours, one of which alone turns a column of numbers into objects, leave equal steps."""
    pipeline = tabular_pipeline(GAPS, DPLogisticRegression(classes=[0, 1]))
    search = StabilityGridSearchCV(pipeline, {}, epsilon=1.0)
    kept = []
    for age in (30, 30.5, None):
        rows = [
            [50 if cell is None and j == 0 else cell for j, cell in enumerate(row)]
            for row in with_gaps()
        ]
        rows[0][0] = age
        fitted = search.fit(STORED[container](rows), np.arange(300) % 2).best_estimator_
        kept.append(pickle.dumps(fitted[:-1]))
    assert kept[0] == kept[1] == kept[2]


def test_gaps_among_objects_are_refused_where_a_step_would_not_take_them():
    rows = np.array([[1, 2], [None, 3]] * 50, dtype=object)
    for steps in ([BoundedScaler((0, 9))], [BoundedScaler((0, 9)), TableEncoder((-1, 1))]):
        model = make_pipeline(*steps, DPLogisticRegression(classes=[0, 1]))
        with pytest.raises(ValueError, match="None or NA among numbers .* begin with a TableEncoder"):
            StabilityGridSearchCV(model, {}).fit(rows, [0, 1] * 50)
    both = make_pipeline("passthrough", DPLogisticRegression(classes=[0, 1]))
    encoder = TableEncoder({"a": {"bounds": (0, 9), "missing": True}, "b": (0, 9)})
    grid = {"passthrough": [encoder, BoundedScaler((0, 9))]}
    with pytest.raises(ValueError, match="None or NA among numbers"):
        StabilityGridSearchCV(both, grid).fit(rows, [0, 1] * 50)
    StabilityGridSearchCV(both, {"passthrough": [encoder]}).fit(rows, [0, 1] * 50)
