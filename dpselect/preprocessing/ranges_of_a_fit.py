"""Divide the budget of one fit between ranges that are learned first and the model behind them."""

import math
from dataclasses import dataclass, replace

from ..accounting.gaussian import gaussian_epsilon, gaussian_mu
from ..accounting.joint import jointly
from ..accounting.privacy_loss import PrivacyLoss, remainder
from ..base.estimator import PrivateEstimator
from ..base.learned_numbers import Division
from ..utils.parameters import with_values
from .learned_ranges import FRACTION, TableRanges, numbers_to_learn
from .table_terms import TableTerms

# of delta, for the ranges, if they are composed jointly with the model
DELTA_FRACTION = 1 / 16
# steps between the epsilon that a sum leaves for the model, and all of it
N_STEPS = 64


def ranges_to_learn(pipeline):
    """Return the TableRanges of a TabularPipeline, or None; refuse what there is no proof for.

    Parameters
    ----------
    pipeline : TabularPipeline

    Returns
    -------
    TableRanges or None

    Raises
    ------
    ValueError
        If the steps, the schema or the model do not go with ranges that are learned.
    """
    encoder, model = pipeline.steps[-2][1], pipeline.steps[-1][1]
    if getattr(encoder, "ranges", None) is None:
        return None
    read = TableTerms.of(encoder, encoder.public_schema()).schema
    delta = float(getattr(model, "delta", 0.0))
    for wrong, why, instead in (
        (len(pipeline.steps) != 2, "the pipeline has steps before its encoder", "leave them out"),
        (
            not isinstance(model, PrivateEstimator),
            f"the noise of {type(model).__name__} is not known beforehand",
            "take a linear model or DPRidge of dpselect",
        ),
        (pipeline.memory is not None, "memory would keep encoded rows", "write memory=None"),
        (
            any(isinstance(getattr(model, norm, 0), str) for norm in ("data_norm", "data_norm_l1")),
            "a norm that is learned first would follow from them",
            "leave data_norm out, which the encoder knows",
        ),
    ):
        if wrong:
            raise ValueError(
                f"ranges='auto' cannot be learned, because {why}; {instead}, or write None."
            )
    return TableRanges(numbers_to_learn(read, encoder.cut_points), delta)


@dataclass(frozen=True)
class Shares:
    """Shares of the budget of a fit for ranges and for the model, by public numbers.

    Attributes
    ----------
    release : TableRanges
    ranges : PrivacyLoss
        Of the ranges.
    model : estimator
        With the epsilon and delta that are left for it.
    total : PrivacyLoss
        Of both.
    """

    release: TableRanges
    ranges: PrivacyLoss
    model: PrivateEstimator
    total: PrivacyLoss

    @classmethod
    def of(cls, release, model, shape, adjacency, label):
        """Return the shares of a fit, or None if ranges are not worth their cost.

        With a delta both are Gaussian where that leaves the model more than a sum of epsilons does.
        """
        epsilon, delta = float(model.epsilon), float(getattr(model, "delta", 0.0))
        seeded = model.random_state is not None
        # the profile of a model of several classes is known too roughly to gain
        if delta and epsilon < math.inf and release.columns and shape.n_problems == 1:
            blank = PrivacyLoss(
                0.0, label=f"TableEncoder: {release.what}", seeded=seeded, adjacency=adjacency
            )
            gaussian = _gaussian(release, blank, model, shape, label)
            if gaussian is not None:
                return gaussian
        planned = release.planned(model, shape, epsilon)
        if planned is None:
            return None
        division = Division({"ranges": planned}, epsilon)
        (loss,) = division.losses({"ranges": "TableEncoder"}, seeded, adjacency)
        given = {"epsilon": division.rest} | ({"delta": remainder(delta, [loss.delta])} if delta else {})
        return cls._of(planned, loss, with_values(model, **given), shape, label)

    @classmethod
    def _of(cls, release, ranges, model, shape, label):
        return cls(release, ranges, model, jointly([ranges, model.planned_loss(shape)], label=label))


def _gaussian(release, loss, model, shape, label):
    """Return Shares with Gaussian noise of a tenth of mu^2, or None if the model has no more by them."""
    epsilon, delta = float(model.epsilon), float(model.delta)
    mu = math.sqrt(FRACTION) * gaussian_mu(epsilon, delta)
    own = DELTA_FRACTION * delta
    release = replace(release, delta=own, mu=mu)
    if not release.pays(shape.n_samples, epsilon):
        return None
    loss = replace(loss, epsilon=gaussian_epsilon(mu, own), delta=own, event=release.event(epsilon))
    found, low, high = None, 0, N_STEPS
    while high - low > 1:
        step = (low + high) // 2
        fraction = 1 - FRACTION * (1 - step / N_STEPS)
        values = {"epsilon": fraction * epsilon, "delta": remainder(delta, [own])}
        shares = Shares._of(release, loss, with_values(model, **values), shape, label)
        if shares.total.epsilon <= epsilon and shares.total.delta <= delta:
            found, low = shares, step
        else:
            high = step
    return found
