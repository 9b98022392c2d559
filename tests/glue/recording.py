"""Recorded calls: which numbers reach a mechanism, and which key each noise is drawn under."""

import functools
import inspect
import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

import dpselect
from dpselect.noise import as_generator, generators, root_stream


@dataclass(eq=False)
class Call:
    """One call of a watched function.

    Attributes
    ----------
    name : str
    arguments : dict
        By the names of the parameters, defaults included.
    result : object
        None if it raised.
    within : tuple of Call
        Watched calls that it was made from, the outermost first.
    noted : object
        What the recorder's `note` said when the call began: arguments may be changed later.
    """

    name: str
    arguments: dict
    result: Any = None
    within: tuple = ()
    noted: Any = None

    def __getitem__(self, name):
        return self.arguments[name]


class Recorder:
    """Records calls of functions, in whatever module of the package they were imported to.

    Parameters
    ----------
    monkeypatch : pytest.MonkeyPatch

    Attributes
    ----------
    calls : list of Call
        In the order in which they began.
    """

    def __init__(self, monkeypatch):
        self.monkeypatch = monkeypatch
        self.calls, self._open = [], []

    def watch(self, *functions, note=None):
        """Record calls of module functions."""
        for function in functions:
            replace_everywhere(self.monkeypatch, function, self._recorded(function, note=note))
        return self

    def watch_methods(self, kind, *names, note=None):
        """Record calls of methods of a class; the argument "self" is the object."""
        for name in names:
            recorded = self._recorded(getattr(kind, name), name, note)
            if isinstance(inspect.getattr_static(kind, name), staticmethod):
                recorded = staticmethod(recorded)
            self.monkeypatch.setattr(kind, name, recorded)
        return self

    def watch_keys(self):
        """Record under which key each generator is made."""
        return self.watch(root_stream, as_generator)

    def keys(self):
        """Return the keys of the generators that were made, with the calls that made them."""
        return [
            (call.result.key, call)
            for call in self.of("root_stream")
            if call.within and call.within[-1].name == "as_generator"
        ]

    def of(self, *names):
        """Return the calls of these names."""
        return [call for call in self.calls if call.name in names]

    def _recorded(self, function, label=None, note=None):
        signature = inspect.signature(function)
        name = label or function.__name__

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            call = Call(name, dict(bound.arguments), within=tuple(self._open))
            call.noted = None if note is None else note(call)
            self.calls.append(call)
            self._open.append(call)
            try:
                call.result = function(*args, **kwargs)
            finally:
                self._open.pop()
            return call.result

        return wrapper


def entropy_for_a_test(monkeypatch, *seed):
    """Let noise without a seed have one that nobody but the test knows of."""
    source = np.random.default_rng(seed)
    monkeypatch.setattr(generators, "secrets", SimpleNamespace(token_bytes=source.bytes))


# where each function was found; going through all modules takes much longer than to look there again
_FOUND: dict = {}


def replace_everywhere(monkeypatch, function, other):
    """Put `other` in the place of a function in all modules of the package."""
    known = _FOUND.get((function, len(sys.modules)), [])
    if not known or any(inspect.getattr_static(*place) != value for *place, value in known):
        known = _FOUND[function, len(sys.modules)] = _places_of(function)
    assert known, f"{function.__name__} is used nowhere"
    for place, name, _ in known:
        monkeypatch.setattr(place, name, staticmethod(other) if isinstance(place, type) else other)


def _places_of(function):
    """Return modules and classes, the names under which they have a function, and what is there."""
    package = dpselect.__name__
    places = [
        (module, name, function)
        for label, module in sorted(sys.modules.items())
        if label == package or label.startswith(f"{package}.")
        for name, value in vars(module).items()
        if value is function
    ]
    places += [
        (kind, name, value)
        for label, module in sorted(sys.modules.items())
        if label.startswith(f"{package}.")
        for kind in vars(module).values()
        if isinstance(kind, type)
        for name, value in vars(kind).items()
        if isinstance(value, staticmethod) and value.__func__ is function
    ]
    return list(dict.fromkeys(places))
