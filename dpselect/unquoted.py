"""Errors of scikit-learn's validators, without the records that they quote."""

import re

# beginnings of messages that name shapes, types and columns alone
HARMLESS = re.compile(
    r"Input [Xy] contains|Found array with|Found input variables with inconsistent|"
    r"X has \d+ features, but|The feature names should match|Feature names are only supported|"
    r"Sparse data was passed|Expected sequence or array-like, got <class|"
    r"(This )?\w+ (estimator )?requires y to be|y should be a 1d array"
)


def unquoted(check, *args, what="X", **kwargs):
    """Call a validator, and leave out of its errors what may be records.

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
    >>> from dpselect.unquoted import unquoted
    >>> unquoted(check_array, [0.25, 0.75])
    Traceback (most recent call last):
    ...
    ValueError: Expected 2D array, got 1D array instead. Reshape your data with \
X.reshape(-1, 1) if it has a single column, or X.reshape(1, -1) if it is a single row.
    """
    try:
        return check(*args, **kwargs)
    except Exception as error:
        said = str(error)
        if HARMLESS.match(said):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        message = _without_records(said, what, type(error).__name__)
    # outside the except block, so that the original does not hang on as __context__
    raise kind(message)


def _without_records(said, what, kind):
    shape = re.match(r"Expected 2D array, got (1D|scalar) array instead", said)
    if shape:
        return (
            f"{shape.group()}. Reshape your data with X.reshape(-1, 1) if it has a single column, "
            "or X.reshape(1, -1) if it is a single row."
        )
    if said.startswith("Complex data not supported"):
        return f"Complex data not supported: {what} must hold real numbers; take real parts."
    if "inhomogeneous" in said:
        return f"{what} has rows of different lengths; give each the same number of entries."
    if re.match(r"float\(\) argument must be a string or a real number, not '\w+'$", said):
        return f"{what} holds something that is no number: {said}; encode it first."
    if "could not convert" in said:
        return (
            f"{what} holds text that is not a number; encode such columns first, for instance with "
            "OneHotEncoder(categories=[...])."
        )
    if re.match("'<' not supported between instances of", said):
        return f"{what} holds labels of different types, which have no order; give them one type."
    return (
        f"{what} could not be read as an array ({kind}); give numbers in an array, a sparse matrix "
        "or a dataframe."
    )
