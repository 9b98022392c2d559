import math
import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.stats import norm as normal
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

from dpselect import CertificateError, SeededNoiseWarning
from dpselect.accounting.gaussian import gaussian_mu
from dpselect.base.estimator import Trial
from dpselect.linear_model.ridge import DPRidge
from dpselect.linear_model.ridge.ridge_noise import statistic_noise
from dpselect.linear_model.ridge.split_scores import split_coefficients
from dpselect.metrics import BrierScore, ClippedSquaredErrorScore
from dpselect.noise import root_stream
from dpselect.records.public_shape import PublicShape
from dpselect.rows import Parts
from tests.marks import slow_but

INF = float("inf")
KINDS = [
    {"norm": "l1"},
    {"norm": "l2"},
    {"norm": "l2", "delta": 1e-6},
    {"perturbation": "output"},
    {"perturbation": "output", "norm": "l2"},
    {"perturbation": "objective"},
    {"perturbation": "objective", "norm": "l2"},
]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4)) / 3
    y = X @ [1.0, -0.5, 0.2, 0.0] + 0.2 + rng.normal(size=500) / 3
    return X, y


def seeded(X, y, **parameters):
    with pytest.warns(SeededNoiseWarning):
        return DPRidge(random_state=0, **{"target_range": (-1, 1), **parameters}).fit(X, y)


def clipped(X, y, norm="l1", R=1.0, Y=1.0):
    size = np.linalg.norm(X, ord=int(norm[1]), axis=1, keepdims=True)
    return X * np.minimum(1, R / size), np.clip(y, -Y, Y)


@pytest.mark.parametrize("perturbation", ["covariance", "objective", "output"])
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_noise_it_is_scikit_learns(data, perturbation, norm, fit_intercept):
    model = DPRidge(
        INF,
        alpha=0.02,
        perturbation=perturbation,
        norm=norm,
        data_norm=0.8,
        target_range=(-0.9, 0.9),
        fit_intercept=fit_intercept,
        data_norm_l1=0.8 if norm == "l1" else None,
    ).fit(*data)
    X, y = clipped(*data, norm, 0.8, 0.9)
    A = np.hstack([X, np.ones((500, 1))]) if fit_intercept else X
    other = Ridge(alpha=500 * 0.02, fit_intercept=False).fit(A, y)
    np.testing.assert_allclose(model.coef_, other.coef_[:4], atol=1e-10)
    np.testing.assert_allclose(model.predict(data[0]), other.predict(A), atol=1e-10)
    assert isinstance(model.intercept_, float) and model.privacy_.epsilon == INF
    if perturbation == "covariance":
        np.testing.assert_allclose(model.gram_, A.T @ A, atol=1e-10)
        np.testing.assert_allclose(model.moment_, A.T @ y, atol=1e-10)


def test_coef_bound_gives_the_constrained_minimiser(data):
    X, y = clipped(*data)
    A = np.hstack([X, np.ones((500, 1))])

    def objective(theta):
        return ((y - A @ theta) ** 2).mean() / 2 + 0.01 / 2 * theta @ theta

    best = minimize(  # of rows that are short in l1 norm
        objective,
        np.zeros(5),
        method="SLSQP",
        options={"ftol": 1e-14},
        constraints={"type": "ineq", "fun": lambda theta: 0.3**2 - theta @ theta},
    ).x
    for perturbation in ("covariance", "objective", "output"):
        model = DPRidge(
            INF, coef_bound=0.3, perturbation=perturbation, target_range=(-1, 1), data_norm_l1=1.0
        ).fit(*data)
        np.testing.assert_allclose(np.append(model.coef_, model.intercept_), best, atol=1e-5)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1])
def test_gaussian_noise_spends_exactly_delta(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    spent = normal.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * normal.cdf(-mu / 2 - epsilon / mu)
    assert spent == pytest.approx(delta, rel=1e-3)
    # mu grows with both
    assert gaussian_mu(epsilon * 1.01, delta) > mu and gaussian_mu(epsilon, delta * 1.01) > mu


@pytest.mark.slow
def test_spread_is_the_standard_deviation():
    for parameters in KINDS[:3]:
        draws = np.array(
            [
                DPRidge(0.5, random_state=i, target_range=(-1, 1), **parameters).standard_noise(3)
                for i in range(4000)
            ]
        )
        noise = statistic_noise(3, fit_intercept=True, epsilon=0.5, **{"delta": 0.0, **parameters})
        scale = 1.0 if parameters["norm"] == "l1" else noise.off_diagonal
        assert draws[:, 1].std() * scale == pytest.approx(noise.spread, rel=0.08)


def test_objective_perturbation_regularises_more_where_records_are_few(data):
    X, y = data[0][:20], data[1][:20]
    model = seeded(X, y, epsilon=0.1, alpha=1e-4, perturbation="objective", norm="l2")
    s = model.calibration(PublicShape(20, 4)).scales
    assert s.mu > 50 * 1e-4
    # never less for the noise than half of epsilon
    assert s.linear_scale <= 2.01 * model.problem().gradient_change() / (20 * 0.0995)
    exact = DPRidge(INF, alpha=1e-4, perturbation="objective", target_range=(-1, 1))
    assert exact.calibration(PublicShape(20, 4)).mu == 1e-4


@pytest.mark.parametrize("parameters", KINDS, ids=str)
def test_the_model_stays_in_the_ball(data, parameters):
    for _ in range(5):
        model = DPRidge(epsilon=0.01, alpha=0.1, coef_bound=0.8, target_range=(-1, 1), **parameters).fit(
            *data
        )
        theta = np.append(model.coef_, model.intercept_)
        assert np.linalg.norm(theta) <= 0.8 * (1 + 1e-12)


@pytest.mark.parametrize("parameters", KINDS[:3], ids=str)
def test_post_processing_equals_a_fit(data, parameters):
    model = seeded(*data, epsilon=0.3, **parameters)
    assert model.post_processing_params == ("alpha",)
    for alpha in (1e-4, 0.03, 2.0):
        other = model.post_process(alpha=alpha)
        refit = seeded(*data, epsilon=0.3, alpha=alpha, **parameters)
        np.testing.assert_array_equal(other.coef_, refit.coef_)
        assert other.intercept_ == refit.intercept_ and other.alpha == alpha
        assert other.privacy_ == refit.privacy_ == model.privacy_
        assert other.gram_ is model.gram_ and other.n_features_in_ == 4
    assert model.alpha == 0.01
    restored = pickle.loads(pickle.dumps(model))
    assert (restored.post_process(alpha=0.5).coef_ == model.post_process(alpha=0.5).coef_).all()


@pytest.mark.parametrize("d", [40, 300])
@pytest.mark.parametrize("parameters", [{"norm": "l2"}, {"norm": "l2", "fit_intercept": False}])
def test_a_file_has_the_sums_once(d, parameters):
    """What follows from them is made again where it is needed, and is the same."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, d)) / d**0.5
    model = seeded(X, X[:, 0], epsilon=30.0, **parameters)
    restored = pickle.loads(pickle.dumps(model))
    assert len(pickle.dumps(model)) < 1.1 * model.gram_.nbytes + 4000
    alone = restored.post_process(alpha=0.3)
    for alpha in (0.3, 1e-3):
        found = restored.post_process(alpha=alpha).coef_
        assert (found == model.post_process(alpha=alpha).coef_).all()
    assert (pickle.loads(pickle.dumps(alone)).post_process(alpha=1e-3).coef_ == found).all()


def test_post_processing_is_refused_where_it_is_not_free(data):
    model = DPRidge(target_range=(-1, 1)).fit(*data)
    with pytest.raises(ValueError, match="epsilon cannot change"):
        model.post_process(epsilon=2.0)
    with pytest.raises(ValueError, match="alpha=-1"):
        model.post_process(alpha=-1)
    for perturbation in ("objective", "output"):
        other = DPRidge(perturbation=perturbation, target_range=(-1, 1)).fit(*data)
        assert other.post_processing_params == ()
        with pytest.raises(ValueError, match=f"alpha cannot change.*{perturbation}"):
            other.post_process(alpha=0.1)
    with pytest.raises(ValueError, match="not fitted"):
        DPRidge(target_range=(-1, 1)).post_process(alpha=0.1)


def test_a_second_fit_leaves_nothing_of_the_first(data):
    model = DPRidge(target_range=(-1, 1)).fit(*data)
    model.set_params(perturbation="output").fit(*data)
    assert not hasattr(model, "gram_") and not hasattr(model, "moment_")
    model.set_params(perturbation="covariance")
    with pytest.raises(ValueError, match="alpha cannot change"):
        model.post_process(alpha=0.1)


def test_both_triangles_carry_one_value(data):
    # the product of a Fortran-ordered matrix may round them differently
    for rows in (data[0], np.asfortranarray(data[0]), sparse.csr_array(data[0])):
        model = DPRidge(target_range=(-1, 1)).fit(rows, data[1])
        assert (model.gram_ == model.gram_.T).all()


def test_reader_is_ridge_on_the_squared_noisy_matrix(data):
    model = seeded(*data, epsilon=5.0, alpha=0.05, norm="l1", data_norm_l1=1.0)
    noise = statistic_noise(4, fit_intercept=True, norm="l1", epsilon=5.0, delta=0.0)
    M, m = model.gram_ / 500 + 0.05 * np.eye(5), model.moment_ / 500
    assert np.linalg.eigvalsh(M).min() > 0
    rho = np.sqrt(5) * noise.spread / 500
    theta = np.linalg.solve(M @ M + rho**2 * np.eye(5), M @ m)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), theta, rtol=1e-9)


def test_units_scale_the_model(data):
    X, y = data
    for parameters in KINDS[:3]:
        one = seeded(X, y, fit_intercept=False, alpha=0.01, **parameters)
        other = seeded(
            1e30 * X,
            1e-20 * y,
            data_norm=1e30,
            target_range=(-1e-20, 1e-20),
            fit_intercept=False,
            alpha=1e58,
            **parameters,
        )
        np.testing.assert_allclose(1e50 * other.coef_, one.coef_, rtol=1e-7)


# so large that rounding of a sum is a step of the grid now and then
@pytest.mark.parametrize("perturbation, epsilon", [("output", 1e8), ("objective", 1e6)])
def test_a_record_outside_of_a_training_part_moves_its_model_within_the_certificate(
    perturbation, epsilon
):
    """Sums over parts are rounded as those over all records: a coefficient may move by one step."""
    rng, score, n, largest = np.random.default_rng(0), ClippedSquaredErrorScore(1.0), 400, 0.0
    for _ in range(40):
        X = rng.normal(size=(n, 4)) / 4
        y = X[:, 0] + rng.normal(size=n) / 10
        other = X.copy(), y.copy()
        # the last record, which the last split tests on
        other[0][-1], other[1][-1] = -X[-1], 1.0
        parts, thetas = Parts.from_splits(list(KFold(4).split(X)), X), []
        for records in ((X, y), other):
            model = DPRidge(
                epsilon,
                perturbation=perturbation,
                norm="l2",
                alpha=0.01,
                fit_intercept=False,
                random_state=1,
                target_range=(-1, 1),
            )
            trial = Trial(model, epsilon, model.random_state)
            coef, _ = split_coefficients(model.problem(), [trial], trial.records(*records), parts)
            thetas.append(coef[-1, 0])
        largest = max(largest, np.linalg.norm(thetas[0] - thetas[1]))
    residual = model.stability_certificate(score, 300, 4).residual
    # 2 sqrt(1) for the derivative of the score, and rows of norm 1
    assert 0 < 2 * largest <= residual < 1e-6


# --- the bound on the excess risk


def excesses(model, X, y, runs=1000):
    """The excess risks of many fits, from exact sums; rows and targets are within their bounds."""
    thetas = np.array([Trial(model, model.epsilon, i).fitted(X, y).coef_ for i in range(runs)])
    alpha = model.alpha
    best = np.linalg.solve(X.T @ X / len(X) + alpha * np.eye(X.shape[1]), X.T @ y / len(X))

    def risks(thetas):
        return ((X @ thetas.T - y[:, None]) ** 2).mean(axis=0) / 2 + alpha / 2 * (thetas**2).sum(axis=1)

    return risks(thetas) - risks(best[None])


@pytest.mark.parametrize(
    "norm, perturbation, tightness",
    slow_but(
        [
            ("l1", "objective", 1.25),
            ("l1", "output", 6.0),
            ("l2", "objective", 1.25),
            ("l2", "output", 6.0),
        ],
        0,
        3,
    ),
)
def test_excess_bound(norm, perturbation, tightness):
    """On rows of 0, the noise of the objective meets nothing but the penalty: the bound is attained."""
    n, d = 1000, 4
    model = DPRidge(
        2.0,
        alpha=0.1,
        perturbation=perturbation,
        norm=norm,
        fit_intercept=False,
        target_range=(-1, 1),
        data_norm_l1=1.0 if norm == "l1" else None,
    )
    form, rng = model.accuracy_form(), np.random.default_rng(0)
    dense = rng.normal(size=(n, d))
    dense /= np.linalg.norm(dense, ord=int(norm[1]), axis=1, keepdims=True)
    hard = np.zeros((n, d)) if perturbation == "objective" else np.eye(d)[np.zeros(n, dtype=int)]
    for X in (hard, dense):
        found = excesses(model, X, rng.choice([-1.0, 1.0], n))
        for p in (0.3, 0.02):
            # 1000 runs: the share has a standard deviation of sqrt(p (1 - p) / 1000)
            bound = form.excess_bound(PublicShape(n, d), 2.0, failure_probability=p)
            assert (found > bound).mean() < p + 6 * np.sqrt(p / 1000)
            if X is hard:
                assert bound < tightness * np.quantile(found, 1 - p)
        assert found.mean() < 1.15 * form.excess_bound(PublicShape(n, d), 2.0)


def test_excess_bound_on_a_ball_that_is_shorter_than_the_minimiser():
    """At the best point of the ball the risk still falls: noise that points inwards costs at once."""
    n = 5000
    model = DPRidge(
        2.0,
        alpha=0.01,
        perturbation="output",
        norm="l2",
        fit_intercept=False,
        coef_bound=0.2,
        target_range=(-1, 1),
    )
    thetas = np.array(
        [Trial(model, 2.0, i).fitted(np.ones((n, 1)), np.ones(n)).coef_[0] for i in range(200)]
    )
    found = (1 - thetas) ** 2 / 2 + 0.005 * thetas**2 - (0.8**2 / 2 + 0.005 * 0.2**2)
    for p in (0.3, 0.05):
        bound = model.accuracy_form().excess_bound(PublicShape(n, 1), 2.0, failure_probability=p)
        assert (found > bound).mean() < p + 6 * np.sqrt(p / 200)
        # (half of the noise points outwards, and is cut off)
        assert bound < 6 * np.quantile(found, 1 - p / 2)


def test_excess_bound_counts_the_added_regularisation():
    """With hardly any noise: the minimiser for mu in place of alpha, on rows that it hurts most."""
    n, alpha = 1300, 0.01
    model = DPRidge(
        0.1, alpha=alpha, perturbation="objective", norm="l2", fit_intercept=False, target_range=(-1, 1)
    )
    mu = model.calibration(PublicShape(n, 1)).mu
    assert 1.3 * alpha < mu < 2 * alpha
    x = np.sqrt(alpha)  # and y = 1: the minimiser is as long as it can be
    theta, best = x / (x**2 + mu), x / (x**2 + alpha)
    excess = (x**2 + alpha) / 2 * (theta - best) ** 2
    bound = model.accuracy_form().excess_bound(PublicShape(n, 1), 0.1, failure_probability=0.999)
    assert 0.2 * bound < excess < bound


def test_excess_bound_falls_with_epsilon_and_records():
    for perturbation in ("objective", "output"):
        for coef_bound in (None, 0.2):
            bounds = [
                DPRidge(
                    alpha=0.1, perturbation=perturbation, coef_bound=coef_bound, target_range=(-1, 1)
                )
                .accuracy_form()
                .excess_bound(PublicShape(n, 5), epsilon, failure_probability=p)
                for epsilon, n, p in ((0.1, 100, 0.1), (0.3, 100, 0.1), (0.3, 400, 0.1), (0.3, 400, 0.4))
            ]
            assert bounds == sorted(bounds, reverse=True) and bounds[-1] > 0
    with pytest.raises(CertificateError, match='covariance.*"objective" or "output"'):
        DPRidge(target_range=(-1, 1)).accuracy_form().excess_bound(PublicShape(100, 3), 1.0)


def test_pairs_without_certificate():
    score = ClippedSquaredErrorScore(1.0)
    with pytest.raises(CertificateError, match="covariance.*ClippedSquaredErrorScore.*post_process"):
        DPRidge(target_range=(-1, 1)).stability_certificate(score, 100, 3)
    with pytest.raises(CertificateError, match="BrierScore"):
        DPRidge(perturbation="output", target_range=(-1, 1)).stability_certificate(BrierScore(), 100, 3)


BAD = [
    ({"epsilon": 0}, ValueError, "epsilon"),
    ({"epsilon": float("nan")}, ValueError, "epsilon"),
    ({"epsilon": "1"}, TypeError, "epsilon"),
    ({"alpha": 0}, ValueError, "alpha"),
    ({"alpha": "auto"}, TypeError, "alpha"),
    ({"alpha": INF}, ValueError, "alpha"),
    ({"perturbation": "noise"}, ValueError, "covariance"),
    ({"norm": "max"}, ValueError, "norm"),
    ({"norm": "l2", "delta": 1.0}, ValueError, "delta"),
    ({"delta": -1e-6}, ValueError, "delta"),
    ({"norm": "l1", "delta": 1e-6}, ValueError, "delta.*l2"),
    ({"norm": "l2", "delta": 1e-6, "perturbation": "output"}, ValueError, "delta"),
    ({"data_norm": 0}, ValueError, "data_norm"),
    ({"data_norm": INF}, ValueError, "data_norm"),
    ({"data_norm": 1e-200}, ValueError, "data_norm"),
    ({"data_norm_l1": 0}, ValueError, "data_norm_l1"),
    ({"target_range": None}, ValueError, r"target_range.*None.*write target_range=\(low, high\)"),
    ({"target_range": (0, 0)}, ValueError, r"target_range\[1\]"),
    ({"target_range": (0, "1")}, TypeError, r"target_range\[1\]"),
    ({"coef_bound": 0}, ValueError, "coef_bound"),
    ({"coef_bound": INF}, ValueError, "coef_bound"),
    ({"random_state": "x"}, TypeError, "random_state"),
]


@pytest.mark.parametrize("parameters, error, name", BAD, ids=lambda value: str(value)[:40])
def test_bad_parameters(parameters, error, name):
    model = DPRidge(**{"target_range": (-1, 1), **parameters})
    with pytest.raises(error, match=name) as caught:
        model.fit(None, None)
    assert not [a for a in vars(model) if a.endswith("_")], "half-fitted, or data was touched"
    assert str(caught.value).rstrip(".").count(". ") == 0, "one sentence"


@pytest.mark.parametrize("parameters", KINDS, ids=str)
def test_extreme_parameters_stay_finite(data, parameters):
    for extreme in (
        {"epsilon": 1e-9},
        {"epsilon": 1e9},
        {"epsilon": 1e300},
        {"alpha": 1e-15},
        {"alpha": 1e15},
        {"data_norm": 1e-100},
        {"data_norm": 1e100},
        {"target_range": (-1e-100, 1e-100)},
        {"target_range": (-1e100, 1e100)},
        {"data_norm_l1": 1e-100},
        {"alpha": 1e-15, "epsilon": INF},
        {"coef_bound": 1e-100},
    ):
        model = DPRidge(**{"target_range": (-1, 1), **parameters, **extreme}).fit(*data)
        assert np.isfinite(model.coef_).all() and np.isfinite(model.predict(data[0])).all(), extreme
    one = DPRidge(**{"target_range": (-1, 1), **parameters}).fit(data[0][:1], data[1][:1])
    assert np.isfinite(one.coef_).all()


def test_noise_beyond_floating_point_is_refused(data):
    with pytest.raises(ValueError, match="beyond the range"):
        DPRidge(
            alpha=1e-100,
            perturbation="output",
            target_range=(-1e100, 1e100),
            data_norm=1e100,
        ).fit(*data)


def test_accuracy_on_dense_rows():
    """The non-private model explains 0.83; medians of runs that are far from their targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 20))
    X *= rng.random((20_000, 1)) ** (1 / 20) / np.linalg.norm(X, axis=1, keepdims=True)
    signal = X @ rng.normal(size=20)
    y = 0.1 + 0.3 * signal / signal.std() + 0.3 * np.sqrt(0.17 / 0.83) * rng.normal(size=20_000)

    def median(**parameters):
        return np.median(
            [
                DPRidge(alpha=0.001, target_range=(-1, 1), **parameters).fit(X, y).score(X.copy(), y)
                for _ in range(9)
            ]
        )

    l1_norm = math.sqrt(2 * 20 / math.pi)
    assert median(epsilon=0.5, norm="l1", data_norm_l1=l1_norm) > 0.6
    assert median(epsilon=1.0, norm="l1", data_norm_l1=l1_norm) > 0.74
    assert median(epsilon=0.5, norm="l2") > 0.6
    assert median(epsilon=1.0, norm="l2") > 0.74
    assert median(epsilon=0.5, norm="l2", delta=1e-6) > 0.8


def test_long_rows_are_clipped_before_they_are_multiplied():
    X = np.array([[0.5], [-0.5]] * 50)
    model = DPRidge(epsilon=INF, alpha=1e-4, target_range=(-1, 1), data_norm_l1=1.0).fit(X, X[:, 0])
    model.coef_ = np.array([50.0])
    assert model.predict([[1e308]]) == pytest.approx(model.predict([[1.0]]))


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_the_extra_regularisation_is_in_what_is_minimised(norm):
    """Where alpha is too weak for the proof, and the noise does not lead out of the ball."""
    n, X = 60, np.tile(np.eye(2), (30, 1))
    y = np.where(np.arange(n) % 2, 0.3, -0.7)
    model = DPRidge(
        8.0,
        alpha=1e-5,
        perturbation="objective",
        norm=norm,
        fit_intercept=False,
        random_state=root_stream(3),
        target_range=(-1, 1),
        data_norm_l1=1.0 if norm == "l1" else None,
    )
    s, unit = model.calibration(PublicShape(n, 2)).scales, model.standard_noise(2)
    model.fit(X, y)
    assert s.mu > 10 * model.alpha and np.linalg.norm(model.coef_) < 0.9 * model.problem().ball
    moment = X.T @ y / n - s.linear_scale * unit[0]
    expected = np.linalg.solve(X.T @ X / n + s.mu * np.eye(2), moment) + s.output_scale * unit[1]
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-6, atol=2 * s.step)
    # a hundred times more than that apart
    weaker = np.linalg.solve(X.T @ X / n + model.alpha * np.eye(2), moment)
    assert abs(weaker / expected - 1).max() > 1e-4
