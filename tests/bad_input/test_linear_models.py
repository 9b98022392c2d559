"""Bad input for private linear models."""

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from dpselect import DPHuberRegressor, DPLinearSVC, DPLogisticRegression, DPRidge

from .properties import attempt, cases, check_error, check_fit
from .values import GOOD_LABELS, NUMBERS, changes, records

ROWS = np.random.default_rng(1).random((20, 2))
LABELS = np.arange(20) % 2
ODD = (1.0, np.float16(0.3), np.float32(2.0), np.int8(100), Fraction(1, 3), 1e-9)
SHARED = {
    "epsilon": (*ODD, float("inf")),
    "alpha": (*ODD, 1e-300, 1e300),
    "data_norm": (*ODD, 1e-100, 1e100),
    "fit_intercept": (True, False),
    "norm": ("l1", "l2"),
    "random_state": (0, None, np.random.SeedSequence(3)),
}
# (a thousandth of it hides the solver's residual)
DELTA = {"delta": (0, 0.0, 1e-300, 1e-6, np.float16(0.3), Fraction(1, 3), 1 - 1e-9)}
TWO_NORMS = {"norm": ("auto", "l1", "l2"), "data_norm_l1": (None, *ODD, 1e-100, 1e100)}


def predict(model):
    predicted = model.predict(ROWS[:, : model.n_features_in_])
    assert predicted.shape == (20,)
    return predicted


@cases(
    1000,
    kind=st.sampled_from([DPLogisticRegression, DPLinearSVC]),
    params=changes(
        **SHARED | TWO_NORMS | DELTA,
        perturbation=("objective", "output"),
        intercept_scaling=ODD,
        tol=(1e-10, 1e-12),
        max_iter=(0, 1, np.int8(100)),
        n_jobs=(None, 1, 2),
        classes=([0, 1], [0, 1, 2], (1, 0), np.array([0, 1]), None),
        class_weight=(None, {0: 0.5, 1: 2}, {1: Fraction(1, 3)}, {np.int8(0): np.float16(0.3)}, {}),
        max_sample_weight=(None, *ODD, 1e-100, 1e100),
    ),
    data=records(),
    again=st.booleans(),
)
def test_classifiers(kind, params, data, again):
    return check_fit(
        kind(classes=[0, 1], random_state=0),
        params,
        data,
        good=(ROWS, LABELS) if again else None,
        use=predict,
        loss=lambda model: float(model.epsilon),
    )


@cases(
    750,
    params=changes(
        **SHARED,
        perturbation=("covariance", "objective", "output"),
        delta=(0.0, 1e-6, 0.5),
        target_range=(*ODD, (-1e-100, 1e-100), (-1e100, 1e100), (2, 1)),
        data_norm_l1=(None, *ODD),
        coef_bound=(None, *ODD),
    ),
    data=records({**GOOD_LABELS, **NUMBERS}),
    again=st.booleans(),
)
def test_ridge(params, data, again):
    return check_fit(
        DPRidge(random_state=0, target_range=(-1, 1)),
        params,
        data,
        good=(ROWS, ROWS[:, 0]) if again else None,
        use=predict,
        loss=lambda model: float(model.epsilon),
    )


@cases(
    500,
    params=changes(
        **SHARED | TWO_NORMS | DELTA,
        perturbation=("objective", "output"),
        intercept_scaling=ODD,
        tol=(1e-10, 1e-12),
        max_sample_weight=(None, *ODD, 1e-100, 1e100),
        target_range=(
            (0, 1),
            [-1e100, 1e100],
            np.array([-5, 5], np.int8),
            (np.float16(0.3), Fraction(1, 3)),
            (0, 1e-99),
            (1e99, 1e100),
        ),
    ),
    data=records({**GOOD_LABELS, **NUMBERS}),
    again=st.booleans(),
)
def test_huber(params, data, again):
    return check_fit(
        DPHuberRegressor(target_range=(-1, 1), random_state=0),
        params,
        data,
        good=(ROWS, ROWS[:, 0]) if again else None,
        use=predict,
        loss=lambda model: float(model.epsilon),
    )


@cases(
    150,
    model=st.sampled_from(
        [
            kind.fit(ROWS, LABELS)
            for kind in (
                DPLogisticRegression(classes=[0, 1]),
                DPRidge(target_range=(-1, 1)),
                DPLinearSVC(classes=[0, 1]),
                DPHuberRegressor(target_range=(0, 1)),
            )
        ]
    ),
    data=records(),
)
def test_predict(model, data):
    found = attempt(lambda: model.predict(data[0]))
    if found.error is None:
        assert len(found.value) == data[0].shape[0] if hasattr(data[0], "shape") else len(data[0])
        return "result"
    check_error(found.error, ())
    return "error"
