"""Validate parameters, and remove records from error messages of scikit-learn's validators."""

import math
import numbers
import re
from functools import partial

import numpy as np

SMALLEST_EPSILON = 1e-9

# squares and products of smaller bounds, or of bounds above its inverse, underflow or overflow float64
SMALLEST_BOUND = 1e-100

# float64 is exact for counts up to here
LARGEST_COUNT = 2**53


def is_zero(value):
    """Return whether a value is the number 0, and no truth value."""
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)) and value == 0


def check_number(
    name,
    value,
    *,
    why,
    instead,
    low=0.0,
    low_included=False,
    high=math.inf,
    high_included=False,
    integer=False,
):
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
        If `value` is not a number of the required type.
    ValueError
        If it lies outside the interval, or is NaN.
    """
    kind = numbers.Integral if integer else numbers.Real
    if isinstance(value, str) and _reads_as_number(value):
        why, instead = "a text is no number, whatever it says", f"{instead}, without quotation marks"
    # comparing types is ten times faster than isinstance() with an ABC of numbers
    plain = type(value) is int or (type(value) is float and not integer)
    if not plain and (not isinstance(value, kind) or isinstance(value, bool)):
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


def check_interval(name, value, *, why, instead):
    """Return the ends of a public interval: two finite numbers low < high."""
    try:
        is_pair = np.shape(value) == (2,)
    except ValueError:  # an array of parts with different shapes
        is_pair = False
    if not is_pair:
        # do not quote the value, which may hold records
        given = "None" if value is None else f"a {type(value).__name__}"
        raise ValueError(f"{name} must be two numbers, not {given}, because {why}; {instead}.")
    how = {"high": 1 / SMALLEST_BOUND, "high_included": True, "why": why, "instead": instead}
    low, high = value
    low = check_number(f"{name}[0]", low, low=-how["high"], low_included=True, **how)
    return low, check_number(f"{name}[1]", high, low=low + SMALLEST_BOUND, **how)


def middle_and_half(interval):
    """Return the middle of a checked interval, and half of its length."""
    low, high = map(float, interval)
    return low / 2 + high / 2, (high - low) / 2


def number(**how):
    """Return the check of a numeric parameter, for a table of checks: see :func:`check_number`."""
    return partial(check_number, **how)


def size(**how):
    """Return the check of a positive size whose square is representable in float64."""
    return number(
        low=SMALLEST_BOUND, low_included=True, high=1 / SMALLEST_BOUND, high_included=True, **how
    )


def interval(**how):
    """Return the check of a public interval: see :func:`check_interval`."""
    return partial(check_interval, **how)


def one_of(*choices, why):
    """Return the check of a parameter that is one of several strings."""
    return partial(check_choice, choices=choices, why=why)


def flag(why):
    """Return the check of a parameter that is True or False."""
    return partial(check_flag, why=why)


def unless(alternative, check):
    """Return a check that accepts one more value, such as None or "auto"."""

    def check_unless(name, value):
        same = value is None if alternative is None else isinstance(value, str) and value == alternative
        if not same:
            check(name, value)

    return check_unless


def check_flag(name, value, *, why):
    """Return `value` if it is True or False; strings such as "no" would count as True."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(
            f"{name} must be True or False, not a {type(value).__name__}, because {why}; write one "
            "of them."
        )
    return bool(value)


def check_callable(name, value, *, call):
    """Refuse what cannot be called; `call` shows its signature."""
    if not callable(value):
        raise TypeError(
            f"{name} must be a function, not a {type(value).__name__}, because {call} will be "
            "called; write a function."
        )


def check_estimator(value):
    """Refuse an `estimator` that is a class, or not an estimator."""
    if isinstance(value, type) or not (hasattr(value, "get_params") and hasattr(value, "fit")):
        kind = value if isinstance(value, type) else type(value)
        given = "the class" if value is kind else "an object of class"
        raise TypeError(
            f"estimator must be an estimator of scikit-learn's kind, not {given} {kind.__name__}, "
            "because it is copied and fitted; write for instance estimator=DPLinearSVC()."
        )


def check_n_jobs(value):
    """Refuse a number of jobs that joblib does not support; None passes."""
    if value is None:
        return
    check_number(
        "n_jobs",
        value,
        integer=True,
        low=-math.inf,
        why="it counts threads or processes",
        instead="write None, 1 or more, or -1 for all processors",
    )
    if value == 0:
        raise ValueError("n_jobs=0 leaves nobody to do the work; write None, or 1 or more.")


def check_choice(name, value, choices, *, why):
    """Return `value` if it is one of `choices`; the error lists them."""
    if not isinstance(value, str) or value not in choices:
        _refuse(name, value, choices, why)
    return value


def _refuse(name, value, choices, why):
    raise ValueError(
        f"{name}={value!r} is not allowed, because {why}; write one of {', '.join(map(repr, choices))}."
    )


def check_member(name, value, members, *, why):
    """Return the index of `value` among `members`, of any hashable type; the error lists them."""
    try:
        places = {member: i for i, member in enumerate(members)}
        return places[value]
    except (KeyError, TypeError):  # TypeError if it is unhashable
        pass
    _refuse(name, value, members, why)


LEAVE_OUT = "leave it out"


def refuse_fit_params(owner, params, instead=LEAVE_OUT):
    """Refuse parameters of `fit` other than X and y."""
    if params:
        raise TypeError(
            f"{type(owner).__name__}.fit got {', '.join(sorted(params))}, which may change how far one "
            f"record can move the model; {instead}."
        )


def _reads_as_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def check_epsilon(value, name="epsilon"):
    """Return a privacy loss: 1e-9 or more, ``inf`` allowed."""
    return check_number(
        name,
        value,
        low=SMALLEST_EPSILON,
        low_included=True,
        high_included=True,
        why="a privacy loss of 0 or less allows no dependence on the data, and one below "
        f"{SMALLEST_EPSILON} nothing but noise",
        instead="write a number greater than 0, such as 1.0, or float('inf') for no privacy",
    )


# messages that quote only shapes, types and columns
HARMLESS = re.compile(
    r"Input [Xy] contains|Found array with|Found input variables with inconsistent|"
    r"X has \d+ features, but|The feature names should match|Feature names are only supported|"
    r"Sparse data was passed|Expected sequence or array-like, got <class|"
    r"(This )?\w+ (estimator )?requires y to be|y should be a 1d array"
)


# scikit-learn continues this message with advice that is not private
GAPS = "Input X contains NaN"


def unquoted(check, *args, what="X", **kwargs):
    """Call a validator, and remove from its errors what may quote records.

    Parameters
    ----------
    check : callable
        Of scikit-learn, or a conversion.
    *args, **kwargs
        Its arguments.
    what : str, default="X"
        What is checked, for messages.

    Returns
    -------
    object
        What `check` returns.

    Raises
    ------
    ValueError, TypeError
        If it raises anything. Its own words are kept where they quote nothing.

    Examples
    --------
    >>> from sklearn.utils import check_array
    >>> from dpselect.utils.validation import unquoted
    >>> unquoted(check_array, [0.25, 0.75])
    Traceback (most recent call last):
    ...
    ValueError: Expected 2D array, got 1D array instead. Reshape your data with \
X.reshape(-1, 1) if it has a single column, or X.reshape(1, -1) if it is a single row.
    """
    try:
        with np.errstate(all="ignore"):  # a warning would disclose that some record is so large
            return check(*args, **kwargs)
    except Exception as error:
        said = str(error)
        if HARMLESS.match(said) and not said.startswith(GAPS):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        message = _without_records(said, what, type(error).__name__)
    # outside the except block, so that the original error is not attached as __context__
    raise kind(message)


def _without_records(said, what, kind):
    if said.startswith(GAPS):
        return (
            f"{GAPS}, and a model can do nothing with a gap; put SimpleImputer(strategy='constant', "
            "fill_value=0.0, keep_empty_features=True) before it in a Pipeline, or describe the columns "
            "in a schema, with 'missing': True, for dpselect.preprocessing.tabular_pipeline."
        )
    shape = re.match(r"Expected 2D array, got (1D|scalar) array instead", said)
    if shape:
        return (
            f"{shape.group()}. Reshape your data with X.reshape(-1, 1) if it has a single column, "
            "or X.reshape(1, -1) if it is a single row."
        )
    if said.startswith("Complex data not supported"):
        return f"Complex data not supported: {what} must hold real numbers; take real parts."
    if kind == "DuplicateError":
        return f"{what} has several columns of one name; give each a name of its own, or leave one out."
    if "inhomogeneous" in said:
        return f"{what} has rows of different lengths; give each the same number of entries."
    if re.match(r"float\(\) argument must be a string or a real number, not '\w+'$", said):
        return f"{what} holds something that is no number: {said}; encode it first."
    if "could not convert" in said:
        return (
            f"{what} holds text that is not a number; encode such columns first, for instance with "
            "OneHotEncoder(categories=[...]), or for a density with OrdinalEncoder(categories=[...])."
        )
    if re.match("'<' not supported between instances of", said):
        return f"{what} holds labels of different types, which have no order; give them one type."
    return (
        f"{what} could not be read as an array ({kind}); give numbers in an array, a sparse matrix "
        "or a dataframe."
    )


def imported_pandas(what, instead):
    """Return pandas, or raise with instructions how to install it, or an alternative."""
    try:
        import pandas
    except ImportError:
        raise ImportError(
            f"{what} needs pandas, which is not installed; run pip install pandas, or {instead}."
        ) from None
    return pandas
