"""Sizes beyond all sense: each number at each extreme gives a valid model, or one sentence."""

import numpy as np
import pytest
from sklearn.base import clone

from dpselect import (
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    StabilityGridSearchCV,
)
from dpselect.preprocessing import BoundedScaler, DPBoundsScaler, NormClipper

from .properties import check_fit

SIZES = (5e-324, 1e-160, 1e-100, 1e100, 1e160, 1.7e308)
RANGES = tuple(pair for size in SIZES for pair in ((0, size), (-size, size), (size, 2 * size)))
INTERVALS = ("target_range", "bounds")
# what they count or hold has a size of another kind
OTHERS = ("max_iter", "random_state", "ledger", "n_jobs")
ROWS = np.random.default_rng(1).random((20, 2))
COUNTS = np.arange(20) % 3
PERTURBATIONS = [{"perturbation": name} for name in ("objective", "output")]
OF_LINEAR = [*PERTURBATIONS, *({**p, "delta": 1e-6} for p in PERTURBATIONS), {"norm": "l1"}]
MODELS = (
    *((DPLogisticRegression(classes=[0, 1, 2]), COUNTS, more) for more in OF_LINEAR),
    *((DPLinearSVC(classes=[0, 1]), COUNTS % 2, more) for more in OF_LINEAR),
    *((DPHuberRegressor(target_range=(-1, 1)), ROWS[:, 0], more) for more in OF_LINEAR),
    *((DPPoissonRegressor(target_bound=3.0), COUNTS, more) for more in OF_LINEAR),
    *(
        (DPRidge(target_range=(-1, 1)), ROWS[:, 0], more)
        for more in (*PERTURBATIONS, {}, {"delta": 1e-6})
    ),
    (DPHistogramDensity(bin_width=0.5, bounds=(0, 1)), None, {}),
    (BoundedScaler((0, 1)), None, {}),
    (NormClipper(), None, {}),
    (DPBoundsScaler(), None, {}),
)
NAMES = [f"{type(model).__name__} {more}" for model, _, more in MODELS]


def use(model):
    for name in ("predict", "decision_function", "score_samples", "transform"):
        if hasattr(model, name):
            found = getattr(model, name)(ROWS)
            # the logarithm of a density of 0 is -inf
            return np.exp(found) if name == "score_samples" else found


@pytest.mark.parametrize("model, y, more", MODELS, ids=NAMES)
def test_fits(model, y, more):
    ends = set()
    for name in model.get_params(deep=False):
        if name in OTHERS:
            continue
        for value in RANGES if name in INTERVALS else SIZES:
            params = {"random_state": 0, **more, name: value}
            if "random_state" not in model.get_params():
                params.pop("random_state")
            try:
                ends.add(check_fit(clone(model), params, (ROWS, y), use=use))
            except AssertionError as error:
                raise AssertionError(f"{name}={value!r}") from error
    assert ends == {"error", "result"}


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["optimal_risk", "stability", "data_independent"])
@pytest.mark.parametrize("model, y, more", MODELS[:24], ids=NAMES[:24])
def test_searches(model, y, more, strategy):
    """Candidates of the most different sizes are compared, or refused before any is trained."""
    rows, targets = np.tile(ROWS, (1000, 1)), np.tile(y, 1000)
    for name in ("alpha", "data_norm"):
        for value in SIZES:
            search = StabilityGridSearchCV(
                clone(model).set_params(**more),
                {name: [value, 1.0]},
                strategy=strategy,
                epsilon=1.0,
            )
            try:
                check_fit(search, {"random_state": 0}, (rows, targets), use=use)
            except AssertionError as error:
                raise AssertionError(f"{name}={value!r}") from error
