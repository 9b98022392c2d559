"""Checks of parameters: one sentence that says what was given, why not, and what instead."""

import math
import numbers

import numpy as np

SMALLEST_EPSILON = 1e-9
# squares and products of smaller bounds, or of larger ones than its inverse, are not numbers of
# float64: a norm of squares would be 0
SMALLEST_BOUND = 1e-100
# counts up to here are numbers of float64
LARGEST_COUNT = 2**53


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
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(
            f"{name} is beyond the range of float64, which is not allowed, because {why}; {instead}."
        ) from None
    above = number >= low if low_included else number > low
    below = number <= high if high_included else number < high
    if not (above and below) or (integer and abs(int(value)) > LARGEST_COUNT):
        raise ValueError(f"{name}={value!r} is not allowed, because {why}; {instead}.")
    return int(value) if integer else number


def check_flag(name, value, *, why):
    """Return `value` if it is True or False: texts such as "no" would count as True."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(
            f"{name} must be True or False, not a {type(value).__name__}, because {why}; write one "
            "of them."
        )
    return bool(value)


def check_callable(name, value, *, call):
    """Refuse what cannot be called; `call` shows how it will be."""
    if not callable(value):
        raise TypeError(
            f"{name} must be a function, not a {type(value).__name__}, because {call} will be "
            "called; write a function."
        )


def check_estimator(value):
    """Refuse an `estimator` that is none, or a class."""
    if isinstance(value, type) or not (hasattr(value, "get_params") and hasattr(value, "fit")):
        kind = value if isinstance(value, type) else type(value)
        given = "the class" if value is kind else "an object of class"
        raise TypeError(
            f"estimator must be an estimator of scikit-learn's kind, not {given} {kind.__name__}, "
            "because it is copied and fitted; write for instance estimator=DPRidge()."
        )


def check_n_jobs(value):
    """Refuse a number of jobs that joblib cannot have; None passes."""
    if value is None:
        return
    check_number(
        "n_jobs", value, integer=True, low=-math.inf, why="it counts threads or processes",
        instead="write None, 1 or more, or -1 for all processors",
    )
    if value == 0:
        raise ValueError("n_jobs=0 leaves nobody to do the work; write None, or 1 or more.")


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
