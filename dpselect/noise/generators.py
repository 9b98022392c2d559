"""Generators from ``random_state``, and independent streams for a search.

Every generator is a ChaCha stream cipher under a key of 256 bits, made for one
call and forgotten: nothing that could be forked, shared between workers or
rewound outlives the call. numpy's global generator is never used.
"""

from __future__ import annotations

import hashlib
import itertools
import numbers
import secrets
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeAlias, TypeGuard

import numpy as np
from randomgen import ChaCha

KEY_BYTES = 32
# number of keys taken in this process, without those of a search's inner fits
_keys_taken = itertools.count(1)
_last_key = 0
_dummy = ContextVar("dummy", default=False)
# whether noise for a release was drawn in a block: a list of one bool
_noted: ContextVar[list[bool] | None] = ContextVar("noted", default=None)


@dataclass(frozen=True)
class InnerStream:
    """The key of a stream of noise, which derives independent streams.

    As a `random_state` it is a seed like any other, with a warning and a loss that is marked
    as seeded, wherever its key comes from. Only what a search itself hands on to its inner
    fits does not warn: a search that has a seed has warned of it.

    Parameters
    ----------
    key : bytes
        32 bytes. Hidden from the representation.
    released : bool, default=False
        Whether the search releases what the noise protects: :func:`noise_is_drawn_since` then tells.

    Examples
    --------
    >>> from dpselect.noise import root_stream
    >>> stream = root_stream(0)
    >>> stream.child("draw", 1) == stream.child("draw", 1)
    True
    >>> stream.child("draw", 1) == stream.child("draw", 2)
    False
    """

    key: bytes = field(repr=False)
    released: bool = False
    # set by `search_stream` only, so that no argument of a caller can suppress the warning of a seed
    _from_search: bool = field(default=False, init=False, repr=False, compare=False)

    def child(self, *path: str | int) -> InnerStream:
        """Return the stream at `path` below this one; distinct paths are independent.

        Parameters
        ----------
        *path : str or int
            Names of the branches, public.

        Returns
        -------
        InnerStream
        """
        name = "/".join(f"{type(step).__name__}:{step}" for step in path).encode()
        digest = hashlib.blake2b(name, key=self.key, digest_size=KEY_BYTES)
        return self._with(digest.digest(), self.released)

    def for_release(self) -> InnerStream:
        """Return the same stream, for noise that protects what is released.

        Returns
        -------
        InnerStream
        """
        return self._with(self.key, released=True)

    def _with(self, key, released):
        stream = InnerStream(key, released)
        object.__setattr__(stream, "_from_search", self._from_search)
        return stream

    def integer(self) -> int:
        """Return a public 31-bit seed, for splitters and feature maps of other libraries.

        Returns
        -------
        int
        """
        return int.from_bytes(self.child("integer").key[:4], "little") >> 1


# accepted types of `random_state`
RandomState: TypeAlias = (
    int | np.random.SeedSequence | np.random.RandomState | np.random.Generator | InnerStream | None
)


def root_stream(random_state: RandomState = None) -> InnerStream:
    """Turn a `random_state` into the key of a stream.

    Parameters
    ----------
    random_state : None, int, SeedSequence, RandomState, Generator or InnerStream
        None takes a new key from the operating system at each call. An int or a
        SeedSequence gives the same key each time; a RandomState or Generator is
        advanced by 32 bytes, as scikit-learn's estimators advance theirs.

    Returns
    -------
    InnerStream

    Raises
    ------
    ValueError
        If an int is negative.
    TypeError
        If `random_state` is anything else.

    Examples
    --------
    >>> from dpselect.noise import root_stream
    >>> root_stream() == root_stream()
    False
    """
    global _last_key
    check_random_state(random_state)
    # noise of fits that a search never releases does not count
    if _is_for_a_release(random_state):
        _last_key = next(_keys_taken)
    if isinstance(random_state, InnerStream):
        return random_state
    if random_state is None:
        return InnerStream(secrets.token_bytes(KEY_BYTES))
    if isinstance(random_state, (int, numbers.Integral)):  # for type checkers int is not Integral
        random_state = np.random.SeedSequence(int(random_state), pool_size=8)
    if isinstance(random_state, np.random.SeedSequence):
        return InnerStream(random_state.generate_state(KEY_BYTES // 4, np.uint32).tobytes())
    return InnerStream(random_state.bytes(KEY_BYTES))


def search_stream(random_state):
    """Return the stream of a search: its streams go to inner fits, and do not warn of seeds."""
    stream = root_stream(random_state)
    stream = InnerStream(stream.key, stream.released)
    object.__setattr__(stream, "_from_search", True)
    return stream


def is_from_search(random_state: object) -> TypeGuard[InnerStream]:
    """Return whether a random state comes from a search, which has warned of its own seed."""
    return isinstance(random_state, InnerStream) and random_state._from_search


def check_random_state(random_state: object) -> None:
    """Refuse a `random_state` that does not define noise, without drawing from it.

    Parameters
    ----------
    random_state : object

    Raises
    ------
    ValueError, TypeError
        As :func:`root_stream`.

    Examples
    --------
    >>> from dpselect.noise import check_random_state
    >>> check_random_state(-1)
    Traceback (most recent call last):
    ...
    ValueError: random_state=-1 is not a seed; give None for noise that protects the data, or an
    integer of 0 or more for a test.
    """
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, (bool, np.bool_)):
        if random_state < 0:
            raise ValueError(
                f"random_state={random_state} is not a seed; give None for noise that "
                "protects the data, or an integer of 0 or more for a test."
            )
    elif random_state is not None and not isinstance(
        random_state,
        (InnerStream, np.random.SeedSequence, np.random.RandomState, np.random.Generator),
    ):
        raise TypeError(
            f"random_state of type {type(random_state).__name__} does not define the noise; give "
            "None for noise that protects the data, or an int, SeedSequence, RandomState or "
            "Generator."
        )


def as_generator(random_state: RandomState = None) -> np.random.Generator:
    """Return a new generator for `random_state`.

    Parameters
    ----------
    random_state : None, int, SeedSequence, RandomState, Generator or InnerStream
        As in :func:`root_stream`.

    Returns
    -------
    numpy.random.Generator
        Over a ChaCha stream cipher of 20 rounds.

    Examples
    --------
    >>> from dpselect.noise import as_generator
    >>> bool(as_generator(3).random() == as_generator(3).random())
    True
    >>> bool(as_generator().random() == as_generator().random())
    False
    """
    key = int.from_bytes(root_stream(random_state).key, "little")
    if (noted := _noted.get()) is not None:
        noted[0] = noted[0] or _is_for_a_release(random_state)
    return np.random.Generator(ChaCha(key=key))


def _is_for_a_release(random_state):
    return not (_dummy.get() or is_from_search(random_state) and not random_state.released)


def noise_mark():
    """Return a mark of the current state, for :func:`noise_is_drawn_since`."""
    return _last_key


def noise_is_drawn_since(mark):
    """Return whether this process may have drawn noise for a release since `mark`."""
    return _last_key != mark


@contextmanager
def noting_noise():
    """Note in a list of one bool whether this thread draws noise for a release in the block.

    Other threads may draw noise for releases of their own meanwhile, which does not count.
    """
    noted = [False]
    before = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(before)


@contextmanager
def noise_for_dummy_data():
    """Exclude the noise of a fit on dummy rows from :func:`noise_is_drawn_since`."""
    before = _dummy.set(True)
    try:
        yield
    finally:
        _dummy.reset(before)


def is_seeded(random_state: object) -> bool:
    """Return whether noise drawn from `random_state` can be drawn again.

    Parameters
    ----------
    random_state : object
        See :func:`root_stream`.

    Returns
    -------
    bool

    Examples
    --------
    >>> from dpselect.noise import is_seeded
    >>> is_seeded(None), is_seeded(0)
    (False, True)
    """
    return random_state is not None
