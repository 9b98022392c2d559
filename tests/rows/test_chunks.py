"""Chunks that a function reads: what they must be, and that errors hold no records."""

import itertools

import numpy as np
import pytest

from dpselect import DPLogisticRegression, DPRidge, RowChunks
from dpselect.rows import block_map, block_sum, in_memory

from .kinds import LENGTHS, Parts, chunked


@pytest.mark.parametrize(
    "arguments, error",
    [
        ({"read": 3}, TypeError),
        ({"lengths": []}, ValueError),
        ({"lengths": [0]}, ValueError),
        ({"lengths": [2.5]}, TypeError),
        ({"n_columns": 0}, ValueError),
        ({"feature_names": ["a"]}, ValueError),
    ],
)
def test_parameters(arguments, error):
    with pytest.raises(error, match=next(iter(arguments))):
        RowChunks(**({"read": len, "lengths": [1], "n_columns": 2} | arguments))


def test_it_shows_shapes_alone(records):
    chunks = chunked(records[0])
    assert chunks.shape == (2000, 4) and len(chunks) == 2000
    assert repr(chunks) == "RowChunks(4 chunks of 4 columns, 2000 rows)"


def with_chunk(X, chunk):
    """Chunks of which the third is another one."""
    read = Parts(X)
    read.parts[2] = chunk
    return RowChunks(read, LENGTHS, 4)


SECRET = 98765.4321


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda X: np.where(X == X.max(), np.nan, X * SECRET), "Input X contains NaN"),
        (
            lambda X: np.where(X == X.max(), str(SECRET) + "x", X.astype(str)),
            "text that is not a number",
        ),
        (lambda X: X[1:], r"read\(2\) returned rows of another shape"),
        (lambda X: X[:, 1:], r"read\(2\) returned rows of another shape"),
        (lambda X: X.tolist()[:-1] + [[SECRET]], "rows of different lengths"),
    ],
)
def test_errors_hold_no_records(records, spoil, message):
    X, labels, _ = records
    spoilt = with_chunk(X, spoil(Parts(X).parts[2]))
    with pytest.raises(ValueError, match=message) as caught:
        DPLogisticRegression(classes=[0, 1]).fit(spoilt, labels)
    told = caught.value
    while told is not None:
        assert "98765" not in str(told)
        told = told.__cause__ or told.__context__


def test_errors_of_the_reading_function(records):
    def read(i):
        raise KeyError(SECRET)

    with pytest.raises(ValueError, match=r"could not be read \(KeyError\)") as caught:
        DPRidge(target_range=(-1, 1)).fit(RowChunks(read, [10], 4), np.zeros(10))
    assert caught.value.__context__ is None and "98765" not in str(caught.value)

    def lost(i):
        raise FileNotFoundError("part-0.parquet")

    with pytest.raises(FileNotFoundError, match="part-0"):
        DPRidge(target_range=(-1, 1)).fit(RowChunks(lost, [10], 4), np.zeros(10))

    def damaged(i):
        try:
            read(i)
        except KeyError as error:
            raise OSError("part-0.parquet") from error

    with pytest.raises(OSError, match="part-0") as caught:
        DPRidge(target_range=(-1, 1)).fit(RowChunks(damaged, [10], 4), np.zeros(10))
    assert caught.value.__cause__ is None and caught.value.__context__ is None


RNG = np.random.default_rng(0)
# each holds numbers, or texts, that those before it do not
KINDS = [
    RNG.integers(2, size=(9, 2)).astype(bool),
    RNG.integers(-9, 9, size=(7, 2)).astype(np.int8),
    RNG.uniform(-1, 1, size=(8, 2)).astype(np.float32),
    RNG.uniform(-1, 1, size=(6, 2)),
]
TEXTS = [RNG.choice(["1", "12", "1234"][:k], size=9 - k).astype(f"U{2 ** (k - 1)}") for k in (1, 2, 3)]
TEXTS.append(np.array(["1", "a long text"], dtype=object))


def as_chunks(parts):
    return RowChunks(parts.__getitem__, list(map(len, parts)), 1 if parts[0].ndim == 1 else 2)


@pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning")
@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_each_chunk_may_be_of_a_type_of_its_own(order):
    rows, texts = ([kinds[k] for k in order] for kinds in (KINDS, TEXTS))
    columns = [part[:, 0] for part in rows]
    for parts in (rows, texts, columns):
        whole, chunks = np.concatenate(parts), as_chunks(parts)
        for found in (in_memory(chunks), block_map(np.asarray, chunks)):
            assert np.array_equal(found.reshape(whole.shape), whole)
    model = DPRidge(target_range=(-9, 9), random_state=0)
    found = model.fit(as_chunks(rows), as_chunks(columns)).coef_
    whole = np.concatenate(rows).astype(np.float64)
    np.testing.assert_array_equal(found, model.fit(whole, whole[:, 0]).coef_)


def test_names_come_from_feature_names(records):
    import pandas as pd

    X, _, targets = records
    names = ["u", "v", "w", "x"]
    frames = [pd.DataFrame(part, columns=names) for part in Parts(X).parts]
    chunks = RowChunks(frames.__getitem__, LENGTHS, 4, feature_names=names)
    assert list(DPRidge(target_range=(-1, 1)).fit(chunks, targets).feature_names_in_) == names
    frames[1] = frames[1][names[::-1]]
    with pytest.raises(ValueError, match="other names than feature_names"):
        DPRidge(target_range=(-1, 1)).fit(chunks, targets)


def test_sparse_chunks(records):
    from scipy import sparse

    X, _, targets = records
    read = Parts(X)
    read.parts = [sparse.csc_array(part) for part in read.parts]
    model = DPRidge(epsilon=float("inf"), target_range=(-1, 1)).fit(RowChunks(read, LENGTHS, 4), targets)
    np.testing.assert_allclose(
        model.coef_, DPRidge(epsilon=float("inf"), target_range=(-1, 1)).fit(X, targets).coef_
    )


def test_threads_do_not_change_a_bit(records):
    X, labels, _ = records
    one, two = (
        block_sum(lambda X, y: (X.T @ y,), chunked(X), labels, n_jobs=n_jobs)[0] for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one, two)
