import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from dpselect import DPLogisticRegression
from dpselect.model_selection.candidates import make_candidates
from dpselect.model_selection.exact_scores import records_for_steps
from dpselect.model_selection.final_fit import fit_for_release, release_state
from dpselect.noise import root_stream
from dpselect.preprocessing import BoundedScaler
from tests.trials import watch_noise

MODEL = DPLogisticRegression(classes=[0, 1])


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).uniform(-0.7, 0.7, size=(200, 2))  # no row is clipped
    return X, (X[:, 0] > 0).astype(int)


@pytest.fixture
def states(monkeypatch):
    """Random states with which noise was drawn, and the noise."""
    return watch_noise(monkeypatch, DPLogisticRegression)


def test_only_a_seeded_search_has_noise_that_can_be_drawn_again():
    stream = root_stream(0)
    assert release_state(stream, False) is None is release_state(stream, False, 3)
    keys = {release_state(stream, True, *path).key for path in ((), (0,), (1,), ("a", 1))}
    assert len(keys) == 4 and stream.key not in keys
    assert release_state(stream, True, 1).key == release_state(root_stream(0), True, 1).key


def test_a_model_has_its_own_loss_and_noise_and_keeps_no_key(data, states):
    seeded = [release_state(root_stream(seed), True) for seed in (0, 0, 1)]
    one, two, three, *fresh = [
        fit_for_release(clone(MODEL), 2, state, *data) for state in (*seeded, None, None)
    ]
    assert [state for state, _ in states] == [*seeded, None, None]
    for model in (one, two, three, *fresh):
        assert model.random_state is None and model.epsilon == model.privacy_.epsilon == 2.0
    assert (one.coef_ == two.coef_).all()
    found = np.array([model.coef_[0] for model in (one, three, *fresh)])
    assert len(np.unique(found, axis=0)) == 4


@pytest.mark.parametrize(
    "steps",
    [
        None,
        [("model", clone(MODEL))],
        [("s", BoundedScaler((-2, 2))), ("model", clone(MODEL))],
    ],
)
def test_a_candidate_stays_in_its_pipeline(steps, data, states):
    estimator = clone(MODEL) if steps is None else Pipeline(steps)
    (candidate,) = make_candidates(estimator, {}, trusted_steps=())
    X, y = data
    if candidate.steps is not None:
        candidate = candidate.fitted_on(records_for_steps([candidate], X)[1])
    trained = fit_for_release(candidate.model, 0.5, None, candidate.transform(X), y)
    fitted = candidate.with_steps(trained)
    model = fitted if steps is None else fitted[-1]
    assert isinstance(fitted, Pipeline) == (steps is not None)
    ((state, _),) = states
    assert state is None and model.privacy_.epsilon == 0.5 and model.random_state is None
    assert model is candidate.model and fitted.predict(data[0]).shape == (200,)
    # what was rescaled in training is rescaled in prediction
    rows = data[0] / 2 if steps and len(steps) == 2 else data[0]
    expected = model.problem().loss.decision(rows @ model.coef_[0] + model.intercept_)
    np.testing.assert_allclose(fitted.decision_function(data[0]), expected)
