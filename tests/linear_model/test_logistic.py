import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from dpselect import (
    DPLinearSVC,
    DPLogisticRegression,
    PrivacyLeakWarning,
    SeededNoiseWarning,
)
from dpselect.capabilities import PublicShape
from dpselect.metrics import HingeScore
from tests.trials import fitted, scales_of, solved


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4)) / 3
    y = np.where(X @ [3, -2, 1, 0] + rng.logistic(size=500) / 3 > 0, "ill", "well")
    return X, y


def fit(X, y, **parameters):
    parameters.setdefault("classes", np.unique(y))
    return DPLogisticRegression(**parameters).fit(X, y)


@pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning")
def seeded(X, y, **parameters):
    parameters.setdefault("classes", np.unique(y))
    with pytest.warns(SeededNoiseWarning):
        return DPLogisticRegression(random_state=0, **parameters).fit(X, y)


def test_without_noise_it_is_scikit_learns(data):
    X, y = data
    X = X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    alpha = 0.01
    model = fit(X, y, epsilon=float("inf"), alpha=alpha, fit_intercept=False)
    other = LogisticRegression(C=1 / (len(X) * alpha), fit_intercept=False, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-6)
    assert model.privacy_.epsilon == float("inf")


def test_one_vs_rest_without_noise():
    X, y = load_iris(return_X_y=True)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    model = fit(X, y, epsilon=float("inf"), alpha=0.01, fit_intercept=False)
    other = OneVsRestClassifier(
        LogisticRegression(C=1 / (len(X) * 0.01), fit_intercept=False, tol=1e-10)
    ).fit(X, y)
    np.testing.assert_allclose(
        model.coef_, np.vstack([e.coef_ for e in other.estimators_]), atol=1e-6
    )
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-6)
    assert (model.predict(X) == other.predict(X)).all()


@pytest.mark.parametrize("perturbation", ["objective", "output"])
def test_noise_vanishes_as_records_grow(perturbation):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 2)) / 3
    y = (X[:, 0] > 0).astype(int)
    private = fit(X, y, alpha=0.1, perturbation=perturbation)
    exact = fit(X, y, alpha=0.1, epsilon=float("inf"))
    np.testing.assert_allclose(private.coef_, exact.coef_, atol=0.02)


def test_output_perturbation_is_the_minimiser_plus_scaled_noise(data):
    X, y = data
    model = seeded(X, y, alpha=0.1, perturbation="output")
    exact = fit(X, y, alpha=0.1, epsilon=float("inf"))
    noise = model.standard_noise(4)[1, 0]
    scale = 2 * np.sqrt(2) / (500 * 0.1 * 1.0)
    np.testing.assert_allclose(model.coef_ - exact.coef_, scale * noise[None, :4], rtol=1e-5)
    np.testing.assert_allclose(model.intercept_ - exact.intercept_, scale * noise[4], rtol=1e-5)


def test_objective_perturbation_tilts_the_objective(data):
    X, y = data
    model = seeded(X, y, alpha=0.05, intercept_scaling=2.0)
    A = np.hstack([X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True)), np.full((500, 1), 2)])
    w = np.append(model.coef_, model.intercept_ / 2)
    s = np.where(y == "well", 1, -1)
    gradient = A.T @ (-s / (1 + np.exp(s * (A @ w)))) / 500 + 0.05 * w
    R = np.sqrt(1 + 4)
    expected = -2 * R / (500 * (1 - 1e-3)) * model.standard_noise(4)[0, 0]
    # the second noise vector, which hides the residual, moves the model by about 1e-4
    np.testing.assert_allclose(gradient, expected, atol=1e-4)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_classes_have_independent_noise(norm):
    noise = DPLogisticRegression(random_state=0, norm=norm).standard_noise(3, n_problems=5)
    assert noise.shape == (2, 5, 4)
    correlation = np.corrcoef(noise.reshape(10, 4))
    assert np.abs(correlation - np.eye(10)).max() < 0.9999
    assert len(np.unique(noise)) == noise.size


# --- rows that are bounded in l1 norm


L1 = [DPLogisticRegression, DPLinearSVC]


def test_without_noise_l1_rows_are_scikit_learns(data):
    X, y = data
    A = np.hstack([X / np.maximum(1, np.abs(X).sum(axis=1, keepdims=True)), np.full((500, 1), 0.5)])
    model = fit(X, y, epsilon=float("inf"), alpha=0.01, norm="l1", intercept_scaling=0.5)
    other = LogisticRegression(C=1 / 5, fit_intercept=False, tol=1e-10).fit(A, y)
    np.testing.assert_allclose(model.coef_, other.coef_[:, :4], atol=1e-6)
    np.testing.assert_allclose(model.intercept_, 0.5 * other.coef_[:, 4], atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(A), atol=1e-6)


def test_l1_noise_tilts_the_objective(data):
    X, y = data
    model = seeded(X, y, alpha=0.05, norm="l1", data_norm=0.8, intercept_scaling=2.0)
    A = np.hstack([X * np.minimum(1, 0.8 / np.abs(X).sum(axis=1, keepdims=True)), np.full((500, 1), 2)])
    w, s = np.append(model.coef_, model.intercept_ / 2), np.where(y == "well", 1, -1)
    gradient = A.T @ (-s / (1 + np.exp(s * (A @ w)))) / 500 + 0.05 * w
    # the l1 norm of a row, the constant included
    expected = -2 * 2.8 / (500 * (1 - 1e-3)) * model.standard_noise(4)[0, 0]
    np.testing.assert_allclose(gradient, expected, atol=1e-4)


def test_output_perturbation_of_l1_rows_has_the_noise_of_l2(data):
    one, other = (
        scales_of(DPLogisticRegression(alpha=0.1, perturbation="output", norm=norm), 500, 4)
        for norm in ("l1", "l2")
    )
    assert one == other


def test_the_noise_of_the_objective_suits_the_norm():
    for norm, variance, correlated in (("l1", 2.0, False), ("l2", 4.0, True)):
        noise = np.array([
            DPLogisticRegression(random_state=i, norm=norm).standard_noise(2) for i in range(4000)
        ])
        assert noise.shape == (4000, 2, 1, 3)
        # independent Laplace variables; a spherical Laplace vector of 3 has length Gamma(3)
        assert noise[:, 0].var() == pytest.approx(variance, rel=0.15)
        both = np.corrcoef(np.abs(noise[:, 0, 0, :2]).T)[0, 1]
        assert both > 0.12 if correlated else abs(both) < 0.09
        assert np.linalg.norm(noise[:, 1, 0], axis=1).mean() == pytest.approx(3.0, rel=0.06)


@pytest.mark.parametrize("kind", L1)
def test_l1_rows_are_clipped_in_training_and_prediction(data, kind):
    X, y = data
    X = X + 0.1  # no row is 0
    short = X / np.abs(X).sum(axis=1, keepdims=True)

    def model(rows):
        with pytest.warns(SeededNoiseWarning):
            return kind(alpha=0.1, norm="l1", classes=["ill", "well"], random_state=0).fit(rows, y)

    for scale in (1e6, 1e200):
        np.testing.assert_allclose(model(scale * X).coef_, model(short).coef_, rtol=1e-6)
        np.testing.assert_allclose(
            model(X).decision_function(scale * X), model(X).decision_function(short), rtol=1e-9
        )
    np.testing.assert_allclose(model(sparse.csr_array(X)).coef_, model(X).coef_, rtol=1e-9)
    # rows of l1 norm 1 are not changed, though their l2 norm is less
    unbounded = clone(model(short)).set_params(data_norm=1.0 + 1e-9)
    with pytest.warns(SeededNoiseWarning):
        np.testing.assert_allclose(unbounded.fit(short, y).coef_, model(short).coef_, rtol=1e-5)


@pytest.mark.parametrize("perturbation", ["objective", "output"])
@pytest.mark.parametrize("kind", L1)
def test_no_neighbour_moves_the_score_beyond_the_certificate_of_l1_rows(kind, perturbation):
    rng, score, largest = np.random.default_rng(0), HingeScore(), 0.0
    for _ in range(100):
        n = int(rng.integers(1, 8))
        model = kind(
            epsilon=10 ** rng.uniform(-1, 2), alpha=10 ** rng.uniform(-3, 1), norm="l1", classes=[0, 1],
            perturbation=perturbation, random_state=int(rng.integers(1000)),
            fit_intercept=bool(rng.integers(2)),
        )
        X, y = np.eye(2)[rng.integers(2, size=n)] * rng.choice([-9, 9], (n, 1)), rng.integers(2, size=n)
        other = X.copy(), y.copy()
        other[0][0], other[1][0] = rng.choice([-1, 1]) * X[0][::rng.choice([-1, 1])], rng.integers(2)
        V = np.eye(2) * 9, rng.integers(2, size=2)
        scores = [score(fitted(clone(model), *T), *V) for T in ((X, y), other)]
        bound = model.stability_certificate(score, n, 2).training
        largest = max(largest, abs(scores[0] - scores[1]) / bound)
    assert 0.1 < largest <= 1 + 1e-6


def test_l1_certificate_for_all_noise_but_a_share():
    model = DPLogisticRegression(epsilon=0.1, alpha=0.01, norm="l1", random_state=0)
    spans = [
        clone(model).set_params(random_state=i).stability_certificate(HingeScore(), 200, 4).span
        for i in range(300)
    ]
    most = model.stability_certificate(HingeScore(), 200, 4, failure_probability=0.2).span
    assert 0.05 < np.mean(np.array(spans) > most) + 0.05 < 0.3
    assert most < 1.5 * np.max(spans)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("perturbation, tightness", [("objective", 1.25), ("output", 6.0)])
def test_excess_bound(norm, perturbation, tightness):
    """On rows of 0 the noise of the objective meets nothing but the penalty: the bound is attained."""
    n, d, runs = 2000, 3, 500
    model = DPLogisticRegression(
        1.0, alpha=0.1, perturbation=perturbation, norm=norm, fit_intercept=False, classes=[0, 1],
        tol=1e-12,
    )
    form, rng = model.accuracy_form(), np.random.default_rng(0)
    y = rng.integers(2, size=n)
    hard = np.zeros((n, d)) if perturbation == "objective" else np.eye(d)[np.zeros(n, dtype=int)]
    dense = rng.normal(size=(n, d))
    dense /= np.linalg.norm(dense, ord=int(norm[1]), axis=1, keepdims=True)
    for X in (hard, dense):
        models = [clone(model).set_params(random_state=i) for i in range(runs)]
        W = solved(models, X, y)[0, :, 0]
        exact = clone(model).set_params(epsilon=float("inf")).fit(X, y).coef_

        def risks(W, X=X):
            margins = np.where(y == 1, 1, -1)[:, None] * (X @ W.T)
            return np.logaddexp(0, -margins).mean(axis=0) + 0.05 * (W**2).sum(axis=1)

        found = risks(W) - risks(exact)
        for p in (0.3, 0.05):
            bound = form.excess_bound(PublicShape(n, d), 1.0, failure_probability=p)
            assert (found > bound).mean() < p + 6 * np.sqrt(p / runs)
            assert X is not hard or bound < tightness * np.quantile(found, 1 - p)
        assert found.mean() < 1.2 * form.excess_bound(PublicShape(n, d), 1.0)


def test_same_seed_same_noise_on_other_data(data):
    X, y = data
    one = DPLogisticRegression(random_state=5)
    other = DPLogisticRegression(random_state=5, epsilon=3.0)
    assert (one.standard_noise(4) == other.standard_noise(4)).all()
    assert (seeded(X, y).coef_ == seeded(X, y).coef_).all()
    assert (fit(X, y).coef_ != fit(X, y).coef_).all()


def test_privacy_statement(data):
    X, y = data
    loss = fit(X, y, epsilon=0.7).privacy_
    assert (loss.epsilon, loss.delta, loss.kind) == (0.7, 0.0, "differential privacy")
    assert loss.adjacency == "replace one record" and not loss.seeded
    assert seeded(X, y).privacy_.seeded


def test_containers_give_the_same_model(data, tmp_path):
    import pandas as pd
    import polars as pl

    X, y = data
    expected = seeded(X, y).coef_
    np.save(tmp_path / "X.npy", X)
    names = list("abcd")
    for rows in (
        X.astype(">f8"), np.asfortranarray(X), sparse.csr_array(X), sparse.coo_array(X),
        np.load(tmp_path / "X.npy", mmap_mode="r"), X.tolist(), pd.DataFrame(X, columns=names),
        pl.DataFrame(X, schema=names),
    ):
        np.testing.assert_allclose(seeded(rows, y).coef_, expected, rtol=1e-9)
    assert list(seeded(pd.DataFrame(X, columns=names), y).feature_names_in_) == names


def test_long_rows_are_clipped_in_training_and_prediction(data):
    X, y = data
    model = seeded(X, y)
    long_rows = 1e6 * X
    clipped = X / np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose(
        model.decision_function(long_rows), model.decision_function(clipped), rtol=1e-9
    )
    np.testing.assert_allclose(seeded(long_rows, y).coef_, seeded(clipped, y).coef_, rtol=1e-6)


def test_n_jobs_does_not_change_the_model(data, monkeypatch):
    from dpselect.rows import cutting

    monkeypatch.setattr(cutting, "BLOCK_ELEMENTS", 256)
    X, y = data
    assert (seeded(X, y).coef_ == seeded(X, y, n_jobs=2).coef_).all()


def test_a_data_set_that_lacks_a_class_is_fitted(data):
    X, y = data
    model = fit(X, np.full(500, "ill"), classes=["well", "ill"])
    assert list(model.classes_) == ["ill", "well"]
    assert model.score(X.copy(), np.full(500, "ill")) > 0.9


def test_learned_labels_warn(data):
    X, y = data
    with pytest.warns(PrivacyLeakWarning, match="classes"):
        DPLogisticRegression().fit(X, y)


def test_predict_log_proba(data):
    X, y = data
    for labels in (y, np.digitize(X[:, 0], [-0.2, 0.2])):
        model = fit(X, labels)
        np.testing.assert_allclose(
            model.predict_log_proba(X), np.log(model.predict_proba(X)), atol=1e-12
        )
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


BAD = [
    ({"epsilon": 0}, ValueError, "epsilon"),
    ({"epsilon": -1.0}, ValueError, "epsilon"),
    ({"epsilon": float("nan")}, ValueError, "epsilon"),
    ({"epsilon": "1"}, TypeError, "epsilon"),
    ({"epsilon": 1e-300}, ValueError, "epsilon"),
    ({"alpha": 0}, ValueError, "alpha"),
    ({"alpha": -1}, ValueError, "alpha"),
    ({"alpha": "best"}, TypeError, "alpha"),
    ({"data_norm": 0}, ValueError, "data_norm"),
    ({"data_norm": float("inf")}, ValueError, "data_norm"),
    ({"data_norm": 1e-200}, ValueError, "data_norm.*squares"),
    ({"intercept_scaling": 0}, ValueError, "intercept_scaling"),
    ({"perturbation": "gradient"}, ValueError, "objective"),
    ({"norm": "max"}, ValueError, "norm"),
    ({"tol": 1e-3}, ValueError, "tol"),
    ({"max_iter": 1.5}, TypeError, "max_iter"),
    ({"classes": ["ill"]}, ValueError, "classes"),
    ({"classes": ["ill", "ill"]}, ValueError, "classes"),
        ({"random_state": "x"}, TypeError, "random_state"),
]


@pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning")
@pytest.mark.parametrize("parameters, error, name", BAD, ids=lambda value: str(value)[:40])
def test_bad_parameters(data, parameters, error, name):
    X, y = data
    model = DPLogisticRegression(**{"classes": ["ill", "well"], **parameters})
    with pytest.raises(error, match=name) as caught:
        model.fit(X, y)
    assert not [a for a in vars(model) if a.endswith("_")], "half-fitted, or data was touched"
    assert str(caught.value).rstrip(".").count(". ") == 0, "one sentence"


def spoilt(X, value):
    X = X.copy()
    X[3, 1] = value
    return X


@pytest.mark.parametrize(
    "change, match",
    [
        (lambda X, y: (spoilt(X, np.nan), y), "NaN"),
        (lambda X, y: (spoilt(X, np.inf), y), "infinity"),
        (lambda X, y: (np.where(X > 0, "secret text", X), y), "not a number"),
        (lambda X, y: (X[:-1], y), "inconsistent numbers of samples"),
        (lambda X, y: (X.ravel(), y), "2D array"),
        (lambda X, y: (X, y[:, None].repeat(2, axis=1)), "1d array"),
        (lambda X, y: (X, np.full(len(y), "secret label")), "classes"),
        (lambda X, y: (X[:0], y[:0]), "0 sample"),
    ],
)
def test_bad_data(data, change, match):
    model = DPLogisticRegression(classes=["ill", "well"])
    with pytest.raises(ValueError, match=match) as caught:
        model.fit(*change(*data))
    assert "secret" not in str(caught.value) and caught.value.__context__ is None
    assert not [a for a in vars(model) if a.endswith("_") and not a.startswith("n_features")]


@pytest.mark.filterwarnings("ignore::dpselect.PrivacyLeakWarning")
def test_one_class_without_classes(data):
    with pytest.raises(ValueError, match="only one class.*classes=") as caught:
        DPLogisticRegression().fit(data[0], np.full(500, "secret label"))
    assert "secret" not in str(caught.value)


def test_sample_weight_is_refused(data):
    with pytest.raises(TypeError, match="sample_weight.*leave it out"):
        DPLogisticRegression(classes=["ill", "well"]).fit(*data, sample_weight=np.ones(500))


def test_extreme_parameters_stay_finite(data):
    X, y = data
    for parameters in (
        {"epsilon": 1e-9}, {"epsilon": 1e9}, {"alpha": 1e-15}, {"alpha": 1e15},
        {"data_norm": 1e-50}, {"data_norm": 1e50}, {"alpha": 1e-15, "epsilon": float("inf")},
    ):
        for perturbation in ("objective", "output"):
            model = fit(X, y, perturbation=perturbation, **parameters)
            assert np.isfinite(model.coef_).all(), parameters


def test_noise_beyond_floating_point_is_refused(data):
    with pytest.raises(ValueError, match="alpha=1e-320.*beyond the range"):
        fit(*data, alpha=1e-320, perturbation="output")
