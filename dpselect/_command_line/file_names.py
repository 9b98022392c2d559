"""Paths among the arguments of the command: no file is written that is read, or that is a ledger."""

import os
from itertools import combinations

from .messages import CommandError, name_of

READ = {"file": "FILE", "model": "MODEL", "schema": "--schema", "check": "--check", "ledger": "--ledger"}
WRITTEN = {"save": "--save", "report": "--report", "output": "--output"}


def refuse_shared_files(arguments):
    """Refuse arguments of which one names the file of another one that is written.

    Parameters
    ----------
    arguments : argparse.Namespace

    Raises
    ------
    CommandError
        If there are two; nothing was read.
    """
    given = {
        said: path for name, said in (READ | WRITTEN).items() if (path := getattr(arguments, name, None))
    }
    for one, other in combinations(given, 2):
        if other in WRITTEN.values() and same_file(given[one], given[other]):
            raise CommandError(
                f"{one} and {other} name one file, {name_of(given[other])}, of which one use would "
                f"destroy the other; give another name to {other}."
            )


def same_file(one, other):
    """Tell whether two paths lead to one file, or would if there were files."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        # of a name without a file it is not known whether the disk tells capital letters apart
        return os.path.realpath(one).casefold() == os.path.realpath(other).casefold()
