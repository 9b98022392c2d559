"""Memory maps: what is read is given back, unless it would be lost."""

import mmap
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from dpselect import DPHistogramDensity, DPLogisticRegression, DPRidge
from dpselect.rows import as_lazy, block_map, block_sum, is_lazy, sample
from dpselect.rows import memory_maps as module

N_ROWS, N_COLUMNS = 5000, 100

GROWTH = """
import resource, sys
import numpy as np
from dpselect import DPLogisticRegression, DPRidge

def largest():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

n, mode = int(sys.argv[2]), sys.argv[3]
X = np.memmap(sys.argv[1], dtype=np.float64, mode=mode, shape=(n, 200))
y = np.arange(n) % 2
small = [X[:1000] * 1.0, y[:1000]]
DPRidge(target_range=(-1, 1)).fit(*small)
DPLogisticRegression(classes=[0, 1]).fit(*small)
before = largest()
model = DPRidge(target_range=(-1, 1)).fit(X, y)
model.score(X[: n // 2], y[: n // 2])
if mode == "r":
    DPLogisticRegression(classes=[0, 1]).fit(X, y)
print(largest() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux counts pages of files")
@pytest.mark.parametrize("mode", ["r", "r+"])
def test_a_gigabyte_takes_no_memory(tmp_path, mode):
    n = 2**30 // (8 * 200)
    path = tmp_path / "sparse"
    with open(path, "wb") as file:
        file.truncate(n * 200 * 8)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", GROWTH, str(path), str(n), mode],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )
    assert float(done.stdout) < 300  # MB


def test_a_sample_gives_back_what_it_read_before_it_reads_on(tmp_path, monkeypatch):
    # (the sparse file above has no pages that could stay)
    held, most = set(), []
    load, release = module.MemoryMapRows.load, module.MemoryMapRows.release

    def loading(self, rows):
        held.add(rows.start)
        most.append(len(held))
        return load(self, rows)

    def releasing(self, rows):
        release(self, rows)
        held.discard(rows.start)

    monkeypatch.setattr(module.MemoryMapRows, "load", loading)
    monkeypatch.setattr(module.MemoryMapRows, "release", releasing)
    X = np.memmap(tmp_path / "rows", dtype=np.float64, mode="w+", shape=(10_000, 3))
    X[:] = np.arange(10_000)[:, None]
    rows, numbers = sample(1000, X, np.arange(10_000))
    assert (rows == numbers[:, None]).all() and len(most) > 10
    assert max(most) == 1 and not held


@pytest.fixture
def table():
    return np.random.default_rng(0).normal(size=(N_ROWS, N_COLUMNS))


def stored(table, tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, table)
    return path


@pytest.mark.parametrize("dtype", ["f2", "f4", ">f8", "i1", "u2", "i8", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_type_of_number(tmp_path, dtype, order):
    rng = np.random.default_rng(0)
    table = np.array(rng.integers(0, 2, size=(300, 3)), dtype=dtype, order=order)
    mapped = np.load(stored(table, tmp_path), mmap_mode="r")
    y = rng.integers(0, 2, size=300)
    with pytest.warns(Warning):
        expected = DPRidge(random_state=0, target_range=(-1, 1)).fit(table, y)
        model = DPRidge(random_state=0, target_range=(-1, 1)).fit(mapped, y)
    np.testing.assert_array_equal(model.coef_, expected.coef_)


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_what_was_written_stays(table, tmp_path, mode):
    path = stored(table, tmp_path)
    mapped = np.load(path, mmap_mode=mode)
    if mode != "r":
        mapped[:] = 7.0
    (total,) = block_sum(lambda X: (X.sum(),), mapped)
    assert total == pytest.approx(table.sum() if mode == "r" else 7.0 * table.size)
    assert (mapped == (table if mode == "r" else 7.0)).all()
    del mapped
    assert (np.load(path) == (7.0 if mode == "r+" else table)).all()


@pytest.mark.parametrize("mode, is_given", [("r", True), ("r+", True), ("c", False)])
def test_private_maps_are_not_given_back(table, tmp_path, mode, is_given, monkeypatch):
    mapped = np.load(stored(table, tmp_path), mmap_mode=mode)
    origin, buffer = module._origin(mapped)
    calls = []

    class Recording(mmap.mmap):
        def madvise(self, option, start, length):
            calls.append((start, start + length))

    recording = Recording(-1, len(buffer))
    monkeypatch.setattr(module, "_origin", lambda X: (origin, recording))
    monkeypatch.setattr(module, "_address", lambda X: 0 if X.dtype == np.uint8 else 10**6)
    module.release_pages(mapped[100:200])
    assert bool(calls) == is_given
    if is_given:
        ((low, high),) = calls
        assert low % mmap.PAGESIZE == 0 and low <= 10**6 and high >= 10**6 + 100 * N_COLUMNS * 8


def test_where_views_lie(table, tmp_path):
    mapped = np.load(stored(table, tmp_path), mmap_mode="r")
    for view in (mapped, mapped[3:], np.asarray(mapped)[:, 2:5], mapped[::-1], mapped.T):
        assert module.is_memory_map(view) and is_lazy(as_lazy(view))
        module.release_pages(view)
        assert (view.copy() == view).all()
    for copy in (table, mapped.copy(), np.array(mapped), mapped + 1):
        assert not module.is_memory_map(np.asarray(copy))


def test_other_processes_map_the_file_again(table, tmp_path):
    path = stored(table, tmp_path)
    rows = as_lazy(np.load(path, mmap_mode="r")[1000:])
    pickled = pickle.dumps(rows)
    assert len(pickled) < 10_000
    np.testing.assert_array_equal(block_map(np.asarray, pickle.loads(pickled)), table[1000:])
    private = np.load(path, mmap_mode="c")
    private[:] = 7.0
    sent = pickle.loads(pickle.dumps(as_lazy(private)))
    assert (block_map(np.asarray, sent) == 7.0).all()


def test_large_parts_are_not_copied(table, tmp_path, monkeypatch):
    rows = as_lazy(np.load(stored(table, tmp_path), mmap_mode="r"))
    indices = np.arange(0, N_ROWS, 2)
    assert isinstance(rows.pick(indices), np.ndarray)
    monkeypatch.setattr(module, "COPIED_ELEMENTS", 1000)
    part = rows.pick(indices)
    assert is_lazy(part)
    np.testing.assert_array_equal(block_map(np.asarray, part), table[indices])


def test_what_is_refused(table, tmp_path):
    table[4000, 3] = np.nan
    y = np.arange(N_ROWS) % 2
    mapped = np.load(stored(table, tmp_path), mmap_mode="r")
    for model in (DPRidge(target_range=(-1, 1)), DPLogisticRegression(classes=[0, 1])):
        with pytest.raises(ValueError, match="Input X contains NaN") as caught:
            model.fit(mapped, y)
        assert caught.value.__context__ is None
        with pytest.raises(ValueError, match="Expected 2D array"):
            model.fit(mapped[:, 0], y)
        with pytest.raises(ValueError, match="minimum of 1 is required"):
            model.fit(mapped[:0], y[:0])
    with pytest.raises(ValueError, match="10000000 cells"):
        DPHistogramDensity(bounds=(0, 1)).fit(mapped)
    model = DPRidge(target_range=(-1, 1)).fit(mapped[:1000], y[:1000])
    with pytest.raises(ValueError, match="X has 2 features"):
        model.predict(mapped[:1000, :2])
