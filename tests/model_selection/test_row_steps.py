"""Steps are fitted on a dummy row, and applied to a chunk of lazy rows when it is read."""

import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
)

from dpselect import RowChunks
from dpselect.model_selection.row_steps import fit, fit_private, public_rows, transform
from dpselect.preprocessing import BoundedScaler, DPBoundsScaler, TableEncoder
from dpselect.preprocessing.pipeline_check import map_parts
from dpselect.rows import as_lazy, block_map, block_sum, is_lazy

X = np.random.default_rng(0).uniform(-1, 1, size=(100, 3))


def chunks(read=None):
    reads = []

    def reading(i):
        reads.append(i)
        return X[50 * i : 50 * (i + 1)]

    return as_lazy(RowChunks(read or reading, [50, 50], 3)), reads


def fit_transform(steps, rows):
    public = public_rows(rows)
    rows = public.form.convert(rows)
    output = fit(steps, public)
    return steps, transform(steps, rows, output)


def test_lazy_rows_are_those_of_rows_in_memory():
    rows, reads = chunks()
    steps, lazy = fit_transform(make_pipeline(PolynomialFeatures(), BoundedScaler((-1, 1))), rows)
    assert is_lazy(lazy) and lazy.shape == (100, 10) and reads == [0]
    _, expected = fit_transform(make_pipeline(PolynomialFeatures(), BoundedScaler((-1, 1))), X)
    np.testing.assert_array_equal(block_map(np.asarray, lazy), expected)
    np.testing.assert_array_equal(steps.transform(X), expected)
    assert steps.n_features_in_ == 3


def test_a_private_step_learns_from_all_rows():
    rows, reads = chunks()
    step = DPBoundsScaler(epsilon=float("inf"))
    fit_private(step, rows, None, public_rows(rows))
    assert {0, 1} <= set(reads)
    expected = DPBoundsScaler(epsilon=float("inf")).fit(X).bounds_
    np.testing.assert_array_equal(step.bounds_, expected)
    with pytest.raises(ValueError, match="a step of the Pipeline itself"):
        fit_private(make_pipeline(DPBoundsScaler()), rows, None, public_rows(rows))


def test_what_a_step_says_of_a_row_is_not_told():
    rows, _ = chunks(lambda i: np.full((50, 3), 98765))
    with pytest.raises(ValueError, match="could not transform") as caught:
        _, lazy = fit_transform(OneHotEncoder(categories=[[1]] * 3), rows)
        block_map(np.asarray, lazy)
    assert "98765" not in str(caught.value)


FIRST_BEGUN, SECOND_BEGUN = threading.Event(), threading.Event()


def second_begins_later(rows):
    """Return the rows as they are; those of the second chunk when the first is in its step."""
    if len(rows) == 50 and rows[0, 0] != X[0, 0]:
        FIRST_BEGUN.wait(60)
    return rows


def second_ends_later(rows):
    if len(rows) == 50 and rows[0, 0] == X[0, 0]:
        FIRST_BEGUN.set()
        SECOND_BEGUN.wait(60)
    elif len(rows) == 50:
        SECOND_BEGUN.set()
        time.sleep(0.1)
    return rows


@pytest.mark.parametrize("kind", ["chunks", "dask"])
def test_steps_in_threads_leave_the_filters_of_warnings(kind):
    """A filter that silences steps must not stay: it would silence warnings of leaks."""
    FIRST_BEGUN.clear()
    SECOND_BEGUN.clear()
    if kind == "chunks":
        rows, _ = chunks(lambda i: second_begins_later(X[50 * i : 50 * (i + 1)]))
        _, lazy = fit_transform(FunctionTransformer(second_ends_later), rows)
    else:
        da, dask = pytest.importorskip("dask.array"), pytest.importorskip("dask")
        given = da.from_array(X, chunks=(50, 3)).map_blocks(second_begins_later, dtype=float)
        with dask.config.set(scheduler="synchronous"):
            _, lazy = fit_transform(FunctionTransformer(second_ends_later), as_lazy(given))
        FIRST_BEGUN.clear()
        SECOND_BEGUN.clear()
    with warnings.catch_warnings():
        before = list(warnings.filters)
        if kind == "chunks":
            (total,) = block_sum(lambda rows: (rows.sum(),), lazy, n_jobs=2)
        else:
            with dask.config.set(scheduler="threads", num_workers=2):
                (total,) = block_sum(lambda rows: (rows.sum(),), lazy)
        assert warnings.filters == before
    assert total == pytest.approx(X.sum()) and SECOND_BEGUN.is_set()


def test_the_first_dummy_row_that_steps_take_is_enough():
    steps = make_pipeline(FunctionTransformer(np.arccosh), BoundedScaler((0, 1)))
    _, rows = fit_transform(steps, 1 + X**2)
    np.testing.assert_allclose(rows, 2 * np.clip(np.arccosh(1 + X**2), 0, 1) - 1)
    with pytest.raises(ValueError, match="(infinity|NaN).* a dummy row"):
        fit_transform(make_pipeline(FunctionTransformer(divided_by_zero), BoundedScaler((0, 1))), X)


def test_a_refusal_of_a_table_names_the_column_and_what_to_write():
    """As the encoder does by itself: a column is public, and its cells are not told."""

    def steps():
        return make_pipeline(TableEncoder({"age": (0, 100), "job": ["a", "b"]}))

    table = pd.DataFrame({"age": [1.0, 98765.0, np.nan], "job": ["a", "b", "a"]})
    with pytest.raises(ValueError, match="^Column 'age' of X has missing .* 'missing': True") as caught:
        fit_transform(steps(), table)
    assert caught.value.__context__ is None and "98765" not in str(caught.value)
    with pytest.raises(ValueError, match=r"^schema says nothing of .*'id'.* X\[list\(schema\)\]"):
        fit_transform(steps(), table.fillna(0.0).assign(id=[1, 2, 3]))


def divided_by_zero(rows):
    return rows / 0


@pytest.mark.parametrize(
    "encoder, params",
    [
        (OneHotEncoder(categories=[["a", "b"]] * 2), {"handle_unknown": "error"}),
        (
            OrdinalEncoder(categories=[["a", "b"]] * 2, dtype=np.uint8),
            {"handle_unknown": "error", "unknown_value": None},
        ),
    ],
)
def test_strict_encoders_stay_strict(encoder, params):
    """They take the dummy row, and refuse an unknown category of a record."""
    known, unknown = [["a", "b"], ["b", "b"]], [["a", "b"], ["b", "c"]]
    both = ColumnTransformer([("part", make_pipeline(clone(encoder)), [0, 1])], sparse_threshold=0)
    frozen = make_pipeline(FrozenEstimator(clone(encoder).fit(known)))
    for steps in (make_pipeline(encoder), both, frozen):
        fit_transform(steps, known)
        with pytest.raises(ValueError, match="could not transform"):
            fit_transform(steps, unknown)
        found = []
        map_parts(steps, lambda path, part: found.append(getattr(part, "estimator", part)) or part)
        for part in found:
            assert {name: part.get_params()[name] for name in params} == params


def test_private_parts_beside_others_are_fitted_on_the_records_and_the_others_are_not():
    table = np.column_stack([np.arange(100.0), X[:, 0]])
    beside = ColumnTransformer(
        [
            ("bounds", make_pipeline(SpyStep(), DPBoundsScaler(epsilon=float("inf"))), [0]),
            ("other", SpyStep(), [1]),
        ],
        remainder="drop",
    )
    public = public_rows(table)
    fitted, _ = fit_private(beside, table, None, public)
    private = fitted.transformers_[0][1]
    expected = DPBoundsScaler(epsilon=float("inf")).fit(table[:, :1]).bounds_
    np.testing.assert_array_equal(private[-1].bounds_, expected)
    assert fitted.transformers[0][1][-1] is private[-1]  # no frozen form is left
    for spy in (private[0], fitted.transformers_[1][1]):
        np.testing.assert_array_equal(spy.seen_, public.dummies[0][:, :1])


class SpyStep(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.seen_ = X
        return self

    def transform(self, X):
        return X
