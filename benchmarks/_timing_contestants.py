"""Who is timed against whom in ``compare.py``."""

import numpy as np
from _timing_rounds import Contestant, Workload
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KernelDensity
from sklearn.svm import LinearSVC

from dpselect import (
    DPHistogramDensity,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    StabilityGridSearchCV,
)
from dpselect.capabilities import PublicShape

SHAPES = [(50_000, 20), (200_000, 50), (20_000, 500)]
QUICK_SHAPES = [(2_000, 5), (4_000, 10), (1_000, 50)]
KERNEL_RECORDS = {False: 5_000, True: 500}
GROWTH = {False: (1, 2, 5, 10, 20, 50, 100, 200), True: (1, 2, 5, 10, 20)}
LOGISTIC_SOLVERS = ("lbfgs", "newton-cholesky", "newton-cg")
RIDGE_SOLVERS = ("auto", "cholesky", "lsqr")
CLASSES = [0, 1]
CLASSIFIER_ALPHAS = np.geomspace(1e-4, 1, 10)
RIDGE_ALPHAS = np.geomspace(1e-3, 1, 50)
RIDGE_ALPHA = 0.01
WIDTHS = [0.5, 0.25, 0.2, 0.1, 0.05, 0.04, 0.025, 0.02, 0.01]
WIDTH = 0.05
SPLITS = KFold(5, shuffle=True, random_state=0)
OURS, SKLEARN, DIFFPRIVLIB = "dpselect", "scikit-learn", "diffprivlib"


def fits(side, label, model):
    """Return a contestant that fits a new copy of the model each time."""
    return Contestant(side, label, lambda X, y: clone(model).fit(X, y))


def public_alpha(n, d):
    """Return what alpha="auto" is at epsilon = 1."""
    return DPLogisticRegression(epsilon=1.0).calibration(PublicShape(n, d)).alpha


def logistic(shape, alpha):
    """Return single fits of logistic regression; `alpha` is a number or "auto"."""
    n, d = shape
    value = public_alpha(n, d) if alpha == "auto" else alpha
    model = DPLogisticRegression(epsilon=1.0, alpha=alpha, classes=CLASSES)
    rivals = [
        fits(SKLEARN, solver, LogisticRegression(C=1 / (n * value), solver=solver))
        for solver in LOGISTIC_SOLVERS
    ]
    request = {"contestant": "logistic", "alpha": value}
    return Workload(
        f"logistic regression, alpha = {alpha}", "labels", shape,
        [
            fits(OURS, "DPLogisticRegression", model), *rivals,
            Contestant(DIFFPRIVLIB, "LogisticRegression", request=request),
        ],
    )


def svc(shape):
    """Return single fits of a linear support vector machine."""
    n, d = shape
    return Workload(
        "linear SVC, alpha = auto", "labels", shape,
        [
            fits(OURS, "DPLinearSVC", DPLinearSVC(epsilon=1.0, classes=CLASSES)),
            fits(SKLEARN, "LinearSVC", LinearSVC(C=1 / (n * public_alpha(n, d)), dual="auto")),
        ],
    )


def ridge(shape, norm):
    """Return single fits of ridge regression."""
    n, d = shape
    # rows in the unit ball of the l2 norm, none of which is clipped
    data_norm = 1.0 if norm == "l2" else float(np.sqrt(d))
    model = DPRidge(epsilon=1.0, alpha=RIDGE_ALPHA, norm=norm, data_norm=data_norm,
        target_range=(-1, 1), data_norm_l1=data_norm if norm == "l1" else None)
    rivals = [
        fits(SKLEARN, solver, Ridge(alpha=n * RIDGE_ALPHA, solver=solver))
        for solver in RIDGE_SOLVERS
    ]
    return Workload(
        f"ridge regression, norm = {norm}", "targets", shape,
        [
            fits(OURS, "DPRidge", model), *rivals,
            Contestant(DIFFPRIVLIB, "LinearRegression", request={"contestant": "linear"}),
        ],
    )


def histogram(n, d):
    """Return single histograms of d columns."""
    bins = [round(1 / WIDTH)] * d
    return Workload(
        f"histogram, {bins[0]}^{d} cells", "uniform", (n, d),
        [
            fits(OURS, "DPHistogramDensity", DPHistogramDensity(epsilon=1.0, bin_width=WIDTH,
                bounds=(0, 1))),
            Contestant(
                "numpy", "histogramdd",
                lambda X, y: np.histogramdd(X, bins, [(0.0, 1.0)] * d, density=True),
            ),
        ],
    )


def single_fits(quick):
    """Return the workloads of one fit each."""
    shapes = QUICK_SHAPES if quick else SHAPES
    found = []
    for shape in shapes:
        found += [logistic(shape, alpha) for alpha in ("auto", 1e-4, 1e-2)]
        found.append(svc(shape))
        found += [ridge(shape, norm) for norm in ("l1", "l2")]
    return found + [histogram(n, d) for n, _ in shapes[:2] for d in (1, 2)]


def stability_search(alphas, **options):
    """Return the private search over alpha of logistic regression."""
    return StabilityGridSearchCV(
        DPLogisticRegression(classes=CLASSES), {"alpha": alphas}, epsilon=1.0, cv=SPLITS,
        **{"strategy": "stability", **options},
    )


def alpha_search(shape):
    """Return searches over alpha of logistic regression."""
    ours = [
        fits(OURS, strategy, stability_search(CLASSIFIER_ALPHAS, strategy=strategy))
        for strategy in ("stability", "auto")
    ]
    grid = {"C": 1 / (shape[0] * CLASSIFIER_ALPHAS)}
    rivals = [
        fits(SKLEARN, solver, GridSearchCV(LogisticRegression(solver=solver), grid, cv=SPLITS))
        for solver in LOGISTIC_SOLVERS
    ]
    title = f"search, {len(CLASSIFIER_ALPHAS)} alphas x 5 folds"
    return Workload(title, "labels", shape, ours + rivals)


def ridge_search(shape):
    """Return searches over alpha of ridge regression."""
    grid = {"alpha": RIDGE_ALPHAS}
    objective = DPRidge(perturbation="objective", norm="l2", target_range=(-1, 1))
    return Workload(
        f"ridge search, {len(RIDGE_ALPHAS)} alphas x 5 folds", "targets", shape,
        [
            fits(OURS, "objective, stability", StabilityGridSearchCV(
                objective, grid, epsilon=1.0, strategy="stability", cv=SPLITS)),
            fits(OURS, "covariance, auto", StabilityGridSearchCV(
                DPRidge(data_norm=float(np.sqrt(shape[1])), target_range=(-1, 1)), grid,
                epsilon=1.0, cv=SPLITS)),
            fits(SKLEARN, "auto", GridSearchCV(
                Ridge(), {"alpha": shape[0] * RIDGE_ALPHAS}, cv=SPLITS)),
        ],
    )


def density_search(n):
    """Return searches over the width of a density's cells or kernels."""
    return Workload(
        f"density search, {len(WIDTHS)} widths x 5 folds", "uniform", (n, 1),
        [
            fits(OURS, "stability", StabilityGridSearchCV(
                DPHistogramDensity(bounds=(0, 1)), {"bin_width": WIDTHS}, epsilon=1.0,
                strategy="stability",
                cv=SPLITS)),
            fits(SKLEARN, "KernelDensity", GridSearchCV(
                KernelDensity(), {"bandwidth": WIDTHS}, cv=SPLITS)),
        ],
    )


def searches(quick):
    """Return the workloads of one search each."""
    shapes = (QUICK_SHAPES if quick else SHAPES)[:2]
    found = [alpha_search(shape) for shape in shapes]
    found += [ridge_search(shape) for shape in shapes]
    return [*found, density_search(KERNEL_RECORDS[quick])]


def growth(quick):
    """Return one workload whose contestants are the searches over ever more alphas."""
    return Workload(
        "growth", "labels", (QUICK_SHAPES if quick else SHAPES)[0],
        [
            fits(OURS, str(k), stability_search(np.geomspace(1e-4, 1, k)))
            for k in GROWTH[quick]
        ],
    )
