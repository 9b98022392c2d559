"""The library's settings, one set a thread, with the functions that scikit-learn has for its own."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

DEFAULTS = {"strict": False}
# (a ContextVar would be forgotten from one cell of a notebook to the next)
_local = threading.local()


def _settings():
    if not hasattr(_local, "settings"):
        _local.settings = DEFAULTS.copy()
    return _local.settings


def get_config() -> dict[str, bool]:
    """Return the settings of this thread.

    Returns
    -------
    dict
        A copy; to change a setting, use :func:`set_config` or :func:`config_context`.

    Examples
    --------
    >>> import dpselect
    >>> dpselect.get_config()
    {'strict': False}
    """
    return _settings().copy()


def set_config(*, strict: bool | None = None) -> None:
    """Change settings of this thread, for good.

    Parameters
    ----------
    strict : bool, default=None
        Whether a :class:`~dpselect.PrivacyLeakWarning` or
        :class:`~dpselect.SeededNoiseWarning` is raised as a
        :class:`~dpselect.PrivacyLeakError` instead. None leaves it as it is.

    Raises
    ------
    TypeError
        If `strict` is neither a bool nor None.

    Examples
    --------
    >>> import dpselect
    >>> dpselect.set_config(strict=True)
    >>> dpselect.get_config()["strict"]
    True
    >>> dpselect.set_config(strict=False)
    """
    if strict is None:
        return
    if not isinstance(strict, bool):
        raise TypeError(
            f"strict must be a bool, not a {type(strict).__name__}, because it says whether leaks "
            "are errors; write True or False."
        )
    _settings()["strict"] = strict


@contextmanager
def config_context(*, strict: bool | None = None) -> Iterator[None]:
    """Change settings of this thread for as long as a ``with`` block lasts.

    Parameters
    ----------
    strict : bool, default=None
        As in :func:`set_config`.

    Examples
    --------
    >>> import dpselect
    >>> from dpselect import DPLogisticRegression
    >>> with dpselect.config_context(strict=True):
    ...     DPLogisticRegression().fit([[0.1], [0.2]], [0, 1])
    Traceback (most recent call last):
    ...
    dpselect.exceptions.PrivacyLeakError: DPLogisticRegression with classes=None learns the set of \
labels from y, which the privacy loss does not cover; give classes=[...] with all labels that a \
record may have.
    """
    before = get_config()
    set_config(strict=strict)
    try:
        yield
    finally:
        set_config(**before)


def with_config(function):
    """Return `function` such that it has the settings of now in every thread and process.

    Parameters
    ----------
    function : callable
        That can be pickled, if it goes to other processes.

    Returns
    -------
    callable
    """
    return partial(_call, get_config(), function)


def _call(config, function, *args, **kwargs):
    with config_context(**config):
        return function(*args, **kwargs)
