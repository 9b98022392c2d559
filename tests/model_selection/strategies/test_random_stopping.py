import gc
import weakref

import numpy as np
import pytest

from dpselect import CertificateError, DPRidge
from dpselect.mechanisms.stopping_laws import logarithmic
from dpselect.model_selection.strategies import held_out

from ...test_leaks import leaves
from .common import LOGISTIC, Untouchable, records, search, seeded


@pytest.fixture(scope="module")
def data():
    return records()


@pytest.fixture
def models(monkeypatch):
    """Weak references to the models of all runs."""
    made, original = [], held_out.HeldOut.fit

    def spy(self, *args):
        model = original(self, *args)
        made.append(weakref.ref(model))
        return model

    monkeypatch.setattr(held_out.HeldOut, "fit", spy)
    return made


@pytest.fixture
def number_of_runs(monkeypatch):
    """Set how many runs there will be."""

    def set_to(number):
        monkeypatch.setattr(type(logarithmic(6.0)), "draw", lambda self, state=None: number)

    return set_to


def test_the_model_states_the_loss_of_all_runs(data):
    """As the best of several, it is not as private as one of them."""
    s = search("random_stopping").fit(*data)
    assert s.best_estimator_.privacy_.epsilon == 1.0 == s.privacy_.epsilon


def test_no_other_runs_model_is_kept(data, models, number_of_runs):
    number_of_runs(25)
    s = search("random_stopping").fit(*data)
    gc.collect()
    alive = [reference() for reference in models if reference() is not None]
    assert len(models) == 25 and len(alive) == 1 and alive[0] is s.best_estimator_


def test_the_number_of_runs_is_not_kept(data, models, number_of_runs):
    """The first run wins in both searches, which then must be the same, leaf by leaf."""
    grid, fitted = {"alpha": [0.1]}, []
    number_of_runs(1)
    X, y = data
    for seed in range(100):
        one = seeded(search("random_stopping", grid=grid), seed).fit(X, y)
        number_of_runs(7)
        other = seeded(search("random_stopping", grid=grid), seed).fit(X, y)
        number_of_runs(1)
        if (one.best_estimator_.coef_ == other.best_estimator_.coef_).all():
            fitted = [dict(leaves(one)), dict(leaves(other))]
            break
    assert len(models) > 2 and fitted[0] == fitted[1]


def test_of_many_runs_the_best_is_kept(data, number_of_runs):
    number_of_runs(30)
    grid = {"alpha": [100.0, 1e-3, 30.0]}
    s = seeded(search("random_stopping", grid=grid, epsilon=1000.0)).fit(*data)
    assert s.best_index_ == 1 and s.best_estimator_.alpha == 1e-3


def test_a_delta_of_a_run_is_refused_before_the_data():
    """The best of many runs would fail more often than one of them does."""
    model = DPRidge(perturbation="covariance", norm="l2", delta=1e-6, target_range=(-1, 1))
    with pytest.raises(CertificateError, match="delta=0.0.*budget_split"):
        search("random_stopping", model).fit(Untouchable(), Untouchable())


def test_candidates_are_run_by_chance(data, monkeypatch, number_of_runs):
    chosen, original = [], held_out.HeldOut.fit

    def spy(self, i, *args):
        chosen.append(i)
        return original(self, i, *args)

    monkeypatch.setattr(held_out.HeldOut, "fit", spy)
    number_of_runs(90)
    seeded(search("random_stopping", LOGISTIC)).fit(*data)
    # 30 of each on average, with a standard deviation of 4.5
    assert min(np.bincount(chosen, minlength=3)) > 10
