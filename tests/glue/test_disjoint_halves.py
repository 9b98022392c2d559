"""One loss on each of two disjoint halves of the records costs what it costs once.

Whatever the loss is made of, and whoever adds up: each accountant, each law of a ledger, and what is
stated of one fit. Twins take the largest, or the sum, of the wrong parts.
"""

import math

import numpy as np
import pytest

from dpselect import PrivacyLedger, PrivacyLoss
from dpselect.accounting import filters as composition
from dpselect.accounting import totals as accounting
from dpselect.accounting.events import ChoiceEvent, GaussianEvent, ObjectiveEvent
from dpselect.accounting.filters import COMPOSITIONS
from dpselect.accounting.gaussian import gaussian_mu
from dpselect.accounting.joint import jointly
from dpselect.accounting.totals import ACCOUNTANTS, composed_epsilon
from tests.marks import slow_but


def gaussian(epsilon):
    return PrivacyLoss(epsilon, 1e-6, event=GaussianEvent(gaussian_mu(epsilon, 1e-6)))


CHOICE = PrivacyLoss(0.3, event=ChoiceEvent(0.3))
OBJECTIVE = PrivacyLoss(0.5, 1e-6, event=ObjectiveEvent(0.1, 0.03))
JOINT = jointly([gaussian(0.5)] * 4, label="one fit")
HALVES = PrivacyLoss.parallel([gaussian(0.5), PrivacyLoss(0.2)])
TREES = {
    "plain": PrivacyLoss(0.5),
    "a delta": PrivacyLoss(0.5, 1e-7),
    "Gaussian": gaussian(0.5),
    "choice": CHOICE,
    "choices": PrivacyLoss(0.9, event=ChoiceEvent(0.3, times=3)),
    "objective": OBJECTIVE,
    "sum": PrivacyLoss.sequential([gaussian(0.5), PrivacyLoss(0.2)]),
    "joint": JOINT,
    "joint with a choice": jointly([CHOICE, gaussian(0.5)], label="a search"),
    "joint in a sum": PrivacyLoss.sequential([JOINT, PrivacyLoss(0.1)]),
    "joint in blocks": PrivacyLoss.parallel([JOINT, gaussian(0.3)]),
    "blocks": HALVES,
    "blocks in a sum": PrivacyLoss.sequential([HALVES, gaussian(0.3)]),
    "blocks in a joint": jointly([HALVES, gaussian(0.5), gaussian(0.5)], label="one fit"),
    "blocks of choices in a joint": jointly(
        [PrivacyLoss.parallel([CHOICE, CHOICE]), gaussian(0.5), gaussian(0.4)], label="a search"
    ),
    "blocks in blocks": PrivacyLoss.parallel([HALVES, PrivacyLoss.sequential([HALVES, CHOICE])]),
}
ONLY_SUMS = {"ex-post": PrivacyLoss(0.5, kind="ex-post")}
TIMES, DELTA = 20, 1e-4


def compositions_of(loss):
    found = {loss.composition} | {type(loss.event).__name__}
    return found.union(*map(compositions_of, loss.parts))


def test_every_composition_and_every_event_is_there():
    there = set().union(*map(compositions_of, TREES.values()))
    events = {"GaussianEvent", "ChoiceEvent", "ObjectiveEvent", "NoneType"}
    assert there == {"release", "sequential", "parallel", "joint"} | events
    inside = {(outer.composition, part.composition) for outer in TREES.values() for part in outer.parts}
    several = {"sequential", "joint"}
    assert inside >= {("parallel", a) for a in several} | {(a, "parallel") for a in several}


def totals(losses, accountants):
    """Yield what losses cost, by everything that adds losses up, with its name."""
    for accountant in accountants:
        yield accountant, composed_epsilon(losses, DELTA, accountant=accountant)
    for name in COMPOSITIONS:
        law = composition.law_of(name, 1000.0, DELTA)
        for amounts in zip(*map(law.amounts, losses)):
            yield name, math.fsum(amounts)
    together = PrivacyLoss.sequential(losses)
    yield "stated", together.epsilon
    yield "stated delta", together.delta


def check_halves(loss, accountants=ACCOUNTANTS):
    """Compare what a loss costs many times, about all records and about each of both halves."""
    twice = PrivacyLoss.parallel([loss, loss])
    both = (totals([one] * TIMES, accountants) for one in (loss, twice))
    for (name, all_records), (_, halves) in zip(*both):
        # how choices cost less beside others is not known of blocks of them
        exact = name != "pld" or "ChoiceEvent" not in compositions_of(loss)
        least, most = all_records * (1 - 1e-9), all_records * (1 + 1e-9 if exact else 1.15)
        assert least <= halves <= most, (name, all_records, halves)


@pytest.mark.parametrize("name", slow_but([*TREES], 7))
def test_two_halves_cost_what_all_records_do(name):
    check_halves(TREES[name])


def check_parts(loss):
    """Compare what a loss about the same records costs with what its parts cost one by one."""
    together = totals([loss] * TIMES, ["concentrated"])
    for (name, one), (_, apart) in zip(together, totals(list(loss.parts) * TIMES, ["concentrated"])):
        # what is stated of one fit is less than the sum
        proven = loss.composition == "joint" and name in ("stated", "sum", "concentrated")
        assert one == pytest.approx(apart, rel=1e-9) or (proven and one < apart), (name, one, apart)


ADDED = [name for name, loss in TREES.items() if loss.composition in ("sequential", "joint")]


@pytest.mark.parametrize("name", ADDED)
def test_what_adds_up_costs_what_its_parts_do(name):
    check_parts(TREES[name])


def check_a_ledger(loss, law, path):
    """Compare what ledgers have spent on a loss about all records, and about each of both halves."""
    spent = []
    for place, given in enumerate((loss, PrivacyLoss.parallel([loss, loss]))):
        ledger = PrivacyLedger(path / f"{place} {law}", epsilon=500.0, delta=1e-2, composition=law)
        for _ in range(3):
            ledger.reserve(given.epsilon, given.delta).commit(given)
        spent.append((*ledger.spent(), *([] if loss.kind == "ex-post" else [ledger.total(DELTA)])))
    assert spent[1] == pytest.approx(spent[0], rel=1e-4)
    assert (np.array(spent[1]) >= np.array(spent[0]) * (1 - 1e-9)).all()


@pytest.mark.parametrize("law", COMPOSITIONS)
@pytest.mark.parametrize("name", ["Gaussian", "joint", "blocks in a sum", *ONLY_SUMS])
def test_a_ledger_counts_two_halves_once(name, law, tmp_path):
    check_a_ledger({**TREES, **ONLY_SUMS}[name], law, tmp_path)


def check_beside(loss):
    """Compare what one fit states with a loss about all records, and about each of both halves."""
    twice = PrivacyLoss.parallel([loss, loss])
    for other in (gaussian(0.4), CHOICE, PrivacyLoss(0.1)):
        one, both = (jointly([part, other], label="one fit") for part in (loss, twice))
        assert one.epsilon * (1 - 1e-9) <= both.epsilon <= loss.epsilon + other.epsilon


@pytest.mark.parametrize("name", TREES)
def test_one_fit_with_two_halves_states_no_less(name):
    check_beside(TREES[name])


# ---- twins


def largest_of_all_but_sums(usual, loss, *args):
    if loss.composition == "joint":
        loss = PrivacyLoss.parallel(loss.parts)
    return usual(loss, *args)


def least_of_blocks(usual, loss, *args):
    if loss.composition == "parallel":
        return min(usual(part, *args) for part in loss.parts)
    return usual(loss, *args)


def sum_of_blocks(usual, loss, *args):
    if loss.composition == "parallel":
        loss = PrivacyLoss.sequential(loss.parts)
    return usual(loss, *args)


PLACES = [(accounting, "_gaussian"), (accounting, "_divergences"), (composition.RenyiFilter, "amounts")]


@pytest.mark.parametrize("place, name", PLACES, ids=[name for _, name in PLACES])
def test_the_largest_part_of_one_fit_is_no_total(place, name, monkeypatch):
    usual = getattr(place, name)

    def twin(*args):  # of a method self comes first
        *before, loss = args
        return largest_of_all_but_sums(lambda loss: usual(*before, loss), loss)

    monkeypatch.setattr(place, name, twin)
    with pytest.raises(AssertionError):
        # (of Gaussian noise what is known by divergences is never less)
        loss = TREES["joint with a choice" if name == "_divergences" else "joint"]
        check_halves(loss, ["concentrated"])
        # a filter takes the parts of both for the same
        check_parts(loss)


@pytest.mark.parametrize("twin", [sum_of_blocks, least_of_blocks])
def test_other_totals_of_blocks_are_caught(twin, monkeypatch, tmp_path):
    usual = composition.RenyiFilter.amounts
    monkeypatch.setattr(
        composition.RenyiFilter, "amounts", lambda law, loss: twin(lambda loss: usual(law, loss), loss)
    )
    blocks = TREES["blocks" if twin is least_of_blocks else "joint"]
    with pytest.raises(AssertionError):
        check_a_ledger(blocks, "renyi", tmp_path)


def test_a_fit_that_forgets_what_is_not_known_of_blocks_is_caught(monkeypatch):
    from dpselect.accounting import joint as module

    usual = module.added_losses
    monkeypatch.setattr(
        module,
        "added_losses",
        lambda loss: [part for part in usual(loss) if part.composition != "parallel"],
    )
    with pytest.raises(AssertionError):
        check_beside(TREES["Gaussian"])
