"""Settings of the library, by thread, with functions named as scikit-learn's.

A thread that has set nothing itself is strict if any other thread is: a worker inherits strict mode
from the process that started it.
"""

import inspect
import threading
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import CodeType

import numpy as np
import sklearn

from .exceptions import PrivacyLeakError, PrivacyLeakWarning, SeededNoiseWarning
from .utils.processes import lock_that_forks_wait_for, this_process


class _Settings:
    """The settings of a thread; None where it has set nothing."""

    def __init__(self):
        self.strict = None
        # strict mode of the process that sent the estimator
        self.carried = False


# not a ContextVar, which would be reset between cells of a notebook
_local = threading.local()
_of_all_threads: weakref.WeakSet[_Settings] = weakref.WeakSet()
_lock = lock_that_forks_wait_for()
# the code of callers, with its lines that have been warned of once
_warned: weakref.WeakKeyDictionary[CodeType, set[int]] = weakref.WeakKeyDictionary()


def _settings():
    if not hasattr(_local, "settings"):
        _local.settings = _Settings()
        with _lock:
            _of_all_threads.add(_local.settings)
    return _local.settings


def _some_thread_is_strict():
    return any(settings.strict for settings in _of_all_threads)


def _set(strict):
    settings = _settings()
    with _lock:  # until it is published: another thread may publish the contrary
        before, settings.strict = settings.strict, strict
        try:
            this_process().publish(strict=_some_thread_is_strict() or None)
        except BaseException:
            settings.strict = before
            raise


def get_config() -> dict[str, bool]:
    """Return the settings of this thread.

    Returns
    -------
    dict
        A copy; to change a setting, use :func:`set_config` or :func:`config_context`. Where this
        thread has set nothing, it is strict if another thread is, or the process that started this
        one.

    Examples
    --------
    >>> import dpselect
    >>> dpselect.get_config()
    {'strict': False}
    """
    own = _settings()
    strict = own.strict
    if strict is None:
        with _lock:
            elsewhere = _some_thread_is_strict()
        strict = own.carried or elsewhere or bool(this_process().published("strict"))
    return {"strict": strict}


def set_config(*, strict: bool | None = None) -> None:
    """Change settings permanently, in this thread and in all that have none of their own.

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
    _set(strict)


@contextmanager
def config_context(*, strict: bool | None = None) -> Iterator[None]:
    """Change settings inside of a ``with`` block, as `set_config` does.

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
    before = _settings().strict
    set_config(strict=strict)
    try:
        yield
    finally:
        _set(before)


@contextmanager
def carried_config(strict):
    """Use the strict mode in which an estimator was sent, unless this thread has set its own."""
    settings = _settings()
    before, settings.carried = settings.carried, strict
    try:
        yield
    finally:
        settings.carried = before


@contextmanager
def usual_settings():
    """Use the default settings of numpy and scikit-learn inside of the block.

    Models and steps of scikit-learn check their input by functions that its settings can turn off. An
    error or a warning of numpy would disclose that some record is so large.
    """
    checks = {"assume_finite": False, "skip_parameter_validation": False, "array_api_dispatch": False}
    with sklearn.config_context(**checks), np.errstate(all="ignore"):
        yield


def with_config(function):
    """Return `function` with the current settings in every thread and process.

    Those of numpy and scikit-learn are the usual ones there.

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
    with config_context(**config), usual_settings():
        return function(*args, **kwargs)


def is_called_by(module, code):
    """Return whether a function of a module, or of one below it, waits for the first call of `code`."""
    frame, calls = inspect.currentframe().f_back, 0
    while frame is not None and not f"{frame.f_globals.get('__name__')}.".startswith(f"{module}."):
        frame, calls = frame.f_back, calls + (frame.f_code is code)
    return frame is not None and calls == 1


def warn_caller(message, category, through=(), once=False):
    """Warn, at the line outside of this library that caused it; in strict mode, raise.

    Parameters
    ----------
    message : str
        One sentence, without data.
    category : type
        A kind of warning. Other categories than privacy warnings stay warnings in strict mode.
    through : tuple of str, default=()
        Packages, with a final dot, whose lines did not cause it either.
    once : bool, default=False
        Whether to warn only once of a line, whatever the filters of warnings are.

    Raises
    ------
    PrivacyLeakError
        In strict mode, for a PrivacyLeakWarning or a SeededNoiseWarning: see
        :func:`dpselect.config_context`.
    """
    if get_config()["strict"] and issubclass(category, (PrivacyLeakWarning, SeededNoiseWarning)):
        raise PrivacyLeakError(message)
    # scikit-learn's callbacks are between frames of this library
    ours = (__name__.partition(".")[0] + ".", "sklearn.callback.", *through)
    level, frame = 2, inspect.currentframe().f_back
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(ours):
        level, frame = level + 1, frame.f_back
    if once:
        lines = _warned.setdefault(frame.f_code, set())
        if frame.f_lineno in lines:
            return
        lines.add(frame.f_lineno)
    warnings.warn(message, category, stacklevel=level)
