"""A plan and a fit of a search: two folds of one list of stages."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..accounting.privacy_loss import PrivacyLoss
from ..exceptions import CertificateError
from ..ledger import spending, without_spending
from ..ledger.spending import Spending
from ..noise.generators import noise_for_dummy_data, noting_noise
from .problem import SearchProblem, SearchRecords
from .progress import Progress
from .set_aside import beside_evaluation, evaluate_candidate, with_evaluation
from .stages import HoldOut, Price, Stage


def price(stages: Sequence[Stage], problem: SearchProblem) -> list[Price]:
    """Return the prices of all stages together, one for each way that a search may go."""
    prices = [Price([], problem)]
    # steps are tried on dummy rows, which are nobody's
    with without_spending(), noise_for_dummy_data():
        held_out = problem.search.evaluation is None
        for stage in stages:
            found = [(before, after) for before in prices for after in stage.price(before.problem)]
            held_out = held_out or isinstance(stage, HoldOut)
            if not held_out and any(after.losses for _, after in found):
                raise CertificateError(
                    f"{type(stage).__name__} releases something before records are held out, so of "
                    "those that evaluate, too, whose loss is not added to it; put it after HoldOut in "
                    "stages."
                )
            prices = [Price([*before.losses, *after.losses], after.problem) for before, after in found]
    return prices


def upper_bound(prices: Sequence[Price], label: str) -> PrivacyLoss:
    """Return the largest loss of a search on any records."""
    return PrivacyLoss.parallel([PrivacyLoss.sequential(price.losses) for price in prices], label=label)


def release(
    stages: Sequence[Stage],
    problem: SearchProblem,
    most: PrivacyLoss,
    *,
    opened: Callable[[SearchProblem], tuple[SearchProblem, SearchRecords]],
    composed: Callable[[list[PrivacyLoss], SearchProblem, Spending], PrivacyLoss],
    evaluation_epsilon: Callable[[PrivacyLoss], float],
) -> tuple[dict[str, Any], list[PrivacyLoss]]:
    """Run the stages inside one reservation; return the fitted attributes, and the losses.

    Parameters
    ----------
    stages : sequence of Stage
    problem : SearchProblem
    most : PrivacyLoss
        The upper bound of all stages: it is reserved, together with that of the evaluation.
    opened : callable
        Reads the records, and returns what is public of them and the records.
    composed : callable
        Returns the loss of all stages, or refuses it.
    evaluation_epsilon : callable
        Returns the epsilon of the evaluation beside such a loss: its records are others.
    """
    search = problem.search
    reserved = with_evaluation(most, search, evaluation_epsilon(most))
    with spending(search, reserved) as charge, Progress(search) as progress:
        problem, records = opened(replace(problem, progress=progress))
        losses: list[PrivacyLoss] = []
        values: dict[str, Any] = {}
        for stage in stages:
            with noting_noise() as drawn:
                released = stage.run(problem, records, charge)
            if drawn[0] and not released.losses:
                charge.begin()
                raise CertificateError(
                    f"{type(stage).__name__} drew noise for a release and states no loss for it, so "
                    "nothing is released and the reservation counts in full; return its losses in "
                    "Released(losses, ...), or draw from problem.stream without for_release()."
                )
            problem, records = released.problem, released.records
            losses += released.losses
            values |= released.values
            if losses:
                charge.begin()
        loss = composed(losses, problem, charge)
        evaluated: dict[str, Any] = {}
        if records.held_out is not None and values["estimator"] is not None:
            progress.step("evaluating the model on what was set aside")
            evaluated = evaluate_candidate(
                problem, values["estimator"], records.held_out, evaluation_epsilon(loss)
            )
        loss = beside_evaluation(loss, evaluated, search)
        charge.commit(loss)
    return values | evaluated | {"privacy_": loss}, losses
