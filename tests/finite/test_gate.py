"""The release gate: a number that is not finite does not pass, whatever came before it."""

import numpy as np
import pytest
from scipy import sparse

from dpselect import DPLogisticRegression, DPRidge, PrivacyLedger
from dpselect.base.estimator import Trial
from dpselect.base.learned_numbers import Division
from dpselect.linear_model.norms_and_rates import MeanCount
from dpselect.noise import all_finite, release

X = np.random.default_rng(0).uniform(-0.5, 0.5, (50, 2))
Y = (X[:, 0] > 0).astype(int)
REFUSAL = "not finite, which no noise hides"
BAD = (np.nan, np.inf, -np.inf)


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize(
    "put",
    [
        lambda bad: bad,
        np.float32,
        lambda bad: complex(0.0, bad),
        lambda bad: np.array([[0.5, bad]]),
        lambda bad: np.array([0.5, bad], dtype=np.float16),
        lambda bad: np.array(["a", bad], dtype=object),
        lambda bad: {"coef_": [np.zeros(2), (1.0, bad)]},
        lambda bad: {"coef_": sparse.csr_array(np.array([[0.0, bad]]))},
    ],
)
def test_what_is_not_finite_is_found(put, bad):
    with np.errstate(all="raise"), pytest.raises(ValueError, match=REFUSAL) as caught:
        all_finite(put(bad))
    assert "nan" not in str(caught.value) and "inf" not in str(caught.value).replace("finite", "")
    assert all_finite(put(0.5)) is not None


def test_all_else_passes():
    given = {
        "classes_": np.array(["a", "nan"]),
        "n_": 3,
        "name_": None,
        "flag_": True,
        "edges_": [np.arange(3)],
        "big_": 1.7e308,
        "many_": np.full(10, 1.7e308),
    }
    assert all_finite(given) is given


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("unit", [None, 1.0])
def test_neither_values_nor_noise_take_it_through(bad, unit):
    with np.errstate(all="ignore"):
        for values, noise in (([1.0, bad], [0.5, 0.5]), ([1.0, 2.0], [bad, 0.5])):
            with pytest.raises(ValueError, match=REFUSAL):
                release(values, noise, 0.5, unit)
    assert release([1, 2], [0.5, 0.5], 0.5, unit).tolist() == [1.5, 2.5]


def test_sums_that_overflow_do_not_pass():
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=REFUSAL):
        release([1.7e308], [1.7e308], 0.5)


def broken(kind, bad):
    class Broken(kind):
        def _release(self, records, calibration, noise):
            found = super()._release(records, calibration, noise)
            return found | {"coef_": np.where(np.arange(found["coef_"].size) == 1, bad, found["coef_"])}

    return Broken


MODELS = [(DPLogisticRegression, {"classes": [0, 1]}), (DPRidge, {"target_range": (0, 1)})]


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize(("kind", "params"), MODELS)
@pytest.mark.parametrize("epsilon", [1.0, float("inf")])
def test_an_estimator_that_forgets_the_gate_is_refused(kind, params, epsilon, bad, monkeypatch):
    model = broken(kind, bad)(epsilon, **params)
    with pytest.raises(ValueError, match=REFUSAL):
        model.fit(X, Y)
    assert not [name for name in vars(model) if name.endswith("_")]
    with pytest.raises(ValueError, match=REFUSAL):
        Trial(model, 1.0).fitted(X, Y)
    assert np.isfinite(broken(kind, 0.5)(epsilon, **params).fit(X, Y).coef_).all()
    # the twin: a fit without the gate
    monkeypatch.setattr("dpselect.base.estimator.all_finite", lambda released: released)
    assert not np.isfinite(model.fit(X, Y).coef_).all()


def test_a_refusal_is_paid_for(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=2.0)
    with ledger, pytest.raises(ValueError, match=REFUSAL):
        broken(DPLogisticRegression, np.nan)(1.0, classes=[0, 1]).fit(X, Y)
    assert ledger.spent()[0] == 1.0


def test_what_is_learned_first_and_what_is_published_pass_it_too():
    class Broken(MeanCount):
        def learn(self, records, epsilon, generator):
            return float("nan")

    from dpselect.noise import root_stream

    with pytest.raises(ValueError, match=REFUSAL):
        Division({"base_rate": Broken(1.0)}, 1.0).learn("base_rate", None, root_stream(0))
    trial = Trial(DPLogisticRegression(classes=[0, 1]), 1.0)
    assert trial.published(coef_=np.zeros(2)).coef_.tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match=REFUSAL):
        trial.published(coef_=np.array([0.0, np.inf]))
