"""Whatever ends a release, it counts in full if something may have come out, and else not at all."""

import asyncio
from contextlib import contextmanager

import pytest

from dpselect import PrivacyLedger, PrivacyLoss
from dpselect.ledger import current_ledger, spending
from dpselect.ledger.spending import Spending
from dpselect.noise import as_generator

# not all of them are an Exception
ENDS = [ValueError, KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit, MemoryError]
OUTER, INNER = PrivacyLoss(0.5, label="outer"), PrivacyLoss(0.25, label="inner")


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "records.ledger", epsilon=8.0)


def spent_by(ledger, release, end):
    """Return what a release costs that an exception ends."""
    before = ledger.spent()[0]
    with ledger, pytest.raises(end):
        release(end)
    assert current_ledger() is None
    return ledger.spent()[0] - before


def check_nothing(ledger, end, spending=spending):
    def release(end):
        with spending(None, OUTER):
            raise end

    assert spent_by(ledger, release, end) == 0.0
    assert ledger.history()[-1].kind != "uncommitted"


def check_all(ledger, end):
    def release(end, depth, come_out):
        with spending(None, OUTER if depth == 0 else INNER) as charge:
            if depth == 2:
                come_out(charge)
                raise end
            release(end, depth + 1, come_out)

    # noise of another library is noted by begin() alone, also that of parts of parts
    for come_out in (lambda charge: charge.begin(), lambda charge: as_generator()):
        assert spent_by(ledger, lambda end, out=come_out: release(end, 0, out), end) == 0.5

    def release_after_a_part(end):
        with spending(None, OUTER):
            with spending(None, INNER) as charge:
                charge.begin()
            raise end

    assert spent_by(ledger, release_after_a_part, end) == 0.5


@pytest.mark.parametrize("end", ENDS)
def test_before_any_noise_nothing_counts(ledger, end):
    check_nothing(ledger, end)


@pytest.mark.parametrize("end", ENDS)
def test_after_it_all_counts(ledger, end):
    check_all(ledger, end)


@contextmanager
def for_errors_only(owner, loss):
    """Reserve as `spending` does, and forget those that are no Exception."""
    charge = Spending(current_ledger(owner).reserve(loss.epsilon, loss.delta, label=loss.label))
    try:
        yield charge
    except BaseException as end:
        if isinstance(end, Exception):
            charge.commit(PrivacyLoss(0.0))
        raise
    charge.commit(loss)


@pytest.mark.parametrize("end", [end for end in ENDS if not issubclass(end, Exception)])
def test_a_twin_that_handles_errors_only_is_found(ledger, end):
    check_nothing(ledger, ValueError, for_errors_only)
    with pytest.raises(AssertionError):
        check_nothing(ledger, end, for_errors_only)


@pytest.mark.parametrize("end", ENDS)
def test_a_twin_that_does_not_tell_what_it_is_a_part_of_is_found(ledger, end, monkeypatch):
    monkeypatch.setattr(Spending, "begin", lambda self: setattr(self, "_begun", True))
    with pytest.raises(AssertionError):
        check_all(ledger, end)
