"""No setting of another library, and none of Python, decides what is checked, or what is released.

The walk says this of the check of finite numbers; here it is said of all other checks.
"""

import ast
import itertools
import subprocess
import sys
import warnings
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import sklearn
from joblib import parallel_config

import dpselect
from dpselect import (
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    PrivacyLeakError,
    PrivateModel,
    StabilityGridSearchCV,
)

from ..private_model.other_library import SignedSum
from .walk import SWITCHES, switched

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, (200, 3))
Y = (X[:, 0] > 0).astype(int)
MODELS = {
    "logistic": DPLogisticRegression(classes=[0, 1], random_state=0),
    "svc": DPLinearSVC(classes=[0, 1], random_state=0),
    "huber": DPHuberRegressor(target_range=(-1, 1), random_state=0),
    "poisson": DPPoissonRegressor(target_bound=2.0, random_state=0),
    "ridge": DPRidge(target_range=(-1, 1), random_state=0),
}


def rows_with(value):
    rows = X.copy()
    rows[7] = value
    return rows


@pytest.fixture(autouse=True)
def seeds_are_meant():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpselect.SeededNoiseWarning)
        yield


@pytest.mark.parametrize(
    "switch",
    [
        pytest.param(name, marks=() if name in ("numpy raises", "all") else pytest.mark.slow)
        for name in SWITCHES
    ],
)
def test_the_same_is_released(switch):
    for model, value in itertools.product(MODELS.values(), (0.25, 1e-200, 1e200)):
        expected = released(model, value)
        with switched(switch):
            found = sklearn.clone(model).fit(rows_with(value), Y)
        assert found.coef_.tobytes() == expected.coef_.tobytes()
        assert found.privacy_.epsilon == expected.privacy_.epsilon == 1.0


@cache
def released(model, value):
    return sklearn.clone(model).fit(rows_with(value), Y)


def fit_to(value):
    """Fit to targets of which one is a number."""
    y = X[:, 1].copy()
    y[7] = value
    return sklearn.clone(MODELS["huber"]).fit(X, y)


def ends_with_an_error(value):
    try:
        with np.errstate(all="raise"):
            fit_to(value)
    except FloatingPointError:
        return True
    return False


def test_the_error_state_of_numpy_does_not_tell_records_apart(monkeypatch):
    assert not ends_with_an_error(0.25) and not ends_with_an_error(1e-200)
    # the twin: numpy's settings as they are found
    monkeypatch.setattr("dpselect.base.estimator.usual_settings", nullcontext)
    assert not ends_with_an_error(0.25) and ends_with_an_error(1e-200)


def heard(value):
    """What numpy's hook of errors is given during a fit."""
    events = []
    before = np.seterrcall(lambda kind, flag: events.append(kind))
    try:
        with np.errstate(all="call"):
            fit_to(value)
    finally:
        np.seterrcall(before)
    return events


def test_nor_does_a_hook_of_numpy_hear_of_a_record(monkeypatch):
    assert heard(1e-200) == []
    monkeypatch.setattr("dpselect.base.estimator.usual_settings", nullcontext)
    assert heard(1e-200) != [] and heard(0.25) == []


def leaking(bound=None):
    return PrivateModel(
        SignedSum(bound=bound),
        epsilon_parameter="epsilon",
        classes_parameter="labels",
        classes=[0, 1],
        adjacency="add or remove one record",
        conversion="remove and add",
    )


@pytest.mark.parametrize("action", ["ignore", "once", "default", "module", "error"])
def test_no_filter_hides_a_leak(action):
    with warnings.catch_warnings():
        warnings.simplefilter(action)
        for _ in range(2):  # the second time the place is known
            with dpselect.config_context(strict=True), pytest.raises(PrivacyLeakError):
                DPLogisticRegression().fit(X, Y)
            with pytest.raises(PrivacyLeakError):
                leaking().fit(X, Y)
    assert leaking(1.0).fit(X, Y).estimator_.coef_.shape == (3,)


SCRIPT = """
import warnings
import numpy as np, dpselect
from dpselect import DPLogisticRegression, PrivacyLeakError
X = np.random.default_rng(0).uniform(-1, 1, (50, 2))
with dpselect.config_context(strict=True):
    try:
        DPLogisticRegression().fit(X, (X[:, 0] > 0).astype(int))
    except PrivacyLeakError:
        print("refused")
"""


@pytest.mark.slow
def test_nor_do_filters_of_the_environment():
    run = subprocess.run(
        [sys.executable, "-OO", "-W", "ignore", "-c", SCRIPT],
        capture_output=True,
        text=True,
        cwd=Path(dpselect.__file__).parents[1],
    )
    assert run.stdout == "refused\n", run.stderr


def asserts(source):
    """Lines that python -O leaves out."""
    return [node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert)]


@pytest.mark.slow
def test_nothing_is_checked_by_an_assert():
    package = Path(dpselect.__file__).parent
    found = {path.name: asserts(path.read_text()) for path in package.rglob("*.py")}
    assert len(found) > 100 and not {name: lines for name, lines in found.items() if lines}
    assert asserts("def f(x):\n    assert x > 0") == [2]


def checks_of_others(source):
    """Calls of scikit-learn's check of finite numbers, which a setting turns off."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and node.id == "assert_all_finite":
            yield node.lineno
        if isinstance(node, ast.Call):
            called = [node.func, *node.args]  # by itself, or by `unquoted`
            names = {getattr(each, "id", None) for each in called}
            whole = any(keyword.arg is None for keyword in node.keywords)
            given = {keyword.arg for keyword in node.keywords}
            off = {"ensure_all_finite", "skip_check_array"} & given
            if names & {"check_array", "check_X_y", "validate_data"} and not (off or whole):
                yield node.lineno


@pytest.mark.slow
def test_scikit_learn_is_not_relied_on_for_finite_numbers():
    package = Path(dpselect.__file__).parent
    found = {
        f"{path.parent.name}/{path.name}": list(checks_of_others(path.read_text()))
        for path in package.rglob("*.py")
    }
    # a table of zeros, a partial that is completed, and steps that predict without this library
    known = {
        "preprocessing/table_encoder.py": 1,
        "records/records.py": 1,
        "preprocessing/plain_rows.py": 2,
    }
    assert {name: len(lines) for name, lines in found.items() if lines} == known
    assert list(checks_of_others("unquoted(check_array, X)\nassert_all_finite(X)")) == [1, 2]


def refused(backend, rows):
    search = StabilityGridSearchCV(
        DPLogisticRegression(classes=[0, 1]),
        {"alpha": [0.1, 1.0]},
        strategy="stability",
        scoring="brier",
        n_jobs=2,
    )
    with parallel_config(backend), sklearn.config_context(assume_finite=True), np.errstate(all="raise"):
        try:
            search.fit(rows, Y)
        except ValueError as error:
            return "NaN" in str(error)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing", "sequential"])
def test_workers_refuse_what_this_process_refuses(backend):
    assert refused(backend, rows_with(np.nan)) and not refused(backend, X)


@pytest.mark.slow
@pytest.mark.parametrize("environment", [{}, {"SKLEARN_ASSUME_FINITE": "1"}])
def test_the_environment_of_a_worker_of_dask_decides_nothing(environment):
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster

    with dask.config.set({"distributed.nanny.environ": environment}):
        with (
            LocalCluster(1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
            Client(cluster),
        ):
            for value in (np.nan, np.inf):
                with pytest.raises(ValueError, match="Input X contains"):
                    DPLogisticRegression(classes=[0, 1]).fit(da.from_array(rows_with(value), 50), Y)
            fit = DPLogisticRegression(classes=[0, 1]).fit(da.from_array(X, 50), Y)
    assert np.isfinite(fit.coef_).all()
