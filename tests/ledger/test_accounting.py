import math

import pytest

from dpselect import PrivacyLedger, PrivacyLoss
from dpselect.ledger.accounting import composed_epsilon, to_dp_event

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


@pytest.mark.parametrize("accountant, slack", [("pld", 0.0), ("rdp", 0.5)])
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
    assert composed_epsilon(losses, 1e-5) == pytest.approx(pure, rel=1e-6)
    with pytest.raises(ValueError, match="8e-06"):
        composed_epsilon(losses, 8e-6)


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
        composed_epsilon(ledger, 8e-6)
    assert composed_epsilon(ledger, 8.1e-6) <= 1.0


def test_ex_post_losses_are_refused():
    with pytest.raises(ValueError, match="ex-post"):
        to_dp_event([PrivacyLoss(0.1, kind="ex-post")])


@pytest.mark.parametrize("arguments", [{"delta": 0.0}, {"delta": 1.0}, {"accountant": "moments"}])
def test_bad_arguments(arguments):
    with pytest.raises(ValueError, match="|".join(arguments)):
        composed_epsilon([PrivacyLoss(1.0)], **{"delta": 1e-6, **arguments})
