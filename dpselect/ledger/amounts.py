"""Amounts of loss as the decimals that are printed, and when their exact sums fit into a total."""

import math
from decimal import Context, Decimal, Inexact, localcontext
from fractions import Fraction

# By so little k times a k-th of a total can be too much, as a k-th is rounded to a float, and to the
# decimal that this prints as. A sum with 15 digits or fewer is never too large by so little.
_ROUNDING = Fraction(1, 2**51)


def exact(amount):
    """Return a number as the shortest decimal that is read as it: 0.1 as a tenth."""
    return amount if isinstance(amount, Fraction) else Fraction(repr(float(amount)))


def exact_sum(amounts, counts):
    """Return the sum of floats, each of which occurs so many times, as a fraction."""
    # fifteen times as fast as fractions; an inexact sum would be an error
    with localcontext(Context(prec=10_000, traps=[Inexact])):
        return Fraction(sum(Decimal(repr(amount)) * n for amount, n in zip(amounts, counts)))


def fits(amount, total):
    """Tell whether a sum is within a total, both of them fractions, up to the rounding of floats."""
    return amount <= total * (1 + _ROUNDING)


def left_of(total, spent):
    """Return the largest float, about, that can be added to what was spent."""
    amount = float(max(total - spent, Fraction(0)))
    while amount > 0 and not fits(spent + exact(amount), total):
        amount = math.nextafter(amount, 0.0)
    return amount
