"""Messages on the error stream: one sentence each, never with a cell's value."""

import logging
import sys
import warnings
from contextlib import contextmanager

from ..exceptions import PrivacyLeakWarning

LOGGER = logging.getLogger("dpselect")


class CommandError(Exception):
    """A mistake that the user can fix; the text is one sentence."""


def name_of(name, limit=60):
    """Return a name (of a column or file, public) quoted, short and on one line.

    Parameters
    ----------
    name : object
        Anything with a text; file names and headers may hold line breaks.
    limit : int, default=60
        Characters to keep.

    Returns
    -------
    str
    """
    text = str(name)
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")


def columns_named(names, limit=12):
    """Return the names of columns, preceded by "column" or "columns".

    Parameters
    ----------
    names : list
    limit : int, default=12
        As many are named.

    Returns
    -------
    str
    """
    shown = [name_of(name) for name in names[:limit]]
    if len(names) == 1:
        return f"column {shown[0]}"
    shown += [f"{len(names) - limit} more"] if len(names) > limit else []
    return f"columns {', '.join(shown[:-1])} and {shown[-1]}"


def printable(text):
    """Return a text with unprintable characters escaped, line breaks included."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def say_error(text):
    """Print an error."""
    print(f"error: {text}", file=sys.stderr)


def say_note(text):
    """Print a note for the user, on the error stream to keep JSON clean."""
    sys.stdout.flush()  # keep the order of both streams on a terminal
    print(f"note: {text}", file=sys.stderr)


@contextmanager
def warnings_as_notes():
    """Print warnings as notes, one sentence each, inside the block."""
    with warnings.catch_warnings():
        # deprecation warnings of other libraries are not for users of the command
        for category in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", category)
        for category in (UserWarning, RuntimeWarning):
            warnings.simplefilter("always", category)
        # the plan, which is printed, has a forecast of it
        warnings.filterwarnings("ignore", "n epsilon over the length of the noise")
        warnings.showwarning = _show
        yield


class _Steps(logging.Handler):
    """Log handler that prints the name and the start time of each step."""

    def emit(self, record):
        elapsed = record.relativeCreated / 1000
        print(f"[{elapsed:5.1f} s] {printable(record.getMessage())}", file=sys.stderr, flush=True)


@contextmanager
def steps_on_a_terminal():
    """Print the steps inside the block, if the error stream is a terminal.

    Not into a file, which would keep how long they took: that depends on the records.
    """
    if not sys.stderr.isatty():
        yield
        return
    handler, level = _Steps(), LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOGGER.setLevel(level)
        LOGGER.removeHandler(handler)


def _show(message, category, filename, lineno, file=None, line=None):
    # only our own warnings are known not to quote the data
    known = issubclass(category, PrivacyLeakWarning)
    say_note(message if known else f"A library gave a {category.__name__}.")
