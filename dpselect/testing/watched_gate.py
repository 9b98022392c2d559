"""An estimator watched at the release gate: its values, its noise, and its output."""

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from ..noise import as_generator, gate
from .case import as_bytes, fit_to, leaves

# method by which an estimator draws its noise: see `dpselect.base.estimator.PrivateEstimator`
HOOK = "_standard_noise"


@dataclass
class Passed:
    """Numbers that passed the gate together, as vectors."""

    values: np.ndarray
    noise: np.ndarray
    step: np.ndarray
    shape: tuple[int, ...]
    out: Any = None


@dataclass
class Run:
    """One fit: the model, what passed the gate, and the standard noise that was drawn."""

    model: Any = None
    passed: list[Passed] = field(default_factory=list)
    drawn: list[np.ndarray] = field(default_factory=list)
    asked: tuple = ()
    other_shape: bool = False

    def kept(self):
        """Return the state of the fitted object besides its parameters: {path: bytes}."""
        params = self.model.get_params(deep=False)
        state = {name: value for name, value in vars(self.model).items() if name not in params}
        return {path: as_bytes(leaf) for path, leaf in leaves(state)}


class Watched:
    """An estimator with some parameters, whose fits are watched."""

    def __init__(self, case, params=()):
        self.case, self.params, self.run = case, dict(params), Run()
        kind = type(case.estimator)
        self.hooked = hasattr(kind, HOOK)
        if not self.hooked:
            return

        def noise(model, generator, *shape):
            found = getattr(kind, HOOK)(model, generator, *shape)
            self.run.drawn.append(np.array(found, dtype=np.float64).ravel())
            self.run.asked = shape
            return found

        self.kind = type(kind.__name__, (kind,), {HOOK: noise, "__module__": kind.__module__})

    def _model(self, seed):
        model = self.case.model(seed, **self.params)
        return self.kind(**clone(model).get_params(deep=False)) if self.hooked else model

    def fit(self, data, seed=0, given=None):
        """Fit, with `given` as the output of the gate, from an earlier run."""
        run = self.run = Run()

        def watched(values, noise, step, unit):
            shape = np.broadcast_shapes(np.shape(values), np.shape(noise))
            exact = np.asarray(values) * (1.0 if unit is None else unit)
            rounded = exact if unit is not None else gate.nearest_multiple(exact, step)
            passed = Passed(
                *(
                    np.broadcast_to(part, shape).astype(np.float64).ravel()
                    for part in (rounded, noise, step)
                ),
                shape,
            )
            place = len(run.passed)
            run.passed.append(passed)
            if given is not None and place < len(given) and given[place].shape == shape:
                passed.out = given[place].out
            else:
                run.other_shape |= given is not None
                passed.out = usual(values, noise, step, unit)
            return np.array(passed.out)

        usual = gate._sum
        with _in_its_place(watched):
            run.model = fit_to(self._model(seed), data)
        run.other_shape |= given is not None and len(run.passed) != len(given)
        return run

    def draw(self, asked, count):
        """Return draws of the standard noise of a fit, as vectors."""
        draw = getattr(type(self.case.estimator), HOOK)
        model = self.case.model(0, **self.params)
        return np.array(
            [
                np.asarray(draw(model, as_generator(seed), *asked), dtype=np.float64).ravel()
                for seed in range(count)
            ]
        )


@contextmanager
def _in_its_place(watched):
    usual = gate._sum
    gate._sum = watched
    try:
        yield
    finally:
        gate._sum = usual
