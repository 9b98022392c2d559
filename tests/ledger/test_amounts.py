"""Amounts add up as they are printed."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect import BudgetExceededError, PrivacyLedger
from dpselect.ledger import amounts, budget_file
from dpselect.ledger.amounts import exact, exact_sum, fits, left_of

# a + b = c with one decimal, and with two
SPLITS = [(a, total - a, total, 10) for total in range(1, 21) for a in range(1, total)]
SPLITS += [(7 * a, 101 - 7 * a, 101, 100) for a in range(1, 15)]


def of_binary(amount):
    """A broken twin of `exact`: the binary fraction that a float is."""
    return amount if isinstance(amount, Fraction) else Fraction(float(amount))


def faults(count):
    """Return splits whose parts do not fit into the whole, or fit into less; `count` reads numbers."""
    found = []
    for a, b, total, unit in SPLITS:
        parts, whole = [count(a / unit), count(b / unit)], count(total / unit)
        less = count((total - 1) / unit)
        rounded = fits(sum(parts), whole) if count is exact else float(sum(parts)) <= float(whole)
        if not rounded or (less and fits(sum(parts), less)):
            found.append((a, b, total, unit))
    return found


def test_two_parts_fit_into_their_sum_and_into_no_less():
    assert len(SPLITS) > 171 and faults(exact) == []
    assert len(faults(of_binary)) > 10


@pytest.mark.parametrize("budget", [0.1, 0.3, 1.0, 2.0, 5.0, 7.3, 1 / 3, math.pi, 1e-6, 123.456])
def test_equal_parts_fit_and_not_one_more(budget):
    for k in range(2, 300):
        part, whole = exact(budget / k), exact(budget)
        assert fits(k * part, whole) and not fits((k + 1) * part, whole)
        assert k * part <= whole * (1 + Fraction(1, 2**51))
        left = left_of(whole, (k - 1) * part)
        assert fits((k - 1) * part + exact(left), whole) and left == pytest.approx(budget / k, rel=1e-12)


def test_sums_of_short_decimals_are_never_above_the_budget():
    # with 15 digits or fewer, what is above is above by more than the rounding that is allowed
    for digits in (1, 2, 6, 14):
        unit = Fraction(1, 10**digits)
        assert fits(1 - unit, Fraction(1)) and fits(Fraction(1), Fraction(1))
        assert not fits(1 + unit, Fraction(1))


def test_sums_of_any_amounts_are_exact():
    rng = np.random.default_rng(0)
    amounts = [*(10.0 ** rng.uniform(-320, 300, size=200)), 0.0, 5e-324, 1.7e308, *rng.uniform(size=200)]
    counts = rng.integers(1, 10**6, size=len(amounts)).tolist()
    amounts = list(map(float, amounts))
    assert exact_sum(amounts, counts) == sum(exact(a) * n for a, n in zip(amounts, counts))
    assert exact_sum([], []) == 0


def test_a_ledger_takes_three_tenths(tmp_path):
    names = itertools.count()

    def spends(*parts, budget):
        ledger = PrivacyLedger(tmp_path / f"{next(names)}.ledger", epsilon=budget, delta=3e-6)
        for part in parts:
            ledger.spend(part, 1e-6)
        return ledger

    ledger = spends(0.1, 0.1, 0.1, budget=0.3)
    assert ledger.spent() == (0.3, 3e-6) and ledger.remaining() == (0.0, 0.0)
    with pytest.raises(BudgetExceededError):
        ledger.spend(1e-15)
    ledger = spends(0.1, 0.2, budget=0.4)
    assert ledger.remaining() == (0.1, 1e-6)
    ledger.spend(0.1, 1e-6)
    again = PrivacyLedger.from_json(ledger.to_json(), tmp_path / "again")
    assert again.spent() == ledger.spent() == (0.4, 3e-6)


def test_a_twin_with_binary_sums_refuses_the_third_tenth(tmp_path, monkeypatch):
    for module in (amounts, budget_file):
        monkeypatch.setattr(module, "exact", of_binary)
    monkeypatch.setattr(
        budget_file, "times", lambda more, total, spent: float(spent) + float(more) <= float(total)
    )
    ledger = PrivacyLedger(tmp_path / "twin.ledger", epsilon=0.3)
    ledger.spend(0.1)
    with pytest.raises(BudgetExceededError):
        ledger.spend(0.2)
