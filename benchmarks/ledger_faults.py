"""Kill processes that spend from one ledger, at random moments, and look at what is on disk.

Usage::

    python benchmarks/ledger_faults.py [--kills 1000] [--workers 4] [--spends 500] [--seed 0]

Workers run private searches on one ledger. Each writes down what it releases, at once, before the
ledger is told that it came out. At random moments one of them is killed (SIGKILL), and the file is
read:

- what the ledger counts must never be below what was written down;
- SQLite's own check of the file must find nothing;
- who is refused must not have released anything.

A budget that is spent is followed by a new one. The twin that spends *after* its release shows
that the harness finds what it looks for. Then eight processes spend 500 times each: the total must
be exact. No data is needed.
"""

import argparse
import multiprocessing
import os
import signal
import sqlite3
import tempfile
import time
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import numpy as np

from dpselect import BudgetExceededError, DPHistogramDensity, PrivacyLedger, StabilityGridSearchCV

EPSILON, BUDGET = 0.01, 1.0
# a killed worker is replaced, and a fork takes no import
CONTEXT = multiprocessing.get_context("fork")


class Noted(DPHistogramDensity):
    """A density that writes down what its search releases, as soon as it does.

    Inner fits of a search have a seed, and the released one has none.
    """

    notes, released = None, 0

    def fit(self, X, y=None):
        super().fit(X, y)
        if self.random_state is None:
            os.write(self.notes, f"{EPSILON!r}\n".encode())
            Noted.released += 1
        return self


def search_forever(path, notes, refusals, reserved_first):
    """Run searches until killed."""
    Noted.notes = os.open(notes, os.O_WRONLY | os.O_APPEND)
    refused = os.open(refusals, os.O_WRONLY | os.O_APPEND)
    rows = np.random.default_rng(0).uniform(size=(50, 1))
    while True:
        ledger = PrivacyLedger(path)
        search = StabilityGridSearchCV(
            Noted(bounds=(0, 1)),
            {"bin_width": [0.25, 0.5]},
            epsilon=EPSILON,
            strategy="stability",
            ledger=ledger if reserved_first else None,
        )
        before = Noted.released
        try:
            search.fit(rows)
            if not reserved_first:
                ledger.spend(EPSILON)
        except BudgetExceededError:
            os.write(refused, b"before\n" if Noted.released == before else b"late\n")
            time.sleep(0.002)


class Arena:
    """One budget, the processes that spend it, and what they wrote down."""

    def __init__(self, folder, n_workers, reserved_first):
        folder.mkdir()
        self.ledger = PrivacyLedger(folder / "records.ledger", epsilon=BUDGET)
        self.notes, self.refusals = folder / "notes", folder / "refusals"
        for file in (self.notes, self.refusals):
            file.touch()
        self.arguments = (self.ledger.path, self.notes, self.refusals, reserved_first)
        self.workers = [self.start() for _ in range(n_workers)]

    def start(self):
        worker = CONTEXT.Process(target=search_forever, args=self.arguments, daemon=True)
        worker.start()
        return worker

    def kill(self, i, replace=True):
        os.kill(self.workers[i].pid, signal.SIGKILL)
        self.workers[i].join()
        if replace:
            self.workers[i] = self.start()

    def released(self):
        return sum(map(float, self.notes.read_text().split()))

    def is_covered(self):
        """Tell whether the ledger counts all that was written down before it was read."""
        released = self.released()
        return self.ledger.spent()[0] >= released - 1e-12

    def is_whole(self):
        with closing(sqlite3.connect(self.ledger.path, timeout=60)) as connection:
            (found,) = connection.execute("PRAGMA integrity_check").fetchone()
            # one statement, so that no worker writes in between
            entries, total = connection.execute(
                "SELECT (SELECT sum(counted) FROM entries), (SELECT spent FROM budget)"
            ).fetchone()
        return found == "ok" and abs((entries or 0.0) - float(Fraction(total))) < 1e-9

    def refused(self):
        answers = self.refusals.read_text().split()
        return answers.count("before"), answers.count("late")


def run(kills, n_workers, reserved_first, seed, folder):
    """Kill workers, and return what was seen."""
    rng = np.random.default_rng(seed)
    seen = dict.fromkeys(
        [
            "kills",
            "budgets",
            "searches",
            "released",
            "spent",
            "uncommitted",
            "not covered",
            "corrupt",
            "refused before release",
            "refused after release",
        ],
        0,
    )
    while seen["kills"] < kills:
        seen["budgets"] += 1
        arena = Arena(folder / str(seen["budgets"]), n_workers, reserved_first)
        while seen["kills"] < kills and sum(arena.refused()) < 20 * n_workers:
            time.sleep(rng.exponential(0.05))
            arena.kill(int(rng.integers(n_workers)))
            seen["kills"] += 1
            seen["not covered"] += not arena.is_covered()
            seen["corrupt"] += not arena.is_whole()
        for i in range(n_workers):
            arena.kill(i, replace=False)
        seen["not covered"] += not arena.is_covered()
        seen["corrupt"] += not arena.is_whole()
        before, late = arena.refused()
        history = arena.ledger.history()
        for name, more in (
            ("searches", len(history)),
            ("released", arena.released()),
            ("spent", arena.ledger.spent()[0]),
            ("uncommitted", sum(entry.kind == "uncommitted" for entry in history)),
            ("refused before release", before),
            ("refused after release", late),
        ):
            seen[name] += more
    return seen


def spend_often(path, times):
    ledger = PrivacyLedger(path)
    for _ in range(times):
        ledger.spend(1 / 1024)


def spend_together(folder, n_processes, times):
    """Return the expected and the actual total, and seconds for one spend of one process."""
    ledger = PrivacyLedger(folder / "many.ledger", epsilon=1e6)
    workers = [
        CONTEXT.Process(target=spend_often, args=(ledger.path, times)) for _ in range(n_processes)
    ]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    seconds = time.perf_counter() - start
    return (
        n_processes * times / 1024,
        ledger.spent()[0],
        seconds / (n_processes * times),
        len(ledger.history()),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--spends", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, reserved_first in (("reserved before", True), ("twin: spends after", False)):
            kills = arguments.kills if reserved_first else max(1, arguments.kills // 5)
            start = time.perf_counter()
            place = Path(folder) / name.replace(" ", "_")
            place.mkdir()
            seen = run(kills, arguments.workers, reserved_first, arguments.seed, place)
            print(f"{name} ({time.perf_counter() - start:.0f} s)")
            for key, value in seen.items():
                print(f"  {key:22} {value:.6g}")
        for processes in (1, 8):
            place = Path(folder) / f"{processes}"
            place.mkdir()
            expected, found, seconds, entries = spend_together(place, processes, arguments.spends)
            print(
                f"{processes} processes x {arguments.spends} spends: {entries} entries, total "
                f"{found!r} of {expected!r}, {1000 * seconds:.2f} ms a spend"
            )


if __name__ == "__main__":
    main()
