"""The check of private estimators refuses those that their authors got wrong, for what is wrong."""

import pytest

from dpselect import DPPoissonRegressor
from dpselect.testing import check_private_estimator, private_estimator_checks

from . import broken_sums
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
    # the loss of noise that passes a solver is added to that of a sum at the gate
    MeanBeside: "check_the_loss_of_each_noise",
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
    MeanBeside,
    NegativeCounts,
    InterceptForgotten,
    NoiseOfTheLargestCount,
    ExactObjective,
    *WEIGHTED,
)


def estimator(kind):
    most = 3.0 if kind in WEIGHTED else None
    return kind(alpha=0.1, target_bound=3.0, max_sample_weight=most)


ATTACK = "check_the_loss_of_each_noise"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, most",
    [
        *((name, None) for name in sorted({*FOUND_BY.values()} - {ATTACK, "check_the_stated_loss"})),
        (ATTACK, 3.0),
    ],
)
def test_the_right_one_passes(name, most):
    """What finds a mistake, weights included; tests of the checks attack it without weights, too."""
    model = estimator(DPPoissonRegressor).set_params(max_sample_weight=most)
    checks = {check.__name__: check for _, check in private_estimator_checks(model)}
    checks[name](model)


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow) if kind in SLOW else kind for kind in BROKEN]
)
def test_broken_ones_are_refused(kind):
    """By the check that is meant; all of them together take long."""
    checks = {check.__name__: check for _, check in private_estimator_checks(estimator(kind))}
    with pytest.raises(AssertionError):
        checks[FOUND_BY[kind]](estimator(kind))


# ---- sums with noise on a grid, by natural names and without a certificate

# a check that is meant to find each mistake, and what it says
SUMS_FOUND_BY = {
    "ForgetsCounts": ("check_the_loss_of_each_noise", "the values that noise hides differ"),
    "ForgetsThatARecordComes": ("check_the_loss_of_each_noise", "the values that noise hides differ"),
    "ClippedInAnotherNorm": ("check_the_loss_of_each_noise", "the values that noise hides differ"),
    "ScaledByTheLongestRow": ("check_the_loss_of_each_noise", "the values that noise hides differ"),
    "ScaledByTheLargestEntries": ("check_the_loss_of_each_noise", "the values that noise hides differ"),
    "Standardised": ("check_the_loss_of_each_noise", "the values that noise hides differ"),
    "OutliersDropped": ("check_the_loss_of_each_noise", "the values that noise hides differ"),
    "ExactCounts": ("check_the_gate", "counts_ depends on the records by another way"),
    "KeepsCounts": ("check_what_is_kept", "_counts depends on the records"),
    "OneNoiseForAllClasses": ("check_noise_is_independent", "the same noise"),
    "NoiseForSmallClasses": ("check_the_gate", "the noise .* differs between data sets"),
    "NoiseForOneEpsilon": ("check_noise_hides_all", "At epsilon=1e-06"),
    "BesideTheGate": ("check_the_loss_of_each_noise", "there is a noise at which"),
    "TargetsOfTheirOwnRange": ("check_the_loss_of_each_noise", "the values that noise hides differ"),
    "TargetsCentred": ("check_the_loss_of_each_noise", "the values that noise hides differ"),
    "HalfTheNoise": ("check_the_loss_of_each_noise", "the values that noise hides differ"),
    "GaussianNoise": ("check_the_loss_of_each_noise", "the values that noise hides differ"),
    "NoiseCutOff": ("check_the_loss_of_each_noise", "The noise has an end"),
    "EmptyCellsStayEmpty": ("check_the_gate", "cell_counts_ depends on the records by another way"),
    "CellsOfTheRecords": ("check_the_loss_of_each_noise", "the values that noise hides differ"),
    "TwoReleasesForOne": ("check_the_loss_of_each_noise", "the values that noise hides differ"),
}


def with_classes(kind):
    return kind(classes=[0, 1]) if issubclass(kind, broken_sums.NoisyCentroids) else kind()


# faster ones are much like them
SUMS_IN_SHORT = ("ScaledByTheLongestRow", "HalfTheNoise", "TwoReleasesForOne")


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.slow)
        if SUMS_FOUND_BY[kind.__name__][0] == "check_the_loss_of_each_noise"
        and kind.__name__ not in SUMS_IN_SHORT
        else kind
        for kind in broken_sums.BROKEN
    ],
)
def test_broken_sums_are_refused_for_what_is_wrong(kind):
    name, said = SUMS_FOUND_BY[kind.__name__]
    checks = {check.__name__: check for _, check in private_estimator_checks(with_classes(kind))}
    with pytest.raises(AssertionError, match=said):
        checks[name](with_classes(kind))


@pytest.mark.slow
@pytest.mark.parametrize("kind", broken_sums.RIGHT)
def test_right_sums_pass_and_the_report_says_what_ran(kind):
    report = check_private_estimator(with_classes(kind), n_trials=0)
    found = {result.name: result for result in report.results}
    for name in ("check_the_gate", "check_the_loss_of_each_noise", "check_noise_hides_all"):
        assert found[name].n_comparisons > 20
    assert found["check_the_stated_loss"].n_comparisons == 0
    assert found["check_the_stated_loss"].left_out == ("n_trials is 0",)
    assert f"{kind.__name__} passes" in str(report) and "left out: n_trials is 0" in str(report)
    assert all(result.n_comparisons or result.left_out for result in report.results)


def without_the_gate(name):
    def _release(self, records, calibration, noise):
        counts = self._counts(records.X, self._edges(records.X))
        return {name: counts + noise}

    return type("OffTheGate", (broken_sums.NoisyCells,), {"_release": _release})()


def result_of(name, model):
    checks = {check.__name__: check for _, check in private_estimator_checks(model)}
    return checks[name](model)


def test_a_check_that_does_not_run_says_so():
    watched = result_of("check_the_gate", broken_sums.NoisyCells())
    unseen = result_of("check_the_gate", without_the_gate("cell_counts_"))
    assert watched.n_comparisons and not watched.left_out
    assert not unseen.n_comparisons and "no number passes dpselect.noise.release" in unseen.left_out[0]


def test_only_public_names_of_a_release_may_depend_on_records():
    """A name that _release returns is a released number, unless it is private."""
    result_of("check_what_is_kept", without_the_gate("natural_counts_"))
    with pytest.raises(AssertionError, match="no attribute that is known to be released"):
        result_of("check_what_is_kept", without_the_gate("_counts"))
