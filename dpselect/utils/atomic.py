"""Atomic fits: a failed fit restores the object."""

from contextlib import contextmanager


@contextmanager
def all_or_nothing(estimator):
    """Restore an object if the block raises.

    Attributes come one by one while a model is fitted. If the block ends between two of them, new
    coefficients would stand beside the loss of an older fit, or beside none.

    Parameters
    ----------
    estimator : object
        Whose attributes are set in the block, and not changed in place.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from dpselect.utils.atomic import all_or_nothing
    >>> model = SimpleNamespace()
    >>> with all_or_nothing(model):
    ...     model.n_features_in_ = 1
    ...     model.mean_ = "a" / 1
    Traceback (most recent call last):
    ...
    TypeError: unsupported operand type(s) for /: 'str' and 'int'
    >>> vars(model)
    {}
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:  # also after an interrupt
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
