"""What a process tells those that it starts, while it is true: open ledgers, strict mode.

A process that is started anew (joblib's, spawned ones) shares no memory with the one that started
it, and its environment stays as it was then. So a variable of the environment only names a file for
each process from which this one descends, and the file says what holds now. Where there is nothing
to say, there is no file.
"""

import atexit
import json
import os
import secrets
import tempfile
import threading
from contextlib import suppress

VARIABLE = "DPSELECT_PROCESSES"


class Process:
    """This process, among those from which it descends.

    Attributes
    ----------
    identity : str
        Random, another one for each process, forks included.
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._facts = {}
        self.identity = secrets.token_hex(16)
        self._ancestors = json.loads(os.environ.get(VARIABLE, "[]"))
        # a name that nobody can guess, so that nobody else can write the file
        self._file = os.path.join(_folder(), f"dpselect-{self.identity}.json")
        os.environ[VARIABLE] = json.dumps([*self._ancestors, self._file])

    def tell(self, **facts):
        """Let the processes that descend from this one know; None withdraws a fact."""
        with self._lock:
            now = {
                name: fact for name, fact in (self._facts | facts).items() if fact is not None
            }
            if now == self._facts:
                return
            if now:
                self._write(now)
            else:
                self.forget()
            self._facts = now

    def _write(self, facts):
        # whoever reads finds the old facts or the new ones
        new = f"{self._file}-{secrets.token_hex(4)}"
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(descriptor, "w") as file:
                json.dump(facts, file)
            os.replace(new, self._file)
        except BaseException:
            os.unlink(new)
            raise

    def forget(self):
        """Take the file away."""
        with suppress(FileNotFoundError):
            os.unlink(self._file)

    def told(self, name):
        """Return what the processes from which this one descends say now, as a list."""
        found = []
        for path in self._ancestors:
            try:
                with open(path) as file:
                    facts = json.load(file)
            except FileNotFoundError:
                continue
            if name in facts:
                found.append(facts[name])
        return found


def _folder():
    try:
        return tempfile.gettempdir()
    except FileNotFoundError:
        return os.getcwd()  # where writing fails too, but not before there is something to say


def _begin():
    global _this
    _this = Process()


def this_process():
    """Return the Process that this is."""
    return _this


def _end():
    # by its present value: a forked process has a file of its own
    _this.forget()


_begin()
atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin)
