"""What each fit releases is the documented function of the records and of its own noise.

Noise is drawn again from the key, and the release is computed anew from the formulas of the
documentation: a scale, an epsilon, a number of records, a row of the noise that is not the
problem's own would all show.
"""

import itertools

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import gamma, kstest
from sklearn.base import clone

from dpselect import DPLogisticRegression
from dpselect.linear_model.coefficient_fits import fits_of
from dpselect.metrics import (
    ClippedAbsoluteErrorScore,
    ClippedSquaredErrorScore,
    IntegratedSquaredErrorScore,
    LogisticScore,
)
from dpselect.noise import discrete_laplace, grid_noise
from dpselect.records.public_shape import PublicShape
from dpselect.rows import Parts
from tests.marks import a_third
from tests.trials import fitted_together, trial

from . import reference
from .cases import (
    ALL,
    COVARIANCE,
    DENSITY,
    LINEAR,
    NOISY_RIDGE,
    VARIANTS,
    N,
    P,
    in_pairs,
    key,
    records_for,
    standard_noise,
)
from .recording import Recorder


def fitted(model, *path):
    """Return the model fitted with a key of its own, and its noise."""
    model = clone(model).set_params(random_state=key(*path))
    return model.fit(*records_for(model)), standard_noise(model)


def check_linear(model, X, y, unit):
    expected, precision = reference.linear_release(model, X, y, unit)
    found = reference.linear_coefficients(model)
    assert found.shape == expected.shape == unit.shape[1:]
    assert found == pytest.approx(expected, abs=precision, rel=0)


def check_ridge(model, X, y, unit):
    expected, precision = reference.ridge_release(model, X, y, unit)
    assert reference.ridge_coefficients(model) == pytest.approx(expected, abs=precision, rel=0)


@pytest.mark.parametrize("name", LINEAR)
def test_linear_models_release_the_perturbed_minimiser(name):
    model, unit = fitted(LINEAR[name], "fit", name)
    check_linear(model, *records_for(model), unit)


@pytest.mark.parametrize("name", LINEAR)
def test_intervals_start_from_the_minimiser_that_was_trained(name):
    """And not from what is released, whose coefficients may be multiplied, and intercepts moved."""
    model, unit = fitted(LINEAR[name], "fit", name)
    if model.epsilon == np.inf:
        return
    trained, precision = reference.linear_training(model, *records_for(model), unit)
    fits, coef = fits_of(model, N), np.atleast_2d(model.coef_)
    if model.fit_intercept:
        coef = np.column_stack([coef, np.ravel(model.intercept_)])
    assert len(fits) == len(trained)
    for fit, w, released in zip(fits, trained, coef):
        assert fit.w == pytest.approx(w, abs=precision, rel=0)
        assert fit.scale * fit.w + fit.centre == pytest.approx(released)


@pytest.mark.parametrize("name", NOISY_RIDGE)
def test_ridge_releases_the_perturbed_minimiser(name):
    model, unit = fitted(NOISY_RIDGE[name], "fit", name)
    check_ridge(model, *records_for(model), unit)


def gaussian_loss(mu, epsilon):
    """Return the delta of Gaussian noise whose standard deviation is 1 / mu of the sensitivity."""
    far, near = log_ndtr(mu / 2 - epsilon / mu), log_ndtr(-mu / 2 - epsilon / mu)
    return np.exp(far) - np.exp(epsilon + near)


@pytest.mark.parametrize("name", COVARIANCE)
def test_ridge_releases_sums_with_noise_of_the_documented_scales(name, monkeypatch):
    recorder = Recorder(monkeypatch).watch(grid_noise)
    model, unit = fitted(COVARIANCE[name], "fit", name)
    X, y = records_for(model)
    noise = reference.released_statistics(model) - reference.exact_statistics(model, X, y)
    upper = np.triu_indices(len(noise))
    mu = None
    if model.delta:
        # the largest mu at which the sum of squares costs no more than delta
        low, high = 1e-3, 10.0
        for _ in range(100):
            middle = (low + high) / 2
            far = gaussian_loss(middle, model.epsilon) > model.delta
            low, high = (low, middle) if far else (middle, high)
        mu = low
    scales = reference.statistic_scales(model, P, mu)[upper]
    released = scales > 0
    assert noise[upper][~released] == pytest.approx(0.0, abs=1e-9)
    assert (noise == noise.T).all()
    if reference.ridge_norm(model, P) == "l1":
        drawn = recorder.of("grid_noise")[0]
        assert np.asarray(drawn["scales"]) == pytest.approx(scales[released], rel=1e-4)
        scales = np.ones_like(scales)
    precision = 1e-4 * np.max(reference.statistic_scales(model, P, mu))
    assert noise[upper][released] == pytest.approx(scales[released] * unit, abs=precision)


@pytest.mark.parametrize("n_features", [1, 2])
@pytest.mark.parametrize("name", DENSITY)
def test_histograms_release_the_masses_of_the_noisy_counts(name, n_features, monkeypatch):
    recorder = Recorder(monkeypatch).watch(grid_noise, discrete_laplace)
    model = clone(DENSITY[name]).set_params(random_state=key("fit", name))
    X = records_for(model, p=n_features)[0]
    model.fit(X)
    drawn = recorder.of("grid_noise", "discrete_laplace")[0]
    # one record leaves a cell and enters another: the counts move by 2 in all
    if model.noise == "laplace":
        assert np.asarray(drawn["scales"]) == pytest.approx(2 / model.epsilon, rel=1e-4)
    else:
        assert drawn["ratio"] == pytest.approx(np.exp(-model.epsilon / 2), rel=1e-9)
    noise = model.standard_noise(n_features)
    masses = reference.masses_of(reference.histogram_counts(model, X) + noise)
    assert model.density_ * model.bin_width**n_features == pytest.approx(masses, abs=1e-5)


# ---- the noise itself


@pytest.mark.parametrize("name", ALL)
def test_no_two_vectors_of_one_fit_are_alike(name):
    model = clone(ALL[name]).set_params(random_state=key("noise", name))
    noise = standard_noise(model)
    numbers = noise[noise != 0]
    if model.get_params().get("noise") != "discrete_laplace":
        assert len(np.unique(np.abs(numbers))) == len(numbers) == noise.size
    vectors = noise.reshape(-1, noise.shape[-1])
    for one, other in itertools.combinations(vectors, 2):
        # neither the same, nor one a multiple of the other
        assert abs(one @ other) < (1 - 1e-9) * np.linalg.norm(one) * np.linalg.norm(other)
    again = clone(model).set_params(random_state=key("other noise", name))
    assert not np.any((standard_noise(again) == noise) & (noise != 0)) or "discrete_laplace" in name


@pytest.mark.parametrize("name", LINEAR)
def test_the_law_of_each_problem_s_noise(name):
    model = clone(LINEAR[name]).set_params(random_state=np.random.RandomState(0))
    samples = np.array([standard_noise(model) for _ in range(300)])
    d = samples.shape[-1]
    for where, problem in itertools.product(range(2), range(samples.shape[2])):
        vectors = samples[:, where, problem]
        if reference.is_gaussian(model, P, samples.shape[2]):
            assert kstest(vectors.ravel(), "norm").pvalue > 1e-7
        elif reference.linear_bounds(model, P)[-1] and where == 0:
            assert kstest(np.abs(vectors).ravel(), "expon").pvalue > 1e-7
        else:
            assert kstest(np.linalg.norm(vectors, axis=1), gamma(d).cdf).pvalue > 1e-7
    flat = np.sign(samples.reshape(len(samples), -1))
    products = flat.T @ flat / len(flat)
    # signs of independent numbers; the largest of 300 products of 300 stays below with 1 - 1e-7
    assert np.abs(products - np.eye(len(products))).max() < 7 / np.sqrt(len(flat))


# ---- what is written in another order


BOTH = DPLogisticRegression(
    epsilon=1.7,
    alpha=0.05,
    data_norm=0.8,
    classes=[0, 1, 2],
    base_rate={0: 0.1, 1: 0.3, 2: 0.6},
    class_weight={0: 0.5, 1: 4.0, 2: 1.5},
)
WRITTEN = {"logistic-both": BOTH} | {
    name: model
    for name, model in LINEAR.items()
    if any(isinstance(value, (dict, list)) for value in model.get_params().values())
}


def turned_round(value):
    return dict(reversed(value.items())) if isinstance(value, dict) else value[::-1]


@pytest.mark.parametrize("name", WRITTEN)
def test_the_order_in_which_labels_are_written_means_nothing(name):
    model = clone(WRITTEN[name]).set_params(random_state=key("order", name))
    X, y = records_for(model)
    expected = clone(model).fit(X, y)
    for parameter, value in model.get_params().items():
        if not isinstance(value, (dict, list)):
            continue
        other = clone(model).set_params(**{parameter: turned_round(value)}).fit(X, y)
        for attribute in ("classes_", "coef_", "intercept_"):
            assert (getattr(other, attribute) == getattr(expected, attribute)).all(), parameter


# ---- many at once


def variants(model):
    """Return models that are solved together, and differ in all that may differ."""
    numbers = [(0.4, 0.7), (2.5, 0.2), (1.1, 0.05)]
    kind = [
        clone(model).set_params(epsilon=epsilon, alpha=alpha, random_state=key("batch", i))
        for i, (epsilon, alpha) in enumerate(numbers)
    ]
    others = {"objective": "output", "output": "objective"}
    kind.append(
        clone(model).set_params(
            perturbation=others[model.perturbation], random_state=key("batch", len(numbers))
        )
    )
    return kind


@pytest.mark.parametrize("name", a_third(LINEAR))
def test_models_that_are_solved_together_have_their_own_noise_and_scales(name):
    models = variants(LINEAR[name])
    X, y = records_for(models[0])
    for model, trained in zip(models, fitted_together(models, X, y)):
        check_linear(trained, X, y, standard_noise(model))


def unequal_parts():
    """Return splits of different sizes, with records in several parts or in none."""
    order = np.random.default_rng(5).permutation(N)
    return [(order[:100], order[110:]), (order[60:], order[:45]), (order[20:90], order[90:])]


SCORED = in_pairs(
    {
        name: model
        for name, model in VARIANTS.items()
        # (of the two perturbations, which are solved together, one is named)
        if "-1" in name and ("output" in name) == name.startswith("ridge-output")
        if "weak" not in name and "covariance" not in name and "density" not in name
    }
)


@pytest.mark.parametrize("name", a_third(SCORED))
def test_scores_on_splits_are_those_of_the_documented_models(name):
    models = variants(SCORED[name])
    X, y = records_for(models[0])
    splits, linear = unequal_parts(), not name.startswith("ridge")
    score = LogisticScore() if linear else ClippedSquaredErrorScore(0.81)
    if "huber" in name:
        score = ClippedAbsoluteErrorScore(0.81)
    trials, parts = list(map(trial, models)), Parts.from_splits(splits, X)
    found = models[0].split_scores(trials, score, X, y, parts)
    release = reference.linear_release if linear else reference.ridge_release
    for (train, test), row in zip(splits, found):
        for model, value in zip(models, row):
            w, _ = release(model, X[train], y[train], standard_noise(model))
            assert value == pytest.approx(reference_score(model, w, X[test], y[test]), abs=2e-5)


def test_what_is_given_back_on_a_split_is_that_of_its_size():
    """Of candidates with one noise, also where "auto" and a number, and base rates, are compared."""
    plain = clone(LINEAR["logistic-objective-l2-2 classes-1"]).set_params(random_state=key("back"))
    d, splits = P + 1, unequal_parts()
    models = [
        clone(plain).set_params(epsilon=signal * d / 65, alpha=alpha, base_rate=rate)
        for signal, alpha, rate in itertools.product((10, 225), ("auto", 0.05), (None, 0.02, 0.1))
    ]
    X, y = records_for(models[0])
    trials, parts = list(map(trial, models)), Parts.from_splits(splits, X)
    stretched = [[t.calibration(PublicShape(n, P)).stretch for n in (60, 100)] for t in trials]
    assert [1.0, 1.25] in stretched and [1.25, 1.0] in stretched and [1.0, 1.0] in stretched
    found = plain.split_scores(trials, LogisticScore(), X, y, parts)
    for (train, test), row in zip(splits, found):
        for model, value in zip(models, row):
            w, _ = reference.linear_release(model, X[train], y[train], standard_noise(model))
            assert value == pytest.approx(reference_score(model, w, X[test], y[test]), abs=2e-5)


@pytest.mark.parametrize("name", COVARIANCE)
def test_scores_of_released_sums_on_splits(name):
    models = [
        clone(COVARIANCE[name]).set_params(epsilon=epsilon, random_state=key("batch", i))
        for i, epsilon in enumerate((0.7, 40.0))
    ]
    X, y = records_for(models[0])
    splits, score = unequal_parts(), ClippedSquaredErrorScore(0.81)
    trials, parts = list(map(trial, models)), Parts.from_splits(splits, X)
    found = models[0].split_scores(trials, score, X, y, parts)
    for (train, test), row in zip(splits, found):
        for model, value in zip(models, row):
            alone = clone(model).set_params(random_state=model.random_state).fit(X[train], y[train])
            w = reference.ridge_coefficients(alone)
            assert value == pytest.approx(reference_score(model, w, X[test], y[test]), abs=1e-6)


def reference_score(model, w, X, y):
    if hasattr(model, "classes"):
        found = reference.decisions(model, reference.design(model, X) @ w.T)
        margins = found * reference.signs_of(y, np.array(model.classes))
        return -np.logaddexp(0, -margins).mean()
    if reference.kind_of(model) == "huber":
        centre, h = reference.units_of(model)
        errors = np.abs(y - centre - h * (reference.design(model, X) @ w[0]))
        return -np.minimum(errors, 0.81).mean()
    A = np.hstack([reference.clipped_rows(model, X), np.ones((len(X), 1))])
    predicted = reference.ridge_target(model)[0] + A[:, : len(w)] @ w
    return -np.minimum((y - predicted) ** 2, 0.81).mean()


@pytest.mark.parametrize("name", DENSITY)
def test_scores_of_histograms_on_splits(name):
    widths = (0.25, 0.5, 1.0)
    models = [
        clone(DENSITY[name]).set_params(bin_width=width, random_state=key("batch", i))
        for i, width in enumerate(widths)
    ]
    X, splits = records_for(models[0], p=2)[0], unequal_parts()
    score = IntegratedSquaredErrorScore()
    trials, parts = list(map(trial, models)), Parts.from_splits(splits, X)
    found = models[0].split_scores(trials, score, X, None, parts)
    for (train, test), row in zip(splits, found):
        for model, value in zip(models, row):
            counts = reference.histogram_counts(model, X[train]) + model.standard_noise(2)
            density = reference.masses_of(counts) / model.bin_width**2
            kept = X[test][(np.abs(X[test]) <= 1).all(axis=1)]
            seen = reference.histogram_counts(model, kept) if len(kept) else 0
            squared = (density**2).sum() * model.bin_width**2
            assert value == pytest.approx(2 * (seen * density).sum() / len(test) - squared, abs=1e-5)
