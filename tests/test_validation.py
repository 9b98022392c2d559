from dataclasses import is_dataclass
from fractions import Fraction
from typing import Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from sklearn.base import clone

from dpselect import DPHistogramDensity, DPLinearSVC, DPLogisticRegression, DPRidge
from dpselect.preprocessing import DPBoundsScaler
from dpselect.utils.validation import (
    check_callable,
    check_epsilon,
    check_estimator,
    check_flag,
    check_n_jobs,
    check_number,
)

WORDS = {"why": "it is a test", "instead": "write 1"}
ROWS = np.random.default_rng(0).random((30, 2))
LABELS = np.arange(30) % 2


@pytest.mark.parametrize("value", [10**400, -(10**400), Fraction(1, 10**400), float("nan"), 0])
def test_a_number_has_to_be_one_of_float64(value):
    with pytest.raises(ValueError, match=r"^size.*write 1") as caught:
        check_number("size", value, **WORDS)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("value", [10**400, Fraction(10**400)])
def test_an_epsilon_beyond_float64_is_not_infinity(value):
    with pytest.raises(ValueError, match="epsilon"):
        check_epsilon(value)


def test_a_count_has_to_be_one_that_float64_holds():
    assert check_number("size", 2**53, integer=True, **WORDS) == 2**53
    with pytest.raises(ValueError, match="size"):
        check_number("size", 2**53 + 1, integer=True, **WORDS)


def test_other_checks():
    for refuse in (
        lambda: check_flag("flag", "no", why="it counts"),
        lambda: check_n_jobs(1.5),
        lambda: check_callable("call", 5, call="call(1)"),
        lambda: check_estimator(DPRidge),
        lambda: check_estimator([]),
    ):
        with pytest.raises(TypeError):
            refuse()
    with pytest.raises(ValueError, match="n_jobs=0"):
        check_n_jobs(0)
    assert check_flag("flag", np.True_, why="it counts") is True
    check_n_jobs(-1)
    check_estimator(DPRidge(target_range=(-1, 1)))


@pytest.mark.parametrize(
    "estimator, odd",
    [
        (DPHistogramDensity(bin_width=0.5, bounds=(0, 1)), {"epsilon": np.float16(0.3)}),
        (DPHistogramDensity(bin_width=0.5, bounds=(0, 1)), {"epsilon": np.float16(1e-5)}),
        (
            DPHistogramDensity(bin_width=0.5, noise="discrete_laplace", bounds=(0, 1)),
            {"epsilon": np.float16(0.3)},
        ),
        (DPBoundsScaler(), {"epsilon": np.float16(0.3), "tail": np.float16(0.1)}),
        (DPBoundsScaler(), {"epsilon": Fraction(1, 3), "tail": Fraction(1, 10)}),
        (
            DPRidge(fit_intercept=False, target_range=(-1, 1)),
            {
                "data_norm": np.int8(100),
                "target_range": (np.int8(-100), np.int8(100)),
                "alpha": np.float16(0.1),
            },
        ),
        (DPRidge(), {"data_norm": np.float16(0.3), "target_range": (np.float16(-0.3), np.float16(0.7))}),
        (
            DPRidge(perturbation="output", target_range=(-1, 1)),
            {"alpha": Fraction(1, 3), "coef_bound": np.int8(1)},
        ),
        (
            DPLogisticRegression(classes=[0, 1]),
            {"data_norm": Fraction(1, 3), "epsilon": np.float16(0.3), "alpha": np.float16(0.1)},
        ),
    ],
)
def test_numbers_of_low_precision_do_not_round_the_noise(estimator, odd):
    def released(params):
        model = clone(estimator).set_params(random_state=0, **params)
        with pytest.warns(UserWarning, match="seed"):
            model.fit(ROWS, LABELS)
        names = ("density_", "bounds_", "coef_", "gram_", "moment_")
        return [getattr(model, name) for name in names if hasattr(model, name)]

    exact = {
        name: tuple(map(float, value)) if isinstance(value, tuple) else float(value)
        for name, value in odd.items()
    }
    for one, other in zip(released(odd), released(exact), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", [DPHistogramDensity, DPLinearSVC, DPLogisticRegression, DPRidge])
def test_choices_are_those_of_the_signature(kind):
    checked = []
    # a constructor that is made of annotations has names of several modules
    for name, hint in get_type_hints(kind if is_dataclass(kind) else kind.__init__).items():
        if get_origin(hint) is Literal:
            check = kind.parameter_checks[name]
            for choice in get_args(hint):
                check(name, choice)
            with pytest.raises(ValueError) as refused:
                check(name, "another")
            offered = str(refused.value).partition("write one of ")[2].rstrip(".").split(", ")
            assert sorted(offered) == sorted(map(repr, get_args(hint)))
            checked.append(name)
    assert checked
