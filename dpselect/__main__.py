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

# errors of writing to the output: a closed pipe, a full disk; errors of files have been translated
# before
LOST = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
# commands whose output has been paid for
RELEASES = ("fit", "evaluate", "intervals", "ledger")


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
        say_error(printable(str(error)))  # the message quotes nothing of the file
        return 2
    except KeyboardInterrupt:
        say_error("Interrupted.")
        return 130
    except Exception as error:
        if isinstance(error, OSError) and error.errno in LOST:
            # avoids another error when Python flushes at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if error.errno == errno.EPIPE and command not in RELEASES:
                return 141  # 128 + SIGPIPE, as of programs whose output is piped into head
            # a library's temporary file on a full disk raises the same error
            what = "" if error.errno == errno.EPIPE else ", or a temporary file written,"
            say_error(f"The output could not be printed{what} to its end ({os.strerror(error.errno)}).")
            return 2
        # a traceback, and the messages of other libraries, may quote the records
        say_error(f"Something unexpected went wrong ({type(error).__name__}).")
        return 2
    return 0


def run():
    """Run the command as a process of its own."""
    # a name that the terminal cannot show must not lose a release that has been paid for; a file or
    # another program gets UTF-8, which has all letters
    encoding = None if sys.stdout.isatty() else "utf-8"
    sys.stdout.reconfigure(encoding=encoding, errors="backslashreplace")
    sys.exit(main())


if __name__ == "__main__":
    run()
