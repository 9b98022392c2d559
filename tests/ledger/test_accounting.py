import math
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.optimize import brentq

from dpselect import DPLogisticRegression, PrivacyLedger, PrivacyLoss
from dpselect.accounting import totals
from dpselect.accounting.events import ChoiceEvent, GaussianEvent, ObjectiveEvent
from dpselect.accounting.gaussian import gaussian_epsilon, gaussian_mu
from dpselect.accounting.totals import composed_epsilon, to_dp_event
from dpselect.ledger import entry
from dpselect.ledger.spending import spending

pytest.importorskip("dp_accounting")


def optimal(epsilon, k, delta):
    """Return the epsilon of k randomised responses (Kairouz, Oh and Viswanath 2015, theorem 3.3)."""

    def delta_at(i):
        terms = [
            math.comb(k, m) * (math.exp((k - m) * epsilon) - math.exp((k - 2 * i + m) * epsilon))
            for m in range(i)
        ]
        return math.fsum(terms) / (1 + math.exp(epsilon)) ** k

    return min((k - 2 * i) * epsilon for i in range(k // 2 + 1) if delta_at(i) <= delta)


@pytest.mark.parametrize("accountant, slack", [("pld", 0.0), ("concentrated", 0.9)])
@pytest.mark.parametrize("epsilon, k", [(0.1, 100), (0.5, 20), (1.0, 10)])
def test_totals_are_those_of_the_composition_theorem(accountant, slack, epsilon, k):
    found = composed_epsilon([PrivacyLoss(epsilon)] * k, 1e-5, accountant=accountant)
    exact = optimal(epsilon, k, 1e-5)
    # the theorem's epsilons lie on a grid of 2 epsilon
    assert exact - 2 * epsilon <= found <= exact + slack
    assert found <= k * epsilon


def test_deltas_are_added_apart():
    losses = [PrivacyLoss(0.1, 4e-6), PrivacyLoss(0.1, 4e-6)] + [PrivacyLoss(0.1)] * 50
    pure = composed_epsilon([PrivacyLoss(0.1)] * 52, 2e-6)
    assert composed_epsilon(losses, 1e-5) == pytest.approx(pure, rel=1e-5)
    with pytest.raises(ValueError, match="8e-06"):
        composed_epsilon(losses, 7.9e-6)


def test_compositions_are_taken_apart_and_blocks_are_not():
    parts = [PrivacyLoss(0.25), PrivacyLoss(0.5)]
    both = PrivacyLoss.sequential([PrivacyLoss.sequential(parts), PrivacyLoss.parallel(parts)])
    found = [2 / part.noise_parameter - 1 for part in to_dp_event(both).events]
    assert [math.log(odds) for odds in found] == pytest.approx([0.25, 0.5, 0.5])


def test_no_release_is_exported_with_less_than_its_loss():
    for epsilon in (1e-9, 0.1, 1.0, 30.0, 500.0, 2000.0):
        (part,) = to_dp_event(PrivacyLoss(epsilon)).events
        p = part.noise_parameter
        assert p == 0 or math.log1p(-p / 2) - math.log(p / 2) >= epsilon


def test_a_ledger_counts_what_holds_for_all_outcomes(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=10.0)
    ledger.spend(0.25)
    ledger.reserve(1.0).commit(PrivacyLoss(0.125, kind="ex-post"))
    ledger.reserve(2.0).commit(PrivacyLoss(0.5))
    ledger.reserve(3.0)
    found = [2 / part.noise_parameter - 1 for part in to_dp_event(ledger).events]
    assert [math.log(odds) for odds in found] == pytest.approx([0.25, 1.0, 0.5, 3.0])
    assert composed_epsilon(ledger, 1e-9) <= 4.75


@pytest.mark.parametrize("came_out", [None, PrivacyLoss(0.5, kind="ex-post")])
def test_the_delta_of_what_is_reserved_counts(came_out, tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=10.0, delta=1e-5)
    reservation = ledger.reserve(1.0, 8e-6)
    if came_out is not None:
        # an ex-post loss says nothing of the other outcomes
        reservation.commit(came_out)
    with pytest.raises(ValueError, match="8e-06"):
        composed_epsilon(ledger, 7.9e-6)
    assert composed_epsilon(ledger, 8.1e-6) <= 1.0


def test_ex_post_losses_are_refused():
    with pytest.raises(ValueError, match="ex-post"):
        to_dp_event([PrivacyLoss(0.1, kind="ex-post")])


def test_losses_for_different_adjacencies_are_refused():
    losses = [PrivacyLoss(0.1), PrivacyLoss(0.1, adjacency="replace all rows of one person")]
    for total in (to_dp_event, partial(composed_epsilon, delta=1e-6)):
        with pytest.raises(ValueError, match="different adjacencies"):
            total(losses)


@pytest.mark.parametrize("arguments", [{"delta": 0.0}, {"delta": 1.0}, {"accountant": "moments"}])
def test_bad_arguments(arguments):
    with pytest.raises(ValueError, match="|".join(arguments)):
        composed_epsilon([PrivacyLoss(1.0)], **{"delta": 1e-6, **arguments})


# --- releases of which more is known

BOTH = ["pld", "concentrated"]


def gaussian_loss(epsilon, delta):
    return PrivacyLoss(epsilon, delta, event=GaussianEvent(gaussian_mu(epsilon, delta)))


def exact_delta(epsilon, mus=(), pures=(), choices=(), own=0.0):
    """The hockey-stick of one Gaussian mechanism, randomised responses, and choices between two.

    A choice is (its epsilon, the larger one of its two losses).
    """
    losses, weights = np.zeros(1), np.ones(1)
    outcomes = [((e, -e), 1 / (1 + math.exp(-e))) for e in pures]
    for e, t in choices:
        first = (math.exp(e - t) - 1) / (math.exp(e - t) - math.exp(-t))
        outcomes.append(((t, t - e), first))
    for pair, p in outcomes:
        losses = np.concatenate([losses + pair[0], losses + pair[1]])
        weights = np.concatenate([weights * p, weights * (1 - p)])
    left = epsilon - losses
    if mus:
        event = GaussianEvent(math.hypot(*mus))
        # the profile at a negative epsilon is that of the reverse
        values = np.where(
            left > 0,
            event.profile(abs(left)),
            -np.expm1(np.minimum(left, 0)) + np.exp(np.minimum(left, 0)) * event.profile(abs(left)),
        )
    else:
        values = -np.expm1(np.minimum(left, 0))
    return own + (1 - own) * float(weights @ values)


def exact_epsilon(delta, **mechanisms):
    return brentq(lambda e: exact_delta(e, **mechanisms) - delta, 0, 100, xtol=1e-12)


CASES = {
    "gaussian": ([gaussian_loss(0.3, 1e-7)] * 5, {"mus": [gaussian_mu(0.3, 1e-7)] * 5}),
    "two kinds": (
        [gaussian_loss(0.5, 1e-6), PrivacyLoss(0.2), PrivacyLoss(0.4)],
        {"mus": [gaussian_mu(0.5, 1e-6)], "pures": [0.2, 0.4]},
    ),
    "a delta": (
        [gaussian_loss(0.5, 1e-6), PrivacyLoss(0.2, 1e-6)],
        {"mus": [gaussian_mu(0.5, 1e-6)], "pures": [0.2], "own": 1e-6},
    ),
}


@pytest.mark.parametrize("delta", [1.5e-6, 1e-3])
@pytest.mark.parametrize("case", CASES)
def test_totals_are_no_less_than_the_exact_ones_and_close(case, delta):
    losses, mechanisms = CASES[case]
    exact = exact_epsilon(delta, **mechanisms)
    found = composed_epsilon(losses, delta)
    assert exact * (1 - 1e-10) <= found <= 1.03 * exact
    assert found <= composed_epsilon(losses, delta, accountant="concentrated") <= 1.6 * exact


def test_totals_that_no_grid_reaches():
    # exponentials of these are beyond float64
    mu = 40 / math.sqrt(10)
    ten = [PrivacyLoss(gaussian_epsilon(mu, 1e-7), 1e-7, event=GaussianEvent(mu))] * 10
    exact = gaussian_epsilon(40, 1e-5)
    assert exact * (1 - 1e-10) <= composed_epsilon(ten, 1e-5) <= 1.001 * exact
    assert composed_epsilon([PrivacyLoss(1e9, 1e-7)] * 3, 1e-5) == 3e9
    choice = PrivacyLoss(500.0, event=ChoiceEvent(500.0))
    assert 500 < composed_epsilon([choice, gaussian_loss(0.3, 1e-7)], 1e-5) <= 500.3


def test_every_choice_between_two_is_covered():
    losses = [gaussian_loss(0.5, 1e-6), PrivacyLoss(0.4, event=ChoiceEvent(0.4))]
    mus = [gaussian_mu(0.5, 1e-6)]
    exact = [exact_epsilon(1e-6, mus=mus, choices=[(0.4, t)]) for t in np.linspace(0.01, 0.39, 20)]
    assert max(exact) <= composed_epsilon(losses, 1e-6) <= 1.01 * max(exact)


def test_twins_state_too_little_or_far_too_much():
    from dp_accounting import NeighboringRelation, dp_event, pld

    losses, mechanisms = CASES["gaussian"]
    exact = exact_epsilon(1e-6, **mechanisms)
    for multiplier, relation, ratio in (
        (lambda mu: 1 / mu, NeighboringRelation.REPLACE_ONE, (1.9, 3)),  # counts a replacement twice
        (lambda mu: 2 / mu, NeighboringRelation.ADD_OR_REMOVE_ONE, (0.3, 0.55)),  # and half of it
    ):
        twin = pld.PLDAccountant(relation)
        for mu in mechanisms["mus"]:
            twin.compose(dp_event.GaussianDpEvent(multiplier(mu)))
        assert ratio[0] < twin.get_epsilon(1e-6) / exact < ratio[1]
    # what is exported has it right
    own = pld.PLDAccountant(NeighboringRelation.REPLACE_ONE)
    own.compose(to_dp_event(losses))
    assert own.get_epsilon(1e-6) == pytest.approx(exact, rel=1e-3)
    # mu added, and not its squares
    assert gaussian_epsilon(5 * mechanisms["mus"][0], 1e-6) > 2 * exact
    # a delta of its own that is forgotten
    losses, mechanisms = CASES["a delta"]
    forgotten = [replace(loss, delta=0.0) for loss in losses]
    assert composed_epsilon(forgotten, 1.01e-6) < 0.9 * exact_epsilon(1.01e-6, **mechanisms)
    assert composed_epsilon(losses, 1.01e-6) >= exact_epsilon(1.01e-6, **mechanisms)
    with pytest.raises(ValueError, match="the sum of the losses' own"):
        composed_epsilon(losses, 1e-6)


@pytest.mark.parametrize("accountant", BOTH)
def test_no_total_exceeds_the_sum_and_one_release_costs_what_it_states(accountant):
    gaussian = GaussianEvent(gaussian_mu(1.0, 1e-6))
    for event in (gaussian, ObjectiveEvent(0.3, 0.2), ChoiceEvent(1.0), None):
        loss = PrivacyLoss(1.0, 1e-6, event=event)
        assert composed_epsilon([loss], 1e-6, accountant=accountant) <= 1
        assert composed_epsilon([loss] * 3, 3e-6, accountant=accountant) <= 3


@pytest.mark.parametrize("accountant", BOTH)
def test_blocks_cost_what_the_worst_of_them_does(accountant):
    blocks = [gaussian_loss(0.3, 1e-6), PrivacyLoss(0.3), PrivacyLoss(0.2, event=ChoiceEvent(0.2))]

    def total(losses):
        return composed_epsilon(losses, 2e-5, accountant=accountant)

    together = total([PrivacyLoss.parallel(blocks)] * 10)
    assert together >= max(total([block] * 10) for block in blocks) * (1 - 1e-9)
    assert together <= total([PrivacyLoss(0.3)] * 10) + 1e-3 < total(blocks * 10)
    # sums within blocks
    halves = PrivacyLoss.sequential([gaussian_loss(0.15, 5e-7)] * 2)
    inner = total([PrivacyLoss.parallel([halves, PrivacyLoss(0.1)])] * 5)
    assert total([halves] * 5) * (1 - 1e-9) <= inner < total([halves, PrivacyLoss(0.1)] * 5)


def test_a_ledger_keeps_what_was_released(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.2, 0.2, (300, 40))
    y = (X[:, 0] > 0).astype(int)
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=10.0, delta=1e-4)
    model = DPLogisticRegression(0.5, classes=[0, 1], delta=1e-6, data_norm="auto", norm="l2")
    with ledger:
        fits = [model.fit(X, y).privacy_ for _ in range(3)]
    ledger.spend(0.5, 1e-6, label="by hand", event=GaussianEvent(gaussian_mu(0.5, 1e-6)))
    entries = ledger.history()
    assert [entry.statement for entry in entries[:3]] == fits
    assert entries[3].statement.event == GaussianEvent(gaussian_mu(0.5, 1e-6))
    assert ledger.spent() == pytest.approx((0.5 + sum(loss.epsilon for loss in fits), 4e-6))
    assert composed_epsilon(ledger, 1e-5) <= ledger.total(1e-5) < 1.9
    copy = PrivacyLedger.from_json(ledger.to_json(), tmp_path / "copy")
    assert copy.history() == entries and copy.total(1e-5) == ledger.total(1e-5)


@pytest.mark.parametrize(
    "epsilon, delta, event",
    [
        (0.4, 1e-6, GaussianEvent(gaussian_mu(0.5, 1e-6))),
        (0.5, 1e-7, GaussianEvent(gaussian_mu(0.5, 1e-6))),
        (0.5, 0.0, GaussianEvent(0.1)),
        (0.4, 0.0, ChoiceEvent(0.5)),
        (0.9, 0.0, ChoiceEvent(0.5, times=2)),
        (0.4, 1e-9, ChoiceEvent(0.5)),
    ],
)
def test_an_event_that_spends_more_than_is_said_is_refused(epsilon, delta, event, tmp_path):
    ledger = PrivacyLedger(tmp_path / "l.ledger", epsilon=3.0, delta=1e-5)
    with pytest.raises(ValueError, match="count less than is spent"):
        ledger.spend(epsilon, delta, event=event)
    assert ledger.spent() == (0.0, 0.0)
    # what is private at more than it spends is not
    ledger.spend(1.0, 2e-6, event=event)


def test_what_failed_or_came_out_smaller_counts_for_what_was_reserved(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=10.0, delta=1e-4)
    gaussian = gaussian_loss(0.5, 1e-6)
    for _ in range(5):
        ledger.reserve(0.5, 1e-6).commit(gaussian)
    before = ledger.total(1e-5)
    ledger.reserve(0.5, 1e-6, label="of a fit that failed after its noise was drawn")
    failed = ledger.total(1e-5)
    assert failed > before and ledger.history()[-1].statement == PrivacyLoss(
        0.5, 1e-6, label="of a fit that failed after its noise was drawn"
    )
    # the broken twin drops it, or takes it for a release like the others
    assert failed > composed_epsilon([gaussian] * 6, 1e-5)
    ledger.reserve(0.5, 1e-6).commit(PrivacyLoss(0.1, kind="ex-post"))
    assert ledger.history()[-1].statement.epsilon == 0.5 and ledger.total(1e-5) > failed


def test_statements_of_an_export_are_checked(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=10.0, delta=1e-4)
    ledger.spend(0.5, 1e-6, event=GaussianEvent(0.1))
    text = ledger.to_json()
    for old, new in (
        ('"mu": 0.1', '"mu": -0.1'),
        ('"mu": 0.1', '"mu": 0.1, "sigma": 1'),
        ('"kind": "gaussian"', '"kind": "none"'),
        ('"parts": []', '"parts": [1]'),
    ):
        assert text.count(old) == 1
        with pytest.raises(ValueError, match="not what to_json of a ledger returned"):
            PrivacyLedger.from_json(text.replace(old, new), tmp_path / "other")
    # less stated than committed
    changed = text[:-100].replace('"epsilon": 0.5', '"epsilon": 0.4', 1) + text[-100:]
    with pytest.raises(ValueError, match="not what to_json of a ledger returned"):
        PrivacyLedger.from_json(changed, tmp_path / "other")


@pytest.mark.parametrize("accountant", BOTH)
def test_a_joint_loss_counts_as_its_parts_do(accountant, monkeypatch):
    parts = [PrivacyLoss(1.0, event=ChoiceEvent(1.0)), gaussian_loss(1.0, 1e-6)]
    joint = PrivacyLoss.joint(parts, 1.6)

    def both():
        return (
            composed_epsilon(losses, 1e-4, accountant=accountant) for losses in ([joint] * 5, parts * 5)
        )

    together, apart = both()
    assert together == pytest.approx(apart, rel=1e-9)
    if accountant == "pld":
        monkeypatch.setattr(totals, "added_losses", lambda loss: [loss])  # a joint loss stays one
        together, apart = both()
        assert together != pytest.approx(apart, rel=1e-9)


LABELS = [
    '"label": "x"',
    "\\",
    'a "quoted" one\\',
    "\n\u2028 \u00e9",
    "",
    "release",
    '", "epsilon": 9.0, "',
    "{}",
]


def of_all_kinds(rng):
    """A loss of a random kind: with a delta, an event, blocks, or parts that add up."""
    label = str(rng.choice(LABELS))
    epsilon = float(rng.choice([0.01, 0.03, 0.5, 2.0]))
    simple = [
        PrivacyLoss(epsilon, label=label),
        PrivacyLoss(epsilon, 1e-7, label=label),
        gaussian_loss(epsilon, 1e-5),
    ]
    blocks = PrivacyLoss.parallel(simple[:2], label=label)
    kinds = [*simple, blocks, PrivacyLoss.sequential([simple[0], blocks], label=label)]
    return kinds[rng.integers(len(kinds))]


def test_the_total_of_a_ledger_is_that_of_its_statements(tmp_path, monkeypatch):
    """Statements are read without their labels, whatever these look like."""
    rng, losses = np.random.default_rng(0), []
    ledger = PrivacyLedger(tmp_path / "a.ledger", epsilon=1e3, delta=0.1)
    for number in range(60):
        losses.append(replace(of_all_kinds(rng), label=f"{number} {rng.choice(LABELS)}"))
    with ledger:
        for loss in losses:
            with spending(None, loss):
                pass
    assert [each.statement for each in ledger.history()] == losses
    for delta in (1e-3, 1e-2):
        expected = composed_epsilon(losses, delta, accountant="concentrated")
        assert ledger.total(delta) == expected
    # a twin that takes all that is in quotation marks for a label
    monkeypatch.setattr(entry, "LABEL", re.compile(r'"label": (".*")'))
    entry._parsed.cache_clear()
    entry._loss_of.cache_clear()
    with pytest.raises((ValueError, KeyError)):
        ledger.total(1e-2)


def one_by_one(parts, apart, delta):
    """The total of some parts, and of others that are simply added, without columns."""
    delta -= math.fsum(part.delta for part in apart)
    added = math.fsum(part.epsilon for part in apart)
    found = list(map(totals._divergences, parts))
    shift, rho, own = (math.fsum(numbers[i] for numbers in found) for i in range(3))
    total = math.inf
    if delta > own and rho < math.inf:
        total = shift + totals.zcdp_to_epsilon(rho, delta - own)
    found = list(map(totals._gaussian, parts))
    mu, own = math.hypot(*(mu for mu, _ in found)), math.fsum(lost for _, lost in found)
    if delta > own and mu < math.inf:
        total = min(total, gaussian_epsilon(mu, delta - own))
    return added + total


def test_totals_are_those_of_losses_one_by_one():
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 7, 40):
        losses = [of_all_kinds(rng) for _ in range(n)] * 2
        parts = sorted(losses, key=lambda part: (part.event is None, part.epsilon))
        n_apart = sum(part.event is None for part in parts)
        several = {0, n_apart, *(2**j for j in range(n_apart.bit_length()))}
        for delta in (1e-4, 0.01):
            expected, twin = (
                min(
                    one_by_one(parts[: len(parts) - k] + parts[:more], parts[len(parts) - k :], delta)
                    for k in several
                )
                for more in (0, 1)
            )
            assert totals._concentrated(losses, delta) == expected
            # one that counts a part twice
            assert n == 0 or twin > expected
