"""The list of checks that every private estimator must pass: this library's, and yours.

The checks are attacks. They see an estimator from outside: `fit`, what it predicts, its parameters
and attributes, `privacy_`, the ledger. They bring the records, so none of yours are needed, and none
should be used: a message of a failed check may show them.
"""

import copy
import importlib.util
import io
import itertools
import logging
import math
import pickle
import random
import re
import tempfile
import warnings
from collections.abc import Callable, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cached_property, partial, update_wrapper
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import gamma, kstest, rankdata
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from .audit import guessing_game
from .capabilities import Calibrated, PublicShape
from .config import config_context
from .exceptions import (
    BudgetExceededError,
    CertificateError,
    PrivacyLeakError,
    PrivacyLeakWarning,
    SeededNoiseWarning,
)
from .first_releases import first_releases
from .ledger import PrivacyLedger
from .metrics import ClippedSquaredErrorScore, RampScore, get_score
from .noise import as_generator
from .privacy import PrivacyLoss
from .type_aliases import Estimator

# what may differ between data sets, if nothing else is stated; the first of these that are there
DEFAULT_ATTRIBUTES = (
    ("gram_", "moment_"), ("density_",), ("bounds_",), ("coef_", "intercept_"),
)
PREDICTIONS = (
    "decision_function", "predict", "predict_proba", "predict_log_proba", "score_samples", "transform",
)
# a map from noise to release that is worse conditioned is taken for one that loses noise
MOST_BENT = 1e5
# a release is computed for each number of its noise, and some hundred noises are looked at
MOST_NOISE = 64
# where an estimator draws its noise: see `dpselect.estimator.PrivateEstimator`
HOOK = "_standard_noise"
# so little that noise hides all records together, and so much that a row is beyond any bound
TINY, HUGE = 1e-6, 1e9
# what no message may show, in whatever units and precision
SECRET, TEXT, LABEL = 7.316452890123, "SECRET-42", 987654
LEAK = re.compile(r"7\.?316[45]|SECRET-42|987654")


@dataclass(frozen=True)
class ReleaseStatement:
    """What an estimator releases, and on which records it is tried.

    Neighbouring data sets differ in one record that is replaced; the number of records is public.

    Parameters
    ----------
    attributes : tuple of str, default=None
        Attributes that hold numbers with noise. Nothing else that a fitted object keeps may depend on
        the records, but for what is `derived`. None takes ``gram_`` and ``moment_``,
        ``density_``, ``bounds_``, or ``coef_`` and ``intercept_``, whichever the estimator has first.
    derived : tuple of str, default=()
        Attributes that are computed from those, and from public numbers. Those that the estimator
        names in `keeps` are some, too.
    row_bound : str, default="data_norm"
        Parameter with the norm to which rows are scaled down, if there is one of this name.
    n_features : tuple of two int, default=(1, 3)
        Columns of the records: as few as possible, and some.
    draw_records : callable, default=None
        ``draw_records(rng, n_samples, n_features)`` returns X, or ``(X, y)``, of ordinary size. None
        draws rows of [-1, 1], labels from `classes`, and targets of [-1, 1], or small counts if
        targets must not be negative. Weights of records are drawn besides.
    settings : tuple of dict, default=()
        Parameters, each with which the estimator is attacked as well. Every numeric parameter is
        multiplied by 4 in any case.

    Examples
    --------
    >>> from dpselect.testing import ReleaseStatement
    >>> statement = ReleaseStatement(("mean_",), settings=({"bound": 0.1},))
    """

    attributes: tuple[str, ...] | None = None
    derived: tuple[str, ...] = ()
    row_bound: str = "data_norm"
    n_features: tuple[int, int] = (1, 3)
    draw_records: Callable[..., Any] | None = None
    settings: tuple[Mapping[str, Any], ...] = field(default=())


def check_private_estimator(
    estimator: Estimator,
    statement: ReleaseStatement | None = None,
    *,
    n_trials: int = 2000,
) -> None:
    """Check that an estimator keeps what private estimators promise.

    That it passes is no proof. The checks find what they look for: a privacy loss that is larger than
    stated on the records that they try, by a third or more in one dimension and by a factor of about two
    in several; exact values in what is kept or said; records that are not clipped; a budget that is not
    asked, or not charged what is spent; noise that is shared, repeated or missing. They do not see a
    loss on other records, a delta that is too small, times, memory, or what methods other than `fit` and
    predictions reveal. A proof says what holds; this says that the code does not contradict it.

    Run scikit-learn's :func:`~sklearn.utils.estimator_checks.check_estimator` besides.

    Parameters
    ----------
    estimator : estimator
        Unfitted, with parameters `epsilon` and `random_state`. It is cloned. Classifiers need
        `classes`. If its `fit` takes `sample_weight` with these parameters, weights are attacked, too.
    statement : ReleaseStatement, default=None
        What it releases. None stands for ``ReleaseStatement()``.
    n_trials : int, default=2000
        Most fits to each pair of neighbours that are told apart; most pairs need a tenth. More find
        smaller mistakes. 0 leaves these attacks out.

    Raises
    ------
    AssertionError
        If a check fails; it names all that fail, and what each found.

    See Also
    --------
    private_estimator_checks : The same checks one by one, for pytest.

    Examples
    --------
    One estimator passes, and its twin keeps a number that it ought not to keep:

    >>> import numpy as np
    >>> from dpselect import DPHistogramDensity
    >>> from dpselect.testing import check_private_estimator
    >>> density = DPHistogramDensity(bounds=(-1, 1), bin_width=0.5)
    >>> check_private_estimator(density, n_trials=0)
    >>> class Counts(DPHistogramDensity):
    ...     def fit(self, X, y=None):
    ...         super().fit(X)
    ...         self.outside_ = int(np.sum(np.abs(np.asarray(X)) > 1))
    ...         return self
    >>> check_private_estimator(Counts(bounds=(-1, 1), bin_width=0.5), n_trials=0)
    Traceback (most recent call last):
    ...
    AssertionError: Counts fails 1 of ... checks of private estimators.
    check_what_is_kept: outside_ depends on the records; ...
    """
    failures, n_checks = [], 0
    for model, check in private_estimator_checks(estimator, statement, n_trials=n_trials):
        n_checks += 1
        try:
            check(model)
        except Exception as error:  # what an estimator raises by accident is a failure, too
            failures.append((check.__name__, error))
    if failures:
        found = "\n".join(
            f"{name}: {'' if isinstance(error, AssertionError) else type(error).__name__ + ': '}{error}"
            for name, error in failures
        )
        raise AssertionError(
            f"{type(estimator).__name__} fails {len(failures)} of {n_checks} checks of private "
            f"estimators.\n{found}"
        ) from failures[0][1]


def private_estimator_checks(
    estimator: Estimator,
    statement: ReleaseStatement | None = None,
    *,
    n_trials: int = 2000,
) -> list[tuple[Estimator, Callable[[Estimator], None]]]:
    """Return the checks of :func:`check_private_estimator`, to be run one by one.

    Parameters
    ----------
    estimator : estimator
    statement : ReleaseStatement, default=None
    n_trials : int, default=2000
        As there.

    Returns
    -------
    list of (estimator, callable)
        What was given, and a check: ``check(estimator)`` raises an AssertionError if it fails.

    Examples
    --------
    >>> import pytest
    >>> from dpselect import DPRidge
    >>> from dpselect.testing import private_estimator_checks
    >>> MODEL = DPRidge(target_range=(-1, 1))
    >>> @pytest.mark.parametrize("estimator, check", private_estimator_checks(MODEL))
    ... def test_private_estimator(estimator, check):
    ...     check(estimator)
    """
    statement = ReleaseStatement() if statement is None else statement
    checks: tuple[Callable[..., None], ...] = CHECKS[:-1]
    if n_trials:
        checks += (update_wrapper(partial(CHECKS[-1], n_trials=n_trials), CHECKS[-1]),)
    return [(estimator, _Check(check, statement)) for check in checks]


class _Check:
    """A check of one estimator, with a name and an id for pytest."""

    def __init__(self, check, statement):
        self.check, self.statement, self.__name__ = check, statement, check.__name__
        self.__doc__ = check.__doc__

    def __call__(self, estimator):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.check(_Case(estimator, self.statement))


def _require(condition, text):
    if not condition:
        raise AssertionError(text)


# ---- what the checks are made of


class _Case:
    """An estimator, its statement, and records for it."""

    def __init__(self, estimator, statement):
        self.estimator, self.statement = estimator, statement
        self.params = estimator.get_params(deep=False)
        self.tags = get_tags(estimator)
        self.one, self.some = statement.n_features
        self.counts = bool(self.tags.target_tags.positive_only)
        supervised = is_classifier(estimator) or is_regressor(estimator)
        self.supervised = supervised or bool(self.tags.target_tags.required)
        self.weighted = self.supervised and self._takes_weights()

    def _takes_weights(self):
        if not has_fit_parameter(self.estimator, "sample_weight"):
            return False
        self.weighted = False
        data = self.data()
        weights = np.ones(len(data[0]))
        return _attempt(lambda: self.model(0).fit(*data, sample_weight=weights)).error is None

    def model(self, seed=None, **params):
        return clone(self.estimator).set_params(random_state=seed, **params)

    def fit(self, data, seed=0, **params):
        return self.model(seed, **params).fit(*data)

    def labels(self, params=()):
        return np.asarray({**self.params, **dict(params)}["classes"])

    def data(self, seed=0, n=12, d=None, params=()):
        """Records of ordinary size, with all labels, and weights if `fit` takes them."""
        records = self._unweighted(seed, n, d, params)
        if not self.weighted:
            return records
        return *records[:2], np.random.default_rng([seed, n]).uniform(0, 2, n)

    def _unweighted(self, seed, n, d, params):
        rng, d = np.random.default_rng(seed), d or self.some
        if self.statement.draw_records is not None:
            drawn = self.statement.draw_records(rng, n, d)
            return drawn if isinstance(drawn, tuple) else (drawn,)
        X = rng.uniform(-1, 1, size=(n, d))
        if not self.supervised:
            return (X,)
        if is_classifier(self.estimator):
            labels = self.labels(params)
            return X, labels[rng.permutation(np.arange(n) % len(labels))]
        return X, rng.integers(0, 3, n).astype(float) if self.counts else rng.uniform(-1, 1, n)

    def targets(self, params=()):
        """Targets at the edge of what may come, or beyond."""
        if not self.supervised:
            return [None]
        if is_classifier(self.estimator):
            return list(self.labels(params)[[0, -1]])
        return [0.0, HUGE] if self.counts else [-HUGE, HUGE, 0.0]

    def edge(self, d, params=()):
        """Records at the edge, as a list of (row, target), or (row, target, weight)."""
        axis, ones, signs = np.eye(d)[0], np.ones(d), (-1.0) ** np.arange(d)
        rows = [HUGE * axis, -HUGE * axis, 0 * axis]
        rows += [HUGE * ones, -HUGE * ones, HUGE * signs] if d > 1 else []
        edge = list(itertools.product(rows, self.targets(params)))
        if self.weighted:
            edge = [(*record, HUGE) for record in edge]
            edge.insert(1, (*edge[0][:2], 0.0))
        return edge

    def outliers(self, seed=1, n=12):
        """Records of which half are beyond every bound, as whole numbers."""
        X, *y = self.data(seed, n)
        y, weights = y[:1], [np.where(np.arange(n) % 3, HUGE, part) for part in y[1:]]
        X = np.rint(3 * X)
        X[::2] *= HUGE
        if y and not is_classifier(self.estimator):
            y = [np.where(np.arange(n) % 3, y[0], HUGE * (1 if self.counts else (-1) ** np.arange(n)))]
        return X, *y, *weights

    def varied(self):
        """Data sets of one shape that have little else in common."""
        X, *y = self.data(2)
        yield X, *y
        yield self.outliers()
        yield 0 * X, *y
        yield X[::-1].copy(), *(part[::-1].copy() for part in y)
        if y:
            yield X, np.full_like(y[0], y[0][0])
            if not is_classifier(self.estimator):
                yield X, 0 * y[0]
        if self.weighted:
            yield X, y[0], 0 * y[1]
        yield np.repeat(X[:1], len(X), axis=0), *y

    def released(self, model):
        """Names of the attributes with noise."""
        if self.statement.attributes is not None:
            return self.statement.attributes
        there = vars(model)
        for names in DEFAULT_ATTRIBUTES:
            if names[0] in there:
                return tuple(name for name in names if name in there)
        raise AssertionError(
            f"{type(model).__name__} has no attribute that is known to be released; name them in "
            "ReleaseStatement(attributes=...)."
        )

    def numbers(self, model, derived=True):
        """All released numbers as a vector, those of a symmetric matrix once."""
        names = self.released(model) + (self._derived(model) if derived else ())
        parts = [np.zeros(0)]
        for path, leaf in _leaves({name: vars(model)[name] for name in names if name in vars(model)}):
            if isinstance(leaf, (bool, int, float, np.number, np.ndarray)):
                leaf = np.asarray(leaf)
                if leaf.dtype.kind in "biuf":
                    leaf = leaf[np.triu_indices(len(leaf))] if path[0] in self.symmetric else leaf
                    parts.append(leaf.astype(np.float64).ravel())
        return np.concatenate(parts)

    @cached_property
    def symmetric(self):
        """Names of attributes that are symmetric matrices."""
        models = [vars(self.fit(self.data(), seed, epsilon=1.0)) for seed in range(3)]
        return {
            name for name in self.released(self.fit(self.data()))
            if all(np.ndim(m[name]) == 2 and np.array_equal(m[name], m[name].T) for m in models)
        }

    def _derived(self, model):
        names = self.statement.derived + tuple(getattr(model, "keeps", ()))
        if self.statement.attributes is None and self.released(model) != DEFAULT_ATTRIBUTES[-1]:
            names += DEFAULT_ATTRIBUTES[-1]
        return names

    def may_differ(self, model):
        return {*self.released(model), *self._derived(model)}

    def spread(self, data, seeds=range(100, 110), **params):
        """How far the noise moves each number."""
        found = np.array([self.numbers(self.fit(data, seed, **params)) for seed in seeds])
        return np.mean(np.abs(found - np.median(found, axis=0)), axis=0)

    def several_outputs(self):
        """Parameters with which there is more than one output, if the estimator knows such."""
        if not is_classifier(self.estimator) or not self.tags.classifier_tags.multi_class:
            return {}
        labels = self.labels()
        if len(labels) != 2 or labels.dtype.kind not in "iuf":
            return {}
        params = {"classes": [*labels.tolist(), labels.max() + 1]}
        try:
            self.fit(self.data(params=params), **params)
        except ValueError:  # another parameter is for two labels
            return {}
        return params

    def predictions(self):
        return [name for name in PREDICTIONS if hasattr(self.estimator, name)]


def _leaves(value, path=()):
    """Yield (path, part) of all that is reachable from `value`."""
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, (list, tuple)):
        parts = enumerate(value)
    elif isinstance(value, (set, frozenset)):
        parts = enumerate(sorted(value, key=repr))
    elif isinstance(value, np.ndarray) and value.dtype == object:
        parts = enumerate(value.ravel().tolist())
    elif hasattr(value, "__dict__") and not isinstance(value, type) and not callable(value):
        yield path, type(value)
        parts = vars(value).items()
    else:
        yield path, value
        return
    if len(path) < 20:  # (an object may hold itself)
        for name, part in list(parts):
            yield from _leaves(part, (*path, name))


def _as_bytes(leaf):
    try:
        return pickle.dumps(leaf)
    except Exception:  # what has no pickle travels nowhere
        return repr(leaf if isinstance(leaf, type) else type(leaf)).encode()


def _form(leaf):
    return (type(leaf), leaf.dtype, leaf.shape) if isinstance(leaf, np.ndarray) else type(leaf)


def _kept(case, model):
    """What a fitted object keeps besides its parameters: {path: bytes}, or form of a release."""
    allowed, params = case.may_differ(model), model.get_params(deep=False)
    kept = {name: value for name, value in vars(model).items() if name not in params}
    return {
        path: _form(leaf) if allowed.intersection(map(str, path)) else _as_bytes(leaf)
        for path, leaf in _leaves(kept)
    }


def _hidden(model):
    """What a fitted object keeps in attributes that its author calls functions of the release."""
    named = {name: vars(model)[name] for name in getattr(model, "keeps", ()) if name in vars(model)}
    return {path: _as_bytes(leaf) for path, leaf in _leaves(named)}


def _differing(one, other):
    paths = {path for path in one.keys() | other.keys() if one.get(path) != other.get(path)}
    return sorted({".".join(map(str, path)) for path in paths})


@dataclass
class _Attempt:
    value: Any
    error: Exception | None
    said: list[str]
    warned: list[type]


def _attempt(call):
    """Call, and collect all that was said."""
    out, log = io.StringIO(), io.StringIO()
    handler, root = logging.StreamHandler(log), logging.getLogger()
    value = error = None
    root.addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as caught, redirect_stdout(out):
            warnings.simplefilter("always")
            with redirect_stderr(out):
                try:
                    value = call()
                except Exception as found:
                    error = found
    finally:
        root.removeHandler(handler)
    said = [out.getvalue(), log.getvalue()]
    said += [f"{warning.category.__name__}: {warning.message}" for warning in caught]
    link = error
    while link is not None:
        said += [str(link), repr(link), *getattr(link, "__notes__", ())]
        link = link.__cause__ or link.__context__
    return _Attempt(value, error, said, [warning.category for warning in caught])


class _TouchedError(Exception):
    """Something was asked of records before it was known whether they may be read."""


class _Untouchable:
    """Records that must not be read."""

    def __getattribute__(self, name):
        if name in ("__class__", "__weakref__"):
            return object.__getattribute__(self, name)
        raise _TouchedError(name)

    def _touched(self, *args):
        raise _TouchedError

    __len__ = __iter__ = __getitem__ = __array__ = __eq__ = __bool__ = _touched
    __hash__ = object.__hash__


def _refused(call, names, what):
    """Require an error of a kind, and return what was said."""
    found = _attempt(call)
    kinds = ", ".join(kind.__name__ for kind in names)
    touched = isinstance(found.error, _TouchedError)
    _require(not touched, f"{what}: records were read before it was refused.")
    got = "nothing" if found.error is None else f"{type(found.error).__name__}: {found.error}"
    _require(isinstance(found.error, names), f"{what} must raise {kinds}; it raised {got}.")
    return found


def _says_nothing_of_records(found, what):
    shown = [text for text in found.said if LEAK.search(text)]
    _require(not shown, f"{what} shows a value of the records: {shown[:1]}")


@contextmanager
def _stays_as_it_was(model, what):
    before, arrays = dict(vars(model)), copy.deepcopy(
        {name: value for name, value in vars(model).items() if isinstance(value, np.ndarray)}
    )
    yield
    after = vars(model)
    changed = {n for n in before.keys() | after.keys() if before.get(n) is not after.get(n)}
    changed |= {name for name, value in arrays.items() if not np.array_equal(value, after.get(name))}
    _require(not changed, f"{what} changed {', '.join(sorted(changed))}; it must leave all as it was.")


def _ledger(folder, epsilon=100.0, delta=0.5):
    return PrivacyLedger(Path(folder) / "checks.ledger", epsilon=epsilon, delta=delta)


# ---- parameters


def check_parameters(case):
    """A fit leaves parameters and records as they were given, and a clone has the same."""
    data = case.outliers()
    model = case.model()
    before = {name: id(value) for name, value in model.get_params(deep=False).items()}
    copies = [part.copy() for part in data]
    shared = [{n: id(v) for n, v in vars(kind).items()} for kind in type(model).__mro__]
    _require(model.fit(*data) is model, "fit must return the estimator.")
    after = {name: id(value) for name, value in model.get_params(deep=False).items()}
    changed = sorted(name for name in before if before[name] != after.get(name))
    _require(not changed, f"fit changed the parameters {changed}.")
    _require(
        all(np.array_equal(part, kept) for part, kept in zip(data, copies)),
        "fit changed the records that it was given; it must work on a copy.",
    )
    now = [{n: id(v) for n, v in vars(kind).items()} for kind in type(model).__mro__]
    ignored = {"__abstractmethods__", "_abc_impl", "__annotations__"}
    changed = {
        name for a, b in zip(shared, now) for name in a.keys() | b.keys() if a.get(name) != b.get(name)
    } - ignored
    _require(not changed, f"fit keeps {sorted(changed)} in the class, where other fits see it.")
    again = clone(model)
    _require(
        not vars(again).keys() - again.get_params(deep=False).keys(),
        "A clone keeps what was fitted.",
    )


def check_epsilon(case):
    """What is no epsilon is refused before any record is read, and a number of any type is one."""
    X = [_Untouchable() for _ in case.data()]
    for name, values in {
        "epsilon": ["1", None, math.nan, 0, -1.0, [1.0], -math.inf, np.ones(2), 1j],
        "random_state": ["0", -1, 0.5],
    }.items():
        for value in values:
            model = case.model().set_params(**{name: value})
            with _stays_as_it_was(model, f"A fit with {name}={value!r}"):
                _refused(
                    lambda: model.fit(*X), (TypeError, ValueError), f"A fit with {name}={value!r}"
                )
    data = case.data()
    usual = case.fit(data, epsilon=0.5)
    for number in (np.float16(0.5), np.float32(0.5)):
        _require(
            np.array_equal(case.numbers(case.fit(data, epsilon=number)), case.numbers(usual)),
            f"epsilon of type {type(number).__name__} gives other noise than the same float.",
        )


def check_epsilon_is_passed(case):
    """What a search plans and trains with another epsilon has the noise of that one."""
    if not isinstance(case.model(), Calibrated) or first_releases(case.model()):
        return
    for own, passed in ((4.0, 0.25), (0.25, 4.0)):
        found, expected = (
            case.model(epsilon=epsilon).calibration(PublicShape(1000, case.some), passed)
            for epsilon in (own, passed)
        )
        _require(
            str(vars(found)) == str(vars(expected)),
            f"calibration(shape, {passed}) of an estimator with epsilon={own} is not that of one with "
            f"epsilon={passed}, so a search would state another loss than its models have; read the "
            "epsilon that is passed in place of self.epsilon.",
        )


def check_fit_parameters(case):
    """Weights change how far one record moves the model: those that nothing bounds are refused."""
    data = case.data()
    weights, names = np.ones(len(data[0])), ["no_such_parameter"]
    if not case.weighted:
        names.append("sample_weight")
    else:
        every_other = (*data[:2], np.arange(len(weights)) % 2)
        plain, weighted = (case.fit(part, epsilon=math.inf) for part in (data[:2], every_other))
        _require(
            not np.array_equal(case.numbers(plain), case.numbers(weighted)),
            "fit takes sample_weight and releases the same as without; leave the parameter out.",
        )
    for name in names:
        model = case.model()
        with _stays_as_it_was(model, f"A fit with {name}"):
            _refused(
                lambda: model.fit(*data, **{name: weights}), (TypeError, ValueError),
                f"A fit with {name}",
            )


# ---- noise


def check_noise_is_fresh(case):
    """Without a seed each fit has noise of its own, which nothing that is kept can bring back."""
    data = case.data()
    models = [case.model(epsilon=TINY) for _ in range(3)]
    models.append(copy.deepcopy(models[0]))
    found, kept = [], []
    state, numpys = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        for model in [*models, models[0]]:
            random.seed(0)
            np.random.seed(0)  # noqa: NPY002
            model.fit(*data)
            found.append(case.numbers(model).tolist())
            kept.append(_kept(case, model))
    finally:
        random.setstate(state)
        np.random.set_state(numpys)  # noqa: NPY002
    for one, other in itertools.combinations(found, 2):
        _require(one != other, "Two fits with random_state=None have the same noise.")
    for other in kept[1:]:
        names = _differing(kept[0], other)
        _require(not names, f"{', '.join(names)} changes with the noise, as a key or a seed would.")
    keys = (np.random.Generator, np.random.BitGenerator, np.random.RandomState, np.random.SeedSequence)
    for path, leaf in _leaves({n: v for n, v in vars(models[0]).items()}):
        _require(not isinstance(leaf, keys), f"{path[0]} keeps a generator.")


def check_seeds(case):
    """A seed gives the same noise again, and so it warns and is marked."""
    data = case.data()
    one, again = (case.fit(data, 3) for _ in range(2))
    _require(
        np.array_equal(case.numbers(one), case.numbers(again))
        and _kept(case, one) == _kept(case, again),
        "Two fits with the same random_state differ; all but noise must be a function of the records.",
    )
    tiny = [case.numbers(case.fit(data, seed, epsilon=TINY)).tolist() for seed in (3, 4)]
    _require(tiny[0] != tiny[1], "Two seeds give the same noise.")
    generator = np.random.RandomState(0)
    found = [case.numbers(case.fit(data, generator, epsilon=TINY)).tolist() for _ in range(2)]
    _require(found[0] != found[1], "Two fits with one generator have the same noise.")
    for seed, wanted in ((None, False), (0, True), (np.random.default_rng(0), True)):
        model = case.model(seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(*data)
        seeds = [w for w in caught if issubclass(w.category, SeededNoiseWarning)]
        what = f"random_state of type {type(seed).__name__}"
        _require(bool(seeds) == wanted, f"A fit with {what} must {'' if wanted else 'not '}warn.")
        _require(model.privacy_.seeded is wanted, f"privacy_.seeded is wrong for {what}.")
    model = case.model(0)
    with config_context(strict=True), _stays_as_it_was(model, "A fit that strict mode refuses"):
        _refused(lambda: model.fit(*data), (PrivacyLeakError,), "A seed in strict mode")


def check_without_noise(case):
    """epsilon=inf is the twin without noise: it promises nothing, and no budget pays for it."""
    data = case.data()
    found = []
    for seed in (None, 0, 1):
        result = _attempt(lambda: case.fit(data, seed, epsilon=math.inf))
        _require(result.error is None, f"epsilon=inf is refused: {result.error}")
        _require(SeededNoiseWarning not in result.warned, "Without noise a seed does no harm.")
        _require(result.value.privacy_.epsilon == math.inf, "privacy_ promises what is not private.")
        found.append(case.numbers(result.value))
    _require(
        all(np.array_equal(found[0], other) for other in found),
        "epsilon=inf still has noise: two fits differ.",
    )
    with tempfile.TemporaryDirectory() as folder:
        model = case.model(epsilon=math.inf)
        with _stays_as_it_was(model, "A fit that no budget pays"), _ledger(folder):
            _refused(
                lambda: model.fit(*data), (BudgetExceededError,), "epsilon=inf with an open ledger"
            )


def check_noise_is_independent(case):
    """No two numbers share their noise."""
    params = {**case.several_outputs(), "epsilon": TINY}
    data = case.data(params=params)
    found = np.array([
        case.numbers(case.fit(data, seed, **params), derived=False)[:100] for seed in range(40)
    ])
    found = found[:, np.ptp(found, axis=0) > 0]
    _require(found.size, "The release has no noise.")
    # the records are nothing beside so much noise, so that sizes are its own
    for values in (found, np.abs(found)):
        ranks = rankdata(values, axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            shared = np.abs(np.corrcoef(ranks, rowvar=False))
        shared = np.atleast_2d(shared)
        np.fill_diagonal(shared, 0.0)
        _require(
            not np.nanmax(shared, initial=0.0) > 0.95,
            "Two released numbers have the same noise, and their difference or quotient tells the "
            "records; draw noise for each.",
        )


# ---- records


def _paths(case, folder, data):
    """The same records in every form that the estimator takes."""
    X, *y = data
    yield "float32", (X.astype(np.float32), *y)
    yield "integers", (X.astype(np.int64), *y)
    yield "Fortran order", (np.asfortranarray(X), *y)
    yield "lists", (X.tolist(), *(part.tolist() for part in y))
    mapped = np.memmap(Path(folder) / "rows", dtype=X.dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    yield "memory map", (mapped, *y)
    if case.tags.input_tags.sparse:
        for kind in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
            yield kind.__name__, (kind(X), *y)
    if importlib.util.find_spec("pandas"):
        import pandas as pd

        frame = pd.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])])
        yield "DataFrame", (frame, *(pd.Series(part) for part in y))
    if importlib.util.find_spec("dask") and importlib.util.find_spec("dask.array"):
        import dask.array as da

        lazy = tuple(da.from_array(part, chunks=(5, *part.shape[1:])) for part in (X, *y))
        for records in (lazy, (lazy[0], *y)):
            if _attempt(lambda: case.fit(records)).error is None:
                yield "Dask", records


def check_paths(case):
    """Rows and targets are clipped alike in every form, and so are rows in predictions."""
    data, tame = case.outliers(), case.data()
    tame = (np.rint(3 * tame[0]), *tame[1:])
    usual = case.fit(data, epsilon=1.0)
    expected, scale = case.numbers(usual), case.spread(data, epsilon=1.0)
    names = case.predictions()
    predicted = {name: np.asarray(getattr(usual, name)(data[0])) for name in names}
    with tempfile.TemporaryDirectory() as folder:
        paths = list(_paths(case, folder, data))
        for path, records in paths:
            model = case.fit(records, epsilon=1.0)
            apart = np.abs(case.numbers(model) - expected)
            _require(
                (apart <= 1e-3 * scale + 1e-9 * np.abs(expected)).all(),
                f"Records given as {path} release something else than as an array of float64; check "
                "that rows and targets are clipped there, too.",
            )
            for name in names:
                found = np.asarray(getattr(model, name)(records[0]))
                if path == "DataFrame":
                    found = np.asarray(found, dtype=predicted[name].dtype)
                same = found.shape == predicted[name].shape and (
                    np.allclose(found, predicted[name], rtol=1e-3, atol=1e-3, equal_nan=True)
                    if found.dtype.kind == "f" else np.array_equal(found, predicted[name])
                )
                _require(same, f"{name} of rows given as {path} differs from that of an array.")
        tiny = case.fit(tame, epsilon=TINY)
        expected, scale = case.numbers(tiny), case.spread(tame, epsilon=TINY)
        for path, records in [("an array", data), *paths]:
            apart = np.abs(case.numbers(case.fit(records, epsilon=TINY)) - expected)
            _require(
                (apart <= 0.02 * scale).all(),
                f"At epsilon={TINY:g} other records, given as {path}, still show beside the noise; "
                "either rows or targets are not clipped, or some number has too little noise.",
            )


def check_predictions(case):
    """A row that is too long counts in predictions as one of the norm to which rows are clipped."""
    model = case.fit(case.data(), epsilon=1.0)
    d = case.some
    rows = np.vstack([np.eye(d), -np.eye(d), np.ones((1, d))])
    bound = case.params.get(case.statement.row_bound)
    for name in case.predictions():
        predict = getattr(model, name)
        found = {scale: np.asarray(predict(scale * rows)) for scale in (1e15, 1e18)}
        if isinstance(bound, (int, float)):
            found[0] = np.asarray(predict(float(bound) * rows))
            # (a row of ones is longer than the bound)
            found = {scale: values[: 2 * d] for scale, values in found.items()}
        usual = found.pop(1e15)
        for values in found.values():
            same = (
                np.allclose(values, usual, rtol=1e-6, atol=1e-9, equal_nan=True)
                if usual.dtype.kind == "f" else np.array_equal(values, usual)
            )
            _require(same, f"{name} does not clip rows as fit does.")


def check_bad_records(case):
    """Records that mean nothing are refused, in words that show none of them."""
    X, *y = case.data()
    text = X.astype(object)
    text[0, 0] = TEXT
    rows = {
        "NaN": np.where(np.arange(X.size).reshape(X.shape) == 4, np.nan, SECRET),
        "infinity": np.where(np.arange(X.size).reshape(X.shape) == 4, -np.inf, SECRET),
        "text": text, "text alone": np.full(X.shape, TEXT), "complex numbers": X * SECRET + 1j,
        "one dimension": X[:, 0] * 0 + SECRET, "no rows": X[:0], "no columns": X[:, :0],
    }
    n = len(X)
    bad = {
        f"X with {name}": (value, *(part[: len(value)] for part in y)) for name, value in rows.items()
    }
    if y:
        targets = {
            "NaN": np.where(np.arange(n) == 3, np.nan, SECRET),
            "infinity": np.where(np.arange(n) == 3, np.inf, SECRET),
            "two columns": np.full((n, 2), SECRET), "too few": y[0][:-1], "None": None,
            "missing values": np.array([None, TEXT] * n, dtype=object)[:n],
        }
        if is_classifier(case.estimator):
            labels = case.labels()
            unknown = TEXT if labels.dtype.kind in "UO" else LABEL
            targets["an unknown label"] = np.array([unknown] + [labels[0]] * (n - 1))
            targets["text"] = np.array([TEXT] * n)
        else:
            targets["text"] = np.array([TEXT] * n)
            targets["complex numbers"] = np.full(n, SECRET + 1j)
        bad.update({f"y with {name}": (X, value) for name, value in targets.items()})
    if case.weighted:
        weights = {
            "NaN": np.where(np.arange(n) == 3, np.nan, SECRET),
            "a negative number": np.where(np.arange(n) == 3, -SECRET, SECRET),
            "two columns": np.full((n, 2), SECRET), "too few": np.full(n - 1, SECRET),
            "text": np.array([TEXT] * n),
        }
        bad.update({f"sample_weight with {name}": (X, y[0], value) for name, value in weights.items()})
    fresh = {name: case.model() for name in bad}
    wider = case.data(d=case.some)
    fitted = case.fit(wider, None)
    for name, records in bad.items():
        for model in (fresh[name], fitted):
            with _stays_as_it_was(model, f"A refused fit to {name}"):
                found = _refused(
                    lambda: model.fit(*records), (TypeError, ValueError), f"A fit to {name}"
                )
            _says_nothing_of_records(found, f"A fit to {name}")
    if case.supervised and not is_classifier(case.estimator):
        for value in (SECRET, -SECRET, 1e300 * SECRET):
            _says_nothing_of_records(
                _attempt(lambda: case.model().fit(X, np.full(n, value))), "A fit to odd targets"
            )
    _says_nothing_of_records(
        _attempt(lambda: case.model().fit(np.full_like(X, SECRET), *y)), "A fit to equal rows"
    )
    for method in case.predictions():
        unfitted = case.model()
        _refused(lambda: getattr(unfitted, method)(X), (NotFittedError,), f"{method} before fit")
        for name in ("NaN", "infinity", "text", "text alone", "one dimension"):
            found = _refused(
                lambda: getattr(fitted, method)(rows[name]), (TypeError, ValueError),
                f"{method} of X with {name}",
            )
            _says_nothing_of_records(found, f"{method} of X with {name}")


def check_labels(case):
    """Labels that nobody gave are learned from the records, which warns."""
    if not is_classifier(case.estimator):
        return
    X, y, *_ = case.data()
    _require(case.params.get("classes") is not None, "Give the estimator its classes=[...].")
    model = case.model(classes=None)
    found = _attempt(lambda: model.fit(X, y))
    _require(
        found.error is not None or PrivacyLeakWarning in found.warned,
        "classes=None learns labels from y, which no loss covers; it must warn (PrivacyLeakWarning).",
    )
    _says_nothing_of_records(
        _attempt(lambda: case.model(classes=None).fit(X, np.where(y == y[0], LABEL, 0))), "classes=None"
    )
    model = case.model(classes=None)
    with config_context(strict=True), _stays_as_it_was(model, "A fit that strict mode refuses"):
        _refused(
            lambda: model.fit(*([_Untouchable()] * 2)), (PrivacyLeakError, ValueError),
            "classes=None in strict mode",
        )


def check_training_records(case):
    """A score of the records that a model was trained on is a leak, and warns."""
    if not hasattr(case.estimator, "score"):
        return
    data = case.data()[:2]
    model = case.fit(data, None)
    found = _attempt(lambda: model.score(*data))
    _require(
        PrivacyLeakWarning in found.warned,
        "score of the training records is an exact function of them; it must warn (PrivacyLeakWarning).",
    )
    with config_context(strict=True):
        _refused(lambda: model.score(*data), (PrivacyLeakError,), "score of training records")
    found = _attempt(lambda: model.score(*case.data(9)[:2]))
    _require(PrivacyLeakWarning not in found.warned, "score of other records must not warn.")


# ---- what is left of the records


def check_what_is_kept(case):
    """Two fits with the same noise differ in what is released and in nothing else."""
    models = [case.fit(data) for data in case.varied()]
    kept = [_kept(case, model) for model in models]
    for other in kept[1:]:
        names = _differing(kept[0], other)
        _require(
            not names,
            f"{', '.join(names)} depends on the records; release it with noise, or do not keep it.",
        )
    hidden = [_hidden(model) for model in models]
    renoised = _hidden(case.fit(next(case.varied()), seed=1))
    exact = {
        path[0] for path, value in hidden[0].items()
        if renoised.get(path) == value and any(other.get(path) != value for other in hidden[1:])
    }
    _require(
        not exact, f"{', '.join(sorted(exact))} depends on the records and not on the noise: `keeps` is "
        "for functions of what is released.",
    )
    shown = {repr(model) + str(sorted(vars(model))) for model in models}
    _require(len(shown) == 1, "The representation depends on the records.")
    numbers = [case.numbers(model) for model in models]
    _require(
        any(not np.array_equal(numbers[0], other) for other in numbers[1:]),
        "The release is the same for all records; are its attributes those of the statement?",
    )
    _require(all(np.isfinite(part).all() for part in numbers), "A released number is not finite.")


def check_what_is_said(case):
    """What a fit prints, logs and warns of does not depend on the records."""
    said = [_attempt(lambda: case.fit(data)) for data in case.varied()]
    for other in said:
        _require(other.error is None, f"Some records cannot be fitted: {other.error!r}")
        _require(
            other.said == said[0].said,
            f"What is said depends on the records: {said[0].said} and {other.said}.",
        )


def _earlier(case):
    """Yield parameters with which an object may have been fitted before, each at other values, too."""
    yield from _parameters(case, 0.1)
    checks = getattr(case.estimator, "parameter_checks", {})
    for name, value in case.params.items():
        choices = getattr(checks.get(name), "keywords", {}).get("choices", ())
        others = [not value] if isinstance(value, bool) else [2.0] if value is None else choices
        for other in others:
            if name not in ("random_state", "ledger"):
                yield {"epsilon": 100.0, name: other}


def check_a_second_fit(case):
    """A second fit is as the first one would have been, whatever the object was before."""
    data, now = case.data(), {"epsilon": 2.0, "random_state": 6}
    once = case.fit(data, 6, epsilon=2.0)
    for params in _earlier(case):
        model = case.model(5, **params)
        try:
            model.fit(*case.data(7, n=9, d=case.one, params=params))
        except (TypeError, ValueError):
            continue  # a value that the estimator does not take
        model.set_params(**{name: case.params[name] for name in params} | now).fit(*data)
        names = _differing(_kept(case, model), _kept(case, once))
        _require(
            not names and np.array_equal(case.numbers(model), case.numbers(once)),
            f"A second fit depends on the first one, with {params}{': ' if names else ''}"
            f"{', '.join(names)}.",
        )
        _require(
            model.privacy_ == once.privacy_, "privacy_ of a second fit is not that of a first one."
        )


def check_failed_fits(case):
    """A fit that fails late leaves the estimator as it was, too."""
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
        _ledger(folder)
        failing = FailingLedger(Path(folder) / "checks.ledger")
        for model in (fresh, fitted):
            for params in [{"random_state": NoNoise(0)}, {"ledger": failing}]:
                if not params.keys() <= model.get_params().keys():
                    continue
                before = model.get_params(deep=False)
                model.set_params(**params)
                with _stays_as_it_was(model, "A fit that failed"):
                    found = _attempt(lambda: model.fit(*data))
                    if found.error is None:  # it found another way to its noise
                        vars(model).clear()
                        vars(model).update(vars(clone(case.estimator)))
                        break
                model.set_params(**{name: before[name] for name in params})


def check_grid(case):
    """Sums of records and noise are multiples of a public step: their last bits tell nothing."""
    X, *y = case.data(n=8)
    if is_classifier(case.estimator):
        alike = [(X * (1 + i * 2.0**-16), *y) for i in range(5)]
    else:
        alike = [tuple(part * (1 + i * 2.0**-16) for part in (X, *y)) for i in range(5)]
    found = np.array([
        [case.numbers(case.fit(data, seed, epsilon=20.0), derived=False) for data in alike]
        for seed in range(3)
    ])
    for column in np.moveaxis(found, 2, 0):
        largest, moved = np.abs(column).max(), column - column[:, :1]
        # what is no sum of the two is computed from such sums, or from noise that went elsewhere
        if not np.ptp(moved, axis=0).max() <= 1e-9 * np.ptp(moved) or not np.ptp(moved):
            continue
        _require(
            _is_grid(column.ravel(), largest),
            "Released numbers are not multiples of a public step, so their last bits tell of the "
            "records; pass them through dpselect.noise.release.",
        )


def _is_grid(numbers, largest):
    # a power of two, of which doubles hold the multiples
    if not np.remainder(numbers, math.ldexp(1.0, math.frexp(largest)[1] - 50)).any():
        return True
    # or a larger step, which divides all differences up to what doubles round
    step, differences = 0.0, np.unique(np.abs(np.diff(numbers)))
    for i, rest in enumerate(differences):
        while rest > largest * 2.0**-34:
            step, rest = rest, math.remainder(step, rest) if step else 0.0
            rest = abs(rest)
        for number in differences[: i + 1]:
            step = number / max(1.0, round(number / step))
    rests = np.abs(differences - np.rint(differences / step) * step)
    return step > largest * 2.0**-28 and bool((rests < largest * 2.0**-46).all())


# ---- what is stated and paid


def _delta(case):
    return float(case.params.get("delta") or 0.0)


def check_the_statement(case):
    """`privacy_` says what was spent, before and after parameters change."""
    data = case.data()
    for epsilon in (0.5, 3, 1e-3):
        model = case.fit(data, None, epsilon=epsilon)
        loss = model.privacy_
        _require(isinstance(loss, PrivacyLoss), "privacy_ must be a PrivacyLoss.")
        _require(
            (loss.epsilon, loss.delta) == (float(epsilon), _delta(case)),
            f"privacy_ states epsilon {loss.epsilon:g} and delta {loss.delta:g} after a fit with "
            f"{epsilon:g} and {_delta(case):g}.",
        )
        _require(
            loss.adjacency == PrivacyLoss(1.0).adjacency and loss.kind == PrivacyLoss(1.0).kind,
            "privacy_ states another guarantee than the one that is checked.",
        )
        model.set_params(epsilon=99.0)
        _require(model.privacy_ is loss, "privacy_ changes with the parameters after the fit.")
    _require(copy.deepcopy(model).privacy_ == loss, "privacy_ does not travel with a copy of the model.")


def check_ledger(case):
    """A budget is asked before any record is read, and charged with what `privacy_` states."""
    data = case.data()
    untouchable = [_Untouchable() for _ in data]
    ways = ["open", "parameter"] if "ledger" in case.params else ["open"]
    for way in ways:
        with tempfile.TemporaryDirectory() as folder:
            ledger = _ledger(folder, epsilon=1.0)
            model = case.model(epsilon=0.75)

            def fit(*records):
                if way == "parameter":
                    return model.set_params(ledger=ledger).fit(*records)
                with ledger:
                    return model.fit(*records)

            for name, (X, *y) in {
                "one dimension": (data[0][:, 0], *data[1:]), "NaN": (data[0] * np.nan, *data[1:])
            }.items():
                _attempt(lambda: fit(X, *y))
                _require(
                    ledger.spent() in ((0.0, 0.0), (0.75, _delta(case))),
                    f"A fit that was refused for X with {name} is charged {ledger.spent()}.",
                )
            already = len(ledger.history())
            if ledger.spent()[0]:
                return
            fit(*data)
            entries = ledger.history()[already:]
            _require(len(entries) == 1, f"A fit makes {len(entries)} entries in the ledger, not one.")
            (entry,) = entries
            _require(
                ledger.spent() == (0.75, _delta(case))
                and (entry.epsilon, entry.delta) == (model.privacy_.epsilon, model.privacy_.delta),
                f"The ledger is charged epsilon {entry.epsilon:g} and delta {entry.delta:g} for a fit "
                f"with 0.75 and {_delta(case):g}.",
            )
            _require(
                entry.label == model.privacy_.label, "The ledger names something else than privacy_."
            )
            with _stays_as_it_was(model, "A fit that no budget pays"):
                _refused(
                    lambda: fit(*untouchable), (BudgetExceededError,), "A fit beyond the budget"
                )
            _require(ledger.spent() == (0.75, _delta(case)), "A refused fit is charged.")


# ---- attacks


def _parameters(case, epsilon):
    """Yield parameters to be tried: each number once larger and once smaller."""
    yield {"epsilon": epsilon}
    for params in (*case.statement.settings, case.several_outputs()):
        if params:
            yield {"epsilon": epsilon, **params}
    if case.params.get("fit_intercept") is True:
        yield {"epsilon": epsilon, "fit_intercept": False}
    for name, value in case.params.items():
        if name in ("epsilon", "delta", "tol"):
            continue
        if isinstance(value, float) and math.isfinite(value) and value > 0:
            for factor in (0.01, 100.0):
                yield {"epsilon": epsilon, name: factor * value}
        elif isinstance(value, str) and value == "auto":
            for number in (0.01, 100.0):
                yield {"epsilon": epsilon, name: number}


def _settings(case):
    """Yield (parameters, number of columns, records, changed records): where the loss is tried."""
    yield {"epsilon": 1.5}, case.one, 2, 1
    yield {"epsilon": 1.5}, case.one, 8, 1
    yield {"epsilon": 1.5}, case.some, 3, 1
    yield {"epsilon": 3.0}, case.one, 3, 1
    yield {"epsilon": 0.15}, case.one, 10, 10
    for params in list(_parameters(case, 1.5))[1:]:
        yield params, case.one, 3, 1


def _as_records(records):
    rows, targets, *weights = zip(*records)
    found = (np.array(rows),) if targets[0] is None else (np.array(rows), np.array(targets))
    return *found, *map(np.array, weights)


def _worst_neighbours(case, setting, bases, seeds):
    """Return how far neighbours are moved, in spreads of the noise, and the pair that is moved most."""
    params, d, n, changed = setting
    edge = case.edge(d, params)
    best = (0.0, None)
    for base in (edge[0], edge[-1])[:bases]:
        data = [_as_records([record] * changed + [base] * (n - changed)) for record in edge]
        found = np.array([
            [case.numbers(case.fit(part, seed, **params)) for part in data] for seed in range(seeds)
        ])
        spread = case.spread(data[0], range(10, 16), **params)
        moved = np.abs(found[:, :, None] - found[:, None]).mean(axis=0)
        size = moved.max(initial=0.0)
        score = np.linalg.norm(moved / np.maximum(spread, 1e-9 * size + 1e-300), axis=-1)
        i, j = np.unravel_index(np.argmax(score), score.shape)
        best = max(best, (float(score[i, j]), (data[i], data[j])), key=lambda pair: pair[0])
    return best


def check_the_stated_loss(case, n_trials):
    """Neighbours that are as far apart as can be cannot be told apart better than is stated."""
    tried = []
    for number, setting in enumerate(_settings(case)):
        try:
            apart, _ = _worst_neighbours(case, setting, 1, 1)
        except (TypeError, ValueError):
            continue  # a value that the estimator does not take
        tried.append((-apart / (setting[0]["epsilon"] * setting[3]), number, setting))
    seeds = itertools.count(1000)
    for _, number, setting in sorted(tried)[:3]:
        _, pair = _worst_neighbours(case, setting, 2, 2)
        if pair is None:
            continue
        params, _, n, changed = setting
        epsilon = params["epsilon"] * changed
        result = guessing_game(
            lambda data: case.numbers(case.fit(data, next(seeds), **params)), *pair, epsilon,
            delta=min(0.5, changed * math.exp(epsilon) * _delta(case)), n_trials=n_trials,
            random_state=number,
        )
        _require(
            not result.refuted,
            f"With {params} and {n} records, of which {changed} changed, {result.right} of "
            f"{result.right + result.wrong} guesses of the data set were right, which a loss of "
            f"{epsilon:g} does not allow.",
        )


class _FixedNoise:
    """An estimator whose standard noise is given: its release as a function of the noise."""

    def __init__(self, case, params):
        self.case, self.params = case, {**case.params, **params}
        kind, self.given, self.call = type(case.estimator), None, None

        def noise(model, generator, *shape):
            self.call = shape
            if self.given is None:
                return getattr(kind, HOOK)(model, generator, *shape)
            return self.given.copy()

        self.kind = type(kind.__name__, (kind,), {HOOK: noise})

    def release(self, data, given=None):
        self.given = given
        return self.case.numbers(self.kind(**self.params).fit(*data), derived=False)

    def prepare(self, data):
        """Find the part of the noise that moves the release, and its law; tell whether that is known."""
        self.params["random_state"] = 0
        usual = self.release(data)
        if self.call is None:
            return False
        draw = getattr(type(self.case.estimator)(**self.params), HOOK)
        draws = [draw(as_generator(0), *self.call)]
        if np.size(draws[0]) > MOST_NOISE:
            return False
        draws += [draw(as_generator(seed), *self.call) for seed in range(1, 400)]
        if len({np.shape(one) for one in draws}) > 1:
            return False
        draws = np.array(draws, dtype=np.float64)
        self.base = draws[0]
        if not np.array_equal(self.release(data, self.base), usual) or not self.base.ndim:
            return False
        blocks = np.arange(self.base.size).reshape(-1, self.base.shape[-1])
        draws, moves = draws.reshape(len(draws), -1), []
        for block in blocks:
            r = self.base.copy()
            r.ravel()[block] += np.abs(draws[:, block]).mean(axis=0)
            moves.append(self.release(data, r) - usual)
        sizes = np.linalg.norm(moves, axis=1)
        kept = sizes > 1e-5 * sizes.max(initial=0.0)
        self.columns = np.flatnonzero(np.any(np.array(moves)[kept] != 0, axis=0))
        self.places = blocks[kept].ravel()
        self.laws = [_law(draws[:, block]) for block in blocks[kept]]
        return len(self.columns) == len(self.places) > 0 and None not in self.laws

    def at(self, data, r):
        given = self.base.copy()
        given.ravel()[self.places] = r
        return self.release(data, given)[self.columns]

    def log_density(self, r):
        parts = np.split(r, len(self.laws))
        return -sum(np.linalg.norm(part, order) / b for part, (order, b) in zip(parts, self.laws))

    def slopes(self, data, r):
        step = 1e-4 * (1 + np.abs(r).max())
        moves = step * np.eye(len(r))
        return (np.array([self.at(data, r + move) for move in moves]) - self.at(data, r)).T / step

    def tells(self, data, r, slopes):
        """Tell whether the release shows all of the noise: a clipped model does not."""
        if not np.linalg.cond(slopes) < MOST_BENT:
            return False
        moved = 1e-4 * (1 + np.abs(r).max()) * np.resize([0.9, -0.7, 0.8], len(r))
        found = np.linalg.solve(slopes, self.at(data, r + moved) - self.at(data, r))
        return bool((np.abs(found - moved) < 0.1 * np.abs(moved)).all())

    def loss(self, data, neighbour, r):
        """Return the loss of what comes out of `data` at the noise r."""
        slopes, target, s = self.slopes(data, r), self.at(data, r), r
        bent = slopes
        if not self.tells(data, r, slopes):
            return 0.0
        for _ in range(8):
            move = np.linalg.solve(bent, target - self.at(neighbour, s))
            s, size = s + move, np.abs(move).max() / (1 + np.abs(s).max())
            bent = self.slopes(neighbour, s)
            if not self.tells(neighbour, s, bent):
                return 0.0
            if size < 1e-4:
                signs = np.linalg.slogdet(slopes)[1], np.linalg.slogdet(bent)[1]
                return abs(self.log_density(r) - signs[0] - self.log_density(s) + signs[1])
        return 0.0  # the noise that explains it was not found


def _law(draws):
    """Return the order of the norm and the scale of noise of density exp(-norm / scale)."""
    d, fits = draws.shape[1], []
    # with the logarithms of the integrals of exp(-norm)
    for order, values, shape, volume in (
        (2, np.linalg.norm(draws, axis=1), d,
         math.log(2) + d / 2 * math.log(math.pi) + math.lgamma(d) - math.lgamma(d / 2)),
        (1, np.abs(draws).ravel(), 1, d * math.log(2)),
    ):
        scale = values.mean() / shape
        if scale > 0 and kstest(values / scale, gamma(shape).cdf).pvalue > 1e-4:
            # (a mean of some hundred draws is that far from 1)
            standard = 0.85 < scale < 1.15
            law = order, 1.0 if standard else scale
            fits.append((not standard, d * math.log(scale) + volume, law))
    # of two that fit, the standard law, or the likelier one
    return min(fits)[-1] if fits else None


def check_the_loss_of_each_noise(case):
    """At every noise, what comes out is as likely on neighbouring records as is stated."""
    if not hasattr(case.estimator, HOOK) or _delta(case):
        return
    d, n, found = min(case.some, 2), 3, []
    for params in _parameters(case, 1.0):
        edge = case.edge(d, params)
        data = [_as_records([record] + [edge[0]] * (n - 1)) for record in edge]
        fixed = _FixedNoise(case, params)
        try:
            if not fixed.prepare(data[0]):
                continue
        except (TypeError, ValueError):
            continue  # a value that the estimator does not take
        r, along = np.full(len(fixed.places), 0.1), None
        for length in (0.0, -3.0, 3.0, -30.0, 30.0):
            r = r if along is None else length * along
            slopes = fixed.slopes(data[0], r)
            if not fixed.tells(data[0], r, slopes):
                continue
            released = np.array([fixed.at(records, r) for records in data])
            moves = np.linalg.solve(slopes, (released[:, None] - released).reshape(-1, len(r)).T).T
            if along is None:
                longest = moves[np.argmax(np.linalg.norm(moves, axis=1))]
                along = longest / max(np.linalg.norm(longest), 1e-300)
                continue
            density = fixed.log_density(r)
            losses = np.array([abs(density - fixed.log_density(r + move)) for move in moves])
            for pair in np.argsort(-losses)[:2]:
                i, j = divmod(int(pair), len(data))
                found.append((-losses[pair], len(found), fixed, params, data[i], data[j], r))
    for _, _, fixed, params, records, neighbour, r in sorted(found, key=lambda one: one[:2])[:6]:
        loss = fixed.loss(records, neighbour, r)
        _require(
            loss <= 1.02 * params["epsilon"] + 0.01,
            f"With {params} and {n} records there is a noise at which one record makes what comes "
            f"out exp({loss:.3g}) times as likely, and not exp({params['epsilon']:g}) times.",
        )


def check_certificate(case):
    """A certificate that is stated holds for neighbours that are as far apart as can be."""
    if not hasattr(case.estimator, "stability_certificate"):
        return
    n, d = 6, case.one
    for params in ({"epsilon": 20.0}, {"epsilon": 1.0}, {"epsilon": 20.0, **case.several_outputs()}):
        outputs = len(params.get("classes", ())) or (
            len(case.labels()) if is_classifier(case.estimator) else 1
        )
        problems = outputs if outputs > 2 else 1
        edge = case.edge(d, params)
        model = case.model(7, **params)
        for score in _scores(case):
            try:
                certificate = model.stability_certificate(score, n, d, problems)
            except CertificateError:
                continue
            again = clone(model).stability_certificate(score, n, d, problems)
            _require(again == certificate, "Two certificates of the same noise differ.")
            for base in (edge[0], edge[-1]):
                models = [
                    clone(model).fit(*_as_records([record] + [base] * (n - 1))) for record in edge
                ]
                records = [_as_records([record]) for record in edge]
                values = np.array([[score(fitted, *one[:2]) for one in records] for fitted in models])
                for name, bound, moved in (
                    ("training", certificate.training, np.ptp(values, axis=0).max()),
                    ("validation", certificate.span, np.ptp(values, axis=1).max()),
                ):
                    _require(
                        moved <= bound * (1 + 1e-9) + 1e-12,
                        f"One {name} record moves {type(score).__name__} by {moved:g} at fixed noise, "
                        f"and the certificate says at most {bound:g}.",
                    )


def _scores(case):
    yield RampScore(-30.0, 30.0)
    yield ClippedSquaredErrorScore(100.0)
    scoring = getattr(case.estimator, "default_scoring", None)
    if scoring is not None:
        yield get_score(scoring)


CHECKS = (
    check_parameters,
    check_epsilon,
    check_epsilon_is_passed,
    check_fit_parameters,
    check_noise_is_fresh,
    check_seeds,
    check_without_noise,
    check_noise_is_independent,
    check_paths,
    check_predictions,
    check_bad_records,
    check_labels,
    check_training_records,
    check_what_is_kept,
    check_what_is_said,
    check_a_second_fit,
    check_failed_fits,
    check_grid,
    check_the_statement,
    check_ledger,
    check_certificate,
    check_the_loss_of_each_noise,
    check_the_stated_loss,  # the last one, and may be left out
)
__all__ = ["ReleaseStatement", "check_private_estimator", "private_estimator_checks"]
