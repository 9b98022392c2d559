"""What holds for the release of every estimator: its statement, its ledger entry, its attributes."""

import threading

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from dpselect import DPPoissonRegressor, PrivacyLedger
from dpselect.ledger.budget_file import transaction
from dpselect.noise import as_generator
from dpselect.preprocessing import DPBoundsScaler

from . import reference
from .cases import VARIANTS, in_pairs, key, records_for
from .recording import replace_everywhere

SCALER = DPBoundsScaler(epsilon=0.7)
POISSON = {
    f"poisson-{norm}": DPPoissonRegressor(epsilon=0.8, norm=norm, target_bound=2.0, data_norm=0.8)
    for norm in ("l1", "l2")
}
# (with an intercept, and without a bound of their own on the coefficients)
USUAL = in_pairs(
    {name: model for name, model in VARIANTS.items() if name[-2:] != "-0" and "0.2" not in name}
)
EVERY = {**USUAL, **POISSON, "bounds": SCALER}


@pytest.mark.parametrize("name", EVERY)
def test_the_statement_and_the_ledger_name_the_loss_of_the_parameters(name, tmp_path):
    model = clone(EVERY[name])
    ledger = PrivacyLedger(tmp_path / "records.ledger", epsilon=100.0, delta=0.1)
    model.set_params(ledger=ledger).fit(*records_for(model))
    loss, delta = model.privacy_, model.get_params().get("delta", 0.0)
    assert (loss.epsilon, loss.delta, loss.kind) == (model.epsilon, delta, "differential privacy")
    assert loss.adjacency == "replace one record" and not loss.seeded and not loss.parts
    assert loss.label.startswith(type(model).__name__)
    if hasattr(model, "perturbation"):
        assert model.perturbation in loss.label
    (entry,) = ledger.history()
    assert (entry.epsilon, entry.delta) == (entry.reserved_epsilon, entry.reserved_delta)
    assert (entry.epsilon, entry.delta, entry.label) == (model.epsilon, delta, loss.label)
    assert (entry.kind, entry.seeded) == (loss.kind, False)
    assert ledger.spent() == (model.epsilon, delta)


class Stop(Exception):
    pass


@pytest.mark.parametrize("name", EVERY)
def test_a_fit_that_fails_after_its_noise_was_drawn_has_spent(name, monkeypatch, tmp_path):
    def stops(random_state=None):
        as_generator(random_state)
        raise Stop

    replace_everywhere(monkeypatch, as_generator, stops)
    ledger = PrivacyLedger(tmp_path / "records.ledger", epsilon=100.0, delta=0.1)
    model = clone(EVERY[name]).set_params(ledger=ledger)
    with pytest.raises(Stop):
        model.fit(*records_for(model))
    assert ledger.spent() == (model.epsilon, model.get_params().get("delta", 0.0))
    assert not [attribute for attribute in vars(model) if attribute.endswith("_")]


def linear_records(name):
    model = USUAL[name]
    return clone(model).set_params(random_state=key("rows", name)), *records_for(model)


@pytest.mark.parametrize("name", [name for name in USUAL if "accept_sparse" in USUAL[name].reads])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_rows_are_clipped_in_prediction_as_in_training(name, container):
    model, X, y = linear_records(name)
    model.fit(X, y)
    long = np.vstack([X[:20], 50 * X[:20]])
    clipped = reference.clipped_rows(model, long)
    if hasattr(model, "classes"):
        values = clipped @ model.coef_.T + model.intercept_
        found = model.decision_function(container(long)).reshape(values.shape)
        values = reference.decisions(model, values)
        labels = values.argmax(axis=1) if values.shape[1] > 1 else (values[:, 0] > 0).astype(int)
        assert (model.predict(container(long)) == labels).all()
    else:
        values = clipped @ model.coef_ + model.intercept_
        found = model.predict(container(long))
    assert found == pytest.approx(values, abs=1e-9)


@pytest.mark.parametrize(
    "name, container",
    [
        *((name, np.asarray) for name in EVERY),
        *((name, sparse.csr_matrix) for name in EVERY if "accept_sparse" in EVERY[name].reads),
    ],
)
def test_a_row_that_is_longer_than_any_double_counts_as_a_long_one_or_is_refused(name, container):
    model = clone(EVERY[name]).set_params(random_state=key("huge", name))
    X, y = records_for(model)
    X = X[:, :1].copy() if name.startswith("density") else np.tile(X, 10)
    direction = np.where(np.arange(X.shape[1]) % 2, -1.0, 1.0)
    X[0] = 1e13 * direction
    long = model.fit(container(X), y)
    expected = [value for _, value in released(long)]
    X[0] = 1.7e308 * direction
    try:
        model.fit(container(X), y)
    except ValueError as error:
        assert "too large" in str(error)
        return
    for (attribute, value), one in zip(released(model), expected, strict=True):
        assert value == pytest.approx(one, abs=1e-9), attribute


def released(model):
    names = ("coef_", "intercept_", "density_", "bounds_", "gram_", "moment_")
    return [(name, getattr(model, name)) for name in names if hasattr(model, name)]


OTHERS = {
    "epsilon": 50.0,
    "delta": 0.1,
    "random_state": 0,
    "data_norm": 9.0,
    "target_bound": 9.0,
    "target_range": (-9, 9),
    "noise": "discrete_laplace",
    "tail": 0.4,
}


class ReadBy:
    """Rows that call a function whenever they are read."""

    def __init__(self, X, call):
        self.X, self.call, self.shape = X, call, X.shape

    def __len__(self):
        return len(self.X)

    def __array__(self, dtype=None, copy=None):
        self.call()
        return np.array(self.X, dtype=dtype)


@pytest.mark.parametrize("name", EVERY)
def test_parameters_that_are_set_while_records_are_read_change_nothing(name):
    model = clone(EVERY[name]).set_params(random_state=key("set", name))
    X, y = records_for(model)
    params = {name: value for name, value in OTHERS.items() if name in model.get_params()}
    expected = clone(model).fit(X, y)
    calls = []
    model.fit(ReadBy(X, lambda: (calls.append(1), model.set_params(**params))), y)
    assert calls and model.privacy_ == expected.privacy_
    assert str(model.get_params()) == str(expected.get_params())
    for (attribute, value), (_, one) in zip(released(model), released(expected), strict=True):
        assert np.all(value == one), attribute


@pytest.mark.parametrize("name", EVERY)
def test_a_thread_that_waits_for_the_ledger_fits_what_it_asked_for(name, monkeypatch, tmp_path):
    ledger = PrivacyLedger(tmp_path / "records.ledger", epsilon=100.0, delta=0.1)
    model = clone(EVERY[name]).set_params(ledger=ledger)
    asked, fitted = model.epsilon, []
    calibration, asks = type(model)._calibration, threading.Event()

    def watched(self, shape, epsilon):
        fitted.append(calibration(self, shape, epsilon).epsilon)
        return calibration(self, shape, epsilon)

    def reserve(*args, **kwargs):
        asks.set()
        return PrivacyLedger.reserve(ledger, *args, **kwargs)

    monkeypatch.setattr(type(model), "_calibration", watched)
    monkeypatch.setattr(ledger, "reserve", reserve, raising=False)
    with transaction(ledger.path):  # somebody else spends
        thread = threading.Thread(target=lambda: model.fit(*records_for(model)))
        thread.start()
        assert asks.wait(60)
        model.set_params(epsilon=50.0)
    thread.join()
    assert (model.privacy_.epsilon, {*fitted}, ledger.spent()[0]) == (asked, {asked}, asked)
