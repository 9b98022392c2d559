"""Check the handling of records: clipped in every form, refused if invalid, warned of if leaked."""

import importlib.util
import tempfile
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError

from ..config import config_context
from ..exceptions import (
    PrivacyLeakError,
    PrivacyLeakWarning,
)
from .attempts import (
    LABEL,
    SECRET,
    TEXT,
    Untouchable,
    attempt,
    refused,
    says_nothing_of_records,
    stays_as_it_was,
)
from .case import TINY
from .tally import leave_out, require


def _paths(case, folder, data):
    """Return the same records in every form that the estimator takes."""
    X, *y = data
    yield "float32", (X.astype(np.float32), *y)
    yield "integers", (X.astype(np.int64), *y)
    yield "Fortran order", (np.asfortranarray(X), *y)
    yield "lists", (X.tolist(), *(part.tolist() for part in y))
    mapped = np.memmap(Path(folder) / "rows", dtype=X.dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    yield "memory map", (mapped, *y)
    if case.tags.input_tags.sparse:
        for kind in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
            yield kind.__name__, (kind(X), *y)
        twice = sparse.coo_array(X)
        place = np.argsort(np.tile(twice.row, 2), kind="stable")
        halves = [np.tile(part, 2)[place] for part in (twice.data / 2, twice.col)]
        starts = np.append(0, 2 * np.cumsum(np.count_nonzero(X, axis=1)))
        yield (
            "csr_array with entries that are stored in halves",
            (sparse.csr_array((*halves, starts), shape=X.shape), *y),
        )
    if importlib.util.find_spec("pandas"):
        import pandas as pd

        frame = pd.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])])
        yield "DataFrame", (frame, *(pd.Series(part) for part in y))
    if importlib.util.find_spec("dask") and importlib.util.find_spec("dask.array"):
        import dask.array as da

        lazy = tuple(da.from_array(part, chunks=(5, *part.shape[1:])) for part in (X, *y))
        for records in (lazy, (lazy[0], *y)):
            if attempt(lambda: case.fit(records)).error is None:
                yield "Dask", records


def check_paths(case):
    """Check that rows and targets are clipped the same in every form, and in predictions."""
    data, tame = case.outliers(), case.data()
    tame = (np.rint(3 * tame[0]), *tame[1:])
    usual = case.fit(data, epsilon=1.0)
    expected, scale = case.numbers(usual), case.spread(data, epsilon=1.0)
    names = case.predictions()
    predicted = {name: np.asarray(getattr(usual, name)(data[0])) for name in names}
    with tempfile.TemporaryDirectory() as folder:
        paths = list(_paths(case, folder, data))
        for path, records in paths:
            model = case.fit(records, epsilon=1.0)
            apart = np.abs(case.numbers(model) - expected)
            require(
                (apart <= 1e-3 * scale + 1e-9 * np.abs(expected)).all(),
                f"Records given as {path} release something else than as an array of float64; check "
                "that rows and targets are clipped there, too.",
            )
            for name in names:
                found = np.asarray(getattr(model, name)(records[0]))
                if path == "DataFrame":
                    found = np.asarray(found, dtype=predicted[name].dtype)
                same = found.shape == predicted[name].shape and (
                    np.allclose(found, predicted[name], rtol=1e-3, atol=1e-3, equal_nan=True)
                    if found.dtype.kind == "f"
                    else np.array_equal(found, predicted[name])
                )
                require(same, f"{name} of rows given as {path} differs from that of an array.")
        tiny = case.fit(tame, epsilon=TINY)
        expected, scale = case.numbers(tiny), case.spread(tame, epsilon=TINY)
        for path, records in [("an array", data), *paths]:
            apart = np.abs(case.numbers(case.fit(records, epsilon=TINY)) - expected)
            require(
                (apart <= 0.02 * scale).all(),
                f"At epsilon={TINY:g} other records, given as {path}, still show beside the noise; "
                "either rows or targets are not clipped, or some number has too little noise.",
            )


def check_predictions(case):
    """Check that a too long row is predicted as the same row at the largest norm."""
    model = case.fit(case.data(), epsilon=1.0)
    d = case.some
    rows = np.vstack([np.eye(d), -np.eye(d), np.ones((1, d))])
    bound = case.params.get(case.statement.row_bound)
    for name in case.predictions():
        predict = getattr(model, name)
        found = {scale: np.asarray(predict(scale * rows)) for scale in (1e15, 1e18)}
        if isinstance(bound, (int, float)):
            found[0] = np.asarray(predict(float(bound) * rows))
            # only the rows that exceed the bound, as a row of ones does
            found = {scale: values[: 2 * d] for scale, values in found.items()}
        usual = found.pop(1e15)
        for values in found.values():
            same = (
                np.allclose(values, usual, rtol=1e-6, atol=1e-9, equal_nan=True)
                if usual.dtype.kind == "f"
                else np.array_equal(values, usual)
            )
            require(same, f"{name} does not clip rows as fit does.")


def check_bad_records(case):
    """Check that invalid records are refused, in messages that show none of them."""
    X, *y = case.data()
    text = X.astype(object)
    text[0, 0] = TEXT
    rows = {
        "NaN": np.where(np.arange(X.size).reshape(X.shape) == 4, np.nan, SECRET),
        "infinity": np.where(np.arange(X.size).reshape(X.shape) == 4, -np.inf, SECRET),
        "text": text,
        "text alone": np.full(X.shape, TEXT),
        "complex numbers": X * SECRET + 1j,
        "one dimension": X[:, 0] * 0 + SECRET,
        "no rows": X[:0],
        "no columns": X[:, :0],
    }
    n = len(X)
    bad = {
        f"X with {name}": (value, *(part[: len(value)] for part in y)) for name, value in rows.items()
    }
    if y:
        targets = {
            "NaN": np.where(np.arange(n) == 3, np.nan, SECRET),
            "infinity": np.where(np.arange(n) == 3, np.inf, SECRET),
            "two columns": np.full((n, 2), SECRET),
            "too few": y[0][:-1],
            "None": None,
            "missing values": np.array([None, TEXT] * n, dtype=object)[:n],
        }
        if is_classifier(case.estimator):
            labels = case.labels()
            unknown = TEXT if labels.dtype.kind in "UO" else LABEL
            targets["an unknown label"] = np.array([unknown] + [labels[0]] * (n - 1))
            targets["text"] = np.array([TEXT] * n)
        else:
            targets["text"] = np.array([TEXT] * n)
            targets["complex numbers"] = np.full(n, SECRET + 1j)
        bad.update({f"y with {name}": (X, value) for name, value in targets.items()})
    if case.weighted:
        weights = {
            "NaN": np.where(np.arange(n) == 3, np.nan, SECRET),
            "a negative number": np.where(np.arange(n) == 3, -SECRET, SECRET),
            "two columns": np.full((n, 2), SECRET),
            "too few": np.full(n - 1, SECRET),
            "text": np.array([TEXT] * n),
        }
        bad.update({f"sample_weight with {name}": (X, y[0], value) for name, value in weights.items()})
    fresh = {name: case.model() for name in bad}
    wider = case.data(d=case.some)
    fitted = case.fit(wider, None)
    for name, records in bad.items():
        for model in (fresh[name], fitted):
            with stays_as_it_was(model, f"A refused fit to {name}"):
                found = refused(lambda: model.fit(*records), (TypeError, ValueError), f"A fit to {name}")
            says_nothing_of_records(found, f"A fit to {name}")
    if case.supervised and not is_classifier(case.estimator):
        for value in (SECRET, -SECRET, 1e300 * SECRET):
            says_nothing_of_records(
                attempt(lambda: case.model().fit(X, np.full(n, value))), "A fit to odd targets"
            )
    says_nothing_of_records(
        attempt(lambda: case.model().fit(np.full_like(X, SECRET), *y)), "A fit to equal rows"
    )
    for method in case.predictions():
        unfitted = case.model()
        refused(lambda: getattr(unfitted, method)(X), (NotFittedError,), f"{method} before fit")
        for name in ("NaN", "infinity", "text", "text alone", "one dimension"):
            found = refused(
                lambda: getattr(fitted, method)(rows[name]),
                (TypeError, ValueError),
                f"{method} of X with {name}",
            )
            says_nothing_of_records(found, f"{method} of X with {name}")


def check_labels(case):
    """Check that learning the set of labels from the records warns."""
    if not is_classifier(case.estimator):
        return
    X, y, *_ = case.data()
    require(case.params.get("classes") is not None, "Give the estimator its classes=[...].")
    model = case.model(classes=None)
    found = attempt(lambda: model.fit(X, y))
    require(
        found.error is not None or PrivacyLeakWarning in found.warned,
        "classes=None learns labels from y, which no loss covers; it must warn (PrivacyLeakWarning).",
    )
    says_nothing_of_records(
        attempt(lambda: case.model(classes=None).fit(X, np.where(y == y[0], LABEL, 0))), "classes=None"
    )
    model = case.model(classes=None)
    with config_context(strict=True), stays_as_it_was(model, "A fit that strict mode refuses"):
        refused(
            lambda: model.fit(*([Untouchable()] * 2)),
            (PrivacyLeakError, ValueError),
            "classes=None in strict mode",
        )


def check_training_records(case):
    """Check that scoring the training records, which is a leak, warns."""
    if not hasattr(case.estimator, "score"):
        return
    data = case.data()[:2]
    model = case.fit(data, None)
    found = attempt(lambda: model.score(*data))
    if found.error is None and found.value is None:
        leave_out("score, which returns nothing, as that of scikit-learn's DensityMixin")
        return
    require(
        PrivacyLeakWarning in found.warned,
        "score of the training records is an exact function of them; it must warn (PrivacyLeakWarning): "
        "write it in a subclass of PrivateEstimator, or decorate it by "
        "dpselect.records.training.warns_of_training_records.",
    )
    with config_context(strict=True):
        refused(lambda: model.score(*data), (PrivacyLeakError,), "score of training records")
    found = attempt(lambda: model.score(*case.data(9)[:2]))
    require(PrivacyLeakWarning not in found.warned, "score of other records must not warn.")
