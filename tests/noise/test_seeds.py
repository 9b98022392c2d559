"""A seed is a seed in whatever form it is given, at every function and class that draws noise."""

import copy
import inspect
import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import dpselect
from dpselect import (
    AccuracyFirstSearchCV,
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    PrivacyLeakError,
    PrivacyLedger,
    PrivateModel,
    SeededNoiseWarning,
    StabilityGridSearchCV,
    Thresholdout,
    ThresholdoutFeatureSelector,
    coef_interval,
    config_context,
    evaluate,
)
from dpselect.base import fit_warnings
from dpselect.noise import InnerStream, generators, root_stream
from dpselect.preprocessing import DPBoundsScaler

from ..private_model.other_library import SignedSum

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, size=(200, 2))
Y = (X[:, 0] > 0).astype(int)
MODEL = DPLogisticRegression(classes=[0, 1])
FITTED = clone(MODEL).fit(X, Y)
HELD = X.copy()


def fits(estimator, random_state, y=Y):
    return clone(estimator).set_params(random_state=random_state).fit(X, y)


def private_model(random_state):
    declared = dict(adjacency="replace one record", classes=[0, 1], classes_parameter="labels")
    return PrivateModel(SignedSum(bound=1.0), random_state=random_state, **declared).fit(X, Y)


def step_of_a_search(random_state):
    steps = make_pipeline(DPBoundsScaler(0.5, random_state=random_state), clone(MODEL))
    return StabilityGridSearchCV(steps, {}, epsilon=2.0).fit(X, Y)


# each is called with a random state, and returns something with `privacy_`
DRAW = {
    "DPLogisticRegression": partial(fits, MODEL),
    "DPLinearSVC": partial(fits, DPLinearSVC(classes=[0, 1])),
    "DPRidge": partial(fits, DPRidge(target_range=(0, 1))),
    "DPHuberRegressor": partial(fits, DPHuberRegressor(target_range=(0, 1))),
    "DPPoissonRegressor": partial(fits, DPPoissonRegressor(target_bound=2.0)),
    "DPHistogramDensity": partial(fits, DPHistogramDensity(bounds=(-1, 1)), y=None),
    "PrivateModel": private_model,
    "DPBoundsScaler": partial(fits, DPBoundsScaler()),
    "DPBoundsScaler in a search": step_of_a_search,
    "StabilityGridSearchCV": partial(fits, StabilityGridSearchCV(MODEL, {"alpha": [0.1, 1.0]})),
    "AccuracyFirstSearchCV": partial(
        fits,
        AccuracyFirstSearchCV(
            clone(MODEL).set_params(alpha=0.1),
            {"epsilon": [1.0, 2.0]},
            target=0.9,
            on_failure="last",
        ),
    ),
    "Thresholdout": lambda seed: Thresholdout(random_state=seed).fit(X, X_holdout=HELD),
    "ThresholdoutFeatureSelector": partial(
        fits,
        ThresholdoutFeatureSelector(
            DPLogisticRegression(np.inf, classes=[0, 1]), n_features_to_select=1, noise_rate=0.05
        ),
    ),
    "evaluate": lambda seed: evaluate(FITTED, HELD, Y, epsilon=1.0, random_state=seed),
    "coef_interval": lambda seed: coef_interval(
        FITTED, HELD, Y, epsilon=1.0, n_samples=200, random_state=seed
    ),
}
SEEDS = {
    "int": lambda: 0,
    "RandomState": lambda: np.random.RandomState(0),
    "root_stream(0)": lambda: root_stream(0),
    "root_stream()": root_stream,
    "child": lambda: root_stream(0).child("a"),
    "for_release": lambda: root_stream(0).for_release(),
    "key": lambda: InnerStream(bytes(32)),
    "released key": lambda: InnerStream(bytes(32), True),
    "grandchild": lambda: root_stream(root_stream(0)).for_release().child("a", 1),
}
# they draw no noise of their own for a release
OTHERS = {"TableEncoder"}


def takes_random_state(found):
    try:
        return "random_state" in inspect.signature(found).parameters
    except (TypeError, ValueError):  # no callable, or none of Python
        return False


def test_no_class_or_function_is_forgotten():
    found = {
        name
        for module in (dpselect, dpselect.preprocessing)
        for name in module.__all__
        if takes_random_state(getattr(module, name))
    }
    assert found - OTHERS == {name for name in DRAW if " " not in name}


def check_is_told(draw, seed):
    """A seed warns, once, is stated, and is an error in strict mode."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        drawn = draw(seed())
    told = [warning for warning in caught if issubclass(warning.category, SeededNoiseWarning)]
    assert len(told) == 1 and drawn.privacy_.seeded
    with config_context(strict=True), pytest.raises(PrivacyLeakError, match="random_state"):
        draw(seed())


def silent_streams(patch):
    """The twin that takes each stream for one that a search has handed over."""
    for module in (fit_warnings, generators):
        patch.setattr(module, "is_from_search", lambda state: isinstance(state, InnerStream))


@pytest.mark.parametrize("name", DRAW)
def test_every_kind_of_seed_is_told_everywhere(name):
    for seed in SEEDS.values():
        check_is_told(DRAW[name], seed)


@pytest.mark.parametrize("name", DRAW)
def test_a_stream_that_is_silent_is_caught(name, monkeypatch):
    silent_streams(monkeypatch)
    check_is_told(DRAW[name], SEEDS["int"])
    with pytest.raises(AssertionError):
        check_is_told(DRAW[name], SEEDS["root_stream(0)"])


@pytest.mark.parametrize("name", DRAW)
def test_noise_of_the_operating_system_is_no_seed(name):
    with warnings.catch_warnings(), config_context(strict=True):
        warnings.simplefilter("error")
        assert not DRAW[name](None).privacy_.seeded


class FailsLate(DPLogisticRegression):
    """It fails once its noise is drawn."""

    def _release(self, records, calibration, noise):
        raise ZeroDivisionError


def check_failure_counts(seed, path):
    ledger = PrivacyLedger(path, epsilon=1.0)
    with pytest.raises(ZeroDivisionError), warnings.catch_warnings(), ledger:
        warnings.simplefilter("ignore", SeededNoiseWarning)
        FailsLate(0.5, classes=[0, 1], random_state=seed()).fit(X, Y)
    assert ledger.spent() == (0.5, 0.0)


@pytest.mark.parametrize("kind", SEEDS)
def test_a_fit_that_fails_after_its_noise_counts(kind, tmp_path):
    check_failure_counts(SEEDS[kind], tmp_path / "a.ledger")


def test_noise_that_is_not_counted_is_caught(tmp_path, monkeypatch):
    silent_streams(monkeypatch)
    with pytest.raises(AssertionError):
        check_failure_counts(SEEDS["root_stream(0)"], tmp_path / "a.ledger")


def test_streams_of_a_search_stay_silent_wherever_they_go():
    stream = generators.search_stream(None)
    for each in (stream, stream.child("a"), stream.for_release(), stream.for_release().child(1)):
        copies = pickle.loads(pickle.dumps(each)), copy.deepcopy(each)
        assert all(generators.is_from_search(of) and of.key == each.key for of in (each, *copies))
    # not what a caller makes of its key
    assert not generators.is_from_search(InnerStream(stream.key))
    assert generators.search_stream(root_stream(0)).child("a").key == root_stream(0).child("a").key
