"""The checks of private estimators: ours pass, and broken twins fail those that are meant for them."""

import contextlib
import copy
import inspect
import logging
import math
import random
import warnings
import weakref
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from dpselect import (
    AccuracyFirstSearchCV,
    DPHistogramDensity,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    StabilityGridSearchCV,
)
from dpselect.accounting.privacy_loss import PrivacyLoss
from dpselect.base.estimator import ReleaseMixin
from dpselect.base.fit_warnings import warn_if_seeded
from dpselect.config import config_context
from dpselect.exceptions import PrivacyLeakWarning
from dpselect.ledger import current_ledger, spending, without_spending
from dpselect.linear_model.design import Design
from dpselect.linear_model.linear_noise import LinearProblem
from dpselect.noise import as_generator, check_random_state, grid_laplace, root_stream
from dpselect.preprocessing import DPBoundsScaler
from dpselect.records.records import numeric_rows
from dpselect.records.training import warns_of_training_records
from dpselect.testing import ReleaseStatement, check_private_estimator, private_estimator_checks
from dpselect.testing.checks import CHECKS
from dpselect.utils.validation import check_epsilon, check_number

from .glue.covering import every_pair


class Moments(ReleaseMixin, RegressorMixin, BaseEstimator):
    """Mean of the rows, each times its target: small, with every path, and a place for each mistake."""

    def __init__(self, epsilon=1.0, *, data_norm=1.0, target_bound=1.0, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.data_norm = data_norm
        self.target_bound = target_bound
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X, y):
        self.check()
        warn_if_seeded(self)
        loss = self.stated()
        with spending(self, loss):
            table, y = (part.compute() if hasattr(part, "compute") else part for part in (X, y))
            table, y = numeric_rows(self, table, y, accept_sparse="csr", y_numeric=True)
            values = self.targets(y) @ self.clip(table, X) / len(y)
            self.coef_ = self.noisy(values, len(y))
            self.privacy_ = loss
        return self

    def noisy(self, values, n):
        if self.epsilon == math.inf:
            return values
        scale = self.sensitivity(n, len(values)) / self.loss()
        return grid_laplace(self.generator(), values, scale, self.loss())

    def loss(self):
        return float(self.epsilon)

    def stated(self):
        seeded = self.random_state is not None and self.epsilon < math.inf
        return PrivacyLoss(float(self.epsilon), label=f"{type(self).__name__}: moments", seeded=seeded)

    def sensitivity(self, n, d):
        return 2 * self.data_norm * self.target_bound / n

    def generator(self):
        return as_generator(self.random_state)

    def check(self):
        check_epsilon(self.epsilon)
        for name in ("data_norm", "target_bound"):
            check_number(name, getattr(self, name), why="noise grows with it", instead="write 1.0")
        check_random_state(self.random_state)

    def clip(self, table, X):
        table = table.toarray() if sparse.issparse(table) else table
        norms = np.abs(table).sum(axis=1, keepdims=True)
        return table / np.maximum(norms / self.data_norm, 1.0)

    def targets(self, y):
        return np.clip(y, -self.target_bound, self.target_bound)

    def predict(self, X):
        check_is_fitted(self)
        table = X.compute() if hasattr(X, "compute") else X
        table = numeric_rows(self, table, accept_sparse="csr", reset=False)
        return self.clip(table, X) @ self.coef_

    @warns_of_training_records
    def score(self, X, y, sample_weight=None):
        return super().score(X, y, sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


# ---- what passes

CELLS, WIDE = ReleaseStatement(n_features=(1, 2)), ReleaseStatement(n_features=(1, 9))
BINARY, RANGE = {"classes": [0, 1]}, {"target_range": (-1, 1)}
DENSITY = DPHistogramDensity(bounds=(-1, 1), bin_width=0.5)
ATTACKS, QUICK = ("check_the_loss_of_each_noise", "check_the_stated_loss"), Moments()
LONG = (*ATTACKS, "check_paths", "check_certificate")
HUBER = DPHuberRegressor(target_range=(-1.0, 1.0))
OURS = [
    (QUICK, None),
    (DPLogisticRegression(**BINARY), None),
    (DPLinearSVC(perturbation="output", norm="l1", class_weight={1: 3.0}, **BINARY), None),
    (DPPoissonRegressor(target_bound=10.0), None),
    (clone(HUBER).set_params(max_sample_weight=2.0), None),
    (DPRidge(target_range=(-1, 1)), None),
    (DPRidge(perturbation="objective", norm="l2", alpha=1.0, target_range=(-1, 1)), None),
    (DENSITY, CELLS),
    (DPBoundsScaler(), None),
]
# in which any two of: a place of the noise, a norm, weights, an intercept, a delta, meet for some kind
MORE = [
    (DPLogisticRegression(perturbation="output", alpha=1.0, data_norm_l1=1.0, **BINARY), None),
    (DPLinearSVC(max_sample_weight=5.0, alpha=0.5, norm="l1", **BINARY), None),
    (DPLogisticRegression(classes=["no", "perhaps", "yes"], alpha=0.1), None),
    (DPLogisticRegression(max_sample_weight=0.5, class_weight={0: 0.1, 1: 8.0}, **BINARY), None),
    (DPPoissonRegressor(norm="l1", data_norm_l1=1.2, alpha=0.5, target_bound=10.0), None),
    (
        DPPoissonRegressor(data_norm=0.5, target_bound=3.0, fit_intercept=False, max_sample_weight=3.0),
        None,
    ),
    (DPHuberRegressor(target_range=(-1.0, 1.0), perturbation="output", max_sample_weight=9.0), None),
    (DPRidge(norm="l2", fit_intercept=False, data_norm=2.0, target_range=(-1, 1)), None),
    (DPRidge(norm="l2", delta=1e-6, target_range=(-5.0, 5.0)), None),
    # Gaussian noise, or with few columns not
    (DPLinearSVC(delta=0.01, perturbation="output", alpha=0.5, classes=[0, 1, 2]), WIDE),
    (
        DPHuberRegressor(
            delta=0.01, alpha=0.5, target_range=(-3.0, 0.0), data_norm=0.5, fit_intercept=False
        ),
        WIDE,
    ),
    (DPRidge(perturbation="output", alpha=1.0, norm="l2", coef_bound=0.5, target_range=(-1, 1)), None),
    (DPHistogramDensity(bounds=(-1, 1), bin_width=0.5, noise="discrete_laplace"), CELLS),
]


def is_slow(estimator, check):
    """Whether it takes seconds: of our estimators these are among the slow tests."""
    return check.__name__ in LONG[: 1 if estimator is QUICK else 4]


def settings_of(param):
    """Return the settings by which models under attack differ, and the attack."""
    model, check = param.values
    params = model.get_params()
    kind, place = type(model).__name__, params.get("perturbation")
    return {
        "check": check.__name__,
        "kind": kind,
        # the other linear models share a solver
        "place": (kind if kind == "DPRidge" else None, place),
        "norm": params.get("norm"),
        "weights": params.get("max_sample_weight") is not None or params.get("class_weight") is not None,
        "intercept": params.get("fit_intercept"),
        "delta": bool(params.get("delta")),
        "classes": len(params.get("classes") or ()),
    }


def fewer_attacks(params):
    """Leave out attacks of settings that the same attack meets in another model."""
    attacks = {i: param for i, param in enumerate(params) if param.values[1].__name__ in ATTACKS}
    chosen = every_pair(attacks, settings_of, "check")
    return [param for i, param in enumerate(params) if i in chosen or i not in attacks]


def every_check(pairs, kept):
    params = []
    for estimator, statement in pairs:
        name = "-".join(
            [
                type(estimator).__name__,
                *(str(value) for value in estimator.get_params().values() if isinstance(value, str)),
            ]
        )
        for model, check in private_estimator_checks(estimator, statement):
            # noise on a fine grid is drawn digit by digit, and the check draws it thousands of times;
            # the exact law of the histogram has tests of its own
            if estimator is DENSITY and check.__name__ == "check_the_loss_of_each_noise":
                continue
            if kept(estimator, check):
                params.append(pytest.param(model, check, id=f"{name}-{check.__name__}"))
    return params


@pytest.mark.parametrize("estimator, check", every_check(OURS, lambda *case: not is_slow(*case)))
def test_private_estimators(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator, check",
    fewer_attacks([*every_check(OURS, is_slow), *every_check(MORE, lambda *case: True)]),
)
def test_private_estimators_in_other_settings(estimator, check):
    check(estimator)


# ---- what does not: the name of the check, and the twin


TWINS = []
# noise that is kept outside of its object
DRAWN = weakref.WeakKeyDictionary()
# they take seconds, and faster ones are much like them
LIKE_OTHERS = ("OneRecordMore", "HalfTheNoiseOfTwo", "NoiseOfTheOtherNorm")


def twin(check, estimator=None, statement=None):
    """Say which check finds a class out; its base, with parameters, may be given."""

    def register(kind):
        model = kind() if estimator is None else kind(**estimator)
        slow = [pytest.mark.slow] * (kind.__name__ in LIKE_OTHERS)
        TWINS.append(pytest.param(check, model, statement, id=f"{kind.__name__}-{check}", marks=slow))
        return kind

    return register


def twins(check, base, method, **kinds):
    """Make twins of one method each, and say which check finds them out."""
    for name, function in kinds.items():
        twin(check)(type(name, (base,), {method: function}))


@twin("check_epsilon_is_passed", RANGE)
class OwnEpsilon(DPRidge):
    def _calibration(self, shape, epsilon):
        return super()._calibration(shape, float(self.epsilon))


# the ledger


@twin("check_ledger")
class NoLedger(Moments):
    def fit(self, X, y):
        with without_spending():
            return super().fit(X, y)


@twin("check_ledger")
class ChargedLate(Moments):
    def fit(self, X, y):
        if np.isnan(np.asarray(y, dtype=float)).any():
            raise ValueError("y has gaps.")
        return super().fit(X, y)


@twin("check_ledger")
class ChargesLess(Moments):
    def fit(self, X, y):
        with spending(self, replace(self.stated(), epsilon=self.epsilon / 2)):
            return super().fit(X, y)


@twin("check_ledger")
class ChargesUnderAnotherName(Moments):
    def fit(self, X, y):
        with spending(self, replace(self.stated(), label="something")):
            return super().fit(X, y)


@twin("check_ledger")
class ChargesOnlyWhatIsOpen(Moments):
    def fit(self, X, y):
        ledger, self.ledger = self.ledger, None
        try:
            with without_spending() if ledger else contextlib.nullcontext():
                return super().fit(X, y)
        finally:
            self.ledger = ledger


@twin("check_ledger")
class ChargesTwice(Moments):
    def fit(self, X, y):
        super().fit(X, y)
        ledger = current_ledger(self)
        if ledger is not None:
            ledger.spend(0.01, label="moments")
        return self


# the statement


class States(Moments):
    def fit(self, X, y):
        super().fit(X, y)
        self.privacy_ = self.say(self.privacy_)
        return self


twins(
    "check_the_statement",
    States,
    "say",
    StatesLess=lambda self, loss: replace(loss, epsilon=loss.epsilon / 2),
    StatesOne=lambda self, loss: replace(loss, epsilon=min(1.0, loss.epsilon)),
    OtherAdjacency=lambda self, loss: replace(loss, adjacency="replace one holdout record"),
)
twins("check_seeds", States, "say", ForgetsTheSeed=lambda self, loss: replace(loss, seeded=False))
twins(
    "check_without_noise",
    States,
    "say",
    PromisesWithoutNoise=lambda self, loss: replace(loss, epsilon=min(1e9, loss.epsilon)),
)


@twin("check_the_statement", {"norm": "l2", "delta": 1e-6, **RANGE}, None)
class ForgetsDelta(DPRidge):
    def fit(self, X, y):
        super().fit(X, y)
        self.privacy_ = replace(self.privacy_, delta=0.0)
        return self


@twin("check_the_statement", {"delta": 0.01, **BINARY}, WIDE)
class ForgetsThatItUsesDelta(DPLogisticRegression):
    def _loss_of_a_fit(self):
        return replace(super()._loss_of_a_fit(), delta=0.0)


@twin("check_seeds")
class DoesNotWarn(Moments):
    def fit(self, X, y):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return super().fit(X, y)


# noise


def half_the_noise(name, base, **params):
    def _standard_noise(self, *args):
        return base._standard_noise(self, *args) / 2

    kind = type(name, (base,), {"_standard_noise": _standard_noise})
    twin("check_the_loss_of_each_noise", {"alpha": 1.0, **params})(kind)


half_the_noise("HalfTheNoiseOfTwo", DPLinearSVC, perturbation="output", **BINARY)
half_the_noise("HalfTheNoiseOfTheObjective", DPRidge, perturbation="objective", **RANGE)
twins(
    "check_the_stated_loss",
    Moments,
    "sensitivity",
    NoiseForTwoThirds=lambda self, n, d: Moments.sensitivity(self, n, d) / 1.5,
    # a record goes, and none comes
    OneDirection=lambda self, n, d: Moments.sensitivity(self, n, d) / 2,
    OneRecordMore=lambda self, n, d: Moments.sensitivity(self, n + 1, d),
    SharesTheLossOfColumns=lambda self, n, d: Moments.sensitivity(self, n, d) / d,
    ForgetsTheTargetBound=lambda self, n, d: 2 * self.data_norm / n,
)
twins(
    "check_the_stated_loss",
    Moments,
    "loss",
    SquareRootOfEpsilon=lambda self: float(self.epsilon) ** 0.5,
    SquareOfEpsilon=lambda self: float(self.epsilon) ** 2,
)
twins("check_paths", Moments, "loss", OneNoiseForEveryEpsilon=lambda self: 1.0)
twins(
    "check_epsilon",
    Moments,
    "loss",
    EpsilonOfNumpyIsLarger=lambda self: (
        float(self.epsilon) * (1 if isinstance(self.epsilon, (float, int)) else 2)
    ),
)
twins("check_noise_is_independent", Moments, "noisy", NoNoise=lambda self, values, n: values)


class _L1Forgotten(LinearProblem):
    def design(self, X):
        return Design(X, self.data_norm, self.constant)


class _NoiseOfTheL2Norm(LinearProblem):
    def noise_radius(self, norm, n_features):
        return self.radius


L1 = {"norm": "l1", "data_norm_l1": 1.0, "alpha": 1.0, "fit_intercept": False, **BINARY}


@twin("check_the_loss_of_each_noise", L1)
class ForgetsTheL1Norm(DPLinearSVC):
    def problem(self, epsilon=None):
        return _L1Forgotten(**vars(super().problem(epsilon)))


@twin("check_the_loss_of_each_noise", {**L1, "data_norm_l1": 1.4})
class NoiseOfTheOtherNorm(DPLinearSVC):
    def problem(self, epsilon=None):
        return _NoiseOfTheL2Norm(**vars(super().problem(epsilon)))


@twin("check_the_stated_loss")
class OtherNorm(Moments):
    """Rows are clipped in another norm than that of the noise."""

    def clip(self, table, X):
        table = table.toarray() if sparse.issparse(table) else table
        norms = np.abs(table).max(axis=1, keepdims=True)
        return table / np.maximum(norms / self.data_norm, 1.0)


@twin("check_the_stated_loss")
class ForgetsTheIntercept(Moments):
    """A constant column that is not in the norm."""

    def clip(self, table, X):
        return np.column_stack([super().clip(table, X), np.ones(table.shape[0])])


twins(
    "check_paths",
    Moments,
    "noisy",
    OneCoordinateIsExact=lambda self, values, n: np.append(
        Moments.noisy(self, values, n)[:-1], values[-1]
    ),
)


twins(
    "check_noise_is_independent",
    Moments,
    "noisy",
    SharesNoise=lambda self, values, n: values + Moments.noisy(self, np.zeros(1), n),
)
twins(
    "check_grid",
    Moments,
    "noisy",
    OffTheGrid=lambda self, values, n: (
        values
        + self.generator().laplace(scale=self.sensitivity(n, 1) / float(self.epsilon), size=len(values))
    ),
    HalfOnTheGrid=lambda self, values, n: values + Moments.noisy(self, np.zeros(len(values)), n),
)
twins(
    "check_a_second_fit",
    Moments,
    "noisy",
    StartsWarm=lambda self, values, n: Moments.noisy(
        self, values + getattr(self, "coef_", np.zeros(1))[:1], n
    ),
)


@twin("check_noise_is_independent")
class SharesTheSizeOfNoise(Moments):
    """Signs of its own; the quotient of two numbers tells the records all the same."""

    def noisy(self, values, n):
        generator = self.generator()
        size = grid_laplace(generator, np.zeros(1), self.sensitivity(n, len(values)) / self.loss(), 1.0)
        return values + size * generator.choice([-1.0, 1.0], size=len(values))


@twin("check_noise_is_independent", BINARY)
class SharesNoiseBetweenClasses(DPLogisticRegression):
    def _standard_noise(self, generator, n_features, n_problems, epsilon):
        noise = super()._standard_noise(generator, n_features, 1, epsilon)
        return np.repeat(noise, n_problems, axis=1)


twins(
    "check_noise_is_fresh",
    Moments,
    "generator",
    AlwaysTheSame=lambda self: as_generator(0 if self.random_state is None else self.random_state),
    NoiseOfNumpy=lambda self: as_generator(
        np.random.mtrand._rand if self.random_state is None else self.random_state
    ),
    NoiseOfPython=lambda self: as_generator(
        random.getrandbits(32) if self.random_state is None else self.random_state
    ),
)


@twin("check_noise_is_fresh")
class KeepsTheKey(Moments):
    def generator(self):
        self._stream = root_stream(self.random_state)
        return as_generator(self._stream)


@twin("check_noise_is_fresh")
class DrawsOnce(Moments):
    """The difference of two fits of one object is exact."""

    def noisy(self, values, n):
        if self not in DRAWN:
            DRAWN[self] = super().noisy(0 * values, n)
        return values + DRAWN[self]


# that of the base class fits a copy
DrawsOnce.fit = inspect.unwrap(Moments.fit)


@twin("check_noise_is_fresh")
class KeepsASeed(Moments):
    def generator(self):
        self.seed_ = int(as_generator(self.random_state).integers(2**31))
        return as_generator(self.seed_)


twins(
    "check_seeds",
    Moments,
    "generator",
    IgnoresTheSeed=lambda self: as_generator(),
    CopiesTheGenerator=lambda self: as_generator(copy.deepcopy(self.random_state)),
)


@twin("check_seeds")
class NeverStrict(Moments):
    def fit(self, X, y):
        with config_context(strict=False):
            return super().fit(X, y)


@twin("check_without_noise")
class NobodyPaysForNoNoise(Moments):
    def fit(self, X, y):
        with without_spending() if self.epsilon == math.inf else contextlib.nullcontext():
            return super().fit(X, y)


@twin("check_without_noise")
class NoisyWithoutEpsilon(Moments):
    def noisy(self, values, n):
        self.epsilon, before = min(self.epsilon, 1e9), self.epsilon
        try:
            return super().noisy(values, n)
        finally:
            self.epsilon = before


@twin("check_without_noise")
class RefusesInfinity(Moments):
    def check(self):
        super().check()
        if self.epsilon == math.inf:
            raise ValueError("epsilon must be finite.")


def adds_to_what_left(self, X, y):
    self.coef_ = self.coef_ + 2.0**-10 * np.sign(X.sum(axis=0))


twins(
    "check_noise_hides_all",
    Moments,
    "noisy",
    NoiseOfTheLargestValue=lambda self, values, n: (
        values + np.abs(values).max() * Moments.noisy(self, 0 * values, n)
    ),
    NoNoiseOnZeros=lambda self, values, n: np.where(values == 0, 0.0, Moments.noisy(self, values, n)),
)


# clipping


def is_kind(name):
    return lambda X: name in {kind.__name__ for kind in type(X).__mro__}


for path, has in {
    "Sparse": sparse.issparse,
    "Mapped": is_kind("memmap"),
    "Dask": is_kind("Array"),
    "Frame": is_kind("DataFrame"),
    "List": is_kind("list"),
    "Single": lambda X: getattr(X, "dtype", None) == np.float32,
    "Integer": lambda X: getattr(X, "dtype", None) == np.int64,
    "Columns": lambda X: getattr(X, "format", None) == "csc",
    "Coordinates": lambda X: getattr(X, "format", None) == "coo",
    "Fortran": lambda X: type(X) is np.ndarray and not X.flags.c_contiguous,
    "Array": lambda X: type(X) is np.ndarray and X.dtype == np.float64,
}.items():

    def clip(self, table, X, has=has):
        if has(X) and not hasattr(self, "coef_"):
            return table.toarray() if sparse.issparse(table) else table
        return Moments.clip(self, table, X)

    twin("check_paths")(type(f"Unclipped{path}", (Moments,), {"clip": clip}))


twins(
    "check_paths",
    Moments,
    "targets",
    TargetsUnclipped=lambda self, y: y,
    NegativeTargetsUnclipped=lambda self, y: np.minimum(y, self.target_bound),
)


twins(
    "check_predictions",
    Moments,
    "predict",
    PredictionsUnclipped=lambda self, X: (
        numeric_rows(self, X, accept_sparse="csr", reset=False) @ self.coef_
    ),
)


@twin("check_predictions")
class PredictionsClippedElsewhere(Moments):
    def predict(self, X):
        self.data_norm, before = 2 * self.data_norm, self.data_norm
        found = super().predict(X)
        self.data_norm = before
        return found


@twin("check_parameters")
class StaysFitted(Moments):
    def __sklearn_clone__(self):
        return copy.deepcopy(self)


@twin("check_parameters")
class ClipsInPlace(Moments):
    def fit(self, X, y):
        super().fit(X, y)
        X = np.asarray(X)
        if X.flags.writeable and X.dtype == float:
            X /= np.maximum(1.0, np.abs(X).max())
        return self


# what is kept and said


class Keeps(Moments):
    def fit(self, X, y):
        super().fit(X, y)
        table, y = numeric_rows(self, X, y, accept_sparse="csr")
        self.keep(table.toarray() if sparse.issparse(table) else table, y)
        return self


twins(
    "check_what_is_kept",
    Keeps,
    "keep",
    KeepsAnExactSum=lambda self, X, y: vars(self).update(_sums={"total": X.sum(axis=0)}),
    KeepsACount=lambda self, X, y: vars(self).update(n_iter_=int(np.count_nonzero(X > 0.9))),
    KeepsTheRecords=lambda self, X, y: vars(self).update(_X=X),
    IsNoNumber=lambda self, X, y: vars(self).update(coef_=self.coef_ * np.nan),
    KeepsTheRange=lambda self, X, y: vars(self).update(options_=[("largest", (float(y.max()),))]),
    DropsEmptyColumns=lambda self, X, y: vars(self).update(
        coef_=self.coef_[: max(1, np.count_nonzero(X.any(axis=0)))]
    ),
    SmallestType=lambda self, X, y: vars(self).update(
        coef_=self.coef_.astype(np.float32 if (X == np.rint(X)).all() else float)
    ),
    NamesByRecords=lambda self, X, y: vars(self).update({"large_" if X.max() > 1 else "small_": True}),
)
twins("check_the_gate", Keeps, "keep", AddsToWhatLeft=adds_to_what_left)
twins(
    "check_parameters",
    Keeps,
    "keep",
    KeepsInTheClass=lambda self, X, y: setattr(type(self), "largest", X.max()),
)
twins(
    "check_what_is_said",
    Keeps,
    "keep",
    WarnsOfClipping=lambda self, X, y: np.abs(X).max() > 1e6 and warnings.warn("Some were clipped."),
    Prints=lambda self, X, y: print("clipped", np.count_nonzero(X > 1)),
    Logs=lambda self, X, y: logging.getLogger("moments").error("clipped %s", np.count_nonzero(X > 1)),
    Stumbles=lambda self, X, y: 1 // int(X.any()),
)


def scores_leniently(self, X, y):
    with config_context(strict=False):
        return Moments.score(self, X, y)


def scores_nothing_quietly(self, X, y):
    warnings.warn("This may be a record of training.", PrivacyLeakWarning, stacklevel=2)
    return Moments.score(self, X, y)


twins(
    "check_training_records",
    Moments,
    "score",
    ScoresItsRecords=RegressorMixin.score,
    ScoresInStrictMode=scores_leniently,
    AlwaysWarns=scores_nothing_quietly,
)


@twin("check_a_second_fit")
class KeepsTheFirstNoise(Moments):
    def sensitivity(self, n, d):
        if not hasattr(self, "_scale"):
            self._scale = super().sensitivity(n, d)
        return self._scale


@twin("check_a_second_fit", {"perturbation": "objective", **RANGE})
class LeavesItsSums(DPRidge):
    """What only another way to perturb releases stays."""

    def fit(self, X, y):
        sums = {name: vars(self)[name] for name in ("gram_", "moment_") if name in vars(self)}
        super().fit(X, y)
        vars(self).update(sums)
        return self


# what is refused


@twin("check_epsilon")
class TakesTextAsEpsilon(Moments):
    def fit(self, X, y):
        before = self.epsilon
        self.epsilon = float(before) if isinstance(before, str) else before
        try:
            return super().fit(X, y)
        finally:
            self.epsilon = before


@twin("check_epsilon")
class TakesNoEpsilon(Moments):
    def fit(self, X, y):
        if isinstance(self.epsilon, float) and math.isnan(self.epsilon):
            self.coef_ = np.zeros(1)
            return self
        return super().fit(X, y)


@twin("check_epsilon")
class ChecksLate(Moments):
    def fit(self, X, y):
        len(X)
        return super().fit(X, y)


twins(
    "check_fit_parameters",
    Moments,
    "fit",
    IgnoresWeights=lambda self, X, y, sample_weight=None: Moments.fit(self, X, y),
    IgnoresAnything=lambda self, X, y, **params: Moments.fit(self, X, y),
)


twins(
    "check_groups",
    Moments,
    "fit",
    IgnoresPersons=lambda self, X, y, groups=None: Moments.fit(self, X, y),
)


@twin("check_groups", {"alpha": 0.1, **BINARY})
class RowsInFull(DPLinearSVC):
    def _release(self, records, calibration, noise):
        return super()._release(replace(records, persons=None), calibration, noise)


@twin("check_groups", {"alpha": 0.1, **BINARY})
class NoiseOfAllRows(DPLinearSVC):
    def _release(self, records, calibration, noise):
        shape = replace(records.shape, n_samples=len(records.X))
        return super()._release(records, self.calibration(shape, calibration.epsilon), noise)


@twin("check_bad_records")
class TakesNaN(Moments):
    def fit(self, X, y):
        if isinstance(X, np.ndarray) and X.dtype.kind == "f":
            X = np.nan_to_num(X)
        return super().fit(X, y)


@twin("check_bad_records")
class TakesInfiniteTargets(Moments):
    def fit(self, X, y):
        if isinstance(y, np.ndarray) and y.dtype.kind == "f":
            y = np.clip(y, -1e9, 1e9)
        return super().fit(X, y)


@twin("check_bad_records")
class QuotesATarget(Moments):
    def fit(self, X, y):
        try:
            return super().fit(X, y)
        except ValueError as error:
            raise ValueError(f"{error} The targets begin with {np.ravel(y)[:2]}.") from None


@twin("check_bad_records")
class QuotesInTheContext(Moments):
    def predict(self, X):
        try:
            return super().predict(X)
        except ValueError as error:
            error.add_note(str(X))
            raise


@twin("check_bad_records")
class QuotesInAnEarlierError(Moments):
    """The traceback shows it under "During handling of the above exception"."""

    def fit(self, X, y):
        try:
            return super().fit(X, y)
        except ValueError as error:
            quoting = ValueError(str(X))
            quoting.__suppress_context__ = False
            error.__context__ = quoting
            raise


@twin("check_bad_records", BINARY)
class QuotesALabel(DPLogisticRegression):
    def fit(self, X, y):
        try:
            return super().fit(X, y)
        except ValueError:
            raise ValueError(f"y holds {set(np.ravel(y))}.") from None


@twin("check_labels", BINARY)
class LearnsLabelsQuietly(DPLogisticRegression):
    def fit(self, X, y):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return super().fit(X, y)


# what has a `fit` of its own is put back if it fails
HalfFitted = twin("check_failed_fits")(type("HalfFitted", (Moments,), {}))
HalfFitted.fit = inspect.unwrap(Moments.fit)


def forgets_first(self, X, y):
    for name in [name for name in vars(self) if name.endswith("_")]:
        delattr(self, name)
    return inspect.unwrap(Moments.fit)(self, X, y)


ForgetsTheOldModel = twin("check_failed_fits")(type("ForgetsTheOldModel", (Moments,), {}))
ForgetsTheOldModel.fit = forgets_first


# what is handed over


@twin("check_plain_form", BINARY)
class HandsOverCoefficientsAlone(DPLinearSVC):
    def to_sklearn(self):
        return super().to_sklearn()[-1]


@twin("check_plain_form", BINARY)
class HandsOverALength(DPLinearSVC):
    def _release(self, records, calibration, noise):
        return super()._release(records, calibration, noise) | {"_longest": np.abs(records.X).max()}

    def to_sklearn(self):
        plain = super().to_sklearn()
        plain.named_steps["columns"].longest_ = self._longest
        return plain


# parameters and certificates


@twin("check_parameters")
class ChangesItsParameters(Moments):
    def fit(self, X, y):
        super().fit(X, y)
        self.epsilon = float(self.epsilon) + 0.0
        self.data_norm = 2 * self.data_norm
        return self


def certifies(name, change):
    def stability_certificate(self, *args, **kwargs):
        return change(DPLinearSVC.stability_certificate(self, *args, **kwargs))

    kind = type(name, (DPLinearSVC,), {"stability_certificate": stability_certificate})
    twin("check_certificate", {"perturbation": "output", "alpha": 1.0, **BINARY})(kind)


certifies("CertifiesASmallSpan", lambda found: replace(found, span=found.span / 3))
certifies("CertifiesWithoutClasses", lambda found: replace(found, training=found.training / 2))


def run(name, estimator, statement):
    # (one that is found ends early; a third too little noise takes up to some thousand trials)
    found = private_estimator_checks(estimator, statement, n_trials=6000)
    checks = {check.__name__: check for _, check in found}
    checks[name](estimator)


@pytest.mark.parametrize("name, estimator, statement", TWINS)
def test_a_broken_twin_is_found(name, estimator, statement):
    with pytest.raises(AssertionError):
        run(name, estimator, statement)


def test_every_check_finds_a_twin():
    assert {param.values[0] for param in TWINS} == {check.__name__ for check in CHECKS}


@pytest.mark.slow
def test_all_that_fails_is_told():
    class Broken(States, Keeps):
        def say(self, loss):
            return replace(loss, epsilon=0.1)

        def keep(self, X, y):
            self.n_iter_ = int(np.count_nonzero(X > 0.9))

    with pytest.raises(AssertionError) as caught:
        check_private_estimator(Broken(), n_trials=0)
    assert "check_the_statement: privacy_ states" in str(caught.value)
    # (each check of the class without the two mistakes passes above)
    assert "check_what_is_kept: n_iter_ depends on the records" in str(caught.value)


REFUSED = {
    "chooses among others; give its estimator here, and its strategy to check_strategy": [
        StabilityGridSearchCV(DPRidge(target_range=(-1, 1)), {"alpha": [1.0]}, epsilon=1.0),
        AccuracyFirstSearchCV(DPRidge(target_range=(-1, 1)), {"epsilon": [1.0]}, target=0.1),
    ],
    "of a Pipeline a single step": [make_pipeline(DPRidge(target_range=(-1, 1))), Ridge()],
    "write classes=\\[0, 1\\]": [DPLogisticRegression(), DPLinearSVC()],
    "give an instance": [DPRidge, np.zeros(3)],
}


@pytest.mark.parametrize(
    "said, estimator", [(said, given) for said, each in REFUSED.items() for given in each]
)
def test_what_cannot_be_checked_is_refused_in_one_sentence(said, estimator):
    with pytest.raises(ValueError, match=said) as caught:
        check_private_estimator(estimator)
    assert str(caught.value).count(". ") == 0
