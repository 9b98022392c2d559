"""Every private estimator, in variants in which any two parameters meet, with records that suit it."""

import itertools
from functools import partial

import numpy as np

from dpselect import (
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
)
from dpselect.noise import root_stream

from .covering import every_pair

N, P = 160, 3


def rows(n=N, p=P, seed=0):
    """Rows of which some are longer than 1."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)) * [1.0, 0.6, 0.3, 0.2, 0.1][:p]


def labels(n_classes, X):
    """Labels 0 to n_classes - 1 that depend on the rows, all of which occur."""
    score = X @ np.array([1.0, -0.5, 0.3, 0.2, 0.1])[: X.shape[1]]
    return np.digitize(score, np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1]))


def targets(X):
    return 0.9 * X[:, 0] - 0.4 * X[:, 1]


def _linear():
    kinds = {
        "logistic": DPLogisticRegression,
        "svc": DPLinearSVC,
        "steep": partial(DPLogisticRegression, max_derivative=None),
        "capped": partial(DPLogisticRegression, max_derivative=0.75),
    }
    for (name, kind), perturbation, (norm, l1), K, intercept in itertools.product(
        kinds.items(), ("objective", "output"), (("l2", None), ("l1", 1.0)), (2, 3), (True, False)
    ):
        yield (
            f"{name}-{perturbation}-{norm}-{K} classes-{'1' if intercept else '0'}",
            kind(
                epsilon=1.7,
                alpha=0.05,
                perturbation=perturbation,
                norm=norm,
                fit_intercept=intercept,
                data_norm=0.8,
                data_norm_l1=l1,
                intercept_scaling=0.7,
                classes=list(range(K)),
            ),
        )
    for (name, kind), (norm, l1), K in itertools.product(
        kinds.items(), (("l2", None), ("auto", 1.5)), (2, 3)
    ):
        # so little regularisation that objective perturbation adds to it
        yield (
            f"{name}-objective-{norm}-{K} classes-weak",
            kind(
                epsilon=0.9,
                alpha=1e-4,
                norm=norm,
                data_norm=1.3,
                data_norm_l1=l1,
                classes=list(range(K)),
            ),
        )
        yield (
            f"{name}-objective-{norm}-{K} classes-auto",
            kind(epsilon=2.0, norm=norm, data_norm=1.3, data_norm_l1=l1, classes=list(range(K))),
        )
    for K, rate in ((2, 0.1), (3, {0: 0.1, 1: 0.3, 2: 0.8})):
        for perturbation in ("objective", "output"):
            yield (
                f"logistic-{perturbation}-l2-{K} classes-1-base rate",
                DPLogisticRegression(
                    epsilon=1.7,
                    alpha=0.05,
                    perturbation=perturbation,
                    data_norm=0.8,
                    intercept_scaling=0.7,
                    base_rate=rate,
                    classes=list(range(K)),
                ),
            )
        for epsilon in (0.1, 1.0):
            yield (
                f"logistic-objective-auto-{K} classes-auto-base rate {epsilon}",
                DPLogisticRegression(
                    epsilon=epsilon,
                    data_norm=0.8,
                    data_norm_l1=1.5,
                    base_rate=rate,
                    classes=list(range(K)),
                ),
            )
    weights = {0: 0.5, 1: 4.0, 2: 1.5}
    yield (
        "logistic-objective-weighted-3 classes-auto",
        DPLogisticRegression(
            epsilon=2.0,
            data_norm=1.3,
            classes=[0, 1, 2],
            class_weight=weights,
        ),
    )
    yield (
        "logistic-objective-weighted-2 classes-weak",
        DPLogisticRegression(
            epsilon=0.9,
            alpha=1e-4,
            data_norm=1.3,
            classes=[0, 1],
            class_weight={0: 0.01},
            max_sample_weight=0.5,
        ),
    )
    yield (
        "logistic-output-weighted-2 classes-1",
        DPLogisticRegression(
            epsilon=1.7,
            alpha=0.05,
            perturbation="output",
            data_norm=0.8,
            classes=[0, 1],
            class_weight={1: 3.0},
        ),
    )
    yield (
        "svc-objective-weighted-3 classes-1",
        DPLinearSVC(
            epsilon=1.7,
            alpha=0.05,
            data_norm=0.8,
            norm="l1",
            data_norm_l1=1.0,
            classes=[0, 1, 2],
            class_weight=weights,
        ),
    )
    # records without weights have 1, and no more than others may
    yield (
        "huber-objective-weighted-auto",
        DPHuberRegressor(
            epsilon=1.3,
            data_norm=1.3,
            target_range=(-0.3, 0.5),
            max_sample_weight=0.25,
        ),
    )
    for perturbation, (norm, l1), intercept in itertools.product(
        ("objective", "output"), (("l2", None), ("l1", 0.9)), (True, False)
    ):
        yield (
            f"huber-{perturbation}-{norm}-{'1' if intercept else '0'}",
            DPHuberRegressor(
                epsilon=1.7,
                alpha=0.05,
                perturbation=perturbation,
                norm=norm,
                fit_intercept=intercept,
                data_norm=0.8,
                data_norm_l1=l1,
                intercept_scaling=0.7,
                target_range=(-1.0, 2.0),
            ),
        )
    for norm, l1 in (("l2", None), ("auto", 1.5)):
        yield (
            f"huber-objective-{norm}-weak",
            DPHuberRegressor(
                epsilon=0.9,
                alpha=1e-4,
                norm=norm,
                data_norm=1.3,
                data_norm_l1=l1,
                target_range=(-0.3, 0.5),
            ),
        )
        for epsilon in (1.3, 2.0):
            yield (
                f"huber-objective-{norm}-auto {epsilon}",
                DPHuberRegressor(
                    epsilon=epsilon, norm=norm, data_norm=1.3, data_norm_l1=l1, target_range=(-0.3, 0.5)
                ),
            )
    # so large a delta that Gaussian noise is the shorter one with few columns
    for (name, kind), perturbation, K, intercept in itertools.product(
        kinds.items(), ("objective", "output"), (2, 3), (True, False)
    ):
        # (with two classes and three columns the noise of the objective is not)
        yield (
            f"{name}-{perturbation}-gaussian-{K} classes-{'1' if intercept else '0'}",
            kind(
                epsilon=0.4,
                delta=0.02,
                alpha=0.05,
                perturbation=perturbation,
                fit_intercept=intercept,
                data_norm=0.8,
                intercept_scaling=0.7,
                classes=list(range(K)),
            ),
        )
    yield (
        "logistic-objective-gaussian-3 classes-auto-weighted",
        DPLogisticRegression(
            epsilon=0.9,
            delta=0.02,
            data_norm=1.3,
            classes=[0, 1, 2],
            class_weight=weights,
        ),
    )
    yield (
        "logistic-objective-gaussian-3 classes-1-base rate",
        DPLogisticRegression(
            epsilon=0.9,
            delta=0.02,
            alpha=0.05,
            data_norm=0.8,
            classes=[0, 1, 2],
            base_rate={0: 0.1, 1: 0.3, 2: 0.8},
        ),
    )
    for perturbation, alpha in itertools.product(("objective", "output"), (0.05, "auto")):
        yield (
            f"huber-{perturbation}-gaussian-{alpha}",
            DPHuberRegressor(
                epsilon=1.0,
                delta=0.02,
                alpha=alpha,
                perturbation=perturbation,
                data_norm=0.8,
                target_range=(-1.0, 2.0),
            ),
        )


def _ridge():
    for perturbation, norm, intercept in itertools.product(
        ("objective", "output", "covariance"), ("l1", "l2"), (True, False)
    ):
        for coef_bound in (None, 0.2):
            yield (
                f"ridge-{perturbation}-{norm}-{'1' if intercept else '0'}-ball {coef_bound}",
                DPRidge(
                    epsilon=1.3,
                    alpha=0.3,
                    perturbation=perturbation,
                    norm=norm,
                    data_norm=0.8,
                    target_range=(-0.9, 0.9),
                    fit_intercept=intercept,
                    coef_bound=coef_bound,
                    data_norm_l1=0.8 if norm == "l1" else None,
                ),
            )
    yield (
        "ridge-covariance-gaussian",
        DPRidge(epsilon=1.3, delta=1e-5, norm="l2", data_norm=0.8, target_range=(-0.9, 0.9)),
    )
    # the constant is longer than the rows
    yield (
        "ridge-objective-l1-short rows",
        DPRidge(
            epsilon=1.3,
            alpha=0.3,
            perturbation="objective",
            norm="l1",
            data_norm_l1=0.4,
            target_range=(-0.9, 0.9),
        ),
    )
    # "auto" is "l1" with the shorter rows, and "l2" with the others
    for perturbation, data_norm_l1, intercept in itertools.product(
        ("objective", "output", "covariance"), (0.45, 1.1, None), (True, False)
    ):
        name = f"ridge-{perturbation}-auto-{'1' if intercept else '0'}-l1 norm {data_norm_l1}"
        yield (
            name,
            DPRidge(
                epsilon=1.3,
                alpha=0.3,
                perturbation=perturbation,
                data_norm=0.7 if data_norm_l1 else 0.8,
                data_norm_l1=data_norm_l1,
                target_range=(-0.3, 1.5),
                fit_intercept=intercept,
            ),
        )
    for perturbation in ("objective", "covariance"):
        yield (
            f"ridge-{perturbation}-l1-both norms",
            DPRidge(
                epsilon=1.3,
                alpha=0.05,
                perturbation=perturbation,
                norm="l1",
                data_norm=0.35,
                data_norm_l1=0.5,
                target_range=(1.0, 1.5),
                fit_intercept=False,
            ),
        )


def _densities():
    for noise in ("laplace", "discrete_laplace"):
        yield (
            f"density-{noise}",
            DPHistogramDensity(epsilon=0.6, bounds=(-1, 1), bin_width=0.5, noise=noise),
        )


def in_pairs(models):
    """Return few of the models, in which any two parameters meet that meet in one of all."""
    return every_pair(models, lambda model: {"class": type(model).__name__, **model.get_params()})


VARIANTS = {**dict(_linear()), **dict(_ridge()), **dict(_densities())}


def variants_of(*kinds):
    """Return few of the variants of some kinds, in which any two parameters meet."""
    return in_pairs({name: model for name, model in VARIANTS.items() if isinstance(model, kinds)})


LINEAR = variants_of(DPLogisticRegression, DPLinearSVC, DPHuberRegressor)
RIDGE, DENSITY = variants_of(DPRidge), variants_of(DPHistogramDensity)
COVARIANCE = {name: model for name, model in RIDGE.items() if model.perturbation == "covariance"}
NOISY_RIDGE = {name: model for name, model in RIDGE.items() if name not in COVARIANCE}
ALL = {**LINEAR, **RIDGE, **DENSITY}


def records_for(model, n=N, p=P, seed=0):
    """Return rows, and labels or targets that the model can learn."""
    X = rows(n, p, seed)
    if isinstance(model, (DPLogisticRegression, DPLinearSVC)):
        return X, labels(len(model.classes), X)
    if isinstance(model, DPHuberRegressor):
        # some far off, some very far
        return X, targets(X) * np.resize([1.0, -1.0, 1.0, 30.0, 1e300], len(X))
    if isinstance(model, DPPoissonRegressor):
        return X, np.rint(np.exp(targets(X)))
    return (X, targets(X)) if isinstance(model, DPRidge) else (X, None)


def n_problems(model):
    K = len(getattr(model, "classes", None) or [0, 1])
    return 1 if K == 2 else K


def standard_noise(model, p=P):
    """Return the noise that a fit with the model's random state uses."""
    if isinstance(model, (DPLogisticRegression, DPLinearSVC)):
        return model.standard_noise(p, n_problems(model))
    return model.standard_noise(p)


def key(*path):
    """Return a random state of its own for each path."""
    return root_stream(20261122).child(*path)
