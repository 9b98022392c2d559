"""Every release anew, in plain numpy, from the formulas of the documentation.

Each function takes an unfitted estimator, records and the estimator's own standard noise, and
returns what must come out. Nothing here calls what it is compared with, but for the
theorems about Gaussian noise that are compared with quadrature.
"""

import math
from collections import Counter

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, lambertw, log_expit, logit
from scipy.stats import norm
from sklearn.base import clone

from dpselect.mechanisms.gaussian_objective import LARGEST, objective_mu, signless_mu
from dpselect.mechanisms.person_objective import person_kappa, person_mu, person_signless_mu

LOGISTIC, HINGE, HUBER, POISSON, RIDGE = "logistic", "hinge", "huber", "poisson", "ridge"
CAPPED = "capped"  # logistic, and straight where it would be steeper than a number
MARGINS = (LOGISTIC, CAPPED, HINGE)
# share of epsilon that hides the solver's residual, for classifiers and for ridge regression, and the
# most of it where what hides it is long
RESIDUAL_FRACTION, RIDGE_RESIDUAL_FRACTION, MAX_RESIDUAL_FRACTION = 1e-3, 5e-3, 0.05
# what rounding of the predictions leaves of a gradient, in units of their size
ROUNDING = 2.0**-48
# what it leaves of a sum over rows, relative to the largest gradient
SUMS = 1e-11
# what the noise that hides the residual does, beside that in the objective, where the solver can help it
BESIDE = 0.1
# residual of ridge regression, relative to the change of the gradients
RIDGE_RESIDUAL = 1e-11
WEIGHTS = {"l1": (0.2, 0.35), "l2": (0.3, 0.6)}


def clipped(X, norm, bound):
    """Return the rows, those that are too long scaled down to the bound."""
    lengths = np.abs(X).sum(axis=1) if norm == "l1" else np.linalg.norm(X, axis=1)
    return X * np.minimum(1.0, bound / np.maximum(lengths, 1e-300))[:, None]


def signs_of(y, classes):
    """Return -1 or 1 for each record and one-vs-rest problem."""
    positive = classes[1:] if len(classes) == 2 else classes
    return np.where(np.asarray(y)[:, None] == positive, 1.0, -1.0)


# ---- linear models


def clipped_rows(model, X):
    """Return the rows, clipped to both norms, one after the other."""
    A = clipped(X, "l2", model.data_norm)
    return A if model.data_norm_l1 is None else clipped(A, "l1", model.data_norm_l1)


def linear_bounds(model, p):
    """Return d, bounds on the l2 and l1 norm, and whether the objective has Laplace noise."""
    s = model.intercept_scaling if model.fit_intercept else 0.0
    l1 = math.inf if model.data_norm_l1 is None else model.data_norm_l1
    d, R = p + bool(model.fit_intercept), math.hypot(min(model.data_norm, l1), s)
    G = min(l1, math.sqrt(p) * model.data_norm) + s
    shorter = 2 * G**2 < (d + 1) * R**2
    return d, R, G, shorter if model.norm == "auto" else model.norm == "l1"


def weights_of(model, y, weight=1.0):
    """Return how often each record counts."""
    weight = np.full(len(y), weight) if np.ndim(weight) == 0 else np.asarray(weight)
    if model.max_sample_weight is not None:
        weight = np.minimum(weight, model.max_sample_weight)
    given = getattr(model, "class_weight", None) or {}
    return weight * np.array([given.get(label, 1.0) for label in y.tolist()])


def largest_weight(model):
    most = 1.0 if model.max_sample_weight is None else np.inf
    return weights_of(model, np.asarray(getattr(model, "classes", [0])), most).max()


def linear_scales(model, n, p, K, persons=False):
    """Return mu and the scales of the noise in the objective and of that which is added."""
    if model.alpha != "auto":
        return scales_at(model.alpha, model, n, p, K, persons)
    alpha = usual_alpha(model, n, p, K)
    if model.epsilon == math.inf:
        return alpha, 0.0, 0.0
    d, R, _, _ = linear_bounds(model, p)
    squared = d if is_gaussian(model, p, K) else d * (d + 1)
    curvature = constants_of(model)[1]
    reach = 1.5 if kind_of(model) == POISSON else 5

    def costs_too_much(log_alpha):
        mu, _, output = scales_at(math.exp(log_alpha), model, n, p, K, persons)
        noise = curvature * R**2 / 2 * output**2 * squared / d
        bias = reach**2 / 2 * mu / R**2 / (1 + curvature * (R / (2 * d)) ** 2 / mu)
        return math.log(noise / bias)

    low = math.log(alpha)
    if costs_too_much(low) > 0:
        alpha = math.exp(brentq(costs_too_much, low, low + 20, xtol=1e-9))
    return scales_at(alpha, model, n, p, K, persons)


def usual_alpha(model, n, p, K):
    """Return alpha="auto" where the noise that is added costs little."""
    d, R, G, laplace = linear_bounds(model, p)
    epsilon = model.epsilon / K
    length = math.sqrt(2 * d) * G / R if laplace and model.perturbation == "objective" else d
    if is_gaussian(model, p, K):
        length = epsilon * math.sqrt(d) / gaussian_m(model, d, K)
    even, least, most, reach = {
        HUBER: (300, 1, 3, 5),
        POISSON: (100, 1, 3, 1.5),
        HINGE: (100, 0.5, 3, 5),
    }.get(kind_of(model), (225, 0.5, 4.5, 5))
    factor = min(max(math.sqrt(even * length / (n * epsilon)), least), most)
    if n * epsilon / length < 1 and kind_of(model) not in (HUBER, POISSON):
        factor = 12
    factor = 4 if model.perturbation == "output" else factor
    # in the order in which the library multiplies: the search for Gaussian noise magnifies last bits
    return 5 * constants_of(model)[2] / reach * R**2 / n * max(factor * length / (5 * epsilon), 0.01)


def scales_at(alpha, model, n, p, K, persons):
    """Return them for a number alpha."""
    d, R, _, laplace = linear_bounds(model, p)
    _, curvature, W = constants_of(model)
    if model.epsilon == math.inf:
        return alpha, 0.0, 0.0
    gaussian = is_gaussian(model, p, K)
    if model.perturbation == "output":
        tau = residual(model, R, alpha, alpha * np.abs(origins(model)).max())
        hidden = gaussian_m(model, d, K) if gaussian else model.epsilon / K
        return alpha, 0.0, (2 * W * R / n + 2 * tau) / (alpha * hidden)
    if gaussian:
        return gaussian_scales(alpha, model, n, p, K, persons)
    usual = pure_scales(RESIDUAL_FRACTION, alpha, model, n, p, K, persons)
    times = usual[2] / (usual[1] * (math.sqrt(2 / (d + 1)) if laplace else 1))
    times *= usual[0] + curvature * R**2 / d
    if times <= BESIDE * (1 + 1e-9):
        return usual
    share = min((times * RESIDUAL_FRACTION) ** (2 / 3), MAX_RESIDUAL_FRACTION)
    return pure_scales(share, alpha, model, n, p, K, persons)


def gaussian_scales(alpha, model, n, p, K, persons):
    """Return the scales of Gaussian noise in the objective."""
    d, R, _, _ = linear_bounds(model, p)
    _, curvature, W = constants_of(model)
    mu = max(alpha, gaussian_regularisation(model, K, W, curvature / W, persons) * R**2 / n)
    linear = 2 * W * R / (n * gaussian_m(model, d, K, W * R**2 / (n * mu), persons))
    hidden = gaussian_root(RESIDUAL_FRACTION * model.epsilon, RESIDUAL_FRACTION * model.delta) / K**0.5
    t = linear * math.sqrt(d) + mu * np.abs(origins(model)).max()
    largest = BESIDE * linear / (mu + curvature * R**2 / d)
    return mu, linear, 2 / mu * residual(model, R, mu, t, largest * mu * hidden / 2) / hidden


def pure_scales(residual_share, alpha, model, n, p, K, persons):
    """Return the scales of noise in the objective, without a delta."""
    d, R, G, laplace = linear_bounds(model, p)
    kind, (_, curvature, W), epsilon = kind_of(model), constants_of(model), model.epsilon / K
    # a person's rows curve in as many directions as there are columns, or in a power of two
    rank = 2 ** math.ceil(math.log2(d)) if persons else 1
    rest = (1 - residual_share) * epsilon
    mu = max(alpha, curvature * R**2 / (n * rank * math.expm1(rest / rank / 2)))
    kappa = W * R**2 / (n * mu)
    # e (1 + s) / 2 + log(1 + c(s) kappa) <= rest, for all s; of a person rank log(1 + c kappa / rank)
    rest, kappa = rest / rank, kappa / rank
    if kind == LOGISTIC:
        share = np.linspace(0, 1, 20001)
        noise_epsilon = np.min(2 * (rest - np.log1p(share * (1 - share) * kappa)) / (1 + share))
    elif kind == HUBER and kappa > 2 * rest / math.sqrt(27):
        share = np.arange(2**13 + 1) / 2**13
        curved = (1 - share**2) ** 1.5
        if persons:  # the mean of several such
            curved = np.where(share < 0.5, curved, math.sqrt(27) / 4 * (1 - share))
        noise_epsilon = np.min(2 * (rest - np.log1p(curved * kappa)[:-1]) / (1 + share[1:]))
    elif kind == HUBER:
        noise_epsilon = rest
    else:
        noise_epsilon = rest - math.log1p(curvature / W * kappa)
    noise_epsilon *= rank
    linear = 2 * W * (G if laplace else R) / (n * noise_epsilon)
    hidden, t = residual_share * epsilon, linear * d + mu * np.abs(origins(model)).max()
    # independent variables are shorter than spherical noise at the same scale
    alike = linear * math.sqrt(2 / (d + 1)) if laplace else linear
    largest = BESIDE * alike / (mu + curvature * R**2 / d)
    return mu, linear, 2 / mu * residual(model, R, mu, t, largest * mu * hidden / 2) / hidden


def constants_of(model):
    """Return the pull of the loss, its curvature and its largest derivative, for the largest weight.

    Poisson's are those of a count of at most 1, times the bound.
    """
    kind, h, W = kind_of(model), getattr(model, "huber_width", 0.5), largest_weight(model)
    if kind != POISSON:
        pull, curvature = {
            LOGISTIC: (0.2784645427610738, 0.25),
            HUBER: (math.inf, 1.0),
            CAPPED: (0.2784645427610738, 0.25),
            HINGE: ((1 + h) ** 2 / (8 * h) if h >= 1 / 3 else 1 - h, 0.5 / h),
        }[kind]
        return W * pull, W * curvature, W * (steepest(model) if kind == CAPPED else 1)
    B = model.target_bound
    z = max(0.0, float(lambertw(math.e * B).real) - 1)
    down = math.exp(-1) if B >= math.exp(-1) else -B * math.log(B)
    return W * max(down, z * z * math.exp(z)), W * B, W * B


def gaussian_root(epsilon, delta):
    """Solve the exact condition of the Gaussian mechanism."""

    def excess(m):
        other = math.exp(epsilon + norm.logcdf(-m / 2 - epsilon / m))
        return norm.cdf(m / 2 - epsilon / m) - other - delta

    return brentq(excess, epsilon / 30, 10, xtol=1e-14)


def gaussian_regularisation(model, K, W, curvature, persons):
    """Return n / R^2 times the regularisation that Gaussian noise in the objective needs."""
    rest, delta = (1 - RESIDUAL_FRACTION) * model.epsilon, (1 - RESIDUAL_FRACTION) * model.delta
    if kind_of(model) == LOGISTIC:
        return W / person_kappa(rest, delta, K) if persons else 2 * W * K / min(rest, LARGEST)
    if persons:  # curvature takes half of epsilon at most
        return 2 * K * W * curvature / min(rest, LARGEST)
    return W * curvature / math.expm1(rest / K / 2)


def gaussian_m(model, d, K, kappa=0.0, persons=False):
    """Return the sensitivity in standard deviations that Gaussian noise hides in each problem."""
    if model.perturbation == "output":
        return gaussian_root(model.epsilon, model.delta) / math.sqrt(K)
    rest, delta = (1 - RESIDUAL_FRACTION) * model.epsilon, (1 - RESIDUAL_FRACTION) * model.delta
    kind, ends = kind_of(model), np.linspace(0, 1, 9)
    # a person's rows pay for the trace of what curves, and a row for its determinant
    pays = (lambda curved: curved) if persons else math.log1p
    if persons:
        rest = min(rest, LARGEST)
    parts = tuple((b, pays((1 - a * a) ** 1.5 * kappa)) for a, b in zip(ends[:-1], ends[1:]))
    whole = ((1.0, pays(kappa)),)
    if kind in (HUBER, POISSON):
        ways = [whole, parts][: 1 + (kind == HUBER)]
        if persons:
            return max(person_signless_mu(rest, delta, way) for way in ways)
        return max(signless_mu(delta, tuple((b, rest - paid) for b, paid in way)) for way in ways)
    if kind in (HINGE, CAPPED):
        charge = K * pays(kappa / (2 * model.huber_width if kind == HINGE else 4 * steepest(model)))
        if persons:
            return person_mu(rest, delta, K, charge=charge)
        rest -= charge
    elif persons:
        return person_mu(rest, delta, K, kappa=person_kappa(rest, delta, K))
    if K > 1:
        return objective_mu(rest, delta, K)
    return min(gaussian_root(rest, delta), math.sqrt(4 + 2 * rest) - 2)


def residual(model, R, mu, t, enough=math.inf):
    """Return the length of the gradient that noise must hide, t being that of the noise.

    Not less than what rounding of the sums and of the predictions leaves.
    """
    pull, curvature, W = constants_of(model)
    longest = min((W * R + t) / mu, (t + math.sqrt(t * t + 4 * mu * pull)) / (2 * mu))
    margins, sums = ROUNDING * curvature * R * R * longest, SUMS * (W * R + t)
    usual, loosest = (max(tol * (W * R + t), margins) for tol in (model.tol, 1e-10))
    reached = min(usual, max(enough - sums, sums, margins))
    # what sums round is hidden where it counts
    return reached + sums if reached < loosest else reached


def told(model, n, p, K):
    """Return n epsilon over the length of the noise of one problem, in units of the rows."""
    d, R, G, laplace = linear_bounds(model, p)
    if is_gaussian(model, p, K):
        return n * gaussian_m(model, d, K) / math.sqrt(d)
    length = math.sqrt(2 * d) * G / R if laplace and model.perturbation == "objective" else d
    return n * model.epsilon / K / length


def fraction_for_rate(model, n, p, K):
    """Return the fraction of epsilon with which a base rate is learned.

    None where it is not learned. The model has guesses of all that is learned.
    """
    if model.epsilon == math.inf or not model.fit_intercept:
        return None
    if kind_of(model) == POISSON:
        fraction = max(30 / (n * model.epsilon), 0.01)
        return fraction if fraction <= 0.3 else None
    signal = told(model, n, p, K)
    if signal >= 100:
        return None
    low, high = (0.8, 0.8)
    if signal >= 3:
        low, high = (0.05, 0.25) if signal < 10 else (0.05, 0.05) if signal < 30 else (0.01, 0.05)
    # whose standard deviation is 0.04
    precise = math.sqrt(2) * (1 if K == 1 else 2) / (0.04 * n * model.epsilon)
    return min(max(precise, low), high)


def doubled(share):
    """Return the rate from which an intercept counts, of a share that is known well."""
    return min(2 * share, 0.5) if share < 0.5 else 1 - min(2 * (1 - share), 0.5)


def starts_elsewhere(model):
    """Tell whether the penalty counts from other shares than the model's."""
    known = getattr(model, "base_rate", None) is not None and kind_of(model) != POISSON
    return known and model.alpha == "auto" and model.epsilon < math.inf and model.class_weight is None


def given_back(model, n, p, w):
    """Return coefficients after what is known of the penalty is given back."""
    K, w = len(w), w.copy()
    if stretches(model, n, p, K):
        w[:, :p] *= 1.25
    if starts_elsewhere(model):
        mu = linear_scales(model, n, p, K)[0] / largest_weight(model)
        _, R, _, _ = linear_bounds(model, p)
        labels, rate, s = np.unique(model.classes).tolist(), model.base_rate, model.intercept_scaling
        shares = [rate] if K == 1 else [rate[label] for label in labels]
        for k, (share, start) in enumerate(zip(shares, origins(model) * s)):

            def slope(z, share=share, start=start):
                # of the mean loss of rows that tell nothing, with the penalty of half of a row
                up, down = max(-expit(-z), -steepest(model)), -max(-expit(z), -steepest(model))
                return share * up + (1 - share) * down + 2 * mu * (z - start) / (s * s + R * R)

            wanted = brentq(lambda z: decisions(model, z) - logit(share), -40, 40, xtol=1e-14)
            w[k, -1] += (wanted - brentq(slope, -40, 40, xtol=1e-14)) / s
    return w


def stretches(model, n, p, K):
    """Tell whether coefficients are multiplied after training."""
    logistic = kind_of(model) in (LOGISTIC, CAPPED) and model.perturbation == "objective"
    return logistic and model.alpha == "auto" and 10 <= told(model, n, p, K) < 225


def is_gaussian(model, p, K):
    """Tell whether Gaussian noise is the shortest."""
    if model.delta == 0 or model.epsilon == math.inf:
        return False
    d, R, G, laplace = linear_bounds(model, p)
    pure = math.sqrt(d * (d + 1)) * R
    if laplace and model.perturbation == "objective":
        pure = math.sqrt(2 * d) * G
    return math.sqrt(d) * R / gaussian_m(model, d, K) < pure * K / model.epsilon


def origins(model):
    """Return the last coefficient from which the penalty of each problem counts."""
    rate = getattr(model, "base_rate", None)
    if rate is None:
        return np.zeros(1)
    if kind_of(model) == POISSON:
        return np.array([math.log(rate)]) / model.intercept_scaling
    labels = np.unique(model.classes).tolist()
    shares = rate if isinstance(rate, dict) else {labels[0]: 1 - rate, labels[1]: rate}
    if starts_elsewhere(model):
        # of two classes, the second one's share tells that of the first
        shares = {label: doubled(share) for label, share in shares.items()}
    given = model.class_weight or {}
    counted = {label: shares[label] * given.get(label, 1.0) for label in labels}
    ratios = []
    for label in labels[1:] if len(labels) == 2 else labels:
        rest = sum(shares.values()) - shares[label]
        odds = counted[label] / (sum(counted.values()) - counted[label])
        # a class counts as much as its weight says, the others as much as theirs do on average
        ratios.append(odds * rest / (1 - shares[label]))
    found = np.log(ratios)
    if kind_of(model) == CAPPED:
        # where the model predicts just that
        found = np.array([brentq(lambda z: decisions(model, z) - x, -40, 40, xtol=1e-14) for x in found])
    return found / model.intercept_scaling


def decisions(model, z):
    """Return the decision values of linear predictions: the log odds of a / (a + b), if it is capped."""
    if kind_of(model) != CAPPED:
        return z
    a, b = (np.minimum(log_expit(u), math.log(steepest(model))) for u in (z, -z))
    return a - b


def kind_of(model):
    if hasattr(model, "target_bound"):
        return POISSON
    if hasattr(model, "target_range"):
        return RIDGE if hasattr(model, "coef_bound") else HUBER
    if hasattr(model, "huber_width"):
        return HINGE
    return LOGISTIC if steepest(model) == 1 else CAPPED


def steepest(model):
    """Return the largest derivative of a logistic loss; "auto" is 0.6 where there is noise."""
    given = model.max_derivative
    if given == "auto":
        return 0.6 if model.epsilon < math.inf else 1.0
    return 1.0 if given is None else given


def without_noise(model):
    """Return a model whose fits have no noise, and the loss of those with noise."""
    given = {"max_derivative": steepest(model)} if hasattr(model, "max_derivative") else {}
    return clone(model).set_params(epsilon=math.inf, **given)


def width_of(model):
    """Return the number that the loss of a classifier has, if it has one."""
    return steepest(model) if kind_of(model) == CAPPED else getattr(model, "huber_width", None)


def linear_release(model, X, y, unit, weight=1.0, groups=None):
    """Return the coefficients of each problem, the intercept last, and the precision to expect."""
    w, precision = linear_training(model, X, y, unit, weight, groups)
    n = len(X) if groups is None else len(set(groups))
    return given_back(model, n, X.shape[1], w), precision


def linear_training(model, X, y, unit, weight=1.0, groups=None):
    """Return the noisy minimisers, and the precision to expect."""
    A, weights, n = design(model, X), weights_of(model, y, weight), len(X)
    if groups is not None:
        # a person is the mean of their rows, and they are what is counted
        n = len(set(groups))
        weights = weights * shares_of(groups) * len(X) / n
    K = unit.shape[1]
    mu, linear, output = linear_scales(model, n, X.shape[1], K, groups is not None)
    origin = np.zeros((K, A.shape[1]))
    origin[:, -1] = origins(model)
    if kind_of(model) in (HUBER, POISSON):
        targets = np.clip(y, 0.0, model.target_bound) if kind_of(model) == POISSON else None
        if targets is None:
            centre, h = units_of(model)
            targets = (np.clip(y, -1e9, 1e9) - centre) / h
        linear = linear * unit[0, 0] - mu * origin[0]
        width = targets if kind_of(model) == HUBER else (targets, model.target_bound)
        w = minimiser(kind_of(model), A, mu, linear, width, weights)
        return w + output * unit[1], 0.02 * output
    signs = signs_of(y, np.unique(model.classes))
    w = np.array(
        [
            minimiser(
                kind_of(model),
                A * signs[:, k : k + 1],
                mu,
                linear * unit[0, k] - mu * origin[k],
                width_of(model),
                weights,
            )
            for k in range(K)
        ]
    )
    return w + output * unit[1], 0.02 * output


def shares_of(groups):
    """Return for each row one by the number of rows of its person."""
    counts = Counter(groups)
    return np.array([1 / counts[person] for person in groups])


def units_of(model):
    """Return the centre and the unit of the targets."""
    low, high = model.target_range
    return (low + high) / 2, (high - low) / 8


def design(model, X):
    """Return the rows as the model sees them."""
    A = clipped_rows(model, X)
    if not model.fit_intercept:
        return A
    return np.hstack([A, np.full((len(A), 1), model.intercept_scaling)])


def minimiser(kind, A, mu, b, width=None, weights=1.0):
    """Return the w of least mean of weights * phi(A w) + mu / 2 |w|^2 + b.w, by Newton's method.

    `width` is that of a hinge; a largest derivative; targets of robust regression; counts, their bound.
    """

    def parts(w, curved=True):
        u = A @ w
        if kind == LOGISTIC:
            value = np.logaddexp(0, -u)
            derivative = -1 / (1 + np.exp(u))
            second_derivative = derivative * (-1 - derivative)
        elif kind == CAPPED:
            bend = math.log(1 / width - 1)
            value = np.logaddexp(0, -np.maximum(u, bend)) + width * np.maximum(bend - u, 0)
            derivative = np.maximum(-expit(-u), -width)
            second_derivative = np.where(u >= bend, derivative * (-1 - derivative), 0.0)
        elif kind == HUBER:
            root = np.hypot(1, u - width)
            # less that of predicting 0, or differences would drown
            value = u * (u - 2 * width) / (root + np.hypot(1, width))
            derivative, second_derivative = (u - width) / root, root**-3
        elif kind == POISSON:
            targets, bound = width
            rate = np.exp(np.minimum(u, math.log(bound)))
            value = rate - targets * u + bound * np.maximum(u - math.log(bound), 0.0)
            derivative, second_derivative = rate - targets, np.where(rate < bound, rate, 0.0)
        else:
            short = np.clip(1 + width - u, 0, 2 * width)
            value = short**2 / (4 * width) + np.maximum(1 - width - u, 0)
            derivative, second_derivative = -short / (2 * width), (np.abs(1 - u) <= width) / (2 * width)
        gradient = A.T @ (weights * derivative) / len(A) + mu * w + b
        value = (weights * value).mean() + mu / 2 * w @ w + b @ w
        curvature = (A.T * (weights * second_derivative)) @ A / len(A) if curved else None
        return value, gradient, curvature

    w = np.zeros(A.shape[1])
    for _ in range(200):
        value, gradient, curvature = parts(w)
        step = np.linalg.solve(curvature + mu * np.eye(len(w)), gradient)
        size = 1.0
        if gradient @ step < 1e-25:  # what is left to gain
            return w - step
        # near the minimum values differ by their rounding, which is no reason to halve the step
        highest = value + 1e-15 * max(1.0, abs(value))
        while size > 1e-9 and parts(w - size * step, False)[0] > highest - 1e-4 * size * gradient @ step:
            size /= 2
        if size <= 1e-9:
            break
        w = w - size * step
    return w


def linear_coefficients(model):
    """Return the released coefficients as :func:`linear_release` has them."""
    centre, h = units_of(model) if kind_of(model) == HUBER else (0.0, 1.0)
    coef = np.atleast_2d(model.coef_) / h
    if not model.fit_intercept:
        return coef
    return np.column_stack([coef, (model.intercept_ - centre) / h / model.intercept_scaling])


# ---- ridge regression


def ridge_target(model):
    """Return the middle of the range of the targets, and half its length."""
    low, high = model.target_range
    return (low + high) / 2, (high - low) / 2


def ridge_ball(model):
    natural = ridge_target(model)[1] / (2 * math.sqrt(model.alpha))
    return natural if model.coef_bound is None else min(natural, model.coef_bound)


def ridge_lengths(model, p):
    """Return the largest l2 and l1 norm of a row."""
    l1 = math.inf if model.data_norm_l1 is None else model.data_norm_l1
    return min(model.data_norm, l1), min(l1, math.sqrt(p) * model.data_norm)


def ridge_norm(model, p):
    """Return the norm of the noise; that of "auto" is the shorter one."""
    if model.norm != "auto":
        return model.norm
    if model.data_norm_l1 is None or model.delta > 0 or model.perturbation == "output":
        return "l2"
    (r, g), d = ridge_lengths(model, p), p + bool(model.fit_intercept)
    if model.perturbation == "objective":
        l2, l1 = ridge_change(model, "l2", p) * math.sqrt(d * (d + 1)), ridge_change(model, "l1", p)
        return "l1" if l1 * math.sqrt(2 * d) < l2 else "l2"
    whole = {
        norm: statistic_scales(clone(model).set_params(norm=norm), p)[0, 1] for norm in ("l1", "l2")
    }
    D = np.count_nonzero(np.triu(statistic_scales(clone(model).set_params(norm="l2"), p)))
    return "l1" if math.sqrt(2) * whole["l1"] * g**2 < math.sqrt(D + 1) * whole["l2"] * r**2 else "l2"


def ridge_change(model, norm, p):
    """Return how far one record moves the sum of the gradients on the ball."""
    s, Y, B = float(model.fit_intercept), ridge_target(model)[1], ridge_ball(model)
    r, g = ridge_lengths(model, p)
    R = math.hypot(r, s)
    if norm == "l2":
        return R * (2 * Y + R * B)
    x, share = np.linspace(0, 1, 100_001), R / (g + s)
    turn = np.max((2 - 2 * share * x) ** 2 - 2 * (1 - 2 * share * x) * (1 - x))
    longest = [math.sqrt(turn) * R * (g + s), math.sqrt(2) * g * (g + s)]
    if s > g:
        longest[1] = g * math.sqrt(2 * g**2 + 4 * g * s + 8 * s**2)
    return 2 * (g + s) * Y + B * min(longest)


def ridge_scales(model, n, p, persons=False):
    """Return mu and the scales of the noise in the objective and of that which is added."""
    d = p + bool(model.fit_intercept)
    rank = 2 ** math.ceil(math.log2(d)) if persons else 1
    if model.epsilon == math.inf:
        return model.alpha, 0.0, 0.0
    if model.perturbation == "output":
        change = ridge_change(model, "l2", p)
        moved = (change / n + 2 * RIDGE_RESIDUAL * change) / model.alpha
        return model.alpha, 0.0, moved / model.epsilon
    rest = (1 - RIDGE_RESIDUAL_FRACTION) * model.epsilon
    R2 = ridge_lengths(model, p)[0] ** 2 + bool(model.fit_intercept)
    mu = max(model.alpha, R2 / (n * rank * math.expm1(rest / rank / 2)))
    change = ridge_change(model, ridge_norm(model, p), p)
    linear = change / (n * (rest - rank * math.log1p(R2 / (n * mu) / rank)))
    tau = RIDGE_RESIDUAL * (change + linear * d)
    return mu, linear, 2 * tau / (mu * RIDGE_RESIDUAL_FRACTION * model.epsilon)


def ridge_statistics(model, X, y, groups=None):
    """Return the mean Gram matrix and moments of the clipped records, targets from the middle."""
    A = clipped_rows(model, X)
    if model.fit_intercept:
        A = np.hstack([A, np.ones((len(A), 1))])
    y = np.clip(y, *model.target_range) - ridge_target(model)[0]
    n = len(X) if groups is None else len(set(groups))
    weighted = A.T * (1.0 if groups is None else shares_of(groups))
    return weighted @ A / n, weighted @ y / n


def on_ball(theta, radius):
    return theta * (radius / max(radius, np.linalg.norm(theta)))


def ridge_release(model, X, y, unit, groups=None):
    """Return the coefficients, the intercept last, and the precision to expect."""
    gram, moment = ridge_statistics(model, X, y, groups)
    n, persons = (len(X), False) if groups is None else (len(set(groups)), True)
    mu, linear, output = ridge_scales(model, n, X.shape[1], persons)
    added = unit if model.perturbation == "output" else unit[1]
    b = moment if model.perturbation == "output" else moment - linear * unit[0]
    theta = ridge_minimiser(gram, b, mu, ridge_ball(model))
    return on_ball(theta + output * added, ridge_ball(model)), 0.02 * output


def ridge_minimiser(gram, b, mu, radius):
    """Return the minimiser of theta'(gram + mu)theta / 2 - b.theta over a ball."""

    def at(nu):
        return np.linalg.solve(gram + (mu + nu) * np.eye(len(b)), b)

    low, high = 0.0, 1.0
    if np.linalg.norm(at(0.0)) <= radius:
        return at(0.0)
    while np.linalg.norm(at(high)) > radius:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.linalg.norm(at(middle)) > radius else (low, middle)
    return at(high)


def ridge_coefficients(model):
    """Return the coefficients, and the intercept less the middle of the range."""
    middle = ridge_target(model)[0]
    if not model.fit_intercept:
        assert model.intercept_ == middle
        return model.coef_
    return np.append(model.coef_, model.intercept_ - middle)


def statistic_scales(model, p, epsilon_scale=None):
    """Return the scale of the noise of the released sums in units of the bounds, matrix of (q, q).

    Entries that are not released are 0. With delta the scale is that of one standard deviation,
    and `epsilon_scale` the number of them in the sensitivity.
    """
    norm = ridge_norm(model, p)
    tau, kappa = WEIGHTS[norm]
    weights = np.array([1.0] * p + [tau] * model.fit_intercept + [kappa])
    tau *= model.fit_intercept
    if norm == "l1":
        S, above = 2 * ((1 + tau + kappa) ** 2 - tau**2 - kappa**2), 0.5
    else:
        S, above = math.sqrt(2) * (1 + tau**2 + kappa**2), math.sqrt(0.5)
    S /= model.epsilon if epsilon_scale is None else epsilon_scale
    scales = np.full((len(weights), len(weights)), S * above)
    np.fill_diagonal(scales, S)
    for place in range(p, len(weights)):
        scales[place, place] = 0.0
    return scales / np.outer(weights, weights)


def released_statistics(model, released=None):
    """Return gram_ and moment_ as one matrix of sums, in units of the bounds.

    `model` has the bounds as numbers, in place of what was `released`.
    """
    released = model if released is None else released
    return _in_units(model, released.gram_, released.moment_)


def exact_statistics(model, X, y, groups=None):
    n = len(X) if groups is None else len(set(groups))
    return _in_units(model, *ridge_statistics(model, X, y, groups)) * n


def read_statistics(model, gram, moment, n, p):
    """Return the coefficients that noisy sums over n records stand for."""
    d, (r, g) = len(moment), ridge_lengths(model, p)
    unit = g if ridge_norm(model, p) == "l1" else r
    # the standard deviation of the noise of a sum beside the diagonal
    m = gaussian_root(model.epsilon, model.delta) if model.delta and model.epsilon < math.inf else None
    scales = statistic_scales(model, p, m) * unit**2
    spread = 0.0
    if model.epsilon < math.inf:
        D = (d + 1) * (d + 2) // 2 - (d + 1 - p)
        deviation = {"l1": math.sqrt(2), "l2": math.sqrt(D + 1) if m is None else 1.0}
        # (with one column and no intercept, it is the diagonal's)
        beside = scales[0, 0] / (2 if ridge_norm(model, p) == "l1" else math.sqrt(2))
        spread = deviation[ridge_norm(model, p)] * beside
    rho = spread * math.sqrt(d) / n
    values, basis = np.linalg.eigh(gram / n)
    values = values + model.alpha
    kept = values > 0
    stiffness = np.where(kept, values + rho**2 / np.where(kept, values, 1.0), np.inf)
    linear, radius = basis.T @ moment / n, ridge_ball(model)
    low, high = 0.0, 1.0
    if np.linalg.norm(linear / stiffness) <= radius:
        return basis @ (linear / stiffness)
    while np.linalg.norm(linear / (stiffness + high)) > radius:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        long = np.linalg.norm(linear / (stiffness + middle)) > radius
        low, high = (middle, high) if long else (low, middle)
    return basis @ (linear / (stiffness + high))


def _in_units(model, gram, moment):
    d = len(moment)
    p = d - model.fit_intercept
    unit = ridge_lengths(model, p)[ridge_norm(model, p) == "l1"]
    units = np.array([unit] * p + [1.0] * model.fit_intercept)
    whole = np.zeros((d + 1, d + 1))
    whole[:-1, :-1] = gram / np.outer(units, units)
    whole[:-1, -1] = whole[-1, :-1] = moment / units / ridge_target(model)[1]
    return whole


# ---- histograms


def masses_of(noisy_counts):
    kept = np.maximum(noisy_counts, 0.0)
    return kept / kept.sum() if kept.sum() else np.full(kept.shape, 1 / kept.size)


def histogram_counts(model, X):
    low, high = model.bounds
    edges = np.linspace(low, high, round((high - low) / model.bin_width) + 1)
    inside = np.clip(X, low, np.nextafter(high, low))
    return np.histogramdd(inside, bins=[edges] * X.shape[1])[0]
