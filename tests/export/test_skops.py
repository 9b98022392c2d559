"""A file that runs no code when it is loaded: the list of its types is complete, and no longer."""

from inspect import isclass

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from dpselect import (
    AccuracyFirstSearchCV,
    DPHistogramDensity,
    DPHuberRegressor,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    StabilityGridSearchCV,
    calibrated,
    evaluate,
    metrics,
)
from dpselect.evaluation import CalibratedModel
from dpselect.export import TRUSTED_TYPES, to_sklearn
from dpselect.export.trusted import OBJECTS
from dpselect.preprocessing import BoundedScaler, DPBoundsScaler, NormClipper, tabular_pipeline

from ..glue import cases
from .rows import POISSON, SCHEMA, X, table

sio = pytest.importorskip("skops.io")
NAMES = (
    "logistic-objective-l1-3 classes-1",
    "capped-objective-l2-2 classes-1",
    "svc-output-l2-2 classes-1",
    "huber-objective-l2-1",
    "ridge-covariance-l1-1-ball None",
    "poisson 3.0",
)
EVERYTHING = {
    "pairs": [("age", "debt"), ("income", "job")],
    "n_fourier": 3,
    "cut_points": {"income": [100.0]},
    "expansion": 2,
}
DENSITY = DPHistogramDensity(bounds=(-4, 4), bin_width=4.0)


def models():
    """Fitted models with every class that a list of types can meet, and the rows to predict."""
    for name in NAMES:
        model = {**cases.VARIANTS, **POISSON}[name]
        yield model, *cases.records_for(model)
    model = make_pipeline(
        DPBoundsScaler(), BoundedScaler((-1, 1)), NormClipper(), DPLogisticRegression(classes=[0, 1])
    )
    yield model, X, cases.labels(2, X)
    yield tabular_pipeline(SCHEMA, DPRidge(target_range=(0, 1)), **EVERYTHING), table(), np.ones(300)
    ranges = tabular_pipeline(SCHEMA, DPRidge(200.0, target_range=(0, 1)), ranges="auto")
    yield ranges, table(), np.ones(300)
    since = {"since": {"date": ["2015-01-01", "2026-12-31"], "cycles": ["year", "day"]}}
    days = np.linspace(0.0, 4000.0, 300)[:, np.newaxis]
    yield tabular_pipeline(since, DPRidge(target_range=(0, 1))), days, np.ones(300)
    yield DENSITY, X, None
    # so large a delta that noise is Gaussian with few columns
    for perturbation in ("objective", "output"):
        model = DPLogisticRegression(0.5, delta=0.05, classes=[0, 1], perturbation=perturbation)
        yield model, X, cases.labels(2, X)


def searches():
    """Searches with every kind of score, plan and evaluation, their rows and targets."""
    two, three, targets = cases.labels(2, X), cases.labels(3, X), cases.targets(X)
    model = DPLogisticRegression(classes=[0, 1])
    grid, given = {"alpha": [0.1, 1.0]}, {"epsilon": 20.0, "evaluation": 0.3}
    for score in (
        "accuracy",
        "balanced_accuracy",
        "roc_auc",
        "f1",
        "brier",
        "ramp",
        "logistic",
        "hinge",
        metrics.LogLossScore(),
    ):
        yield StabilityGridSearchCV(model, grid, scoring=score, epsilon=20.0), X, two
    # which composes a training with choices
    yield StabilityGridSearchCV(model, grid, strategy="budget_split", **given), X, two
    yield StabilityGridSearchCV(DPLogisticRegression(classes=[0, 1, 2]), {}, **given), X, three
    ridge = DPRidge(target_range=(-2, 2))
    for score in ("r2", "neg_root_mean_squared_error", None):
        yield StabilityGridSearchCV(ridge, grid, scoring=score, **given), X, targets
    yield StabilityGridSearchCV(DPHuberRegressor(target_range=(-2, 2)), grid, **given), X, targets
    yield StabilityGridSearchCV(DPPoissonRegressor(target_bound=3), grid, **given), X, three
    yield StabilityGridSearchCV(DENSITY, {}, **given), X, None
    levels = {"epsilon": np.geomspace(0.1, 50, 5)}
    first = DPLogisticRegression(classes=[0, 1], alpha=0.1)
    yield AccuracyFirstSearchCV(first, levels, target=0.5, max_epsilon=50, evaluation=0.3), X, two


def calibrations():
    """What `calibrated` returns, of two and of more classes."""
    two, three = cases.labels(2, X), cases.labels(3, X)
    model = DPLogisticRegression(1e3, classes=[0, 1]).fit(X, two)
    yield calibrated(model, evaluate(model, X.copy(), two, epsilon=1e3), rate=0.9)
    model = DPLogisticRegression(1e3, classes=[0, 1, 2]).fit(X, three)
    yield calibrated(model, evaluate(model, X.copy(), three, epsilon=1e3, confidence=True))


def types_after(form, rows=None):
    """Save and load; return what the file holds that is no default of skops."""
    file = sio.dumps(form)
    loaded = sio.loads(file, trusted=TRUSTED_TYPES)
    if hasattr(form, "privacy_"):
        assert loaded.privacy_ == form.privacy_
        assert loaded.privacy_.adjacency is form.privacy_.adjacency  # which knows its unit
    if rows is not None:
        method = "predict" if hasattr(form, "predict") else "score_samples"
        new = rows.copy()
        assert np.array_equal(getattr(loaded, method)(new), getattr(form, method)(new))
    return {*sio.get_untrusted_types(data=file)}


def plain_twins():
    """Models of scikit-learn alone, and their rows."""
    for model, rows, y in models():
        if y is not None:
            yield to_sklearn(clone(model).fit(rows, y)), rows
    model = DPLogisticRegression(classes=[0, 1]).fit(X, cases.labels(2, X))
    evaluation = evaluate(model, X.copy(), cases.labels(2, X), epsilon=1.0)
    yield CalibratedModel(model, evaluation, threshold=0.5).to_sklearn(), X


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:scoring=")  # which has no part in these choices
def test_the_list_is_what_files_hold():
    needed = set()
    for model, rows, y in (*models(), *searches()):
        needed |= types_after(clone(model).fit(rows, y), rows)
    for model in calibrations():
        needed |= types_after(model, X)
    for plain, rows in plain_twins():
        found = types_after(plain, rows)
        assert not any(name.startswith("dpselect") for name in found)
        needed |= found
    assert sorted(needed) == TRUSTED_TYPES


# --- what is in the list


def opens_or_calls(kinds):
    """Classes of which objects do more than hold attributes, when skops makes them."""
    doing = {"open", "eval", "exec", "compile", "__import__", "import_module", "system", "connect"}
    found = set()
    for kind in kinds:
        for name in ("__new__", "__init__", "__post_init__", "__setstate__", "__setitem__"):
            code = getattr(getattr(kind, name, None), "__code__", None)
            if code is not None and doing & {*code.co_names}:
                found.add(kind)
    return found


class Opens:
    def __setstate__(self, state):
        self.file = open(state["path"])


def test_no_class_of_the_list_opens_a_file_or_runs_code_when_it_is_made():
    assert all(isclass(kind) and kind.__module__.startswith("dpselect.") for kind in OBJECTS)
    assert opens_or_calls(OBJECTS) == set()
    assert opens_or_calls([*OBJECTS, Opens]) == {Opens}  # the broken twin
    assert not any("ledger" in name.lower() for name in TRUSTED_TYPES)
    # or skops would take a method of one type for another type
    methods = tuple(f"{name}." for name in TRUSTED_TYPES)
    assert not [name for name in TRUSTED_TYPES if name.startswith(methods)]
