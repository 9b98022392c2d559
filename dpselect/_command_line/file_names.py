"""Check the paths among the arguments: no file is both read and written, and no ledger is written."""

import os
from itertools import combinations

from .messages import CommandError, name_of

READ = {"file": "FILE", "model": "MODEL", "schema": "--schema", "check": "--check", "ledger": "--ledger"}
WRITTEN = {"save": "--save", "report": "--report", "output": "--output"}


def refuse_shared_files(arguments):
    """Refuse two arguments that name the same file, if one of them is written.

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
    """Return whether two paths are those of one file, existing or not."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        # for a name without a file, it is unknown whether the file system is case-sensitive
        return os.path.realpath(one).casefold() == os.path.realpath(other).casefold()
