"""Types of the public functions: all are there, and mypy finds mistakes with them."""

import inspect
from pathlib import Path

import pytest

import dpselect
from dpselect import audit, mechanisms, metrics, noise, preprocessing
from dpselect.accounting import totals as accounting
from dpselect.ledger.entry import LedgerEntry
from dpselect.ledger.reservation import Reservation
from dpselect.model_selection.accuracy_first.accuracy_plan import AccuracyPlan
from dpselect.model_selection.plan import SelectionPlan

ROOT = Path(dpselect.__file__).parents[1]
SPECIAL = ("__init__", "__call__", "__enter__", "__exit__")

RIGHT = """
from pathlib import Path

import numpy as np

import dpselect
from dpselect import DPLogisticRegression, DPRidge, PrivacyLedger, PrivacyLoss
from dpselect import AccuracyFirstSearchCV, StabilityGridSearchCV, Thresholdout
from dpselect.accounting.totals import composed_epsilon
from dpselect.mechanisms import noisy_argmax
from dpselect.metrics import RampScore
from dpselect.noise import root_stream
from dpselect.preprocessing import BoundedScaler

X = BoundedScaler([(0, 120), (30, 300)]).fit([[60, 30], [20, 70]]).transform([[60, 30], [20, 70]])
y = [0, 1]

model = DPLogisticRegression(epsilon=1, alpha="auto", classes=[0, 1]).fit(X, y)
same: DPLogisticRegression = model
labels: np.ndarray = model.predict([[0.0, 1.0]])
loss: PrivacyLoss = model.privacy_
ridge: DPRidge = DPRidge(random_state=root_stream(0)).fit(X, y).post_process(alpha=0.1)

ledger = PrivacyLedger(Path("patients.ledger"), epsilon=1.0)
with ledger as opened:
    opened.reserve(0.5).commit(PrivacyLoss(0.25))
left: float = sum(ledger.remaining()) + ledger.history()[0].epsilon
total: float = composed_epsilon(ledger, delta=1e-6)

search = StabilityGridSearchCV(
    DPLogisticRegression(), {"alpha": [0.1, 1.0], "data_norm": np.ones(2)}, ledger=ledger,
    scoring=RampScore(-4, 4), cv=5, random_state=np.random.default_rng(0),
).fit(X, y)
print(search.plan(n_samples=100, n_features=2).to_dict(), search.predict(X), search.best_params_)
accurate: AccuracyFirstSearchCV = AccuracyFirstSearchCV(
    DPRidge(), {"epsilon": np.geomspace(0.1, 1.0)}, target=0.1
).fit(X, y)
answer: float = Thresholdout().fit(X, y, X_holdout=X, y_holdout=y).query(lambda X, y: y == 0)
chosen: int = noisy_argmax([0.0, 1.0], [0.1, 0.1], epsilon=1.0)
with dpselect.config_context(strict=True):
    strict: bool = dpselect.get_config()["strict"]
"""

WRONG = """
from dpselect import DPLogisticRegression, DPRidge, PrivacyLedger, PrivacyLoss
from dpselect import StabilityGridSearchCV, Thresholdout
from dpselect.model_selection.problem import SearchProblem, SearchRecords
from dpselect.model_selection.stages import Released
from dpselect.noise import root_stream

X, y = [[0.0], [1.0]], [0, 1]
DPLogisticRegression(epsilon="one")  # wrong
DPLogisticRegression(alpha="best")  # wrong
DPRidge(1.0, 0.1)  # wrong
DPRidge().fit(X, y, y)  # wrong
DPLogisticRegression().fit(X, y).privacy_.epsilons  # wrong
DPRidge(perturbation="gradient")  # wrong
DPRidge(random_state="seed")  # wrong
DPRidge(ledger="patients.ledger")  # wrong
DPRidge().predict(None)  # wrong
StabilityGridSearchCV(DPRidge(), ["alpha"])  # wrong
StabilityGridSearchCV(DPRidge(), {"alpha": [1.0]}).fit(X, y).predict(X, y)  # wrong
Thresholdout().fit(X, y)  # wrong
PrivacyLedger("patients.ledger", epsilon=1.0).spend("all")  # wrong
PrivacyLoss.sequential(PrivacyLoss(1.0))  # wrong
root_stream(0.5)  # wrong


def run(problem: SearchProblem, records: SearchRecords) -> Released:
    return Released(problem=problem, records=records)  # wrong
"""


def public_objects():
    found = [accounting.to_dp_event, accounting.composed_epsilon]
    # what public methods give
    found += [LedgerEntry, Reservation, SelectionPlan, AccuracyPlan]
    for module in (dpselect, audit, mechanisms, metrics, noise, preprocessing):
        # without __all__, what is defined there
        names = getattr(module, "__all__", None) or [
            name
            for name, member in vars(module).items()
            if not name.startswith("_") and getattr(member, "__module__", "") == module.__name__
        ]
        found += [getattr(module, name) for name in names]
    return found


def functions_of(thing):
    """Yield the public functions of a class, or the function, without what others have defined."""
    if inspect.isclass(thing):
        for name in dir(thing):
            if not name.startswith("_") or name in SPECIAL:
                static = inspect.getattr_static(thing, name)
                # (methods of a search are descriptors: what the class gives is a function)
                member = static.fget if isinstance(static, property) else getattr(thing, name)
                if callable(member):
                    yield from functions_of(member)
    elif inspect.isroutine(thing):
        function = inspect.unwrap(thing)
        if (getattr(function, "__module__", None) or "").startswith("dpselect."):
            yield function


def without_types(function):
    signature = inspect.signature(function)
    missing = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.annotation is parameter.empty and parameter.name not in ("self", "cls")
    ]
    return missing + ["return"] * (signature.return_annotation is signature.empty)


PUBLIC = {
    f"{function.__module__}.{function.__qualname__}": function
    for thing in public_objects()
    for function in functions_of(thing)
}


def test_the_search_for_public_functions_finds_them():
    for name in (
        "linear_model.logistic.DPLogisticRegression.__init__",
        "base.estimator.PrivateEstimator.fit",
        "linear_model.model.LinearModel.risk_bound",
        "model_selection.delegation.SearchDelegationMixin.predict",
        "ledger.ledger.PrivacyLedger.from_json",
        "ledger.ledger.PrivacyLedger.budget",
        "ledger.ledger.PrivacyLedger.__enter__",
        "ledger.reservation.Reservation.commit",
        "metrics.margin.MarginScore.__call__",
        "metrics.scores.get_score",
        "noise.grid.grid_step",
        "config.config_context",
        "accounting.totals.composed_epsilon",
    ):
        assert f"dpselect.{name}" in PUBLIC
    assert not any("set_score_request" in name for name in PUBLIC)


def test_every_public_function_has_types():
    assert {name: without_types(f) for name, f in PUBLIC.items() if without_types(f)} == {}


def test_missing_types_are_noticed():
    class Model:
        def fit(self, X, y: int = 0, **params) -> None: ...

        @property
        def size(self): ...

    Model.fit.__module__ = Model.size.fget.__module__ = "dpselect.model"
    missing = [without_types(function) for function in functions_of(Model)]
    assert missing == [["X", "params"], ["return"]]


def test_the_package_says_that_it_has_types():
    assert Path(dpselect.__file__).with_name("py.typed").is_file()


@pytest.fixture(scope="module")
def run_mypy(tmp_path_factory):
    api = pytest.importorskip("mypy.api")
    cache = tmp_path_factory.mktemp("mypy")

    def run(*arguments):
        out, err, status = api.run(["--cache-dir", str(cache), "--no-error-summary", *arguments])
        assert status in (0, 1), err
        return out.splitlines()

    return run


def check_script(run_mypy, monkeypatch, path, text):
    """Return the numbers of the lines in which mypy finds errors, and what it says."""
    path.write_text(text, encoding="utf-8")
    if "site-packages" not in ROOT.parts:
        monkeypatch.setenv("MYPYPATH", str(ROOT))
    said = run_mypy(
        "--config-file=", "--strict", "--ignore-missing-imports", "--follow-imports=silent", str(path)
    )
    errors = [line for line in said if ": error:" in line]
    return {int(line.removeprefix(str(path)).split(":")[1]) for line in errors}, errors


@pytest.mark.slow
def test_a_right_script_has_no_errors(run_mypy, monkeypatch, tmp_path):
    assert check_script(run_mypy, monkeypatch, tmp_path / "right.py", RIGHT)[1] == []


@pytest.mark.slow
def test_mistakes_are_found_and_nothing_else(run_mypy, monkeypatch, tmp_path):
    found, errors = check_script(run_mypy, monkeypatch, tmp_path / "wrong.py", WRONG)
    lines = WRONG.splitlines()
    assert found == {i for i, line in enumerate(lines, start=1) if "# wrong" in line}, errors


@pytest.mark.slow
def test_the_package_has_no_errors(run_mypy, monkeypatch):
    config = ROOT / "pyproject.toml"
    if not config.exists():
        pytest.skip("only in a checkout")
    monkeypatch.chdir(ROOT)
    assert run_mypy("--config-file", str(config)) == []
