"""The check of private estimators refuses those that their authors got wrong, for what is wrong."""

import pytest

from dpselect import DPPoissonRegressor
from dpselect.testing import ReleaseStatement, check_private_estimator, private_estimator_checks

from .broken_estimators import (
    BROKEN,
    CertificateOfHalf,
    ExactObjective,
    HalfAModel,
    InterceptForgotten,
    KeepsTheMinimiser,
    MeanBeside,
    NegativeCounts,
    NoiseForgetsWeights,
    NoiseOfTheLargestCount,
    NoLedger,
    OwnEpsilonAlways,
    PlainUnclipped,
    PredictsUnclipped,
    QuotesText,
    RowsOfPersonsInFull,
    SameNoise,
    SparseRowsUnclipped,
    WarnsOfClipping,
    WeightsUnclipped,
)

# the check that is meant to find each mistake; others may find it too
FOUND_BY = {
    NoLedger: "check_ledger",
    MeanBeside: "check_what_is_kept",
    OwnEpsilonAlways: "check_epsilon_is_passed",
    ExactObjective: "check_the_stated_loss",
    InterceptForgotten: "check_the_loss_of_each_noise",
    NoiseOfTheLargestCount: "check_the_stated_loss",
    CertificateOfHalf: "check_certificate",
    NegativeCounts: "check_paths",
    SparseRowsUnclipped: "check_paths",
    PlainUnclipped: "check_plain_form",
    PredictsUnclipped: "check_predictions",
    HalfAModel: "check_failed_fits",
    SameNoise: "check_noise_is_fresh",
    KeepsTheMinimiser: "check_what_is_kept",
    QuotesText: "check_bad_records",
    WarnsOfClipping: "check_what_is_said",
    RowsOfPersonsInFull: "check_groups",
    WeightsUnclipped: "check_the_loss_of_each_noise",
    NoiseForgetsWeights: "check_the_loss_of_each_noise",
}
WEIGHTED = (WeightsUnclipped, NoiseForgetsWeights)

SLOW = (
    NegativeCounts, InterceptForgotten, NoiseOfTheLargestCount, ExactObjective, *WEIGHTED,
)


def estimator(kind):
    most = 3.0 if kind in WEIGHTED else None
    return kind(alpha=0.1, target_bound=3.0, max_sample_weight=most)


def not_found(reason):
    return pytest.mark.xfail(reason=reason, raises=pytest.fail.Exception, strict=True)


@pytest.mark.slow
@pytest.mark.parametrize("most", [None, 3.0])
def test_the_right_one_passes(most):
    check_private_estimator(estimator(DPPoissonRegressor).set_params(max_sample_weight=most))


@pytest.mark.parametrize("kind", [
    pytest.param(kind, marks=pytest.mark.slow) if kind in SLOW else kind for kind in BROKEN
])
def test_broken_ones_are_refused(kind):
    """By the check that is meant; all of them together take long."""
    checks = {check.__name__: check for _, check in private_estimator_checks(estimator(kind))}
    with pytest.raises(AssertionError):
        checks[FOUND_BY[kind]](estimator(kind))


@pytest.mark.slow
@pytest.mark.parametrize("kind, attributes", [
    pytest.param(
        MeanBeside, ("coef_", "intercept_", "mean_count_"),
        marks=not_found("what noise from elsewhere hides is no part of the loss of each noise"),
    ),
])
def test_what_is_hard_to_find_is_refused(kind, attributes):
    with pytest.raises(AssertionError):
        check_private_estimator(estimator(kind), ReleaseStatement(attributes))
