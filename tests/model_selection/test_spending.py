"""What a search reserves is at least what it spends, to the last bit."""

import math
import random
import warnings
from fractions import Fraction

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union

from dpselect import (
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    PrivacyLedger,
    StabilityGridSearchCV,
)
from dpselect.model_selection import Strategy
from dpselect.model_selection import private_steps as steps
from dpselect.model_selection.budget import Budget, steps_at_most
from dpselect.model_selection.strategies.strategy import Problem
from dpselect.noise import as_generator, root_stream
from dpselect.preprocessing import DPBoundsScaler
from dpselect.preprocessing.pipeline_check import private_parts

ALPHAS = [10.0**-j for j in range(5)]


def committed(search, tmp_path, name="records.ledger"):
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(120, 2))
    y = X[:, 0] if "ridge" in str(search.estimator).lower() else (X[:, 0] > 0).astype(int)
    ledger = PrivacyLedger(tmp_path / name, epsilon=1e6, delta=0.5)
    with warnings.catch_warnings(), ledger:
        warnings.simplefilter("ignore")
        search.fit(X, y)
    (entry,) = ledger.history()
    assert entry.committed_at is not None
    assert (entry.epsilon, entry.delta) == (search.privacy_.epsilon, search.privacy_.delta)


@pytest.mark.slow
def test_shares_of_epsilon_add_up_exactly():
    rng = random.Random(0)
    for _ in range(20_000):
        epsilon = rng.choice([round(rng.uniform(0.01, 5), 2), 10 ** rng.uniform(-9, 6)])
        share = rng.choice([0.1, 0.25, 0.5, rng.random(), 10 ** rng.uniform(-9, 0)])
        problem = Problem([1, 2], None, [], 10, 2, epsilon, selection_fraction=share)
        choice = problem.selection_epsilon(None)
        assert Fraction(choice) + Fraction(epsilon - choice) == Fraction(epsilon)
        assert choice == pytest.approx(share * epsilon, rel=1e-6)


def test_the_steps_and_the_rest_add_up_to_epsilon():
    rng = random.Random(2)
    for _ in range(2_000):
        epsilon = rng.choice([round(rng.uniform(0.1, 5), 2), 10 ** rng.uniform(-6, 6)])
        steps = [epsilon * rng.choice([0.25, 0.1, rng.random() / 4, 1e-3]) for _ in range(3)]
        estimator = make_pipeline(*map(DPBoundsScaler, steps), DPRidge(target_range=(-1, 1)))
        budget = Budget(epsilon).spend(steps_at_most(estimator))
        assert [loss.epsilon for loss in budget.spent] == steps and budget.total == epsilon
        total = math.fsum([*steps, budget.remaining])
        assert math.nextafter(epsilon, 0.0) <= total <= epsilon
    assert Budget(0.5).spend(steps_at_most(DPRidge(target_range=(-1, 1)))).remaining == 0.5


STEPS = {
    "columns": ColumnTransformer([("a", DPBoundsScaler(0.2), [0]), ("b", DPBoundsScaler(0.3), [1])]),
    "union": FeatureUnion([("a", DPBoundsScaler(0.2)), ("b", DPBoundsScaler(0.3))]),
    "three": make_union(DPBoundsScaler(0.1), DPBoundsScaler(0.1), DPBoundsScaler(0.3)),
}


def stated_for_steps(step, private_parts):
    """Return what a search reserves and states for its steps, with another way to find their parts."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(120, 2))
    search = StabilityGridSearchCV(make_pipeline(step, DPLogisticRegression(classes=[0, 1])), {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "private_parts", private_parts)
        losses = search.fit(X, (X[:, 0] > 0).astype(int)).privacy_.releases
    planned = [loss.epsilon for loss in steps_at_most(search.estimator)]
    return planned, [loss.epsilon for loss in losses if "bounds" in loss.label]


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_each_private_part_of_a_step_is_stated(step):
    planned, stated = stated_for_steps(step, private_parts)
    assert stated == planned and math.fsum(stated) == 0.5
    planned, stated = stated_for_steps(step, lambda step: private_parts(step)[-1:])
    assert stated != planned


@pytest.mark.parametrize("bad", [-5.0, 0.0, float("nan")])
def test_a_step_cannot_give_to_the_model(bad):
    with pytest.raises(ValueError, match="epsilon of DPBoundsScaler"):
        steps_at_most(make_pipeline(DPBoundsScaler(bad), DPRidge(target_range=(-1, 1))))


def test_epsilons_that_add_up_above_by_rounding(tmp_path):
    # 2.48 is the sum of a tenth and of the rest, rounded, but for the last bit
    rng = random.Random(1)
    for i in range(12):
        epsilon = 2.48 if i == 0 else round(rng.uniform(0.01, 3), 2)
        search = StabilityGridSearchCV(
            DPLinearSVC(classes=[0, 1]),
            {"alpha": ALPHAS[:2]},
            epsilon=epsilon,
            strategy="stability",
            cv=2,
        )
        committed(search, tmp_path, str(i))
        assert search.privacy_.epsilon == epsilon


@pytest.mark.parametrize("epsilon, steps", [(1.8, [0.5]), (1.7, [0.2]), (2.48, [0.17, 0.65])])
def test_steps_and_model_are_one_sum(epsilon, steps, tmp_path):
    # the parts add up to more than epsilon and the steps, by the last bit, if a tenth is for the choice
    steps = [DPBoundsScaler(epsilon=step) for step in steps]
    search = StabilityGridSearchCV(
        make_pipeline(*steps, DPLinearSVC(classes=[0, 1])),
        {"dplinearsvc__alpha": ALPHAS[:2]},
        epsilon=epsilon,
        strategy="stability",
        selection_fraction=0.1,
    )
    committed(search, tmp_path)


@pytest.mark.parametrize("delta, k", [(1e-6, 6), (1e-7, 14)])
def test_many_deltas_are_one_sum(delta, k, tmp_path):
    assert sum([delta] * k) < k * delta  # in floating point, one by one
    search = StabilityGridSearchCV(
        DPRidge(delta=delta, norm="l2", target_range=(-1, 1)),
        {"alpha": np.geomspace(0.1, 1, k)},
        strategy="budget_split",
    )
    committed(search, tmp_path)


@pytest.mark.parametrize("epsilon, delta, k", [(2e-9, 2e-7, 5), (1e-5, 1e-10, 3), (1.0, 1e-6, 4)])
def test_concentrated_shares_are_rounded_down(epsilon, delta, k, tmp_path):
    search = StabilityGridSearchCV(
        DPLogisticRegression(classes=[0, 1]),
        {"alpha": np.geomspace(0.1, 1, k)},
        epsilon=epsilon,
        delta=delta,
        strategy="budget_split",
    )
    committed(search, tmp_path)


class FailsAfterNoise(Strategy):
    """Draws noise for a release, or for models that are only compared, and then fails."""

    released = True

    def choose(self, X, y, stream):
        noise = stream.child("noise")
        as_generator(noise.for_release() if self.released else noise).normal()
        raise ArithmeticError


class FailsAfterTrials(FailsAfterNoise):
    released = False


def spent_by(strategy, tmp_path, **params):
    ledger = PrivacyLedger(tmp_path / "records.ledger", epsilon=2.0)
    search = StabilityGridSearchCV(
        DPLogisticRegression(classes=[0, 1]), {"alpha": [0.1, 1.0]}, strategy=strategy, **params
    )
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(120, 2))
    with ledger, pytest.raises(ArithmeticError):
        search.fit(X, (X[:, 0] > 0).astype(int))
    return ledger.spent()[0]


@pytest.mark.parametrize("random_state", [None, root_stream(0)], ids=["fresh", "seeded"])
def test_a_search_that_fails_after_noise_for_a_release_has_spent_it(tmp_path, random_state):
    assert spent_by(FailsAfterNoise, tmp_path, random_state=random_state) == 1.0


def test_noise_of_models_that_are_only_compared_is_no_release(tmp_path):
    assert spent_by(FailsAfterTrials, tmp_path) == 0.0
