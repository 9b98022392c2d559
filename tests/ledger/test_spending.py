import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from dpselect import (
    AccuracyFirstSearchCV,
    BudgetExceededError,
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    Ladder,
    PrivacyLedger,
    StabilityGridSearchCV,
    Thresholdout,
    ThresholdoutFeatureSelector,
)
from dpselect.accounting.privacy_loss import PrivacyLoss
from dpselect.ledger import current_ledger, spending, without_spending
from dpselect.model_selection.strategies import STRATEGIES
from dpselect.noise import InnerStream, as_generator
from dpselect.noise.generators import search_stream
from dpselect.preprocessing import DPBoundsScaler

HOLDOUT = "replace one holdout record"


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "records.ledger", epsilon=8.0, delta=1e-3)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(400, 2))
    return X, (X[:, 0] > 0).astype(int)


class Untouchable:
    """Data that fails when anything but its shape is asked for."""

    shape, ndim, dtype = (400, 2), 2, np.dtype(float)

    def __len__(self):
        return 400

    def __getattr__(self, name):
        raise AssertionError(f"the data was touched: {name}")

    __array__ = __getitem__ = __iter__ = lambda self, *_, **__: self.touched


def classifier(**parameters):
    return DPLogisticRegression(classes=[0, 1], **parameters)


ESTIMATORS = {
    "logistic": classifier(epsilon=0.5),
    "svc": DPLinearSVC(epsilon=0.5, classes=[0, 1]),
    "ridge": DPRidge(epsilon=0.5, target_range=(-1, 1)),
    "poisson": DPPoissonRegressor(epsilon=0.5, target_bound=10.0),
    "huber": DPHuberRegressor(epsilon=0.5, target_range=(0, 1)),
    "gaussian ridge": DPRidge(epsilon=0.5, delta=1e-6, norm="l2", target_range=(-1, 1)),
    "histogram": DPHistogramDensity(epsilon=0.5, bounds=(-0.5, 0.5)),
    "bounds": DPBoundsScaler(epsilon=0.5),
    "search": StabilityGridSearchCV(classifier(), {"alpha": [0.1, 1.0]}, epsilon=0.5),
    "accuracy first": AccuracyFirstSearchCV(
        classifier(alpha=0.1), {"epsilon": [0.125, 0.5]}, target=5.0, method="certified"
    ),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_what_a_fit_states_is_what_the_ledger_counts(name, data, ledger):
    with ledger:
        inside = clone(ESTIMATORS[name]).fit(*data)
    assert ledger.spent() == (inside.privacy_.epsilon, inside.privacy_.delta)
    given = clone(ESTIMATORS[name]).set_params(ledger=ledger).fit(*data)
    assert ledger.spent()[0] == inside.privacy_.epsilon + given.privacy_.epsilon
    clone(ESTIMATORS[name]).fit(*data)
    assert len(ledger.history()) == 2
    assert all(entry.committed_at for entry in ledger.history())


@pytest.mark.parametrize("name", sorted(set(ESTIMATORS) - {"accuracy first"}))
def test_too_little_is_refused_before_the_data_is_touched(name, tmp_path):
    ledger = PrivacyLedger(tmp_path / "small", epsilon=0.25, delta=1e-3)
    estimator = clone(ESTIMATORS[name])
    with pytest.raises(BudgetExceededError, match="epsilon=0.25 .* left"):
        estimator.set_params(ledger=ledger).fit(Untouchable(), Untouchable())
    with ledger, pytest.raises(BudgetExceededError):
        clone(ESTIMATORS[name]).fit(Untouchable(), Untouchable())
    assert not hasattr(estimator, "privacy_") and ledger.history() == []


def test_an_accuracy_first_search_is_refused_before_anything_is_released(data, tmp_path):
    ledger = PrivacyLedger(tmp_path / "small", epsilon=0.0625)
    search = clone(ESTIMATORS["accuracy first"]).set_params(ledger=ledger)
    with pytest.raises(BudgetExceededError):
        search.fit(*data)
    assert not hasattr(search, "best_estimator_") and ledger.history() == []


@pytest.mark.parametrize("name", sorted(set(ESTIMATORS) - {"histogram", "accuracy first"}))
def test_what_is_not_private_cannot_spend(name, data, ledger):
    estimator = clone(ESTIMATORS[name]).set_params(ledger=ledger)
    with pytest.raises(BudgetExceededError, match="epsilon=inf"):
        estimator.set_params(epsilon=float("inf")).fit(*data)
    assert ledger.history() == []


@pytest.mark.parametrize("name", ESTIMATORS)
def test_refused_records_cost_nothing(name, data, ledger):
    X, y = data[0].copy(), data[1]
    X[3, 1] = np.nan
    with ledger, pytest.raises(ValueError, match="NaN"):
        clone(ESTIMATORS[name]).fit(X, y)
    assert ledger.spent() == (0.0, 0.0)
    (entry,) = ledger.history()
    assert entry.epsilon == 0.0 and entry.reserved_epsilon > 0


STREAM = search_stream(InnerStream(bytes(32)))


@pytest.mark.parametrize("draw", [
    lambda charge: as_generator(), lambda charge: charge.begin(),
    lambda charge: as_generator(STREAM.for_release().child("choice")),
])  # fmt: skip
def test_a_failure_after_the_noise_counts_in_full(ledger, draw):
    with pytest.raises(ZeroDivisionError), ledger, spending(None, PrivacyLoss(0.5)) as charge:
        draw(charge)
        1 / 0
    assert ledger.spent() == (0.5, 0.0) and ledger.history()[0].kind == "uncommitted"


def test_noise_that_is_not_released_is_free(ledger):
    with pytest.raises(ZeroDivisionError), ledger, spending(None, PrivacyLoss(0.5)):
        as_generator(STREAM)
        raise ZeroDivisionError
    assert ledger.spent() == (0.0, 0.0)


@pytest.mark.parametrize("strategy", ["stability", "optimal_risk"])
def test_an_interrupt_after_the_choice_counts_in_full(strategy, data, ledger, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    search = clone(ESTIMATORS["search"]).set_params(strategy=strategy, epsilon=4.0)
    monkeypatch.setattr(STRATEGIES[strategy], "choice_loss", interrupt)
    with ledger, pytest.raises(KeyboardInterrupt):
        search.fit(*data)
    assert ledger.spent() == (4.0, 0.0)


def test_a_loss_is_committed_once(ledger):
    with ledger, spending(None, PrivacyLoss(0.5)) as charge:
        charge.commit(PrivacyLoss(0.125, kind="ex-post"))
        charge.commit(PrivacyLoss(0.0))
    assert ledger.spent() == (0.125, 0.0)


def test_the_innermost_ledger_pays(ledger, tmp_path, data):
    other = PrivacyLedger(tmp_path / "other", epsilon=1.0)
    with ledger:
        with other:
            clone(ESTIMATORS["ridge"]).fit(*data)
            clone(ESTIMATORS["ridge"]).set_params(ledger=ledger).fit(*data)
        assert current_ledger() == ledger
        with without_spending():
            assert current_ledger() is None
    assert current_ledger() is None
    assert ledger.spent() == other.spent() == (0.5, 0.0)


def test_ledgers_may_close_in_any_order(ledger, tmp_path):
    other = PrivacyLedger(tmp_path / "other", epsilon=1.0)

    def suspended():
        with other:
            yield

    with ledger:
        generator = suspended()
        next(generator)
    assert current_ledger() == other
    generator.close()
    assert current_ledger() is None


def test_a_path_is_no_ledger(data, tmp_path):
    model = DPRidge(ledger=str(tmp_path / "records.ledger"), target_range=(-1, 1))
    with pytest.raises(TypeError, match="ledger.*PrivacyLedger"):
        model.fit(Untouchable(), Untouchable())


def fit_one(X, y, ledger=None):
    return DPRidge(epsilon=0.125, ledger=ledger, target_range=(-1, 1)).fit(X, y).privacy_.epsilon


def fit_and_send(X, y, queue):
    queue.put(fit_one(X, y))


def test_threads_spend_from_what_their_parent_opened(data, ledger, tmp_path):
    with ledger, ThreadPoolExecutor(2) as pool:
        spent = sum(pool.map(lambda _: fit_one(*data), range(6)))
    assert ledger.spent() == (spent, 0.0) == (0.75, 0.0)


def test_threads_spend_from_the_innermost_of_their_parent(data, ledger, tmp_path):
    other = PrivacyLedger(tmp_path / "other", epsilon=1.0)
    with other, ThreadPoolExecutor(1) as pool:
        with ledger:
            pool.submit(fit_one, *data).result()
            with other:
                pool.submit(fit_one, *data).result()
        pool.submit(fit_one, *data).result()
    assert ledger.spent() == (0.125, 0.0) and other.spent() == (0.25, 0.0)


def test_threads_do_not_guess_between_two_ledgers(data, ledger, tmp_path):
    other = PrivacyLedger(tmp_path / "other", epsilon=1.0)
    opened, done = threading.Event(), threading.Event()

    def keep_open():
        with other:
            opened.set()
            done.wait(60)

    with ThreadPoolExecutor(2) as pool:
        keeper = pool.submit(keep_open)
        opened.wait(60)
        with ledger:
            fit_one(*data)  # this thread has opened one itself
            with pytest.raises(RuntimeError, match="Several ledgers"):
                pool.submit(fit_one, *data).result()
        done.set()
        keeper.result()
    assert ledger.spent() == (0.125, 0.0) and other.spent() == (0.0, 0.0)


def test_forked_processes_spend_from_what_was_open(data, ledger):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with ledger:
        workers = [context.Process(target=fit_and_send, args=(*data, queue)) for _ in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert [worker.exitcode for worker in workers] == [0, 0, 0]
        spent = sum(queue.get() for _ in workers)
    assert ledger.spent() == (spent, 0.0) == (0.375, 0.0)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_copies_in_workers_spend_from_the_ledger_they_were_given(data, ledger, backend):
    with Parallel(n_jobs=2, backend=backend) as parallel:
        parallel(delayed(fit_one)(*data, ledger) for _ in range(4))
    grid = GridSearchCV(classifier(epsilon=0.125, ledger=ledger), {"alpha": [0.1, 1.0]}, cv=3, n_jobs=2)
    grid.fit(*data)
    # six fits on folds, and the last one: none is free
    assert ledger.spent() == (4 * 0.125 + 7 * 0.125, 0.0)


@pytest.mark.parametrize(
    "strategy, n_jobs",
    [
        *((strategy, None) for strategy in sorted(set(STRATEGIES) - {"control"})),
        # (the others have no jobs)
        ("stability", 2),
        ("auto", 2),
    ],
)
@pytest.mark.filterwarnings("ignore:n_samples")
def test_a_search_is_paid_for_once(strategy, n_jobs, data, ledger):
    search = StabilityGridSearchCV(
        classifier(), {"alpha": [0.1, 1.0]}, epsilon=1.0, strategy=strategy, n_jobs=n_jobs
    )
    with ledger:
        search.plan(400, 2)
        assert ledger.history() == []
        search.fit(*data)
    (entry,) = ledger.history()
    assert ledger.spent() == (search.privacy_.epsilon, search.privacy_.delta)
    assert entry.reserved_epsilon == 1.0 and search.best_estimator_.ledger is None


@pytest.mark.filterwarnings("ignore:n_samples")
def test_a_control_cannot_spend(data, ledger):
    search = StabilityGridSearchCV(classifier(), {"alpha": [0.1, 1.0]}, strategy="control")
    with ledger, pytest.raises(BudgetExceededError, match="epsilon=inf"):
        search.fit(*data)
    assert not hasattr(search, "best_estimator_")


@pytest.mark.parametrize("strategy", ["budget_split", "data_split", "random", "auto"])
def test_deltas_of_models_are_covered(strategy, data, ledger):
    search = StabilityGridSearchCV(
        DPRidge(delta=1e-6, norm="l2", target_range=(-1, 1)),
        {"data_norm": [0.5, 1.0]},
        strategy=strategy,
        ledger=ledger,
    ).fit(data[0], data[1].astype(float))
    assert ledger.spent() == (search.privacy_.epsilon, search.privacy_.delta)
    assert search.privacy_.delta > 0


def test_steps_that_learn_are_paid_for_with_the_search(data, ledger):
    steps = make_pipeline(DPBoundsScaler(epsilon=0.25), classifier(alpha=0.1))
    search = StabilityGridSearchCV(
        steps, {"dplogisticregression__alpha": [0.1, 1.0]}, epsilon=0.5, ledger=ledger
    ).fit(*data)
    assert ledger.spent() == (search.privacy_.epsilon, 0.0) == (0.5, 0.0)
    assert len(ledger.history()) == 1
    first = AccuracyFirstSearchCV(
        steps, {"dplogisticregression__epsilon": [0.125, 0.5]}, target=5.0, ledger=ledger
    ).fit(*data)
    assert ledger.spent()[0] == 0.5 + first.privacy_.epsilon
    # a search that cannot be afforded does not spend on its steps
    with pytest.raises(BudgetExceededError):
        clone(search).set_params(epsilon=8.0).fit(*data)
    assert ledger.spent()[0] == 0.5 + first.privacy_.epsilon


@pytest.mark.parametrize("n_jobs, seed", [(None, None), (2, None), (None, 0)])
@pytest.mark.filterwarnings("ignore::dpselect.exceptions.SeededNoiseWarning")
def test_steps_spend_whoever_fits_them(n_jobs, seed, data, ledger):
    parts = [(str(j), DPBoundsScaler(epsilon=0.25), [j]) for j in range(2)]
    search = StabilityGridSearchCV(
        make_pipeline(ColumnTransformer(parts, n_jobs=n_jobs), classifier(alpha=0.1)),
        {},
        epsilon=1.0,
        random_state=seed,
    )
    with parallel_config(backend="threading"), ledger:
        search.fit(*data)
    assert ledger.spent() == (1.0, 0.0) and len(ledger.history()) == 1
    # the second part fails, when the first has drawn its noise: in a process of its own, it may be
    X = data[0].copy()
    X[3, 1] = np.nan
    with ledger, pytest.raises(ValueError, match="NaN"):
        search.fit(X, data[1])
    assert ledger.spent() == (2.0, 0.0)


@pytest.mark.filterwarnings("ignore::dpselect.exceptions.SeededNoiseWarning")
def test_seeded_steps_are_told(data, ledger):
    AccuracyFirstSearchCV(
        make_pipeline(DPBoundsScaler(epsilon=0.25), classifier(alpha=0.1)),
        {"dplogisticregression__epsilon": [0.125, 0.5]},
        target=5.0,
        ledger=ledger,
        random_state=0,
    ).fit(*data)
    assert [entry.seeded for entry in ledger.history()] == [True]


def test_a_ladder_cannot_spend(data, ledger):
    with ledger, pytest.raises(BudgetExceededError, match="Ladder.*epsilon=inf"):
        Ladder().fit(*data)
    Ladder().fit(*data)


def test_the_search_pays_not_its_model(data, ledger):
    for search in (
        StabilityGridSearchCV(classifier(ledger=ledger), {"alpha": [0.1]}),
        StabilityGridSearchCV(classifier(), {"ledger": [ledger]}),
        StabilityGridSearchCV(
            make_pipeline(DPBoundsScaler(0.25, ledger=ledger), classifier()), {}, ledger=ledger
        ),
    ):
        with pytest.raises(ValueError, match="ledger.*give ledger= to the search"):
            search.fit(Untouchable(), Untouchable())
    assert ledger.history() == []


def test_a_holdout_set_has_a_ledger_of_its_own(data, ledger, tmp_path):
    X, y = data
    held = {"X_holdout": X[:200], "y_holdout": y[:200]}
    with ledger, pytest.raises(ValueError, match="adjacency='replace one holdout record'"):
        Thresholdout(budget=1).fit(X[200:], y[200:], **held)
    own = PrivacyLedger(tmp_path / "holdout", epsilon=8.0, adjacency=HOLDOUT)
    holdout = Thresholdout(noise_rate=0.1, budget=10, ledger=own)
    holdout.fit(X[200:], y[200:], **held)
    assert own.spent()[0] == holdout.privacy_.epsilon == 1.0
    selector = ThresholdoutFeatureSelector(
        LogisticRegression(), n_features_to_select=1, noise_rate=0.1, budget=10, ledger=own
    ).fit(X, y)
    assert own.spent()[0] == 1.0 + selector.privacy_.epsilon
    with pytest.raises(BudgetExceededError, match="Thresholdout"):
        clone(holdout).set_params(budget=100).fit(X[200:], y[200:], **held)


def test_failed_reservations_that_cannot_be_returned_stay(ledger, monkeypatch):
    def broken(*_):
        raise OSError

    with pytest.raises(ZeroDivisionError), ledger, spending(None, PrivacyLoss(0.5)) as charge:
        monkeypatch.setattr(type(charge.reservation), "commit", broken)
        1 / 0
    assert ledger.spent() == (0.5, 0.0)
