"""Advice of a plan on quality, the columns of a table, and a delta, from public numbers alone."""

import math
from dataclasses import replace

from scipy.special import entr
from sklearn.base import clone

from ..base.capabilities import HasNoiseLength
from ..preprocessing.table_advice import table_advice
from ..preprocessing.table_terms import TableTerms, total_lengths
from ..preprocessing.tabular import TabularPipeline, known_share
from .candidates import parameters
from .private_steps import last_step
from .quality_forecast import expected_quality, quality_messages
from .strategies.stability_plan import USEFUL

# a smaller gain is not worth a promise that may fail
LEAST_GAIN = 1.05


def with_advice(plan, candidates, share=None):
    """Return a plan with its forecasts of quality and its advice; a class may have a public share."""
    trained = plan.training_size, plan.training_epsilon
    share = known_share(candidates[0].model) if share is None else share
    expected = expected_quality(candidates[0], *trained, share)
    advice = (
        *quality_messages(expected, plan.training_size, share),
        *choice_messages(plan, share),
        *weight_messages(candidates),
        *table_messages(candidates, *trained),
        *delta_messages(candidates, *trained),
    )
    return replace(plan, expected_quality=expected, advice=advice)


def choice_messages(plan, share):
    """Return what a plan says of a choice by log loss, of which a rare class leaves little to gain."""
    blur = plan.minimum_detectable_difference
    if share is None or not (blur > 0 and math.isclose(plan.stake, math.log(2))):
        return ()
    gain = float(entr([share, 1 - share]).sum())
    if blur <= USEFUL * gain or gain > plan.stake / 2:
        return ()
    message = (
        f"A class with a share of {share:.2g} leaves a perfect model {gain:.2g} to gain over a "
        f"constant, and not {plan.stake:.2g}, and others gain a fraction of it: a choice that sees "
        f"differences of {blur:.2g} is nearly chance; take one candidate, whose training then has the "
        "whole epsilon."
    )
    return (message,)


def table_messages(candidates, n_samples, epsilon):
    """Return what a plan says about the columns of tables."""
    messages = []
    for candidate in candidates:
        pipeline, steps = candidate.estimator, candidate.fitted_steps
        if isinstance(pipeline, TabularPipeline) and steps is not None:
            messages += table_advice(pipeline, steps[-1], n_samples, epsilon)
    return tuple(dict.fromkeys(messages))


def weight_messages(candidates):
    """Return what a plan says about the weights of records, which it does not know."""
    bounds = {parameters(c.model).get("max_sample_weight") for c in candidates} - {None}
    return tuple(
        f"Weights are not counted: this is for records of weight {bound:g}, the max_sample_weight; with "
        f"a mean weight of w, plan for n_samples * w / {bound:g} records."
        for bound in sorted(bounds)
    )


def delta_messages(candidates, n_samples, epsilon):
    """Return what a plan says about the delta of models: what it gains, or what one would gain.

    Noise is compared by its root mean square length in the gradient: half of it is about as good as
    twice as many records.
    """
    gains = {}
    for candidate in candidates:
        given = parameters(candidate.model).get("delta")
        delta = given or customary_delta(n_samples)
        lengths = [noise_length(candidate, n_samples, epsilon, d) for d in (0.0, delta)]
        if given is None or None in lengths:
            return ()
        gains.setdefault((given > 0, delta), []).append(lengths[0] / lengths[1])
    return tuple(_message(given, delta, found) for (given, delta), found in gains.items())


def customary_delta(n_samples):
    """Return 1e-6, or the largest power of ten that is at most a tenth of one over n."""
    return min(1e-6, 10.0 ** -math.ceil(math.log10(10 * n_samples)))


def noise_length(candidate, n_samples, epsilon, delta):
    """Return the length of a candidate's noise with another delta, or None if it has no such noise.

    In units of the typical length of a row, if there is an encoder: it takes the terms, and codes of
    categories, for which this noise is short.
    """
    if not isinstance(candidate.model, HasNoiseLength):
        return None
    given = parameters(candidate.model).get("delta") == delta
    # with its own delta it is made for this fit already
    estimator = candidate.estimator if given else clone(candidate.estimator)
    shape, unit = candidate.shape(n_samples), 1.0
    if not given:
        last_step(estimator).set_params(delta=delta)
    if isinstance(estimator, TabularPipeline):
        if not given:
            estimator.bound(n_samples, epsilon)
        encoder = estimator.steps[-2][1]
        terms = TableTerms.of(encoder, encoder.public_schema()).terms
        shape = replace(shape, n_features=terms[-1].outputs.stop)
        unit = total_lengths(terms).typical_l2_squared ** 0.5
    try:
        return last_step(estimator).noise_length(shape, epsilon) / unit
    except ValueError:  # a mechanism that takes no delta
        return None


def _message(given, delta, gains):
    low, high = f"{min(gains):.2g}", f"{max(gains):.2g}"
    times = low if low == high else f"{low} to {high}"
    gained = max(gains) >= LEAST_GAIN
    if given and gained:
        return (
            f"delta={delta:.6g} makes the noise {times} times smaller than it is without a delta, as "
            f"{times} times as many records would."
        )
    if given:
        hardly = (
            "makes the noise less than 5 % smaller here"
            if max(gains) > 1
            else "is of no use here, as noise without one is as short"
        )
        return f"delta={delta:.6g} {hardly}; leave it out."
    if gained:
        return (
            f"delta={delta:.6g} of the model would make the noise {times} times smaller, as {times} "
            "times as many records would; the promise may then fail with that probability."
        )
    return f"delta={delta:.6g} of the model would not make the noise smaller."
