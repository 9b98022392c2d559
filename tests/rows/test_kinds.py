"""Rows of every kind give what the same rows in memory give."""

import numpy as np
import pytest
from sklearn.base import clone

import dpselect
from dpselect import (
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    RowChunks,
)
from dpselect.preprocessing import BoundedScaler, DPBoundsScaler, NormClipper, TableEncoder
from dpselect.rows import align, as_lazy, block_map, block_sum, n_rows, sample, take_records
from tests.marks import slow_but

from .kinds import LENGTHS, Parts, chunked, forms, mapped

pytestmark = [
    pytest.mark.usefixtures("serial", "small_blocks"),
    pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::dpselect.PrivacyLeakWarning"),
]

RIDGES = [
    DPRidge(
        perturbation=kind,
        norm=norm,
        delta=1e-6 if (kind, norm) == ("covariance", "l2") else 0,
        target_range=(-1, 1),
        data_norm_l1=1.0 if norm == "l1" else None,
    )
    for kind, norm in (
        ("covariance", "l1"),
        ("covariance", "l2"),
        ("objective", "l2"),
        ("output", "l1"),
    )
]
CLASSIFIERS = [
    DPLogisticRegression(classes=[0, 1]),
    DPLinearSVC(classes=[0, 1]),
    DPLogisticRegression(classes=[0, 1, 2], perturbation="output"),
    DPLogisticRegression(classes=[0, 1], data_norm_l1=1.2),
]


def gram(X, y):
    return X.T @ (y[:, None] * X), y.sum()


def test_sums_and_maps(records, tmp_path):
    X, labels, _ = records
    for name, given in forms(X, labels, tmp_path).items():
        rows, y = align(*given)
        total, count = block_sum(gram, rows, y)
        np.testing.assert_allclose(total, X.T @ (labels[:, None] * X), rtol=1e-12, err_msg=name)
        assert count == labels.sum() and n_rows(given[0]) == 2000
        norms = block_map(lambda X: (X * X).sum(axis=1), rows)
        np.testing.assert_array_equal(np.asarray(norms), (X * X).sum(axis=1), err_msg=name)
        # what a map returns goes with the rows again
        (weighted,) = block_sum(lambda X, norms: (X.T @ norms,), rows, norms)
        np.testing.assert_allclose(weighted, X.T @ (X * X).sum(axis=1), rtol=1e-12)


def test_parts_of_the_rows(records, tmp_path):
    X, labels, _ = records
    once = np.random.default_rng(1).permutation(2000)[:900]
    twice = np.append(once, once[0])
    for name, given in forms(X, labels, tmp_path).items():
        for indices in (once, twice):
            rows, y = take_records(*align(*given), indices)
            total, count = block_sum(gram, rows, y)
            expected = gram(X[indices], labels[indices])
            np.testing.assert_allclose(total, expected[0], rtol=1e-12, err_msg=name)
            assert count == expected[1] and n_rows(rows) == len(indices)


def test_samples_are_spread_and_keep_labels(records, tmp_path):
    X, labels, _ = records
    numbered = np.column_stack([X[:, :3], np.arange(2000.0)])
    given = forms(numbered, np.arange(2000), tmp_path) | {"memory": (numbered, np.arange(2000))}
    for name, records in given.items():
        rows, y = sample(200, *align(*records))
        (low, high, count, apart) = block_sum(
            lambda X, y: (
                np.array((X[:, 3] < 700).sum()),
                np.array((X[:, 3] > 1300).sum()),
                np.array(len(y)),
                np.abs(X[:, 3] - y).sum(),
            ),
            rows,
            y,
        )
        assert 150 <= count <= 300 and low >= 40 and high >= 40 and apart == 0, name


REGRESSORS = [DPPoissonRegressor(target_bound=10.0), DPHuberRegressor(target_range=(-1, 1)), *RIDGES]


# each model in every second form, and each form with every second model
HALVES = slow_but([(model, i % 2) for i, model in enumerate([*CLASSIFIERS, *REGRESSORS])], 6, 7)


@pytest.mark.parametrize("model, half", HALVES, ids=repr)
def test_linear_models(records, tmp_path, model, half):
    X, labels, targets = records
    y = targets if isinstance(model, DPRidge) else labels
    expected = clone(model).set_params(random_state=0).fit(X, y)
    for name, given in [*forms(X, y, tmp_path).items()][half::2]:
        model = clone(model).set_params(random_state=0).fit(*given)
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-9, rtol=0, err_msg=name)
        if model.norm == "l1" and getattr(model, "perturbation", "") == "covariance":
            # sums of integers: not a bit depends on how rows are cut
            np.testing.assert_array_equal(model.gram_, expected.gram_)
        predicted = model.predict(given[0])
        lazy = "dask" in name
        assert isinstance(predicted, np.ndarray) != lazy
        np.testing.assert_allclose(np.asarray(predicted), expected.predict(X), atol=1e-9)
        assert model.score(*given) == pytest.approx(expected.score(X, y))
        weights = np.arange(2000.0)
        assert model.score(*given, weights) == pytest.approx(expected.score(X, y, weights))
        if hasattr(model, "predict_proba"):
            proba = model.predict_proba(given[0])
            assert isinstance(proba, np.ndarray) != lazy
            np.testing.assert_allclose(np.asarray(proba), expected.predict_proba(X), atol=1e-9)
        if "dataframe" in name:
            assert list(model.feature_names_in_) == ["a", "b", "c", "d"]


def test_densities(records, tmp_path):
    X, labels, _ = records
    model = DPHistogramDensity(bounds=(-1, 1), bin_width=0.5, random_state=0)
    expected = clone(model).fit(X)
    for name, (rows, _) in forms(X, labels, tmp_path).items():
        model.fit(rows)
        np.testing.assert_array_equal(model.density_, expected.density_, err_msg=name)
        assert model.score(rows) == pytest.approx(expected.score(X))
        assert isinstance(model.score_samples(rows), np.ndarray) != ("dask" in name)


def test_preprocessing_stays_lazy(records, tmp_path):
    X, labels, _ = records
    encoder = TableEncoder((-0.5, 0.5), expansion=3, n_fourier=2)
    for step in (BoundedScaler((-0.5, 0.5)), NormClipper(), DPBoundsScaler(random_state=0), encoder):
        expected = clone(step).fit_transform(X)
        for name, (rows, _) in forms(X, labels, tmp_path).items():
            given = clone(step).fit(rows).transform(rows)
            assert isinstance(given, np.ndarray) != ("dask" in name)
            np.testing.assert_allclose(np.asarray(given), expected, rtol=1e-12, err_msg=name)


def test_the_training_records_are_noticed(records, tmp_path):
    X, labels, _ = records
    for given in (chunked(X), mapped(X, tmp_path), forms(X, labels, tmp_path)["dask"][0]):
        model = DPLogisticRegression(classes=[0, 1]).fit(given, labels)
        with pytest.warns(dpselect.PrivacyLeakWarning, match="trained on"):
            model.score(given, labels)


def test_chunks_are_read_once_a_pass(records):
    X, _, targets = records
    read = Parts(X)
    DPRidge(target_range=(-1, 1)).fit(RowChunks(read, LENGTHS, 4), targets)
    assert read.read == [0, 1, 2, 3]
    rows, _ = take_records(as_lazy(RowChunks(read, LENGTHS, 4)), None, np.arange(750, 800))
    del read.read[:]
    block_sum(lambda X: (X.sum(),), rows)
    assert read.read == [1]
