"""``python -m dpselect``: tune and release a model from the command line.

Without arguments a demonstration on public data runs; ``--help`` lists the arguments.
"""

import os
import sys

from ._command_line import demo, report
from ._command_line.arguments import parse, parse_ledger
from ._command_line.ledger import open_ledger
from ._command_line.ledger import to_text as ledger_text
from ._command_line.messages import CommandError, say_error, say_note, warnings_as_notes
from ._command_line.release import ModelFile, make_search, plan
from ._command_line.schema import read_bounds
from ._command_line.table import read_table
from .exceptions import BudgetExceededError


def main(argv=None):
    """Run the command.

    Parameters
    ----------
    argv : list of str, default=None
        None means the arguments of the process.

    Returns
    -------
    int
        Exit code: 0, or 2 after an error, or 130 after an interrupt.
    """
    try:
        argv = sys.argv[1:] if argv is None else list(argv)
        with warnings_as_notes():
            if argv[:1] == ["ledger"]:
                _show_ledger(parse_ledger(argv[1:]))
            else:
                _tune(parse(argv))
        sys.stdout.flush()
    except CommandError as error:
        say_error(error)
        return 2
    except BrokenPipeError:
        # whoever read the output has left, and Python's own flush at exit would complain again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        say_error("The output could not be printed to its end.")
        return 2
    except KeyboardInterrupt:
        say_error("Interrupted.")
        return 130
    except Exception as error:
        # a traceback, and the messages of other libraries, may quote the records
        say_error(f"Something unexpected went wrong ({type(error).__name__}).")
        return 2
    return 0


def _tune(arguments):
    if arguments.file is None:
        demo.run()
    else:
        _release(arguments)


def _show_ledger(arguments):
    ledger = open_ledger(arguments.ledger, arguments.epsilon, arguments.delta)
    print(ledger.to_json() if arguments.json else ledger_text(ledger))


def _release(arguments):
    """Read, plan, fit, save and print; what can be refused is refused before the fit."""
    model_file = ModelFile(arguments.save) if arguments.save is not None else None
    schema = read_bounds(arguments.bounds) if arguments.bounds is not None else None
    ledger = open_ledger(arguments.ledger) if arguments.ledger is not None else None
    table = read_table(arguments.file, arguments.target, schema)
    _say_what_is_not_covered(table, schema)
    search = make_search(
        table.domains, table.classes, arguments.alpha, arguments.epsilon, ledger
    )
    planned = plan(search, table.domains, table.classes, len(table.y))
    if not arguments.json:
        print(report.plan_text(planned), end="\n\n", flush=True)
    try:
        search.fit(table.X, table.y)
    except BudgetExceededError as error:
        # it names the loss and the ledger, and nothing of the records
        raise CommandError(str(error)) from None
    try:
        if model_file is not None:
            model_file.write(search.best_estimator_)
    finally:
        # it has been paid for, whether or not the disk took it
        if arguments.json:
            print(report.to_json(search, planned, table.domains))
        else:
            print(report.to_text(search, table.domains))


def _say_what_is_not_covered(table, schema):
    if table.labels_were_learned:
        say_note(
            "The labels were learned from the records, which the privacy loss does not cover; "
            "list them in the bounds file as strings under the name of the target."
        )
    if schema is None:
        say_note(
            "Without --bounds the columns keep their own scale and every row is scaled down to "
            "norm 1, which drowns small columns in large ones."
        )


if __name__ == "__main__":
    # a name that the terminal cannot show must not lose a release that has been paid for
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # no other TextIO
    sys.exit(main())
