"""Ledgers with public parts: of releases about different parts only the larger sum counts."""

import json
import math
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config

from dpselect import (
    BudgetExceededError,
    DPHistogramDensity,
    DPLogisticRegression,
    PrivacyLedger,
    PrivacyLedgerDisplay,
    PrivacyLoss,
    coef_interval,
    privacy_report,
)
from dpselect.accounting import GaussianEvent
from dpselect.accounting.gaussian import gaussian_mu

HALVES = ["first half", "second half"]
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(2000, 2))
Y = (X[:, 0] > 0).astype(int)


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "parts.ledger", epsilon=2.0, delta=1e-5, parts=HALVES)


def test_a_model_and_its_intervals_on_halves_count_as_the_larger(ledger):
    first, second = map(ledger.part, HALVES)
    with first:
        model = DPLogisticRegression(1.0, classes=[0, 1]).fit(X[:1000], Y[:1000])
    coef_interval(model, X[1000:], Y[1000:], epsilon=1.5, n_samples=1000, ledger=second)
    assert ledger.spent() == (1.5, 0.0)
    assert first.spent() == (1.0, 0.0) and first.remaining() == (1.0, 1e-5)
    assert second.spent() == (1.5, 0.0) and second.remaining() == (0.5, 1e-5)
    assert ledger.total(1e-6) == max(first.total(1e-6), second.total(1e-6)) <= 1.5
    assert [entry.part for entry in ledger.history()] == HALVES
    assert "about 'first half' only" in str(ledger)
    ledger.spend(0.5, label="about all records")
    assert ledger.spent() == (2.0, 0.0) and first.spent() == (1.5, 0.0)
    with pytest.raises(BudgetExceededError, match=r"epsilon=0\.5 and"):
        first.spend(0.6)
    first.spend(0.5)
    for each in (first, second, ledger):
        with pytest.raises(BudgetExceededError):
            each.spend(1e-9)
    report = str(privacy_report(ledger))
    assert "of which only the larger sum counts" in report and "Left for 'second half'" in report


@pytest.mark.parametrize("composition", ["sum", "renyi"])
@pytest.mark.parametrize("seed", range(3))
def test_no_part_ever_exceeds_the_budget(tmp_path, composition, seed):
    """Against sums made anew; the twin that adds all up refuses earlier."""
    parts, rng = ["a", "b", "c"], np.random.default_rng(seed)
    ledger = PrivacyLedger(
        tmp_path / "parts.ledger", epsilon=2.0, delta=1e-5, composition=composition, parts=parts
    )
    plain = PrivacyLedger(tmp_path / "plain.ledger", epsilon=2.0, delta=1e-5, composition=composition)
    law, counted, refused = None, {part: [] for part in ("", *parts)}, [0, 0]
    for _ in range(60):
        part, epsilon = str(rng.choice(["", *parts])), round(float(rng.uniform(0, 0.4)), 3)
        event = GaussianEvent(gaussian_mu(epsilon, 1e-7)) if rng.random() < 0.3 and epsilon else None
        loss = PrivacyLoss(epsilon, 1e-7 if event else 0.0, event=event)
        with_part = ledger.part(part) if part else ledger
        law = law or _law(ledger)
        amounts = tuple(map(_exact, law.amounts(PrivacyLoss(loss.epsilon, loss.delta))))
        before = ledger.to_json()
        refused[1] += reserved(plain, loss) is None
        reservation = reserved(with_part, loss)
        assert (reservation is None) != _fits(counted, part, amounts, law)
        if reservation is None:
            refused[0] += 1
            assert ledger.to_json() == before
            continue
        if rng.random() < 0.8:
            reservation.commit(loss)
            amounts = tuple(map(_exact, law.amounts(loss)))
        counted[part].append(amounts)
        for name in parts:
            spent = law.guarantee(tuple(map(float, _sum(counted, name))))
            assert ledger.part(name).spent() == pytest.approx(spent)
            assert ledger.part(name).remaining() >= ledger.remaining()
        largest = [max(_sum(counted, name)[i] for name in parts) for i in (0, 1)]
        assert ledger.spent() == pytest.approx(law.guarantee(tuple(map(float, largest))))
    assert 0 < refused[0] < refused[1]
    copy = PrivacyLedger.from_json(ledger.to_json(), tmp_path / "copy.ledger")
    assert copy.spent() == ledger.spent() and copy.parts == tuple(parts)
    assert [copy.part(name).spent() for name in parts] == [ledger.part(name).spent() for name in parts]


# whatever a ledger tells of its amounts
TOLD = {
    "spent": PrivacyLedger.spent,
    "remaining": PrivacyLedger.remaining,
    "total": lambda ledger: ledger.total(1e-4),
    "carries": lambda ledger: ledger.carries(PrivacyLoss(0.05)),
    "report": lambda ledger: privacy_report(ledger).privacy.epsilon,
}


@pytest.mark.parametrize("composition", ["sum", "renyi"])
def test_a_part_tells_what_a_ledger_of_its_releases_alone_would(tmp_path, composition):
    """Of releases about it, and about all records; the whole tells what the worst part does."""
    budget = {"epsilon": 3.0, "delta": 1e-4, "composition": composition}
    ledger = PrivacyLedger(tmp_path / "parts.ledger", **budget, parts=HALVES)
    alone = {name: PrivacyLedger(tmp_path / name, **budget) for name in HALVES}
    for part, epsilon in [("", 0.2), (HALVES[0], 0.4), (HALVES[1], 0.3), (HALVES[1], 0.15), ("", 0.1)]:
        event = GaussianEvent(gaussian_mu(epsilon, 1e-6)) if part != HALVES[1] else None
        for each in (
            ledger.part(part) if part else ledger,
            *(alone[n] for n in HALVES if part in ("", n)),
        ):
            each.spend(epsilon, 1e-6, event=event)
    for name, told in TOLD.items():
        found = [told(ledger.part(part)) for part in HALVES]
        assert found == [told(alone[part]) for part in HALVES], name
        assert found[0] != found[1]
        assert told(ledger) == (min if name in ("remaining", "carries") else max)(found)


def reserved(ledger, loss):
    try:
        return ledger.reserve(loss.epsilon, loss.delta)
    except BudgetExceededError:
        return None


def _law(ledger):
    from dpselect.ledger.budget_file import snapshot

    with snapshot(ledger.path) as file:
        return file.law


def _exact(amount):
    return Fraction(repr(float(amount)))


def _sum(counted, part):
    found = [*counted[""], *(counted[part] if part else [])]
    return [sum((amounts[i] for amounts in found), Fraction(0)) for i in (0, 1)]


def _fits(counted, part, amounts, law):
    parts = [part] if part else [name for name in counted if name]
    return all(
        _sum(counted, name)[i] + amounts[i] <= _exact(law.limits[i]) * (1 + Fraction(1, 2**51))
        for name in parts
        for i in (0, 1)
    )


# ---- parallel composition: the exact loss


def largest_loss(parts_of, epsilon=1.0):
    """The largest loss of a count of ones in each part, of four records, over replaced records.

    Counts have discrete Laplace noise that hides a change of 1 at `epsilon`; noise is independent, so
    losses of changes add up.
    """
    worst = 0.0
    records = [(0, 0), (0, 1), (1, 0), (1, 1)]
    for i in range(4):
        for other in [(a, b) for a in (0, 1) for b in (0, 1)]:
            neighbour = [*records[:i], other, *records[i + 1 :]]
            counts = [parts_of(data) for data in (records, neighbour)]
            worst = max(worst, sum(abs(one - two) for one, two in zip(*counts)) * epsilon)
    return worst


def test_parts_by_position_lose_the_larger_and_parts_by_value_the_sum():
    def by_position(data):
        return sum(b for _, b in data[:2]), sum(b for _, b in data[2:])

    def by_value(data):
        return tuple(sum(b for a, b in data if a == part) for part in (0, 1))

    assert largest_loss(by_position) == 1.0
    assert largest_loss(by_value) == 2.0  # a replaced record leaves one part and enters another


# ---- files, processes, threads


def test_a_plain_ledger_is_as_it_was(tmp_path, ledger):
    plain = PrivacyLedger(tmp_path / "plain.ledger", epsilon=1.0)
    plain.spend(0.5)
    assert plain.parts == () and plain.history()[0].part == ""
    assert not {"parts", "part"} & {*(text := json.loads(plain.to_json())), *text["entries"][0]}
    connection = sqlite3.connect(plain.path)
    assert connection.execute("PRAGMA user_version").fetchone() == (5,)
    columns = [row[1] for row in connection.execute("PRAGMA table_info(entries)")]
    assert "part" not in columns and not connection.execute("PRAGMA table_info(parts)").fetchall()
    connection.close()
    assert PrivacyLedger(ledger.path).parts == tuple(HALVES)
    assert PrivacyLedger(ledger.path, 2.0, 1e-5, parts=HALVES) == ledger


SPEND = """
import sys
from dpselect import PrivacyLedger
ledger = PrivacyLedger(sys.argv[1])
for i in range(40):
    (ledger.part(ledger.parts[i % 2]) if i % 4 else ledger).spend(0.001)
    print(i, flush=True)
"""


def test_processes_that_are_killed_leave_true_sums(ledger):
    children = [
        subprocess.Popen([sys.executable, "-c", SPEND, ledger.path], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for _ in range(7):
        children[0].stdout.readline()
    os.kill(children[0].pid, signal.SIGKILL)
    said = [child.communicate()[0].split() for child in children]
    assert children[0].returncode == -signal.SIGKILL and [len(s) for s in said[1:]] == [40, 40]
    parts = [entry.part for entry in ledger.history()]
    assert 87 <= len(parts) <= 120
    sums = [(parts.count("") + parts.count(half)) / 1000 for half in HALVES]
    assert [ledger.part(half).spent()[0] for half in HALVES] == pytest.approx(sums, abs=1e-12)
    assert ledger.spent()[0] == pytest.approx(max(sums), abs=1e-12)


def fit(model=None):
    return (model or DPHistogramDensity(0.1, bounds=(-1, 1), bin_width=1.0)).fit(X)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_workers_count_for_the_part_or_for_all(ledger, backend):
    part = ledger.part("first half")
    model = DPHistogramDensity(0.1, bounds=(-1, 1), bin_width=1.0, ledger=part)
    with parallel_config(backend), part:
        Parallel(n_jobs=2)(delayed(fit)(model) for _ in range(2))
        Parallel(n_jobs=2)(delayed(fit)() for _ in range(2))
    parts = [entry.part for entry in ledger.history()]
    # a process that builds its model knows the path of the file alone
    assert parts == ["first half"] * 2 + ["first half" if backend == "threading" else ""] * 2
    assert ledger.spent()[0] == pytest.approx(0.4)
    assert pickle.loads(pickle.dumps(part)).part_name == "first half"


def test_an_estimator_that_was_pickled_for_one_part_does_not_count_for_another(ledger):
    first, second = map(ledger.part, HALVES)
    with first:
        text = pickle.dumps(DPHistogramDensity(0.1, bounds=(-1, 1), bin_width=1.0))
    with second, ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: fit(pickle.loads(text))).result()
        pool.submit(fit).result()
    assert [entry.part for entry in ledger.history()] == ["", "second half"]


# what an object of a ledger holds beside its path
SETTINGS = {
    "part": (lambda ledger: ledger.part(HALVES[0]), lambda ledger: ledger.part(HALVES[1])),
    "part and whole": (lambda ledger: ledger.part(HALVES[0]), lambda ledger: ledger),
    "label": tuple(lambda ledger, text=text: PrivacyLedger(ledger.path, label=text) for text in "ab"),
    "user": tuple(lambda ledger, text=text: PrivacyLedger(ledger.path, user=text) for text in "ab"),
}


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("setting", SETTINGS)
def test_of_what_other_threads_have_opened_differently_nothing_is_guessed(ledger, setting, order):
    """A fit in a thread of its own counts for all records, with no words of another thread."""

    def fit():
        return DPHistogramDensity(0.5, bounds=(-1, 1)).fit(X[:9])

    one, other = (make(ledger) for make in SETTINGS[setting][::order])
    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second, ThreadPoolExecutor(1) as third:
        first.submit(one.__enter__).result()
        second.submit(other.__enter__).result()
        third.submit(fit).result()
        second.submit(other.__exit__, None, None, None).result()
        first.submit(one.__exit__, None, None, None).result()
    (entry,) = ledger.history()
    assert entry.part == "" and not entry.label.startswith(("a:", "b:")) and entry.user not in ("a", "b")
    assert [ledger.part(half).spent()[0] for half in HALVES] == [0.5, 0.5]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_one_that_is_closed_first_is_closed(ledger, setting, order):
    """Of two that were opened by hand, and differ in one setting, the other one pays from then on."""
    one, other = (make(ledger) for make in SETTINGS[setting][::order])
    assert (one == other) == (one.part_name == other.part_name)
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    DPHistogramDensity(0.5, bounds=(-1, 1)).fit(X[:9])
    other.__exit__(None, None, None)
    (entry,) = ledger.history()
    assert entry.part == other.part_name and entry.label.startswith(other.label)
    assert other.user in (None, entry.user)


def test_a_picture_of_parts_ends_at_what_is_spent(ledger):
    for half, epsilon in zip(HALVES, (1.5, 0.5)):
        ledger.part(half).spend(epsilon)
    ledger.spend(0.25)
    assert np.cumsum(PrivacyLedgerDisplay.from_ledger(ledger).epsilons).tolist() == [1.5, 1.5, 1.75]


# ---- what is refused


@pytest.mark.parametrize(
    "use, said",
    [
        (lambda ledger, path: ledger.part("a third"), "is no part"),
        (lambda ledger, path: ledger.part(HALVES[0]).part(HALVES[1]), "is no part"),
        (lambda ledger, path: PrivacyLedger(path, 1.0).part(HALVES[0]), "has no parts"),
        (lambda ledger, path: PrivacyLedger(ledger.path, 2.0, 1e-5, parts=["a", "b"]), "not those of"),
        (lambda ledger, path: PrivacyLedger(path, 1.0, parts=["a"]), "two different parts"),
        (lambda ledger, path: PrivacyLedger(path, 1.0, parts=["a", "a"]), "two different parts"),
        (lambda ledger, path: PrivacyLedger(path, 1.0, parts=["", "a"]), "two different parts"),
        (lambda ledger, path: PrivacyLedger(path, 1.0, parts="ab"), "one text"),
        (lambda ledger, path: PrivacyLedger(path, 1.0, parts=[1, 2]), "must be a text"),
        (lambda ledger, path: changed(ledger, "UPDATE entries SET part = ''"), "changed from outside"),
        (lambda ledger, path: changed(ledger, "UPDATE entries SET part = 'c'"), "changed from outside"),
        (lambda ledger, path: copied(ledger, path, "first half", "a third"), "not what to_json"),
        (lambda ledger, path: copied(ledger, path, '"second half"', '""'), "not what to_json"),
    ],
)
def test_parts_are_not_mixed(ledger, tmp_path, use, said):
    for half in HALVES:
        ledger.part(half).spend(1.5)
    with pytest.raises((ValueError, TypeError), match=said):
        use(ledger, tmp_path / "new.ledger")


def changed(ledger, statement):
    connection = sqlite3.connect(ledger.path)
    connection.execute(statement)
    connection.execute("UPDATE budget SET spent = '7/2'")
    connection.commit()
    connection.close()
    PrivacyLedger(ledger.path).spent()


def copied(ledger, path, old, new):
    text = json.loads(ledger.to_json())
    entries = json.loads(json.dumps(text["entries"]).replace(old, new))
    PrivacyLedger.from_json(json.dumps(text | {"entries": entries}), path)


def test_infinite_losses_are_of_no_part(ledger):
    with pytest.raises(BudgetExceededError):
        ledger.part(HALVES[0]).spend(math.inf)
