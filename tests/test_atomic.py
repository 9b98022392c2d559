import inspect

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dpselect import (
    DPHistogramDensity,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    Ladder,
    StabilityGridSearchCV,
)

ROWS = np.random.default_rng(0).random((30, 2))
LABELS = np.arange(30) % 2
MODELS = [
    DPLogisticRegression(classes=[0, 1]),
    DPLinearSVC(classes=[0, 1]),
    DPRidge(target_range=(-1, 1)),
    StabilityGridSearchCV(DPLogisticRegression(classes=[0, 1]), {"alpha": [0.1, 1.0]}),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_first_fit_that_fails_leaves_nothing(model):
    model = clone(model)
    before = dict(vars(model))
    with pytest.raises(ValueError):
        model.fit(ROWS, np.full(30, np.nan))
    assert vars(model) == before
    with pytest.raises(NotFittedError):
        model.predict(ROWS)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_second_fit_that_fails_leaves_the_first(model):
    model = clone(model).fit(ROWS, LABELS)
    before = dict(vars(model))
    with pytest.raises(ValueError):
        model.fit(ROWS[:, :1], np.full(30, np.nan))
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


def test_an_interrupted_fit_leaves_nothing(monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    density = DPHistogramDensity(bin_width=0.5, bounds=(0, 1))
    monkeypatch.setattr(DPHistogramDensity, "_release", interrupted)
    with pytest.raises(KeyboardInterrupt):
        density.fit(ROWS)
    assert not hasattr(density, "n_features_in_")


def test_signature_and_documentation_stay():
    assert list(inspect.signature(Ladder.fit).parameters) == ["self", "X", "y", "groups"]
    assert "Keep the holdout records" in Ladder.fit.__doc__
