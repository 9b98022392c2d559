"""The command ``dpselect``: from a table to a released model.

Without arguments a demonstration on public data runs; ``--help`` lists the commands.
"""

import os
import sys

from ._command_line import demo
from ._command_line.arguments import parse
from ._command_line.commands import COMMANDS
from ._command_line.messages import CommandError, say_error, warnings_as_notes


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
        arguments = parse(sys.argv[1:] if argv is None else list(argv))
        with warnings_as_notes():
            if arguments.command is None:
                demo.run()
            else:
                COMMANDS[arguments.command](arguments)
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


def run():
    """Run the command, as a process of its own."""
    # a name that the terminal cannot show must not lose a release that has been paid for
    sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(main())


if __name__ == "__main__":
    run()
