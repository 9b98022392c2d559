import copy
import json
import math
import multiprocessing
import os
import pickle
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone

from dpselect import BudgetExceededError, DPHistogramDensity, PrivacyLedger, PrivacyLoss
from dpselect.ledger import budget_file
from tests.marks import slow_but
from tests.test_processes import held_elsewhere


@pytest.fixture
def path(tmp_path):
    return tmp_path / "records.ledger"


@pytest.fixture
def ledger(path):
    return PrivacyLedger(path, epsilon=1.0, delta=1e-6)


def test_a_new_ledger_has_all_of_its_budget(ledger):
    assert ledger.budget == ledger.remaining() == (1.0, 1e-6)
    assert ledger.spent() == (0.0, 0.0) and ledger.history() == []
    assert str(ledger) == "epsilon 0 of 1 and delta 0 of 1e-06 are spent"


def test_every_entry_says_who_and_what_for(path, monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    plain = PrivacyLedger(path, epsilon=1.0)
    named = PrivacyLedger(path, label="March model", user="bo")
    plain.spend(0.25, label="counts")
    with named:
        DPHistogramDensity(0.25, bounds=(0, 1)).fit(np.zeros((10, 1)))
    copied = pickle.loads(pickle.dumps(named))
    with copied:
        copied.reserve(0.25, label="a path")
    monkeypatch.setattr("getpass.getuser", nameless)
    plain.spend(0.25)
    assert [(entry.user, entry.label) for entry in plain.history()] == [
        ("ada", "counts"),
        ("bo", "March model: DPHistogramDensity: histogram with laplace noise"),
        ("bo", "March model: a path"),
        ("unknown", "release"),
    ]
    assert plain == named == copied


def nameless():
    raise OSError("No username set in the environment")


def test_times_are_those_of_the_world(ledger, tmp_path):
    before = datetime.now(UTC)
    ledger.spend(0.25)
    (entry,) = ledger.history()
    assert before <= entry.reserved_at <= entry.committed_at <= datetime.now(UTC)
    (said,) = json.loads(ledger.to_json())["entries"]
    assert said["reserved_at"] == entry.reserved_at.isoformat(timespec="microseconds")
    assert said["reserved_at"].endswith("+00:00")
    # another place's time is the same moment
    moved = entry.reserved_at.astimezone(timezone(timedelta(hours=9))).isoformat()
    text = ledger.to_json().replace(said["reserved_at"], moved)
    again = PrivacyLedger.from_json(text, tmp_path / "again")
    assert again.to_json() == ledger.to_json() and again.history() == ledger.history()


def test_what_is_reserved_counts_until_less_came_out(ledger):
    reservation = ledger.reserve(0.75, 5e-7, label="a path")
    assert ledger.remaining() == (0.25, 5e-7) and ledger.history()[0].kind == "uncommitted"
    reservation.commit(PrivacyLoss(0.25, kind="ex-post"))
    assert ledger.remaining() == (0.75, 1e-6)
    (entry,) = ledger.history()
    assert (entry.epsilon, entry.delta, entry.kind) == (0.25, 0.0, "ex-post")
    assert (entry.reserved_epsilon, entry.reserved_delta) == (0.75, 5e-7)
    assert entry.reserved_at <= entry.committed_at
    assert str(ledger).endswith("0.25: a path (ex-post, of 0.75 reserved)")


@pytest.mark.parametrize("epsilon, delta", [(0.6, 0.0), (0.0, 6e-7), (math.inf, 0.0)])
def test_more_than_is_left_is_refused(ledger, epsilon, delta):
    ledger.spend(0.5, 5e-7)
    before = ledger.history()
    with pytest.raises(BudgetExceededError, match="'a scan' needs.*epsilon=0.5 and delta=5e-07 left"):
        ledger.reserve(epsilon, delta, label="a scan")
    assert ledger.history() == before and ledger.remaining() == (0.5, 5e-7)


def test_sums_are_exact(path):
    ledger = PrivacyLedger(path, epsilon=1.0)
    for _ in range(10):  # whose running sum in floating point is 0.9999999999999999
        ledger.spend(0.1)
    assert ledger.spent() == (1.0, 0.0)
    with pytest.raises(BudgetExceededError):
        ledger.spend(1e-12)


def test_all_that_remains_can_be_spent(path):
    rng = np.random.default_rng(0)
    ledger = PrivacyLedger(path, epsilon=math.pi)
    for amount in rng.exponential(0.1, size=20):
        ledger.spend(amount)
    ledger.spend(*ledger.remaining())
    assert ledger.remaining()[0] < 1e-15 and ledger.spent()[0] == math.pi


@pytest.mark.parametrize("composition", ["sum", "renyi"])
@pytest.mark.parametrize("delta", [0.0, 1e-7])
def test_it_carries_as_many_releases_as_it_pays_for(path, composition, delta):
    ledger = PrivacyLedger(path, epsilon=1.0, delta=1e-6, composition=composition)
    ledger.spend(0.3)
    loss, paid = PrivacyLoss(0.1, delta), 0
    stated = ledger.carries(loss)
    with pytest.raises(BudgetExceededError):
        for paid in range(100):  # noqa: B007
            ledger.spend(loss.epsilon, loss.delta)
    assert paid == stated > 0 == ledger.carries(loss)
    with pytest.raises(ValueError, match="loss is 0"):
        ledger.carries(PrivacyLoss(0.0))
    with pytest.raises(ValueError, match="adjacency"):
        ledger.carries(replace(loss, adjacency="replace all rows of one person"))


def test_nothing_can_be_committed_twice_or_above_what_was_reserved(ledger):
    reservation = ledger.reserve(0.5)
    for loss in (PrivacyLoss(0.6), PrivacyLoss(0.5, 1e-9)):
        with pytest.raises(ValueError, match="exceeds the reservation"):
            reservation.commit(loss)
    with pytest.raises(ValueError, match="add or remove"):
        reservation.commit(PrivacyLoss(0.1, adjacency="add or remove one record"))
    assert ledger.remaining()[0] == 0.5
    reservation.commit(PrivacyLoss(0.25))
    with pytest.raises(ValueError, match="committed before"):
        reservation.commit(PrivacyLoss(0.0))
    assert ledger.remaining()[0] == 0.75


def test_the_budget_does_not_change(ledger, path):
    ledger.spend(0.5)
    assert PrivacyLedger(path).remaining() == PrivacyLedger(path, 1.0, 1e-6).remaining()
    for epsilon, delta in ((2.0, 1e-6), (1.0, 0.0), (0.5, 1e-6)):
        with pytest.raises(ValueError, match="are not those of the ledger.*epsilon=1.0, delta=1e-06"):
            PrivacyLedger(path, epsilon, delta)
    assert ledger.remaining() == (0.5, 1e-6)


@pytest.mark.parametrize("epsilon, delta", [
    (0.0, 0.0), (-1.0, 0.0), (math.nan, 0.0), ("1", 0.0), (1.0, 1.0), (1.0, -0.1), (1.0, math.nan),
])  # fmt: skip
def test_bad_budgets_make_no_file(path, epsilon, delta):
    with pytest.raises((ValueError, TypeError), match="epsilon|delta"):
        PrivacyLedger(path, epsilon, delta)
    assert not path.exists()


@pytest.mark.parametrize("epsilon, delta", [(-1.0, 0.0), (math.nan, 0.0), (0.1, 2.0)])
def test_bad_amounts_are_refused(ledger, epsilon, delta):
    with pytest.raises(ValueError, match="epsilon|delta"):
        ledger.reserve(epsilon, delta)
    assert ledger.remaining() == (1.0, 1e-6)


def test_other_files_are_left_alone(tmp_path):
    with pytest.raises(FileNotFoundError, match="epsilon"):
        PrivacyLedger(tmp_path / "none")
    text = tmp_path / "text"
    text.write_text("age,diagnosis\n" * 100)
    other = tmp_path / "other"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE patients (name TEXT)")
    connection.close()
    for file in (text, other):
        before = file.read_bytes()
        for arguments in ((), (1.0,)):
            with pytest.raises(ValueError, match="no ledger"):
                PrivacyLedger(file, *arguments)
        if file is text:
            assert file.read_bytes() == before
    assert not (tmp_path / "none").exists()
    connection = sqlite3.connect(other)
    assert [row[0] for row in connection.execute("SELECT name FROM sqlite_master")] == ["patients"]
    connection.close()


def test_copies_are_the_same_ledger(ledger, path):
    for other in (
        copy.deepcopy(ledger),
        pickle.loads(pickle.dumps(ledger)),
        clone(ledger, safe=False),
        PrivacyLedger(str(path)),
    ):
        assert other == ledger and hash(other) == hash(ledger)
        other.spend(0.125)
    assert ledger.remaining()[0] == 0.5
    assert vars(ledger) == {"path": str(path), "label": "", "user": None, "rows_per_person": None}
    assert repr(ledger) == f"PrivacyLedger({str(path)!r})"
    assert ledger != PrivacyLedger(path.with_name("other"), epsilon=1.0)


def test_json_there_and_back(ledger, tmp_path):
    ledger.spend(0.25, label="a")
    ledger.reserve(0.25, label="b")
    ledger.reserve(0.25, 1e-7, label="c").commit(PrivacyLoss(0.125, 1e-8, kind="ex-post"))
    ledger.reserve(0.125, label="d").commit(PrivacyLoss(0.125, seeded=True))
    text = ledger.to_json()
    other = PrivacyLedger.from_json(text, tmp_path / "copy")
    assert other.history() == ledger.history() and other.remaining() == ledger.remaining()
    assert other.budget == ledger.budget and json.loads(other.to_json()) == json.loads(text)
    with pytest.raises(FileExistsError, match="lost or counted twice"):
        PrivacyLedger.from_json(text, tmp_path / "copy")
    assert other.history()[-1].seeded
    assert other.spend(0.125) is None and other.history()[-1].id == 5


def test_a_file_that_was_made_again_is_a_new_ledger(ledger, path):
    ledger.spend(0.5)
    for file in path.parent.glob("records.ledger*"):
        file.unlink()
    with pytest.raises((FileNotFoundError, ValueError)):
        PrivacyLedger(path)
    assert PrivacyLedger(path, epsilon=2.0).remaining() == ledger.remaining() == (2.0, 0.0)


def spend_often(path, times, amount):
    ledger, spent = PrivacyLedger(path), 0
    for i in range(times):
        try:
            ledger.spend(amount, label=str(i))
            spent += 1
        except BudgetExceededError:
            pass
    return spent


@pytest.mark.parametrize("method", slow_but(["fork", "threads", "spawn", "loky"], 0, 1))
def test_workers_share_one_budget(path, method):
    ledger = PrivacyLedger(path, epsilon=1.0)
    tasks = [(path, 10, 0.03)] * 4
    if method == "threads":
        with ThreadPoolExecutor(4) as pool:
            spent = list(pool.map(lambda task: spend_often(*task), tasks))
    elif method == "loky":
        spent = Parallel(n_jobs=2, backend="loky")(delayed(spend_often)(*task) for task in tasks)
    else:
        with multiprocessing.get_context(method).Pool(2) as pool:
            spent = pool.starmap(spend_often, tasks)
    # 33 times 0.03 fit into 1
    assert sum(spent) == len(ledger.history()) == 33
    assert ledger.spent()[0] == pytest.approx(0.99)


def test_two_make_one_ledger(path):
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: PrivacyLedger(path, epsilon=1.0), range(8)))
    for ledger in made:
        ledger.spend(0.125)
    assert made[0].remaining() == (0.0, 0.0)


@pytest.mark.parametrize("size", [0, 1, 100, 4096])
def test_a_file_that_was_cut_is_not_made_again(ledger, path, size):
    ledger.spend(1.0)
    path.write_bytes(path.read_bytes()[:size])
    for arguments in ((), (1.0, 1e-6)):
        with pytest.raises(ValueError, match="or one that was cut"):
            PrivacyLedger(path, *arguments)
    with pytest.raises(FileExistsError):
        PrivacyLedger.from_json(PrivacyLedger(path.with_name("other"), 1.0).to_json(), path)
    assert path.stat().st_size == size


def test_what_a_lost_ledger_left_is_not_written_over(path):
    path.with_name(path.name + "-wal").write_bytes(b"pages")
    with pytest.raises(ValueError, match="belongs to one that was lost"):
        PrivacyLedger(path, 1.0)
    assert not path.exists()


@pytest.mark.parametrize("at", ["commit", "link", "unlink"])
def test_a_ledger_is_made_as_a_whole_or_not_at_all(at, path, monkeypatch):
    class DiedError(BaseException):
        pass

    def die(*_):
        raise DiedError

    if at == "commit":
        monkeypatch.setattr(budget_file, "_give_name", die)
    else:
        monkeypatch.setattr(os, at, die)
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)  # who dies does not tidy up
    with pytest.raises(DiedError):
        PrivacyLedger(path, 1.0)
    monkeypatch.undo()
    assert path.exists() == (at == "unlink")
    # the second name that was left is no hard link that somebody made
    assert PrivacyLedger(path, 1.0).remaining() == (1.0, 0.0)
    assert path.stat().st_nlink == 1


def test_a_file_system_without_hard_links_has_ledgers_too(path, monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    PrivacyLedger(path, 1.0).spend(0.25)
    assert PrivacyLedger(path, 1.0).spent() == (0.25, 0.0)
    with pytest.raises(FileExistsError):
        budget_file._give_name(str(path) + "other", str(path))
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def make_and_spend(path, start):
    start.wait()
    ledger = PrivacyLedger(path, epsilon=1.0)
    ledger.spend(0.125)


@pytest.mark.slow
def test_processes_make_one_ledger(tmp_path):
    context = multiprocessing.get_context("fork")
    for round_ in range(5):
        path, start = tmp_path / str(round_), context.Event()
        workers = [context.Process(target=make_and_spend, args=(path, start)) for _ in range(8)]
        for worker in workers:
            worker.start()
        start.set()
        for worker in workers:
            worker.join()
        assert [worker.exitcode for worker in workers] == [0] * 8
        assert PrivacyLedger(path).spent() == (1.0, 0.0)
    assert sorted(file.name for file in tmp_path.iterdir()) == [str(i) for i in range(5)]


def test_only_its_holder_commits_a_reservation(ledger, tmp_path):
    reservation = ledger.reserve(0.5)
    forged = replace(reservation, token="0" * 32)
    with pytest.raises(ValueError, match="no such reservation"):
        forged.commit(PrivacyLoss(0.0))
    # the same id in a file that was made again
    other = PrivacyLedger(tmp_path / "other", epsilon=1.0)
    other.reserve(0.25)
    with pytest.raises(ValueError, match="no such reservation"):
        replace(reservation, path=other.path).commit(PrivacyLoss(0.0))
    assert ledger.spent()[0] == 0.5 and other.spent()[0] == 0.25
    pickle.loads(pickle.dumps(reservation)).commit(PrivacyLoss(0.125))
    assert ledger.spent()[0] == 0.125


def test_losses_of_any_float_are_counted_and_seeded_ones_told(ledger):
    ledger.reserve(np.float32(0.5)).commit(PrivacyLoss(np.float32(0.25), seeded=True))
    ledger.spend(np.float16(0.25))
    assert ledger.spent() == (0.5, 0.0)
    assert [type(entry.epsilon) for entry in ledger.history()] == [float, float]
    assert ledger.history()[0].seeded and "whoever knows the seed" in str(ledger)


def test_a_ledger_is_for_one_adjacency(tmp_path):
    holdout = "replace one holdout record"
    ledger = PrivacyLedger(tmp_path / "holdout", epsilon=1.0, adjacency=holdout)
    assert ledger.adjacency == PrivacyLedger(ledger.path).adjacency == holdout
    with pytest.raises(ValueError, match="made with adjacency='replace one record'"):
        ledger.spend(0.5)
    with pytest.raises(ValueError, match="are not those"):
        PrivacyLedger(ledger.path, epsilon=1.0)
    ledger.spend(0.5, adjacency=holdout)
    assert ledger.remaining() == (0.5, 0.0)
    assert PrivacyLedger.from_json(ledger.to_json(), tmp_path / "copy").adjacency == holdout


TAMPERED = {  # of the first entry, or of the whole
    "less": lambda first, given: first.pop("epsilon"),
    "over the budget": lambda first, given: first.update(reserved_epsilon=5.0, epsilon=5.0),
    "over the budget of delta": lambda first, given: first.update(
        reserved_delta=2 * given["delta"], delta=2 * given["delta"]
    ),
    "over the reservation": lambda first, given: first.update(epsilon=0.5),
    "negative": lambda first, given: first.update(reserved_epsilon=-1.0, epsilon=-1.0),
    "nan": lambda first, given: first.update(reserved_epsilon=math.nan, epsilon=math.nan),
    "kind": lambda first, given: first.update(kind="free"),
    "budget": lambda first, given: given.update(epsilon=math.nan, entries=[]),
    "delta": lambda first, given: given.update(delta=1.0),
    "truth": lambda first, given: first.update(id=True),
    "digits": lambda first, given: first.update(epsilon="0_0"),
    "huge": lambda first, given: first.update(id=2**63),
    "label": lambda first, given: first.update(label=["a"]),
    "time": lambda first, given: first.update(reserved_at="now"),
    "time of nowhere": lambda first, given: first.update(reserved_at="2026-01-31T12:00:00"),
    "user": lambda first, given: first.update(user=None),
    "twice": lambda first, given: given["entries"].append(first),
}


@pytest.mark.parametrize("how", [*TAMPERED, "text"])
def test_a_tampered_export_makes_no_ledger(ledger, tmp_path, how):
    ledger.spend(0.25, label="a")
    given = json.loads(ledger.to_json())
    TAMPERED.get(how, lambda *_: None)(given["entries"][0], given)
    with pytest.raises(ValueError, match="text is not what to_json"):
        PrivacyLedger.from_json("ages: 17" if how == "text" else json.dumps(given), tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_file_at_rest_is_whole(ledger, path, tmp_path):
    ledger.spend(0.25)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    shutil.copy(path, tmp_path / "moved")
    assert PrivacyLedger(tmp_path / "moved").spent() == (0.25, 0.0)


def test_a_ledger_that_is_gone_is_no_new_one(ledger, path):
    path.unlink()
    with pytest.raises(FileNotFoundError, match="is gone"):
        ledger.spend(0.25)
    assert not path.exists()


def test_a_file_of_a_later_version_is_not_guessed_at(ledger, path):
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {budget_file.VERSION_WITH_PARTS + 1}")
    connection.close()
    with pytest.raises(ValueError, match=f"version {budget_file.VERSION_WITH_PARTS + 1}"):
        ledger.remaining()


def test_a_second_name_is_refused(ledger, path, tmp_path):
    (tmp_path / "symbolic").symlink_to(path)
    PrivacyLedger(tmp_path / "symbolic").spend(0.25)
    os.link(path, tmp_path / "hard")
    with pytest.raises(ValueError, match="2 names"):
        PrivacyLedger(tmp_path / "hard")
    with pytest.raises(ValueError, match="2 names"):
        ledger.spend(0.25)
    (tmp_path / "hard").unlink()
    assert ledger.spent() == (0.25, 0.0)


@pytest.mark.filterwarnings("ignore:This process")
def test_a_fork_takes_no_open_file_with_it(ledger):
    # else the child waits for a lock that nobody holds, or commits without one
    worker = multiprocessing.get_context("fork").Process(target=ledger.spend, args=(0.25,))
    with held_elsewhere(budget_file.transaction(ledger.path)):
        worker.start()
        worker.join()
    assert worker.exitcode == 0 and ledger.spent() == (0.25, 0.0)


def test_sums_beyond_the_largest_float_are_refused(tmp_path):
    ledger = PrivacyLedger(tmp_path / "large", epsilon=1e308)
    ledger.spend(9e307)
    with pytest.raises(BudgetExceededError):
        ledger.spend(1.7e308)
    ledger.spend(ledger.remaining()[0])
    assert ledger.spent() == (1e308, 0.0)
