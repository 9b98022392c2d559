"""Check for traces of the records, in a fitted object and in its messages."""

import math
import tempfile
from pathlib import Path

import numpy as np
from sklearn.base import clone, is_classifier

from ..base.capabilities import HasPlainForm
from ..ledger import PrivacyLedger
from .attempts import attempt, stays_as_it_was
from .case import as_bytes, differing, leaves, open_ledger, parameters_to_try, what_is_kept
from .neighbours import families
from .tally import require
from .watched_gate import Watched


def _hidden(model):
    """Return the state in attributes that the author calls functions of the release."""
    named = {name: vars(model)[name] for name in getattr(model, "keeps", ()) if name in vars(model)}
    return {path: as_bytes(leaf) for path, leaf in leaves(named)}


def _unlike(case):
    """Yield very different data sets of one shape."""
    yield from case.varied()
    yield from next(families(case))


def check_what_is_kept(case):
    """Check that two fits with the same noise differ in what is released and in nothing else."""
    models = [case.fit(data) for data in _unlike(case)]
    kept = [what_is_kept(case, model) for model in models]
    for other in kept[1:]:
        names = differing(kept[0], other)
        require(
            not names,
            f"{', '.join(names)} depends on the records; release it with noise, or do not keep it.",
        )
    hidden = [_hidden(model) for model in models]
    renoised = _hidden(case.fit(next(case.varied()), seed=1))
    exact = {
        path[0]
        for path, value in hidden[0].items()
        if renoised.get(path) == value and any(other.get(path) != value for other in hidden[1:])
    }
    require(
        not exact,
        f"{', '.join(sorted(exact))} depends on the records and not on the noise: `keeps` is "
        "for functions of what is released.",
    )
    shown = {repr(model) + str(sorted(vars(model))) for model in models}
    require(len(shown) == 1, "The representation depends on the records.")
    numbers = [case.numbers(model) for model in models]
    require(
        any(not np.array_equal(numbers[0], other) for other in numbers[1:]),
        "The release is the same for all records; are its attributes those of the statement?",
    )
    require(all(np.isfinite(part).all() for part in numbers), "A released number is not finite.")


def check_plain_form(case):
    """Check that the result of `to_sklearn` predicts the same, and depends on the release alone."""
    models = [case.fit(data, epsilon=1.0) for data in case.varied()]
    model = models[0]
    if not isinstance(model, HasPlainForm):
        return
    plain, rows = model.to_sklearn(), np.random.default_rng(0).normal(size=(50, case.some))
    rows *= np.geomspace(1e-3, 1e3, 50)[:, np.newaxis]
    for name in case.predictions():
        if name == "predict_log_proba" and not hasattr(plain, name):
            continue  # a StackingClassifier has probabilities only
        own, others = getattr(model, name)(rows), getattr(plain, name)(rows)
        same = (
            np.allclose(own, others, rtol=1e-9, atol=1e-9 * np.abs(own).max())
            if own.dtype.kind == "f"
            else np.array_equal(own, others)
        )
        require(same, f"{name} of what to_sklearn returns is not that of the model.")
    known = {path: as_bytes(leaf) for path, leaf in leaves(vars(plain))}
    released = {name: vars(model)[name] for name in case.may_differ(model) if name in vars(model)}
    for other in models[1:]:
        vars(other).update(released)
        kept = {path: as_bytes(leaf) for path, leaf in leaves(vars(other.to_sklearn()))}
        names = differing(known, kept)
        require(
            not names,
            f"{', '.join(names)} of what to_sklearn returns depends on more than was released.",
        )


def check_what_is_said(case):
    """Check that output, logs and warnings of a fit do not depend on the records."""
    said = [attempt(lambda: case.fit(data)) for data in _unlike(case)]
    for other in said:
        require(other.error is None, f"Some records cannot be fitted: {other.error!r}")
        require(
            other.said == said[0].said,
            f"What is said depends on the records: {said[0].said} and {other.said}.",
        )


def _earlier(case):
    """Yield parameters with which an object may have been fitted before, each at other values, too."""
    yield from parameters_to_try(case, 0.1)
    for name, value in case.params.items():
        others = [not value] if isinstance(value, bool) else [2.0] if value is None else []
        for other in others:
            if name not in ("random_state", "ledger"):
                yield {"epsilon": 100.0, name: other}


def check_a_second_fit(case):
    """Check that a second fit does not depend on an earlier one of the same object."""
    data, now = case.data(), {"epsilon": 2.0, "random_state": 6}
    once = case.fit(data, 6, epsilon=2.0)
    for params in _earlier(case):
        model = case.model(5, **params)
        try:
            model.fit(*case.data(7, n=9, d=case.one, params=params))
        except (TypeError, ValueError):
            continue  # a value that the estimator does not take
        model.set_params(**{name: case.params[name] for name in params} | now).fit(*data)
        names = differing(what_is_kept(case, model), what_is_kept(case, once))
        require(
            not names and np.array_equal(case.numbers(model), case.numbers(once)),
            f"A second fit depends on the first one, with {params}{': ' if names else ''}"
            f"{', '.join(names)}.",
        )
        require(model.privacy_ == once.privacy_, "privacy_ of a second fit is not that of a first one.")


def check_failed_fits(case):
    """Check that a fit that fails late leaves the estimator as it was."""
    data = case.data(8, n=9, d=case.one)

    class NoNoise(np.random.RandomState):
        def __getattribute__(self, name):
            if name in ("bytes", "random_sample", "uniform", "randint", "_bit_generator"):
                raise ArithmeticError
            return super().__getattribute__(name)

    class Failing:
        def __getattr__(self, name):
            raise ArithmeticError

    class FailingLedger(PrivacyLedger):
        def reserve(self, *args, **kwargs):
            return Failing()

    fresh, fitted = case.model(), case.fit(case.data(), None)
    with tempfile.TemporaryDirectory() as folder:
        open_ledger(folder)
        failing = FailingLedger(Path(folder) / "checks.ledger")
        for model in (fresh, fitted):
            for params in [{"random_state": NoNoise(0)}, {"ledger": failing}]:
                if not params.keys() <= model.get_params().keys():
                    continue
                before = model.get_params(deep=False)
                model.set_params(**params)
                with stays_as_it_was(model, "A fit that failed"):
                    found = attempt(lambda: model.fit(*data))
                    if found.error is None:  # the estimator draws its noise by other functions
                        vars(model).clear()
                        vars(model).update(vars(clone(case.estimator)))
                        break
                model.set_params(**{name: before[name] for name in params})


def check_grid(case):
    """Check that sums of records and noise are multiples of a public step: no last bit is revealing."""
    X, *y = case.data(n=8)
    if _is_read_from_the_gate(case):
        require(True, "What leaves the gate is on its grid.")
        return
    if is_classifier(case.estimator):
        similar = [(X * (1 + i * 2.0**-16), *y) for i in range(5)]
    else:
        similar = [tuple(part * (1 + i * 2.0**-16) for part in (X, *y)) for i in range(5)]
    found = np.array(
        [
            [case.numbers(case.fit(data, seed, epsilon=20.0), derived=False) for data in similar]
            for seed in range(3)
        ]
    )
    for column in np.moveaxis(found, 2, 0):
        largest, moved = np.abs(column).max(), column - column[:, :1]
        # skip numbers that are not value + noise, but are computed from such sums or from other noise
        if not np.ptp(moved, axis=0).max() <= 1e-9 * np.ptp(moved) or not np.ptp(moved):
            continue
        require(
            _is_grid(column.ravel(), largest),
            "Released numbers are not multiples of a public step, so their last bits tell of the "
            "records; pass them through dpselect.noise.release.",
        )


def _is_read_from_the_gate(case):
    """Return whether all released numbers are functions of the output of `dpselect.noise.release`."""
    watched, data_sets = Watched(case), next(families(case))[:3]
    first = watched.fit(data_sets[0])
    numbers = case.numbers(first.model)
    return bool(first.passed) and all(
        np.array_equal(case.numbers(watched.fit(data, seed, first.passed).model), numbers)
        for seed, data in enumerate(data_sets)
    )


def _is_grid(numbers, largest):
    # the step may be a power of two with exact multiples in float64
    if not np.remainder(numbers, math.ldexp(1.0, math.frexp(largest)[1] - 50)).any():
        return True
    # or a larger step, which divides all differences up to rounding errors
    step, differences = 0.0, np.unique(np.abs(np.diff(numbers)))
    for i, remaining in enumerate(differences):
        while remaining > largest * 2.0**-34:
            step, remaining = remaining, math.remainder(step, remaining) if step else 0.0
            remaining = abs(remaining)
        for number in differences[: i + 1]:
            if number > largest * 2.0**-34:  # smaller differences are rounding errors
                step = number / max(1.0, round(number / step))
    if not step:
        return False
    rests = np.abs(differences - np.rint(differences / step) * step)
    return step > largest * 2.0**-28 and bool((rests < largest * 2.0**-46).all())
