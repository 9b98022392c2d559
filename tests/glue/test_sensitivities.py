"""Every sensitivity is exact: some pair of neighbours moves as far as it says, and none further.

A test that only looks for a violation does not see a constant that is too small for records nobody
drew. So the neighbours are built that attain it. `reference` has the constants of the
documentation, and other tests tie the releases to them.
"""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from scipy.stats import gamma
from sklearn.base import clone

from dpselect import (
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
)
from dpselect.base.accuracy_form import NoiseLevels
from dpselect.density.accuracy import one_sided_quantile
from dpselect.linear_model.losses import CappedLogisticLoss, HuberHingeLoss, LogisticLoss
from dpselect.mechanisms.verification import root_excess_sensitivity
from dpselect.metrics import (
    AccuracyScore,
    BrierScore,
    ClippedAbsoluteErrorScore,
    ClippedSquaredErrorScore,
    HingeScore,
    IntegratedSquaredErrorScore,
    LogisticScore,
    LogLossScore,
    MarginScore,
    PoissonDevianceScore,
    RampScore,
)
from dpselect.metrics.scores import SCORES
from dpselect.noise import root_stream
from dpselect.records.public_shape import PublicShape
from dpselect.rows import Parts
from tests.trials import scales_of, trial

from . import reference
from .cases import VARIANTS, in_pairs, key, n_problems

INF = float("inf")
N = 40


def svc(K, norm="l2", intercept=False, **parameters):
    return DPLinearSVC(
        alpha=8.0,
        norm=norm,
        fit_intercept=intercept,
        data_norm=0.8,
        intercept_scaling=0.5,
        classes=list(range(K)),
        perturbation="output",
        **parameters,
    )


def neighbours(K, intercept):
    """Return records that a replaced one moves as far as it can, and the replacement.

    With a constant the label changes, and without one the row is turned round.
    """
    X = np.zeros((N, 2))
    X[:, 0] = 0.8
    y = np.arange(N) % K
    X2, y2 = X.copy(), y.copy()
    if intercept:
        y2[0] = 1
    else:
        X2[0] = -X[0]
    return (X, y), (X2, y2)


# ---- linear classifiers


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_output_perturbation_charges_what_one_record_moves(K, intercept, norm):
    first, second = (
        reference.linear_coefficients(svc(K, norm, intercept, epsilon=INF).fit(*records))
        for records in neighbours(K, intercept)
    )
    moved = np.linalg.norm(first - second, axis=1)
    # short models: all margins lie where the hinge has derivative -1
    model = svc(K, norm, intercept, epsilon=1.0)
    assert moved.max() == pytest.approx(reference.linear_scales(model, N, 2, 1)[2], rel=1e-6)
    assert scales_of(model, N, 2).output_scale == pytest.approx(moved.max(), rel=1e-4)


@pytest.mark.parametrize(
    "kind, loss",
    [
        (partial(DPLogisticRegression, max_derivative=None), LogisticLoss()),
        (DPLinearSVC, HuberHingeLoss(0.5)),
        (DPLogisticRegression, CappedLogisticLoss(0.6)),
        (partial(DPLogisticRegression, max_derivative=0.75), CappedLogisticLoss(0.75)),
    ],
)
@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_objective_perturbation_charges_what_one_record_moves_the_gradient(norm, kind, loss):
    # as long as a row may be, in both norms: a + b = 1 and a^2 + b^2 = 0.8^2
    row = np.array([0.5 + math.sqrt(0.07), 0.5 - math.sqrt(0.07), 0.5])
    derivatives = loss.derivative(np.array([-40.0, -40.0]))
    change = derivatives[0] * row + derivatives[1] * row  # of the labels 1 and -1
    longest = np.abs(change).sum() if norm == "l1" else np.linalg.norm(change)
    # so strong a regularisation that all of epsilon goes to the noise
    model = kind(
        alpha=1e6,
        epsilon=1.0,
        norm=norm,
        data_norm=0.8,
        data_norm_l1=1.0,
        intercept_scaling=0.5,
        classes=[0, 1],
    )
    scale = scales_of(model, N, 2).linear_scale
    assert scale * N * (1 - reference.RESIDUAL_FRACTION) == pytest.approx(longest, rel=1e-4)


@pytest.mark.parametrize("K", [2, 3])
def test_a_certificate_of_margins_is_attained(K):
    # a ramp so wide that no margin leaves it, and validation records along the change
    score = RampScore(-50, 50)
    (X, y), (X2, y2) = neighbours(K, False)
    model = svc(K, epsilon=5.0, random_state=key("certificate", K))
    certificate = model.stability_certificate(score, N, 2, 1 if K == 2 else K)
    models = [
        clone(model).set_params(random_state=model.random_state).fit(*records)
        for records in ((X, y), (X2, y2))
    ]
    test = np.array([[0.8, 0.0]])
    apart = models[0].decision_function(test) - models[1].decision_function(test)
    # the margins of all one-vs-rest problems move in the direction of their own labels
    assert np.abs(apart).mean() * score.lipschitz == pytest.approx(certificate.training, rel=1e-4)
    moved = score(models[0], test, y[:1]) - score(models[1], test, y[:1])
    assert abs(moved) == pytest.approx(certificate.training, rel=1e-4)
    # documented: 2 R / (n mu), twice the Lipschitz constant times the radius
    assert certificate.training == pytest.approx(
        score.lipschitz * 0.8 * 2 * 0.8 / (N * model.alpha), rel=1e-4
    )


@pytest.mark.parametrize("perturbation", ["objective", "output"])
@pytest.mark.parametrize("K", [2, 3])
def test_the_span_of_a_certificate_is_that_of_the_longest_model(perturbation, K):
    problems = 1 if K == 2 else K
    model = svc(K, epsilon=2.0, random_state=key("span", K)).set_params(perturbation=perturbation)
    mu, linear, output = reference.linear_scales(model, N, 2, problems)
    lengths = np.linalg.norm(model.standard_noise(2, problems), axis=2)
    R, pull = 0.8, 1.5**2 / 4
    t = linear * lengths[0]
    longest = np.minimum((R + t) / mu, (t + np.sqrt(t * t + 4 * mu * pull)) / (2 * mu))
    longest = longest + output * lengths[1]
    score = LogisticScore()
    found = model.stability_certificate(score, N, 2, problems)
    assert found.span == pytest.approx(np.mean(R * longest), rel=1e-6)
    moved = np.minimum(R * longest, R * 2 * R / (N * mu))
    assert found.training == pytest.approx(np.mean(moved), rel=1e-4)
    # two solutions, each within tau of the minimiser's gradient, and rounded to the grid
    scales = scales_of(model, N, 2, problems)
    apart = np.minimum(R * longest, R * (2 * scales.tau / mu + scales.rounding))
    assert found.residual == pytest.approx(np.mean(apart), rel=1e-6, abs=0)
    assert 0 < found.residual < 1e-3 * found.training


@pytest.mark.parametrize("epsilon", [0.1, 0.6, 2.0, 12.0])  # a third of it for each of three problems
@pytest.mark.parametrize("rate", [None, 0.05, {0: 0.1, 1: 0.3, 2: 0.6}])
def test_the_span_of_a_certificate_has_what_is_given_back(rate, epsilon):
    """Coefficients are multiplied, and intercepts moved, after the model whose length is bounded."""
    K, n, p = 3 if isinstance(rate, dict) else 2, 90, 2
    problems = 1 if K == 2 else K
    s = 0.25
    model = DPLogisticRegression(
        epsilon,
        base_rate=rate,
        classes=list(range(K)),
        intercept_scaling=s,
        random_state=key("back"),
    )
    noise = model.calibration(PublicShape(n, p, problems))
    lengths = np.linalg.norm(model.standard_noise(p, problems), axis=2)
    R, mu = math.hypot(1.0, s), noise.scales.mu
    t = noise.scales.linear_scale * lengths[0] + noise.scales.tau
    start = np.abs(reference.origins(model)).max()
    t = t + mu * start
    longest = np.minimum((0.6 * R + t) / mu, (t + np.sqrt(t * t + 4 * mu * 0.2784645)) / (2 * mu))
    longest = longest + noise.scales.output_scale * lengths[1]
    moved = reference.given_back(model, n, p, np.zeros((problems, p + 1)))
    ones = np.zeros((problems, p + 1))
    ones[:, 0] = 1
    times = (reference.given_back(model, n, p, ones) - moved)[0, 0]
    assert times == noise.stretch and (moved[:, -1] != 0).all() == (rate is not None)
    found = model.stability_certificate(LogisticScore(), n, p, problems)
    # what is moved is one number for both data sets, and only adds to the length
    span = R * (times * longest + np.abs(moved[:, -1]))
    assert found.span == pytest.approx(np.mean(span), rel=1e-5)
    apart = R * times * (2 * noise.scales.tau / mu + noise.scales.rounding)
    assert found.residual == pytest.approx(np.mean(np.minimum(span, apart)), rel=1e-5, abs=0)
    farthest = R * times * 2 * 0.6 * R / (n * mu)
    assert found.training == pytest.approx(np.mean(np.minimum(span, farthest + apart)), rel=1e-5)


@pytest.mark.parametrize("share", [0.5, 0.02])
@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_a_certificate_with_a_tail_holds_for_all_problems_at_once(norm, share, problems=3):
    model = svc(problems, norm, epsilon=2.0).set_params(perturbation="objective")
    score = LogisticScore()
    bound = model.stability_certificate(score, N, 2, problems, failure_probability=share)
    own = [
        clone(model)
        .set_params(random_state=root_stream(i))
        .stability_certificate(score, N, 2, problems)
        .span
        for i in range(200)
    ]
    # binomial: more than this many failures have a probability below 1e-7
    most = 200 * share + 6 * math.sqrt(200 * share) + 6
    assert np.sum(np.array(own) > bound.span) <= most
    if norm == "l2":
        # each of the two vectors of each problem may be too long with an equal share
        length = gamma(2).isf(share / (2 * problems))
        mu, linear, output = reference.linear_scales(model, N, 2, problems)
        R, pull, t = 0.8, 1.5**2 / 4, linear * length
        longest = min((R + t) / mu, (t + math.sqrt(t * t + 4 * mu * pull)) / (2 * mu))
        assert bound.span == pytest.approx(R * (longest + output * length), rel=1e-6)


# ---- ridge regression


@pytest.mark.parametrize("Y, B", [(0.9, 0.7), (0.01, 1.0), (1.0, 0.01)])
@pytest.mark.parametrize(
    "norm, r, g, s, attained",
    [
        # in l2 norm the terms of the targets and of the ball are attained, but not by the same records
        ("l2", 0.8, None, 0.0, (0.86, 0.99, 0.99)),
        ("l2", 0.8, None, 1.0, (0.83, 0.94, 0.98)),
        ("l1", 1.5, 1.5, 0.0, (0.999, 0.999, 0.999)),
        ("l1", 1.5, 1.5, 1.0, (0.999, 0.999, 0.999)),
        ("l1", 0.4, 0.4, 1.0, (0.9, 0.88, 0.99)),
        # in two columns there are no rows as long as may be in both norms, and apart from each other
        ("l1", 1.1, 1.5, 0.0, (0.7, 0.6, 0.99)),
        ("l1", 1.1, 1.5, 1.0, (0.7, 0.6, 0.99)),
        ("l1", 1.0, None, 0.0, (0.7, 0.6, 0.99)),
    ],
)
def test_the_change_of_the_gradients_of_ridge(norm, r, g, s, attained, Y, B):
    model = DPRidge(
        alpha=1e-6,
        norm=norm,
        data_norm=r,
        fit_intercept=bool(s),
        target_range=(1 - Y, 1 + Y),
        coef_bound=B,
        perturbation="objective",
        epsilon=1.0,
        data_norm_l1=g,
    )
    if s:
        assert s == 1.0  # the constant of the estimator
    rng, d = np.random.default_rng(0), 2 + bool(s)
    if norm == "l2":
        angles = np.linspace(0, 2 * np.pi, 121)
        rows = r * np.column_stack([np.cos(angles), np.sin(angles)])
        directions = rng.normal(size=(400, d))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    else:
        g = math.sqrt(2) * r if g is None else g
        rows = np.array([[x, side * (g - abs(x))] for x in np.linspace(-g, g, 41) for side in (-1, 1)])
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = rows * np.minimum(1, r / np.maximum(lengths, 1e-9))
        directions = np.array(list(itertools.product((-1, 1), repeat=d)))
    rows = np.vstack([rows, rows / 2, 0 * rows[:1]])
    if s:
        rows = np.column_stack([rows, np.ones(len(rows))])
    longest = 0.0
    for theta in rng.normal(size=(60 if norm == "l2" else 300, d)):
        theta *= B / np.linalg.norm(theta)
        gradients = np.concatenate([(rows @ theta - y)[:, None] * rows for y in (-Y, Y)])
        along = gradients @ directions.T
        longest = max(longest, (along.max(axis=0) - along.min(axis=0)).max())
    change = reference.ridge_change(model, norm, 2)
    share = attained[[(0.9, 0.7), (0.01, 1.0), (1.0, 0.01)].index((Y, B))]
    assert share * change <= longest <= change * (1 + 1e-9)
    # the estimator charges for it: here without any curvature of the map from noise to model
    strong = clone(model).set_params(alpha=1e6, coef_bound=None)
    noise = scales_of(strong, N, 2).linear_scale
    change = reference.ridge_change(strong, norm, 2)
    assert noise * N * (1 - reference.RIDGE_RESIDUAL_FRACTION) == pytest.approx(change, rel=1e-5)


def opposed_gradients(r, g, x):
    """Return the largest change of gradients in l1 norm, Y = 0 and B = 1, by rows of norms r and g.

    Each has one long entry and very many short ones. A share `x` of r is the entry of the second
    row where the first is long, against its sign.
    """

    def row(*long):
        rest = g - np.abs(long).sum()
        return np.concatenate([long, np.full(10**5, rest / 10**5)])

    almost = math.sqrt(r * r - g * g / 10**5)  # the short entries have a length, too
    one, other = row(almost, 0.0), row(-almost * x, almost * math.sqrt(1 - x * x))
    assert max(np.linalg.norm(one), np.linalg.norm(other)) <= r
    assert max(np.abs(one).sum(), np.abs(other).sum()) <= g * (1 + 1e-12)
    # with signs that are all 1: |sum(g' - g)| = |theta.(p z' - q z)|
    return np.linalg.norm(one.sum() * one - other.sum() * other)


@pytest.mark.parametrize("r, g", [(1.0, 1.8), (1.0, 3.2), (1.0, 10.0), (0.3, 9.0)])
def test_the_change_of_the_gradients_of_rows_that_are_short_in_l2_norm(r, g):
    model = DPRidge(
        alpha=1e-24,
        norm="l1",
        data_norm=r,
        data_norm_l1=g,
        fit_intercept=False,
        coef_bound=1.0,
        target_range=(-1e-9, 1e-9),
        perturbation="objective",
    )
    change = model.problem().gradient_change("l1", 10**5 + 2)
    longest = max(opposed_gradients(r, g, x) for x in np.linspace(0, 1, 101))
    assert 0.97 * change <= longest <= change
    # the twin that counts on rows which are not opposed is caught
    assert (longest > 1.02 * math.sqrt(2) * r * g) == (g > 2)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_sensitivity_of_released_sums_is_attained(norm, intercept):
    model = DPRidge(
        epsilon=1.0,
        norm=norm,
        fit_intercept=intercept,
        target_range=(-1, 1),
        data_norm_l1=1.0 if norm == "l1" else None,
    )
    scales = reference.statistic_scales(model, 2)
    upper = np.nonzero(np.triu(scales))
    longest = 0.0
    # rows of norm 1, with one or two columns that are not 0
    shares = np.linspace(0, 1, 21)
    for first, second in itertools.product(shares, shares):
        for turned, y, other in itertools.product((False, True), (-1, 1), (-1, 1)):
            rows = []
            for share, target, swap in ((first, y, False), (second, other, turned)):
                x = [share, 1 - share] if norm == "l1" else [share, math.sqrt(1 - share**2)]
                x = [x[1], -x[0]] if swap else x
                rows.append(np.array([*x, *([1.0] if intercept else []), target]))
            apart = np.outer(rows[0], rows[0]) - np.outer(rows[1], rows[1])
            moved = np.abs(apart[upper]) / scales[upper]
            longest = max(longest, moved.sum() if norm == "l1" else np.linalg.norm(moved))
    # noise of these scales costs epsilon = 1
    assert 0.99 <= longest <= 1 + 1e-9


def test_the_certificate_of_ridge_is_what_one_record_moves():
    for perturbation, norm in itertools.product(("objective", "output"), ("l1", "l2")):
        model = DPRidge(
            epsilon=2.0,
            alpha=4.0,
            perturbation=perturbation,
            norm=norm,
            data_norm=0.8,
            target_range=(-0.9, 0.9),
            data_norm_l1=0.8 if norm == "l1" else None,
        )
        score = ClippedSquaredErrorScore(3.0)
        mu = reference.ridge_scales(model, N, 2)[0]
        R = math.hypot(0.8, 1.0)
        moved = reference.ridge_change(model, "l2", 2) / N / mu
        certificate = model.stability_certificate(score, N, 2)
        assert certificate.training == pytest.approx(2 * math.sqrt(3.0) * R * moved, rel=1e-5)
        assert certificate.span == 3.0


# ---- every setting


# regularised so much that the noise and the losses hide little of what a certificate is made of
STRONG = in_pairs(
    {
        name: clone(model).set_params(alpha=100.0)
        for name, model in VARIANTS.items()
        if getattr(model, "perturbation", "covariance") != "covariance"
        and "auto" not in name.split("-")[-1]
        and "0.2" not in name
    }
) | {
    f"{name}-{where}": clone(model).set_params(alpha=100.0, perturbation=where)
    for where in ("objective", "output")
    for name, model in {
        "poisson": DPPoissonRegressor(target_bound=3.0),
        "huber, long units": DPHuberRegressor(target_range=(-30, 50)),
    }.items()
}
STRONG |= {
    f"{name}-delta": clone(model).set_params(delta=0.2)
    for name, model in STRONG.items()
    if not isinstance(model, DPRidge) and model.norm != "l1" and model.fit_intercept
}
FEW = 8


def scored_by(model):
    """Return a score that is steep everywhere, and the targets of which one is replaced by the other."""
    if hasattr(model, "classes"):
        return RampScore(-50, 50), (model.classes[0], model.classes[-1])
    if isinstance(model, DPPoissonRegressor):
        return PoissonDevianceScore(model.target_bound), (0.0, model.target_bound)
    low, high = model.target_range
    if isinstance(model, DPHuberRegressor):
        return ClippedAbsoluteErrorScore(1e9), (-1e3, 1e3)
    return ClippedSquaredErrorScore((high - low) ** 2 / 4), (low, high)


@pytest.mark.parametrize("name", STRONG)
def test_no_target_moves_a_score_or_a_least_risk_further_than_is_stated(name):
    model = clone(STRONG[name]).set_params(random_state=key("strong", name))
    score, (one, other) = scored_by(model)
    problems = n_problems(model)
    certificate = model.stability_certificate(score, FEW, 2, problems)
    bound = model.risk_bound(FEW, 2, problems)
    X = np.array([[9.0, 0.0]] * FEW)  # as long as may be
    y = np.full(FEW, one)
    replaced = y.copy()
    replaced[0] = other
    models = [clone(model).fit(X, targets) for targets in (y, replaced)]
    for target in (one, other):
        scores = [score(trained, X[:1] + 0, [target]) for trained in models]
        assert abs(scores[0] - scores[1]) <= certificate.training * (1 + 1e-6)
    apart = score(models[0], X[:1] + 0, [one]) - score(models[0], X[:1] + 0, [other])
    assert abs(apart) <= certificate.span * (1 + 1e-9)
    values = [
        type(model).optimal_values([trial(model)], X, targets, 10.0)[0] for targets in (y, replaced)
    ]
    assert abs(values[0] - values[1]) <= bound.sensitivity * (1 + 1e-9)


# ---- histograms


DENSITY = DPHistogramDensity(epsilon=1.0, bounds=(-1, 1), bin_width=0.5)
LOW, HIGH = -0.9, 0.9


def test_one_record_moves_counts_by_two_in_l1_and_its_root_in_l2():
    X = np.full((N, 1), LOW)
    other = X.copy()
    other[0] = HIGH
    exact = [clone(DENSITY).set_params(epsilon=INF).fit(x).density_ * 0.5 * N for x in (X, other)]
    apart = exact[0] - exact[1]
    assert np.abs(apart).sum() == pytest.approx(2.0)
    assert np.linalg.norm(apart) == pytest.approx(math.sqrt(2))


def test_the_certificate_of_a_histogram_is_nearly_attained():
    # without noise, all records in one cell: N is n
    model = clone(DENSITY).set_params(epsilon=INF)
    score, v = IntegratedSquaredErrorScore(), 0.5
    X = np.full((N, 1), LOW)
    other = X.copy()
    other[0] = HIGH
    certificate = model.stability_certificate(score, N, 1)
    assert certificate.training == pytest.approx(4 / N / v)
    assert certificate.span == pytest.approx(2 / v)
    low = np.full((7, 1), LOW)
    near = clone(model).fit(X)
    moved = score(near, low) - score(clone(model).fit(other), low)
    # 2 / n of the mean of the density, and that of its square to first order in 1 / n
    assert abs(moved) <= certificate.training
    one = low.copy()
    one[0] = HIGH
    assert score(near, low) - score(near, one) == pytest.approx(certificate.span / 7)


@pytest.mark.parametrize("n", [40, 1000])
def test_the_bounds_of_a_histogram_s_risk_are_attained(n):
    form, v = DENSITY.accuracy_form(), 0.5
    bounds = form.bounds(PublicShape(n, 1))
    X = np.full((n, 1), LOW)
    other = X.copy()
    other[0] = HIGH
    levels = NoiseLevels("fresh", 1.0, 2.0)
    one, two = (form.reduction(x, None, levels, key("risk")) for x in (X, other))
    masses = np.array([[1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]])
    apart = np.abs(one.risks(masses) - two.risks(masses))
    assert apart.max() == pytest.approx(bounds.risk) and bounds.risk == pytest.approx(2 / (n * v))
    assert abs(one.minimum - two.minimum) == pytest.approx(bounds.minimum, rel=1.1 / n)
    far = np.array([[2.0, 0.0, 0.0, -1.0]])
    roots = np.sqrt(one.excesses(far)), np.sqrt(two.excesses(far))
    assert abs(roots[0] - roots[1])[0] == pytest.approx(bounds.root)
    assert form.score_span(IntegratedSquaredErrorScore(), 1) == pytest.approx(2 / v)


# ---- risks of linear models


@pytest.mark.parametrize("probability", [0.2, 0.01])
def test_the_noise_of_few_cells_is_bounded_by_its_exact_law(probability):
    # the positive ones of one and of two Laplace variables
    x = one_sided_quantile(1, probability)
    assert math.exp(-x) / 2 == pytest.approx(probability)
    x = one_sided_quantile(2, probability)
    assert math.exp(-x) / 2 + (1 + x) * math.exp(-x) / 4 == pytest.approx(probability)
    assert one_sided_quantile(1, 0.6) == 0.0


CLASSIFIERS = {
    "logistic": (DPLogisticRegression, CappedLogisticLoss(0.6)),
    "steep": (partial(DPLogisticRegression, max_derivative=None), LogisticLoss()),
    "capped": (partial(DPLogisticRegression, max_derivative=0.75), CappedLogisticLoss(0.75)),
    "svc": (DPLinearSVC, HuberHingeLoss(0.5)),
}


@pytest.mark.parametrize("kind, loss", CLASSIFIERS.values(), ids=CLASSIFIERS)
@pytest.mark.parametrize("K", [2, 3])
def test_the_bound_of_a_classifier_s_risk_is_attained(kind, loss, K):
    model = kind(
        alpha=0.05, data_norm=0.8, fit_intercept=False, classes=list(range(K)), perturbation="output"
    )
    form = model.accuracy_form()
    problems = 1 if K == 2 else K
    bounds = form.bounds(PublicShape(N, 2, problems))
    pull = 1.5**2 / 4 if kind is DPLinearSVC else 0.2784645427610738
    L = getattr(loss, "max_derivative", 1.0)
    ball = min(L * 0.8 / 0.05, math.sqrt(pull / 0.05))
    (X, y), (X2, y2) = neighbours(K, False)
    levels = NoiseLevels("fresh", 1.0, 2.0)
    one, two = (form.reduction(*records, levels, key("risk")) for records in ((X, y), (X2, y2)))
    signs = reference.signs_of(y[:1], np.arange(K))[0]
    w = np.zeros((problems, 2))
    w[:, 0] = ball * signs
    apart = abs(one.risks([w])[0] - two.risks([w])[0])
    assert apart == pytest.approx(bounds.risk, rel=1e-9)
    assert bounds.minimum == pytest.approx(bounds.risk, rel=1e-5)
    assert bounds.root == pytest.approx(root_excess_sensitivity(L * 0.8, N, 0.05), rel=1e-4)
    # v is attained where losses are linear; see `root_excess_sensitivity`
    score = BrierScore()
    assert form.score_span(score, 2) == pytest.approx(np.tanh(0.8 * ball / 2))


def test_the_bound_of_a_regression_s_risk_is_attained():
    model = DPRidge(
        alpha=0.3,
        data_norm=0.8,
        target_range=(-0.9, 0.9),
        norm="l2",
        fit_intercept=False,
        perturbation="output",
    )
    form = model.accuracy_form()
    bounds, B = form.bounds(PublicShape(N, 2)), 0.9 / (2 * math.sqrt(0.3))
    X, y = np.zeros((N, 2)), np.zeros(N)
    X[0, 0], y[0] = 0.8, -0.9
    X2, y2 = X.copy(), y.copy()
    X2[0], y2[0] = 0.0, 0.0
    levels = NoiseLevels("fresh", 1.0, 2.0)
    one, two = (form.reduction(*records, levels, key("risk")) for records in ((X, y), (X2, y2)))
    apart = one.risks([[B, 0.0]]) - two.risks([[B, 0.0]])
    assert apart[0] == pytest.approx(bounds.risk, rel=1e-9)
    assert bounds.risk == pytest.approx((0.9 + 0.8 * B) ** 2 / (2 * N))
    change = reference.ridge_change(model, "l2", 2)
    assert bounds.root == pytest.approx(root_excess_sensitivity(change / 2, N, 0.3), rel=1e-3)
    assert bounds.minimum == pytest.approx(bounds.risk, rel=1e-5)
    assert form.score_span(ClippedSquaredErrorScore(1.7), 2) == 1.7


def test_the_root_of_an_excess_moves_as_far_as_stated():
    # losses -g x of records -1 and 1, and the penalty alpha g^2 / 2
    n, alpha, g = 10, 0.7, 3.0

    def root(mean):
        return math.sqrt(alpha / 2) * abs(g - mean / alpha)

    moved = abs(root(0.0) - root(2 / n))
    assert moved == pytest.approx(root_excess_sensitivity(1.0, n, alpha))


@pytest.mark.parametrize("kind, loss", CLASSIFIERS.values(), ids=CLASSIFIERS)
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("reach", [0.5, 100.0])
def test_the_sensitivity_of_an_optimal_value(kind, loss, K, reach):
    n, problems = 5000, 1 if K == 2 else K
    model = kind(alpha=0.05, epsilon=3.0, data_norm=0.8, fit_intercept=False, classes=list(range(K)))
    bound = model.risk_bound(n, 2, problems, reach)
    mu = reference.linear_scales(model, n, 2, problems)[0]
    U = min(reach, 0.8 * math.sqrt(loss.pull / mu))
    span = float(loss.value(np.float64(-U)) - loss.value(np.float64(U)))
    assert bound.sensitivity == pytest.approx(span / n + 2 * bound.inexactness)
    assert bound.inexactness < 1e-2 * span / n


@pytest.mark.parametrize("perturbation", ["objective", "output", "covariance"])
def test_the_sensitivity_of_an_optimal_value_of_ridge(perturbation):
    n, Y = 5000, 0.9
    model = DPRidge(
        alpha=0.3, epsilon=3.0, data_norm=0.8, target_range=(-Y, Y), norm="l2", perturbation=perturbation
    )
    bound, R = model.risk_bound(n, 2, reach=0.3), math.hypot(0.8, 1.0)
    # predictions reach 0.3 Y: (u^2 - 2 u y) / 2 spans 2 Y u
    assert bound.sensitivity == pytest.approx(2 * Y * 0.3 * Y / n, rel=2e-2)
    assert bound.ball == pytest.approx(0.3 * Y / R, rel=1e-6)


# ---- scores


MARGIN_SCORES = (BrierScore(), RampScore(), RampScore(-3, 2), LogisticScore(), HingeScore())


@pytest.mark.parametrize("score", MARGIN_SCORES, ids=repr)
@pytest.mark.parametrize("bound", [0.3, 1.0, 2.5, 40.0])
def test_the_span_and_the_derivative_of_a_score_are_exact(score, bound):
    u = np.linspace(-bound, bound, 20001)
    values = score.penalty(u)
    assert score.span(bound) == pytest.approx(values.max() - values.min(), rel=1e-6)
    derivatives = np.abs(np.diff(values) / np.diff(u))
    assert derivatives.max() <= score.lipschitz * (1 + 1e-6)
    if bound == 2.5:
        least = 0.92 if isinstance(score, LogisticScore) else 0.999
        assert derivatives.max() >= least * score.lipschitz
    if math.isfinite(score.width) and bound == 40.0:
        assert score.span(bound) == pytest.approx(score.width)


BAD = (float("nan"), INF, -INF, 1e300)


class Fixed:
    """A model that predicts given numbers."""

    classes_ = np.array([0, 1])

    def __init__(self, numbers):
        self.numbers = np.asarray(numbers, dtype=np.float64)

    def decision_function(self, X):
        return self.numbers

    predict = decision_function

    def predict_proba(self, X):
        return np.column_stack([1 - self.numbers, self.numbers])


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("place", ["prediction", "target"])
@pytest.mark.parametrize(
    "score",
    [
        s
        for s in (*SCORES.values(), RampScore(-3, 2), ClippedSquaredErrorScore(4.0))
        if math.isfinite(s.width)
    ],
    ids=repr,
)
def test_no_record_adds_more_than_the_width(score, place, bad):
    m = 8
    predictions, y = np.full(m, 0.1), np.array([0, 1] * (m // 2), dtype=np.float64)
    X = np.zeros((m, 1))
    if isinstance(score, (MarginScore, AccuracyScore, LogLossScore)):
        place = "prediction"  # labels are checked before they are scored
    usual = score(Fixed(predictions), X, y)
    found = []
    for i in range(2):
        numbers = predictions if place == "prediction" else y
        changed = numbers.copy()
        changed[i] = bad
        model = Fixed(changed if place == "prediction" else predictions)
        found.append(score(model, X, changed if place == "target" else y))
    assert np.isfinite(found).all()
    assert np.abs(np.array(found) - usual).max() <= score.width / m * (1 + 1e-9)


@pytest.mark.parametrize("bad", BAD)
def test_no_target_adds_more_than_the_width_on_splits(bad):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, 2)), rng.uniform(-1, 1, size=N)
    score = ClippedSquaredErrorScore(0.5)
    assert np.isfinite(score.total(np.array([bad, 0.0]), np.zeros(2)))
    assert score.total(np.array([bad, 0.0]), np.zeros(2)) <= 0.5
    parts = Parts.from_splits([(np.arange(20), np.arange(20, N))], X)
    model = DPRidge(perturbation="output", alpha=1.0, random_state=key("splits"), target_range=(-1, 1))
    assert np.isfinite(DPRidge.split_scores([trial(model)], score, X, y, parts)).all()
