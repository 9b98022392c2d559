"""Settings of releases about a model that is there, of which any two meet, and what they stand for.

Evaluations, by groups or not, intervals and calibrations, of models of every kind with the settings of a
fit; and settings of searches that decide nothing of what is released.
"""

import math
from functools import cache

import numpy as np

from dpselect import calibrated, coef_interval, evaluate
from dpselect.metrics import get_score

from . import pairs
from .covering import covering_array
from .pairs import FIT_AXES, LABELS, SEARCH_AXES, TAKES, N

AT_ONCE = ("evaluation", "confidence", "sigmoid", "isotonic", "threshold")
RELEASE_AXES = {
    "release": [*AT_ONCE, "intervals"],
    "kind": [*FIT_AXES["kind"], "density"],
    "levels": [1, 2, 3, 8],
    # what sets the loss or its range, as for other fits, or in another way
    "ends": ["usual", "other"],
    "labels": FIT_AXES["labels"],
    "where": FIT_AXES["where"],
    "norm": ["l2", "l1", "auto"],
    "data_norm": ["given", "auto"],
    "data_norm_l1": ["none", "given"],
    "intercept": [1.0, 0.0, 0.7],
    "base_rate": ["none", "given"],
    "class_weight": ["none", "some", "all"],
    "sample_weight": ["none", "given"],
    "groups": ["none", "integers", "objects"],
    "alpha": [0.05, "auto"],
    "delta": [0.0, 0.02],
    "columns": [2, 5],
    # (each that a fit reads in a way of its own)
    "container": ["C", "int16", "csr", "frame", "list", "chunks"],
    "step": ["none", "bounds"],
    # of the release
    "epsilon": [1.0, 20.0, math.inf],
    "state": ["integer", "none"],
    "ledger": ["none", "given", "open"],
    "pieces": ["whole", "small"],
}
OF_DENSITIES = {
    "release": {"evaluation"},
    "labels": {"-"},
    "where": {"objective"},
    "norm": {"l2"},
    "data_norm": {"given"},
    "data_norm_l1": {"none"},
    "intercept": {1.0},
    "base_rate": {"none"},
    "class_weight": {"none"},
    "sample_weight": {"none"},
    "alpha": {0.05},
    "delta": {0.0},
    "step": {"none"},
    "container": {*RELEASE_AXES["container"]} - {"csr"},
}
CALIBRATED = {"confidence", "sigmoid", "isotonic", "threshold"}
REFUSED = [
    *pairs.REFUSED,
    ("release", CALIBRATED, "kind", {"svc", "huber", "poisson", "ridge", "density"}),
    ("release", CALIBRATED, "labels", {"-"}),
    ("release", CALIBRATED, "where", {"covariance"}),
    ("release", {"confidence"}, "labels", {"two", "two texts"}),
    ("release", {"threshold"}, "labels", {"three", "four texts"}),
    # noise hides where a threshold should be
    ("release", {"threshold"}, "epsilon", {1.0}),
    ("release", {"intervals"}, "levels", {2, 3, 8}),
    ("release", {"intervals"}, "kind", {"density"}),
]


def meet(axis, value, other_axis, other):
    """Tell whether some release takes two values."""
    for a, values, b, others in REFUSED:
        for (one, first), (two, second) in (
            ((axis, value), (other_axis, other)),
            ((other_axis, other), (axis, value)),
        ):
            if (one, two) == (a, b) and first in values and second in others:
                return False
    takes = {**TAKES, "density": OF_DENSITIES}
    given = dict([(axis, value), (other_axis, other)])
    kinds = [given["kind"]] if "kind" in given else takes
    return any(all(v in takes[kind].get(a, [v]) for a, v in given.items()) for kind in kinds)


@cache
def release_rows(seed=0):
    """Return rows of settings of releases by their names, with their place among them."""
    rows = covering_array(RELEASE_AXES, meet, seed)
    return {f"{i} {row['release']} {row['kind']}": row | {"place": i} for i, row in enumerate(rows)}


# ---- the model


def other_ends(kind):
    """Return the parameters that set a loss or a range, in another way than usual, and the solver's."""
    solver = {"tol": 1e-11, "max_iter": 5000}
    return {
        "logistic": {**solver, "max_derivative": 0.8},
        "steep": {**solver, "max_derivative": "auto"},
        "capped": {**solver, "max_derivative": 0.7},
        "svc": {**solver, "huber_width": 1.5},
        "huber": {**solver, "target_range": (-2.0, 0.5)},
        "poisson": {**solver, "target_bound": 6.0},
        "ridge": {"target_range": (0.1, 0.7), "coef_bound": 0.3},
        "density": {"bounds": (-6, 8), "noise": "laplace"},
    }[kind]


def model_of(row):
    """Return the private model of a row, unfitted, with an epsilon at which it says something."""
    other = other_ends(row["kind"]) if row["ends"] == "other" else {}
    if row["kind"] == "density":
        given = {"bounds": (-4, 6), "bin_width": 2.0, "random_state": 3, "epsilon": 30.0}
        return pairs.DPHistogramDensity(**given | other)
    return pairs.estimator_of(row | {"epsilon": 30.0}, 3, **other)


def split(row):
    """Return what a fit of the row takes by names: of a Pipeline those of its last step."""
    piped = row["step"] == "bounds"
    return lambda params: {f"{last_step(row)}__{k}" if piped else k: v for k, v in params.items()}


def last_step(row):
    return model_of(row).steps[-1][0]


class Records:
    """Rows of a row of settings, with all that belongs to them."""

    def __init__(self, row, seed):
        self.X = pairs.integers(N, row["columns"], seed)
        self.y = pairs.targets_of(row, self.X, seed) if row["kind"] != "density" else None
        self.weight, self.groups = pairs.weights_of(row, N, seed), pairs.groups_of(row, N, 0)
        rng = np.random.default_rng(seed + 11)
        self.by = None if row["levels"] == 1 else rng.integers(row["levels"], size=N)

    @property
    def n(self):
        """int : Records, or persons."""
        return N if self.groups is None else len(set(self.groups))

    def params(self):
        found = {"sample_weight": self.weight, "groups": self.groups}
        return {name: value for name, value in found.items() if value is not None}


def fitted(row, seed=5):
    """Return the model of a row: of records that no release is about."""
    records, model = Records(row, seed), model_of(row)
    return model.fit(records.X, records.y, **split(row)(records.params()))


def target_range(model):
    last = model[-1] if hasattr(model, "steps") else model
    bound = getattr(last, "target_bound", None)
    return (0.0, bound) if bound else last.target_range


def release(row, model, records, container=None, ledger=None, state=None):
    """Release what a row says, about records in a container."""
    container = row["container"] if container is None else container
    X = pairs.contained(records.X, container)
    y = None if records.y is None else pairs.labels_in(records.y, container)
    given = {"ledger": ledger, "random_state": state}
    if row["release"] == "intervals":
        # of matrices little is known at small epsilons
        given |= {"epsilon": 1000 * row["epsilon"], "n_samples": records.n, **records.params()}
        return coef_interval(model, X, y, **given)
    if row["levels"] > 1:
        given |= {"by": records.by, "levels": range(row["levels"])}
    given |= records.params()
    if records.weight is not None:
        given["max_weight"] = 2.0
    if row["kind"] in ("huber", "ridge", "poisson"):
        given["target_range"] = target_range(model)
    if row["ends"] == "other" and len(LABELS.get(row["labels"], ())) == 2:
        given["thresholds"] = 0.3
    several = row["release"] in CALIBRATED and len(LABELS[row["labels"]]) > 2
    return evaluate(model, X, y, epsilon=row["epsilon"], confidence=several, **given)


def post_processed(row, model, evaluation):
    """Return the model that an evaluation calibrates, or None if the row asks for none."""
    if row["release"] not in ("sigmoid", "isotonic", "threshold"):
        return None
    if row["release"] == "threshold":
        asked = [{"recall": 0.6}, {"precision": 0.05}, {"rate": 0.4}][row["place"] % 3]
        return calibrated(model, evaluation, method=None, **asked)
    return calibrated(model, evaluation, method=row["release"])


# ---- searches

# of a search, beside those of SEARCH_AXES: settings that are the same to all candidates
LAW_AXES = {
    **{axis: SEARCH_AXES[axis] for axis in ("strategy", "kind", "labels", "norm", "class_weight")},
    **{axis: SEARCH_AXES[axis] for axis in ("sample_weight", "groups", "delta", "evaluation", "where")},
    "epsilon": [40.0],
    "vary": ["alpha", "data_norm"],
    "data_norm": ["given", "auto"],
    "fraction": ["auto", 0.3],
    "scoring": ["by default", "given"],
    "n_jobs": [None, 1],
    "error_score": ["raise", np.float64(0.0)],
    "ends": ["usual", "other"],
}


@cache
def law_rows(seed=0):
    """Return rows of settings of searches by their names."""
    rows = covering_array(LAW_AXES, pairs.meet_in_a_search, seed)
    usual = {axis: values[0] for axis, values in SEARCH_AXES.items() if axis not in LAW_AXES} | {
        "alpha": 0.1,
        "ledger": "given",
        "base_rate": "none",
    }
    return {
        f"{i} {row['strategy']} {row['kind']}": usual | row | {"place": i} for i, row in enumerate(rows)
    }


def search_of(row, n, state, **parameters):
    """Return the search of a row."""
    search = pairs.search_of(row, n, state, **parameters)
    if row["ends"] == "other":
        search.estimator.set_params(**other_ends(row["kind"]))
    score = get_score(search.estimator.default_scoring, model=search.estimator)
    return search.set_params(
        selection_fraction=row["fraction"],
        scoring=score if row["scoring"] == "given" else None,
        **{name: row[name] for name in ("n_jobs", "error_score")},
    )
