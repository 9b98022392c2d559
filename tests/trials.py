"""Models that are trained and never released, as searches do it, and their noise."""

from dataclasses import replace

import numpy as np
from sklearn.base import clone

from dpselect.base.estimator import Trial
from dpselect.linear_model.classifier import DPLinearClassifier
from dpselect.linear_model.design import design_and_targets
from dpselect.linear_model.sweep import solve
from dpselect.noise import root_stream
from dpselect.records.public_shape import PublicShape


def trial(model):
    """Return a model's trial at its epsilon and random state."""
    return Trial(model, model.epsilon, model.random_state)


def fitted(model, X, y=None):
    """Train a copy of a model at its epsilon and random state, without a charge or a warning."""
    return trial(model).fitted(X, y)


def scales_of(model, n_samples, n_features, n_problems=1):
    """Return the scales of a linear model's noise."""
    return model.calibration(PublicShape(n_samples, n_features, n_problems)).scales


def solved(models, X, y, parts=None):
    """Return the coefficients of linear classifiers that are solved together, shape (J, k, K, d).

    Without parts, J is 1 and all records train.
    """
    trials = list(map(trial, models))
    records = trials[0].records(X, y)
    shape = records.shape
    sizes = [shape.n_samples] if parts is None else map(int, parts.train_sizes)
    calibrations = [[t.calibration(replace(shape, n_samples=n)) for t in trials] for n in sizes]
    noises = [t.noise(shape) for t in trials]
    return solve(calibrations, noises, *design_and_targets(models[0].problem(), records), parts)


def fitted_together(models, X, y):
    """Return trained models; those with one problem are solved together, whatever their class."""
    if not isinstance(models[0], DPLinearClassifier):
        return [fitted(model, X, y) for model in models]
    public, groups, trained = trial(models[0]).records(X, y).public, {}, {}
    for i, model in enumerate(models):
        groups.setdefault(replace(model.problem(), kind=None), []).append(i)
    for problem, places in groups.items():
        (coefficients,) = solved([models[i] for i in places], X, y)
        for i, w in zip(places, coefficients):
            trained[i] = trial(models[i]).published(**problem.attributes(w), **public)
    return [trained[i] for i in range(len(models))]


def with_noise(model, noise):
    """Return the model with other noise: a function of what it would be, or an array."""
    kind = type(model)

    def _standard_noise(self, *args):
        usual = kind._standard_noise(self, *args)
        return np.asarray(noise(usual) if callable(noise) else noise)

    twin = type(kind.__name__, (kind,), {"_standard_noise": _standard_noise})
    return twin(**clone(model).get_params(deep=False))


def watch_noise(monkeypatch, kind):
    """Return a list of what follows: the random state and the noise of each sample of a class."""
    seen, original = [], kind._noise_sample

    def spy(self, shape, epsilon, random_state):
        noise = original(self, shape, epsilon, random_state)
        seen.append((random_state, noise))
        return noise

    monkeypatch.setattr(kind, "_noise_sample", spy)
    return seen


def shares_moved(form, bounds, models, pairs, levels):
    """Return how far neighbours move risk, minimum and root of the excess, as shares of the bounds."""
    shares = []
    for pair in pairs:
        one, other = (form.reduction(*records, levels, root_stream(0)) for records in pair)
        roots = [np.sqrt(r.excesses(models[:, None])) for r in (one, other)]
        shares.append(
            (
                np.abs(one.risks(models[:, None]) - other.risks(models[:, None])).max() / bounds.risk,
                abs(one.minimum - other.minimum) / bounds.minimum,
                np.abs(roots[0] - roots[1]).max() / bounds.root,
            )
        )
    return np.max(shares, axis=0)
