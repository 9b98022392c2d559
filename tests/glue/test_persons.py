"""Every class that has a fit: either a person with any number of rows moves it no more than a record, or
`groups` are refused."""

import inspect
import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import Pipeline

import dpselect
from dpselect import preprocessing
from dpselect.linear_model.calibration import RESIDUAL_FRACTION, largest_rank, noise_epsilon
from dpselect.linear_model.design import design_and_targets
from dpselect.linear_model.gaussian_noise import gaussian_sharpness
from dpselect.records.persons import Persons
from dpselect.records.public_shape import PublicShape
from tests.marks import a_third

from .cases import LINEAR, P, n_problems, records_for

PUBLIC = {
    name: kind
    for module in (dpselect, preprocessing)
    for name, kind in vars(module).items()
    if inspect.isclass(kind) and hasattr(kind, "fit") and kind.__module__.startswith("dpselect")
}
ATTACKED = LINEAR | {
    f"poisson-{perturbation}": dpselect.DPPoissonRegressor(
        epsilon=1.7, target_bound=3.0, alpha=0.05, data_norm=0.8, perturbation=perturbation
    )
    for perturbation in ("objective", "output")
}
N, SIZES = 40, [1, 2, 10, 1000]


def test_what_takes_no_groups_refuses_them():
    """Before any record is read, by a word on `groups`: never in silence."""
    taken = {name for name, kind in PUBLIC.items() if getattr(kind, "takes_groups", False)}
    # these have attacks of their own
    taken |= {"StabilityGridSearchCV", "AccuracyFirstSearchCV"}
    taken |= {"Thresholdout", "Ladder", "ThresholdoutFeatureSelector"}
    assert {"DPLogisticRegression", "DPLinearSVC", "DPHuberRegressor", "DPPoissonRegressor"} <= taken
    required = {
        "estimator": dpselect.DPLogisticRegression(classes=[0, 1]),
        "param_grid": {"alpha": [1.0]},
        "target_bound": 1.0,
        "target_range": (-1, 1),
        "target": 0.5,
        "bounds": (0, 1),
        "n_features_to_select": 1,
        "scoring": "brier",
        "epsilon": 1.0,
        "schema": None,
        "model": None,
        "adjacency": "replace one record",
    }
    checked = set()
    for name, kind in PUBLIC.items():
        if name in taken or inspect.isabstract(kind) or issubclass(kind, Pipeline):
            continue
        parameters = inspect.signature(kind).parameters
        given = {key: value for key, value in required.items() if key in parameters}
        with pytest.raises((TypeError, ValueError), match="groups"):
            kind(**given).fit("not even records", None, groups=[1, 2, 3])
        checked.add(name)
    assert checked


@pytest.mark.parametrize("name", ["model__groups", "groups", "patient"])
def test_a_table_of_persons_is_bounded_by_their_number(name):
    """How many rows they have is not public, so it must not decide what a column becomes."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(18, 100, size=(2000, 2)), rng.integers(2, size=2000)
    found = []
    for rows in (300, 2000):
        pipeline = preprocessing.tabular_pipeline(
            {"a": (18, 100), "b": (18, 100)}, dpselect.DPLogisticRegression(classes=[0, 1], epsilon=2.0)
        )
        with config_context(enable_metadata_routing=name != "model__groups"):
            if name != "model__groups":
                pipeline.named_steps["model"].set_fit_request(groups=True if name == "groups" else name)
            pipeline.fit(X[:rows], y[:rows], **{name: np.arange(rows) % 300})
        model = pipeline[-1]
        assert model.privacy_.adjacency == "replace all rows of one person"
        found.append((model.n_features_in_, model.data_norm, pipeline[0].n_epsilon))
    assert found[0] == found[1]
    # the broken twin goes by the rows
    twin = [pipeline.bound(rows)[0].n_epsilon for rows in (300, 2000)]
    assert twin[0] != twin[1]


def as_persons(model, size, seed):
    """Return neighbours: all rows of one person are replaced by `size` others, alike or not."""
    rng = np.random.default_rng(seed)
    X, y = records_for(model, N + size, seed=seed)
    ids = np.append(np.repeat(np.arange(N), 1), np.full(size, N // 2))
    own, other = ids == N // 2, (X.copy(), None if y is None else y.copy())
    if seed % 2:
        X[own] = X[own][0]
        if y is not None:
            y[own] = y[own][0]
    other[0][own] = -X[own] if seed % 2 else rng.normal(size=X[own].shape)
    if y is not None and seed % 3 == 0:
        other[1][own] = rng.permutation(y)[: own.sum()]
    return ids, (X, y), other


def gradients(model, X, y, ids, W):
    """Return the mean gradients of the losses at W, of each problem."""
    model = clone(model)
    records = replace(model._check_records(X, y), persons=Persons.of(ids, X))
    problem = model.problem()
    design, t = design_and_targets(problem, records)

    def total(rows, t):
        derivatives = [problem.loss.derivative(rows.dot(w[:, None]), t[:, [k]]) for k, w in enumerate(W)]
        return (rows.adjoint_dot(rows.weighted(np.hstack(derivatives))),)

    (found,) = design.sum(total, t, columns=len(W))
    return found.T / design.n_samples


@pytest.mark.parametrize("name", a_third(ATTACKED))
def test_a_person_moves_a_gradient_no_more_than_the_noise_hides(name):
    model = ATTACKED[name]
    K = n_problems(model)
    calibration = model.calibration(PublicShape(N, P, K, persons=True))
    problem, s = calibration.problem, calibration.scales
    d, norm = calibration.dimension, {"l1": 1, "l2": 2, "gaussian": 2}[calibration.law]
    epsilon, R = model.epsilon / K, problem.radius
    if calibration.law == "gaussian":
        # so many standard deviations, in each problem
        m = gaussian_sharpness(model.perturbation, problem.loss, model.epsilon, model.delta, K, True)
        hidden = m * (s.linear_scale or s.output_scale * s.mu)
    elif model.perturbation == "output":
        hidden, norm = s.output_scale * s.mu * epsilon, 2
    else:
        part = noise_epsilon(
            problem.loss, N, R, s.mu, (1 - RESIDUAL_FRACTION) * epsilon, largest_rank(d)
        )
        hidden = s.linear_scale * part
    worst = {}
    for size in SIZES:
        for seed in range(6):
            ids, *pair = as_persons(model, size, seed)
            W = np.random.default_rng(seed).normal(size=(K, d)) * [0.0, 1.0, 30.0][seed % 3]
            one, other = (gradients(model, *records, ids, W) for records in pair)
            moved = np.linalg.norm(one - other, norm, axis=1).max() / hidden
            worst[size] = max(worst.get(size, 0.0), moved)
            # the broken twin: each row is a person
            one, other = (gradients(model, *records, np.arange(len(ids)), W) for records in pair)
            alone = np.linalg.norm(one - other, norm, axis=1).max() * len(ids) / N / hidden
            worst["broken twin"] = max(worst.get("broken twin", 0.0), alone)
    twin = worst.pop("broken twin")
    # three classes share the Gaussian noise, and one of them moves by less
    assert max(worst.values()) <= 1 + 1e-9 and max(worst.values()) > 0.15
    assert twin > 10


def test_what_takes_groups_has_an_attack():
    """Here, in tests/test_persons.py and in tests/linear_model/ridge/test_persons.py."""
    assert {name for name, kind in PUBLIC.items() if getattr(kind, "takes_groups", False)} == {
        *(type(model).__name__ for model in ATTACKED.values()),
        "DPRidge",
        "DPHistogramDensity",
        "DPBoundsScaler",
    }


@pytest.mark.parametrize("name", [*[*LINEAR][::12], "search", "accuracy first", "holdout"])
def test_no_message_tells_how_many_rows_there_are(name):
    """That is private, beside `groups`."""
    n, model = 617, clone(LINEAR.get(name, dpselect.DPLogisticRegression(classes=[0, 1], alpha=0.1)))
    X, y = records_for(model, n, seed=0)
    ids = np.arange(n) // 2
    fit = {
        "search": dpselect.StabilityGridSearchCV(model, {}).fit,
        "accuracy first": dpselect.AccuracyFirstSearchCV(model, {"epsilon": [1.0]}, target=0.1).fit,
        "holdout": lambda X, y, groups: dpselect.Thresholdout().fit(
            X, y, groups=groups, X_holdout=X, y_holdout=y, groups_holdout=groups
        ),
    }.get(name, model.fit)
    bad = [
        (X, y[:-1], ids),
        (X[:-1], y, ids),
        (X, y, ids[:-1]),
        (X, np.column_stack([y, y, y]), ids),
        (X, y, np.column_stack([ids, ids])),
        (X[:, 0], y, ids),
        (X, y[:5], ids),
    ]
    for given in bad if name != "holdout" else bad[:5]:
        with pytest.raises((TypeError, ValueError)) as caught:
            fit(given[0], given[1], groups=given[2])
        assert not re.search("61[67]", str(caught.value))
