"""Attacks on what a search releases beside its model: types, names, decisions by density.

Each succeeds on a broken twin: a search that fits steps on records, or a Pipeline that is fitted by
itself, without the check.
"""

import io
import pickle
from copy import deepcopy
from dataclasses import fields

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from dpselect import AccuracyFirstSearchCV, DPLogisticRegression, DPRidge, StabilityGridSearchCV
from dpselect.model_selection import candidates, row_steps
from dpselect.model_selection import exact_scores as evaluation
from dpselect.model_selection.row_steps import PublicRows
from dpselect.preprocessing import (
    BoundedScaler,
    DPBoundsScaler,
    NormClipper,
    check_pipeline_privacy,
)
from dpselect.preprocessing.pipeline_check import private_parts
from dpselect.preprocessing.table_form import TableForm, read_form
from tests.marks import a_third

from .tables import ANY, CONTAINERS, IMPUTER, ORDINAL

MODEL = DPLogisticRegression(classes=[0, 1])


class Unconverted(TableForm):
    def convert(self, X):
        return X


def all_records(X, *steps):
    form = read_form(X)
    return PublicRows([X], Unconverted(**{f.name: getattr(form, f.name) for f in fields(form)}))


@pytest.fixture(params=[False, True], ids=["search", "broken twin"])
def broken(request, monkeypatch):
    """Whether the search is broken: its steps are fitted on the records."""
    if request.param:
        monkeypatch.setattr(evaluation, "public_rows", all_records)
        for name in ("_keep_integer_categories", "_keep_integer_statistics"):
            monkeypatch.setattr(row_steps, name, lambda *args: args[-1])
    return request.param


def released(search):
    """All that a fitted search shows but coefficients, bounds and the choice, which are paid for."""
    steps, model = deepcopy(search.best_estimator_[:-1]), search.best_estimator_[-1]
    for part in private_parts(steps) + [p for _, s in steps.steps for p in private_parts(s)]:
        part.bounds_ = np.zeros_like(part.bounds_)
    forms = {
        name: (value.dtype, value.shape) if isinstance(value, np.ndarray) else type(value)
        for name, value in vars(model).items()
    }
    return [
        pickle.dumps(steps),
        forms,
        steps.get_feature_names_out().tolist(),
        sorted(vars(search)),
        repr(getattr(search, "cv_results_", None)),
        search.n_features_in_,
        getattr(search, "feature_names_in_", np.array([])).tolist(),
        str(search.privacy_),
    ]


ROWS = [[i % 3, "xy"[i % 2]] for i in range(120)]
TARGETS = np.tile([0, 1], 60)
OTHERS = [[2, "x"], [2.0, "x"], [1.5, "a longer text"], [None, "x"]]
SAFE = ColumnTransformer(
    [
        ("n", make_pipeline(IMPUTER, BoundedScaler((0, 2))), [0]),
        ("c", OneHotEncoder(categories=[[0, 1, 2]], **ANY), [0]),
        ("t", OneHotEncoder(categories=[["x", "y"]], **ANY), [1]),
    ],
    sparse_threshold=0,
)
BESIDE = ColumnTransformer(
    [
        ("n", make_pipeline(IMPUTER, DPBoundsScaler(epsilon=1.0)), [0]),
        ("c", OrdinalEncoder(categories=[[0, 1, 2]], **ORDINAL), [0]),
        ("t", OneHotEncoder(categories=[["x", "y"]], **ANY), [1]),
    ],
    sparse_threshold=0,
)
GRID = {"model__data_norm": [1.0, 2.0]}


def pipeline(*steps, model=MODEL):
    named = [(f"step{i}", clone(step)) for i, step in enumerate(steps)]
    return Pipeline([*named, ("model", clone(model))])


def stability(strategy, estimator=None, grid=GRID):
    return StabilityGridSearchCV(
        estimator or pipeline(SAFE),
        grid,
        strategy=strategy,
        epsilon=2.0,
        random_state=0,
        scoring="brier" if grid is GRID else None,
    )


SEARCHES = {
    "one candidate": stability("auto", grid={}),
    "behind a private step": stability("auto", pipeline(SAFE, DPBoundsScaler(epsilon=1.0)), {}),
    "beside a private step": stability("auto", pipeline(BESIDE, BoundedScaler((-2, 2))), {}),
    **{
        name: stability(name)
        for name in (
            "stability",
            "budget_split",
            "data_split",
            "random_stopping",
            "random",
            "optimal_risk",
        )
    },
    "processed": stability(
        "stability",
        pipeline(SAFE, model=DPRidge(target_range=(-1.0, 1.0))),
        {"model__alpha": [0.1, 1.0]},
    ),
    "accuracy first": AccuracyFirstSearchCV(
        pipeline(SAFE, model=DPRidge(alpha=1.0, target_range=(-1.0, 1.0))),
        {"model__epsilon": [0.1, 1.0, 10.0]},
        target=100.0,
        random_state=0,
    ),
}


def neighbours_in(container):
    return [CONTAINERS[container]([*ROWS[:5], other, *ROWS[6:]]) for other in OTHERS]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", a_third(SEARCHES))
def test_no_search_tells_of_a_gap(name, broken):
    found = (released(clone(SEARCHES[name]).fit(X, TARGETS)) for X in neighbours_in("pandas"))
    first = next(found)
    assert any(other != first for other in found) == broken


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", a_third(SEARCHES))
def test_steps_see_the_same_form_on_neighbours(name, broken):
    def seen(X):
        def look(rows):
            forms.append((type(rows), rows.shape, rows.dtypes.tolist()))
            return rows

        search, forms = clone(SEARCHES[name]).set_params(trusted_steps=[FunctionTransformer]), []
        search.estimator.steps.insert(0, ("look", FunctionTransformer(look)))
        search.fit(X, TARGETS)
        assert any(shape == (120, 2) for _, shape, _ in forms)
        return forms

    first, *others = neighbours_in("pandas")
    first = seen(first)
    assert any(seen(X) != first for X in others) == broken


class WiderOnMany(TransformerMixin, BaseEstimator):
    """Gives more columns where there are more rows, which no dummy row shows."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X if len(X) == 1 else np.hstack([X, X])

    def __sklearn_is_fitted__(self):
        return True


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SEARCHES)
def test_columns_that_no_dummy_row_has_are_refused(name):
    search = clone(SEARCHES[name]).set_params(trusted_steps=[WiderOnMany])
    search.estimator.steps.insert(-1, ("wider", WiderOnMany()))
    with pytest.raises(ValueError, match="another number of columns"):
        search.fit(neighbours_in("pandas")[0], TARGETS)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("container", a_third(sorted(set(CONTAINERS) - {"array"})))
def test_no_container_tells_of_a_gap(container):
    search = SEARCHES["beside a private step"]
    found = [released(clone(search).fit(X, TARGETS)) for X in neighbours_in(container)]
    assert len(found) == len(OTHERS) and all(other == found[0] for other in found)


def ages(missing):
    pd = pytest.importorskip("pandas")
    values = [str(18 + i) for i in range(60)]
    values[7] = "" if missing else values[7]
    lines = [f"{value},{i % 5}" for i, value in enumerate(values)]
    return pd.read_csv(io.StringIO("\n".join(["age,visits", *lines])))


KNOWN = [np.arange(18, 90), np.arange(5)]


@pytest.mark.parametrize(
    "step",
    [
        make_pipeline(SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True)),
        OneHotEncoder(categories=KNOWN, **ANY),
        OrdinalEncoder(categories=KNOWN, **ORDINAL),
    ],
    ids=["imputer", "one-hot", "ordinal"],
)
def test_the_type_of_a_column_does_not_tell_of_a_gap(step, broken):
    def fitted(missing):
        search = StabilityGridSearchCV(pipeline(step, NormClipper()), {}, epsilon=0.001)
        return pickle.dumps(search.fit(ages(missing), np.tile([0, 1], 30)).best_estimator_[0])

    assert (fitted(True) == fitted(False)) != broken


def test_names_do_not_tell_of_a_gap(broken):
    pd = pytest.importorskip("pandas")

    def names(last):
        rows = "\n".join(["grade,other", *(f"{i % 3},0" for i in range(59)), f"{last},0"])
        encoder = OneHotEncoder(categories=[[0, 1, 2], [0, 1]], **ANY)
        search = StabilityGridSearchCV(pipeline(encoder), {}, epsilon=0.001)
        search.fit(pd.read_csv(io.StringIO(rows)), np.tile([0, 1], 30))
        return search.best_estimator_[0].get_feature_names_out()[:3].tolist()

    assert names("1") == ["grade_0", "grade_1", "grade_2"]
    assert (names("") == names("1")) != broken


@pytest.mark.parametrize("other", [2.0, 1.0])
def test_a_list_does_not_tell_of_a_float(other, broken):
    def kind(last):
        encoder = OneHotEncoder(categories=[[0, 1, 2]], **ANY)
        search = StabilityGridSearchCV(pipeline(encoder), {}, epsilon=0.001)
        rows = [[i % 3] for i in range(59)] + [[last]]
        return search.fit(rows, np.tile([0, 1], 30)).best_estimator_[0].categories_[0].dtype

    assert (kind(2) == kind(other)) != broken


def test_a_part_that_was_replaced_after_a_fit_is_checked():
    X = np.random.default_rng(0).normal(size=(60, 2))
    stale = pipeline(ColumnTransformer([("num", BoundedScaler((-3, 3)), [0, 1])]))
    stale.fit(X, TARGETS[:60]).set_params(step0__num=StandardScaler())
    with pytest.raises(ValueError, match="'num' \\(StandardScaler\\) learns"):
        check_pipeline_privacy(stale)
    with pytest.raises(ValueError, match="'num' \\(StandardScaler\\) learns"):
        StabilityGridSearchCV(stale, {}).fit(X, TARGETS[:60])
    # what the check is for: without it, the part learns
    np.testing.assert_allclose(stale.fit(X, TARGETS[:60])[0].transformers_[0][1].mean_, X.mean(axis=0))
    # what was learned before counts, too
    stale.set_params(step0__num=BoundedScaler((-3, 3)))
    with pytest.raises(ValueError, match="StandardScaler"):
        check_pipeline_privacy(stale)


def visits(word):
    """A column of numbers, of which one record may make a column of text."""
    pd = pytest.importorskip("pandas")
    lines = ["grade,other", *(f"{i % 3},{i % 2}" for i in range(59)), f"{word},0"]
    return pd.read_csv(io.StringIO("\n".join(lines)))


GRADES = OneHotEncoder(categories=[[0, 1, 2]], **ANY)


@pytest.mark.parametrize(
    "step",
    [
        make_pipeline(ColumnTransformer([("kept", "passthrough", ["grade"])]), GRADES),
        make_pipeline(FunctionTransformer(), ColumnTransformer([("part", GRADES, ["grade"])])),
        ColumnTransformer([("part", MissingIndicator(missing_values=1, features="all"), ["grade"])]),
    ],
    ids=["columns", "function", "indicator"],
)
@pytest.mark.parametrize("checked", [True, False], ids=["search", "broken twin"])
def test_one_word_does_not_move_other_records(step, checked, monkeypatch):
    if not checked:
        monkeypatch.setattr(candidates, "check_kinds", lambda *args: None)
        monkeypatch.setattr(row_steps, "check_kinds_inside", lambda *args: None)

    def rows(word):
        candidate = candidates.Candidate({}, pipeline(step), ())
        X, public = evaluation.records_for_steps([candidate], visits(word))
        candidate = candidate.fitted_on(public)
        rows = candidate.transform(X)
        return rows.toarray() if sparse.issparse(rows) else rows

    before = rows("2")
    if checked:
        with pytest.raises(ValueError, match="One record can turn a column of numbers into text"):
            rows("unknown")
    else:
        assert (rows("unknown") != before).any(axis=1)[:59].sum() >= 19


def test_one_word_moves_other_records_in_a_pipeline_that_is_fitted_by_itself():
    """As the page of leaks says: the check sees steps, and no records."""
    alone = pipeline(ColumnTransformer([("part", GRADES, ["grade"])], sparse_threshold=0))
    check_pipeline_privacy(alone)
    before, after = (alone[:-1].fit_transform(visits(word)) for word in ("2", "unknown"))
    assert (before != after).any(axis=1)[:59].all()
    with pytest.raises(ValueError, match="One record can turn a column of numbers into text"):
        StabilityGridSearchCV(alone, {}).fit(visits("unknown"), TARGETS[:60])


def polynomials(**params):
    step = ("p", PolynomialFeatures(1, include_bias=False), [0, 1, 2, 3])
    return pipeline(ColumnTransformer([step], **params))


def entries(k):
    table = np.zeros((1000, 4))
    table.ravel()[:k] = 0.1
    return sparse.csr_array(table)


def test_density_does_not_decide():
    labels = np.tile([0, 1], 500)
    with pytest.raises(ValueError, match="sparse_threshold=0"):
        StabilityGridSearchCV(polynomials(), {}).fit(entries(1199), labels)
    assert [  # what the check is for
        polynomials().fit(entries(k), labels)[0].sparse_output_ for k in (1199, 1200)
    ] == [True, False]
    # and should a step pass by mistake, a search decides by the dummy row
    search = StabilityGridSearchCV(polynomials(), {}, trusted_steps=["step0"])
    decisions = {search.fit(entries(k), labels).best_estimator_[0].sparse_output_ for k in (1199, 1200)}
    assert len(decisions) == 1


def test_a_function_writes_rows_nowhere():
    X, buffer = np.random.default_rng(0).normal(size=(60, 2)), np.zeros((60, 2))
    writing = pipeline(FunctionTransformer(np.tanh, kw_args={"out": buffer}))
    with pytest.raises(ValueError, match="leave kw_args"):
        StabilityGridSearchCV(writing, {}).fit(X, TARGETS[:60])
    assert not buffer.any()
    writing.fit(X, TARGETS[:60])  # what the check is for
    np.testing.assert_array_equal(writing[0].kw_args["out"], np.tanh(X))


ONE_HOT = OneHotEncoder(categories=[[0, 1, 2]], handle_unknown="ignore", sparse_output=False)
ON_GRADE = ColumnTransformer([("c", ONE_HOT, ["grade"])], sparse_threshold=0)


def beside(step, other):
    return ColumnTransformer([("c", step, ["grade"]), ("o", other, ["other"])], sparse_threshold=0)


FRAMES = {
    "inside": [beside(make_pipeline(IMPUTER, ONE_HOT, NormClipper()), NormClipper())],
    "behind": [ON_GRADE, NormClipper()],
    "by name": [
        ON_GRADE,
        ColumnTransformer([("b", BoundedScaler((0, 1)), ["c__grade_0", "c__grade_2"])]),
    ],
    "private behind": [ON_GRADE, DPBoundsScaler()],
    "private inside": [beside(make_pipeline(ONE_HOT, DPBoundsScaler()), NormClipper())],
    "private beside": [beside(make_pipeline(ONE_HOT, NormClipper()), DPBoundsScaler())],
}


@pytest.mark.parametrize("name", FRAMES)
def test_names_of_integers_reach_later_steps(name):
    """Of steps that give frames, and that know columns by the names of earlier categories."""
    steps = [clone(step).set_output(transform="pandas") for step in FRAMES[name]]
    X = visits("2")
    model = StabilityGridSearchCV(pipeline(*steps), {}, epsilon=2.5).fit(X, TARGETS[:60]).best_estimator_
    names = model[:-1].get_feature_names_out().tolist()
    assert any("grade_0" in name for name in names) and not any(".0" in name for name in names)
    assert model.predict(X).shape == (60,)
    if "private" not in name:
        expected = pipeline(*steps)[:-1].fit_transform(X)
        rows = model[:-1].transform(X)
        assert rows.columns.tolist() == expected.columns.tolist()
        np.testing.assert_array_equal(rows, expected)


@pytest.mark.slow
def test_a_released_pipeline_takes_what_the_search_took():
    search = clone(SEARCHES["beside a private step"]).set_params(random_state=None)
    for container in sorted(set(CONTAINERS) - {"array"}):
        X = CONTAINERS[container](ROWS)
        model = search.fit(X, TARGETS).best_estimator_
        expected = model.predict_proba(read_form(X).convert(X))
        np.testing.assert_array_equal(model.predict_proba(X), expected)
        np.testing.assert_array_equal(search.predict_proba(X), expected)
