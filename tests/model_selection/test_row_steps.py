"""Steps on lazy rows are fitted on one row, and applied to a chunk when it is read."""

import threading
import time
import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures

from dpselect import RowChunks
from dpselect.model_selection.row_steps import fit, fit_transform
from dpselect.preprocessing import BoundedScaler, DPBoundsScaler
from dpselect.rows import as_lazy, block_map, block_sum, is_lazy

X = np.random.default_rng(0).uniform(-1, 1, size=(100, 3))


def chunks(read=None):
    reads = []

    def reading(i):
        reads.append(i)
        return X[50 * i : 50 * (i + 1)]

    return as_lazy(RowChunks(read or reading, [50, 50], 3)), reads


def test_lazy_rows_are_those_of_rows_in_memory():
    rows, reads = chunks()
    steps, lazy = fit_transform(make_pipeline(PolynomialFeatures(), BoundedScaler((-1, 1))), rows)
    assert is_lazy(lazy) and lazy.shape == (100, 10) and reads == [0]
    _, expected = fit_transform(make_pipeline(PolynomialFeatures(), BoundedScaler((-1, 1))), X)
    np.testing.assert_array_equal(block_map(np.asarray, lazy), expected)
    np.testing.assert_array_equal(steps.transform(X), expected)
    assert fit(PolynomialFeatures(), rows).n_features_in_ == 3


def test_a_private_step_learns_from_all_rows():
    rows, reads = chunks()
    step, _ = fit_transform(DPBoundsScaler(epsilon=float("inf")), rows)
    assert {0, 1} <= set(reads)
    expected = DPBoundsScaler(epsilon=float("inf")).fit(X).bounds_
    np.testing.assert_array_equal(step.bounds_, expected)
    with pytest.raises(ValueError, match="a step of the Pipeline itself"):
        fit_transform(make_pipeline(DPBoundsScaler()), rows)


def test_what_a_step_says_of_a_row_is_not_told():
    rows, _ = chunks(lambda i: np.full((50, 3), 98765))
    with pytest.raises(ValueError, match="could not transform") as caught:
        fit(OneHotEncoder(categories=[[1]] * 3), rows)
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
