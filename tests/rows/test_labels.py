"""Labels of every kind beside rows of every kind."""

import numpy as np
import pytest
from sklearn.base import clone

from dpselect import DPLogisticRegression, DPRidge
from dpselect.rows import distinct

from .kinds import few_forms, forms

pytestmark = [
    pytest.mark.usefixtures("serial"),
    pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::dpselect.PrivacyLeakWarning"),
]


def test_text_labels_and_learned_classes(records, tmp_path):
    X, labels, _ = records
    words = np.array(["well", "ill", "quite ill"])[labels]
    for name, given in few_forms(X, words, tmp_path).items():
        model = DPLogisticRegression(random_state=0).fit(*given)
        assert list(model.classes_) == ["ill", "well"], name
        assert set(np.asarray(model.predict(given[0]))) <= {"ill", "well"}


def test_labels_of_another_length_are_refused(records, tmp_path):
    X, labels, _ = records
    for rows, _ in forms(X, labels, tmp_path).values():
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            DPLogisticRegression(classes=[0, 1]).fit(rows, labels[:-1])


def test_two_columns_of_labels_are_refused_whatever_keeps_them(records, tmp_path):
    X, labels, targets = records
    for model, y in (
        (DPLogisticRegression(classes=[0, 1]), labels),
        (DPRidge(target_range=(-1, 1)), targets),
    ):
        both = np.column_stack([y, y])
        for name, (rows, kept) in (few_forms(X, both, tmp_path) | {"memory": (X, both)}).items():
            with pytest.raises(ValueError):
                clone(model).fit(rows, kept)
                pytest.fail(name)


@pytest.mark.slow
def test_rows_and_labels_may_be_of_different_kinds(records, tmp_path):
    X, labels, _ = records
    model = DPLogisticRegression(classes=[0, 1], random_state=0)
    expected = clone(model).fit(X, labels)
    given = few_forms(X, labels, tmp_path) | {"memory": (X, labels)}
    for rows, _ in given.values():
        for _, y in given.values():
            np.testing.assert_allclose(model.fit(rows, y).coef_, expected.coef_, atol=1e-9)
            assert model.score(rows, y) == expected.score(X, labels)


@pytest.mark.parametrize("dtype", ["string", "category", "Int64"])
def test_labels_of_pandas_own_types(records, dtype):
    import dask.array as da
    import dask.dataframe as dd
    import pandas as pd

    X, labels, _ = records
    given = dd.from_pandas(pd.Series(labels).astype(dtype), npartitions=3)
    model = DPLogisticRegression(random_state=0)
    expected = clone(model).fit(X, labels).coef_
    for rows in (X, da.from_array(X, chunks=(700, 4))):
        np.testing.assert_allclose(model.fit(rows, given).coef_, expected, atol=1e-9)


def test_errors_hold_no_labels(records, tmp_path):
    """Neither where the labels are one number, nor where they are brought to rows in memory."""
    X, labels, _ = records
    for rows in (rows for rows, _ in forms(X, labels, tmp_path).values()):
        with pytest.raises(TypeError, match="y could not be read") as caught:
            DPRidge(target_range=(-1, 1)).fit(rows, np.float64(98765.0))
        assert "98765" not in str(caught.value)

    def fail(block):
        raise KeyError(98765)

    y = few_forms(X, labels, tmp_path)["dask"][1].map_blocks(fail, dtype=int)
    for rows in (X, few_forms(X, labels, tmp_path)["chunks"][0]):
        with pytest.raises(ValueError, match="KeyError") as caught:
            DPRidge(target_range=(-1, 1)).fit(rows, y)
        assert "98765" not in str(caught.value) and caught.value.__context__ is None


def test_distinct_labels_are_sorted():
    assert distinct(np.array(["b", "a", "b"])).tolist() == ["a", "b"]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_targets_that_are_no_numbers_reach_no_sum(records, tmp_path, bad):
    """A model of NaN would tell, whatever its epsilon, that one record has no target."""
    X, _, y = records
    y = np.where(np.arange(len(y)) == 900, bad, y.astype(float))
    for name, (rows, targets) in forms(X, y, tmp_path).items():
        for model in (
            DPRidge(target_range=(-1, 1)),
            DPRidge(perturbation="output", target_range=(-1, 1)),
            DPLogisticRegression(classes=[0, 1]),
        ):
            with pytest.raises(ValueError) as refused:
                model.fit(rows, targets)
            assert not hasattr(model, "coef_"), name
            assert "900" not in str(refused.value)
