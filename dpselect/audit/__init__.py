"""Audits: searches for violations of a claim.

An audit finds a counterexample or finds none; it never proves a claim. Its random numbers choose
what to try. They are not noise and protect nothing, so they come from numpy's ordinary
generator, and a seed does no harm. What an audit returns may hold the records that it tried: run
it on invented records, not on those that you mean to protect.
"""

from .guessing import GuessingResult, guessing_game
from .privacy import EpsilonBound, epsilon_lower_bound
from .stability import ScoreChange, attack_certificate, stability_violation

__all__ = [
    "EpsilonBound",
    "GuessingResult",
    "ScoreChange",
    "attack_certificate",
    "epsilon_lower_bound",
    "guessing_game",
    "stability_violation",
]
