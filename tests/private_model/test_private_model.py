"""Models of other libraries: what they are given, what is stated, and what is refused or not said."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dpselect import (
    Adjacency,
    BudgetExceededError,
    CertificateError,
    PrivacyLeakError,
    PrivacyLeakWarning,
    PrivacyLedger,
    PrivacyLoss,
    PrivateModel,
    SeededNoiseWarning,
    config_context,
    privacy_of,
    privacy_report,
)
from dpselect.preprocessing import DPBoundsScaler
from dpselect.testing import ReleaseStatement, private_estimator_checks
from dpselect.testing.attempts import Untouchable, attempt

from .other_library import STEPS, NoisyMean, SignedSum, SumWithDelta

OTHER = PrivateModel(
    SignedSum(),
    adjacency="add or remove one record",
    conversion="remove and add",
    classes=[0, 1],
    classes_parameter="labels",
    public_parameters=["bound"],
)
WITH_DELTA = clone(OTHER).set_params(estimator=SumWithDelta(), delta=1e-6, delta_parameter="delta")


def declared(model=OTHER, **params):
    return clone(model).set_params(**params)


def records(n=200, seed=0, p=2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, p))
    return X, (X[:, 0] > 0).astype(int)


class TakesAnything(SignedSum):
    """A model whose own checks let gaps and infinite values pass."""

    def fit(self, X, y):
        rows = X.toarray() if sparse.issparse(X) else np.asarray(X)
        return super().fit(np.nan_to_num(rows, posinf=0.0, neginf=0.0), y)


def check_gaps_are_refused(form):
    model = declared(estimator=TakesAnything())
    X, y = records()
    model.fit(form(X), y)
    for bad in (np.nan, np.inf):
        rows = X.copy()
        rows[3, 1] = bad
        with pytest.raises(ValueError, match="NaN|infinity"):
            model.fit(form(rows), y)


FORMS = [np.asarray, np.float32, pd.DataFrame, sparse.csr_matrix, sparse.csc_array]


@pytest.mark.parametrize("form", FORMS)
def test_gaps_are_refused_whatever_the_model_takes(form):
    check_gaps_are_refused(form)


def test_gaps_that_only_the_model_checks_are_caught(monkeypatch):
    monkeypatch.setattr(PrivateModel, "_refuse_gaps", lambda self, X: None)
    with pytest.raises(pytest.fail.Exception):
        check_gaps_are_refused(sparse.csr_matrix)


# What the model is given


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 7.0, 40.0, 2000.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.3])
def test_two_steps_of_the_model_cost_what_is_stated_and_hardly_less(epsilon, delta):
    """The worst laws that two steps of (e, d) allow."""
    e, d = declared(WITH_DELTA, delta=delta)._part(epsilon)
    assert 2 * Fraction(e) == Fraction(epsilon)
    if epsilon < 1000:  # the probability of an event, two, one and no steps away
        least = delta * math.exp(-2 * e)
        one = math.exp(e) * least + d
        two = math.exp(e) * one + d
        assert (1 - 1e-9) * delta < two - math.exp(epsilon) * least <= delta * (1 + 1e-15)
    assert declared(WITH_DELTA, adjacency="replace one record", delta=delta)._part(epsilon) == (
        epsilon,
        delta,
    )


def loss_of_one_record(model, epsilon=1.0):
    """How far one record moves the sum, in units of its noise, over what is stated."""
    sums = []
    for label in (0, 1):
        X, y = np.ones((50, 1)), np.zeros(50, dtype=int)
        y[-1] = label
        fitted = declared(model, epsilon=epsilon, random_state=0).fit(X, y)
        sums.append(fitted.estimator_.coef_)
    scale = STEPS / fitted.estimator_.epsilon
    return float(abs(sums[1] - sums[0]).max() / scale / fitted.privacy_.epsilon)


class Unconverted(PrivateModel):
    def _part(self, epsilon):
        return epsilon, self.delta


class EpsilonNotSet(PrivateModel):
    def _prepared(self):
        model = super()._prepared()
        return model.set_params(epsilon=self.estimator.epsilon)


@pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning")
@pytest.mark.parametrize("epsilon", [0.25, 1.0])
def test_one_record_that_is_replaced_has_the_loss_that_is_stated(epsilon):
    assert loss_of_one_record(OTHER, epsilon) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning")
@pytest.mark.parametrize("twin, epsilon, found", [(Unconverted, 1.0, 2.0), (EpsilonNotSet, 0.25, 8.0)])
def test_a_forgotten_conversion_or_epsilon_is_caught(twin, epsilon, found):
    assert loss_of_one_record(twin(**OTHER.get_params(deep=False)), epsilon) == pytest.approx(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model, check",
    # (most pairs need a tenth of the trials that are usual, and these are a quarter)
    private_estimator_checks(OTHER, ReleaseStatement(("estimator_",)), n_trials=500),
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_it_keeps_what_private_estimators_promise(model, check):
    check(model)


def test_what_is_given_reaches_the_model():
    model = declared(WITH_DELTA, epsilon=0.5, estimator__gain=3.0, classes=["b", "a"])
    X, y = records()
    model.fit(X, np.where(y, "b", "a"))
    inner = model.estimator_
    assert (inner.epsilon, inner.gain, list(inner.labels)) == (0.25, 3.0, ["a", "b"])
    assert inner.delta == model._part(0.5)[1]
    assert (model.privacy_.epsilon, model.privacy_.delta) == (0.5, 1e-6)
    assert model.privacy_.adjacency is Adjacency.REPLACE_RECORD and not model.privacy_.seeded
    assert model.estimator.epsilon == 1.0 and not hasattr(model.estimator, "coef_")
    assert list(model.classes_) == ["a", "b"] and model.n_features_in_ == 2
    assert is_classifier(model) and set(model.predict(X)) <= {"a", "b"}
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(X) == model.predict(X)).all() and again.privacy_ == model.privacy_


def test_parts_of_a_pipeline_are_checked_and_named():
    inner = make_pipeline("passthrough", SignedSum())
    named = {
        "epsilon_parameter": "signedsum__epsilon",
        "classes_parameter": "signedsum__labels",
        "public_parameters": ["signedsum__bound"],
    }
    model = declared(estimator=inner, **named).fit(*records())
    assert model.estimator_[-1].epsilon == 0.5
    assert model.account == OTHER.account
    with pytest.raises(ValueError, match="StandardScaler.*learns from the data"):
        declared(estimator=make_pipeline(StandardScaler(), SignedSum()), **named).fit(*records())
    # its loss would be stated nowhere
    with pytest.raises(CertificateError, match="DPBoundsScaler.*before the PrivateModel"):
        declared(estimator=make_pipeline(DPBoundsScaler(), SignedSum()), **named).declared_loss()


def test_the_epsilon_is_that_of_the_whole():
    """Here each of three labels would train a model with all of it."""
    model = declared(
        estimator=OneVsRestClassifier(SignedSum()),
        epsilon_parameter="estimator__epsilon",
        classes=[0, 1, 2],
        classes_parameter=None,
        public_parameters=(),
    )
    with pytest.raises(CertificateError, match="'estimator__epsilon' is of a part of OneVsRest"):
        model.fit(Untouchable(), Untouchable())


def test_public_records_join_those_of_a_fit():
    class Counting(SignedSum):
        def fit(self, X, y):
            super().fit(X, y)
            self.seen_, self.kind_ = (X.shape, sorted(set(y))), type(X).__name__
            return self

    pd = pytest.importorskip("pandas")
    X, y = np.ones((5, 2)), np.zeros(5, dtype=int)
    model = declared(
        estimator=Counting(), public_records=(np.zeros((2, 2)), [0, 1]), classes_parameter=None
    )
    with config_context(strict=True):
        assert model.fit(X, y).estimator_.seen_ == ((7, 2), [0, 1])
    frame = pd.DataFrame(X, columns=["a", "b"])
    model.set_params(public_records=(frame[:2], [0, 1]))
    assert model.fit(frame, y).estimator_.kind_ == "DataFrame"
    assert list(model.feature_names_in_) == ["a", "b"]
    model.set_params(public_records=(sparse.eye_array(2), [0, 1]))
    joined = model._with_public(sparse.csr_array(X), y)[0]
    assert joined.format == "csr" and joined.shape == (7, 2)


# What is refused before a record is read


@pytest.mark.parametrize(
    "params, error, match",
    [
        ({"conversion": None}, CertificateError, "two steps.*conversion='remove and add'"),
        ({"conversion": "half"}, ValueError, "conversion='half'.*write one of 'remove and add'"),
        ({"adjacency": "replace all rows of one person"}, ValueError, "adjacency=.*write one of"),
        ({"adjacency": "bounded"}, ValueError, "adjacency='bounded'"),
        (
            {"estimator": SignedSum(bound=None)},
            ValueError,
            "SignedSum reads bound from.*write bound=...",
        ),
        (
            {"estimator": SignedSum(random_state=0)},
            ValueError,
            "random_state of SignedSum.*PrivateModel",
        ),
        ({"delta": 1e-6}, CertificateError, "delta_parameter=None.*give both"),
        ({"estimator": SumWithDelta(), "delta_parameter": "delta"}, CertificateError, "give both"),
        (
            {"epsilon_parameter": "eps"},
            ValueError,
            "epsilon_parameter='eps' is no parameter of SignedSum",
        ),
        ({"epsilon_parameter": None}, ValueError, "epsilon_parameter=None"),
        ({"classes_parameter": "classes"}, ValueError, "classes_parameter='classes'"),
        ({"public_parameters": "bound"}, TypeError, r"write public_parameters=\['bound'\]"),
        ({"public_parameters": ["bounds"]}, ValueError, "public_parameters='bounds'"),
        ({"public_records": np.zeros((2, 2))}, TypeError, "must be a pair"),
        ({"epsilon": 0.0}, ValueError, "epsilon=0.0"),
        ({"delta": 1.5}, ValueError, "delta=1.5"),
        ({"classes": [0]}, ValueError, "classes must list"),
        ({"estimator": SignedSum}, TypeError, "not the class SignedSum"),
    ],
)
def test_what_does_not_go_together_is_refused_before_the_data(params, error, match):
    model = declared(**params)
    with pytest.raises(error, match=match):
        model.fit(Untouchable(), Untouchable())
    with pytest.raises(error, match=match):
        model.declared_loss()


def test_what_fit_does_not_know_is_refused():
    for name in ("sample_weight", "groups"):
        with pytest.raises(TypeError, match=f"got {name}"):
            declared().fit(*records(), **{name: np.ones(200)})


# What is said and kept


SECRET = 7.316452890123


@pytest.mark.parametrize("bound, error", [(None, PrivacyLeakError), (1.0, None)])
def test_a_warning_of_a_leak_ends_the_fit_and_others_are_not_shown(bound, error):
    X, y = records()
    X[3] = SECRET
    model = declared(estimator=SignedSum(bound=bound), public_parameters=())
    found = attempt(lambda: model.fit(X, y))
    assert type(found.error) is (error or type(None)) and not any("7.3" in said for said in found.said)
    assert found.warned == [] and hasattr(model, "estimator_") == (error is None)
    if error:
        assert "SignedSum.fit warns of a leak (PrivacyLeakWarning)" in str(found.error)
        assert "None for bound, labels" in str(found.error)


def test_a_model_that_fails_does_not_quote_records():
    class Failing(SignedSum):
        def fit(self, X, y):
            raise KeyError(f"no such value: {X.max()}")

        def predict(self, X):
            raise KeyError(f"no such value: {X.max()}")

    X, y = records()
    X[3] = SECRET
    found = attempt(lambda: declared(estimator=Failing()).fit(X, y))
    assert "Failing.fit failed (KeyError)" in str(found.error)
    fitted = declared().fit(X, y)
    fitted.estimator_ = Failing()
    found.said += attempt(lambda: fitted.predict(X)).said
    assert not any("7.3" in said for said in found.said)


def test_labels_that_the_model_learns_are_a_leak():
    with pytest.warns(PrivacyLeakWarning, match="classes=None"):
        declared(classes=None).fit(*records())
    without = declared(classes_parameter=None)
    with pytest.warns(PrivacyLeakWarning, match="which labels there are"):
        without.fit(*records())
    with config_context(strict=True), pytest.raises(PrivacyLeakError, match="public_records"):
        without.fit(Untouchable(), Untouchable())
    with pytest.raises(ValueError, match="a label that is not in classes"):
        declared(classes=[0, 2]).fit(*records())


def test_a_seed_is_told_and_not_kept():
    model = declared(random_state=3)
    with pytest.warns(SeededNoiseWarning):
        coef = model.fit(*records()).estimator_.coef_
    assert model.privacy_.seeded and model.estimator_.random_state is None
    with pytest.warns(SeededNoiseWarning):
        assert (model.fit(*records()).estimator_.coef_ == coef).all()


class Voters(SignedSum):
    """Keeps models, each with the seed that it drew for its noise, as forests do."""

    random_state_ = "of the class"

    def fit(self, X, y):
        super().fit(X, y)
        parts = [clone(self).set_params(random_state=seed) for seed in range(4)]
        self.random_state_, self.by_name_ = np.random.RandomState(5), {"one": parts[0]}
        self.estimators_, self.places_ = [(parts[1], 7)], np.array([parts[2], self], dtype=object)
        parts[2].estimator_ = parts[3]
        self.parts_ = (*parts, type(self))
        return self


def test_seeds_that_the_model_drew_are_not_released():
    model = declared(estimator=Voters()).fit(*records())
    fitted = model.estimator_
    assert fitted.random_state_ is None and fitted.estimators_[0][1] == 7
    assert [part.random_state for part in fitted.parts_[:4]] == [None] * 4
    assert Voters.random_state_ == "of the class"
    assert (model.predict(np.eye(2)) >= 0).all()


def test_a_ledger_pays_and_a_fit_that_fails_late_counts(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=2.5, delta=1e-5)
    model = declared(WITH_DELTA, ledger=ledger).fit(*records())
    assert ledger.remaining() == (1.5, 9e-6)
    with pytest.raises(ValueError, match="not in classes"):  # before the model had them
        model.set_params(classes=[0, 5]).fit(*records())
    assert ledger.remaining()[0] == 1.5
    with pytest.raises(PrivacyLeakError):
        model.set_params(classes=[0, 1], public_parameters=(), estimator=SumWithDelta(bound=None)).fit(
            *records()
        )
    assert ledger.remaining()[0] == 0.5
    with pytest.raises(BudgetExceededError):
        model.fit(Untouchable(), Untouchable())


def test_the_statement_says_by_whose_account():
    model = declared(WITH_DELTA).fit(*records())
    text = "SumWithDelta, by the account of its author: epsilon 0.5 for add or remove one record, twice"
    assert privacy_of(make_pipeline("passthrough", model)).label == text
    assert declared(adjacency="replace one record").declared_loss(0.2) == PrivacyLoss(
        0.2, label="SignedSum, by the account of its author"
    )
    sklearns = PrivateModel(LogisticRegression(), adjacency="replace one record")
    assert sklearns.account == f"LogisticRegression, by the account of sklearn {sklearn.__version__}"
    report = privacy_report(model).to_markdown()
    assert "The account of its library" in report
    assert "nothing here proves or tests: SumWithDelta, by the account of its author." in report


# Predictions


def test_probabilities_become_log_odds():
    class Sure(SignedSum):
        def predict_proba(self, X):
            p = np.clip(0.5 + X[:, 0], 0, 1)
            return np.column_stack([1 - p, p])

    model = declared(estimator=Sure()).fit(*records())
    p = np.array([0.0, 0.25, 0.5, 1.0])
    odds = model.decision_function(np.column_stack([p - 0.5, p]))
    np.testing.assert_allclose(1 / (1 + np.exp(-odds)), p, atol=1e-15)
    (X, _), own = records(), declared().fit(*records())
    assert (own.decision_function(X) == own.estimator_.decision_function(X)).all()
    assert not hasattr(own, "predict_proba") and own.default_scoring == "brier"


def test_a_regression():
    mean = PrivateModel(NoisyMean(), epsilon=100.0, adjacency="replace one record")
    assert is_regressor(mean) and not hasattr(mean, "decision_function")
    assert not hasattr(mean, "default_scoring")
    X, y = records()
    assert abs(mean.fit(X, y).predict(X[:3]) - y.mean()).max() < 0.01
    with pytest.raises(ValueError, match="y must hold numbers"):
        mean.fit(X, np.where(y, "a", "b"))
    with pytest.warns(PrivacyLeakWarning, match="trained on"):
        assert mean.score(X, y) == pytest.approx(0, abs=0.01)
