"""Check parameters: accepted, refused, and left unchanged by a fit."""

import math

import numpy as np
from sklearn.base import clone

from ..base.capabilities import Calibrated
from ..base.learned_numbers import first_releases
from ..records.public_shape import PublicShape
from .attempts import Untouchable, refused, stays_as_it_was
from .tally import require


def check_parameters(case):
    """Check that a fit leaves parameters and records unchanged, and that a clone has the same."""
    data = case.outliers()
    model = case.model()
    before = {name: id(value) for name, value in model.get_params(deep=False).items()}
    copies = [part.copy() for part in data]
    shared = [{n: id(v) for n, v in vars(kind).items()} for kind in type(model).__mro__]
    require(model.fit(*data) is model, "fit must return the estimator.")
    after = {name: id(value) for name, value in model.get_params(deep=False).items()}
    changed = sorted(name for name in before if before[name] != after.get(name))
    require(not changed, f"fit changed the parameters {changed}.")
    require(
        all(np.array_equal(part, kept) for part, kept in zip(data, copies)),
        "fit changed the records that it was given; it must work on a copy.",
    )
    now = [{n: id(v) for n, v in vars(kind).items()} for kind in type(model).__mro__]
    ignored = {"__abstractmethods__", "_abc_impl", "__annotations__"}
    changed = {
        name for a, b in zip(shared, now) for name in a.keys() | b.keys() if a.get(name) != b.get(name)
    } - ignored
    require(not changed, f"fit keeps {sorted(changed)} in the class, where other fits see it.")
    again = clone(model)
    require(
        not vars(again).keys() - again.get_params(deep=False).keys(),
        "A clone keeps what was fitted.",
    )


def check_epsilon(case):
    """Check that an invalid epsilon is refused before records are read, and any number type accepted."""
    X = [Untouchable() for _ in case.data()]
    for name, values in {
        "epsilon": ["1", None, math.nan, 0, -1.0, [1.0], -math.inf, np.ones(2), 1j],
        "random_state": ["0", -1, 0.5],
    }.items():
        for value in values:
            model = case.model().set_params(**{name: value})
            with stays_as_it_was(model, f"A fit with {name}={value!r}"):
                refused(lambda: model.fit(*X), (TypeError, ValueError), f"A fit with {name}={value!r}")
    data = case.data()
    usual = case.fit(data, epsilon=0.5)
    for number in (np.float16(0.5), np.float32(0.5)):
        require(
            np.array_equal(case.numbers(case.fit(data, epsilon=number)), case.numbers(usual)),
            f"epsilon of type {type(number).__name__} gives other noise than the same float.",
        )


def check_epsilon_is_passed(case):
    """Check that a search's plan and training at another epsilon use the noise of that epsilon."""
    if not isinstance(case.model(), Calibrated) or first_releases(case.model()):
        return
    for own, passed in ((4.0, 0.25), (0.25, 4.0)):
        found, expected = (
            case.model(epsilon=epsilon).calibration(PublicShape(1000, case.some), passed)
            for epsilon in (own, passed)
        )
        require(
            str(vars(found)) == str(vars(expected)),
            f"calibration(shape, {passed}) of an estimator with epsilon={own} is not that of one with "
            f"epsilon={passed}, so a search would state another loss than its models have; read the "
            "epsilon that is passed in place of self.epsilon.",
        )


def check_fit_parameters(case):
    """Check that unbounded weights are refused: weights change the sensitivity."""
    data = case.data()
    weights, names = np.ones(len(data[0])), ["no_such_parameter"]
    if not case.weighted:
        names.append("sample_weight")
    else:
        every_other = (*data[:2], np.arange(len(weights)) % 2)
        plain, weighted = (case.fit(part, epsilon=math.inf) for part in (data[:2], every_other))
        require(
            not np.array_equal(case.numbers(plain), case.numbers(weighted)),
            "fit takes sample_weight and releases the same as without; leave the parameter out.",
        )
    for name in names:
        model = case.model()
        with stays_as_it_was(model, f"A fit with {name}"):
            refused(
                lambda: model.fit(*data, **{name: weights}),
                (TypeError, ValueError),
                f"A fit with {name}",
            )
