"""Checks of parameters: one sentence that says what was given, why not, and what instead."""

import math
import numbers

SMALLEST_EPSILON = 1e-9


def check_number(name, value, *, why, instead, low=0.0, low_included=False, high=math.inf,
                 high_included=False, integer=False):
    """Return `value` if it is a number in the stated interval.

    Parameters
    ----------
    name : str
        The parameter.
    value : object
        What was given.
    why : str
        Why another value breaks the guarantee; completes "..., because ...".
    instead : str
        What to write instead; completes "...; ...".
    low, high : float
        Ends of the interval.
    low_included, high_included : bool
        Whether an end belongs to it.
    integer : bool
        Whether `value` must be an integer.

    Returns
    -------
    float or int

    Raises
    ------
    TypeError
        If `value` is not a number of the wanted type.
    ValueError
        If it lies outside the interval, or is NaN.
    """
    kind = numbers.Integral if integer else numbers.Real
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(
            f"{name} must be {'an integer' if integer else 'a number'}, not a "
            f"{type(value).__name__}, because {why}; {instead}."
        )
    above = value >= low if low_included else value > low
    below = value <= high if high_included else value < high
    if not (above and below):
        raise ValueError(f"{name}={value!r} is not allowed, because {why}; {instead}.")
    return int(value) if integer else float(value)


def check_choice(name, value, choices, *, why):
    """Return `value` if it is one of `choices`; the error lists them."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(
            f"{name}={value!r} is not allowed, because {why}; "
            f"write one of {', '.join(map(repr, choices))}."
        )
    return value


def check_epsilon(value, name="epsilon"):
    """Return a privacy loss: 1e-9 or more, ``inf`` allowed."""
    return check_number(
        name, value, low=SMALLEST_EPSILON, low_included=True, high_included=True,
        why="a privacy loss of 0 or less allows no dependence on the data, and one below "
        f"{SMALLEST_EPSILON} nothing but noise",
        instead="write a number greater than 0, such as 1.0, or float('inf') for no privacy",
    )
