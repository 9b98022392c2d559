"""Say what an epsilon means for one record: odds before and after, and a game."""

import math

from ..accounting.privacy_loss import KINDS
from .document import Table

PRIORS = (0.01, 0.1, 0.5)
# up to which NIST SP 800-226, section 2.2, calls the protection strong in most cases
STRONG = 1.0


def meaning(model, loss):
    """Return the blocks on what someone can learn of one record, at most."""
    if loss.epsilon == math.inf:
        return ("Nothing is promised: what was released is to be handled like the records themselves.",)
    factor, bound, one = _factor(loss.epsilon), loss, loss.adjacency.unit
    if loss.kind == KINDS[1]:
        bound = getattr(getattr(model, "plan_", None), "at_most", None)
        blocks = [
            (
                "This epsilon was not fixed in advance: it bounds the loss of the outcome that came "
                f"out. Replacing one {one} changes its probability by a factor of at most {factor}."
            )
        ]
        if loss.delta:
            blocks.append(f"With a probability of at most delta = {loss.delta:.6g} the loss is larger.")
        if bound is not None:
            blocks.append(
                "Whatever had come out, the search as a whole is differentially private with epsilon = "
                f"{bound.epsilon:.6g} and delta = {bound.delta:.6g}. This number was known before the "
                "records were read, and is the one to quote where differential privacy is asked for; "
                "the one above is about this outcome alone."
            )
    else:
        besides = f", and by delta = {loss.delta:.6g} besides" if loss.delta else ""
        blocks = [
            (
                f"What can come out is about as likely, whatever one {one} says: replacing the {one} "
                f"changes the probability of an event by a factor of at most {factor}{besides}."
            )
        ]
        if loss.delta:
            blocks.append(
                f"Nobody can learn more than from a release that shows the {one} openly with a "
                f"probability of {loss.delta:.6g}, one in {1 / loss.delta:,.0f}, and otherwise has "
                "delta = 0, for which:"
            )
    blocks += [
        (
            f"Someone knows all other {one}s, and holds a statement about this one for true with some "
            "probability. How probable can the release make it?"
        ),
        Table(
            ("Before", "After, at most"),
            tuple((f"{100 * prior:g} %", _percent(posterior(prior, loss.epsilon))) for prior in PRIORS),
        ),
    ]
    if loss.epsilon > STRONG:
        blocks.append(
            "NIST SP 800-226 takes an epsilon of 1 or less for strong protection in most cases, and "
            "warns that larger ones may not be meaningful. Those who decided on this one have to say "
            "why it is small enough for these people."
        )
    if bound is not None:
        blocks.append(
            f"A game: someone knows all other {one}s, and that a fair coin chose this one among two. "
            f"They tell which one in at most {_percent(success(bound.epsilon, bound.delta))} of all "
            "cases, and in 50 % by guessing."
        )
    blocks.append("This holds whatever else they know, and whatever is computed from the release later.")
    if loss.seeded:
        blocks.append(
            "It does not hold for those who know the seed: they can remove the noise, and nothing is "
            "promised against them."
        )
    return tuple(blocks)


def posterior(prior, epsilon):
    """Return the largest posterior probability of an event, after the release, for a prior one."""
    return prior / (prior + (1 - prior) * math.exp(-epsilon))


def success(epsilon, delta):
    """Return the largest probability of distinguishing two equally likely records."""
    return min(1.0, (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon)))


def _percent(fraction):
    """Return a fraction in percent, rounded up, with enough digits below 100 %."""
    remaining = max(100 * (1 - fraction), 1e-9)
    digits = max(1, 1 - math.floor(math.log10(remaining)))
    return f"{math.ceil(round(100 * fraction * 10**digits, 9)) / 10**digits:.{digits}f} %"


def _factor(epsilon):
    return f"{math.exp(epsilon):,.4g}" if epsilon < 700 else f"exp({epsilon:.6g})"
