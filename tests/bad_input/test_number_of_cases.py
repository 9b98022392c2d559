"""How many cases of bad input there are, all tests together."""

from . import (
    test_density,
    test_evaluation,
    test_holdout,
    test_linear_models,
    test_mechanisms,
    test_preprocessing,
    test_searches,
    test_statements,
)
from .properties import CASES

FAMILIES = (
    test_density,
    test_evaluation,
    test_holdout,
    test_linear_models,
    test_mechanisms,
    test_preprocessing,
    test_searches,
    test_statements,
)


def test_there_are_ten_thousand():
    # each slow test fails if it runs fewer than it registers
    assert {name.rpartition(".")[0] for name in CASES} == {family.__name__ for family in FAMILIES}
    assert sum(CASES.values()) >= 10_000
