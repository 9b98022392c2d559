"""An estimator under check: records for it, parameters to try, and the contents of a fit."""

from __future__ import annotations

import itertools
import math
import pickle
import warnings
from functools import cached_property
from pathlib import Path

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from ..ledger import PrivacyLedger
from .attempts import attempt

# attributes that may depend on the records by default; the first group that exists
DEFAULT_ATTRIBUTES = (
    ("gram_", "moment_"),
    ("density_",),
    ("bounds_",),
    ("coef_", "intercept_"),
)
PREDICTIONS = (
    "decision_function",
    "predict",
    "predict_proba",
    "predict_log_proba",
    "score_samples",
    "transform",
)
# an epsilon whose noise hides all records, and a value beyond any bound
TINY, HUGE = 1e-6, 1e9


class Case:
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
        return attempt(lambda: self.model(0).fit(*data, sample_weight=weights)).error is None

    def model(self, seed=None, **params):
        if params.get("epsilon") == TINY and self.params.get("delta"):
            params["delta"] = TINY  # a larger delta would limit the noise at this epsilon
        return clone(self.estimator).set_params(random_state=seed, **params)

    def fit(self, data, seed=0, **params):
        return fit_to(self.model(seed, **params), data)

    def labels(self, params=()):
        return np.asarray({**self.params, **dict(params)}["classes"])

    def data(self, seed=0, n=12, d=None, params=()):
        """Return records of ordinary size, with all labels, and weights if `fit` takes them."""
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
        """Return targets at the bounds, or beyond."""
        if not self.supervised:
            return [None]
        if is_classifier(self.estimator):
            return list(self.labels(params)[[0, -1]])
        return [0.0, HUGE] if self.counts else [-HUGE, HUGE, 0.0]

    def edge(self, d, params=()):
        """Return extreme records, as a list of (row, target), or (row, target, weight)."""
        axis, ones, signs = np.eye(d)[0], np.ones(d), (-1.0) ** np.arange(d)
        rows = [HUGE * axis, -HUGE * axis, 0 * axis]
        rows += [HUGE * ones, -HUGE * ones, HUGE * signs] if d > 1 else []
        edge = list(itertools.product(rows, self.targets(params)))
        if self.weighted:
            edge = [(*record, HUGE) for record in edge]
            edge.insert(1, (*edge[0][:2], 0.0))
        return edge

    def outliers(self, seed=1, n=12):
        """Return integer records, half of them beyond every bound."""
        X, *y = self.data(seed, n)
        y, weights = y[:1], [np.where(np.arange(n) % 3, HUGE, part) for part in y[1:]]
        X = np.rint(3 * X)
        X[::2] *= HUGE
        if y and not is_classifier(self.estimator):
            y = [np.where(np.arange(n) % 3, y[0], HUGE * (1 if self.counts else (-1) ** np.arange(n)))]
        return X, *y, *weights

    def varied(self):
        """Return very different data sets of one shape."""
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
        """Return the names of the attributes with noise."""
        if self.statement.attributes is not None:
            return self.statement.attributes
        known, derived = self._usual_names(model), self._derived(model)
        names = known + tuple(
            name for name in self._named_by_release if name not in known and name not in derived
        )
        if not names:
            raise AssertionError(
                f"{type(model).__name__} has no attribute that is known to be released; return them "
                "from _release, or name them in ReleaseStatement(attributes=...)."
            )
        return names

    def _usual_names(self, model):
        there = vars(model)
        for names in DEFAULT_ATTRIBUTES:
            if names[0] in there:
                return tuple(name for name in names if name in there)
        return ()

    @cached_property
    def _named_by_release(self):
        """Return public names in the dict that `_release` returns."""
        kind, found = type(self.estimator), {}
        if not hasattr(kind, "_release"):
            return ()

        def _release(model, *args):
            released = kind._release(model, *args)
            found.update(released)
            return released

        named = type(kind.__name__, (kind,), {"_release": _release, "__module__": kind.__module__})
        with warnings.catch_warnings():  # about the seed
            warnings.simplefilter("ignore")
            named(**self.model(0).get_params(deep=False)).fit(*self.data())
        return tuple(name for name in found if name.endswith("_") and not name.startswith("_"))

    def numbers(self, model, derived=True):
        """Return all released numbers as a vector, those of a symmetric matrix once."""
        return np.concatenate([np.zeros(0), *(part for _, part in self._parts(model, derived))])

    def places(self, model):
        """Return the attribute of each of these numbers."""
        return [name for name, part in self._parts(model, True) for _ in part]

    def _parts(self, model, derived):
        names = self.released(model) + (self._derived(model) if derived else ())
        for path, leaf in leaves({name: vars(model)[name] for name in names if name in vars(model)}):
            if isinstance(leaf, (bool, int, float, np.number, np.ndarray)):
                leaf = np.asarray(leaf)
                if leaf.dtype.kind in "biuf":
                    leaf = leaf[np.triu_indices(len(leaf))] if path[0] in self.symmetric else leaf
                    yield path[0], leaf.astype(np.float64).ravel()

    @cached_property
    def symmetric(self):
        """Return the names of attributes that are symmetric matrices."""
        models = [vars(self.fit(self.data(), seed, epsilon=1.0)) for seed in range(3)]

        def is_symmetric(part):
            return np.ndim(part) == 2 and np.array_equal(part, np.transpose(part))

        names = self.released(self.fit(self.data()))
        return {name for name in names if all(is_symmetric(model[name]) for model in models)}

    def _derived(self, model):
        names = self.statement.derived + tuple(getattr(model, "keeps", ()))
        usual = self._usual_names(model)
        if self.statement.attributes is None and usual and usual != DEFAULT_ATTRIBUTES[-1]:
            names += DEFAULT_ATTRIBUTES[-1]
        return names

    def may_differ(self, model):
        return {*self.released(model), *self._derived(model)}

    def spread(self, data, seeds=range(100, 110), **params):
        """Return the spread of each number due to the noise."""
        found = np.array([self.numbers(self.fit(data, seed, **params)) for seed in seeds])
        return np.mean(np.abs(found - np.median(found, axis=0)), axis=0)

    def several_outputs(self):
        """Return parameters with more than one output, if the estimator supports it."""
        if not is_classifier(self.estimator) or not self.tags.classifier_tags.multi_class:
            return {}
        labels = self.labels()
        if len(labels) != 2 or labels.dtype.kind not in "iuf":
            return {}
        params = {"classes": [*labels.tolist(), labels.max() + 1]}
        try:
            self.fit(self.data(params=params), **params)
        except ValueError:  # another parameter allows only two labels
            return {}
        return params

    def predictions(self):
        return [name for name in PREDICTIONS if hasattr(self.estimator, name)]


class OfPersons(tuple):
    """Records with the person of each row."""

    groups: np.ndarray

    @classmethod
    def of(cls, data, groups):
        records = cls(data)
        records.groups = groups
        return records


def fit_to(model, data):
    """Fit to records, with groups if they have some."""
    return model.fit(*data, groups=data.groups) if isinstance(data, OfPersons) else model.fit(*data)


def leaves(value, path=()):
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
    if len(path) < 20:  # an object may contain itself
        for name, part in list(parts):
            yield from leaves(part, (*path, name))


def as_bytes(leaf):
    try:
        return pickle.dumps(leaf)
    except Exception:  # what cannot be pickled cannot leave the process
        return repr(leaf if isinstance(leaf, type) else type(leaf)).encode()


def _form(leaf):
    return (type(leaf), leaf.dtype, leaf.shape) if isinstance(leaf, np.ndarray) else type(leaf)


def what_is_kept(case, model):
    """Return a fitted object's state besides its parameters: {path: bytes}, or form of a release."""
    allowed, params = case.may_differ(model), model.get_params(deep=False)
    kept = {name: value for name, value in vars(model).items() if name not in params}
    return {
        path: _form(leaf) if allowed.intersection(map(str, path)) else as_bytes(leaf)
        for path, leaf in leaves(kept)
    }


def differing(one, other):
    paths = {path for path in one.keys() | other.keys() if one.get(path) != other.get(path)}
    return sorted({".".join(map(str, path)) for path in paths})


def open_ledger(folder, epsilon=100.0, delta=0.5):
    return PrivacyLedger(Path(folder) / "checks.ledger", epsilon=epsilon, delta=delta)


def stated_delta(case):
    return float(case.params.get("delta") or 0.0)


def parameters_to_try(case, epsilon):
    """Yield parameters to try: each number once larger and once smaller."""
    yield {"epsilon": epsilon}
    for params in (*case.statement.settings, case.several_outputs()):
        if params:
            yield {"epsilon": epsilon, **params}
    if case.params.get("fit_intercept") is True:
        yield {"epsilon": epsilon, "fit_intercept": False}
    for name, value in case.params.items():
        if name not in ("epsilon", "delta", "tol"):
            for other in _other_values(case.estimator, name, value):
                yield {"epsilon": epsilon, name: other}


def _other_values(estimator, name, value):
    """Return other values of a parameter."""
    if isinstance(value, float) and math.isfinite(value) and value > 0:
        return [0.01 * value, 100.0 * value]
    choices = choices_of(estimator, name)
    if isinstance(value, str) and value == "auto" and not choices:
        choices = (0.01, 100.0)
    return [other for other in choices if other != value]


def choices_of(estimator, name):
    """Return the values of a parameter that its check lists."""
    checks = getattr(estimator, "parameter_checks", {})
    return getattr(checks.get(name), "keywords", {}).get("choices", ())


def as_records(records):
    rows, targets, *weights = zip(*records)
    found = (np.array(rows),) if targets[0] is None else (np.array(rows), np.array(targets))
    return *found, *map(np.array, weights)
