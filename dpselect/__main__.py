"""The command ``dpselect``: from a table to a released model.

Without arguments a demonstration on public data runs; ``--help`` lists the commands.
"""

import errno
import os
import sys

from ._command_line import demo
from ._command_line.arguments import parse
from ._command_line.commands import COMMANDS
from ._command_line.messages import (
    CommandError,
    printable,
    say_error,
    steps_on_a_terminal,
    warnings_as_notes,
)
from .ledger import LedgerAccessError

# of an output that takes no more: a reader who has left, a full disk; files that the command writes, and
# those that it reads, have errors of their own
LOST = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
# what was printed of these has been paid for
RELEASES = ("fit", "evaluate", "ledger")


def main(argv=None):
    """Run the command.

    Parameters
    ----------
    argv : list of str, default=None
        None means the arguments of the process.

    Returns
    -------
    int
        Exit code: 0, or 2 after an error, or 130 after an interrupt, or 141 if nobody reads the output.
    """
    command = None
    try:
        arguments = parse(sys.argv[1:] if argv is None else list(argv))
        command = arguments.command
        with warnings_as_notes(), steps_on_a_terminal():
            if arguments.command is None:
                demo.run()
            else:
                COMMANDS[arguments.command](arguments)
        sys.stdout.flush()
    except CommandError as error:
        say_error(error)
        return 2
    except LedgerAccessError as error:
        say_error(printable(str(error)))  # it quotes nothing of the file
        return 2
    except KeyboardInterrupt:
        say_error("Interrupted.")
        return 130
    except Exception as error:
        if isinstance(error, OSError) and error.errno in LOST:
            # or Python's own flush at exit would complain again
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if error.errno == errno.EPIPE and command not in RELEASES:
                return 141  # as of a program that ends when its reader has left, such as head
            # a disk may be full for a temporary file of a library as well, whose errors look the same
            what = "" if error.errno == errno.EPIPE else ", or a temporary file written,"
            say_error(f"The output could not be printed{what} to its end ({os.strerror(error.errno)}).")
            return 2
        # a traceback, and the messages of other libraries, may quote the records
        say_error(f"Something unexpected went wrong ({type(error).__name__}).")
        return 2
    return 0


def run():
    """Run the command as a process of its own."""
    # a name that the terminal cannot show must not lose a release that has been paid for
    sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(main())


if __name__ == "__main__":
    run()
