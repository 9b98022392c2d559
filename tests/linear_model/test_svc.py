import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import make_circles
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from dpselect import DPLinearSVC, StabilityGridSearchCV
from dpselect.metrics import RampScore
from dpselect.preprocessing import NormClipper


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)) / 3
    return X, np.where(X[:, 0] + rng.normal(size=400) / 5 > 0, 1, 0)


def huber_hinge(u, h):
    parabola = (1 + h - u) ** 2 / (4 * h)
    return np.where(u > 1 + h, 0.0, np.where(u < 1 - h, 1 - u, parabola))


def test_without_noise_it_minimises_the_huber_hinge(data):
    X, y = data
    A = np.hstack([X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True)), np.ones((400, 1))])
    sign = 2 * y - 1
    for h in (0.1, 0.5):
        model = DPLinearSVC(float("inf"), alpha=0.05, huber_width=h, classes=[0, 1]).fit(X, y)
        w = np.append(model.coef_, model.intercept_)

        def J(w, h=h):
            return huber_hinge(sign * (A @ w), h).mean() + 0.025 * w @ w

        best = minimize(J, np.zeros(4), method="BFGS", options={"gtol": 1e-10})
        np.testing.assert_allclose(w, best.x, atol=1e-4)
        assert J(w) <= best.fun + 1e-12


def test_a_narrow_hinge_is_scikit_learns(data):
    X, y = data
    X = X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    model = DPLinearSVC(
        float("inf"), alpha=0.05, huber_width=1e-4, fit_intercept=False, classes=[0, 1]
    ).fit(X, y)
    other = LinearSVC(
        C=1 / (400 * 0.05), loss="hinge", fit_intercept=False, tol=1e-8, max_iter=200_000
    ).fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=2e-3)


def test_search_scores_it_by_the_ramp(data):
    search = StabilityGridSearchCV(DPLinearSVC(classes=[0, 1]), {"alpha": [0.1, 1.0]}).fit(*data)
    assert search.scorer_ == RampScore() and search.privacy_.epsilon == 1.0


def test_kernel_method_of_random_features():
    """Chaudhuri, Monteleoni and Sarwate 2011, section 5, as a Pipeline."""
    X, y = make_circles(20_000, noise=0.05, factor=0.4, random_state=0)
    kernel = make_pipeline(
        RBFSampler(gamma=2.0, n_components=30),
        NormClipper(bound=2**0.5),
        DPLinearSVC(data_norm=2**0.5, classes=[0, 1]),
    )
    search = StabilityGridSearchCV(
        kernel, {"rbfsampler__gamma": [0.01, 2.0], "dplinearsvc__alpha": [0.003, 0.03]}, epsilon=40.0
    ).fit(X, y)
    assert search.privacy_.epsilon == 40.0
    assert np.mean(search.predict(X) == y) > 0.9
    linear = DPLinearSVC(40.0, classes=[0, 1]).fit(X, y)
    assert linear.score(X.copy(), y) < 0.7


@pytest.mark.parametrize("width", [0, -1.0, float("inf"), "wide"])
def test_huber_width(data, width):
    with pytest.raises((ValueError, TypeError), match="huber_width"):
        DPLinearSVC(huber_width=width, classes=[0, 1]).fit(*data)
