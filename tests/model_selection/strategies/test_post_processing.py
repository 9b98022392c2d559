import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from dpselect import CertificateError, DPRidge, SeededNoiseWarning, StabilityGridSearchCV
from dpselect.metrics import ClippedSquaredErrorScore, LogisticScore
from dpselect.preprocessing import BoundedScaler

from .common import Untouchable

ALPHAS = [1e-4, 1e-2, 1.0, 100.0]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(20_000, 5)) / 5**0.5
    return X, X @ [1.0, -0.5, 0.25, 0.0, 0.5] + 0.1 * rng.normal(size=20_000)


def model(**parameters):
    return DPRidge(norm="l2", **{"target_range": (-1, 1), **parameters})


def test_the_model_is_trained_once_on_the_training_part(data, monkeypatch):
    fits, original = [], DPRidge.fit
    monkeypatch.setattr(
        DPRidge, "fit", lambda self, X, y: (fits.append(len(X)), original(self, X, y))[1]
    )
    StabilityGridSearchCV(model(), {"alpha": np.geomspace(1e-4, 10, 50)}).fit(*data)
    # two dummy rows, to refuse bad parameters early, for dummy shapes and for the true ones
    assert fits == [2, 2, 16_000]


def test_readings_are_the_models_own(data):
    with pytest.warns(SeededNoiseWarning):
        search = StabilityGridSearchCV(model(), {"alpha": ALPHAS}, random_state=0).fit(*data)
    best = search.best_estimator_
    for alpha in ALPHAS:
        other = best.post_process(alpha=alpha)
        assert (other.gram_ == best.gram_).all() and other.privacy_ == best.privacy_
    assert search.privacy_.seeded and best.random_state is None


def test_in_a_pipeline_and_with_other_splits(data):
    pipeline = make_pipeline(BoundedScaler((-1, 1)), model(data_norm=2.0))
    search = StabilityGridSearchCV(pipeline, {"dpridge__alpha": ALPHAS}, cv=2).fit(*data)
    assert search.best_estimator_[-1].n_samples_ == 10_000
    assert search.predict(data[0]).shape == (20_000,)


def test_without_refit_the_loss_is_the_same(data):
    search = StabilityGridSearchCV(model(), {"alpha": ALPHAS}, refit=False).fit(*data)
    assert search.privacy_.epsilon == 1.0 and not hasattr(search, "best_estimator_")


def test_output_perturbation_is_selected_by_stability(data):
    search = StabilityGridSearchCV(
        DPRidge(perturbation="output", norm="l2", target_range=(-1, 1)),
        {"alpha": [1.0, 10.0]},
        strategy="stability",
    ).fit(*data)
    assert [release.epsilon for release in search.privacy_.releases] == [0.5, 0.5]
    assert search.scorer_ == ClippedSquaredErrorScore(1.0)


def test_plan(data):
    search = StabilityGridSearchCV(model(target_range=(-2, 2)), {"alpha": ALPHAS}, epsilon=2.0)
    plan = search.plan(10_000, 5)
    assert np.allclose(plan.sensitivity, 4.0 / 2000) and np.allclose(plan.noise_scale, 0.002)


def test_parts_that_overlap_are_refused(data):
    cv = [(np.arange(15_000), np.arange(14_999, 20_000))]
    with pytest.raises(ValueError, match="disjoint"):
        StabilityGridSearchCV(model(), {"alpha": ALPHAS}, cv=cv, public_splits=True).fit(*data)


def test_refusals_come_before_the_data():
    for parameters, error, match in (
        ({"scoring": LogisticScore()}, CertificateError, "LogisticScore"),
        ({"param_grid": {"alpha": [0.1, -1.0]}}, ValueError, "alpha=-1.0"),
        # anything else in the grid needs a certificate, which covariance perturbation lacks
        (
            {"param_grid": {"alpha": [0.1], "target_range": [(-1, 1), (-2, 2)]}},
            CertificateError,
            "DPRidge",
        ),
    ):
        parameters = {"param_grid": {"alpha": ALPHAS}, **parameters}
        with pytest.raises(error, match=match):
            StabilityGridSearchCV(model(), strategy="stability", **parameters).fit(
                Untouchable(), Untouchable()
            )
