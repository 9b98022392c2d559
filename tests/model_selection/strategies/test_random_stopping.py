import gc
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpselect import Adjacency, CertificateError, DPRidge, PrivacyLedger
from dpselect.mechanisms.stopping_laws import geometric
from dpselect.model_selection.strategies import held_out, random_stopping

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
        monkeypatch.setattr(type(geometric(6.0)), "draw", lambda self, state=None: number)

    return set_to


def test_plans_of_the_default_number_of_runs(monkeypatch):
    """What each run has is what the page says."""
    monkeypatch.setattr(random_stopping, "RUNS", 10)
    found = []
    for k in (2, 5, 10, 50):
        plan = search("random_stopping", grid={"alpha": np.geomspace(0.01, 1, k)}).plan(10_000, 3)
        assert f"about {10 * k} runs" in plan.messages[0]
        found.append(round(plan.training_epsilon, 3))
    page = (Path(__file__).parents[3] / "doc/mechanisms/selection_strategies.rst").read_text()
    (row,) = [line for line in page.splitlines() if line.startswith(":math:`e`, geometric law")]
    assert [float(part) for part in row.split()[-4:]] == found


def test_the_model_states_the_loss_of_all_runs(data):
    """As the best of several, it is not as private as one of them."""
    s = search("random_stopping").fit(*data)
    assert s.best_estimator_.privacy_.epsilon == 1.0 == s.privacy_.epsilon


@pytest.mark.slow
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


def test_a_delta_of_the_search_is_divided_among_the_runs(data, monkeypatch, tmp_path, number_of_runs):
    number_of_runs(30)
    given, original = [], held_out.HeldOut.fit

    def spy(self, *args):
        model = original(self, *args)
        given.append((model.delta, model.privacy_.epsilon, model.privacy_.delta))
        return model

    monkeypatch.setattr(held_out.HeldOut, "fit", spy)
    # the Gaussian noise of the one, and no delta of the other
    grid = [{"delta": [1e-3], "norm": ["l2"]}, {"delta": [0.0]}]
    model = DPRidge(perturbation="covariance", norm="l1", target_range=(-1, 1))
    with PrivacyLedger(tmp_path / "ledger", epsilon=1.0, delta=1e-5) as ledger:
        s = search("random_stopping", model, grid, delta=1e-6).fit(data[0], data[0][:, 0])
    assert (s.privacy_.epsilon, s.privacy_.delta) == (1.0, 1e-6) == ledger.spent()
    mean = 2 * random_stopping.RUNS
    deltas = {delta for delta, _, _ in given}
    assert deltas <= {0.0, max(deltas)} and max(deltas) == pytest.approx(1e-6 / mean)
    assert max(deltas) * mean <= 1e-6
    assert {spent for _, spent, _ in given} == {s.plan_.training_epsilon}
    assert all(stated == delta for delta, _, stated in given)
    assert s.best_estimator_.privacy_.delta == 1e-6


def test_a_run_that_states_more_than_its_share_is_not_released(data, number_of_runs):
    class Whole(DPRidge):
        def _loss_of_a_fit(self):
            return replace(super()._loss_of_a_fit(), delta=1e-6)

    number_of_runs(3)
    model = Whole(perturbation="covariance", norm="l2", delta=1e-6, target_range=(-1, 1))
    with pytest.raises(CertificateError, match="needs models with the epsilon and delta"):
        search("random_stopping", model, delta=1e-6).fit(data[0], data[0][:, 0])


def test_the_loss_is_for_what_the_runs_are_for(data, number_of_runs):
    class Other(DPRidge):
        changed = {"adjacency": Adjacency.ADD_OR_REMOVE_RECORD}

        def _loss_of_a_fit(self):
            return replace(super()._loss_of_a_fit(), **self.changed)

    number_of_runs(2)
    model = Other(perturbation="covariance", norm="l1", target_range=(-1, 1))
    with pytest.raises(CertificateError, match="'replace one record', and Other for 'add or remove"):
        search("random_stopping", model).fit(Untouchable(), Untouchable())
    # with a delta the losses of many models are stated anew
    with pytest.raises(ValueError, match="are for different adjacencies"):
        grid = {"alpha": np.geomspace(0.01, 1.0, 15)}
        search("budget_split", model, grid, delta=0.01).fit(data[0], data[0][:, 0])
    Other.changed = {"seeded": True}
    assert search("random_stopping", model).fit(data[0], data[0][:, 0]).privacy_.seeded


def test_auto_takes_runs_with_a_delta_where_the_search_has_one(data):
    model = DPRidge(perturbation="covariance", norm="l2", delta=1e-6, target_range=(-1, 1))
    grid = {"target_range": [(-0.5, 0.5), (-1, 1)]}
    s = search("auto", model, grid, delta=1e-6, epsilon=3.0)
    assert s.fit(data[0], data[0][:, 0]).plan_.strategy in ("random_stopping", "first_candidate")
    assert s.privacy_.delta == 1e-6


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
