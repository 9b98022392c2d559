"""The encoder of tables: what it gives, and that it learns nothing from any record."""

import copy
import json
import pickle
from itertools import combinations, product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from dpselect import DPLogisticRegression, RowChunks, StabilityGridSearchCV
from dpselect.preprocessing import (
    PublicSchema,
    TableEncoder,
    check_pipeline_privacy,
    tabular_pipeline,
)
from dpselect.preprocessing import (
    table_cells as cells,
)
from dpselect.preprocessing.terms import FourierTerm, Lengths, PairTerm

from ..model_selection.tables import CONTAINERS

NAN = float("nan")
SCHEMA = {
    "grade": {"categories": ["0", 1, "2"], "unknown": True, "missing": True},
    "visits": {"bounds": (0, 1), "missing": True, "fill": 0.25},
}
SEARCHED = [
    TableEncoder(SCHEMA, expansion=3, n_fourier=2),
    TableEncoder(SCHEMA, categories="onehot", expansion="linear", cut_points={"visits": [0.5]}),
    TableEncoder(SCHEMA, n_epsilon=1e5, pairs=[("grade", "visits")]),
    TableEncoder(SCHEMA, categories="onehot", pairs=[("visits", "grade")]),
    TableEncoder(SCHEMA, columns=["visits"]),
]


def test_features_and_their_names():
    schema = {
        "age": (0, 120),
        "job": ["a", "b"],
        "pay": {"bounds": (0, 1e6), "transform": "log1p", "missing": True},
        "size": (0, 1),
    }
    encoder = TableEncoder(
        schema,
        expansion=2,
        categories="onehot",
        cut_points={"age": [18, 65]},
        pairs=[("age", "job"), ("pay", "job"), ("size", "pay")],
    )
    X = [[17, "b", None, 0], [200, "a", 1e6, 1], [65, "c", 0, 0.25]]
    rows = encoder.fit_transform(X)
    names = encoder.get_feature_names_out().tolist()
    ages = ["age_0 to 18", "age_18 to 65", "age_65 to 120"]
    assert names == [
        *ages,
        "job_a",
        "job_b",
        "pay_cos1",
        "pay_cos2",
        "pay_missing",
        "size_cos1",
        "size_cos2",
        *(f"{age}*job_{job}" for age in ages for job in "ab"),
        "pay*job_a",
        "pay*job_b",
        "size*pay",
    ]
    half = 0.5**0.5
    expected = [
        [1, 0, 0, 0, 1, 0, 0, 1, 1, half],
        [0, 0, 1, 1, 0, -1, half, 0, -1, half],
        [0, 0, 1, 0, 0, 1, half, 0, half, 0],
    ]
    np.testing.assert_allclose(rows[:, :10], expected, atol=1e-15)
    # three pairs share a quarter of 1 + 1 + 2 (1 + 1/2) / 2; a cosine has a mean square of 1/2
    codes, mixed, cosines = (3.5 / 12 * np.array([1, 2, 4])) ** 0.5
    products = [
        [0, codes, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, codes, 0, -mixed, 0, cosines],
        [0, 0, 0, 0, 0, 0, 0, 0, half * cosines],
    ]
    np.testing.assert_allclose(rows[:, 10:], products, atol=1e-15)
    assert encoder.typical_norm() ** 2 == pytest.approx(3.5 * 5 / 4)
    assert [term.columns for term in encoder.terms_][4:] == list(encoder.pairs_) == encoder.pairs
    assert [name for term in encoder.terms_ for name in names[term.outputs]] == names


PAIRED = {
    **SCHEMA,
    "age": {"bounds": (0, 9), "transform": "log1p"},
    "job": ["a", "b", "c"],
    "hour": {"bounds": (0, 24), "periodic": True, "missing": True},
}
ALL_PAIRS = [*combinations(PAIRED, 2)]
OF_ALL_KINDS = [
    {"expansion": expansion, "categories": categories, "cut_points": cut_points}
    for expansion in ("linear", 3)
    for categories in ("simplex", "onehot")
    for cut_points in (None, {"age": [3]}, {"visits": [0.5]})
]


def shares_of_pairs(encoder):
    """The squared length of each pair, in units of the equal share of a quarter of all other terms."""
    terms = [term for term in encoder.terms_ if len(term.columns) == 1]
    pairs = [term for term in encoder.terms_ if len(term.columns) == 2]
    additive = sum(term.lengths.typical_l2_squared for term in terms)
    return [term.lengths.typical_l2_squared / additive * 4 * len(pairs) for term in pairs]


@pytest.mark.parametrize("categories", ["simplex", "onehot"])
@pytest.mark.parametrize("cut_points", [None, {"visits": [0.5], "age": [1, 3]}])
def test_pairs_are_products_of_their_columns_and_share_a_quarter(categories, cut_points):
    encoder = TableEncoder(PAIRED, expansion=3, categories=categories, cut_points=cut_points)
    rng = np.random.default_rng(0)
    cells = [[*"012x", None], [0, 0.25, 0.3, 1, None], [0, 1, 2, 99], [*"abcd"], [0, 7, 24, None]]
    X = np.column_stack([rng.choice(np.array(each, dtype=object), 300) for each in cells])
    additive = encoder.fit_transform(X)
    alone = {term.columns[0]: term for term in encoder.terms_}
    encoder.set_params(pairs=ALL_PAIRS)
    rows = encoder.fit_transform(X)
    # everything but pairs is what it was
    np.testing.assert_array_equal(rows[:, : additive.shape[1]], additive)
    assert shares_of_pairs(encoder) == pytest.approx([1] * len(ALL_PAIRS))
    for term in encoder.terms_[5:]:
        factors = []
        for name in term.columns:
            features = additive[:, alone[name].outputs]
            # the first cosine of a number, the first wave of a period, or the code of a category
            if name == "hour":
                features = features[:, :2] * (1.0, 2**0.5)
            elif "cos1" in alone[name].names[0]:
                features = features[:, :1]
            factors.append(features)
        one, other = factors
        expected = term.amplitude * (one[:, :, np.newaxis] * other[:, np.newaxis]).reshape(300, -1)
        np.testing.assert_allclose(rows[:, term.outputs], expected, rtol=1e-14, atol=0)
    sparse_rows = clone(encoder).set_params(sparse_output=True).fit_transform(X)
    np.testing.assert_array_equal(sparse_rows.toarray(), rows)


def test_pairs_of_numbers_by_a_public_rule():
    numbers = {f"n{j}": (0, 1) for j in range(5)}
    schema = {**numbers, "job": ["a", "b"], "place": ["x", "y", "z"]}

    def taken(columns, n_epsilon, **options):
        encoder = TableEncoder(columns, pairs="auto", n_epsilon=n_epsilon, **options)
        encoder.fit(np.zeros((1, len(columns))))
        named = clone(encoder).set_params(pairs=encoder.pairs_, expansion=encoder.expansion_)
        assert named.typical_norm("l1") == encoder.typical_norm("l1")
        return encoder.pairs_

    every = tuple(combinations(numbers, 2))
    paired = TableEncoder(schema, pairs=every, expansion=4, categories="simplex")
    edge = 300 * len(paired.fit(np.zeros((1, 7))).get_feature_names_out())
    options = {"expansion": 4, "categories": "simplex"}
    assert taken(schema, edge * 0.999, **options) == taken(schema, None) == ()
    assert taken(schema, edge * 1.001, **options) == taken(schema, float("inf")) == every
    # a number that is cut is none
    cut = {"n0": [0.5]}
    assert taken(schema, float("inf"), cut_points=cut) == tuple(combinations([*numbers][1:], 2))
    # 8 for each number, and one for each level of a category
    many = {f"n{j}": (0, 1) for j in range(18)}
    assert len(taken(dict([*many.items()][:17]), float("inf"))) == 8 * 17
    assert len(taken(many, float("inf"))) == 0
    levels = {"place": [str(j) for j in range(9)]}
    assert len(taken({**many, **levels}, float("inf"))) == 18 * 17 / 2 == 8 * 18 + 9
    levels = {"place": [str(j) for j in range(8)]}
    assert len(taken({**many, **levels}, float("inf"))) == 0


@pytest.mark.parametrize(
    "pairs, said",
    [
        ([("a", "b"), ("a", "a"), ("c", "a")], r"has \('a', 'a'\), \('c', 'a'\), and products"),
        ([("a", "b"), ("b", "a")], r"has \('b', 'a'\), and products"),
        ("all", "has 'all', and products"),
    ],
)
def test_what_is_wrong_with_pairs_is_said_at_once(pairs, said):
    with pytest.raises(ValueError, match=f"^pairs {said} .* write for instance"):
        TableEncoder({"a": (0, 1), "b": ["x", "y"]}, pairs=pairs).fit([[0, "x"]])


def test_a_search_tunes_pairs():
    rng = np.random.default_rng(0)
    X = np.array([rng.random(5000), rng.choice(["x", "y"], 5000)], dtype=object).T
    y = ((X[:, 0] > 0.5) == (X[:, 1] == "x")).astype(int)
    schema = {"a": (0, 1), "b": ["x", "y"]}
    pipeline = tabular_pipeline(schema, DPLogisticRegression(classes=[0, 1]))
    grid = {"encoder__pairs": [(), "auto", [("a", "b")]]}
    search = StabilityGridSearchCV(pipeline, grid, epsilon=20.0).fit(X[:4000], y[:4000])
    assert search.best_params_ == {"encoder__pairs": [("a", "b")]}
    assert np.mean(search.predict(X[4000:]) == y[4000:]) > 0.9


def test_terms_are_the_parts_of_an_additive_model():
    encoder = TableEncoder(
        {**SCHEMA, "age": (0, 9)}, expansion=4, pairs=[("visits", "age")], n_fourier=3
    )
    X = [[1, 0.3, 4], ["x", None, 9], [None, 1.0, -3]]
    rows = encoder.fit_transform(X)
    columns = dict(zip(encoder.schema_.columns, zip(*X)))
    coef = np.random.default_rng(0).normal(size=rows.shape[1])
    curves = [
        term.at(*(columns[name] for name in term.columns)) @ coef[term.outputs]
        for term in encoder.terms_
    ]
    np.testing.assert_allclose(sum(curves), rows @ coef, rtol=1e-12)
    *drawn, pair, mixed = encoder.terms_
    grade, visits, _ = (term.at(*term.values(5)) for term in drawn)
    assert len(grade) == 5 and len(np.unique(grade, axis=0)) == 5  # unknown and missing among them
    np.testing.assert_array_equal(visits[-1], rows[1, drawn[1].outputs])  # that of a gap
    assert pair.at(*pair.values(5)).shape == (6 * 5, 1) and isinstance(mixed, FourierTerm)
    more = TableEncoder(dict.fromkeys("abc", (0, 1)), n_fourier=1).fit(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="mixes 3 columns"):
        more.terms_[-1].values()


def test_a_number_outside_of_a_period_counts_as_its_bound():
    encoder = TableEncoder({"hour": {"bounds": (0, 24), "periodic": True}}, expansion=3)
    rows = encoder.fit_transform([[0], [24], [25], [-3], [6]])
    assert encoder.get_feature_names_out().tolist() == [
        f"hour_{s}{h}" for h in "12" for s in ("cos", "sin")
    ]
    np.testing.assert_allclose(
        rows, [[1, 0, 3**-0.5, 0]] * 4 + [[0, 2**-0.5, -(3**-0.5), 0]], atol=1e-15
    )
    line = TableEncoder(
        {"hour": {"bounds": (0, 24), "periodic": True}, "age": (0, 1)}, expansion="linear"
    )
    assert line.fit([[0, 1]]).get_feature_names_out().tolist() == ["hour_cos1", "hour_sin1", "age"]
    assert line.typical_norm() ** 2 == pytest.approx(3 / 4 + 1 / 3)
    assert line.max_norm() ** 2 == pytest.approx(1 + 1)


def test_schemas_of_every_kind(tmp_path):
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    X = [[2, 0.5], [None, None]]
    expected = TableEncoder(SCHEMA).fit_transform(X)
    for schema in (PublicSchema(SCHEMA), tmp_path / "schema.json", str(tmp_path / "schema.json")):
        encoder = TableEncoder(schema)
        np.testing.assert_array_equal(clone(encoder).fit_transform(X), expected)
        assert encoder.max_norm() == TableEncoder(SCHEMA).max_norm()
    every = TableEncoder((0, 2))
    with pytest.raises(NotFittedError):
        every.max_norm()
    np.testing.assert_array_equal(
        every.fit_transform([[0, 1]]), TableEncoder({"a": (0, 2), "b": (0, 2)}).fit_transform([[0, 1]])
    )
    assert every.max_norm("l1") == 2 * (1 + 0.5**0.5)


@pytest.mark.parametrize(
    "columns, code",
    [
        ({f"c{j}": (0, 1) for j in range(20)}, "simplex"),  # spherical noise is the shorter one
        ({"age": (0, 9), "place": [str(i) for i in range(200)]}, "onehot"),  # independent noise is
    ],
)
def test_the_expansion_follows_the_records_times_epsilon(columns, code):
    X = [[0] * len(columns)]

    def expansion(n_epsilon):
        encoder = TableEncoder(columns, n_epsilon=n_epsilon).fit(X)
        named = TableEncoder(columns, expansion=encoder.expansion_).fit(X)
        assert encoder.transform(X).tolist() == named.transform(X).tolist()
        assert encoder.typical_norm("l1") == named.typical_norm("l1")
        return encoder.expansion_

    encoder = TableEncoder(columns, expansion=4, categories=code).fit(X)
    R, G, d = encoder.typical_norm(), encoder.typical_norm("l1"), encoder.transform(X).shape[1]
    edge = 300 * min(d, (2 * d) ** 0.5 * G / R)
    assert (edge == 300 * d) == (code == "simplex")
    assert expansion(edge * 0.999) == expansion(None) == 2
    assert expansion(edge * 1.001) == expansion(float("inf")) == 4


@pytest.mark.parametrize("rule", ["expansion", "pairs", "columns"])
def test_with_a_delta_the_shorter_noise_decides(rule):
    """Gaussian noise is sqrt(d) long, in units of rows and of one over n mu."""
    columns, enough = {f"x{j}": (0, 1) for j in range(20)}, 30 if rule == "columns" else 300
    more, least = {
        "expansion": (dict(expansion="auto"), dict(expansion=4)),
        "pairs": (dict(pairs="auto"), dict(expansion=4, pairs=[*combinations(list(columns)[:17], 2)])),
        "columns": (dict(columns="first"), dict(expansion=2)),
    }[rule]
    if rule == "pairs":
        columns = {name: columns[name] for name in [*columns][:17]}  # at most 8 pairs for each
    X = np.zeros((1, len(columns)))

    def n_outputs(n_epsilon, n_mu):
        encoder = TableEncoder(columns, n_epsilon=n_epsilon, n_mu=n_mu, **more).fit(X)
        return encoder.terms_[-1].outputs.stop

    d = TableEncoder(columns, **least).fit(X).terms_[-1].outputs.stop
    edge = enough * d**0.5
    assert n_outputs(1.0, edge * 0.999) < d == n_outputs(1.0, edge * 1.001)
    # whichever noise is shorter
    assert n_outputs(enough * d * 1.001, 1e-9) == n_outputs(enough * d * 1.001, None) == d
    # (no epsilon, no rule)
    assert (n_outputs(None, edge * 1.001) == d) == (rule == "columns")


def test_a_simplex_is_shorter_under_gaussian_noise():
    columns = {"age": (0, 9), "place": [str(i) for i in range(200)]}
    made = [TableEncoder(columns, n_epsilon=1e3, n_mu=n_mu).fit([[0, "0"]]) for n_mu in (None, 1e3)]
    assert [encoder.terms_[-1].code for encoder in made] == ["onehot", "simplex"]


def test_columns_are_known_by_name():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X = pd.DataFrame({"grade": [1, 2], "visits": [0.1, 0.9]})
    swapped = X[["visits", "grade"]]
    expected = TableEncoder(SCHEMA).fit_transform(X.to_numpy())
    arrow = pl.from_pandas(swapped).to_arrow()
    for table in (X, swapped, pl.from_pandas(swapped), arrow):
        encoder = TableEncoder(SCHEMA).fit(table)
        np.testing.assert_array_equal(encoder.transform(table), expected)
        assert encoder.get_feature_names_out()[0] == "grade_0"
    with pytest.raises(ValueError, match="feature names should match"):
        TableEncoder(SCHEMA).fit(X).transform(swapped)
    with pytest.raises(ValueError, match=r"^schema says nothing of columns \['pay'\] of X and has"):
        TableEncoder(SCHEMA).fit(X.rename(columns={"visits": "pay"}))
    with pytest.raises(ValueError, match=r"^X has several columns of"):
        TableEncoder(SCHEMA).fit(X[["grade", "visits", "visits"]])
    with pytest.raises(ValueError, match=r"^schema says nothing of columns \['pay'\] of X and has"):
        TableEncoder(SCHEMA).fit(arrow.rename_columns(["pay", "grade"]))
    with pytest.raises(ValueError, match="^schema says what is public of 2 columns, and X has 3"):
        TableEncoder(SCHEMA).fit(np.zeros((2, 3)))
    frame = TableEncoder(SCHEMA).set_output(transform="pandas").fit_transform(X)
    assert list(frame.columns)[-1] == "visits_missing" and frame.to_numpy().tolist() == expected.tolist()


def test_sparse_output():
    X = [[2, 0.5], ["x", None], [None, 1]]
    for encoder in SEARCHED:
        expected = clone(encoder).fit_transform(X)
        found = clone(encoder).set_params(sparse_output=True).fit_transform(X)
        assert sparse.issparse(found) and found.format == "csr" and found.dtype == np.float64
        np.testing.assert_array_equal(found.toarray(), expected)


def test_features_of_one_name_are_refused():
    with pytest.raises(ValueError, match=r"features of one name, \['a_b_c'\]"):
        TableEncoder({"a": ["x", "b_c"], "a_b": ["c", "d"]}, categories="onehot").fit([["x", "c"]])


# --- columns that are ignored

TWO = ["job", "visits"]
IGNORED = [10**300, "SECRET", b"bytes", {1}, float("inf"), None]


def in_containers(rows):
    yield rows
    yield np.array(rows, dtype=object)
    yield pd.DataFrame(rows, columns=list(PAIRED))[["hour", "age", "job", "visits", "grade"]]
    yield pd.DataFrame(rows, columns=list(PAIRED)).drop(columns="age")


@pytest.mark.parametrize("options", OF_ALL_KINDS, ids=str)
def test_columns_that_are_not_listed_are_not_read(options):
    options = options | {"cut_points": {"visits": [0.5]}, "pairs": [("visits", "job")]}
    encoder = TableEncoder(PAIRED, columns=TWO, **options)
    # in the order of the schema
    alone = TableEncoder({name: PAIRED[name] for name in PAIRED if name in TWO}, **options)
    expected = alone.fit_transform([[0.3, "a"], [None, "c"]])
    names = alone.get_feature_names_out().tolist()
    for cell in IGNORED:
        for X in in_containers([[cell, 0.3, cell, "a", 1], [cell, None, cell, "c", 2]]):
            found = clone(encoder).fit(X)
            np.testing.assert_array_equal(found.transform(X), expected)
            assert found.get_feature_names_out().tolist() == names
            assert found.columns_ == ("visits", "job") and found.schema_ == alone.schema_
    for norm in ("l1", "l2"):
        assert encoder.max_norm(norm) == alone.max_norm(norm)
        assert encoder.typical_norm(norm) == alone.typical_norm(norm)


def test_of_columns_that_are_ignored_others_are_refused():
    frame = pd.DataFrame([[0, 1, 2, "a", 3]], columns=list(PAIRED))
    encoder = TableEncoder(PAIRED, columns=["job"])
    with pytest.raises(ValueError, match=r"nothing of columns \['pay'\] of X, and"):
        encoder.fit(frame.assign(pay=1))
    with pytest.raises(ValueError, match="has columns \\['job'\\] that X lacks"):
        encoder.fit(frame.drop(columns="job"))
    with pytest.raises(ValueError, match="of 5 columns, and X has 3"):
        encoder.fit(np.zeros((1, 3)))


@pytest.mark.parametrize(
    "options, said",
    [
        (
            {"columns": ["pay", "age", "age"]},
            r"^columns=\['pay', 'age', 'age'\] names 'pay', 'age', and",
        ),
        ({"columns": []}, r"^columns=\[\] names no columns"),
        ({"columns": "age"}, "^columns='age' names no columns"),
        (
            {"columns": ["job"], "pairs": [("job", "age")], "cut_points": {"visits": [0.5]}},
            r"^columns leaves out \['visits', 'age'\], which cut_points or pairs need",
        ),
        ({"columns": ["job"], "n_fourier": 3}, "^n_fourier=3 needs columns of numbers"),
        ({"class_share": 1.0}, "^class_share=1.0"),
    ],
)
def test_what_is_wrong_with_columns(options, said):
    with pytest.raises(ValueError, match=said):
        TableEncoder(PAIRED, **options).fit([[0, 1, 2, "a", 3]])


ORDERED = {
    "a": (0, 1),
    "b": ["x", "y", "z"],
    "c": {"bounds": (0, 9), "missing": True},
    "d": (0, 1),
    "e": [str(j) for j in range(80)],
}


def first(n_epsilon, schema=ORDERED, **options):
    encoder = TableEncoder(schema, columns="first", n_epsilon=n_epsilon, **options)
    return encoder.fit(np.zeros((1, len(schema)))).columns_


@pytest.mark.parametrize("class_share", [None, 0.5, 0.1, 0.9])
def test_the_first_columns_are_those_that_the_signal_carries(class_share):
    weight = 1.0 if class_share is None else 4 * class_share * (1 - class_share)
    edges = []
    for k in range(1, 6):
        columns = {name: ORDERED[name] for name in [*ORDERED][:k]}
        encoder = TableEncoder(columns, expansion=2).fit(np.zeros((1, k)))
        R, G, d = encoder.typical_norm(), encoder.typical_norm("l1"), encoder.terms_[-1].outputs.stop
        edges.append(30 * min(d, (2 * d) ** 0.5 * G / R) / weight)
    assert edges == sorted(edges)
    for k in range(3, 6):
        assert first(edges[k - 1] * 1.001, class_share=class_share) == tuple(ORDERED)[:k]
        assert first(edges[k - 1] * 0.999, class_share=class_share) == tuple(ORDERED)[: k - 1]
    # two are read in any case, and all if no records are known of
    assert first(1e-9, class_share=class_share) == ("a", "b")
    assert first(None) == first(float("inf")) == tuple(ORDERED)
    assert first(1e-9, {"a": (0, 1)}) == ("a",)


def test_pairs_and_cuts_of_columns_that_are_not_among_the_first_are_dropped():
    options = {"pairs": [("a", "b"), ("a", "d"), ("c", "e")], "cut_points": {"d": [0.5], "a": [0.3]}}
    encoder = TableEncoder(ORDERED, columns="first", n_epsilon=1.0, n_fourier=2, **options)
    encoder.fit(np.zeros((1, 5)))
    assert encoder.columns_ == ("a", "b") and encoder.pairs_ == (("a", "b"),)
    kept = TableEncoder({name: ORDERED[name] for name in "ab"}, n_epsilon=1.0, n_fourier=2)
    kept.set_params(pairs=[("a", "b")], cut_points={"a": [0.3]})
    rows = kept.fit_transform([[0.5, "y"]])
    np.testing.assert_array_equal(encoder.transform([[0.5, "y", "?", b"", {1}]]), rows)
    numberless = {"x": ["a", "b"], "y": ["a", "b"], "z": (0, 1)}
    assert first(1e-9, numberless, n_fourier=5) == ("x", "y")


# --- no record reaches another's row

WHOLE = [[i % 3, i % 2] for i in range(12)]
# what the record that differs may hold
OTHERS = [
    [2, 1],
    [1.5, 1],
    [None, 1],
    [True, 0],
    [10**12, 1],
    [2, 0.5],
    [2, None],
    ["a text", 1],
    ["?", 1],
]


def tables(container):
    """Neighbours in a container, without those that it cannot hold."""
    for other in OTHERS:
        try:
            yield CONTAINERS[container]([*WHOLE[:5], other, *WHOLE[6:]])
        except (TypeError, ValueError):
            pass


def reached(container, encoder):
    """How many neighbours were encoded, and how many of them change other rows, or what is kept."""
    found = []
    for X in tables(container):
        fitted = clone(encoder).fit(X)
        rows = fitted.transform(X)
        others = np.delete(rows, 5, axis=0)
        kept = pickle.dumps(fitted), rows.dtype, type(rows), fitted.get_feature_names_out().tolist()
        found.append((others.tobytes(), *kept))
    return len(found), sum(other != found[0] for other in found)


@pytest.mark.parametrize("encoder", SEARCHED)
@pytest.mark.parametrize("container", CONTAINERS)
def test_no_record_changes_anothers_row_or_what_is_kept(container, encoder):
    count, changed = reached(container, encoder)
    assert count >= 6 and not changed


def test_the_broken_twin_compares_cells_as_they_are_stored(monkeypatch):
    """A gap makes "1.0" of 1, and is caught where containers convert whole columns."""

    def as_stored(value, texts, numbers):
        return texts.get(str(value), cells.UNLISTED)

    assert reached("pandas objects", SEARCHED[0])[1] == 0
    monkeypatch.setattr(cells, "_code", as_stored)
    monkeypatch.setattr(cells, "as_number", lambda value: value if isinstance(value, float) else np.nan)
    assert reached("list", SEARCHED[0])[1] > 0


def moved_rows(encoder, X):
    """In how many ways of cutting a table a row is not the same to the last bit."""
    rows, moved = encoder.fit_transform(X), 0
    for length, table in ((1, X), (37, X), (11, np.asfortranarray(X)), (64, X[::-1][::-1])):
        parts = [encoder.transform(table[i : i + length]) for i in range(0, len(X), length)]
        moved += np.vstack(parts).tobytes() != rows.tobytes()
    return moved


ON_SCALES = [(None, (0, 1)), ("log1p", (0, 1e6)), ("arcsinh", (-1e3, 1e3))]


@pytest.mark.parametrize("transform, bounds", ON_SCALES)
def test_a_row_does_not_depend_on_its_place(transform, bounds):
    column = {"bounds": bounds, "transform": transform, "missing": True}
    schema = {"a": column, "b": {**column, "fill": bounds[1] / 3}}
    schema["c"] = {"bounds": bounds, "periodic": True, "missing": True}
    rng = np.random.default_rng(0)
    X = rng.uniform(1.1 * bounds[0] - 1, 1.1 * bounds[1], (303, 3))
    X[rng.random(X.shape) < 0.1] = NAN
    pairs = [("a", "b"), ("c", "a")]
    assert not moved_rows(TableEncoder(schema, expansion=5, pairs=pairs, n_fourier=7), X)


class Centred(TableEncoder):
    """A broken twin: what it gives is centred in each chunk."""

    def transform(self, X):
        rows = super().transform(X)
        return rows - rows.mean(axis=0)


def test_a_broken_twin_that_learns_is_caught():
    assert reached("pandas", Centred(SCHEMA))[1] > 0
    assert moved_rows(Centred((0, 1)), np.random.default_rng(0).random((303, 2))) == 4


def test_fit_reads_no_record():
    def read(i):
        raise AssertionError("a record was read")

    encoder = TableEncoder((0, 1), expansion=1)
    encoder.fit(RowChunks(read, [5], 2))
    for table in (np.full((3, 2), NAN), [["SECRET", b"1"]], np.array([[np.inf, 1]])):
        zeros = clone(encoder).fit(np.zeros((9, 2)))
        assert pickle.dumps(clone(encoder).fit(table)) == pickle.dumps(zeros)


@pytest.mark.parametrize("cell", ["98765x", b"98765", [98765], float("inf"), None])
def test_refused_cells_are_not_quoted(cell):
    X = np.array([[1, 0.5], [2, 0.5]], dtype=object)
    X[1, 1] = cell
    encoder = TableEncoder({"grade": ["1", "2"], "visits": (0, 1)}).fit(X)
    with pytest.raises(ValueError, match="^Column 'visits' of X .*; ") as caught:
        encoder.transform(X)
    assert "98765" not in str(caught.value) and caught.value.__context__ is None


# --- norms


@pytest.mark.parametrize(
    "encoder",
    [
        *SEARCHED,
        TableEncoder({**SCHEMA, "age": (0, 9)}, expansion=4, pairs=[("visits", "age")], n_fourier=5),
    ],
)
def test_norms_are_public_and_hold(encoder):
    width = len(encoder.schema)
    rng = np.random.default_rng(0)
    grades = rng.choice(np.array([0, 1, 2, None, "x"], dtype=object), 2000)
    numbers = rng.choice([0, 1, 0.25, 9, NAN], (2000, width - 1))
    numbers[:, 1:] = np.nan_to_num(numbers[:, 1:])
    X = np.column_stack([grades, numbers])
    before = {norm: (encoder.max_norm(norm), encoder.typical_norm(norm)) for norm in ("l1", "l2")}
    rows = clone(encoder).fit_transform(X)
    for norm, order in (("l1", 1), ("l2", 2)):
        largest = np.linalg.norm(rows, order, axis=1).max()
        assert largest <= before[norm][0] * (1 + 1e-12)
        assert encoder.n_fourier or largest > before[norm][0] * (1 - 1e-12)
        assert before[norm][1] <= before[norm][0]


CORNERS = {
    "grade": ["0", "1", "2", "x", None],
    "visits": [0, 0.25, 0.5, 1, None],
    "age": [0, 9, 3, -5],
    "job": ["a", "b", "c", "?"],
    "hour": [0, 6, 24 * np.arctan(0.5**0.5) / (2 * np.pi), None],
}


def longest_corner(encoder):
    """The largest norms over all combinations of cells, in units of the largest that there can be."""
    rows = encoder.fit_transform([*product(*CORNERS.values())])
    return [
        np.linalg.norm(rows, order, axis=1).max() / encoder.max_norm(norm)
        for norm, order in (("l1", 1), ("l2", 2))
    ]


@pytest.mark.parametrize("options", OF_ALL_KINDS, ids=str)
def test_no_corner_is_longer_than_the_largest_norm(options):
    for pairs in ((), ALL_PAIRS):
        assert max(longest_corner(TableEncoder(PAIRED, pairs=pairs, **options))) <= 1 + 1e-12
    whole = {name: PAIRED[name] for name in ("age", "job")}  # at which all terms are largest at once
    encoder = TableEncoder(whole, pairs=[("job", "age")], **options | {"cut_points": None})
    rows = encoder.fit_transform([*product(CORNERS["age"], CORNERS["job"])])
    for norm, order in (("l1", 1), ("l2", 2)):
        assert np.linalg.norm(rows, order, axis=1).max() == pytest.approx(encoder.max_norm(norm))


def test_the_broken_twin_counts_a_pair_as_one_feature(monkeypatch):
    def of_one(term):
        size = term.amplitude / 2
        return Lengths(size, size**2, size / 2, size**2 / 4)

    monkeypatch.setattr(PairTerm, "lengths", property(of_one))
    assert max(longest_corner(TableEncoder(PAIRED, pairs=ALL_PAIRS))) > 1.01


def test_the_typical_norm_is_that_of_the_page():
    numbers = {f"n{j}": (0, 1) for j in range(5)}
    kinds = {"a": ["x", "y"], "b": list("vwxyz")}
    harmonic = 1 + 1 / 2 + 1 / 3 + 1 / 4
    cosine = TableEncoder({**numbers, **kinds}, expansion=4)
    assert cosine.typical_norm() ** 2 == pytest.approx(5 * harmonic / 2 + (1 - 1 / 2) + (1 - 1 / 5))
    assert cosine.max_norm() ** 2 == pytest.approx(5 * harmonic + (1 - 1 / 2) + (1 - 1 / 5))
    linear = TableEncoder({**numbers, **kinds}, expansion="linear", categories="onehot")
    assert linear.typical_norm() ** 2 == pytest.approx(5 / 3 + 2)
    rows = cosine.fit_transform([[*row, "x", "v"] for row in np.random.default_rng(0).random((2000, 5))])
    lengths = np.linalg.norm(rows, axis=1)
    assert np.sqrt(np.mean(lengths**2)) == pytest.approx(cosine.typical_norm(), rel=0.02)
    with pytest.raises(ValueError, match="norm='max'"):
        cosine.max_norm("max")


# --- in pipelines and searches


def test_in_a_search_rows_of_every_container_are_the_same():
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    y = np.tile([0, 1], 6)
    model = DPLogisticRegression(classes=[0, 1])
    for encoder in SEARCHED:
        pipeline = make_pipeline(encoder, model)
        check_pipeline_privacy(pipeline)
        search = StabilityGridSearchCV(pipeline, {}, epsilon=1e6).fit(CONTAINERS["pandas"](WHOLE), y)
        fitted = search.best_estimator_[0]
        expected = clone(encoder).fit(WHOLE).transform(WHOLE)
        for container in CONTAINERS:
            X = CONTAINERS[container](WHOLE)
            if not hasattr(X, "columns") or list(X.columns) == list(SCHEMA):
                found = (fitted if hasattr(X, "columns") else clone(encoder).fit(X)).transform(X)
                np.testing.assert_array_equal(found, expected)


def test_a_search_tunes_the_expansion():
    rng = np.random.default_rng(0)
    X, n = rng.random((4000, 2)), 4000
    y = (np.abs(X[:, 0] - 0.5) > 0.25).astype(int)
    pipeline = make_pipeline(TableEncoder((0, 1)), DPLogisticRegression(classes=[0, 1], data_norm=1.5))
    grid = {"tableencoder__expansion": ["linear", 2, 4]}
    search = StabilityGridSearchCV(pipeline, grid, epsilon=3.0, strategy="optimal_risk").fit(X, y)
    assert search.best_params_["tableencoder__expansion"] in (2, 4)
    assert search.plan(n, 2).epsilon == 3.0


def test_text_for_numbers_is_refused_before_records_are_read():
    X = np.array([["1", "SECRET"]] * 20, dtype=object)
    pipeline = make_pipeline(TableEncoder(SCHEMA), DPLogisticRegression(classes=[0, 1]))
    with pytest.raises(ValueError, match="Column 'visits' of X holds something that is no") as caught:
        StabilityGridSearchCV(pipeline, {}).fit(X, np.tile([0, 1], 10))
    assert "SECRET" not in str(caught.value)


def test_beside_others_its_output_must_be_dense():
    model = DPLogisticRegression(classes=[0, 1])
    for sparse_output in (False, True):
        encoder = TableEncoder(SCHEMA, sparse_output=sparse_output)
        pipeline = make_pipeline(ColumnTransformer([("a", encoder, [0, 1])]), model)
        if sparse_output:
            with pytest.raises(ValueError, match="sparse_threshold=0"):
                check_pipeline_privacy(pipeline)
        else:
            check_pipeline_privacy(pipeline)


def test_chunks_of_dataframes():
    pd = pytest.importorskip("pandas")
    frames = [
        pd.DataFrame({"grade": [1, 2], "visits": [0.1, None]}),
        pd.DataFrame({"grade": ["1", None], "visits": [1, 0]}),
        pd.DataFrame({"grade": pd.Categorical(["2", "x"]), "visits": [True, False]}),
    ]
    rows = RowChunks(lambda i: frames[i], [2, 2, 2], 2, feature_names=list(SCHEMA))
    for encoder in SEARCHED:
        expected = [clone(encoder).fit(frame).transform(frame) for frame in frames]
        np.testing.assert_array_equal(clone(encoder).fit(rows).transform(rows), np.vstack(expected))


@pytest.mark.parametrize("kind", ["pandas", "Arrow"])
def test_columns_that_are_too_many_or_have_one_name(kind):
    def table(names):
        if kind == "pandas":
            return pd.DataFrame([[0.5, 0.5, 0.5]], columns=names)
        return pa.table([pa.array([0.5])] * 3, names=names)

    encoder = TableEncoder({"a": (0, 1), "b": (0, 1)})
    with pytest.raises(ValueError, match=r"several columns of (one|each of the) name"):
        encoder.fit(table(["a", "b", "a"]))
    with pytest.raises(ValueError, match=r"nothing of columns \['c'\].*X\.select\(list\(schema\)\)"):
        encoder.fit(table(["a", "b", "c"]))
    known = list(encoder.schema)
    wide = table(["a", "b", "c"])
    assert encoder.fit_transform(wide[known] if kind == "pandas" else wide.select(known)).shape[0] == 1


def test_dictionaries_of_arrow_are_read_as_their_values():
    schema = {"job": ["x", "y"], "code": [1, 2]}
    plain = pa.table({"job": ["x", "y", None], "code": [1, 2, 2]})
    coded = pa.table({name: plain[name].dictionary_encode() for name in schema})
    encoder = TableEncoder({"job": {"categories": ["x", "y"], "missing": True}, "code": [1, 2]})
    assert np.array_equal(encoder.fit_transform(coded), encoder.fit_transform(plain))


def test_copies_of_a_schema_are_equal_and_apart():
    schema = PublicSchema({"age": (0, 120), "job": ["farmer", "clerk"]})
    for other in (copy.deepcopy(schema), clone(TableEncoder(schema)).schema):
        assert other == schema and other is not schema and other.columns is not schema.columns
