"""What holds for the release of every estimator: its statement, its ledger entry, its attributes."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from dpselect import PrivacyLedger
from dpselect.noise import as_generator
from dpselect.preprocessing import DPBoundsScaler

from . import reference
from .cases import ALL, LINEAR, NOISY_RIDGE, key, records_for
from .recording import replace_everywhere

SCALER = DPBoundsScaler(epsilon=0.7)
# (with an intercept, and without a bound of their own on the coefficients)
USUAL = {name: model for name, model in ALL.items() if name[-2:] != "-0" and "0.2" not in name}
EVERY = {**USUAL, "bounds": SCALER}


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
    model = {**LINEAR, **NOISY_RIDGE}[name]
    return clone(model).set_params(random_state=key("rows", name)), *records_for(model)


@pytest.mark.parametrize("name", [n for n in (*LINEAR, *NOISY_RIDGE) if n in USUAL])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_rows_are_clipped_in_prediction_as_in_training(name, container):
    model, X, y = linear_records(name)
    model.fit(X, y)
    long = np.vstack([X[:20], 50 * X[:20]])
    clipped = reference.clipped(long, model.norm, model.data_norm)
    if name in LINEAR:
        values = clipped @ model.coef_.T + model.intercept_
        found = model.decision_function(container(long)).reshape(values.shape)
        labels = values.argmax(axis=1) if values.shape[1] > 1 else (values[:, 0] > 0).astype(int)
        assert (model.predict(container(long)) == labels).all()
    else:
        values = clipped @ model.coef_ + model.intercept_
        found = model.predict(container(long))
    assert found == pytest.approx(values, abs=1e-9)
