"""Context managers that end with their ``with`` block, wherever an interrupt comes.

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
    """Blocks that this thread is about to enter."""

    def __init__(self):
        self.next = []


_here = _Here()
# managers whose `__enter__` was called without `__exit__` yet, with thread and block
_by_hand: list[tuple[int, object, "_Block"]] = []


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
        leave = partial(_leave, manager, block)
        block.watch = weakref.ref(leave, block.drop)
        _here.next.append(block)
        return leave


def entered(manager, begin, end, close):
    """Enter a block of a manager; `end` is called as an `__exit__` is, or else `close`."""
    while _here.next:
        block = _here.next.pop()
        if block.watch is not None:  # None if `end` has run: then `__exit__` was only looked up
            block.end, block.close = end, close
            return begin()
    yielded, block = begin(), _Block()
    block.end, block.close = end, close
    _by_hand.append((threading.get_ident(), manager, block))
    return yielded


def _leave(manager, block, *exception):
    if block.end is None:
        # one stack for each: they may end in any order, and in any thread; a copy may end them, too
        own = [entry for entry in _by_hand if entry[1] is manager]
        own = own or [entry for entry in _by_hand if entry[1] == manager]
        here = [entry for entry in own if entry[0] == threading.get_ident()]
        entry = (here or own)[-1]
        _by_hand.remove(entry)
        block = entry[2]
    swallowed = block.end(*exception[-3:])  # ExitStack puts the manager first
    block.watch = None  # already ended, so nothing is to be done when this is garbage collected
    return swallowed


def block(function):
    """Make a context manager from a generator function, as `contextlib.contextmanager` does."""

    @wraps(function)
    def made(*args, **kwargs):
        return _Managed(function(*args, **kwargs))

    return made


class _Managed:
    def __init__(self, generator):
        self._generator = generator

    def __enter__(self):
        manager = contextmanager(lambda: self._generator)()
        return entered(self, manager.__enter__, manager.__exit__, self._generator.close)

    __exit__ = Exit()
