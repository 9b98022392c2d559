"""Processes that are killed while they spend: the benchmark of faults, on a small scale."""

import importlib.util
from pathlib import Path

import pytest

PLACE = Path(__file__).parents[2] / "benchmarks" / "ledger_faults.py"


@pytest.fixture(scope="module")
def faults():
    spec = importlib.util.spec_from_file_location("ledger_faults", PLACE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kills", [20, pytest.param(60, marks=pytest.mark.slow)])
def test_killed_processes_leave_a_true_ledger(faults, tmp_path, kills):
    seen = faults.run(kills, n_workers=2, reserved_first=True, seed=0, folder=tmp_path)
    assert seen["kills"] == kills and seen["searches"] > 0
    assert seen["not covered"] == seen["corrupt"] == seen["refused after release"] == 0
    assert seen["released"] <= seen["spent"]


@pytest.mark.slow
def test_a_twin_that_spends_after_its_release_is_caught(faults, tmp_path):
    def is_caught(seed):
        folder = tmp_path / str(seed)
        folder.mkdir()
        seen = faults.run(50, n_workers=2, reserved_first=False, seed=seed, folder=folder)
        return seen["not covered"] > 0

    assert any(map(is_caught, range(10)))  # the first will do


@pytest.mark.slow
def test_eight_processes_lose_no_spend(faults, tmp_path):
    expected, found, _, entries = faults.spend_together(tmp_path, 8, 50)
    assert found == expected and entries == 400
