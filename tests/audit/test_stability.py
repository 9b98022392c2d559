"""The audits find what is there: twins that break a claim are caught, the library is not."""

import dataclasses
import hashlib
import math

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.base import clone

from dpselect import DPLinearSVC, DPLogisticRegression, DPPoissonRegressor
from dpselect.audit import ScoreChange, attack_certificate, stability_violation
from dpselect.density import DPHistogramDensity
from dpselect.mechanisms import exponential_mechanism
from dpselect.metrics import (
    BrierScore,
    IntegratedSquaredErrorScore,
    PoissonDevianceScore,
    RampScore,
)
from dpselect.noise import InnerStream, root_stream

# --- Chaudhuri and Vinterbo (2013), section 6.1: a record votes for two options

n, alpha = 100, 0.5
VOTES = np.column_stack([np.ones(n), np.repeat([0.0, 1.0], n // 2)])
NEIGHBOUR = np.vstack([[[0.0, 1.0]], VOTES[1:]])
# the exponential mechanism picks another winner for the two, when its uniform sample lies between
INTERVAL = expit(n * alpha / 8 - alpha / 2), expit(n * alpha / 8)


def draw_votes(rng, size):
    return rng.integers(2, size=(size, 2)).astype(float)


def exponential_mechanism_first(r0, r):
    def score_of(votes):
        f = votes.mean(axis=0)
        weights = np.exp(n * alpha / 4 * (f - f.max()))
        winner = int(r0 > weights[0] / weights.sum())
        return f[winner] + 4 / (alpha * n) * r[winner]

    return score_of


def gumbel_first(stream, r):
    def score_of(votes):
        f = votes.mean(axis=0)
        winner = exponential_mechanism(f, 1 / n, alpha / 2, stream)
        return f[winner] + 4 / (alpha * n) * r[winner]

    return score_of


def noisy_means(votes, r):
    return votes.mean(axis=0) + 2 / (alpha * n) * np.asarray(r)


def all_samples(n_noise_samples):
    rng = np.random.default_rng(0)
    return list(zip(rng.random(n_noise_samples), rng.laplace(size=(n_noise_samples, 2))))


def test_the_winner_flips_in_the_published_interval_only():
    low, high = INTERVAL
    for r0, flips in (
        (low - 1e-9, False),
        (low + 1e-9, True),
        (high - 1e-9, True),
        (high + 1e-9, False),
    ):
        score_of = exponential_mechanism_first(r0, np.zeros(2))
        moved = abs(score_of(VOTES) - score_of(NEIGHBOUR))
        assert math.isclose(moved, 1 / 2 - 1 / n if flips else 1 / n)
    x = math.exp(n * alpha / 8)
    published = x * math.expm1(alpha / 2) / ((x + 1) * (x + math.exp(alpha / 2)))
    assert math.isclose(high - low, published)


def test_the_unstable_procedure_is_caught_in_the_interval():
    score_of = exponential_mechanism_first(np.mean(INTERVAL), np.zeros(2))
    found = stability_violation(score_of, draw_votes, n, bound=1 / n, random_state=0)
    assert found.change >= 1 / 3 and found.ratio == found.change * n
    assert (np.argwhere((found.records != found.neighbour).any(axis=1)) == found.index).all()
    assert found.change == abs(score_of(found.records) - score_of(found.neighbour))


@pytest.mark.slow
def test_it_is_unstable_for_almost_all_noise():
    # a flip happens where the means differ by 4 |logit r0| / (alpha n)
    for r0, r in all_samples(8):
        largest = 4 / (alpha * n) * abs(logit(r0) + r[0] - r[1]) + 1 / n
        score_of = exponential_mechanism_first(r0, r)
        found = stability_violation(score_of, draw_votes, n, random_state=0)
        assert largest - 2 / n <= found.change <= largest * (1 + 1e-9)


@pytest.mark.slow
def test_another_map_from_noise_to_the_same_mechanism_is_unstable_too():
    changes = [
        stability_violation(gumbel_first(root_stream(i), r), draw_votes, n, random_state=0).change
        for i, (_, r) in enumerate(all_samples(4))
    ]
    assert np.median(changes) > 5 / n


@pytest.mark.slow
def test_the_maximum_of_noisy_means_is_stable():
    for _, r in all_samples(4):
        found = stability_violation(
            lambda votes: noisy_means(votes, r).max(), draw_votes, n, bound=1 / n, random_state=0
        )
        assert math.isclose(found.ratio, 1.0, rel_tol=1e-9)


def test_erratum_a_flip_of_the_maximum_does_not_mean_that_the_means_are_close():
    """The paper concludes from a flip that f(D, i) and f(D, i') differ by at most 1/n."""
    r = np.array([0.0, (1 / 2 - 1 / n) / (2 / (alpha * n))])  # between the gaps 1/2 and 1/2 - 2/n
    winners = [noisy_means(votes, r).argmax() for votes in (VOTES, NEIGHBOUR)]
    assert winners == [0, 1]
    means, means_neighbour = VOTES.mean(axis=0), NEIGHBOUR.mean(axis=0)
    assert abs(means[0] - means[1]) == 1 / 2  # the claim, f(D, i) - f(D, i')
    assert abs(means[0] - means_neighbour[1]) > 1 / 3  # that of the last display
    change = abs(noisy_means(VOTES, r).max() - noisy_means(NEIGHBOUR, r).max())
    assert change <= 1 / n * (1 + 1e-9)  # what was to be shown holds all the same


# --- estimators


def draw_rows(rng, size):
    X = rng.normal(size=(size, 2)) * 10 ** rng.uniform(-1, 1, size=(size, 1))
    return X, rng.integers(2, size=size)


def draw_numbers(rng, size):
    return rng.random((size, 1))


NO_CLASSES = dict(fit_intercept=False, random_state=root_stream(0))
COMMON = dict(classes=[0, 1], **NO_CLASSES)


# the derivatives of the logistic loss on two neighbours add up to about 1, not 2, near w = 0
@pytest.mark.parametrize(
    "estimator, score, draw, least",
    [
        pytest.param(
            DPLogisticRegression(alpha=0.1, **COMMON),
            BrierScore(),
            draw_rows,
            (0.4, 0.65),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            DPLogisticRegression(alpha=1.0, perturbation="output", **COMMON),
            RampScore(),
            draw_rows,
            (0.4, 0.3),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            DPLinearSVC(alpha=0.1, **COMMON),
            RampScore(-1.0, 1.0),
            draw_rows,
            (0.9, 0.9),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            DPPoissonRegressor(alpha=5.0, target_bound=1.0, **NO_CLASSES),
            PoissonDevianceScore(1.0),
            draw_rows,
            (0.65, 0.65),
            marks=pytest.mark.slow,
        ),
        (
            DPHistogramDensity(2.0, bin_width=0.25, random_state=root_stream(0), bounds=(0, 1)),
            IntegratedSquaredErrorScore(),
            draw_numbers,
            (0.8, 0.3),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_certificates_hold_and_come_close(estimator, score, draw, least):
    found = attack_certificate(estimator, score, draw, 20, random_state=0)
    assert len([*found]) == len(least)
    for part, share in zip(found, least):
        assert share < part.ratio <= 1 + 1e-6


def test_the_bound_is_that_of_all_validation_records():
    estimator = DPHistogramDensity(2.0, bin_width=0.25, random_state=root_stream(0), bounds=(0, 1))
    parts = [
        attack_certificate(
            estimator,
            IntegratedSquaredErrorScore(),
            draw_numbers,
            20,
            m,
            random_state=0,
            n_trials=1,
            n_steps=1,
        )
        for m in (1, 4)
    ]
    (training, one), (again, four) = ([part.bound for part in found] for found in parts)
    assert (training, one) == (again, pytest.approx(4 * four))


@pytest.mark.slow
def test_every_number_reaches_what_it_is_for():
    asked, fits, sizes = [], [], []

    class Watched(DPLogisticRegression):
        def stability_certificate(self, score, n_samples, n_features, n_problems=1):
            asked.append((score, n_samples, n_features, n_problems, self.random_state.key))
            return super().stability_certificate(score, n_samples, n_features, n_problems)

        def fit(self, X, y):
            fits.append((len(X), self.random_state.key))
            return super().fit(X, y)

    def draw(rng, size):
        sizes.append(size)
        return rng.normal(size=(size, 2)), rng.integers(3, size=size)

    model, score = Watched(alpha=0.1, classes=[0, 1, 2], random_state=root_stream(0)), BrierScore()
    counts = []
    for n_trials, n_steps in ((1, 1), (3, 1), (1, 40)):
        for seen in (asked, fits, sizes):
            seen.clear()
        found = attack_certificate(
            model, score, draw, 11, 4, n_problems=3, n_trials=n_trials, n_steps=n_steps, random_state=0
        )
        right = model.stability_certificate(score, 11, 2, 3)
        assert asked[:-1] == [(score, 11, 2, 3, root_stream(0).key)] * n_trials
        assert set(fits) == {(11, root_stream(0).key)} and sizes.count(4) >= n_trials
        assert [part.bound for part in found] == [right.training, right.span / 4]
        assert [len(part.records[0]) for part in found] == [11, 4]
        counts.append(len(fits))
    assert counts[1] > 2 * counts[0] and counts[2] >= counts[0] + 39


class NoiseFromTheRecords(DPLogisticRegression):
    """Each fit by itself has the law of DPLogisticRegression; no noise is ever fixed."""

    def fit(self, X, y):
        digest = hashlib.blake2b(X.tobytes() + y.tobytes(), digest_size=32).digest()
        self.set_params(random_state=InnerStream(digest))
        return super().fit(X, y)


class HalfACertificate(DPLinearSVC):
    """Charges the sensitivity when a record is added or removed."""

    def stability_certificate(self, *args, **kwargs):
        right = super().stability_certificate(*args, **kwargs)
        return dataclasses.replace(right, training=right.training / 2, span=right.span / 2)


@pytest.mark.slow
def test_noise_from_the_records_is_caught():
    # at n = 1000 the honest model hardly moves, and the noise is in proportion
    twin = NoiseFromTheRecords(alpha=0.1, **COMMON)
    honest = DPLogisticRegression(alpha=0.1, **COMMON)
    ratios = [
        attack_certificate(model, BrierScore(), draw_rows, 1000, n_trials=2, n_steps=5, random_state=0)[
            0
        ].ratio
        for model in (twin, honest)
    ]
    assert ratios[0] > 3 and ratios[1] < 1


@pytest.mark.slow
def test_a_certificate_of_half_the_size_is_caught():
    found = attack_certificate(
        HalfACertificate(alpha=0.1, **COMMON),
        RampScore(-1.0, 1.0),
        draw_rows,
        20,
        n_trials=5,
        random_state=0,
    )
    assert found and all(part.ratio > 1.5 for part in found)


# --- the search itself


@pytest.mark.slow
def test_an_int_repeats_the_search():
    changes = [
        attack_certificate(
            DPLogisticRegression(alpha=0.1, **COMMON),
            BrierScore(),
            draw_rows,
            10,
            n_trials=2,
            n_steps=10,
            random_state=seed,
        )[0]
        for seed in (0, 0, 1)
    ]
    assert changes[0].change == changes[1].change != changes[2].change
    for one, other in zip(changes[0].records, changes[1].records):
        np.testing.assert_array_equal(one, other)


def test_records_keep_their_form():
    bare = stability_violation(lambda X: X.sum(), draw_numbers, 5, n_trials=1, random_state=0)
    assert isinstance(bare.records, np.ndarray) and bare.records.shape == (5, 1)
    pair = stability_violation(lambda X, y: (X.T @ y).sum(), draw_rows, 5, n_trials=1, random_state=0)
    X, y = pair.neighbour
    assert X.shape == (5, 2) and y.dtype == draw_rows(np.random.default_rng(), 1)[1].dtype
    assert pair.bound is None and pair.ratio is None
    # what is shown does not fill the screen
    assert repr(pair).startswith("ScoreChange(change=") and len(repr(pair)) < 100


def test_one_record():
    found = stability_violation(lambda X: X.sum(), draw_numbers, 1, random_state=0)
    assert isinstance(found, ScoreChange) and 0.9 < found.change <= 1 and found.index == 0


def test_nothing_is_changed_in_place():
    given = []

    def score_of(records):
        given.append((records, records.copy()))
        return records.sum()

    stability_violation(score_of, draw_numbers, 8, n_trials=2, n_steps=20, random_state=0)
    assert given
    for records, copy in given:
        np.testing.assert_array_equal(records, copy)


def test_new_noise_at_each_call_is_refused():
    model = DPLogisticRegression(alpha=0.1, classes=[0, 1])
    V = draw_rows(np.random.default_rng(0), 5)
    with pytest.raises(ValueError, match="not at fixed noise.*root_stream"):
        stability_violation(lambda X, y: BrierScore()(clone(model).fit(X, y), *V), draw_rows, 10)
    # attack_certificate takes one noise sample and keeps it
    training, validation = attack_certificate(model, BrierScore(), draw_rows, 10, n_trials=1, n_steps=5)
    assert max(training.ratio, validation.ratio) <= 1


@pytest.mark.parametrize("score", [math.nan, math.inf])
def test_a_score_that_is_not_finite_is_refused(score):
    with pytest.raises(ValueError, match="finite"):
        stability_violation(lambda X: score, draw_numbers, 3)


def test_too_few_records_are_refused():
    with pytest.raises(ValueError, match="gave arrays of 4, 3 rows when asked for 4 records"):
        stability_violation(lambda X, y: 0.0, lambda rng, size: (np.ones(4), np.ones(3)), 4)


@pytest.mark.parametrize(
    "wrong", [{"n_samples": 0}, {"n_trials": 0}, {"n_steps": -1}, {"bound": 0.0}, {"bound": -1}]
)
def test_parameters_are_checked(wrong):
    parameters = {"n_samples": 3, **wrong}
    with pytest.raises(ValueError, match=next(iter(wrong))):
        stability_violation(lambda X: 0.0, draw_numbers, **parameters)
    if "bound" not in wrong:
        with pytest.raises(ValueError, match=next(iter(wrong))):
            attack_certificate(DPLogisticRegression(), BrierScore(), draw_rows, **parameters)


def draw_persons(rng, size):
    """Return persons with one row or some, alike or not."""
    rows, labels = np.empty(size, dtype=object), np.empty(size, dtype=object)
    for i in range(size):
        m = int(rng.integers(1, 20)) if rng.random() < 0.5 else 1
        rows[i], labels[i] = rng.choice([-5.0, 0.0, 5.0], size=(m, 2)), rng.integers(2, size=m)
        if rng.random() < 0.5:
            rows[i][:], labels[i][:] = rows[i][0], labels[i][0]
    return rows, labels


class TakesRowsForPersons(DPLogisticRegression):
    def _records(self, X, y):
        records = super()._records(X, y)
        persons = dataclasses.replace(records.persons, weight=np.ones(len(records.X)))
        return dataclasses.replace(records, persons=persons)


@pytest.mark.parametrize("kind", [DPLogisticRegression, TakesRowsForPersons])
def test_certificates_of_persons(kind):
    model = kind(alpha=0.5, classes=[0, 1], perturbation="output", epsilon=30.0)
    training, validation = attack_certificate(
        model,
        BrierScore(),
        draw_persons,
        12,
        persons=True,
        n_trials=1,
        n_steps=10,
        random_state=0,
    )
    assert 0.1 < validation.ratio <= 1
    assert 0.02 < training.ratio <= 1 if kind is DPLogisticRegression else training.ratio > 1
