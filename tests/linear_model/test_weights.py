"""Weights of classes and of records: what is minimised, how much noise that needs, what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from dpselect import (
    CertificateError,
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    RowChunks,
    StabilityGridSearchCV,
)
from dpselect.base.accuracy_form import NoiseLevels
from dpselect.base.estimator import Trial
from dpselect.linear_model.calibration import noise_epsilon
from dpselect.linear_model.losses import HuberHingeLoss, LogisticLoss, WeightedLoss
from dpselect.linear_model.weights import Weights
from dpselect.metrics import RampScore
from dpselect.noise import root_stream
from dpselect.records.public_shape import PublicShape
from dpselect.records.records import Weighted
from tests.trials import scales_of, shares_moved

INF = float("inf")
N = 300
RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, size=(N, 3))
CLASSES = np.digitize(X @ [1.0, -2.0, 0.5], [-0.4, 0.4])
LABELS = (CLASSES > 0).astype(int)
COUNTS = RNG.poisson(np.exp(X[:, 0]))
TIMES = RNG.integers(0, 4, N)
OF_CLASSES = {0: 0.5, 1: 4.0, 2: 1.5}

MODELS = {
    "logistic": (DPLogisticRegression(classes=[0, 1]), LABELS),
    "three classes": (DPLogisticRegression(classes=[0, 1, 2]), CLASSES),
    "svc": (DPLinearSVC(classes=[0, 1]), LABELS),
    "poisson": (DPPoissonRegressor(target_bound=10.0), COUNTS),
    "huber": (DPHuberRegressor(target_range=(-1, 1)), X[:, 0] - X[:, 2]),
}
KINDS = pytest.mark.parametrize("name", MODELS)


def model_and_targets(name, **params):
    model, y = MODELS[name]
    return clone(model).set_params(random_state=root_stream(0), **params), y


# ---- what is minimised


@KINDS
def test_a_record_of_weight_3_counts_as_three(name):
    model, y = model_and_targets(name, epsilon=INF, alpha=0.1, max_sample_weight=3.0)
    weighted = model.fit(X, y, sample_weight=TIMES).coef_
    # the mean is over all records, whatever they weigh
    model.set_params(alpha=0.1 * N / TIMES.sum(), max_sample_weight=None)
    repeated = model.fit(np.repeat(X, TIMES, axis=0), np.repeat(y, TIMES)).coef_
    assert weighted == pytest.approx(repeated, abs=1e-8)


def test_it_is_scikit_learn_s_logistic_regression():
    parameters = {"class_weight": {0: 0.5, 1: 4.0}, "fit_intercept": False}
    weight = RNG.uniform(0, 3, N)
    model, y = model_and_targets(
        "logistic", epsilon=INF, alpha=0.01, max_sample_weight=3.0, **parameters
    )
    exact = LogisticRegression(C=1 / (N * 0.01), tol=1e-10, max_iter=1000, **parameters)
    model.fit(X, y, sample_weight=weight)
    assert model.coef_ == pytest.approx(exact.fit(X, y, sample_weight=weight).coef_, abs=1e-6)


def test_a_record_has_the_weight_of_its_label_in_all_problems():
    model, y = model_and_targets(
        "three classes", epsilon=INF, alpha=0.01, fit_intercept=False, class_weight=OF_CLASSES
    )
    exact = LogisticRegression(C=1 / (N * 0.01), fit_intercept=False, tol=1e-10, max_iter=1000)
    one_vs_rest = [
        clone(exact).fit(X, y == k, sample_weight=np.vectorize(OF_CLASSES.get)(y)).coef_[0]
        for k in range(3)
    ]
    assert model.fit(X, y).coef_ == pytest.approx(np.array(one_vs_rest), abs=1e-6)


def test_it_is_scikit_learn_s_poisson_regression():
    weight = RNG.uniform(0, 3, N)
    model, y = model_and_targets(
        "poisson", epsilon=INF, alpha=0.1, max_sample_weight=3.0, fit_intercept=False
    )
    # which divides by the sum of the weights
    exact = PoissonRegressor(alpha=0.1 / weight.mean(), fit_intercept=False, tol=1e-9)
    exact.fit(X, y, sample_weight=weight)
    assert model.fit(X, y, sample_weight=weight).coef_ == pytest.approx(exact.coef_, abs=1e-6)


@KINDS
def test_weights_are_clipped(name):
    model, y = model_and_targets(name, max_sample_weight=2.0)
    weight = TIMES.astype(float)
    expected = model.fit(X, y, sample_weight=np.minimum(weight, 2.0)).coef_
    for large in (weight, np.where(weight > 2, 1e300, weight)):
        assert np.array_equal(model.fit(X, y, sample_weight=large).coef_, expected)
    # a record without a weight has 1, and no more than others may
    for most in (2.0, 0.5):
        model.set_params(max_sample_weight=most)
        ones = model.fit(X, y, sample_weight=np.ones(N)).coef_
        assert np.array_equal(model.fit(X, y).coef_, ones)


@KINDS
@pytest.mark.parametrize("perturbation", ["objective", "output"])
def test_only_ratios_of_weights_count(name, perturbation):
    """With "auto", what is released does not change with the unit of the weights."""
    model, y = model_and_targets(name, perturbation=perturbation)
    plain = model.fit(X, y).coef_
    for unit in (2.0**-20, 2.0**20):
        model.set_params(max_sample_weight=3 * unit)
        found = model.fit(X, y, sample_weight=np.full(N, 3 * unit)).coef_
        assert found == pytest.approx(plain, rel=1e-9)


@KINDS
def test_a_weight_of_1_costs_nothing(name):
    model, y = model_and_targets(name)
    plain = model.fit(X, y).coef_
    assert np.array_equal(model.set_params(max_sample_weight=1.0).fit(X, y).coef_, plain)


# ---- noise


@pytest.mark.parametrize("kind, W", [("classes", 8.0), ("records", 0.125)])
@pytest.mark.parametrize("K", [2, 3])
def test_output_perturbation_charges_what_one_record_moves(kind, W, K):
    model = DPLinearSVC(
        alpha=8.0 * W,
        fit_intercept=False,
        data_norm=0.8,
        classes=list(range(K)),
        epsilon=INF,
        perturbation="output",
    )
    model.set_params(
        **(
            {"class_weight": {0: W, 1: W / 4, 2: W / 4} if K == 3 else {0: W, 1: W / 4}}
            if kind == "classes"
            else {"max_sample_weight": W}
        )
    )
    rows, y = np.full((40, 1), 0.8), np.arange(40) % K
    other = rows.copy()
    other[0] = -0.8  # of label 0, which weighs most
    weight = () if kind == "classes" else (np.full(40, INF if W is None else 1e9),)
    moved = np.abs(model.fit(rows, y, *weight).coef_ - clone(model).fit(other, y, *weight).coef_)
    problems = 1 if K == 2 else K
    model.set_params(epsilon=float(problems))
    # short models: all margins lie where the hinge has derivative -1
    shape = PublicShape(40, 1, problems)
    assert model.calibration(shape).scales.output_scale == pytest.approx(moved.max(), rel=1e-4)


@pytest.mark.parametrize("loss", [LogisticLoss(), HuberHingeLoss(0.5)], ids=repr)
@pytest.mark.parametrize("kappa", [0.01, 0.7, 1.5])
def test_the_determinant_of_weighted_records(loss, kappa):
    """Theorem 3a by brute force, over weights and margins of both records in one dimension."""
    epsilon, W, u = 1.0, 5.0, np.linspace(-12, 12, 481)
    n, mu, R = 10, W / (10 * kappa), 1.0
    e = noise_epsilon(WeightedLoss(loss, W), n, R, mu, epsilon)
    weights = np.array([0.0, 0.1, 0.3, 0.6, 0.9, 1.0]) * W
    s = weights[:, None] * -loss.derivative(u)
    curved = weights[:, None] * loss.second_derivative(u)
    worst = e / (2 * W) * (s + s.max()) + np.log1p(curved * R**2 / (n * mu))
    assert 0 < e and worst.max() <= epsilon * (1 + 1e-12)
    # and nothing is given away: more noise than needed would be a loss, too
    assert worst.max() > 0.99 * epsilon
    # the broken twin forgets the weights in the curvature
    forgets = noise_epsilon(loss, n, R, mu, epsilon)
    broken = forgets / (2 * W) * (s + s.max()) + np.log1p(curved * R**2 / (n * mu))
    assert kappa < 1 or broken.max() > 1.1 * epsilon


class Forgets(DPLogisticRegression):
    """The broken twin: its noise and its bounds are those of weight 1."""

    def problem(self, epsilon=None):
        right = super().problem(epsilon)
        return replace(right, loss=right.loss.unweighted)


def test_noise_and_certificates_grow_with_the_largest_weight():
    shape = PublicShape(N, 3)
    for perturbation in ("objective", "output"):
        models = [
            kind(alpha=1.0, max_sample_weight=W, perturbation=perturbation, classes=[0, 1], epsilon=2.0)
            for kind, W in ((DPLogisticRegression, None), (DPLogisticRegression, 7.0), (Forgets, 7.0))
        ]
        one, seven, broken = (scales_of(model, N, 3) for model in models)
        for name in ("linear_scale", "output_scale", "tau"):
            assert getattr(seven, name) >= 7 * 0.999 * getattr(one, name)
            assert getattr(broken, name) == getattr(one, name)
        certificates = [
            model.calibration(shape).certificate(RampScore(-1e3, 1e3), failure_probability=1e-6)
            for model in models
        ]
        assert certificates[1].training > 6.9 * certificates[0].training


def pairs_of_records(K, W, n=20):
    """Neighbours that differ in a row, a label and a weight."""
    rng = np.random.default_rng(1)
    for i in range(30):
        rows, y = rng.normal(size=(n, 2)), rng.integers(0, K, n)
        weight = W * rng.integers(0, 2, n)
        if i < 6:
            rows[:], y[:], weight[:] = [1.0, 0.0], 0, W
        other, label, changed = rows.copy(), y.copy(), weight.copy()
        other[0], label[0] = -rows[0], (y[0] + i % 2) % K
        weight[0], changed[0] = ((W, W), (W, 0), (0, W))[i % 3]
        yield (rows, Weighted(y, weight)), (other, Weighted(label, changed))


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("kind", [DPLogisticRegression, Forgets])
def test_risks_move_as_far_as_stated(K, kind):
    W = 5.0
    model = kind(
        alpha=0.5,
        perturbation="output",
        fit_intercept=False,
        classes=list(range(K)),
        max_sample_weight=W,
    )
    form, problems = model.accuracy_form(), 1 if K == 2 else K
    right = clone(DPLogisticRegression(**model.get_params())).accuracy_form()
    bounds = form.bounds(PublicShape(20, 2, problems))
    directions = np.random.default_rng(0).normal(size=(40, 2))
    models = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    models = right.ball * models.repeat(problems, axis=0).reshape(-1, problems, 2)
    # all margins of one record are as small as can be
    models[0] = [right.ball, 0.0]
    models[0, 0, 0] *= 1 if K == 2 else -1
    levels, shares = NoiseLevels("fresh", 1.0, 2.0), []
    for pair in pairs_of_records(K, W):
        one, other = (form.reduction(*records, levels, root_stream(0)) for records in pair)
        shares.append(
            (
                np.abs(one.risks(models) - other.risks(models)).max() / bounds.risk,
                abs(one.minimum - other.minimum) / bounds.minimum,
            )
        )
    moved = np.max(shares, axis=0)
    if kind is Forgets:
        assert (moved > 1).all()
    else:
        assert (moved <= 1).all() and moved[0] > 0.99


def test_root_excesses_move_as_far_as_stated():
    model = DPPoissonRegressor(
        alpha=2.0, target_bound=5.0, perturbation="output", fit_intercept=False, max_sample_weight=3.0
    )
    form = model.accuracy_form()
    bounds = form.bounds(PublicShape(10, 2))
    directions = np.random.default_rng(0).normal(size=(30, 2))
    models = form.ball * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    rng, pairs = np.random.default_rng(1), []
    for i in range(20):
        rows, y, weight = 3 * rng.normal(size=(10, 2)), 5.0 * rng.integers(2, size=10), np.full(10, 3.0)
        new, t, other = rows.copy(), y.copy(), weight.copy()
        new[0], t[0], other[0] = -rows[0], 5 - y[0], 3.0 * (i % 2)
        pairs.append(((rows, Weighted(y, weight)), (new, Weighted(t, other))))
    moved = shares_moved(form, bounds, models, pairs, NoiseLevels("fresh", 1.0, 2.0))
    assert (moved <= 1).all() and (moved > 0.2).all()


def test_optimal_values_move_as_far_as_stated():
    n, W = 20, 5.0
    model = DPLogisticRegression(
        alpha=0.01, epsilon=3.0, fit_intercept=False, classes=[0, 1], max_sample_weight=W
    )
    bound, moved = model.risk_bound(n, 2, reach=2.0), []
    for pair in pairs_of_records(2, W, n):
        values = [
            DPLogisticRegression.optimal_values([Trial(model, 3.0)], *records, 2.0)[0]
            for records in pair
        ]
        moved.append(abs(values[0] - values[1]))
    assert 0.2 * bound.sensitivity < max(moved) <= bound.sensitivity


# ---- where records are


@pytest.mark.parametrize("name", ["three classes", "huber"])
def test_records_beyond_memory_are_weighted_alike(name, tmp_path):
    class_weight = {"class_weight": OF_CLASSES} if name == "three classes" else {}
    model, y = model_and_targets(name, max_sample_weight=2.5, **class_weight)
    weight = TIMES + 0.25
    expected = model.fit(X, y, sample_weight=weight).coef_
    mapped = np.memmap(tmp_path / "rows", dtype=X.dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    thirds = np.split(np.arange(N), 3)

    def chunks(values, width):
        return RowChunks(lambda i: values[thirds[i]], [N // 3] * 3, width)

    ways = [
        (mapped, y, weight),
        (mapped, y, weight.tolist()),
        (chunks(X, 3), chunks(y, 1), chunks(weight, 1)),
        (chunks(X, 3), y, weight),
    ]
    da = pytest.importorskip("dask.array")
    lazy = [da.from_array(part, chunks=(100, *part.shape[1:])) for part in (X, y, weight)]
    ways += [tuple(lazy), (lazy[0], y, weight)]
    for rows, labels, weights in ways:
        found = model.fit(rows, labels, sample_weight=weights).coef_
        assert found == pytest.approx(expected, rel=1e-9)


def test_long_and_sampled_tables_are_weighted():
    """A solver that starts on a sample of the rows knows their weights, too."""
    rng = np.random.default_rng(2)
    rows = rng.uniform(-0.5, 0.5, size=(6000, 3))
    y, weight = (rows @ [1.0, -2.0, 0.5] > 0).astype(int), rng.uniform(0, 3, 6000)
    model = DPLogisticRegression(
        INF, alpha=1e-3, classes=[0, 1], max_sample_weight=3.0, fit_intercept=False
    ).fit(rows, y, sample_weight=weight)
    exact = LogisticRegression(C=1 / 6, fit_intercept=False, tol=1e-10, max_iter=1000)
    exact.fit(rows, y, sample_weight=weight)
    assert model.coef_ == pytest.approx(exact.coef_, abs=1e-6)


# ---- what is refused


@pytest.mark.parametrize("value, said", [
    ("balanced", "counts the labels.*write a dict"), ([1.0, 2.0], "must be a dict"),
    ({0: -1.0}, "value of class_weight"), ({0: 0}, "value of class_weight"),
    ({1: "2"}, "value of class_weight"), ({1: float("nan")}, "value of class_weight"),
    ({1: INF}, "value of class_weight"), ({7: 2.0}, "not in classes"),
])  # fmt: skip
def test_class_weights_that_are_refused(value, said):
    model, y = model_and_targets("logistic", class_weight=value)
    with pytest.raises((TypeError, ValueError), match=said):
        model.fit(X, y)


@KINDS
def test_weights_need_a_bound(name):
    model, y = model_and_targets(name)
    with pytest.raises(ValueError, match="write max_sample_weight"):
        model.fit(X, y, sample_weight=np.ones(N))
    with pytest.raises(ValueError, match="max_sample_weight"):
        model.set_params(max_sample_weight=0.0).fit(X, y)


SECRET = 7.316452


@pytest.mark.parametrize("spoilt", [
    -SECRET, float("nan"), INF, -INF, "SECRET", None, SECRET + 1j,
])  # fmt: skip
@pytest.mark.parametrize("lazily", [False, True])
def test_bad_weights_are_refused_without_telling_which(spoilt, lazily):
    model, y = model_and_targets("logistic", max_sample_weight=1.0)
    weight = np.array([SECRET] * (N - 1) + [spoilt])
    rows = RowChunks(lambda i: X, [N], 3) if lazily else X
    with pytest.raises((TypeError, ValueError), match="sample_weight") as caught:
        model.fit(rows, y, sample_weight=weight)
    assert "7.31" not in str(caught.value) and "SECRET" not in str(caught.value)


@pytest.mark.parametrize("weight", [np.ones(N - 1), np.ones((N, 2)), 1.0], ids=["few", "wide", "one"])
@pytest.mark.parametrize("lazily", [False, True])
def test_weights_of_another_number_are_refused(weight, lazily):
    model, y = model_and_targets("logistic", max_sample_weight=1.0)
    rows = RowChunks(lambda i: X, [N], 3) if lazily else X
    with pytest.raises((TypeError, ValueError)):
        model.fit(rows, y, sample_weight=weight)


def test_labels_without_a_weight_have_1():
    for classes, W in (([0, 1], 2.0), (None, 2.0), (["0", "1"], 1.0)):
        assert Weights.of({0: 0.5, 1: 2.0} if W == 2 else {"0": 0.5}, None, classes).largest == W
    assert Weights.of({0: 0.5, 1: 0.25}, 3.0, (0, 1)).largest == 1.5
    assert Weights.of({0: 0.5, 1: 0.25}, 3.0, None).largest == 3.0
    assert Weights.of(None, None, (0, 1)) is None


@pytest.mark.parametrize(
    "model, grid, instead",
    [
        (
            DPRidge(target_range=(-1, 1)),
            {"alpha": [0.1, 1.0]},
            "write DPHuberRegressor.max_sample_weight",
        ),
        (
            DPHistogramDensity(bounds=(-1, 1), max_sample_weight=2.0),
            {"bin_width": [0.5, 1.0]},
            "fit the chosen bin_width with them",
        ),
    ],
    ids=["ridge", "histogram"],
)
def test_where_weights_are_refused_it_is_said_what_to_do(model, grid, instead):
    refused = [lambda: StabilityGridSearchCV(model, grid).fit(X, TIMES, sample_weight=TIMES)]
    if isinstance(model, DPRidge):
        refused.append(lambda: model.fit(X, TIMES, sample_weight=TIMES))
    for fit in refused:
        with pytest.raises((TypeError, CertificateError), match=instead):
            fit()
