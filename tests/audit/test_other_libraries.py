"""The lower bound on epsilon, beside that of another library on the same scores."""

import numpy as np
import pytest

from dpselect.audit import epsilon_lower_bound
from dpselect.audit.privacy import _bound

auditing = pytest.importorskip("jax_privacy.auditing")

N, SIGNIFICANCE = 20_000, 1e-3


def scores(epsilon, n=N):
    """Answers of a Laplace mechanism of sensitivity 1 on two neighbouring data sets."""
    noise = np.random.default_rng(0).laplace(scale=1 / epsilon, size=(2, n))
    return noise[0], 1 + noise[1]


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 0.01])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_same_counts_give_the_same_bound(epsilon, delta):
    without, with_record = scores(epsilon)
    auditor = auditing.CanaryScoreAuditor(with_record, without)
    for threshold in (-1.0, 0.0, 0.5, 1.0, 2.0):
        theirs = auditor.epsilon_clopper_pearson(
            SIGNIFICANCE, delta, threshold_strategy=auditing.Explicit(threshold)
        )
        hits = [np.array([np.count_nonzero(part >= threshold)]) for part in (with_record, without)]
        # both share the significance between the two proportions, and theirs ends at 0
        ours = float(_bound(*hits, N, delta, SIGNIFICANCE / 2)[0])
        assert max(ours, 0.0) == pytest.approx(theirs, rel=1e-9, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_whole_audits_agree(epsilon):
    # Theirs sees the scores themselves. Ours has to learn a score from a part of the releases, and
    # to choose an event on another: 40 % are left to count. Both are below the truth.
    without, with_record = map(iter, scores(epsilon))
    ours = epsilon_lower_bound(
        lambda records: next(with_record if records else without),
        0,
        1,
        n_trials=N,
        confidence=1 - SIGNIFICANCE,
        float_bits=False,
        random_state=0,
    ).epsilon
    without, with_record = scores(epsilon)
    theirs = auditing.CanaryScoreAuditor(with_record, without).epsilon_clopper_pearson(
        SIGNIFICANCE,
        one_sided=False,
        threshold_strategy=auditing.Split(threshold_estimation_frac=0.6, seed=0),
    )
    assert 0.6 * epsilon < ours <= epsilon and 0.6 * epsilon < theirs <= epsilon
    assert abs(ours - theirs) < 0.15 * epsilon
