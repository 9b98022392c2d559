"""Bad input for the histogram density."""

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from dpselect import DPHistogramDensity

from .properties import attempt, cases, check_error, check_fit
from .values import changes, tables

ROWS = np.random.default_rng(1).random((20, 2))
FITTED = DPHistogramDensity(bin_width=0.25, bounds=(0, 1)).fit(ROWS)


def use(density):
    rows = density.sample(20, random_state=0)
    found = density.score_samples(rows)
    assert found.shape == (20,) and rows.shape == (20, density.n_features_in_)
    return found


@cases(
    600,
    params=changes(
        epsilon=(
            1.0,
            np.float16(0.3),
            np.float32(3.0),
            np.int8(2),
            Fraction(1, 3),
            1e-9,
            float("inf"),
        ),
        bin_width=(0.5, [0.5, 0.25], np.float32(0.5), np.float16(0.25), Fraction(1, 2), [0.5], 1),
        bounds=((0, 1), [(0, 1), (-1, 1)], [[0, 2]], np.array([0.0, 3.0])),
        noise=("laplace", "discrete_laplace"),
        random_state=(0, None, np.random.SeedSequence(1)),
    ),
    X=tables(),
    again=st.booleans(),
)
def test_fit(params, X, again):
    return check_fit(
        DPHistogramDensity(bin_width=0.5, random_state=0, bounds=(0, 1)),
        params,
        (X,),
        good=(ROWS,) if again else None,
        use=use,
        loss=lambda model: float(model.epsilon),
    )


@cases(100, X=tables())
def test_score_samples(X):
    found = attempt(lambda: FITTED.score_samples(X))
    if found.error is None:
        assert not np.isnan(found.value).any()
        return "result"
    check_error(found.error, ())
    return "error"
