import dataclasses

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from dpselect import DPLogisticRegression, SeededNoiseWarning
from dpselect.linear_model.losses import CappedLogisticLoss, LogisticLoss
from dpselect.noise import root_stream
from dpselect.records.public_shape import PublicShape
from tests.trials import scales_of, solved


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
    np.testing.assert_allclose(model.coef_, np.vstack([e.coef_ for e in other.estimators_]), atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-6)
    assert (model.predict(X) == other.predict(X)).all()


# --- a loss that is less steep


def log_density(loss, z, offset, scales, w):
    """Return the log density of a model of one column, of signed rows z, but for a constant."""
    margins = w * z[:, None] + offset  # a base rate, of records of one label
    gradient = (loss.derivative(margins.copy()) * z[:, None]).mean(axis=0) + scales.mu * w
    curvature = (loss.second_derivative(margins.copy()) * z[:, None] ** 2).mean(axis=0) + scales.mu
    return np.log(curvature) - np.abs(gradient) / scales.linear_scale


def largest_loss(loss, scales):
    w, rows = np.linspace(-20, 20, 4001), [-1.0, -0.5, 0.0, 0.5, 1.0]
    densities = np.array(
        [
            [
                [log_density(loss, np.array([z, other]), offset, scales, w) for z in rows]
                for other in rows
            ]
            for offset in (-30.0, -1.0, -0.4, 0.0)
        ]
    )
    return np.ptp(densities, axis=2).max()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("alpha", [1e-4, 100.0])
def test_the_law_of_a_less_steep_loss(epsilon, alpha):
    model = DPLogisticRegression(
        epsilon, alpha=alpha, max_derivative=0.6, fit_intercept=False, classes=[-1, 1]
    )
    scales, loss = scales_of(model, 2, 1), CappedLogisticLoss(0.6)
    assert 0.9 * epsilon < largest_loss(loss, scales) <= epsilon
    if alpha > 1:  # a loss that does not bend
        assert largest_loss(LogisticLoss(), scales) > 1.2 * epsilon
    else:  # noise that does not pay for curvature
        bare = dataclasses.replace(scales, linear_scale=2 * 0.6 / (2 * epsilon))
        assert largest_loss(loss, bare) > 1.1 * epsilon


def test_a_less_steep_loss_moves_no_further(monkeypatch):
    # all records are far on the wrong side, by the base rate
    model = DPLogisticRegression(
        alpha=1e3,
        max_derivative=0.6,
        base_rate=0.999,
        perturbation="output",
        intercept_scaling=0.1,
        classes=[0, 1],
        random_state=root_stream(0),
    )
    rows, labels = np.zeros((10, 1)), np.zeros(10, dtype=int)
    rows[0] = 1.0
    sensitivity = model.epsilon * scales_of(model, 10, 1).output_scale

    def moved():
        return float(abs(model.fit(rows, labels).coef_ - model.fit(-rows, labels).coef_).max())

    assert 0.98 * sensitivity < moved() <= sensitivity
    monkeypatch.setattr(DPLogisticRegression, "_loss", lambda self: LogisticLoss())  # it does not bend
    assert moved() > 1.5 * sensitivity


@pytest.mark.parametrize("max_derivative, share", [(0.6, 0.02), (0.6, 0.3), (0.6, 0.45), (0.75, 0.1)])
def test_a_less_steep_loss_predicts_rare_labels_at_their_share(max_derivative, share):
    X, y = np.zeros((200, 1)), (np.arange(200) < 200 * share).astype(int)
    model = DPLogisticRegression(np.inf, alpha=1e-9, max_derivative=max_derivative, classes=[0, 1])
    np.testing.assert_allclose(model.fit(X, 1 - y).predict_proba(X)[0, 0], share, rtol=1e-4)
    np.testing.assert_allclose(model.fit(X, y).predict_proba(X)[0, 1], share, rtol=1e-4)
    # the logistic function of w.x + b tells about L times the share
    expected = max_derivative * share / (1 - share) if share < 1 - max_derivative else share
    np.testing.assert_allclose(expit(model.intercept_), expected, rtol=1e-4)


@pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning")
def test_rare_labels_of_many_records():
    rng = np.random.default_rng(3)
    n, steep = 200_000, 0.6
    group = rng.integers(3, size=n)
    shares, X = np.array([0.01, 0.02, 0.2]), np.eye(3)
    y = (rng.random(n) < shares[group]).astype(int)
    model = DPLogisticRegression(100.0, alpha=1e-6, max_derivative=steep, classes=[0, 1], random_state=0)
    p = model.fit(X[group], y).predict_proba(X)[:, 1]
    error = 5.5 * np.sqrt(shares * (1 - shares) / np.bincount(group))
    assert (np.abs(p - shares) < error).all()
    twin = expit(X @ model.coef_[0] + model.intercept_)
    assert (np.abs(twin - shares) > 2 * error).all() and twin[1] == pytest.approx(0.0122, abs=0.001)
    # in the mean, as many as there are, if records count as the loss is steep on both sides
    z = (X @ model.coef_[0] + model.intercept_)[group]
    weight = np.minimum(expit(z), steep) + np.minimum(expit(-z), steep)
    assert abs(np.average(y - p[group], weights=weight)) < 1e-4


def test_predictions_and_rankings_are_those_of_w():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 3)) / 3
    for K in (2, 3):
        y = rng.integers(K, size=400)
        model = fit(X, y, epsilon=5.0, max_derivative=0.5, data_norm=10.0)
        z = X @ model.coef_.T + model.intercept_
        assert (model.predict(X) == (z[:, 0] > 0 if K == 2 else z.argmax(axis=1))).all()
        found = model.decision_function(X).reshape(400, -1)
        assert (found.argsort(axis=0) == z.argsort(axis=0)).all()
        p = model.predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
        np.testing.assert_allclose(np.log(p), model.predict_log_proba(X), rtol=1e-9)


@pytest.mark.parametrize("max_derivative", [0.4, 1.1, 0, True, "steep", float("nan")])
def test_largest_derivatives(data, max_derivative):
    with pytest.raises((ValueError, TypeError), match="max_derivative"):
        fit(*data, max_derivative=max_derivative)
    assert np.array_equal(*(seeded(*data, max_derivative=same).coef_ for same in (None, 1.0)))


# --- rows that are bounded in two norms


BOTH = {"data_norm": 0.5, "data_norm_l1": 0.8}


def in_both(X, s):
    """Return the rows, scaled down to both norms, with the constant."""
    factor = np.minimum(0.5 / np.linalg.norm(X, axis=1), 0.8 / np.abs(X).sum(axis=1))
    return np.column_stack([X * np.minimum(1, factor)[:, None], np.full(len(X), s)])


def test_without_noise_rows_in_two_norms_are_scikit_learns(data):
    X, y = data
    A = in_both(X, 0.5)
    model = fit(X, y, epsilon=float("inf"), alpha=0.01, intercept_scaling=0.5, **BOTH)
    other = LogisticRegression(C=1 / 5, fit_intercept=False, tol=1e-10).fit(A, y)
    np.testing.assert_allclose(model.coef_, other.coef_[:, :4], atol=1e-6)
    np.testing.assert_allclose(model.intercept_, 0.5 * other.coef_[:, 4], atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(A), atol=1e-6)


def test_all_but_the_noise_of_the_objective_goes_by_the_l2_norm():
    def scales(norm, perturbation):
        model = DPLogisticRegression(alpha=1e-5, perturbation=perturbation, norm=norm, **BOTH)
        return scales_of(model, 500, 4)

    assert scales("l1", "output") == scales("l2", "output")
    one, other = scales("l1", "objective"), scales("l2", "objective")
    assert one.mu == other.mu > 1e-5
    assert one.linear_scale / other.linear_scale == pytest.approx(1.8 / np.hypot(0.5, 1))


def test_auto_is_the_shorter_noise_by_public_numbers():
    for parameters, p, expected in (
        ({}, 4, "l2"),
        ({}, 1000, "l2"),
        # a constant that outweighs the rows
        ({"data_norm": 0.01}, 100, "l1"),
        ({"data_norm": 0.01, "fit_intercept": False}, 100, "l2"),
        # sqrt(3) and 3 of three categories: 2 * 101 against 4 * sqrt(2 * 101) and fewer
        ({"data_norm": 3**0.5, "data_norm_l1": 3}, 100, "l1"),
        ({"data_norm": 3**0.5, "data_norm_l1": 3}, 5, "l2"),
        ({"data_norm": 3**0.5, "data_norm_l1": 3}, 8, "l1"),
        # a bound that no row can exceed
        ({"data_norm_l1": 1e9}, 100, "l2"),
        ({"data_norm_l1": 0.5}, 1, "l2"),
        ({"data_norm_l1": 0.5, "fit_intercept": False}, 1, "l2"),
    ):
        model = DPLogisticRegression(random_state=0, **parameters)
        named = clone(model).set_params(norm=expected)
        noise, shape = model.calibration(PublicShape(100, p)), PublicShape(100, p)
        assert noise.law == expected
        assert (noise.scales, noise.alpha) == (
            named.calibration(shape).scales,
            named.calibration(shape).alpha,
        )
        np.testing.assert_array_equal(model.standard_noise(p), named.standard_noise(p))


@pytest.mark.parametrize("max_derivative, L", [("auto", 0.6), (None, 1.0), (0.75, 0.75)])
def test_the_public_alpha_is_that_of_the_l2_norm_and_the_noise(max_derivative, L):
    n, p, epsilon = 1000, 100, 2.0
    R, G = np.hypot(3**0.5, 1), 3 + 1
    model = DPLogisticRegression(
        epsilon, data_norm=3**0.5, data_norm_l1=3, max_derivative=max_derivative
    )
    alpha = model.calibration(PublicShape(n, p)).alpha
    length = G * np.sqrt(2 * (p + 1)) / R
    factor = (225 * length / (n * epsilon)) ** 0.5
    assert alpha == pytest.approx(L * factor * R**2 * length / (5 * n * epsilon))
    assert 1 < factor < 4.5
    model.set_params(epsilon=float("inf"))
    without = 1.0 if max_derivative == "auto" else L
    assert model.calibration(PublicShape(n, p)).alpha == pytest.approx(without * R**2 / (100 * n))


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("perturbation, tightness", [("objective", 1.25), ("output", 6.0)])
def test_excess_bound(norm, perturbation, tightness):
    """On rows of 0 the noise of the objective meets nothing but the penalty: the bound is attained."""
    n, d, runs = 2000, 3, 500
    model = DPLogisticRegression(
        1.0,
        alpha=0.1,
        perturbation=perturbation,
        norm=norm,
        fit_intercept=False,
        classes=[0, 1],
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
    ({"data_norm": 1e-200}, ValueError, "data_norm.*whose square has to be a number of float64"),
    ({"data_norm_l1": 0}, ValueError, "data_norm_l1"),
    ({"data_norm_l1": float("inf")}, ValueError, "data_norm_l1"),
    ({"data_norm_l1": "1"}, TypeError, "data_norm_l1"),
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


@pytest.mark.filterwarnings("ignore::dpselect.PrivacyLeakWarning")
def test_one_class_without_classes(data):
    with pytest.raises(ValueError, match="only one class.*classes=") as caught:
        DPLogisticRegression().fit(data[0], np.full(500, "secret label"))
    assert "secret" not in str(caught.value)


def test_extreme_parameters_stay_finite(data):
    X, y = data
    for parameters in (
        {"epsilon": 1e-9},
        {"epsilon": 1e9},
        {"alpha": 1e-15},
        {"alpha": 1e15},
        {"data_norm": 1e-50},
        {"data_norm": 1e50},
        {"alpha": 1e-15, "epsilon": float("inf")},
    ):
        for perturbation in ("objective", "output"):
            model = fit(X, y, perturbation=perturbation, **parameters)
            assert np.isfinite(model.coef_).all(), parameters


def test_noise_beyond_floating_point_is_refused(data):
    with pytest.raises(ValueError, match="alpha=1e-100.*beyond the range"):
        fit(*data, alpha=1e-100, data_norm=1e100, perturbation="output")
