"""Context managers that end when their ``with`` block is left, wherever an interrupt comes.

Ctrl-C can come before the first line of an `__exit__`, which is then not called again, and the
traceback keeps alive what contextlib would have closed. But Python looks up the `__exit__` of a block
before it enters it, and drops it when the block is left in any way. So each block gets an `__exit__`
of its own here, and is closed when that is dropped, if it was not before.
"""

import threading
import weakref
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any


class _Here(threading.local):
    """Blocks of this thread: about to be entered, and entered by a call of `__enter__` alone."""

    def __init__(self):
        self.next, self.by_hand = [], []


_here = _Here()


class _Block:
    """One block; `close` ends it where `end` did not, and may be called after it."""

    def __init__(self):
        self.end = self.close = self.watch = None

    def drop(self, _):
        self.watch = None
        if self.close is not None:
            self.close()


class Exit:
    """The `__exit__` of a context manager whose `__enter__` returns what `entered` does."""

    def __get__(self, manager: object, kind: type | None = None) -> Callable[..., Any]:
        block = _Block()
        leave = partial(_leave, block)
        block.watch = weakref.ref(leave, block.drop)
        _here.next.append(block)
        return leave


def entered(begin, end, close):
    """Begin a block, which `end` ends, called as an `__exit__` is, or else `close`."""
    while _here.next:
        block = _here.next.pop()
        if block.watch is not None:  # else its __exit__ was looked up and dropped
            block.end, block.close = end, close
            return begin()
    yielded, block = begin(), _Block()
    block.end, block.close = end, close
    _here.by_hand.append(block)
    return yielded


def _leave(block, *exception):
    if block.end is None:
        block = _here.by_hand.pop()
    swallowed = block.end(*exception[-3:])  # ExitStack puts the manager first
    block.watch = None  # nothing is left to do when this is dropped
    return swallowed


def block(function):
    """Make a context manager of a function with a `yield`, as `contextlib.contextmanager` does."""
    @wraps(function)
    def made(*args, **kwargs):
        return _Managed(function(*args, **kwargs))

    return made


class _Managed:
    def __init__(self, generator):
        self._generator = generator

    def __enter__(self):
        manager = contextmanager(lambda: self._generator)()
        return entered(manager.__enter__, manager.__exit__, self._generator.close)

    __exit__ = Exit()
