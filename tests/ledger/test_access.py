"""Reading while others write, and without the right to write; files that were changed from outside."""

import contextlib
import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest

from dpselect import BudgetExceededError, PrivacyLedger, PrivacyLoss
from dpselect.ledger import access, budget_file
from dpselect.ledger.access import LedgerAccessError
from dpselect.ledger.budget_file import BudgetFile, transaction

READ = {
    "spent": lambda ledger: ledger.spent(),
    "remaining": lambda ledger: ledger.remaining(),
    "history": lambda ledger: ledger.history(),
    "total": lambda ledger: ledger.total(1e-6),
    "print": str,
    "budget": lambda ledger: ledger.budget,
    "json": lambda ledger: ledger.to_json(),
    "open": lambda ledger: PrivacyLedger(ledger.path),
    "law": lambda ledger: ledger.composition,
    "adjacency": lambda ledger: ledger.adjacency,
}


@pytest.fixture
def ledger(tmp_path):
    ledger = PrivacyLedger(tmp_path / "records.ledger", epsilon=1.0)
    ledger.spend(0.25)
    return ledger


@pytest.fixture
def reader(monkeypatch):
    """A user who may not write."""
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and real(path, mode))


def files_beside(ledger):
    return sorted(file.name for file in Path(ledger.path).parent.iterdir())


@pytest.mark.parametrize("name", READ)
def test_nobody_who_reads_waits_for_who_writes(name, ledger, monkeypatch):
    monkeypatch.setattr(access, "PATIENCE", 0.05)
    expected = READ[name](ledger)
    with contextlib.closing(sqlite3.connect(ledger.path)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert READ[name](ledger) == expected
        # the twin that reads as it would write
        with (
            pytest.raises(LedgerAccessError, match="Another process has held"),
            transaction(ledger.path),
        ):
            raise AssertionError
        with pytest.raises(LedgerAccessError, match="nothing was written; try again"):
            ledger.spend(0.25)


@pytest.mark.parametrize("name", READ)
def test_who_may_not_write_reads_and_leaves_nothing(name, ledger, reader):
    before = Path(ledger.path).read_bytes(), os.stat(ledger.path).st_mtime_ns
    READ[name](ledger)
    assert (Path(ledger.path).read_bytes(), os.stat(ledger.path).st_mtime_ns) == before
    assert files_beside(ledger) == ["records.ledger"]


def test_who_may_not_write_reads_what_is_not_yet_in_the_file(ledger, reader):
    with contextlib.closing(sqlite3.connect(ledger.path)) as other:
        other.execute("SELECT * FROM budget").fetchall()  # it keeps the file open
        ledger.spend(0.5)
        assert "records.ledger-wal" in files_beside(ledger)
        assert ledger.spent() == (0.75, 0.0)
    assert ledger.spent() == (0.75, 0.0)


def spends_while_it_is_read(ledger, monkeypatch, state):
    """Spend when a reader has made its copy, and return what it says."""
    calls = []

    def after_a_spend(path):
        calls.append(path)
        if len(calls) == 2:
            ledger.spend(0.5)
        return state(path)

    with monkeypatch.context() as patch:
        patch.setattr(access, "_state", after_a_spend)
        return ledger.spent()


def test_a_copy_of_a_file_that_is_written_is_made_again(ledger, reader, monkeypatch):
    assert spends_while_it_is_read(ledger, monkeypatch, access._state) == (0.75, 0.0)


def test_a_twin_that_sees_no_change_reads_what_was(ledger, reader, monkeypatch):
    assert spends_while_it_is_read(ledger, monkeypatch, lambda _: (0,)) == (0.25, 0.0)


def test_a_file_that_is_written_all_the_time_is_not_guessed_at(ledger, reader, monkeypatch):
    times = iter(range(1000))
    monkeypatch.setattr(access, "_state", lambda _: (next(times),))
    monkeypatch.setattr(access, "TICK", 0.001)
    with pytest.raises(LedgerAccessError, match="written all the time"):
        ledger.spent()


def as_nobody(do):
    """Return what a process of a user without rights says."""
    ends = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            said = str(do())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(ends[1], said.encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(ends[1])
    with open(ends[0]) as file:
        return file.read()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be another")
@pytest.mark.filterwarnings("ignore:This process")
@pytest.mark.parametrize("folder_mode, mode, reads, writes", [
    (0o755, 0o644, True, False), (0o777, 0o644, True, False), (0o755, 0o666, True, False),
    (0o777, 0o666, True, True), (0o777, 0o600, False, False),
])  # fmt: skip
def test_a_colleague_reads_what_may_be_read(folder_mode, mode, reads, writes):
    folder = tempfile.mkdtemp()
    try:
        ledger = PrivacyLedger(os.path.join(folder, "records.ledger"), epsilon=1.0)
        ledger.spend(0.25)
        os.chmod(ledger.path, mode)
        os.chmod(folder, folder_mode)
        said = as_nobody(lambda: PrivacyLedger(ledger.path).spent())
        assert said == "(0.25, 0.0)" if reads else "cannot be read by this user" in said
        assert files_beside(ledger) == ["records.ledger"]
        said = as_nobody(lambda: ledger.spend(0.5))
        assert said == "None" if writes else "cannot be written by this user" in said
        assert ledger.spent() == (0.75 if writes else 0.25, 0.0)
    finally:
        shutil.rmtree(folder)


# ---- what cannot be a ledger, or a label


@pytest.mark.parametrize("place, says", [
    ("", "There is a folder or a device at"), (os.devnull, "There is a folder or a device at"),
    ("a\0b", "has a NUL in it"), ("nowhere/l", "There is no folder for a ledger"),
    ("dangling/l", "There is no folder for a ledger"),
])  # fmt: skip
def test_a_path_where_no_ledger_can_be_is_refused_in_words(place, says, tmp_path):
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises((ValueError, FileNotFoundError), match=says) as raised:
        PrivacyLedger(os.path.join(tmp_path, place), epsilon=1.0)
    assert str(raised.value).endswith(".") and "SQL" not in str(raised.value)
    assert [file.name for file in tmp_path.iterdir()] == ["dangling"]


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="no such folder here")
def test_a_folder_that_takes_no_file_is_named():
    with pytest.raises(LedgerAccessError, match="No ledger can be made at /proc/l, because its folder"):
        PrivacyLedger("/proc/l", epsilon=1.0)


@pytest.mark.parametrize("label, error", [
    (None, TypeError), (3, TypeError), (b"a", TypeError), ("a\0b", ValueError), ("\ud800", ValueError),
])  # fmt: skip
def test_a_label_that_cannot_be_kept_is_refused(label, error, ledger):
    for give in (
        lambda: ledger.spend(0.25, label=label),
        lambda: ledger.reserve(0.25, label=label),
        lambda: PrivacyLedger(ledger.path, label=label),
        lambda: PrivacyLedger(ledger.path, user=3 if label is None else label),
    ):
        with pytest.raises(error, match="(label|user)(=| must be a text)"):
            give()
    assert ledger.spent() == (0.25, 0.0)
    ledger.spend(0.25, label="ä\n\U0001f600")
    assert ledger.history()[-1].label == "ä\n\U0001f600"


def test_only_a_loss_is_committed(ledger):
    reservation = ledger.reserve(0.25)
    for loss in (0.25, None, "0.25"):
        with pytest.raises(TypeError, match="loss must be a PrivacyLoss"):
            reservation.commit(loss)
    for amount in ("0.25", None, True, 10**400):
        with pytest.raises((TypeError, ValueError), match="epsilon"):
            ledger.spend(amount)
    assert ledger.spent() == (0.5, 0.0)


# ---- files that were changed from outside

CHANGES = {
    "less": "UPDATE budget SET spent = '0'",
    "negative": "UPDATE budget SET spent = '-7'",
    "nan": "UPDATE budget SET spent = 'nan'",
    "text": "UPDATE budget SET spent = 'much'",
    "division": "UPDATE budget SET spent = '1/0'",
    "more": "UPDATE budget SET spent = '1'",
    "by little": "UPDATE budget SET spent = '2499999999999999/10000000000000000'",
    "delta": "UPDATE budget SET spent_delta = '1/1000000'",
    "budget": "UPDATE budget SET epsilon = '5'",
    "law": "UPDATE budget SET law = '{}'",
    "budget that is none": "UPDATE budget SET epsilon = '-1'",
    "entry": "UPDATE entries SET counted = 0.125",
    "blob": "UPDATE entries SET counted = x'00'",
    "entry of less than nothing": "UPDATE entries SET counted = -0.25",
    "no entries": "DELETE FROM entries",
    "no entries and nothing spent": "DELETE FROM entries; UPDATE budget SET spent = '0'",
    "more than the budget": "UPDATE entries SET counted = 5; UPDATE budget SET spent = '5'",
}


def changed(ledger, how):
    with contextlib.closing(sqlite3.connect(ledger.path)) as file:
        file.executescript(CHANGES[how])
    budget_file._seen.clear()  # as in a process that opens it anew


@pytest.mark.parametrize("how", CHANGES)
def test_a_file_that_was_changed_is_refused(how, ledger, tmp_path):
    changed(ledger, how)
    for use in (
        PrivacyLedger,
        lambda path: PrivacyLedger(path, 1.0),
        lambda _: ledger.spent(),
        lambda _: ledger.remaining(),
        lambda _: ledger.spend(0.25),
        lambda _: str(ledger),
    ):
        with pytest.raises(ValueError, match="was changed from outside"):
            use(ledger.path)
    ledger.history()  # may be looked at


@pytest.mark.parametrize("how", ["less", "negative"])
def test_a_twin_that_does_not_compare_gives_more_than_there_is(how, ledger, monkeypatch):
    changed(ledger, how)
    monkeypatch.setattr(BudgetFile, "check_sums", lambda self: None)
    ledger.spend(1.0)
    assert sum(entry.epsilon for entry in ledger.history()) > ledger.budget[0]


def test_what_is_seen_to_be_true_is_not_added_up_again(ledger, monkeypatch):
    budget_file._seen.clear()
    sums, calls = BudgetFile._sums, []
    monkeypatch.setattr(BudgetFile, "_sums", lambda self: calls.append(1) or sums(self))
    for _ in range(3):
        ledger.spend(0.125)
        ledger.spent()
    reservation = ledger.reserve(0.125)
    reservation.commit(PrivacyLoss(0.0625, kind="ex-post"))
    with pytest.raises(BudgetExceededError):
        ledger.spend(1.0)
    assert len(calls) == 1 and ledger.spent() == (0.6875, 0.0)
    with contextlib.closing(sqlite3.connect(ledger.path)) as file:
        file.executescript(CHANGES["less"])
    with pytest.raises(ValueError, match="was changed from outside"):
        ledger.spent()
