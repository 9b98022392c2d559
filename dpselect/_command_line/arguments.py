"""The arguments of the command, each checked before any file is read."""

import argparse
import math

from .messages import CommandError, name_of, printable

DESCRIPTION = (
    "Tune a logistic regression and release it with differential privacy. Without arguments: "
    "a demonstration on public data."
)
EPILOG = (
    "python -m dpselect ledger --help: a budget for one data set, kept in a file. "
    "The bounds file is a JSON object. A numeric column has two numbers, what it can be by "
    'knowledge of the field: {"age": [0, 120]}. A categorical column, and the target, has all '
    'its possible values as strings: {"smoker": ["yes", "no"], "grade": ["1", "2", "3"]}. More can be '
    'said: {"income": {"bounds": [0, 1e6], "transform": "log1p", "missing": true}}. '
    "Nothing in it may be looked up in the records."
)

# far outside what makes sense, and far inside what float64 computes without overflow
SMALLEST, LARGEST = 1e-6, 1e6


class _Parser(argparse.ArgumentParser):
    """Reports a mistake as one sentence, without the usage."""

    def error(self, message):
        # argparse quotes arguments as they are, and those can hold line breaks
        raise CommandError(f"{printable(message)}; see python -m dpselect --help.")


def parse(argv=None):
    """Return the checked arguments.

    Parameters
    ----------
    argv : list of str, default=None
        None means those of the process.

    Returns
    -------
    argparse.Namespace
        With `file` None for the demonstration.

    Raises
    ------
    CommandError
        If an argument is missing or out of range.
    """
    parser = _Parser(
        prog="python -m dpselect", description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False
    )
    parser.add_argument("file", nargs="?", metavar="FILE",
                        help="the records: .csv or .csv.gz, with a header")
    parser.add_argument("--target", metavar="COL", help="column that holds the labels")
    parser.add_argument("--epsilon", metavar="E", help="privacy loss of all that is released")
    parser.add_argument("--bounds", metavar="JSON", help="public bounds and categories")
    parser.add_argument("--alpha", nargs="+", metavar="A",
                        help="strengths of the regularisation to choose from; without it, or with "
                        "one, nothing is selected and the model gets the whole epsilon")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--save", metavar="MODEL", help="write the model: .skops or .pkl")
    parser.add_argument("--ledger", metavar="LEDGER", help="the budget that pays for the release")
    arguments = parser.parse_args(argv)
    if arguments.file is None:
        _refuse_options_without_a_file(arguments)
        return arguments
    for name in ("target", "epsilon"):
        if getattr(arguments, name) is None:
            raise CommandError(f"--{name} is missing; it must be given together with a file.")
    arguments.epsilon = _positive("--epsilon", arguments.epsilon)
    arguments.alpha = [_positive("--alpha", text) for text in arguments.alpha or ()]
    if len(set(arguments.alpha)) < len(arguments.alpha):
        raise CommandError(
            "--alpha names a value twice, which adds noise to the selection for nothing; "
            "write each value once."
        )
    return arguments


def parse_ledger(argv):
    """Return the checked arguments of the command ``ledger``.

    Parameters
    ----------
    argv : list of str
        Those after it.

    Returns
    -------
    argparse.Namespace

    Raises
    ------
    CommandError
        If an argument is missing or out of range.
    """
    parser = _Parser(
        prog="python -m dpselect ledger", allow_abbrev=False,
        description="Show what was spent on a data set, and what is left; with --epsilon, make its "
        "ledger.",
    )
    parser.add_argument("ledger", metavar="FILE")
    parser.add_argument("--epsilon", metavar="E", help="budget of a new ledger")
    parser.add_argument("--delta", metavar="D", default="0", help="likewise (default: 0)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args(argv)
    if arguments.epsilon is not None:
        arguments.epsilon = _positive("--epsilon", arguments.epsilon)
    try:
        arguments.delta = float(arguments.delta)
    except ValueError:
        arguments.delta = math.nan
    if not 0 <= arguments.delta < 1:
        raise CommandError("--delta must be a number of 0 or more, and less than 1.")
    return arguments


def _refuse_options_without_a_file(arguments):
    given = [name for name, value in vars(arguments).items() if value not in (None, False)]
    if given:
        raise CommandError(
            f"--{given[0]} needs a file; without arguments the demonstration runs, which has no "
            "options."
        )


def _positive(option, text):
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not SMALLEST <= value <= LARGEST:
        raise CommandError(
            f"{option} must be a number greater than 0, such as 1.0 ({SMALLEST:g} to {LARGEST:g}), "
            f"not {name_of(text)}."
        )
    return value
