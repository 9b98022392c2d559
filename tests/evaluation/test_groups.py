"""Figures of public groups, whose records are as private as their labels."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from dpselect import Evaluation, evaluate
from dpselect.accounting.privacy_loss import PrivacyLoss
from dpselect.evaluation import Estimate
from dpselect.evaluation.binary import METRICS, BinaryEvaluation
from dpselect.evaluation.evaluation import noise_variance
from dpselect.evaluation.intervals import NoisyCounts
from dpselect.noise import as_generator, discrete_laplace
from dpselect.noise.grid import noise_ratio

INF = float("inf")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(6000, 2))
BY = np.array(["young", "old"])[(RNG.random(6000) < 0.4).astype(int)]
Y = (X[:, 0] + RNG.normal(size=6000) * np.where(BY == "old", 2, 0.5) > 0.3).astype(int)
MODEL = LogisticRegression().fit(X[:1000], Y[:1000])
GIVEN = dict(by=BY[1000:], levels=["young", "old"])


@pytest.mark.parametrize("kind", ["two", "three", "regression"])
def test_exact_figures_are_those_of_the_records(kind):
    y = {"two": Y, "three": Y + (X[:, 1] > 1), "regression": X[:, 0] + X[:, 1] ** 2}[kind]
    more = {"target_range": (-5, 10)} if kind == "regression" else {}
    model = (LinearRegression() if more else LogisticRegression()).fit(X[:1000], y[:1000])
    rest = X[1000:], y[1000:]
    both = evaluate(model, *rest, epsilon=INF, **GIVEN, **more)
    whole = evaluate(model, *rest, epsilon=INF, **more)
    assert both.counts_.shape == (2, *whole.counts_.shape)
    np.testing.assert_array_equal(both.counts_.sum(axis=0), whole.counts_)
    for level in ("young", "old"):
        here = BY[1000:] == level
        alone = evaluate(model, rest[0][here], rest[1][here], epsilon=INF, **more)
        for name in alone.metrics:
            for one, other in ((both.group(level), alone), (both, whole)):
                found, exact = one.metric(name), other.metric(name)
                np.testing.assert_allclose(
                    [found.value, found.low, found.high], [exact.value, exact.low, exact.high], atol=1e-9
                )
        assert both.to_frame().loc[level].shape == (len(whole.metrics), 3)
    if kind != "regression":
        parts = [both.group(level).confusion_matrix() for level in ("young", "old")]
        total = [[cell.value for cell in row] for row in whole.confusion_matrix()]
        np.testing.assert_allclose(
            sum(np.array([[cell.value for cell in row] for row in part]) for part in parts), total
        )
        np.testing.assert_allclose([[c.value for c in row] for row in both.confusion_matrix()], total)


def test_a_record_that_changes_its_group_moves_two_counts():
    first = evaluate(MODEL, X[1000:], Y[1000:], epsilon=INF, **GIVEN)
    other = GIVEN["by"].copy()
    other[0] = "old" if other[0] == "young" else "young"
    second = evaluate(MODEL, X[1000:], Y[1000:], epsilon=INF, by=other, levels=GIVEN["levels"])
    assert np.abs(first.counts_ - second.counts_).sum() == 2
    # not even how many records a group has is public
    assert first.group("old").n_records == 5000


def test_what_it_states_and_shows():
    found = evaluate(MODEL, X[1000:], Y[1000:], epsilon=1.0, **GIVEN)
    assert "128 counts of scores and labels of 2 groups" in str(found.privacy_)
    assert repr(found).count("roc_auc") == 3 and "group 'old'" in repr(found)
    assert "group &#x27;old&#x27;" in found._repr_html_()
    old = found.group("old")
    assert "of group 'old'" in repr(old) and repr(old).count("roc_auc") == 1
    assert isinstance(old, Evaluation) and old.privacy_ is found.privacy_
    gap = found.group("young").metric("accuracy") - old.metric("accuracy")
    assert gap.low < gap.value < gap.high and gap.value > 0.1
    assert old.roc_curve()["recall"].shape == (31,) and len(old.calibration_curve()) == 6


def test_ends_of_a_difference():
    found = Estimate(0.8, 0.7, 0.85) - Estimate(0.5, 0.46, 0.53)
    assert found.value == pytest.approx(0.3)
    assert found.low == pytest.approx(0.3 - np.hypot(0.1, 0.03))
    assert found.high == pytest.approx(0.3 + np.hypot(0.05, 0.04))


def coverage(m, epsilon, scale=1.0, repetitions=1000):
    """Of the figures of a small group among others, and of its difference to them."""
    rng = np.random.default_rng(2)
    cells = (np.array([[0.25], [0.75]]) * rng.dirichlet(np.full(64, 0.5), size=2)).ravel()
    generator = as_generator(0)
    counts = generator.multinomial(m, cells, size=repetitions)
    noise = scale * discrete_laplace(generator, counts.shape, noise_ratio(epsilon, 2))
    found = NoisyCounts.of(1.0 * (counts + noise), m, noise_variance(epsilon))
    exact = NoisyCounts.of(1e12 * cells[None], 1e12, 0.0)
    positive = np.arange(64) // 2 > 15
    for name, metric in METRICS.items():
        truth = metric(exact.group(0, 2), positive)[0][0]
        value, low, high = metric(found.group(0, 2), positive)
        told = ~np.isnan(value)
        yield name, told.mean(), ((low <= truth) & (truth <= high))[told].mean()


@pytest.mark.slow
def test_intervals_of_groups_cover():
    for m, epsilon in ((2000, 1.0), (20_000, 0.3)):
        for name, told, covered in coverage(m, epsilon):
            assert told < 0.5 or covered > 0.91, (name, m, epsilon)


def test_noise_that_is_longer_than_stated_is_caught():
    found = {name: covered for name, _, covered in coverage(20_000, 0.3, 2.5)}
    assert found["accuracy"] < 0.85 and found["positive_rate"] < 0.85


@pytest.mark.slow
def test_differences_cover():
    rng, right = np.random.default_rng(3), 0
    cells = np.concatenate([0.3 * rng.dirichlet(np.ones(64)), 0.7 * rng.dirichlet(np.ones(64))])

    def gap(counts, m, epsilon):
        evaluation = BinaryEvaluation(
            counts_=counts.reshape(2, 32, 2),
            n_records=m,
            privacy_=PrivacyLoss(epsilon, label=""),
            levels=(0, 1),
            classes=np.arange(2),
            calibrated_scores=True,
        )
        return evaluation.group(0).metric("accuracy") - evaluation.group(1).metric("accuracy")

    truth = gap(1e12 * cells, 10**12, INF).value
    generator = as_generator(1)
    for _ in range(300):
        noise = discrete_laplace(generator, 128, noise_ratio(1.0, 2))
        found = gap(1.0 * (generator.multinomial(4000, cells) + noise), 4000, 1.0)
        right += found.low <= truth <= found.high
    # 0.87 of 300 and more has a probability below 1e-7 at 0.95
    assert right > 0.87 * 300


@pytest.mark.parametrize(
    "bad, said",
    [
        (dict(by=None), "levels was given without by"),
        (dict(levels=None), "by was given without levels"),
        (dict(levels=["young"]), "levels"),
        (dict(levels="young"), "levels"),
        (dict(levels=5), "levels"),
        (dict(levels=["young", "young"]), "levels"),
        (dict(levels=[["young"], ["old"]]), "levels"),
        (dict(levels=[None, "old"]), "levels"),
        (dict(levels=["young", "aged"]), "by holds a group"),
        (dict(by=BY[:7]), "by"),
        (dict(by=np.column_stack([BY, BY])), "by"),
        (dict(by=5), "by"),
        (dict(by=np.arange(5000)), "by holds"),
        (dict(by=["SECRET"] * 5000), "by holds"),
    ],
)
def test_bad_input(bad, said):
    with pytest.raises((ValueError, TypeError), match=said) as caught:
        evaluate(MODEL, X[1000:], Y[1000:], epsilon=1.0, **(GIVEN | bad))
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("level", ["other", None, ["old"], np.arange(2)])
def test_bad_groups(level):
    with pytest.raises(ValueError, match="level="):
        evaluate(MODEL, X[1000:], Y[1000:], epsilon=1.0, **GIVEN).group(level)
    with pytest.raises(ValueError, match="level="):
        evaluate(MODEL, X[1000:], Y[1000:], epsilon=1.0).group("old")
