"""A fit that fails leaves nothing behind: neither half a model, nor a model without its loss."""

from functools import wraps
from typing import cast

from .exceptions import AccuracyNotReachedError
from .type_aliases import Function


def all_or_nothing(fit: Function) -> Function:
    """Make a method `fit` leave its object as it was before, if it raises.

    Attributes come one by one while a model is fitted. If the call ends between two of them, new
    coefficients would stand beside the loss of an older fit, or beside none.

    Parameters
    ----------
    fit : callable
        A method that sets attributes, and does not change the old ones in place.

    Returns
    -------
    callable

    Examples
    --------
    >>> from dpselect.atomic import all_or_nothing
    >>> class Model:
    ...     @all_or_nothing
    ...     def fit(self, X):
    ...         self.n_features_in_ = len(X[0])
    ...         self.mean_ = sum(row[0] for row in X) / len(X)
    >>> model = Model()
    >>> model.fit([["a"], ["b"]])
    Traceback (most recent call last):
    ...
    TypeError: unsupported operand type(s) for +: 'int' and 'str'
    >>> vars(model)
    {}
    """

    @wraps(fit)
    def whole(self, *args, **kwargs):
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except AccuracyNotReachedError:
            raise  # an outcome that was paid for: `fit` says what it leaves
        except BaseException:  # an interrupted fit is no fit either
            vars(self).clear()
            vars(self).update(before)
            raise

    return cast(Function, whole)
