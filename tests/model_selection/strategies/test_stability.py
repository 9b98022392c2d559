import pytest

from dpselect import CertificateError, DPRidge
from dpselect.model_selection.strategies import stability as module

from .common import Untouchable, records, search, seeded


def test_the_noise_of_fits_varies_around_that_of_the_plan():
    plan = search("stability").plan(1000, 3)
    spans = [
        seeded(search("stability"), seed).fit(*records()).certificate_.span[0] for seed in range(12)
    ]
    assert min(spans) < plan.span[0] < max(spans)


def test_selection_and_training_use_their_shares(monkeypatch):
    used, original = [], module.exact_scores

    def spy(candidates, *args, **kwargs):
        used.append({candidate.model.epsilon for candidate in candidates})
        return original(candidates, *args, **kwargs)

    monkeypatch.setattr(module, "exact_scores", spy)
    s = search("stability", selection_fraction=0.25).fit(*records())
    assert used == [{0.75}] and s.best_estimator_.epsilon == 0.75
    assert [loss.epsilon for loss in s.privacy_.releases] == [0.25, 0.75]


def test_delta_is_stated_with_the_choice():
    loss = search("stability", delta=1e-5).fit(*records()).privacy_
    assert [part.delta for part in loss.releases] == [1e-5, 0.0] and loss.delta == 1e-5


def test_a_model_without_certificate_is_refused_before_the_data():
    # more than alpha varies, so that one release cannot serve all
    with pytest.raises(CertificateError, match="covariance"):
        search("stability", DPRidge(), {"target_bound": [1.0, 2.0]}).fit(Untouchable(), Untouchable())
