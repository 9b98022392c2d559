"""Bad and odd values of parameters, tables and labels, with secrets in them."""

import tempfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
from hypothesis import strategies as st
from scipy import sparse

SECRET, TEXT, LABEL = 0.7316542890123, "SECRET-42", 987654


def always(value):
    return lambda *args: value


# factories, since a generator can be used once and a list can be changed
JUNK = [
    *map(
        always,
        (
            float("nan"),
            float("inf"),
            -float("inf"),
            -0.0,
            0,
            0.0,
            -1,
            -0.5,
            1,
            2,
            0.5,
            3.0,
            1e308,
            -1e308,
            1e-320,
            5e-324,
            1e-9,
            1e-12,
            1e100,
            10**400,
            -(10**400),
            2**62,
            2**64,
            Fraction(1, 3),
            Fraction(1, 10**400),
            Fraction(10**400),
            Decimal("0.5"),
            Decimal("NaN"),
            True,
            False,
            np.True_,
            "",
            "auto",
            "a text",
            "0.5",
            "l1",
            "raise",
            b"bytes",
            None,
            1j,
            (),
            (0.5,),
            (0.0, 1.0),
            (1.0, 0.0),
            frozenset({1}),
            range(2),
            range(3),
            ...,
            object(),
            type,
            len,
            np.nan,
            np.datetime64("2020-01-01"),
            pd.NA,
            pd.NaT,
        ),
    ),
    *(
        always(kind(value))
        for kind in (np.float16, np.float32, np.float64, np.longdouble)
        for value in (0.3, 1e-5, 3.0, -1, 0, "nan", "inf")
    ),
    *(always(kind(value)) for kind in (np.int8, np.uint8, np.int64, np.uint64) for value in (0, 1, 100)),
    always(np.int8(-3)),
    list,
    dict,
    set,
    lambda: [0.5],
    lambda: [0.5, "b"],
    lambda: {"a": 1},
    lambda: [[0, 1], [2, 3]],
    lambda: [[0, 1], [2]],
    lambda: [0, 0],
    lambda: [0, np.nan],
    lambda: [None, 1],
    lambda: [1, 0],
    lambda: (x for x in (0.5, 1.0)),
    lambda: iter([1]),
    lambda: np.array(0.5),
    lambda: np.array([0.5, 1.0]),
    lambda: np.array([]),
    lambda: np.array([np.nan, 1.0]),
    lambda: np.eye(2),
    lambda: np.array(["a", "b"]),
    lambda: pd.Series([0.5, 1.0]),
    lambda: np.random.default_rng(0),
    lambda: np.random.RandomState(0),
    lambda: slice(2),
]


def junk():
    return st.sampled_from(JUNK).map(lambda make: make())


def changes(**good):
    """Draw parameters to be changed: up to two to junk, and up to two to good or odd values."""
    names = sorted(good)
    to_junk = st.lists(st.tuples(st.sampled_from(names), junk()), max_size=2).map(dict)
    to_good = st.lists(
        st.sampled_from(names).flatmap(
            lambda name: st.tuples(st.just(name), st.sampled_from(good[name]))
        ),
        max_size=2,
    ).map(dict)
    return st.one_of(to_good, st.builds(lambda one, other: {**one, **other}, to_good, to_junk))


def plain(rng, n, p):
    X = rng.random((n, p))
    X.flat[0] = SECRET
    return X


def with_value(value, dtype=None):
    def make(rng, n, p):
        X = plain(rng, n, p).astype(dtype or np.float64)
        X[-1, -1] = value
        return X

    return make


def texts(dtype):
    def make(rng, n, p):
        X = plain(rng, n, p).astype(dtype)
        X[0, 0] = TEXT
        return X

    return make


def mapped(rng, n, p):
    with tempfile.TemporaryDirectory() as folder:
        X = np.memmap(Path(folder) / "X", mode="w+", shape=(n, p))
        X = np.memmap(Path(folder) / "Y", dtype=np.float64, mode="w+", shape=(n, p))
        X[:] = plain(rng, n, p)
        return X


def read_only(rng, n, p):
    X = plain(rng, n, p)
    X.flags.writeable = False
    return X


def mixed_frame(rng, n, p):
    frame = pd.DataFrame(plain(rng, n, p), columns=[f"column {j}" for j in range(p)])
    frame["text"] = [TEXT] * n
    return frame


def nullable(rng, n, p):
    frame = pd.DataFrame(plain(rng, n, p), columns=list("abcdefgh")[:p]).astype("Float64")
    frame.iloc[0, 0] = pd.NA
    return frame


def categorical(rng, n, p):
    frame = pd.DataFrame(plain(rng, n, p), columns=list("abcdefgh")[:p])
    return frame.assign(a=pd.Categorical([TEXT] * n))


def of_kind(make):
    """Make a table from a plain one."""
    return lambda rng, n, p: make(plain(rng, n, p))


GOOD_TABLES = {
    "plain": plain,
    "float32": of_kind(lambda X: X.astype(np.float32)),
    "float16": of_kind(lambda X: X.astype(np.float16)),
    "integers": of_kind(lambda X: (3 * X).astype(np.int8)),
    "flags": of_kind(lambda X: X > 0.5),
    "Fortran": of_kind(np.asfortranarray),
    "strided": of_kind(lambda X: np.repeat(np.repeat(X, 2, 0), 2, 1)[::2, ::-2]),
    "read only": read_only,
    "memory map": mapped,
    "lists": of_kind(np.ndarray.tolist),
    "pandas": of_kind(pd.DataFrame),
    "named": of_kind(lambda X: pd.DataFrame(X, columns=list("abcdefgh")[: X.shape[1]])),
    "polars": of_kind(lambda X: pl.DataFrame(X, schema=list("abcdefgh")[: X.shape[1]])),
    "Arrow": of_kind(lambda X: pl.DataFrame(X, schema=list("abcdefgh")[: X.shape[1]]).to_arrow()),
    "objects": of_kind(lambda X: X.astype(object)),
    "huge": with_value(7.316542890123e300),
    "largest": with_value(-np.finfo(np.float64).max),
    "tiny": with_value(5e-324),
    "large integers": with_value(LABEL, np.int64),
    "csr": of_kind(sparse.csr_array),
    "csc": of_kind(sparse.csc_matrix),
    "coo": of_kind(sparse.coo_array),
    "masked": of_kind(lambda X: np.ma.masked_array(X, mask=X > 0.5)),
    "matrix of one value": of_kind(lambda X: np.full_like(X, SECRET)),
}
BAD_TABLES = {
    "no rows": of_kind(lambda X: X[:0]),
    "no columns": of_kind(lambda X: X[:, :0]),
    "vector": of_kind(lambda X: X[:, 0]),
    "cube": of_kind(lambda X: X[:, :, None]),
    "scalar": of_kind(lambda X: X[0, 0]),
    "bare number": of_kind(lambda X: float(X[0, 0])),
    "complex": of_kind(lambda X: X + 1j),
    "text": texts("U25"),
    "text as objects": texts(object),
    "bytes": of_kind(lambda X: np.full(X.shape, TEXT.encode())),
    "NaN": with_value(np.nan),
    "infinity": with_value(-np.inf),
    "beyond float64": of_kind(lambda X: np.where(X < 1, 10**400, X.astype(object))),
    "None": of_kind(lambda X: np.where(X < 0.7, None, X.astype(object))),
    "ragged": of_kind(lambda X: [row[: 1 + i % 2] for i, row in enumerate(X.tolist())]),
    "nested": of_kind(lambda X: np.array([[[SECRET], TEXT]] * len(X), dtype=object)),
    "dicts": of_kind(lambda X: [{"a": row[0], TEXT: 1} for row in X.tolist()]),
    "mixed frame": mixed_frame,
    "nullable": nullable,
    "categorical": categorical,
    "polars text": of_kind(lambda X: pl.DataFrame({"a": [TEXT] * len(X), "b": X[:, 0]})),
    "polars null": of_kind(lambda X: pl.DataFrame({"a": [None] * len(X), "b": X[:, 0]})),
    "dates": of_kind(lambda X: np.full(X.shape, np.datetime64("NaT"))),
    "sparse NaN": of_kind(lambda X: sparse.csr_array(np.where(X == SECRET, np.nan, X))),
    "dok": of_kind(lambda X: sparse.dok_array(X[:, :1])),
    "nothing": always(None),
    "a text": always(TEXT),
    "a set": of_kind(lambda X: set(X.ravel().tolist())),
    "a dict": of_kind(lambda X: {SECRET: X}),
    "a generator": of_kind(lambda X: (row for row in X.tolist())),
    "an object": lambda rng, n, p: object(),
}
# `rng` and the number of rows, to labels
GOOD_LABELS = {
    "0 and 1": lambda rng, n: np.arange(n) % 2,
    "list": lambda rng, n: (np.arange(n) % 2).tolist(),
    "flags": lambda rng, n: np.arange(n) % 2 == 1,
    "float": lambda rng, n: np.arange(n) % 2.0,
    "int8": lambda rng, n: (np.arange(n) % 2).astype(np.int8),
    "objects": lambda rng, n: (np.arange(n) % 2).astype(object),
    "pandas": lambda rng, n: pd.Series(np.arange(n) % 2),
    "polars": lambda rng, n: pl.Series(np.arange(n) % 2),
    "read only": lambda rng, n: np.broadcast_to(1, n),
    "column": lambda rng, n: (np.arange(n) % 2)[:, None],
}
NUMBERS = {
    "numbers": lambda rng, n: np.r_[SECRET, rng.random(n)][:n],
    "huge": lambda rng, n: np.full(n, 7.316542890123e300),
    "float16": lambda rng, n: rng.random(n).astype(np.float16),
}
BAD_LABELS = {
    "secret label": lambda rng, n: np.where(np.arange(n) == 3, LABEL, np.arange(n) % 2),
    "one more": lambda rng, n: np.arange(n + 1) % 2,
    "none": lambda rng, n: np.arange(0),
    "NaN": lambda rng, n: np.where(np.arange(n) == 3, np.nan, SECRET),
    "infinity": lambda rng, n: np.where(np.arange(n) == 3, np.inf, 1.0),
    "text": lambda rng, n: np.array([TEXT, "other"] * n)[:n],
    "text of digits": lambda rng, n: (np.arange(n) % 2).astype(str),
    "mixed": lambda rng, n: np.array([TEXT, SECRET, None, True] * n, dtype=object)[:n],
    "text and NaN": lambda rng, n: np.array([TEXT, np.nan] * n, dtype=object)[:n],
    "complex": lambda rng, n: np.full(n, SECRET + 1j),
    "dates": lambda rng, n: np.full(n, np.datetime64("1987-06-05")),
    "table": lambda rng, n: np.full((n, 2), SECRET),
    "ragged": lambda rng, n: [[LABEL], [1, 2]] * (n // 2) + [0] * (n % 2),
    "scalar": lambda rng, n: SECRET,
    "nothing": lambda rng, n: None,
    "a text": lambda rng, n: TEXT,
    "a set": lambda rng, n: {SECRET, 1.0},
    "a dict": lambda rng, n: {i: LABEL for i in range(n)},
    "a generator": lambda rng, n: (SECRET for _ in range(n)),
    "beyond float64": lambda rng, n: np.array([10**400] * n, dtype=object),
    "sparse": lambda rng, n: sparse.csr_array(np.full((n, 1), SECRET)),
    "frame": lambda rng, n: pd.DataFrame({"a": [TEXT] * n, "b": [1] * n}),
    "polars text": lambda rng, n: pl.Series([TEXT, "other"] * n)[:n],
    "pandas NA": lambda rng, n: pd.Series([pd.NA, 1] * n, dtype="Int64")[:n],
}


def tables(width=2, sizes=(1, 2, 7, 30)):
    """Draw a table; good ones as often as bad ones."""

    def make(named, n, seed):
        return named[1](np.random.default_rng(seed), n, width)

    return st.builds(
        make,
        st.one_of(*(st.sampled_from(list(kinds.items())) for kinds in (GOOD_TABLES, BAD_TABLES))),
        st.sampled_from(sizes),
        st.integers(0, 99),
    )


def records(good_labels=GOOD_LABELS, width=2, sizes=(2, 7, 30)):
    """Draw a table and labels; one of them is good in three of four cases, both in one."""

    def make(table, labels, n, seed):
        rng = np.random.default_rng(seed)
        return table(rng, n, width), labels(rng, n)

    pairs = [
        (good_tables, labels)
        for good_tables, labels in (
            (GOOD_TABLES, good_labels),
            (GOOD_TABLES, good_labels),
            (BAD_TABLES, good_labels),
            (GOOD_TABLES, {**BAD_LABELS, **NUMBERS}),
        )
    ]
    return st.one_of(
        *(
            st.builds(
                make,
                st.sampled_from(list(one.values())),
                st.sampled_from(list(other.values())),
                st.sampled_from(sizes),
                st.integers(0, 99),
            )
            for one, other in pairs
        )
    )
