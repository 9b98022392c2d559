"""Share facts with child processes while they are true: open ledgers, strict mode.

A process that is started anew (joblib's, spawned ones) shares no memory with the one that started
it, and its environment stays as it was then. So a variable of the environment only names a file for
each process from which this one descends, and the file says what holds now. Where there is nothing
to say, there is no file.
"""

import atexit
import json
import os
import secrets
import stat
import tempfile
import threading
from contextlib import suppress

VARIABLE = "DPSELECT_PROCESSES"


class Process:
    """This process, with its ancestors.

    Attributes
    ----------
    identity : str
        Random, another one for each process, forks included.
    """

    def __init__(self):
        # reentrant, as garbage collection may close a generator that calls `publish`
        self._lock = threading.RLock()
        # contents of the file, and whether a change was interrupted
        self._facts, self._in_doubt = {}, False
        self.identity = secrets.token_hex(16)
        self._ancestors = json.loads(os.environ.get(VARIABLE, "[]"))
        # the name cannot be guessed, but may be reused by whoever has seen it, so it includes the user
        self._file = os.path.join(_folder(), f"dpselect-{_user()}-{self.identity}.json")
        os.environ[VARIABLE] = json.dumps([*self._ancestors, self._file])

    def publish(self, **facts):
        """Publish facts for descendants of this process; None withdraws a fact."""
        with self._lock:
            now = {name: fact for name, fact in (self._facts | facts).items() if fact is not None}
            if now == self._facts and not self._in_doubt:
                return
            self._in_doubt = True
            try:
                self._write(now) if now else self.forget()
            except OSError as error:
                raise OSError(
                    f"What is open cannot be told to other processes by {self._file}, and they would "
                    "count nothing; set TMPDIR to a folder that can be written, before Python starts."
                ) from error
            self._facts, self._in_doubt = now, False

    def _write(self, facts):
        # write atomically, so that readers find the old facts or the new ones
        new = f"{self._file}-{secrets.token_hex(4)}"
        try:
            with open(new, "x", opener=_for_its_user) as file:
                json.dump(facts, file)
            os.replace(new, self._file)
        except BaseException:
            with suppress(FileNotFoundError):  # already renamed, if an interrupt came after that
                os.unlink(new)
            raise

    def forget(self):
        """Remove the file."""
        with suppress(FileNotFoundError):
            os.unlink(self._file)

    def published(self, name):
        """Return the facts that the ancestors of this process publish now, as a list.

        Raises
        ------
        RuntimeError
            If one of them says something to its own user alone.
        """
        found = []
        for path in self._ancestors:
            try:
                if not _is_of_its_user(path):
                    continue
                with open(path) as file:
                    facts = json.load(file)
            except FileNotFoundError:
                continue
            except PermissionError:
                raise RuntimeError(
                    "A process of another user, which started this one, has a ledger open or is in "
                    f"strict mode, and this one may not read {path}, so a fit might be counted "
                    f"nowhere; start it without the variable {VARIABLE}, and give it its own ledger."
                ) from None
            if name in facts:
                found.append(facts[name])
        return found


def lock_that_forks_wait_for():
    """Return a lock that is free in a forked child, because the fork acquires it."""
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )
    return lock


def _for_its_user(path, flags):
    return os.open(path, flags, 0o600)


def _user():
    # other systems have a temporary folder for each user
    return os.getuid() if hasattr(os, "getuid") else ""


def _is_of_its_user(path):
    """Return whether a file belongs to the user in its name, who alone could write it."""
    found = os.lstat(path)
    owner = os.path.basename(path).split("-")[1]
    return stat.S_ISREG(found.st_mode) and owner in ("", str(found.st_uid))


def _folder():
    try:
        return tempfile.gettempdir()
    except FileNotFoundError:
        return os.getcwd()  # writing fails there, too, but only if there is something to publish


def _begin():
    global _this
    _this = Process()


def this_process():
    """Return the Process of this process."""
    return _this


def _end():
    # look up the global now, because a forked process has its own file
    _this.forget()


_begin()
atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin)
