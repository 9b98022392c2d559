import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.base import clone

from dpselect import (
    AccuracyFirstSearchCV,
    DPHistogramDensity,
    DPLogisticRegression,
    DPRidge,
    PrivacyLeakWarning,
    PrivacyLedger,
    SeededNoiseWarning,
    StabilityGridSearchCV,
)
from dpselect.base.estimator import Trial
from dpselect.exceptions import CertificateError
from dpselect.noise import root_stream
from tests.broken_sums import NoisyCentroids
from tests.trials import trial

MODEL = DPLogisticRegression(alpha=0.1)
SEEDED = [
    DPRidge(random_state=0, target_range=(-1, 1)),
    DPHistogramDensity(bounds=(-1, 1), bin_width=0.5, random_state=0),
]
LEARNS = [
    clone(MODEL).set_params(random_state=0),
    StabilityGridSearchCV(clone(MODEL), {"alpha": [0.1, 1.0]}, random_state=0),
    StabilityGridSearchCV(clone(MODEL), {}, strategy="budget_split", random_state=0),
    AccuracyFirstSearchCV(clone(MODEL), {"epsilon": [1.0, 2.0]}, target=9.0, random_state=0),
]


def warned(call):
    """Return what a function of one line warned of, at that line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    places = {(warning.filename, warning.lineno) for warning in caught}
    assert places == {(__file__, call.__code__.co_firstlineno)}
    return {warning.category for warning in caught}


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).uniform(-1, 1, size=(100, 1))
    return X, (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("estimator", SEEDED, ids=lambda estimator: type(estimator).__name__)
def test_warnings_of_seeds_point_to_the_callers_line(estimator, data):
    assert warned(lambda: clone(estimator).fit(*data)) == {SeededNoiseWarning}


@pytest.mark.parametrize("estimator", LEARNS, ids=lambda estimator: type(estimator).__name__)
def test_warnings_of_labels_point_to_the_callers_line(estimator, data):
    both = {SeededNoiseWarning, PrivacyLeakWarning}
    assert warned(lambda: clone(estimator).fit(*data)) == both


def test_so_do_those_of_functions_for_many_models(data):
    for call in (
        lambda: trial(MODEL).fitted(*data),
        lambda: MODEL.optimal_values([trial(MODEL)], *data, reach=10.0),
    ):
        assert warned(call) == {PrivacyLeakWarning}


def test_a_trial_leaves_nothing_with_the_model_that_it_tries():
    model = DPRidge(epsilon=1.0, target_range=(-1, 1))
    before = model.get_params()
    X = np.linspace(-1, 1, 30)[:, None]
    trial = Trial(model, 2.0, root_stream(0))
    assert trial.fitted(X, X[:, 0]).epsilon == 1.0
    trial.records(X, X[:, 0]), trial.published(coef_=np.zeros(1))
    assert vars(model) == before


def search_without_certificates(strategy):
    model, grid = NoisyCentroids(classes=[0, 1]), {"data_norm": [0.5, 1.0]}
    return StabilityGridSearchCV(model, grid, scoring="brier", strategy=strategy)


def check_searches_without_certificates():
    X = np.random.default_rng(0).normal(size=(2000, 2))
    search = search_without_certificates("auto").fit(X, (X[:, 0] > 0).astype(int))
    assert search.best_params_["data_norm"] in (0.5, 1.0)
    with pytest.raises(CertificateError, match="no method certificate; use strategy='random_stopping'"):
        search_without_certificates("stability").plan(1000, 2)


def test_a_search_needs_no_certificate():
    check_searches_without_certificates()


def test_and_the_test_of_that_sees_an_estimator_that_needs_one(monkeypatch):
    def certificate(self, score, shape, failure_probability=None):
        return self.calibration(shape).certificate(score, None, failure_probability)

    monkeypatch.setattr(Trial, "certificate", certificate)
    with pytest.raises(AttributeError):
        check_searches_without_certificates()


@pytest.mark.parametrize("n, warns", [(200, True), (700, False)])
@pytest.mark.parametrize("strategy", [None, "data_independent", "budget_split", "random_stopping"])
def test_a_fit_whose_noise_hides_most_warns_once_before_it_pays(tmp_path, n, warns, strategy):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.1, 0.1, size=(n, 50)), np.arange(n) % 2
    estimator = DPLogisticRegression(classes=[0, 1])  # whose noise has the length 51
    if strategy is not None:
        estimator = StabilityGridSearchCV(
            estimator, {"alpha": [0.1, 1.0]}, epsilon=1.0 if warns else 2.0, strategy=strategy
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(X, y)
    said = f"in this fit of {type(estimator).__name__}, and below 5 noise hides most"
    assert [said in str(each.message) for each in caught] == [True] * warns
    assert all(each.filename == __file__ for each in caught)
    ledger = PrivacyLedger(tmp_path / "l", epsilon=2.0)
    with warnings.catch_warnings(), ledger:
        warnings.simplefilter("error")
        refused = pytest.raises(UserWarning, match="below 5 noise hides") if warns else nullcontext()
        with refused:
            estimator.fit(X, y)
    assert (ledger.spent()[0] == 0.0) == warns


@pytest.mark.parametrize("searched", [False, True])
@pytest.mark.parametrize("name", ["base_rate", "data_norm"])
def test_the_warning_comes_before_a_number_is_learned(tmp_path, searched, name):
    """Or it would follow from what was learned, and as an error would cost that."""
    model = DPLogisticRegression(classes=[0, 1], **{name: "auto"})
    estimator = StabilityGridSearchCV(model, {}, epsilon=1.0) if searched else model
    rng, said = np.random.default_rng(0), []
    for scale in (0.01, 10.0):
        X, y = scale * rng.uniform(-1, 1, size=(200, 50)), rng.random(200) < min(scale, 0.5)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            clone(estimator).fit(X, y.astype(int))
        said.append([str(each.message) for each in caught if "noise hides" in str(each.message)])
    assert said[0] == said[1] and len(said[0]) == 1
    ledger = PrivacyLedger(tmp_path / "l", epsilon=2.0)
    with warnings.catch_warnings(), ledger, pytest.raises(UserWarning, match="noise hides"):
        warnings.simplefilter("error")
        clone(estimator).fit(X, y.astype(int))
    assert ledger.spent()[0] == 0.0
