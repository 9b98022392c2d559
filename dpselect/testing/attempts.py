"""Helpers for calls that must be refused, must not disclose records, or must change nothing."""

import copy
import io
import logging
import re
import warnings
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

import numpy as np

from .tally import require

# values that no message may show, in any unit or precision
SECRET, TEXT, LABEL = 7.316452890123, "SECRET-42", 987654
LEAK = re.compile(r"7\.?316[45]|SECRET-42|987654")


@dataclass
class Attempt:
    value: Any
    error: Exception | None
    said: list[str]
    warned: list[type]


def attempt(call):
    """Call a function, and collect its error, warnings, logs and output."""
    out, log = io.StringIO(), io.StringIO()
    handler, root = logging.StreamHandler(log), logging.getLogger()
    value = error = None
    root.addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as caught, redirect_stdout(out):
            warnings.simplefilter("always")
            with redirect_stderr(out):
                try:
                    value = call()
                except Exception as found:
                    error = found
    finally:
        root.removeHandler(handler)
    said = [out.getvalue(), log.getvalue()]
    said += [f"{warning.category.__name__}: {warning.message}" for warning in caught]
    link = error
    while link is not None:
        said += [str(link), repr(link), *getattr(link, "__notes__", ())]
        link = link.__cause__ or link.__context__
    return Attempt(value, error, said, [warning.category for warning in caught])


class TouchedError(Exception):
    """Raised if records are read before it is known whether they may be."""


class Untouchable:
    """Records that must not be read."""

    def __getattribute__(self, name):
        if name in ("__class__", "__weakref__"):
            return object.__getattribute__(self, name)
        raise TouchedError(name)

    def _touched(self, *args):
        raise TouchedError

    __len__ = __iter__ = __getitem__ = __array__ = __eq__ = __bool__ = _touched
    __hash__ = object.__hash__


def refused(call, names, what):
    """Require an error of a kind, and return the messages."""
    found = attempt(call)
    kinds = ", ".join(kind.__name__ for kind in names)
    touched = isinstance(found.error, TouchedError)
    require(not touched, f"{what}: records were read before it was refused.")
    got = "nothing" if found.error is None else f"{type(found.error).__name__}: {found.error}"
    require(isinstance(found.error, names), f"{what} must raise {kinds}; it raised {got}.")
    return found


def says_nothing_of_records(found, what):
    shown = [text for text in found.said if LEAK.search(text)]
    require(not shown, f"{what} shows a value of the records: {shown[:1]}")


@contextmanager
def stays_as_it_was(model, what):
    before, arrays = (
        dict(vars(model)),
        copy.deepcopy(
            {name: value for name, value in vars(model).items() if isinstance(value, np.ndarray)}
        ),
    )
    yield
    after = vars(model)
    changed = {n for n in before.keys() | after.keys() if before.get(n) is not after.get(n)}
    changed |= {name for name, value in arrays.items() if not np.array_equal(value, after.get(name))}
    require(not changed, f"{what} changed {', '.join(sorted(changed))}; it must leave all as it was.")
