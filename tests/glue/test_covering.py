"""Few cases in which any two settings meet do hold all of these pairs."""

import itertools

import numpy as np
import pytest

from .cases import VARIANTS, in_pairs
from .covering import every_pair


def pairs_in(cases):
    items = [[(axis, str(value)) for axis, value in case.items()] for case in cases.values()]
    return {pair for case in items for pair in itertools.combinations(case, 2)}


def check_pairs(few, cases):
    # not compared by ==: pytest would write the difference of two long sets, for minutes where CI is set
    assert not pairs_in(few) ^ pairs_in(cases)


@pytest.mark.parametrize("seed", range(5))
def test_all_pairs_are_kept_and_most_cases_are_not(seed):
    rng = np.random.default_rng(seed)
    cases = {i: dict(zip("abcdef", rng.integers(3, size=6).tolist())) for i in range(300)}
    few = every_pair(cases, dict)
    check_pairs(few, cases)
    assert few.items() <= cases.items() and 9 <= len(few) < 30
    # the twin: each is there for some pair
    for name in [*few][:: len(few) // 4]:
        with pytest.raises(AssertionError):
            check_pairs({other: case for other, case in few.items() if other != name}, few)


def test_any_two_parameters_of_a_kind_meet_in_few_of_its_variants():
    def settings(models):
        return {
            name: {"class": type(model).__name__, **model.get_params()} for name, model in models.items()
        }

    few = in_pairs(VARIANTS)
    check_pairs(settings(few), settings(VARIANTS))
    assert len(few) < len(VARIANTS) / 3
    with pytest.raises(AssertionError):
        check_pairs(settings(dict([*few.items()][1:])), settings(few))
