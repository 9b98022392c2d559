"""Ledgers in which Renyi divergences add up: who chooses amounts by what came out gains nothing."""

import contextlib
import json
import math
import multiprocessing
import sqlite3
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from dpselect import (
    BudgetExceededError,
    DPLogisticRegression,
    DPRidge,
    PrivacyLedger,
    PrivacyLedgerDisplay,
    PrivacyLoss,
    privacy_report,
)
from dpselect._command_line.ledger_command import to_text
from dpselect.accounting.events import ChoiceEvent, GaussianEvent, ObjectiveEvent
from dpselect.accounting.filters import RenyiFilter, Sum
from dpselect.accounting.gaussian import gaussian_epsilon, gaussian_mu
from dpselect.accounting.totals import composed_epsilon
from dpselect.accounting.zcdp import conversion, pure_divergence, pure_to_zcdp, zcdp_budget

GAUSSIAN = GaussianEvent(gaussian_mu(0.3, 1e-6))


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "l.ledger", epsilon=3.0, delta=1e-5, composition="renyi")


# --- an adversary who chooses each release by the outcomes so far


def responses(step, k):
    """Randomised response of a loss of k steps: the loss, and its law in steps."""
    p = 1 / (1 + math.exp(-k * step))
    return PrivacyLoss(k * step), [[(k, p), (-k, 1 - p)]]


def choices(step, k):
    """Choices between two, as proposition 4 has them, by how large the larger loss is."""
    epsilon, laws = k * step, []
    for t in range(1, k):
        p = math.expm1(epsilon - t * step) / (math.exp(epsilon - t * step) - math.exp(-t * step))
        laws.append([(t, p), (t - k, 1 - p)])
    return PrivacyLoss(epsilon, event=ChoiceEvent(epsilon)), laws


def largest_delta(epsilon, step, releases, amounts, limit):
    """The exact delta at epsilon of the best adversary; `amounts` are what the releases count for."""

    @lru_cache(None)
    def best(counts, place):
        found = max(0.0, -math.expm1(epsilon - place * step))
        for i, (_, laws) in enumerate(releases):
            more = tuple(n + (i == j) for j, n in enumerate(counts))
            if math.fsum(n * amount for n, amount in zip(more, amounts)) <= limit:
                found = max(found, *(sum(p * best(more, place + k) for k, p in law) for law in laws))
        return found

    return best((0,) * len(releases), 0)


@pytest.mark.parametrize(
    "epsilon, delta, step, kinds",
    [
        (1.0, 0.1, 0.125, [(responses, 2), (responses, 4), (choices, 4)]),
        (2.0, 0.02, 0.25, [(responses, 1), (responses, 2), (responses, 4)]),
    ],
)
def test_amounts_may_follow_outcomes(epsilon, delta, step, kinds):
    law, releases = RenyiFilter.of_budget(epsilon, delta), [make(step, k) for make, k in kinds]
    amounts = [law.amounts(loss)[0] for loss, _ in releases]

    def spends(amounts, limit):
        return largest_delta(epsilon, step, releases, amounts, limit) / law.delta

    assert 0.4 < spends(amounts, law.limit) <= 1
    # twins: a divergence taken for an epsilon, and every release for a choice
    assert spends(amounts, epsilon) > 1
    assert spends([law.order * loss.epsilon**2 / 8 for loss, _ in releases], law.limit) > 1


@pytest.mark.parametrize("epsilon, delta", [(0.1, 1e-9), (1.0, 1e-6), (3.0, 1e-5), (30.0, 0.1)])
def test_gaussian_releases_up_to_the_limit(epsilon, delta):
    law = RenyiFilter.of_budget(epsilon, delta)
    mu = math.sqrt(2 * law.limit / law.order)
    exact = gaussian_epsilon(mu, law.delta)
    assert 0.8 * epsilon < exact <= epsilon
    # no order takes more of them
    assert mu**2 / 2 == pytest.approx(zcdp_budget(epsilon, law.delta), rel=1e-6)
    assert law.limit + conversion(law.order, law.delta) <= epsilon
    assert law.is_of_budget(epsilon, delta)
    for wrong in (
        replace(law, limit=law.limit * 1.001),
        replace(law, delta=law.delta / 2),
        replace(law, order=law.order / 2),
        replace(law, other_delta=delta),
        replace(law, order=1.0),
        replace(law, limit=math.nan),
        replace(law, other_delta=-1.0),
        Sum(epsilon, 2 * delta),
    ):
        assert not wrong.is_of_budget(epsilon, delta)


@pytest.mark.parametrize("order", [1.001, 2.0, 8.0, 1e4])
def test_the_divergence_of_pure_privacy(order):
    for epsilon in (1e-9, 1e-3, 0.3, 2.0, 50.0, 5000.0):
        found = pure_divergence(epsilon, order)
        assert found <= epsilon and found <= order * pure_to_zcdp(epsilon) * (1 + 1e-12)
        if order * epsilon <= 700:
            losses = np.array([epsilon, -epsilon])
            powers = np.logaddexp.reduce(order * losses - np.logaddexp(losses, 0))
            assert found == pytest.approx(powers / (order - 1), rel=1e-6, abs=1e-12 / (order - 1))
        # a fit of several parts never counts for more than what was reserved for all of them
        assert 3 * pure_divergence(epsilon / 3, order) <= found * (1 + 1e-12)


def test_amounts_of_losses():
    law = RenyiFilter.of_budget(3.0, 1e-5)
    pure, plain = PrivacyLoss(0.3), PrivacyLoss(0.3, 1e-6)
    known = [
        replace(plain, event=GAUSSIAN),
        replace(pure, event=ChoiceEvent(0.3)),
        replace(plain, event=ObjectiveEvent(0.05, shift=0.04)),
    ]
    for loss in known:
        xi, rho = loss.event.concentrated
        assert law.amounts(loss) == (pytest.approx(xi + law.order * rho), 0.0)
        assert xi + law.order * rho < law.amounts(pure)[0]
    assert law.amounts(plain) == (law.amounts(pure)[0], 1e-6)
    # an event that says less than the epsilon does
    assert law.amounts(replace(plain, event=ObjectiveEvent(5.0, shift=9.0))) == law.amounts(plain)
    several = [law.amounts(loss) for loss in (plain, *known)]
    assert law.amounts(PrivacyLoss.sequential([plain, *known])) == pytest.approx(
        tuple(map(sum, zip(*several)))
    )
    assert law.amounts(PrivacyLoss.joint([plain, pure], epsilon=0.5))[0] == pytest.approx(
        2 * law.amounts(pure)[0]
    )
    assert law.amounts(PrivacyLoss.parallel([plain, *known])) == law.amounts(plain)


# --- on disk


def fill(ledger, epsilon=0.3, delta=1e-6, event=None, most=100):
    for n in range(most):
        try:
            ledger.spend(epsilon, delta, event=event)
        except BudgetExceededError:
            return n
    return most


@pytest.mark.slow
def test_more_releases_fit_where_divergences_are_small(ledger, tmp_path):
    sums = PrivacyLedger(tmp_path / "sum.ledger", epsilon=3.0, delta=1e-5)
    assert (ledger.composition, sums.composition) == ("renyi", "sum")
    assert (fill(ledger, event=GAUSSIAN), fill(sums, event=GAUSSIAN)) == (71, 10)
    epsilon, delta = ledger.spent()
    assert epsilon <= 3.0 and delta == 5e-6 and ledger.budget == (3.0, 1e-5)
    assert composed_epsilon(ledger, 5e-6, accountant="concentrated") <= epsilon
    left = ledger.remaining()
    assert 0 < left[0] < 0.1
    ledger.spend(*left)
    assert ledger.remaining()[1] == 0 and fill(ledger, 1e-4, 0.0, most=1) == 0


def test_deltas_of_what_is_not_known_add_up(ledger):
    # half of delta is for them
    assert fill(ledger, epsilon=0.01, delta=1e-6) == 5
    assert fill(ledger, epsilon=0.01, delta=0.0, most=9) == 9
    with pytest.raises(BudgetExceededError):
        ledger.reserve(math.inf)


def test_what_is_committed_frees_what_was_reserved_and_no_more(ledger):
    def left():
        return ledger.remaining()[0]

    empty = left()
    reserved = ledger.reserve(0.3, 1e-6)
    full = left()
    with pytest.raises(ValueError, match="exceeds the reservation"):
        reserved.commit(PrivacyLoss.joint([PrivacyLoss(0.25)] * 2, epsilon=0.3))
    assert left() == full
    reserved.commit(PrivacyLoss(0.3, 1e-6, event=GAUSSIAN))
    assert full < left() < empty
    # the least divergence of all outcomes is that of the mechanism, whatever came out
    before = ledger.reserve(0.3)
    full = left()
    before.commit(PrivacyLoss(0.01, kind="ex-post"))
    assert left() == full
    again = ledger.reserve(0.3)
    again.commit(PrivacyLoss(0.0))
    assert left() == full


def test_fits_count_for_their_events(ledger):
    X = np.random.default_rng(0).uniform(-0.2, 0.2, size=(2000, 30))
    y = (X[:, 0] > 0).astype(int)
    with ledger:
        linear = DPLogisticRegression(0.3, delta=1e-6, classes=[0, 1], alpha=0.1).fit(X, y)
        ridge = DPRidge(0.3, delta=1e-6, target_range=(0, 1)).fit(X, y)
        learned = DPLogisticRegression(0.3, classes=[0, 1], delta=1e-6, data_norm="auto").fit(X, y)
    law = RenyiFilter.of_budget(3.0, 1e-5)
    counted = [law.amounts(model.privacy_) for model in (linear, ridge, learned)]
    assert all(d == 0 and 0 < x < 0.3 * pure_divergence(0.3, law.order) for x, d in counted[:2])
    spent = [sum(numbers) for numbers in zip(*counted)]
    assert ledger.spent() == pytest.approx(law.guarantee(tuple(spent)))
    said = privacy_report(ridge, ledger).to_markdown()
    for text in (said, str(ledger), to_text(ledger)):
        assert "Renyi divergences of order 7.93" in text
    shown = PrivacyLedgerDisplay.from_ledger(ledger)
    assert shown.epsilons.sum() == pytest.approx(ledger.spent()[0]) and shown.budget == 3.0


def test_persons_count_for_all_their_rows(tmp_path):
    people = PrivacyLedger(
        tmp_path / "p.ledger",
        3.0,
        1e-5,
        adjacency="replace all rows of one person",
        composition="renyi",
        rows_per_person=2,
    )
    people.spend(0.1, event=ChoiceEvent(0.1))
    law = RenyiFilter.of_budget(3.0, 1e-5)
    assert people.spent()[0] == pytest.approx(
        law.amounts(PrivacyLoss(0.2))[0] + conversion(law.order, 5e-6)
    )


def test_how_losses_add_up_is_fixed_with_the_budget(ledger, tmp_path):
    assert PrivacyLedger(ledger.path, 3.0, 1e-5, composition="renyi") == ledger
    with pytest.raises(ValueError, match="composition='sum' are not those"):
        PrivacyLedger(ledger.path, 3.0, 1e-5)
    for delta, name in ((0.0, "renyi"), (1e-6, "zcdp")):
        with pytest.raises(ValueError, match=f"composition=.{name}."):
            PrivacyLedger(tmp_path / "other.ledger", 1.0, delta, composition=name)
    assert not (tmp_path / "other.ledger").exists()


def test_text_and_back(ledger, tmp_path):
    fill(ledger, event=GAUSSIAN, most=3)
    ledger.reserve(0.2, 1e-7).commit(PrivacyLoss(0.1, 1e-7, kind="ex-post"))
    ledger.reserve(0.2)
    text = ledger.to_json()
    other = PrivacyLedger.from_json(text, tmp_path / "other.ledger")
    assert other.to_json() == text
    assert (other.spent(), other.remaining()) == (ledger.spent(), ledger.remaining())
    given = json.loads(text)
    for name, value in (("limit", 2.0), ("order", 1.5), ("other_delta", 1e-5), ("composition", "sum")):
        with pytest.raises(ValueError, match="to_json"):
            PrivacyLedger.from_json(
                json.dumps(given | {"law": given["law"] | {name: value}}), tmp_path / "wrong.ledger"
            )
    more = given["entries"][:1] * 80
    more = [entry | {"id": i + 1} for i, entry in enumerate(more)]
    with pytest.raises(ValueError, match="exceed its budget"):
        PrivacyLedger.from_json(json.dumps(given | {"entries": more}), tmp_path / "wrong.ledger")
    PrivacyLedger.from_json(json.dumps(given | {"entries": more[:71]}), tmp_path / "full.ledger")


@pytest.mark.slow
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs forks")
def test_processes_share_one_limit(ledger):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    workers = [context.Process(target=lambda: queue.put(fill(ledger, event=GAUSSIAN))) for _ in range(3)]
    for worker in workers:
        worker.start()
    done = [queue.get(timeout=300) for _ in workers]
    for worker in workers:
        worker.join()
    assert sum(done) == 71 == len(ledger.history())


def test_what_a_small_release_cost_is_never_less_than_nothing(tmp_path):
    ledger = PrivacyLedger(tmp_path / "a.ledger", 1.0, 0.5, composition="renyi")
    ledger.spend(1e-3)
    assert ledger.spent()[0] == 0.0 and "-" not in str(ledger).splitlines()[0]


def test_a_law_that_was_changed_in_the_file_is_refused(tmp_path):
    path = tmp_path / "a.ledger"
    ledger = PrivacyLedger(path, 1.0, 1e-5, composition="renyi")
    with contextlib.closing(sqlite3.connect(path)) as file:
        law = json.loads(file.execute("SELECT law FROM budget").fetchone()[0]) | {"limit": 1e6}
        file.execute("UPDATE budget SET law = ?", (json.dumps(law),))
        file.commit()
    with pytest.raises(ValueError, match="was changed from outside"):
        ledger.spend(50.0)


def test_parts_of_very_large_losses_are_committed(tmp_path):
    ledger = PrivacyLedger(tmp_path / "a.ledger", 1e5, 1e-5, composition="renyi")
    for epsilon in (612.3, 771.429, 1234.567):
        parts = [PrivacyLoss(epsilon / 20), PrivacyLoss(epsilon - epsilon / 20)]
        ledger.reserve(epsilon).commit(PrivacyLoss.sequential(parts))
    assert sum("committed" in str(entry) or entry.epsilon is not None for entry in ledger.history()) == 3


def test_several_choices_are_not_entered_as_one(tmp_path):
    ledger = PrivacyLedger(tmp_path / "a.ledger", 1e4, 1e-3)
    many = ChoiceEvent(0.1, times=1000)
    for epsilon, delta in ((0.1, 1e-300), (10.0, 1e-9), (99.0, 0.0)):
        with pytest.raises(ValueError, match="is not private at"):
            ledger.spend(epsilon, delta, event=many)
    ledger.spend(100.0, event=many)
    ledger.spend(12.0, 1e-9, event=many)
