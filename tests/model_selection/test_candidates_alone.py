"""A candidate of a grid is trained as in a grid of its own, whatever the others are.

A TabularPipeline writes public numbers of its model into its encoder, so candidates may read other
columns although their grid names the model alone.
"""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from dpselect import DPLogisticRegression, StabilityGridSearchCV
from dpselect.model_selection import Choice, Strategy
from dpselect.model_selection.candidates import Candidate
from dpselect.preprocessing import tabular_pipeline

MANY = {f"n{j}": (0, 1) for j in range(9)}


class Takes(Strategy):
    """Takes a candidate by its number in the grid."""

    place = 0
    compares_scores = False

    def choose(self, X, y, stream):
        return Choice(self.place)


def given_grid(name):
    """Return a grid whose candidates have other encoders, though it may name the model alone."""
    logistic = DPLogisticRegression(classes=[0, 1])
    return {
        "shares": {"model__base_rate": [0.5, 0.02, 0.98]},
        "classes": {"model": [logistic, clone(logistic).set_params(classes=[0, 1, 2])]},
        "deltas": {"model__delta": [0.0, 1e-3]},
        "encoder": {"encoder__columns": ["first", ["n3", "n4"]], "model__base_rate": [0.02, 0.5]},
        "model": {"model__alpha": [0.1, 1.0], "model__intercept_scaling": [0.5]},
    }[name]


def check_candidates_alone(name):
    """Check that each candidate of a grid is trained as in a grid of its own, to the last digit."""
    rng = np.random.default_rng(0)
    X, y = rng.random((600, 9)), np.arange(600) % 2
    pipeline = tabular_pipeline(
        MANY, DPLogisticRegression(classes=[0, 1], base_rate=0.5), columns="first"
    )
    points = list(ParameterGrid(given_grid(name)))
    found = []
    for place, point in enumerate(points):
        kind = type("Takes", (Takes,), {"place": place})
        of_all = StabilityGridSearchCV(
            pipeline, given_grid(name), epsilon=2.0, strategy=kind, random_state=0
        ).fit(X, y)
        one = {key: [value] for key, value in point.items()}
        alone = StabilityGridSearchCV(pipeline, one, epsilon=2.0, strategy=Takes, random_state=0)
        alone.fit(X, y)
        (encoder, model), (own, expected) = (
            [step for _, step in search.best_estimator_.steps] for search in (of_all, alone)
        )
        assert encoder.columns_ == own.columns_ and encoder.get_params() == own.get_params()
        assert model.data_norm == expected.data_norm
        np.testing.assert_array_equal(model.coef_, expected.coef_)
        found.append(encoder.columns_)
    return len(set(found))


@pytest.mark.filterwarnings("ignore::dpselect.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize(
    "name, n", [("shares", 2), ("classes", 2), ("deltas", 1), ("encoder", 3), ("model", 1)]
)
def test_a_candidate_is_trained_as_if_it_were_alone(name, n):
    assert check_candidates_alone(name) == n


@pytest.mark.filterwarnings("ignore::dpselect.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("name", ["shares", "classes", "deltas", "encoder"])
def test_a_candidate_with_the_encoder_of_another_one_is_found(name, monkeypatch):
    """Of the first one with equal parameters of the encoder, whatever its model is told."""
    monkeypatch.setattr(Candidate, "steps_key", property(lambda self: self.params_key))
    with pytest.raises(AssertionError):
        check_candidates_alone(name)
