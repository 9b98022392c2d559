import itertools
import json
import multiprocessing
import os
import stat
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from dpselect import PrivacyLedger, config_context
from dpselect.utils import processes
from dpselect.utils.processes import VARIABLE, Process, this_process


@pytest.fixture
def family(monkeypatch, tmp_path):
    """A process, and one that it starts."""
    monkeypatch.setenv(VARIABLE, "[]")
    monkeypatch.setattr(processes.tempfile, "gettempdir", lambda: str(tmp_path))
    return Process(), Process()


@contextmanager
def held_elsewhere(lock):
    """Let another thread hold a lock while the block begins."""
    inside = threading.Event()

    def hold():
        with lock:
            inside.set()
            time.sleep(0.2)

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait(60)
    yield
    holder.join()


def test_a_descendant_is_told_what_holds_now(family):
    parent, child = family
    grandchild = Process()
    for fact in (["a"], ["a", "b"]):
        parent.publish(ledgers=fact)
        assert child.published("ledgers") == grandchild.published("ledgers") == [fact]
    child.publish(ledgers=["c"])
    assert grandchild.published("ledgers") == [["a", "b"], ["c"]]
    assert parent.published("ledgers") == [] and child.published("strict") == []
    parent.publish(ledgers=None, strict=True)
    assert grandchild.published("ledgers") == [["c"]] and child.published("strict") == [True]


def test_a_fact_holds_until_it_is_changed_whatever_else_is_told(family):
    parent, child = family
    facts = [
        ("ledgers", ["a"]),
        ("ledgers", ["b"]),
        ("ledgers", None),
        ("strict", True),
        ("strict", None),
    ]
    for told in itertools.product(facts, repeat=3):
        parent.publish(ledgers=None, strict=None)
        now = {"ledgers": None, "strict": None}
        for name, fact in told:
            parent.publish(**{name: fact})
            now[name] = fact
            for each, holds in now.items():
                assert child.published(each) == ([] if holds is None else [holds])


def test_there_is_a_file_only_while_there_is_something_to_say(family, tmp_path):
    parent, _ = family
    assert list(tmp_path.iterdir()) == []
    parent.publish(ledgers=["a"])
    (file,) = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and parent.identity in file.name
    parent.publish(ledgers=None)
    parent.publish(ledgers=None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("take", ["file", "link", "queue"])
def test_nobody_else_speaks_for_an_ancestor(take, family, tmp_path, monkeypatch):
    # its name was seen by all while there was a file, and after that it is free
    parent, child = family
    parent.publish(ledgers=["a"])
    (file,) = tmp_path.iterdir()
    parent.publish(ledgers=None)
    written = tmp_path / "written"
    written.write_text(json.dumps({"ledgers": ["another's"]}))
    if take == "file":
        written.rename(file)
        assert child.published("ledgers") == [["another's"]]  # written by this user
        monkeypatch.setattr(processes.os, "lstat", lambda path: SomeoneElses(os.stat(path)))
    elif take == "link":
        file.symlink_to(written)
    else:
        os.mkfifo(file)  # to open it would be to wait
    assert child.published("ledgers") == []


class SomeoneElses:
    def __init__(self, status):
        self.st_mode, self.st_uid = status.st_mode, status.st_uid + 1


def test_what_may_not_be_read_is_not_ignored(family, monkeypatch):
    parent, child = family

    def forbidden(*_):
        raise PermissionError

    monkeypatch.setattr("builtins.open", forbidden)
    assert child.published("ledgers") == []
    monkeypatch.undo()
    parent._write({"ledgers": ["a"]})
    monkeypatch.setattr("builtins.open", forbidden)
    with pytest.raises(RuntimeError, match="another user"):
        child.published("ledgers")


def test_an_error_says_what_cannot_be_written(family, tmp_path):
    parent, _ = family
    tmp_path.rmdir()
    with pytest.raises(OSError, match="set TMPDIR"):
        parent.publish(strict=True)
    assert parent._facts == {}


def test_what_cannot_be_told_opens_nothing(tmp_path, monkeypatch):
    ledger = PrivacyLedger(tmp_path / "records.ledger", epsilon=1.0)

    def full(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(Process, "_write", full)
    with pytest.raises(OSError, match="cannot be told"), ledger:
        raise AssertionError("the block was entered")
    monkeypatch.undo()
    from dpselect.ledger import current_ledger

    assert current_ledger() is None


def say(queue):
    queue.put((this_process().identity, this_process().published("strict"), os.environ[VARIABLE]))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no forks here")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_fork_is_a_process_of_its_own():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with config_context(strict=True):
        worker = context.Process(target=say, args=(queue,))
        worker.start()
        identity, strict, variable = queue.get(timeout=60)
        worker.join()
        assert identity != this_process().identity and True in strict
        before, after = json.loads(os.environ[VARIABLE]), json.loads(variable)
        assert after[:-1] == before and identity in after[-1]
        # it has not taken away what its parent says
        assert os.path.exists(before[-1])
    assert not os.path.exists(before[-1])


@pytest.mark.slow
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no forks here")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_fork_waits_for_a_lock_that_another_thread_holds():
    def free_in_a_fork(lock):
        worker = multiprocessing.get_context("fork").Process(
            target=lambda: os._exit(lock.acquire(timeout=1))
        )
        with held_elsewhere(lock):
            worker.start()
            worker.join()
        return worker.exitcode == 1

    assert free_in_a_fork(processes.lock_that_forks_wait_for())
    # the twin that forks do not wait for is held by nobody in the child, and never free
    assert not free_in_a_fork(threading.RLock())


@pytest.mark.slow
def test_a_process_that_ends_leaves_no_file(tmp_path):
    source = (
        "import dpselect, glob, os, tempfile\n"
        "dpselect.set_config(strict=True)\n"
        "print(len(glob.glob(os.path.join(tempfile.gettempdir(), 'dpselect-*'))))\n"
    )
    env = os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ran = subprocess.run([sys.executable, "-c", source], env=env, capture_output=True, text=True)
    assert ran.stdout == "1\n", ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_library_is_imported_where_nothing_can_be_written(monkeypatch):
    def nowhere():
        raise FileNotFoundError

    monkeypatch.setenv(VARIABLE, "[]")
    monkeypatch.setattr(processes.tempfile, "gettempdir", nowhere)
    assert Process().published("ledgers") == []
