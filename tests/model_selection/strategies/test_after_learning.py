"""A search that learns a number first does what a search does that is given this number.

It has what remains of epsilon and the same noise, so both train the same candidate, which the same
candidates were compared with, to the last digit.
"""

import warnings
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from dpselect import DPHuberRegressor, DPLogisticRegression, DPPoissonRegressor
from dpselect.exceptions import SeededNoiseWarning
from dpselect.model_selection.strategies import STRATEGIES, Strategy
from dpselect.model_selection.strategies.auto import Auto

from .common import search

EPSILON = 2.0
# for the alphas, it matters which norm was learned: the placeholder is 1
GRID = {"alpha": [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1], "intercept_scaling": [0.3, 1.0, 3.0]}
SCALES = [0.02, 30.0]
MODELS = {
    "logistic": DPLogisticRegression(classes=[0, 1], data_norm="auto"),
    "huber": DPHuberRegressor(target_range=(0, 1), data_norm="auto"),
    "poisson": DPPoissonRegressor(target_bound=2.0, data_norm="auto", base_rate="auto"),
}
PRIVATE = [name for name in STRATEGIES if name not in ("control", "one_release", "data_independent")]


def fitted(strategy, model, grid, epsilon, scale):
    rng = np.random.default_rng(0)
    X = rng.uniform(-scale, scale, (2000, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return search(strategy, model, grid, epsilon=epsilon, random_state=3).fit(X, X[:, 0] > 0)


def check_the_learned_number(strategy, scale, model=MODELS["logistic"], grid=GRID):
    """Check that the search with a learned number is the one with this number written out."""
    learns = fitted(strategy, model, grid, EPSILON, scale)
    best = learns.best_estimator_
    numbers = {name: getattr(best, name) for name in model.first_releases()}
    remaining = EPSILON
    for loss in learns.privacy_.releases[: len(numbers)]:
        assert "median" in loss.label or "mean of" in loss.label
        remaining -= loss.epsilon
    given = fitted(strategy, clone(model).set_params(**numbers), grid, remaining, scale)
    assert all(isinstance(number, float) for number in numbers.values())
    assert learns.plan_.strategy == given.plan_.strategy  # else the law would not apply
    assert learns.best_params_ == given.best_params_
    assert learns.best_index_ == given.best_index_
    for column in ("considered", "training", "span", "sensitivity", "noise_scale"):
        np.testing.assert_array_equal(*(getattr(s.plan_, column) for s in (learns, given)))
    np.testing.assert_array_equal(best.coef_, given.best_estimator_.coef_)
    np.testing.assert_array_equal(best.intercept_, given.best_estimator_.intercept_)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("strategy", PRIVATE)
def test_strategies_do_what_they_do_with_the_number_given(strategy, scale):
    check_the_learned_number(strategy, scale)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("strategy", ["auto", "data_independent"])
def test_where_only_alpha_varies(strategy, scale):
    check_the_learned_number(strategy, scale, grid={"alpha": GRID["alpha"]})


@pytest.mark.parametrize("strategy", ["auto", "random_stopping"])
@pytest.mark.parametrize("name", ["huber", "poisson"])
def test_other_models_too(name, strategy):
    check_the_learned_number(strategy, 30.0, MODELS[name])


def members_of_the_placeholder(patch):
    """Let the index of the choice be one among the candidates that suited the placeholder."""

    def after_learning(self, candidates):
        again = copy(self)
        again.problem = replace(self.problem, candidates=candidates, learned=True)
        members = self._members(again.problem)
        again.strategy = type(self.strategy)(again.problem.restricted(members))
        return again

    patch.setattr(Auto, "after_learning", after_learning)


def strategy_of_the_placeholder(patch):
    """Let the choice be made for the placeholder."""

    def after_learning(self, candidates):
        again = copy(self)
        again.problem = replace(self.problem, candidates=candidates, learned=True)
        return again

    for kind in (Strategy, Auto):
        patch.setattr(kind, "after_learning", after_learning)


def alphas_of_the_placeholder(patch):
    """Let alpha be decided for the placeholder, and no longer after the number is known."""
    choose = Auto._members
    patch.setattr(
        Auto,
        "_members",
        lambda self, problem: self.members if problem.learned else choose(self, problem),
    )


@pytest.mark.parametrize("strategy, broken", [
    ("auto", members_of_the_placeholder),
    ("auto", strategy_of_the_placeholder),
    ("auto", alphas_of_the_placeholder),
    ("optimal_risk", strategy_of_the_placeholder),
])  # fmt: skip
def test_another_candidate_than_the_chosen_one_is_found(strategy, broken, monkeypatch):
    broken(monkeypatch)
    with pytest.raises(AssertionError):
        check_the_learned_number(strategy, 30.0)
