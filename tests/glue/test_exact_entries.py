"""What all seeds have in common has no noise: it must be the same for all data of one public shape.

Of everything that a fit or a release leaves behind, to the last number: attributes, private ones
included, statements, tables. A number that seeds do not change and records do was never protected.
"""

import math
import warnings
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import partial, partialmethod

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from dpselect import (
    AccuracyFirstSearchCV,
    DPHistogramDensity,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    Evaluation,
    PrivacyLoss,
    SeededNoiseWarning,
    StabilityGridSearchCV,
    calibrated,
    coef_interval,
    evaluate,
)
from dpselect.evaluation.release import EvaluationPlan
from dpselect.linear_model.ridge.sums import OuterSums, _Records
from dpselect.noise import root_stream
from dpselect.preprocessing import DPBoundsScaler
from tests.marks import slow_but

from .cases import ALL, VARIANTS, records_for

N, SEEDS = 60, 4
# whose rows they are: two to each of 20 persons and 20 more of one, one each, and nearly all of one
OWNERS = [
    np.r_[np.repeat(np.arange(20), 2), np.zeros(20)],
    np.r_[np.arange(20), np.arange(40) % 7],
    np.r_[np.arange(20), np.full(40, 19)],
]


def data_sets(model, persons):
    """Return data sets of one public shape: other records, long ones, equal ones, rows of others."""
    found = []
    for i in range(3):
        X, y = records_for(model, N, 3, seed=i)
        if i == 1:
            X = 30 * X
        if i == 2:
            X, y = np.repeat(X[:1], N, axis=0), None if y is None else np.repeat(y[:1], N)
        found.append((X, y, {"groups": OWNERS[i].astype(int)} if persons else {}))
    return found


def numbers_of(thing, name="", seen=()):
    """Yield every number and text that a release consists of, with its place."""
    if isinstance(thing, PrivacyLoss):
        thing = thing.to_dict()
    if thing is None or isinstance(thing, (str, bytes, bool, int, float, np.generic)):
        yield name, thing
    elif isinstance(thing, np.ndarray):
        yield f"{name}, its shape", thing.shape
        for i, value in enumerate(thing.ravel().tolist()):
            yield f"{name}[{i}]", value
    elif isinstance(thing, Mapping):
        for key in thing:
            yield from numbers_of(thing[key], f"{name}.{key}", seen)
    elif isinstance(thing, (list, tuple)):
        yield f"{name}, its length", len(thing)
        for i, value in enumerate(thing):
            yield from numbers_of(value, f"{name}[{i}]", seen)
    elif id(thing) not in seen:
        seen = (*seen, id(thing))
        if isinstance(thing, BaseEstimator):
            params = set(thing.get_params(deep=False))
            kept = {key: value for key, value in vars(thing).items() if key not in params}
            kept["steps"] = list(getattr(thing, "named_steps", {}).values())
        elif is_dataclass(thing) and not isinstance(thing, type):
            # (cached numbers are among the variables)
            kept = {**{field.name: getattr(thing, field.name) for field in fields(thing)}, **vars(thing)}
            if isinstance(thing, Evaluation):
                kept["text"] = repr(thing)
        else:
            return
        for key, value in kept.items():
            yield from numbers_of(value, f"{name}.{key}", seen)


def exact(release, records):
    """Return what a release on records has in common for all seeds."""
    found = []
    for seed in range(SEEDS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SeededNoiseWarning)
            found.append(dict(numbers_of(release(*records, root_stream(26).child(seed)))))
    places = set(found[0]).intersection(*found)
    return {
        place: found[0][place]
        for place in places
        # (not a number is what it is)
        if all(repr(numbers[place]) == repr(found[0][place]) for numbers in found)
    }


def check_exact(release, model, persons, may_differ=lambda place: False):
    """Compare what has no noise on all data sets of one public shape."""
    first, *others = (exact(release, records) for records in data_sets(model, persons))
    for other in others:
        for place in first.keys() | other.keys():
            if place in first and place in other and not may_differ(place):
                assert repr(first[place]) == repr(other[place]), place
    # there are some, such as what is stated
    assert first


# ---- estimators


def fitted(model, X, y, params, stream):
    return clone(model).set_params(random_state=stream).fit(X, y, **params)


MODELS = {
    **ALL,
    "poisson": DPPoissonRegressor(target_bound=3.0),
    "poisson, learned rate": DPPoissonRegressor(
        epsilon=30.0,
        target_bound=3.0,
        base_rate="auto",
        data_norm="auto",
    ),
    "learned norms": DPLogisticRegression(
        epsilon=0.2,
        classes=[0, 1, 2],
        data_norm="auto",
        data_norm_l1="auto",
        delta=0.02,
    ),
    "learned norm of sums": DPRidge(0.2, target_range=(-1, 1), data_norm="auto"),
}
TAKES_PERSONS = [
    name for name, model in MODELS.items() if getattr(model, "noise", "laplace") == "laplace"
]
CASES = [*((name, False) for name in MODELS), *((name, True) for name in TAKES_PERSONS)]
FAST = {
    "logistic-output-l1-2 classes-0",
    "huber-objective-gaussian-0.05",
    "ridge-covariance-l1-both norms",
    "density-laplace",
    "poisson, learned rate",
    "learned norm of sums",
}


@pytest.mark.parametrize(
    "name, persons",
    slow_but(
        CASES, *(i for i, (name, persons) in enumerate(CASES) if name in FAST and (i % 2 or persons))
    ),
)
def test_no_estimator_keeps_what_has_no_noise(name, persons):
    model = MODELS[name]
    check_exact(partial(fitted, model), model, persons)


# ---- all other releases


def evaluated(model, X, y, params, stream, **given):
    model = given.pop("of", model)
    return evaluate(model, X, y, epsilon=0.5, random_state=stream, **params, **given)


def public(model, persons=False):
    """Return a model that is known: of records that no data set holds."""
    X, y = records_for(model, N, 3, seed=9)
    model = clone(model).set_params(epsilon=3.0, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return model.fit(X, y, **({"groups": OWNERS[0].astype(int)} if persons else {}))


def with_intervals(model, X, y, params, stream):
    known = public(model, bool(params))
    n = len(set(OWNERS[0])) if params else N
    return coef_interval(known, X, y, epsilon=2000.0, n_samples=n, random_state=stream, **params)


def with_calibration(model, X, y, params, stream):
    model = public(model)
    released = evaluate(
        model, X, y, epsilon=2.0, random_state=stream, confidence=len(model.classes) > 2, **params
    )
    return calibrated(model, released)


def searched(model, X, y, params, stream, search):
    return clone(search).set_params(random_state=stream).fit(X, y, **params)


BINARY, THREE = (DPLogisticRegression(classes=[*range(K)], alpha=0.05) for K in (2, 3))
RIDGE, DENSITY = DPRidge(target_range=(-1, 1)), DPHistogramDensity(bounds=(-1, 1), bin_width=0.5)
BY = {"by": np.arange(N) % 3, "levels": [0, 1, 2]}
GRID = {"alpha": [0.05, 0.2]}
RELEASES = {
    "evaluation of two classes": (BINARY, partial(evaluated, of=public(BINARY), **BY)),
    "evaluation of three classes": (THREE, partial(evaluated, of=public(THREE))),
    "confidence": (THREE, partial(evaluated, of=public(THREE), confidence=True)),
    "evaluation of a regression": (
        RIDGE,
        partial(evaluated, of=public(RIDGE), target_range=(-2.0, 2.0)),
    ),
    "evaluation of a density": (DENSITY, partial(evaluated, of=public(DENSITY))),
    "intervals": (BINARY, with_intervals),
    "intervals of three classes": (THREE, with_intervals),
    "intervals of sums": (RIDGE, with_intervals),
    "calibration": (BINARY, with_calibration),
    "calibration of three classes": (THREE, with_calibration),
    "bounds": (DPBoundsScaler(0.2), fitted),
    "bounds with a delta": (DPBoundsScaler(0.2, delta=0.01), fitted),
    **{
        f"search, {strategy}": (
            BINARY,
            partial(
                searched,
                search=StabilityGridSearchCV(
                    BINARY,
                    GRID,
                    epsilon=2.0,
                    strategy=strategy,
                    cv=2,
                    evaluation=0.3,
                ),
            ),
        )
        for strategy in ("stability", "budget_split", "data_split", "random_stopping", "random")
    },
    "search, optimal_risk, learned": (
        BINARY,
        partial(
            searched,
            search=StabilityGridSearchCV(
                clone(BINARY).set_params(delta=0.01),
                {"data_norm": [0.5, 1.0]},
                epsilon=3.0,
                strategy="optimal_risk",
            ),
        ),
    ),
    "search of sums": (
        RIDGE,
        partial(
            searched,
            search=StabilityGridSearchCV(
                RIDGE,
                {"alpha": [0.1, 1.0]},
                epsilon=1.0,
                cv=2,
            ),
        ),
    ),
    "accuracy-first": (
        BINARY,
        partial(
            searched,
            search=AccuracyFirstSearchCV(
                BINARY,
                {"epsilon": np.geomspace(1, 100, 5)},
                target=0.3,
                evaluation=0.3,
                on_failure="last",
                max_epsilon=math.inf,
            ),
        ),
    ),
}
RELEASED = [(name, persons) for name in RELEASES for persons in (False, True)]


def check_release(name, persons):
    model, release = RELEASES[name]
    check_exact(partial(release, model), model, persons)


@pytest.mark.parametrize("name, persons", slow_but(RELEASED, 5, 9, 19))
def test_no_release_tells_what_has_no_noise(name, persons):
    check_release(name, persons)


# ---- twins


def as_the_weights_add_up(records, sums, n):
    sums[-1, -1] = 0
    return OuterSums(sums, records.bits, records.problem, n)


def test_a_sum_of_truncated_weights_is_caught(monkeypatch):
    monkeypatch.setattr(_Records, "summed", as_the_weights_add_up)
    model = VARIANTS["ridge-covariance-l1-1-ball None"]
    check_exact(partial(fitted, model), model, False)
    with pytest.raises(AssertionError, match="gram_"):
        check_exact(partial(fitted, model), model, True)


class KeepsALength(DPLogisticRegression):
    """It keeps how long the longest row is, where nobody looks."""

    def fit(self, X, y, **params):
        super().fit(X, y, **params)
        self._seen = [{"longest": float(np.abs(X).max())}]
        return self


def half_without_noise(usual, plan, size):
    noise = usual(plan, size)
    noise[: size // 2] = 0
    return noise


def test_whatever_is_kept_is_found(monkeypatch):
    model = KeepsALength(classes=[0, 1], alpha=0.05)
    with pytest.raises(AssertionError, match="_seen"):
        check_exact(partial(fitted, model), model, False)
    usual = EvaluationPlan.standard_noise
    monkeypatch.setattr(
        EvaluationPlan,
        "standard_noise",
        partialmethod(lambda plan, size: half_without_noise(usual, plan, size)),
    )
    with pytest.raises(AssertionError, match="counts_"):
        check_release("evaluation of a density", False)
