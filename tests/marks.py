"""Marks of cases."""

import pytest


def slow_but(cases, *fast):
    """Return the cases, of which all but those at the places `fast` are slow."""
    places = [range(len(cases))[place] for place in fast]
    return [
        case
        if i in places
        else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
        for i, case in enumerate(cases)
    ]


def a_third(cases):
    """Return the cases, of which all but every third are slow, as they are much like it."""
    return slow_but(cases, *range(0, len(cases), 3))
