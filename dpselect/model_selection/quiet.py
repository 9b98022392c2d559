"""Run other libraries' code so that nothing it says tells of single records."""

import warnings

import numpy as np


def quietly(function, *args):
    """Call `function`, silence its warnings, and take the records out of its errors.

    Parameters
    ----------
    function : callable
        A method of a step before the model.
    *args
        Its arguments, records among them.

    Returns
    -------
    object
        What `function` returns.

    Raises
    ------
    ValueError
        If it raises anything. Only scikit-learn's words on missing and infinite values are
        kept: they quote nothing. Other messages may quote the offending values.
    """
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return function(*args)
    except Exception as error:
        if "Input X contains NaN" in str(error) or "Input X contains infinity" in str(error):
            raise
        kind = type(error).__name__
    # outside the except block, so that the original does not hang on as __context__
    raise ValueError(
        f"The steps before the model could not transform X ({kind}); check its columns, missing "
        "values and categories (OneHotEncoder: handle_unknown='ignore') without looking at single "
        "records."
    )
