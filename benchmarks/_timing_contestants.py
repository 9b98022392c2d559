"""Who is timed against whom in ``compare.py``.

An environment with another version of dpselect imports this too, and has little else.
"""

import math
from functools import partial

import numpy as np
from _timing_data import records
from _timing_rounds import OURS, Contestant, Workload
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.svm import LinearSVC

from dpselect import (
    DPHistogramDensity,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    StabilityGridSearchCV,
)
from dpselect.noise import as_generator, grid_laplace
from dpselect.records.public_shape import PublicShape

TALL = [(50_000, 20), (200_000, 50)]
SQUARE = (20_000, 500)
SMALL = [(200, 5), (2_000, 10)]
WIDE = [(5_000, 2_000), (20_000, 2_000), (10_000, 4_000)]
SPARSE = [(20_000, 1_000), (20_000, 2_000), (20_000, 50_000), (200_000, 10_000)]
JOBS = [(20_000, 20), (200_000, 50)]
CELLS = 125_000
SEVERAL = (1, 2, 5, 10, 20, 50, 100, 200)
LOGISTIC_SOLVERS = ("lbfgs", "newton-cholesky", "newton-cg")
# these form no matrix of d x d
WIDE_SOLVERS = ("lbfgs", "newton-cg")
RIDGE_SOLVERS = ("auto", "cholesky", "lsqr")
CLASSES = [0, 1]
CLASSIFIER_ALPHAS = np.geomspace(1e-4, 1, 10)
RIDGE_ALPHAS = np.geomspace(1e-3, 1, 50)
MANY_ALPHAS = np.geomspace(1e-4, 1, 200)
THREE_ALPHAS = [0.01, 0.1, 1.0]
RIDGE_ALPHA = 0.01
WIDTH = 0.05
SPLITS = KFold(5, shuffle=True, random_state=0)
SKLEARN, AS_EXACT = "scikit-learn", "scikit-learn, as exact"
DIFFPRIVLIB, ONE_FIT, ONE_JOB = "diffprivlib", "one fit", "n_jobs=1"
# a gradient of scikit-learn's lbfgs that is as short leaves about as much as our tol, relative to alpha
EXACT_TOL = 1e-9


def fits(side, label, model):
    """Return a contestant that fits a new copy of the model each time."""
    return Contestant(side, label, lambda X, y: clone(model).fit(X, y))


def elsewhere(side, label, name, **request):
    """Return a contestant of another environment."""
    return Contestant(side, label, request={"contestant": name, **request})


def public_alpha(n, d):
    """Return what alpha="auto" is at epsilon = 1."""
    return DPLogisticRegression(epsilon=1.0).calibration(PublicShape(n, d)).alpha


def dp_sgd_alone(X, y):
    """Fit the DP-SGD of ``private_models.py`` to columns on [-1, 1]."""
    import pandas as pd
    from _peers import dp_sgd

    columns = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    schema = dict.fromkeys(columns, (-1.0, 1.0))
    return dp_sgd(columns, y, columns[:1], schema, "classes", (0.0, 1.0), 1.0, 1e-6, 0)


def logistic(
    part, shape, alpha, kind="labels", solvers=LOGISTIC_SOLVERS, exact=False, peers=False, rounds=5
):
    """Return single fits of logistic regression; `alpha` is a number or "auto"."""
    n, d = shape
    value = public_alpha(n, d) if alpha == "auto" else alpha
    C = 1 / (n * value)
    found = [fits(OURS, "DPLogisticRegression", DPLogisticRegression(alpha=alpha, classes=CLASSES))]
    found += [fits(SKLEARN, s, LogisticRegression(C=C, solver=s, max_iter=1000)) for s in solvers]
    if exact:
        found += [
            fits(AS_EXACT, s, LogisticRegression(C=C, solver=s, max_iter=10_000, tol=EXACT_TOL))
            for s in solvers[:1]
        ]
    if kind == "labels" and part != "wide":
        found.append(elsewhere(DIFFPRIVLIB, "LogisticRegression", "logistic", alpha=value))
    if peers:
        found += [
            elsewhere("dask-ml, not private", "LogisticRegression", "on_dask", alpha=value),
            elsewhere("InterpretML", "DP-EBM", "boosting"),
            Contestant("DP-SGD in numpy", "200 steps", dp_sgd_alone),
        ]
    task = f"logistic regression, alpha = {alpha}" + (", CSR" if kind == "sparse" else "")
    return Workload(part, task, kind, shape, found, rounds)


def svc(part, shape):
    """Return single fits of a linear support vector machine."""
    n, d = shape
    return Workload(
        part,
        "linear SVC",
        "labels",
        shape,
        [
            fits(OURS, "DPLinearSVC", DPLinearSVC(epsilon=1.0, classes=CLASSES)),
            fits(SKLEARN, "LinearSVC", LinearSVC(C=1 / (n * public_alpha(n, d)), dual="auto")),
        ],
    )


def ridge(part, shape, norm, solvers=RIDGE_SOLVERS, rounds=5):
    """Return single fits of ridge regression."""
    n, d = shape
    # rows in the unit ball of the l2 norm, none of which is clipped
    data_norm = 1.0 if norm == "l2" else float(np.sqrt(d))
    model = DPRidge(
        epsilon=1.0,
        alpha=RIDGE_ALPHA,
        norm=norm,
        data_norm=data_norm,
        target_range=(-1, 1),
        data_norm_l1=data_norm if norm == "l1" else None,
    )
    rivals = [fits(SKLEARN, s, Ridge(alpha=n * RIDGE_ALPHA, solver=s)) for s in solvers]
    return Workload(
        part,
        f"ridge regression, norm = {norm}",
        "targets",
        shape,
        [
            fits(OURS, "DPRidge", model),
            *rivals,
            elsewhere(DIFFPRIVLIB, "LinearRegression", "linear"),
        ],
        rounds,
    )


def histogram(n, d):
    """Return single histograms of d columns."""
    bins = [round(1 / WIDTH)] * d
    model = DPHistogramDensity(epsilon=1.0, bin_width=WIDTH, bounds=(0, 1))
    return Workload(
        "single",
        f"histogram, {bins[0]}^{d} cells",
        "uniform",
        (n, d),
        [
            fits(OURS, "DPHistogramDensity", model),
            Contestant(
                "numpy",
                "histogramdd",
                lambda X, y: np.histogramdd(X, bins, [(0.0, 1.0)] * d, density=True),
            ),
        ],
    )


def prediction(shape):
    """Return predictions of sparse rows."""
    ours, theirs = DPLogisticRegression(classes=CLASSES, alpha=0.01), LogisticRegression(C=0.01)

    def predict(model, X):
        # fitted in the first round, which is not counted
        if not hasattr(model, "coef_"):
            model.fit(*records("sparse", *shape))
        return model.predict(X)

    return Workload(
        "sparse",
        "predict, CSR",
        "sparse",
        shape,
        [
            Contestant(OURS, type(ours).__name__, lambda X, y: predict(ours, X)),
            Contestant(SKLEARN, type(theirs).__name__, lambda X, y: predict(theirs, X)),
        ],
    )


def stability_search(alphas, **options):
    """Return the private search over alpha of logistic regression."""
    return StabilityGridSearchCV(
        DPLogisticRegression(classes=CLASSES),
        {"alpha": alphas},
        epsilon=1.0,
        cv=SPLITS,
        **{"strategy": "stability", **options},
    )


def alpha_search(shape):
    """Return searches over alpha of logistic regression."""
    grid = {"C": 1 / (shape[0] * CLASSIFIER_ALPHAS)}
    return Workload(
        "search",
        f"search, {len(CLASSIFIER_ALPHAS)} alphas x 5 folds",
        "labels",
        shape,
        [
            *(
                fits(OURS, f'strategy="{name}"', stability_search(CLASSIFIER_ALPHAS, strategy=name))
                for name in ("stability", "auto")
            ),
            *(
                fits(SKLEARN, solver, GridSearchCV(LogisticRegression(solver=solver), grid, cv=SPLITS))
                for solver in LOGISTIC_SOLVERS[:2]
            ),
        ],
        2,
    )


def ridge_search(shape):
    """Return searches over alpha of ridge regression."""
    grid = {"alpha": RIDGE_ALPHAS}
    covariance = DPRidge(data_norm=math.sqrt(shape[1]), target_range=(-1, 1))
    task = f"ridge search, {len(RIDGE_ALPHAS)} alphas x 5 folds"
    return Workload(
        "search",
        task,
        "targets",
        shape,
        [
            fits(OURS, "objective, stability", of_ridge(RIDGE_ALPHAS)),
            fits(
                OURS, "covariance, auto", StabilityGridSearchCV(covariance, grid, epsilon=1.0, cv=SPLITS)
            ),
            fits(SKLEARN, "auto", GridSearchCV(Ridge(), {"alpha": shape[0] * RIDGE_ALPHAS}, cv=SPLITS)),
        ],
        1,
    )


def beside_one_fit(shape, alphas, rounds=5):
    """Return searches over alpha beside one fit of ours, with about the alpha that they choose."""
    one = DPLogisticRegression(alpha="auto", classes=CLASSES)
    return Workload(
        "search",
        f"search, {len(alphas)} alphas",
        "labels",
        shape,
        [
            *(
                fits(OURS, f'strategy="{name}"', stability_search(alphas, strategy=name))
                for name in ("auto", "stability")[: 1 + (len(alphas) < 10)]
            ),
            fits(ONE_FIT, "DPLogisticRegression", one),
        ],
        rounds,
    )


def two_jobs(shape):
    """Return the search whose passes two threads share beside that of one."""
    several = stability_search(CLASSIFIER_ALPHAS).set_params(estimator__n_jobs=2)
    return Workload(
        "jobs",
        f"search, {len(CLASSIFIER_ALPHAS)} alphas x 5 folds",
        "labels",
        shape,
        [
            fits(OURS, "n_jobs=2", several),
            fits(ONE_JOB, "n_jobs=1", stability_search(CLASSIFIER_ALPHAS)),
        ],
        2,
    )


def of_ridge(alphas):
    """Return the private search over alpha of ridge regression."""
    model = DPRidge(perturbation="objective", norm="l2", target_range=(-1, 1))
    return StabilityGridSearchCV(model, {"alpha": alphas}, epsilon=1.0, strategy="stability", cv=SPLITS)


def public(task, call):
    """Return what needs no records."""
    return Workload(
        "public", task, "uniform", (1, 1), [Contestant(OURS, "alone", lambda X, y: call())], 3
    )


def plan(of, search, n, d):
    """Return what a search, which `search` makes, decides before any record is read."""
    return public(f"plan, {of}", partial(search().plan, n, d))


def grid_noise():
    """Return the noise of many counts."""
    return public(
        f"noise on a grid for {CELLS:,} counts",
        lambda: grid_laplace(as_generator(), np.zeros(CELLS), 1.0, 1.0),
    )


def growth():
    """Return one workload whose contestants are the searches over ever more alphas."""
    return Workload(
        "growth",
        "search by stability",
        "labels",
        TALL[0],
        [fits(OURS, str(k), stability_search(np.geomspace(1e-4, 1, k))) for k in SEVERAL],
        1,
    )


def makers():
    """Return functions that make a workload each; another version of dpselect may refuse some."""
    found = []
    for shape in SMALL:
        found += [partial(logistic, "small", shape, alpha) for alpha in ("auto", 1e-2)]
        found.append(partial(svc, "small", shape))
        found += [partial(ridge, "small", shape, norm) for norm in ("l1", "l2")]
    for shape in (*TALL, SQUARE):
        found.append(partial(logistic, "single", shape, "auto", peers=shape == TALL[0]))
        found += [partial(logistic, "single", shape, alpha) for alpha in (1e-4, 1e-2)]
        found.append(partial(svc, "single", shape))
        found += [partial(ridge, "single", shape, norm) for norm in ("l1", "l2")]
    found += [partial(histogram, n, d) for n, _ in TALL for d in (1, 2)]
    for shape in WIDE:
        found += [
            partial(logistic, "wide", shape, alpha, solvers=WIDE_SOLVERS, exact=True, rounds=2)
            for alpha in ("auto", 1e-4)
        ]
    found += [partial(ridge, "wide", WIDE[1], norm, ("cholesky",), rounds=2) for norm in ("l1", "l2")]
    for shape in SPARSE:
        found.append(
            partial(
                logistic, "sparse", shape, "auto", "sparse", ("lbfgs",), exact=shape[0] < 1e5, rounds=2
            )
        )
    found.append(partial(prediction, SPARSE[2]))
    found += [partial(kind, TALL[0]) for kind in (alpha_search, ridge_search)]
    found.append(partial(beside_one_fit, SMALL[1], THREE_ALPHAS))
    found.append(partial(beside_one_fit, (20_000, 20), MANY_ALPHAS, 3))
    found += [partial(two_jobs, shape) for shape in JOBS]
    found += [
        partial(
            plan,
            f'200 alphas, strategy="{name}"',
            partial(stability_search, MANY_ALPHAS, strategy=name),
            20_000,
            20,
        )
        for name in ("auto", "stability")
    ]
    found += [
        partial(
            plan, "50 alphas of ridge, 1,000 columns", partial(of_ridge, RIDGE_ALPHAS), 20_000, 1_000
        ),
        partial(
            plan,
            "10 alphas, 100,000 columns",
            partial(stability_search, CLASSIFIER_ALPHAS),
            1_000_000,
            100_000,
        ),
    ]
    return [*found, grid_noise, growth]


def workloads():
    """Return all workloads."""
    return [make() for make in makers()]
