import pickle
import threading

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from sklearn.linear_model import LogisticRegression

import dpselect
from dpselect import (
    DPLogisticRegression,
    PrivacyLeakError,
    StabilityGridSearchCV,
    ThresholdoutFeatureSelector,
)
from dpselect.config import warn_caller, with_config
from dpselect.holdout import feature_selector
from dpselect.metrics import BrierScore
from dpselect.utils.processes import Process


def strict():
    return dpselect.get_config()["strict"]


@pytest.fixture(autouse=True)
def default_again():
    yield
    dpselect.set_config(strict=False)


def test_set_and_get():
    assert dpselect.get_config() == {"strict": False}
    dpselect.set_config(strict=True)
    dpselect.set_config()
    assert strict()
    dpselect.get_config()["strict"] = False  # a copy
    assert strict()


def test_a_context_ends_with_its_block():
    with dpselect.config_context(strict=True):
        with dpselect.config_context(strict=False):
            assert not strict()
        with dpselect.config_context():
            assert strict()
        assert strict()
    assert not strict()


def test_a_context_ends_with_an_error_too():
    with pytest.raises(KeyError), dpselect.config_context(strict=True):
        raise KeyError
    assert not strict()


@pytest.mark.parametrize("value", ["yes", 1, 0.0])
def test_other_values_are_refused(value):
    with pytest.raises(TypeError, match="strict must be a bool.*True or False"):
        dpselect.set_config(strict=value)
    with pytest.raises(TypeError, match="strict must be a bool"), dpselect.config_context(strict=value):
        pass
    assert not strict()


def in_a_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_a_thread_is_as_strict_as_others_unless_it_has_set_something():
    lenient = with_config(strict)
    dpselect.set_config(strict=True)
    assert in_a_thread(strict) and in_a_thread(with_config(strict)) and not in_a_thread(lenient)
    in_a_thread(lambda: dpselect.set_config(strict=False))
    assert strict()
    with dpselect.config_context(strict=False):
        assert not in_a_thread(strict)


def test_a_thread_that_has_ended_makes_no_other_strict():
    in_a_thread(lambda: dpselect.set_config(strict=True))
    assert not strict() and not in_a_thread(strict)


def test_a_context_leaves_a_thread_open_to_what_others_set():
    def after_a_context():
        with dpselect.config_context(strict=False):
            inside = strict()
        return inside, strict()

    dpselect.set_config(strict=True)
    assert in_a_thread(after_a_context) == (False, True)


def test_a_worker_is_left_as_it_was():
    dpselect.set_config(strict=True)
    carried = pickle.loads(pickle.dumps(with_config(strict)))
    dpselect.set_config(strict=False)
    assert carried() and not strict()


@pytest.mark.slow
def test_other_processes():
    # whatever they knew when they were started
    for setting in (True, False):
        dpselect.set_config(strict=setting)
        found = Parallel(n_jobs=2)(delayed(f)() for f in (strict, with_config(strict)))
        assert found == [setting, setting]


class Tells(BrierScore):
    """A score that notes the setting it is called under."""

    def __call__(self, estimator, X, y):
        said.add((strict(), threading.current_thread() is threading.main_thread()))
        return super().__call__(estimator, X, y)


said = set()


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).uniform(-1, 1, size=(400, 2))
    return X, (X[:, 0] > 0).astype(int)


def test_a_search_hands_it_to_its_workers(data):
    said.clear()
    search = StabilityGridSearchCV(
        DPLogisticRegression(classes=[0, 1]),
        {"alpha": [0.1, 1.0]},
        strategy="stability",
        scoring=Tells(),
        n_jobs=2,
    )
    with dpselect.config_context(strict=True), parallel_config("threading"):
        search.fit(*data)
    assert said == {(True, False)}


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_leak_in_a_worker_is_an_error(data, n_jobs):
    selector = ThresholdoutFeatureSelector(
        DPLogisticRegression(), n_features_to_select=1, budget=100, n_jobs=n_jobs
    )
    with pytest.raises(PrivacyLeakError, match="classes"), dpselect.config_context(strict=True):
        selector.fit(*data)


def stops_early(data, monkeypatch):
    """Fit a selector whose budget ends after the first of two columns, in strict mode."""
    monkeypatch.setattr(feature_selector, "forward_selection", lambda *_: ([1], [0.5]))
    selector = ThresholdoutFeatureSelector(LogisticRegression(), n_features_to_select=2, budget=100)
    with pytest.warns(UserWarning, match="1 of 2 columns") as caught:
        with dpselect.config_context(strict=True):
            selector.fit(*data)
    assert [w.category for w in caught] == [UserWarning]
    assert list(selector.support_) == [False, True] and selector.privacy_.epsilon > 0


def test_a_warning_that_says_nothing_of_privacy_stays_one(data, monkeypatch):
    stops_early(data, monkeypatch)

    # the check sees a strict mode that takes every warning for a leak, once the budget is spent
    def raises(message, category):
        raise PrivacyLeakError(message)

    monkeypatch.setattr(feature_selector, "warn_caller", raises)
    with pytest.raises((PrivacyLeakError, pytest.fail.Exception)):
        stops_early(data, monkeypatch)


@pytest.mark.parametrize(
    "category, error",
    [
        (dpselect.PrivacyLeakWarning, True),
        (dpselect.SeededNoiseWarning, True),
        (UserWarning, False),
        (RuntimeWarning, False),
    ],
)
def test_what_strict_mode_raises(category, error):
    expected = pytest.raises(PrivacyLeakError) if error else pytest.warns(category)
    with expected, dpselect.config_context(strict=True):
        warn_caller("said", category)
    with pytest.warns(category):
        warn_caller("said", category)


def test_what_cannot_be_told_is_not_set(monkeypatch):
    def full(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(Process, "_write", full)
    with pytest.raises(OSError, match="cannot be told"):
        dpselect.set_config(strict=True)
    assert dpselect.get_config() == {"strict": False}


def test_threads_that_enter_and_leave_tell_the_truth(monkeypatch):
    told, entered, done = [], threading.Event(), threading.Event()
    tell = Process.publish

    def slowly(self, **facts):
        if facts["strict"] is None and not entered.is_set():
            thread.start()
            entered.wait(0.2)  # the other one waits for this to be told
        tell(self, **facts)
        told.append(facts["strict"])

    def enter():
        with dpselect.config_context(strict=True):
            entered.set()
            done.wait(60)

    thread = threading.Thread(target=enter)
    with dpselect.config_context(strict=True):
        monkeypatch.setattr(Process, "publish", slowly)
    entered.wait(60)
    assert told[-1] is True
    done.set()
    thread.join()
    assert told[-1] is None


def test_a_thread_that_leaves_does_not_speak_for_others(monkeypatch):
    told = []
    monkeypatch.setattr(Process, "publish", lambda self, **facts: told.append(facts["strict"]))
    with dpselect.config_context(strict=True):
        in_a_thread(lambda: dpselect.set_config(strict=True))
        in_a_thread(lambda: dpselect.set_config(strict=False))
        assert told[-1] is True
    assert told[-1] is None
