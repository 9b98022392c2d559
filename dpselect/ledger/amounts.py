"""Exact sums of privacy losses, as the decimals that are printed."""

import math
from decimal import Context, Decimal, Inexact, localcontext
from fractions import Fraction

# Relative tolerance: k times a k-th of a total can exceed it by so little, because a k-th is rounded to
# a float and to its printed decimal. Sums with at most 15 digits never exceed a total by so little.
_ROUNDING = Fraction(1, 2**51)


def exact(amount):
    """Return a number as the shortest decimal that rounds to it: 0.1 as a tenth."""
    return amount if isinstance(amount, Fraction) else Fraction(repr(float(amount)))


def exact_sum(amounts, counts):
    """Return the sum of floats with multiplicities, as a fraction."""
    # fifteen times as fast as fractions; the context raises if a sum is inexact
    with localcontext(Context(prec=10_000, traps=[Inexact])):
        return Fraction(sum(Decimal(repr(amount)) * n for amount, n in zip(amounts, counts)))


def fits(amount, total):
    """Return whether a sum is within a total, up to the rounding of floats; both are fractions."""
    return amount <= total * (1 + _ROUNDING)


def times(amount, total, spent):
    """Return how often an amount can be added to what was spent; all are fractions."""
    return math.inf if amount == 0 else max(0, (total * (1 + _ROUNDING) - spent) // amount)


def left_of(total, spent):
    """Return the largest float, approximately, that can be added to what was spent."""
    amount = float(max(total - spent, Fraction(0)))
    while amount > 0 and not fits(spent + exact(amount), total):
        amount = math.nextafter(amount, 0.0)
    return amount
