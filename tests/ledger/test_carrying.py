"""A ledger that is open reaches fits in other threads and processes, however they were started."""

import asyncio
import copy
import inspect
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
import skops.io
from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky import get_reusable_executor
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

import dpselect
from dpselect import (
    BudgetExceededError,
    DPLogisticRegression,
    DPRidge,
    Ladder,
    PrivacyLeakError,
    PrivacyLedger,
    PrivateModel,
    Thresholdout,
    ThresholdoutFeatureSelector,
)
from dpselect.ledger import CarriesLedgerMixin, without_spending
from dpselect.preprocessing import DPBoundsScaler
from dpselect.utils.processes import VARIABLE

from ..private_model.other_library import SignedSum
from .test_spending import ESTIMATORS, HOLDOUT, classifier

BACKENDS = ["loky", "threading", "multiprocessing", "dask"]
# a pool of multiprocessing may never end after an error: its terminate() waits for a thread that waits
# for a lock of a worker it has killed
MAY_FAIL = [name for name in BACKENDS if name != "multiprocessing"]
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


class ForgetsTheLedger(DPLogisticRegression):
    """A broken twin, whose pickles tell nothing."""

    __reduce_ex__ = BaseEstimator.__reduce_ex__


class HasNoClones(DPLogisticRegression):
    """A broken twin, whose clones forget where it came from."""

    @property
    def __sklearn_clone__(self):
        raise AttributeError


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(200, 2))
    return X, (X[:, 0] > 0).astype(int)


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "records.ledger", epsilon=8.0, delta=1e-3)


@contextmanager
def environment(value):
    """Start processes that descend from nobody, if `value` is "[]"."""
    before = os.environ[VARIABLE]
    os.environ[VARIABLE] = value
    try:
        yield
    finally:
        os.environ[VARIABLE] = before


@pytest.fixture(scope="module")
def strangers():
    """A process that knows nothing of this one, but what it is sent."""
    with environment("[]"):
        pool = multiprocessing.get_context("spawn").Pool(1)
        pool.apply(os.getpid)  # it has started
    with pool:
        yield pool


@pytest.fixture(scope="module")
def relatives():
    """A process that was started by this one before any ledger was open."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.apply(os.getpid)
        yield pool


@pytest.fixture(scope="module")
def dask_client():
    dask = pytest.importorskip("dask")
    distributed = pytest.importorskip("distributed")
    path = os.pathsep.join(filter(None, sys.path))
    with environment("[]"), dask.config.set({"distributed.nanny.environ": {"PYTHONPATH": path}}):
        cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
        )
    with cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def loky():
    get_reusable_executor().shutdown(wait=True)
    yield
    get_reusable_executor().shutdown(wait=True)


@pytest.fixture
def backend(request):
    """A backend of joblib, whose workers are strangers where they are new processes."""
    if request.param != "threading":
        request.getfixturevalue({"dask": "dask_client"}.get(request.param, "loky"))
    with environment("[]"), parallel_config(request.param):
        yield request.param


def on(*names, slow=("dask",)):
    return pytest.mark.parametrize(
        "backend",
        [pytest.param(name, marks=[pytest.mark.slow] * (name in slow)) for name in names],
        indirect=True,
    )


def fit_on_folds(model, data, **more):
    return cross_validate(model, *data, cv=KFold(5), n_jobs=2, error_score="raise", **more)


# ---- backends of joblib


@on(*BACKENDS, slow=("dask", "multiprocessing"))
def test_each_fold_is_paid_for(backend, data, ledger):
    with ledger:
        found = fit_on_folds(classifier(), data, return_estimator=True)
    assert ledger.spent() == (5.0, 0.0) and len(ledger.history()) == 5
    for model in found["estimator"]:  # they are as models that were fitted here
        model.fit(*data)
        clone(model).fit(*data)
    assert ledger.spent() == (5.0, 0.0)
    fit_on_folds(classifier(), data)  # by the same workers
    assert ledger.spent() == (5.0, 0.0)


@on(*MAY_FAIL, slow=("dask", "loky"))
def test_too_little_stops_the_second_fit_in_a_worker(backend, data, tmp_path):
    small = PrivacyLedger(tmp_path / "small", epsilon=1.0)
    with small, pytest.raises(BudgetExceededError, match="epsilon=0 "):
        fit_on_folds(classifier(), data)
    assert small.spent() == (1.0, 0.0)


@on(*BACKENDS, slow=("dask", "loky"))
def test_a_twin_that_forgets_is_free_in_other_processes(backend, data, ledger):
    with ledger:
        fit_on_folds(ForgetsTheLedger(classes=[0, 1]), data)
    shares_memory = backend in ("threading", "multiprocessing")
    assert ledger.spent() == (5.0 if shares_memory else 0.0, 0.0)


@pytest.mark.slow
@on("loky")
def test_a_twin_whose_clones_forget_is_free_where_it_is_cloned_again(backend, data, ledger):
    with ledger:
        OneVsRestClassifier(HasNoClones(classes=[0, 1]), n_jobs=2).fit(*three_classes(data))
    assert ledger.spent() == (0.0, 0.0)


def three_classes(data):
    X, y = data
    return X, y + (X[:, 1] > 0.25)


@pytest.mark.slow
@on("loky")
def test_other_tools_send_estimators_too(backend, data, ledger):
    X, y = data
    quarter = classifier(epsilon=0.25)
    with ledger:
        GridSearchCV(
            make_pipeline(DPBoundsScaler(epsilon=0.25), quarter),
            {"dplogisticregression__alpha": [0.1, 1.0]},
            cv=KFold(2),
            n_jobs=2,
        ).fit(X, y)
        assert ledger.spent() == (5 * 0.5, 0.0)
        OneVsRestClassifier(quarter, n_jobs=2).fit(*three_classes(data))
        assert ledger.spent() == (2.5 + 3 * 0.25, 0.0)
        VotingClassifier([("a", quarter), ("b", quarter)], n_jobs=2).fit(X, y)
        assert ledger.spent() == (3.25 + 2 * 0.25, 0.0)


@pytest.mark.slow
@on("loky")
def test_a_search_in_a_worker_is_paid_for_once(backend, data, ledger):
    with ledger:
        fit_on_folds(clone(ESTIMATORS["search"]), data)
    assert ledger.spent() == (5 * 0.5, 0.0) and len(ledger.history()) == 5


@pytest.mark.slow
@on("loky", "dask")
def test_a_given_or_inner_ledger_comes_first(backend, data, ledger, tmp_path):
    other = PrivacyLedger(tmp_path / "other", epsilon=8.0)
    with other:
        fit_on_folds(classifier(ledger=ledger), data)
        with ledger:
            fit_on_folds(classifier(epsilon=0.5), data)
    assert ledger.spent() == (7.5, 0.0) and other.spent() == (0.0, 0.0)


# ---- processes that are started otherwise


def fit_one(model, X, y):
    return model.fit(X, y).privacy_.epsilon


def build_and_fit(X, y):
    return fit_one(classifier(), X, y)


def clone_and_fit(model, X, y):
    return fit_one(clone(model), X, y)


def fit_in_a_thread(model, X, y):
    thread = threading.Thread(target=model.fit, args=(X, y))
    thread.start()
    thread.join()


def fit_under(path, model, X, y):
    with PrivacyLedger(path):
        return fit_one(model, X, y)


def fit_in_a_child(X, y):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(build_and_fit, (X, y))


@pytest.mark.parametrize("fit", [fit_one, clone_and_fit, fit_in_a_thread])
def test_what_is_sent_to_a_stranger_is_paid_for(fit, strangers, data, ledger):
    with ledger:
        strangers.apply(fit, (classifier(), *data))
        assert ledger.spent() == (1.0, 0.0)
        with without_spending():  # is for this thread
            strangers.apply(fit, (classifier(), *data))
        assert ledger.spent() == (2.0, 0.0)
    strangers.apply(fit, (classifier(), *data))
    assert ledger.spent() == (2.0, 0.0)


def test_a_stranger_that_opens_a_ledger_spends_from_it(strangers, data, ledger, tmp_path):
    other = PrivacyLedger(tmp_path / "other", epsilon=8.0)
    with ledger:
        strangers.apply(fit_under, (other.path, classifier(), *data))
    assert other.spent() == (1.0, 0.0) and ledger.spent() == (0.0, 0.0)


@pytest.mark.slow
def test_what_a_relative_makes_is_paid_for(relatives, data, ledger):
    relatives.apply(build_and_fit, data)
    with ledger:
        relatives.apply(build_and_fit, data)
        relatives.apply(fit_one, (ForgetsTheLedger(classes=[0, 1]), *data))
    assert ledger.spent() == (2.0, 0.0)
    relatives.apply(build_and_fit, data)
    assert ledger.spent() == (2.0, 0.0)


def test_a_twin_without_relatives_is_free(strangers, data, ledger):
    with ledger:
        strangers.apply(build_and_fit, data)
    assert ledger.spent() == (0.0, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_any_start_of_a_process_reaches_it(method, data, ledger):
    with ledger:
        worker = multiprocessing.get_context(method).Process(target=build_and_fit, args=data)
        worker.start()
        worker.join()
    assert worker.exitcode == 0 and ledger.spent() == (1.0, 0.0)


@pytest.mark.slow
def test_a_process_of_a_script_that_is_started_inside_is_paid_for(ledger):
    script = os.path.join(os.path.dirname(ledger.path), "script.py")
    with open(script, "w") as file:
        file.write(
            f"import {__name__} as tests\nimport numpy as np\n"
            "X = np.linspace(-0.5, 0.5, 40).reshape(20, 2)\n"
            "if __name__ == '__main__':\n    tests.fit_in_a_child(X, (X[:, 0] > 0).astype(int))\n"
        )
    paths = os.pathsep.join(filter(None, [os.getcwd(), *sys.path]))
    with ledger:
        subprocess.run([sys.executable, script], check=True, env={**os.environ, "PYTHONPATH": paths})
    assert ledger.spent() == (1.0, 0.0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_fork_reaches_its_own_children(data, ledger):
    with ledger:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                fit_one(classifier(), *data)
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
    assert ledger.spent() == (1.0, 0.0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_pool_that_was_forked_earlier_works_for_the_ledger_of_now(data, ledger, tmp_path):
    later = PrivacyLedger(tmp_path / "of other records", epsilon=8.0)
    with ledger:
        pool = multiprocessing.get_context("fork").Pool(1)
        pool.apply(fit_one, (classifier(), *data))
        with later:
            pool.apply(fit_one, (classifier(), *data))
        pool.apply(build_and_fit, data)
    with pool:
        with later:
            pool.apply(fit_one, (classifier(), *data))
            assert later.spent() == (2.0, 0.0)
            # what the function builds there tells nothing
            with pytest.raises(RuntimeError, match="Several ledgers"):
                pool.apply(build_and_fit, data)
            sent_back = pool.apply(pickle_of, (classifier(),))
            assert later.path.encode() in sent_back and ledger.path.encode() not in sent_back
        assert (ledger.spent(), later.spent()) == ((2.0, 0.0), (2.0, 0.0))
        # and nothing is free there
        pool.apply(build_and_fit, data)
    assert (ledger.spent(), later.spent()) == ((3.0, 0.0), (2.0, 0.0))


def pickle_of(estimator):
    return pickle.dumps(estimator)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_pool_that_was_forked_for_what_is_free_is_not_free(data, ledger):
    with without_spending():
        pool = multiprocessing.get_context("fork").Pool(1)
        pool.apply(os.getpid)
    with pool, ledger:
        pool.apply(fit_one, (classifier(), *data))
        pool.apply(build_and_fit, data)
    assert ledger.spent() == (2.0, 0.0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_fork_of_another_thread_is_paid_for_after_the_block(data, ledger):
    # that thread has opened nothing, and the parent says nothing any more
    with ledger, ThreadPoolExecutor(1) as threads:
        pool = threads.submit(multiprocessing.get_context("fork").Pool, 1).result()
    with pool:
        pool.apply(build_and_fit, data)
    assert ledger.spent() == (1.0, 0.0)


# ---- threads, tasks, generators


def test_a_task_that_outlives_its_block_is_not_guessed_about(data, ledger, tmp_path):
    later = PrivacyLedger(tmp_path / "of other records", epsilon=8.0)

    async def main():
        ended, opened = asyncio.Event(), asyncio.Event()

        async def work():
            await ended.wait()
            build_and_fit(*data)
            await opened.wait()
            with pytest.raises(RuntimeError, match="Several ledgers"):
                build_and_fit(*data)

        with ledger:
            task = asyncio.create_task(work())
            await asyncio.sleep(0)
        ended.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with later:
            opened.set()
            await task

    asyncio.run(main())
    assert (ledger.spent(), later.spent()) == ((1.0, 0.0), (0.0, 0.0))


def test_tasks_spend_from_what_was_open(data, ledger):
    async def twice():
        classifier(epsilon=0.5).fit(*data)
        await asyncio.sleep(0)
        await asyncio.to_thread(fit_one, classifier(epsilon=0.5), *data)

    async def main():
        earlier = asyncio.create_task(twice())  # it starts when this one waits
        with ledger:
            await asyncio.gather(twice(), twice(), earlier)
        await twice()

    asyncio.run(main())
    assert ledger.spent() == (3.0, 0.0)


def test_a_suspended_generator_keeps_its_ledger_open(data, ledger):
    def models():
        with ledger:
            while True:
                yield classifier(epsilon=0.5).fit(*data)

    generator = models()
    next(generator)
    Parallel(n_jobs=2, backend="threading")(
        delayed(fit_one)(classifier(epsilon=0.5), *data) for _ in range(2)
    )
    next(generator)
    generator.close()
    classifier().fit(*data)
    assert ledger.spent() == (2.0, 0.0)


# ---- each estimator

HOLDOUTS = {
    "thresholdout": Thresholdout(noise_rate=0.1, budget=10),
    "selector": ThresholdoutFeatureSelector(
        LogisticRegression(), n_features_to_select=1, noise_rate=0.1, budget=10
    ),
}
OTHERS = {
    "other library": PrivateModel(
        SignedSum(), adjacency="replace one record", classes=[0, 1], classes_parameter="labels"
    ),
}
ALL = ESTIMATORS | HOLDOUTS | OTHERS


def fitted(estimator, data):
    X, y = data
    if isinstance(estimator, Thresholdout):
        return estimator.fit(X[:100], y[:100], X_holdout=X[100:], y_holdout=y[100:])
    return estimator.fit(X, y)


def for_its_kind(name, tmp_path):
    if name in HOLDOUTS:
        return PrivacyLedger(tmp_path / "holdout", epsilon=16.0, adjacency=HOLDOUT)
    return PrivacyLedger(tmp_path / "plain", epsilon=8.0, delta=1e-3)


def sent(estimator):
    return pickle.loads(pickle.dumps(estimator))


def private_classes():
    """All classes of the library that have a `fit` which spends from a ledger."""
    modules = [dpselect, dpselect.preprocessing, dpselect.holdout, dpselect.linear_model]
    found = {
        kind
        for module in modules
        for name in module.__all__
        if inspect.isclass(kind := getattr(module, name)) and issubclass(kind, BaseEstimator)
    }
    return {kind for kind in found if "ledger" in inspect.signature(kind).parameters} | {Ladder}


def test_every_private_class_carries():
    assert {type(estimator) for estimator in ALL.values()} | {Ladder} == private_classes()
    assert all(issubclass(kind, CarriesLedgerMixin) for kind in private_classes())
    assert not issubclass(LogisticRegression, CarriesLedgerMixin)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("way", [
    sent, lambda model: clone(sent(model)), lambda model: sent(sent(model)),
])  # fmt: skip
def test_each_is_paid_for_where_it_arrives(name, way, data, tmp_path):
    ledger = for_its_kind(name, tmp_path)
    with ledger:
        arrived = way(clone(ALL[name]))
    loss = fitted(arrived, data).privacy_
    assert ledger.spent() == (loss.epsilon, loss.delta) and loss.epsilon > 0
    assert arrived.get_params().get("ledger") is None
    fitted(arrived, data)
    assert len(ledger.history()) == 2


@pytest.mark.parametrize("name", sorted(set(ALL) - {"thresholdout"}))
def test_a_release_does_not_tell_its_ledger(name, data, tmp_path, strangers):
    ledger = for_its_kind(name, tmp_path)
    with ledger:
        release = fitted(sent(clone(ALL[name])), data)
        saved, before = pickle.dumps(release), len(ledger.history())
        assert b"records.ledger" not in saved and ledger.path.encode() not in saved
        assert ledger.path.encode() in pickle.dumps(clone(ALL[name]))
        assert ledger.path.encode() not in pickle.dumps(copy.deepcopy(release))
    # here it is as it was
    loaded = pickle.loads(saved)
    assert loaded.privacy_.epsilon == release.privacy_.epsilon
    fitted(loaded, data)
    assert len(ledger.history()) == before
    # elsewhere nobody knows what pays for another fit
    for again in (refit, clone_and_refit, send_on_and_refit):
        assert strangers.apply(again, (saved, data)) == "RuntimeError"
        assert strangers.apply(again, (pickle.dumps(release), data)) == "fitted"
    assert len(ledger.history()) == before


def test_under_two_ledgers_the_inner_one_is_carried(data, tmp_path, strangers):
    outer, inner = (PrivacyLedger(tmp_path / name, epsilon=10.0) for name in ("outer", "inner"))
    with outer, inner:
        saved = pickle.dumps(classifier())
        assert inner.path.encode() in saved and outer.path.encode() not in saved
        assert strangers.apply(refit, (saved, data)) == "fitted"
    assert (outer.spent(), inner.spent()) == ((0.0, 0.0), (1.0, 0.0))


def test_what_comes_back_from_a_worker_tells_no_ledger_after_the_block(data, ledger, strangers):
    careless = GridSearchCV(classifier(), {"alpha": [0.01, 0.1]}, cv=KFold(2))
    with ledger:
        returned = strangers.apply(careless.fit, data)
        assert ledger.path.encode() in pickle.dumps(returned.estimator)
    assert ledger.spent() == (5.0, 0.0)
    saved = pickle.dumps(returned)
    assert ledger.path.encode() not in saved and b"records.ledger" not in saved
    # it is as before here, and refused elsewhere
    clone(returned.estimator).fit(*data)
    assert ledger.spent() == (6.0, 0.0)
    unfitted = pickle.dumps(returned.estimator)
    assert strangers.apply(refit, (unfitted, data)) == "RuntimeError"
    assert strangers.apply(clone_and_refit, (unfitted, data)) == "RuntimeError"
    # a process that had not opened it passes it on
    with ledger:
        told_twice = strangers.apply(pickle_of, (returned.estimator,))
    assert ledger.path.encode() in told_twice


def refit(saved, data):
    try:
        pickle.loads(saved).fit(*data)
    except Exception as error:
        return type(error).__name__
    return "fitted"


def send_on_and_refit(saved, data):
    # what came from elsewhere does not forget it when it travels on
    return refit(pickle.dumps(pickle.loads(saved)), data)


def clone_and_refit(saved, data):
    return refit(pickle.dumps(clone(pickle.loads(saved))), data)


def test_a_fitted_model_is_fitted_again_under_a_ledger_of_there(data, ledger, tmp_path, strangers):
    with ledger:
        model = classifier().fit(*data)
        sent_fitted = [strangers.apply_async(fit_one, (model, *data)) for _ in range(2)]
        for result in sent_fitted:
            with pytest.raises(RuntimeError, match="counted nowhere"):
                result.get(60)
        strangers.apply(fit_under, (ledger.path, model, *data))
        assert strangers.apply(predict, (model, data[0])).shape == (200,)
    assert ledger.spent() == (2.0, 0.0)


def predict(model, X):
    return model.predict(X)


@pytest.mark.parametrize("name", ALL)
def test_copies_within_a_process_and_pickles_without_a_ledger_carry_nothing(name, data, tmp_path):
    ledger = for_its_kind(name, tmp_path)
    with ledger:
        copies = [copy.copy(ALL[name]), copy.deepcopy(ALL[name]), clone(ALL[name])]
    for twin in (*copies, sent(ALL[name])):  # the last one without a ledger
        assert vars(twin).keys() == vars(ALL[name]).keys()
        assert type(twin) is type(ALL[name]) and twin is not ALL[name]
    assert b"carrying" not in pickle.dumps(ALL[name])
    fitted(copies[1], data)
    assert ledger.history() == [] and not hasattr(ALL[name], "privacy_")


def test_a_file_of_skops_is_no_way_to_another_process(data, ledger):
    with ledger:
        file = skops.io.dumps(classifier().fit(*data))
    types = skops.io.get_untrusted_types(data=file)
    assert not any("ledger" in name for name in types)
    skops.io.loads(file, trusted=types).fit(*data)
    assert ledger.spent() == (1.0, 0.0)


def test_a_class_with_a_state_of_its_own_is_carried_whole(data, ledger):
    with ledger:
        arrived = sent(Counts(classes=[0, 1]))
    assert arrived.arrivals == 1 and copy.deepcopy(arrived).arrivals == 2
    arrived.fit(*data)
    assert ledger.spent() == (1.0, 0.0)


class Counts(DPLogisticRegression):
    def __getstate__(self):
        return super().__getstate__() | {"arrivals": vars(self).get("arrivals", 0) + 1}


def test_several_ledgers_are_not_guessed_between(data, ledger, tmp_path, strangers):
    other = PrivacyLedger(tmp_path / "other", epsilon=1.0)
    arrived = []
    with ledger, other_thread_opens(other):
        thread = threading.Thread(target=lambda: arrived.append(pickle.dumps(classifier())))
        thread.start()
        thread.join()
    assert strangers.apply(refit, (arrived[0], data)) == "RuntimeError"
    assert ledger.history() == other.history() == []


@contextmanager
def other_thread_opens(ledger):
    opened, done = threading.Event(), threading.Event()

    def keep_open():
        with ledger:
            opened.set()
            done.wait(60)

    thread = threading.Thread(target=keep_open)
    thread.start()
    opened.wait(60)
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_a_ledger_that_is_not_there_is_missed(data, ledger):
    with ledger:
        arrived = sent(classifier())
    os.unlink(ledger.path)
    with pytest.raises(FileNotFoundError, match="counted nowhere"):
        arrived.fit(*data)
    assert not os.path.exists(ledger.path) and not hasattr(arrived, "privacy_")


# ---- strict mode


@on(*MAY_FAIL, slow=("dask", "loky"))
@pytest.mark.filterwarnings("ignore::dpselect.PrivacyLeakWarning")
def test_strict_mode_reaches_each_backend(backend, data):
    X, y = data
    with dpselect.config_context(strict=True):
        with pytest.raises(PrivacyLeakError, match="k fits lose k times"):
            fit_on_folds(DPLogisticRegression(), data)
        with pytest.raises(PrivacyLeakError, match="records that the model was trained on"):
            Parallel(n_jobs=2)(delayed(fit_and_score)(classifier(), X, y) for _ in range(2))
    fit_on_folds(DPLogisticRegression(), data)


def fit_and_score(model, X, y):
    X = np.array(X)  # memory of its own
    return model.fit(X, y).score(X, y)


@pytest.mark.slow
@on("loky")
@pytest.mark.filterwarnings("ignore::dpselect.PrivacyLeakWarning")
def test_a_twin_is_lenient(backend, data):
    with dpselect.config_context(strict=True):
        found = fit_on_folds(ForgetsTheLedger(), data, return_estimator=True)
    assert [model.privacy_.epsilon for model in found["estimator"]] == [1.0] * 5


def is_strict():
    return dpselect.get_config()["strict"]


@pytest.mark.slow  # test_a_leak_in_a_worker_is_an_error is much like it
def test_strict_mode_reaches_relatives(relatives, strangers):
    with dpselect.config_context(strict=True):
        assert relatives.apply(is_strict) and not strangers.apply(is_strict)
    assert not relatives.apply(is_strict)


def lenient_fit(model, X, y):
    with dpselect.config_context(strict=False):
        return fit_one(model, X, y)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpselect.PrivacyLeakWarning")
def test_what_a_worker_sets_itself_counts(strangers, data):
    with dpselect.config_context(strict=True):
        assert strangers.apply(lenient_fit, (DPRidge(target_range=(-1, 1)), *data)) == 1.0
        assert strangers.apply(lenient_fit, (DPLogisticRegression(), *data)) == 1.0
        with pytest.raises(PrivacyLeakError):
            strangers.apply(fit_one, (DPLogisticRegression(), *data))
