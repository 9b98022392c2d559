"""A stage that is added to a search: what it releases is stated, planned and paid, or refused."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.base import clone

from dpselect import (
    AccuracyFirstSearchCV,
    CertificateError,
    DPLogisticRegression,
    PrivacyLedger,
    PrivacyLoss,
    StabilityGridSearchCV,
)
from dpselect.ledger.spending import Spending
from dpselect.model_selection.stages import Price, Released, Stage
from dpselect.model_selection.strategies.data_free import FirstCandidate
from dpselect.noise import as_generator, grid_noise, release

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, size=(2000, 2))
Y = (X[:, 0] > 0).astype(int)
MODEL = DPLogisticRegression(classes=[0, 1], alpha=0.1)
SEARCHES = {
    "grid": StabilityGridSearchCV(MODEL, {"data_norm": [0.5, 1.0]}, epsilon=2.0),
    "accuracy": AccuracyFirstSearchCV(
        MODEL, {"epsilon": [1.0, 4.0]}, target=0.5, criterion="brier", on_failure="last"
    ),
}


@dataclass(frozen=True)
class CountLabels(Stage):
    """Release how many records have the label 1."""

    epsilon: float = 0.25

    def losses(self, problem):
        return [PrivacyLoss(self.epsilon, label="count", adjacency=problem.adjacency)]

    def price(self, problem):
        losses = self.losses(problem)
        return [Price(losses, replace(problem, budget=problem.budget.spend(losses)))]

    def run(self, problem, records, charge):
        (price,) = self.price(problem)
        generator = as_generator(problem.stream.child("count").for_release())
        (count,) = release([records.y.sum()], grid_noise(generator, 1, 1 / self.epsilon, 1.0), 1.0)
        return Released(price.losses, price.problem, records, {"count_": float(count)})


class CountsByItself(CountLabels):
    """Draw noise that no generator of dpselect makes, as a stage in another process does."""

    def run(self, problem, records, charge):
        (price,) = self.price(problem)
        count = records.y.sum() + np.random.default_rng().laplace(scale=1 / self.epsilon)
        return Released(price.losses, price.problem, records, {"count_": float(count)})


class Fails(Stage):
    """Release nothing, and fail."""

    def price(self, problem):
        return [Price([], problem)]

    def run(self, problem, records, charge):
        raise ArithmeticError


class ForgetsItsLoss(CountLabels):
    """A broken variant, whose statement is empty."""

    def run(self, problem, records, charge):
        return replace(super().run(problem, records, charge), losses=[])


class ForgetsTheBudget(CountLabels):
    """A broken variant, which leaves all of the budget to the next stage."""

    def price(self, problem):
        return [Price(self.losses(problem), problem)]


def with_stage(name, stage, place, **params):
    """Return a search that has a stage at a place among its own."""
    search = SEARCHES[name]
    stages = (*search.stages[:place], stage, *search.stages[place:])
    return type(type(search).__name__, (type(search),), {"stages": stages})(
        **search.get_params(deep=False) | params
    )


def check_what_failed_later(name, tmp_path, file):
    """Check that a search which fails after a stage has stated a loss counts in full."""
    ledger = PrivacyLedger(tmp_path / file, epsilon=100.0)
    search = with_stage(name, CountsByItself(), 1)
    stages = (*search.stages[:2], Fails(), *search.stages[2:])
    search = type("Search", (type(search),), {"stages": stages})(**search.get_params(deep=False))
    with ledger, pytest.raises(ArithmeticError):
        search.fit(X, Y)
    (entry,) = ledger.history()
    assert entry.reserved_epsilon > 0.25
    assert ledger.spent()[0] == entry.reserved_epsilon


def refused_and_spent(search, tmp_path, match):
    ledger = PrivacyLedger(tmp_path / "records.ledger", epsilon=100.0)
    with ledger, pytest.raises(CertificateError, match=match):
        search.fit(X, Y)
    return ledger.spent()[0]


@pytest.mark.parametrize("evaluation", [None, 0.2])
@pytest.mark.parametrize("name", SEARCHES)
def test_a_stage_is_stated_planned_and_paid(name, evaluation, tmp_path):
    search = with_stage(name, CountLabels(), 1, evaluation=evaluation)
    ledger = PrivacyLedger(tmp_path / "records.ledger", epsilon=100.0)
    with ledger:
        search.fit(X, Y)
    assert 0.25 in [loss.epsilon for loss in search.privacy_.releases if loss.label == "count"]
    assert ledger.spent()[0] == search.privacy_.epsilon
    n = len(Y) if evaluation is None else 0.8 * len(Y)
    assert abs(search.count_ - n * Y.mean()) < 200
    if name == "grid":
        assert search.privacy_.epsilon == 2.0
        assert "count 0.25" in search.plan(len(X), 2).messages[0]


@pytest.mark.parametrize("name", SEARCHES)
def test_noise_without_a_loss_is_refused(name, tmp_path):
    search = with_stage(name, ForgetsItsLoss(), 1)
    assert refused_and_spent(search, tmp_path, "ForgetsItsLoss drew noise") > 0.25


@pytest.mark.parametrize("name", SEARCHES)
def test_nothing_is_released_of_records_that_evaluate(name, tmp_path):
    search = with_stage(name, CountLabels(), 0, evaluation=0.2)
    assert refused_and_spent(search, tmp_path, "put it after HoldOut") == 0.0
    with_stage(name, CountLabels(), 0).fit(X, Y)  # there are none


@pytest.mark.parametrize("name, stage, place", [
    ("grid", ForgetsTheBudget(), 1),
    ("grid", CountLabels(), 4),
    ("grid", CountLabels(), 5),
    ("accuracy", ForgetsTheBudget(), 1),
    ("accuracy", CountLabels(), 3),
])  # fmt: skip
def test_stages_keep_to_the_epsilon_of_the_search(name, stage, place, tmp_path):
    search = with_stage(name, stage, place)
    assert refused_and_spent(search, tmp_path, "its stages may spend") == 0.0


@pytest.mark.parametrize("name", SEARCHES)
def test_what_fails_after_a_stage_has_released_counts_in_full(name, tmp_path, monkeypatch):
    check_what_failed_later(name, tmp_path, "records.ledger")
    # the twin that begins to charge when it sees noise only
    monkeypatch.setattr(Spending, "begin", lambda self: None)
    with pytest.raises(AssertionError):
        check_what_failed_later(name, tmp_path, "twin.ledger")


@pytest.mark.parametrize("n_samples, made", [(20_000, 1), (200, 2)])
def test_a_plan_makes_a_strategy_once_for_each_budget(n_samples, made, monkeypatch):
    """What is learned first and not worth its cost leaves the budget as it was."""
    strategies = []
    original = FirstCandidate.prepare
    monkeypatch.setattr(
        FirstCandidate, "prepare", lambda self: strategies.append(self) or original(self)
    )
    search = StabilityGridSearchCV(clone(MODEL).set_params(base_rate="auto"), {}, epsilon=1.0)
    search.plan(n_samples, 2)
    assert len(strategies) == made
