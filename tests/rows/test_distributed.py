"""Rows on a Dask cluster of two processes: nothing but sums comes back, whatever happens there."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone

from dpselect import (
    AccuracyFirstSearchCV,
    DPHistogramDensity,
    DPLogisticRegression,
    DPRidge,
    StabilityGridSearchCV,
)
from dpselect.linear_model.design import Design
from dpselect.linear_model.ridge import problem as ridge
from dpselect.preprocessing import TableEncoder
from dpselect.rows import as_lazy, block_map, block_sum

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

pytestmark = [
    pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::dpselect.PrivacyLeakWarning"),
    # of workers that are killed on purpose
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

SECRET = 98765.4321
# names of tasks in logs are hexadecimal digits, which may be those of the secret
TASK_NAMES = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}")


@pytest.fixture(scope="module")
def client():
    # workers are new interpreters, which find the library where this one has
    path = os.pathsep.join(filter(None, sys.path))
    # by default a cluster gives a worker up that was killed twice within 15 seconds, as some are here
    settings = {
        "distributed.nanny.environ": {"PYTHONPATH": path},
        "distributed.deploy.lost-worker-timeout": "1h",
    }
    with dask.config.set(settings):
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client


@pytest.fixture
def gathered(client, monkeypatch):
    """The sizes of all that comes to the client, one number for each computation."""
    sizes, gather = [], client.gather

    def counting(futures, *args, **kwargs):
        found = gather(futures, *args, **kwargs)
        if not isinstance(found, list):
            return found  # (a coroutine, of the client itself)
        sizes.append(len(distributed.protocol.pickle.dumps(found)))
        return found

    monkeypatch.setattr(client, "gather", counting)
    return sizes


@pytest.fixture
def counter(client):
    class Counter(distributed.SchedulerPlugin):
        name, tasks = "counter", 0

        def transition(self, key, start, finish, *args, **kwargs):
            self.tasks += (start, finish) == ("processing", "memory")

    counter = Counter()
    client.cluster.scheduler.add_plugin(counter)
    yield counter
    client.cluster.scheduler.remove_plugin(counter.name)


def spread(array, size=500):
    return da.from_array(array, chunks=size)


SEARCH = StabilityGridSearchCV(
    DPLogisticRegression(classes=[0, 1]),
    {"alpha": [0.1, 1.0]},
    strategy="stability",
    cv=2,
    random_state=0,
)
FIRST = AccuracyFirstSearchCV(
    DPRidge(alpha=0.1, target_range=(-1, 1)),
    {"epsilon": np.geomspace(0.1, 10, 10)},
    target=0.4,
    criterion="risk",
    method="above_threshold",
    on_failure="last",
    random_state=0,
)
MODELS = [
    DPRidge(random_state=0, target_range=(-1, 1)),
    DPLogisticRegression(classes=[0, 1], random_state=0),
    DPHistogramDensity(bounds=(-1, 1), bin_width=1.0, random_state=0),
    SEARCH,
    FIRST,
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_models_are_those_of_rows_in_memory(client, gathered, records, model):
    X, labels, targets = records
    y = targets if model in (MODELS[0], FIRST) else labels
    expected, model = clone(model).fit(X, y), clone(model).fit(spread(X), spread(y))
    expected, found = (getattr(m, "best_estimator_", m) for m in (expected, model))
    attribute = "density_" if hasattr(found, "density_") else "coef_"
    np.testing.assert_allclose(getattr(found, attribute), getattr(expected, attribute), atol=1e-9)
    # a chunk has 16,000 bytes
    assert gathered and max(gathered) < 3000


@pytest.mark.slow
def test_scores_gather_no_rows_and_predictions_wait(client, gathered, records):
    X, labels, _ = records
    model = DPLogisticRegression(classes=[0, 1], random_state=0).fit(X, labels)
    assert model.score(spread(X), spread(labels)) == model.score(X, labels)
    assert len(gathered) == 1 and gathered[0] < 1000
    predicted = model.predict(spread(X))
    assert len(gathered) == 1
    np.testing.assert_array_equal(predicted.compute(), model.predict(X))


def test_a_pass_is_one_computation_of_few_tasks(client, gathered, records):
    X, _, targets = records
    DPRidge(target_range=(-1, 1)).fit(spread(X), spread(targets))
    assert len(gathered) == 1
    del gathered[:]
    rows = spread(X)
    norms = block_map(lambda X: (X * X).sum(axis=1), rows)
    assert not gathered
    block_sum(lambda X, norms: (X.T @ norms,), rows, norms)
    assert len(gathered) == 1


@pytest.mark.slow
def test_a_fit_checks_and_clips_once_and_takes_few_tasks(client, records, counter, monkeypatch):
    X, labels, _ = records
    rows, y = client.persist(spread(X)), client.persist(spread(labels))
    distributed.wait([rows, y])
    weighted = dict(class_weight={0: 2.0}, fit_intercept=False)
    models = [
        DPLogisticRegression(1e3, classes=[0, 1], data_norm=1.0, alpha=1e-3, random_state=0, **settings)
        for settings in ({}, weighted)
    ]
    counter.tasks = 0
    found = [clone(models[0]).fit(rows, y)]
    assert counter.tasks <= 20 * 4
    found.append(clone(models[1]).fit(rows, y))
    # read in every pass, where workers have no memory for it
    monkeypatch.setattr("dpselect.rows.distributed.PERSISTED_FRACTION", 0.0)
    for model, held in zip(models, found):
        np.testing.assert_allclose(model.fit(rows, y).coef_, held.coef_, atol=1e-8)
        np.testing.assert_allclose(clone(model).fit(X, labels).coef_, held.coef_, atol=1e-8)


def longer_each_time(block, since):
    """Rows that are longer whenever they are computed anew."""
    return block * (1 + 1e3 * (time.time() - since))


@pytest.mark.slow
def test_factors_are_made_anew_with_the_rows_they_belong_to(client, records):
    """A worker is lost with its rows, and the source then gives others, too long for the old factors."""
    X, labels, _ = records
    rows = as_lazy(spread(X).map_blocks(longer_each_time, since=time.time(), dtype=float))
    design, _ = Design(rows, 1.0, None).clipped_once(lambda y: y[:, None], spread(labels), 1)
    # a twin that holds the factors alone
    twin = Design(rows, 1.0, None)
    twin.factor = block_map(twin.clip, rows).persist()

    def longest(design):
        norms = design.map(lambda rows: np.linalg.norm(rows.matrix(np.ones((1, 1))), axis=1), columns=1)
        lengths = design.map(lambda rows: np.linalg.norm(rows.X, axis=1), columns=1)
        return norms.max().compute(), lengths.compute()

    before = longest(design)
    assert before[0] <= 1 < longest(twin)[0]
    with killed_worker(client, 0.0):
        pass
    after = longest(design)
    assert after[0] <= 1 and (after[1] > before[1]).any()


def moments(X):
    return (np.vstack([X.T @ X, X.sum(axis=0)]),)


@pytest.mark.slow
def test_sums_have_one_order(client, records):
    # numbers whose sum depends on the order of the additions
    X = records[0] * np.geomspace(1, 1e12, 2000)[:, None]
    rows = spread(X, 50)
    sums = [block_sum(moments, rows)[0] for _ in range(8)]
    with dask.config.set(scheduler="synchronous"):
        sums.append(block_sum(moments, rows)[0])
    assert all((one == sums[0]).all() for one in sums)


@pytest.mark.slow
def test_chunks_of_a_worker_share_tasks_and_results_do_not_tell(client, records, counter, monkeypatch):
    """Wherever chunks are, and however many share a task, sums and samples are the same."""
    X, labels, _ = records
    X = X * np.geomspace(1, 1e12, 2000)[:, None]
    workers, lazy = sorted(client.nthreads()), spread(X, 90)

    def placed(owner):
        """Each chunk in the memory of the worker that `owner` says."""
        parts = [
            client.scatter(chunk, workers=workers[owner(i)], hash=False)
            for i, chunk in enumerate(np.split(X, range(90, 2000, 90)))
        ]
        parts = [
            da.from_delayed(part, (length, 4), float) for part, length in zip(parts, lazy.chunks[0])
        ]
        rows = client.persist(da.concatenate(parts))
        distributed.wait(rows)
        return rows

    alternating = placed(lambda i: i % 2)
    y = spread(labels, 90).persist()
    distributed.wait(y)
    counter.tasks = 0
    DPRidge(target_range=(0, 1)).fit(alternating, y)
    # of 23 chunks: two for each worker, and one that adds
    assert counter.tasks == 5

    def read(rows):
        held, y = Design(as_lazy(rows), 1e13, 1.0).clipped_once(
            lambda y: y[:, None], spread(labels, 90), 1
        )
        (whole,), (direct,) = held.sum(products, y, columns=1), block_sum(moments, rows)
        sampled = held.sample(100, y)
        taken = sampled[0].on_few_rows(lambda design, y: np.hstack([design.X, y]), sampled[1])
        return len(held.X.parts), whole, direct, taken

    n_parts, *expected = read(lazy)
    assert n_parts == 4 == len(as_lazy(alternating)._together)
    others = [read(rows) for rows in (alternating, placed(lambda i: int(i < 11)), placed(lambda i: 0))]
    monkeypatch.setattr("dpselect.rows.cluster.TASKS_A_THREAD", 1000)
    others += [read(lazy), read(alternating)]
    assert [n_parts for n_parts, *_ in others] == [4, 4, 2, 23, 23]
    for _, *found in others:
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_workers_with_copies_share_the_work(client, records):
    rows = client.persist(spread(records[0]))
    client.replicate(distributed.futures_of(rows))
    groups = as_lazy(rows)._together
    assert sorted(group.worker for group in groups) == sorted(2 * list(client.nthreads()))
    assert sorted(i for group in groups for i in group.chunks) == [0, 1, 2, 3]


@pytest.mark.slow
@pytest.mark.parametrize("twin", [False, True])
def test_tasks_go_to_the_rows(client, records, monkeypatch, twin):
    """Not the rows to the tasks, though these are so few that Dask takes them for reading a source."""

    class Elsewhere(distributed.SchedulerPlugin):
        name, tasks, moved = "elsewhere", 0, 0

        def transition(self, key, start, finish, *args, **kwargs):
            if finish == "processing" and "_group" in str(key):
                task = scheduler.tasks[key]
                self.tasks += 1
                self.moved += any(
                    task.processing_on not in rows.who_has
                    for rows in task.dependencies
                    if rows.nbytes > 5000  # (chunks of labels may be elsewhere)
                )

    if twin:
        monkeypatch.setattr("dpselect.rows.distributed.near", lambda group: nullcontext())
    X, labels, _ = records
    rows, y = client.persist(spread(X)), client.persist(spread(labels))
    distributed.wait([rows, y])
    scheduler, elsewhere = client.cluster.scheduler, Elsewhere()
    scheduler.add_plugin(elsewhere)
    for _ in range(5):
        DPLogisticRegression(1e3, classes=[0, 1], alpha=1e-3, random_state=0).fit(rows, y)
    scheduler.remove_plugin(elsewhere.name)
    assert elsewhere.tasks > 50 and (elsewhere.moved > 0) == twin


def products(rows, y):
    return (rows.adjoint_dot(y * np.ones(1)),)


def slowly(block):
    time.sleep(0.2)
    return block


@contextmanager
def killed_worker(client, after):
    """Kill the worker that holds the most, so many seconds from now; in the end, wait for another."""
    held = client.has_what()
    lost = max(held, key=lambda worker: len(held[worker]))
    (nanny,) = (nanny for nanny in nannies(client) if nanny.worker_address == lost)
    timer = threading.Timer(after, os.kill, (nanny.pid, signal.SIGKILL))
    timer.start()
    yield
    timer.join()
    known = client.cluster.scheduler.workers
    while lost in known or not all(
        nanny.status == nanny.process.status == distributed.Status.running
        and nanny.worker_address in known
        for nanny in nannies(client)
    ):
        time.sleep(0.05)


def nannies(client):
    return client.cluster.workers.values()


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(client, records, monkeypatch):
    X, _, targets = records
    calls, original = [], ridge.grid_noise

    def counting(*args):
        calls.append(args)
        return original(*args)

    monkeypatch.setattr(ridge, "grid_noise", counting)
    expected = DPRidge(random_state=0, norm="l1", target_range=(-1, 1)).fit(X, targets)
    slow = spread(X, 100).map_blocks(slowly, dtype=float)
    with killed_worker(client, 0.7):
        model = DPRidge(random_state=0, norm="l1", target_range=(-1, 1)).fit(slow, spread(targets))
    np.testing.assert_array_equal(model.gram_, expected.gram_)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert len(calls) == 2  # one for each fit


@pytest.mark.slow
def test_labels_in_memory_survive_a_killed_worker(client, records):
    X, labels, _ = records
    model = DPLogisticRegression(classes=[0, 1], random_state=0)
    expected = clone(model).fit(spread(X, 500), labels).coef_
    slow = spread(X, 500).map_blocks(lambda block: (time.sleep(0.02), block)[1], dtype=float)
    with killed_worker(client, 0.5):
        np.testing.assert_array_equal(model.fit(slow, labels).coef_, expected)


@pytest.mark.slow
def test_workers_hold_codes_of_a_table_and_one_of_them_is_lost(client):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    n, levels = 20_000, [f"level {i}" for i in range(16)]
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"z": rng.random(n), "c": rng.choice(levels, n)})
    y = rng.choice([-1.0, 1.0], (n, 1))
    encoder = TableEncoder({"z": (0, 1), "c": levels}).fit(table)
    frame, labels = dd.from_pandas(table, npartitions=8), spread(y[:, 0], n // 8)
    rows = encoder.transform(as_lazy(frame))
    design, targets = Design(rows, 0.9, 1.0).clipped_once(lambda y: y[:, None], labels, 1)
    # numbers and factors, a code for each row, and labels; 17 features would be 136 bytes
    parts = distributed.futures_of(design.X.parts)
    distributed.wait(parts)
    held = sum(client.cluster.scheduler.tasks[part.key].nbytes for part in parts)
    assert n * (8 + 8 + 1 + 8) < held < n * 40

    def total(rows, y):
        return (rows.adjoint_dot(y * rows.dot(np.ones((rows.X.shape[1] + 1, 1)))),)

    (before,) = design.sum(total, targets, columns=1)
    with killed_worker(client, 0.0):
        pass
    np.testing.assert_array_equal(design.sum(total, targets, columns=1)[0], before)
    (expected,) = Design(encoder.transform(table), 0.9, 1.0).sum(total, y, columns=1)
    np.testing.assert_allclose(before, expected, rtol=1e-9)
    # of partitions that are there it is known where, and those of a worker share tasks
    for there in (frame.persist(), frame["z"].persist()):
        distributed.wait(there)
        groups = as_lazy(there)._together
        assert {group.worker for group in groups} <= set(client.nthreads()) and len(groups) <= 4


def spoilt(array, value, dtype):
    """A Dask array with `value` in its third chunk."""

    def spoil(block, block_info=None):
        block = block.astype(dtype)
        if block_info[0]["chunk-location"][0] == 2:
            block[7] = value
        return block

    return spread(array).map_blocks(spoil, dtype=dtype, meta=np.empty((0,) * array.ndim, dtype))


def fail(block):
    raise KeyError(SECRET)


@pytest.mark.parametrize(
    "value, dtype, message",
    [
        (np.nan, float, "Input X contains NaN"),
        (f"{SECRET}x", object, "text that is not a number"),
        ({SECRET: 1}, object, "no number"),
    ],
)
def test_errors_hold_no_records(client, records, value, dtype, message):
    X, labels, _ = records
    X = spoilt(X * SECRET, value, dtype)
    check_error(client, lambda: DPLogisticRegression(classes=[0, 1]).fit(X, labels), message)


def test_errors_hold_no_labels(client, records):
    X, labels, targets = records
    strange = spoilt(labels * 1.0, SECRET, float)
    check_error(
        client,
        lambda: DPLogisticRegression(classes=[0, 1]).fit(spread(X), strange),
        "label that is not in classes",
    )
    words = spoilt(targets, f"{SECRET}x", "U20")
    check_error(
        client, lambda: DPRidge(target_range=(-1, 1)).fit(spread(X), words), "y must hold numbers"
    )
    search = StabilityGridSearchCV(DPLogisticRegression(classes=[0, 1]), {"alpha": [0.1, 1.0]})
    check_error(client, lambda: search.fit(spread(X), strange), "label that is not in classes")
    # last: what other people's tasks raise is in the logs
    check_error(
        client,
        lambda: DPRidge(target_range=(-1, 1)).fit(spread(X).map_blocks(fail, dtype=float), targets),
        r"could not be computed \(KeyError\)",
        logs=False,
    )


@pytest.mark.usefixtures("serial")
def test_rows_are_counted_by_one_column_of_files():
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    read = []

    def part(i, columns=None):
        read.append(columns)
        return pd.DataFrame({"a": np.arange(5.0 + i), "b": 1.0})[columns or ["a", "b"]]

    frame = dd.from_map(part, range(3), meta=pd.DataFrame({"a": [0.0], "b": [0.0]}))
    rows = as_lazy(frame)
    assert rows.lengths == (5, 6, 7) and read == [["a"]] * 3
    np.testing.assert_array_equal(rows.computed(), frame.compute().to_numpy())


@pytest.mark.usefixtures("serial")
def test_chunks_have_the_shape_that_dask_says(records):
    """The number of rows is in gram_ without noise, and one column would stand for all."""
    X, _, targets = records
    filtered = spread(X).map_blocks(lambda rows: rows[targets[: len(rows)] > 0], dtype=float)
    expected = spread(targets).map_blocks(lambda y: y[targets[: len(y)] > 0], dtype=float)
    narrow = spread(X).map_blocks(lambda rows: rows[:, :1], dtype=float)
    assert filtered.shape == narrow.shape == X.shape and expected.shape == targets.shape
    for rows, y in ((filtered, expected), (filtered, targets), (spread(X), expected), (narrow, targets)):
        with pytest.raises(ValueError, match="another shape than its Dask collection says"):
            DPRidge(target_range=(-1, 1)).fit(rows, y)
    filtered.compute_chunk_sizes()
    expected.compute_chunk_sizes()
    model = DPRidge(target_range=(-1, 1)).fit(filtered, expected)
    assert model.gram_[-1, -1] == model.n_samples_ == len(filtered)


@pytest.mark.usefixtures("serial")
def test_errors_of_tasks_are_told_alike_wherever_they_come_up(records):
    X, _, targets = records
    strange = spread(X).map_blocks(fail, dtype=float)
    model = DPHistogramDensity(bounds=(-1, 1)).fit(X)
    with pytest.raises(ValueError, match="KeyError") as caught:
        model.score(strange)
    assert "98765" not in str(caught.value) and caught.value.__context__ is None

    def lost(block):
        try:
            fail(block)
        except KeyError as error:
            raise OSError("part-0.parquet") from error

    with pytest.raises(OSError, match="part-0") as caught:
        DPRidge(target_range=(-1, 1)).fit(spread(X).map_blocks(lost, dtype=float), targets)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def check_error(client, fit, message, logs=True):
    """An error has the message, and neither it nor the logs of the workers hold the secret."""
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        fit()
    told = caught.value
    while told is not None:
        assert "98765" not in str(told) + repr(told.args)
        told = told.__cause__ or told.__context__
    if logs:
        assert "98765" not in TASK_NAMES.sub("", str(client.get_worker_logs()))


def test_too_many_labels_are_not_gathered(client, gathered, records, monkeypatch):
    from dpselect.rows import labels

    monkeypatch.setattr(labels, "MAX_LABELS", 10)  # (workers keep 10,000)
    X, _, targets = records
    with pytest.raises(ValueError, match="more than"):
        with dask.config.set(scheduler="synchronous"):
            DPLogisticRegression().fit(spread(X), spread(targets))


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "dask"])
def test_jobs_of_joblib(client, records, backend):
    X, labels, _ = records
    expected = clone(SEARCH).fit(X, labels)
    for rows, y in ((X, labels), (spread(X), spread(labels))):
        with parallel_config(backend, n_jobs=2):
            search = clone(SEARCH).set_params(n_jobs=2).fit(rows, y)
        assert search.best_index_ == expected.best_index_
        np.testing.assert_allclose(
            search.best_estimator_.coef_, expected.best_estimator_.coef_, atol=1e-9
        )


def sums_of_held(X, labels):
    """Of chunks that are not computed, so that a fit waits until they are held."""
    design, y = Design(as_lazy(spread(X)), 1.0, None).clipped_once(
        lambda y: y[:, None], spread(labels), 1
    )
    return design.sum(products, y, columns=1)[0]


@pytest.mark.slow
def test_a_fit_may_be_a_task(client, records):
    """One for each thread of the cluster; they hang if they keep their threads while they wait."""
    X, labels, _ = records
    fits = [client.submit(sums_of_held, X, labels, pure=False) for _ in client.nthreads()]
    expected = sums_of_held(X, labels)
    assert len(fits) > 1
    for fit in fits:
        np.testing.assert_array_equal(fit.result(), expected)


@pytest.mark.slow
def test_the_library_does_not_import_dask():
    code = "import sys, dpselect; sys.exit('dask' in sys.modules or 'distributed' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
