"""What the command says on the error stream: one sentence each, never with a cell's value."""

import sys


class CommandError(Exception):
    """A mistake that the person at the keyboard can mend; the text is one sentence."""


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


def say_error(text):
    """Print an error."""
    print(f"error: {text}", file=sys.stderr)


def say_note(text):
    """Print something that the person should know, on the error stream to keep JSON clean."""
    print(f"note: {text}", file=sys.stderr)
