"""Ctrl-C at each instruction at which it can come while blocks begin and end, and at random moments."""

import dis
import multiprocessing
import os
import signal
import sys
import threading
import time
from contextlib import ExitStack, nullcontext
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import dpselect
from dpselect import DPHistogramDensity, PrivacyLedger, PrivacyLoss
from dpselect.ledger import current_ledger, spending, without_spending
from dpselect.ledger.budget_file import transaction
from dpselect.ledger.spending import Opening, _opened
from dpselect.utils.processes import VARIABLE, Process, this_process

FOLDER = str(Path(dpselect.__file__).parent)
# the library's own code that runs while a block begins or ends
OURS = (*(os.path.join(FOLDER, name) for name in ("ledger", "processes.py")), "contextlib.py", __file__)
# files that were interrupted while they were opened are closed with the traceback
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <_io"),
]


@pytest.fixture
def ledger(tmp_path):
    ledger = PrivacyLedger(tmp_path / "records.ledger", epsilon=1e6)
    yield ledger
    # no lock is left that other threads would wait for
    thread = threading.Thread(target=ledger.spent, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()


@pytest.fixture
def child(monkeypatch):
    """What a process that this one starts is told."""
    # a Process adds its own file, and what this process starts later is not its child
    monkeypatch.setenv(VARIABLE, os.environ[VARIABLE])
    return Process()


@cache
def places(code):
    """Return the instructions before which an interrupt can come.

    Python looks for signals when a function begins, or a generator goes on, after each call, and where a
    loop goes back. After a call, whatever handles errors of the call handles the interrupt.
    """
    parsed = dis.Bytecode(code)
    handlers = [
        (entry.start, entry.end, entry.target) for entry in getattr(parsed, "exception_entries", ())
    ]

    def handler(offset):
        return [target for start, end, target in handlers if start <= offset < end]

    found, before = set(), None
    for instruction in parsed:
        after_call = (
            before is not None
            and before.opname.startswith("CALL")
            and handler(before.offset) == handler(instruction.offset)
        )
        if after_call or instruction.opname in ("RESUME", "JUMP_BACKWARD"):
            found.add(instruction.offset)
        before = instruction
    return found


def interrupted(run, number):
    """Run with a KeyboardInterrupt before one instruction, and return that, or None if there is none.

    As long as the caller keeps the exception, its traceback keeps all that was interrupted.
    """
    seen = 0

    def trace(frame, event, _):
        nonlocal seen
        name = frame.f_code.co_filename
        if not (name.startswith(OURS) or name.endswith(OURS)):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode" and frame.f_lasti in places(frame.f_code):
            seen += 1
            if seen == number + 1:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    except KeyboardInterrupt as error:
        return error
    finally:
        sys.settrace(before)
    return None


def interrupts(run, step=1):
    """Interrupt at each `step`-th place, and yield which one, while the traceback is kept."""
    run()  # what is done once is done
    number = 0
    while (_kept := interrupted(run, number)) is not None:
        yield number
        number += step
    assert number >= 5


def first_fault(ledger, child, step=1):
    """Interrupt a block at each `step`-th place; return where it, or the next, is wrong first."""

    def run():
        with ledger:
            pass

    def is_open():
        return current_ledger() == ledger and child.published("ledgers") == [[ledger.path]]

    def is_closed():
        return current_ledger() is None and child.published("ledgers") == []

    for number in interrupts(run, step):
        seen = [is_closed()]
        with ledger:
            seen.append(is_open())
        seen.append(is_closed())
        if not all(seen):
            return number  # what stays open spoils what follows
    return None


def test_an_interrupted_block_has_ended_and_the_next_one_is_told(ledger, child):
    assert first_fault(ledger, child) is None


def test_so_has_one_within_another_ledger(ledger, child, tmp_path):
    outer = PrivacyLedger(tmp_path / "outer", epsilon=1.0)

    def run():
        with ledger:
            pass

    with outer:
        for _ in interrupts(run):
            assert current_ledger() == outer and child.published("ledgers") == [[outer.path]]
    assert current_ledger() is None and child.published("ledgers") == []


class EndsByItsExit(PrivacyLedger):
    """A broken twin, whose block ends by the lines of an `__exit__` alone."""

    def __enter__(self):
        self.opening = Opening(self)
        return self.opening.begin()

    def __exit__(self, *exception):
        self.opening.end()


def tells_if_new(process, **facts):
    """Tell as a broken twin does, which takes for told what it was about to tell."""
    now = {name: fact for name, fact in (process._facts | facts).items() if fact is not None}
    if now != process._facts:
        process._write(now) if now else process.forget()
        process._facts = now


def test_twins_are_caught(ledger, child, monkeypatch):
    try:
        with monkeypatch.context() as patch:
            patch.setattr(Process, "publish", tells_if_new)
            assert first_fault(ledger, child) is not None
    finally:
        this_process()._in_doubt = True  # the twin has left something
        with ledger:
            pass
    assert first_fault(ledger, child, step=5) is None
    twin = EndsByItsExit(ledger.path)
    assert first_fault(twin, child) is not None
    while current_ledger() is not None:
        _opened.get()[-1].end()
    assert first_fault(ledger, child, step=5) is None


def test_a_block_that_is_entered_otherwise_ends_as_well(ledger, child):
    with ExitStack() as stack:
        assert stack.enter_context(ledger) == ledger == current_ledger()
    assert current_ledger() is None and child.published("ledgers") == []
    ledger.__enter__()
    assert hasattr(ledger, "__exit__") and hasattr(PrivacyLedger, "__exit__")
    with ledger:
        pass
    assert current_ledger() == ledger
    ledger.__exit__(None, None, None)
    assert current_ledger() is None and child.published("ledgers") == []


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_what_was_released_counts_and_what_follows_does_too(step, ledger):
    released = 0

    def run():
        nonlocal released
        with spending(None, PrivacyLoss(0.5)) as charge:
            charge.begin()
            released += 1

    with ledger:
        n_interrupts = 0
        for _ in interrupts(run, step):
            n_interrupts += 1
            assert current_ledger() == ledger
            assert ledger.spent()[0] >= 0.5 * released
    assert released > n_interrupts / 5


def test_nothing_stays_free_after_an_interrupt(ledger):
    def run():
        with without_spending():
            pass

    with ledger:
        for _ in interrupts(run):
            assert current_ledger() == ledger


@pytest.mark.slow
def test_a_file_is_not_locked_after_an_interrupt(ledger):
    def run():
        with transaction(ledger.path):
            pass

    for _ in interrupts(run):
        ledger.spend(0.5)


# ---- signals


def fit(_=None):
    DPHistogramDensity(0.5, bounds=(0, 1)).fit(np.zeros((10, 1)))


def interrupt(*_):
    raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
# Python itself drops an interrupt that arrives while an object is collected, and warns of it
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_signals_at_random_moments(ledger, child):
    rng, times = np.random.default_rng(0), []
    before = signal.signal(signal.SIGALRM, interrupt)
    done = n_interrupts = 0
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.apply(os.getpid)
        try:
            for number in range(2000):
                try:
                    signal.setitimer(signal.ITIMER_REAL, rng.uniform(5e-5, 2e-3))
                    with ledger:
                        pass
                    with ledger:
                        pass
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except KeyboardInterrupt as kept:
                    n_interrupts += 1
                    times.append(kept)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                assert current_ledger() is None and child.published("ledgers") == []
                if times and number % 20 == 0:
                    with ledger:
                        pool.apply(fit)
                        done += 1
                    times.clear()
                    assert ledger.spent()[0] == 0.5 * done
        finally:
            signal.signal(signal.SIGALRM, before)
    assert n_interrupts > 100 and done > 5


# ---- kills


def fit_and_note(notes, free):
    """Fit until killed, and write down each release as soon as it is made."""
    notes = os.open(notes, os.O_WRONLY | os.O_APPEND)
    while True:
        with without_spending() if free else nullcontext():
            fit()
        os.write(notes, b"x")


def kill_workers(method, kills, ledger, notes, free=False):
    """Kill workers that were started inside a block, and return how often too little was counted."""
    rng, context = np.random.default_rng(0), multiprocessing.get_context(method)
    too_little = 0
    notes.touch()
    with ledger:
        for _ in range(kills):
            before = notes.stat().st_size
            worker = context.Process(target=fit_and_note, args=(notes, free), daemon=True)
            worker.start()
            while worker.is_alive() and notes.stat().st_size == before:
                time.sleep(0.001)
            time.sleep(rng.exponential(0.02))
            worker.kill()
            worker.join()
            too_little += ledger.spent()[0] < 0.5 * notes.stat().st_size
    assert notes.stat().st_size >= kills
    return too_little


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process")
@pytest.mark.parametrize("method, kills", [("spawn", 3), ("fork", 40)])
def test_what_killed_workers_released_is_counted(method, kills, ledger, tmp_path):
    assert kill_workers(method, kills, ledger, tmp_path / "notes") == 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process")
def test_a_twin_that_spends_nothing_is_caught(ledger, tmp_path):
    assert kill_workers("fork", 2, ledger, tmp_path / "notes", free=True) == 2
