"""Data sets for attacks: very different ones, and sets of pairwise neighbours."""

import itertools

import numpy as np
from sklearn.base import is_classifier

from .case import HUGE, OfPersons

# numbers of columns that reveal noise for another norm; fewer for a grid of cells
MANY_COLUMNS, MANY_CELLS = 30, 6


def bases(case, n, d, params=(), few=False):
    """Yield (rows, targets, weights): ordinary records, equal ones, extreme ones, and of several scales.

    Targets and weights are None where the estimator takes none.
    """
    X, *y = case.data(3, n, d, params)
    ordinary, weights = (y[0] if y else None), (y[1] if len(y) > 1 else None)
    axis, place = np.eye(d)[0], np.arange(n)[:, np.newaxis]
    alternating = np.where(place % 2, 1.0, 0.5) * axis
    alone = list(_alone(case, ordinary, params))
    yield X, ordinary, weights
    yield np.tile(axis, (n, 1)), alone[0], weights
    yield alternating, ordinary, weights
    if few:
        return
    yield X, alone[-1], None if weights is None else np.ones(n)
    yield np.where(place == 1, HUGE * axis, X), ordinary, weights
    yield 0 * X, ordinary, weights
    yield 1e-3 * X, ordinary, weights
    yield 1e3 * X, alone[0], weights
    yield np.where(np.arange(d) == d - 1, 1.0, np.abs(X)), ordinary, weights
    yield np.where(np.arange(d) == d - 1, 7.0, np.rint(3 * X)), ordinary, weights
    bound = case.params.get(case.statement.row_bound)
    if isinstance(bound, float):
        yield np.tile(bound * axis, (n, 1)), alone[-1], weights
    yield np.tile(HUGE * axis, (n, 1)), ordinary, weights
    yield HUGE * alternating, alone[0], weights
    if ordinary is not None and not is_classifier(case.estimator):
        size = HUGE * (np.ones(n) if case.counts else (-1.0) ** np.arange(n))
        yield X, size, weights
        yield X, np.where(np.arange(n) == 1, size, ordinary), weights


def _alone(case, ordinary, params):
    """Yield constant targets."""
    if ordinary is None:
        yield None
        return
    labels = case.labels(params)[[0, -1]] if is_classifier(case.estimator) else [0.0, 1.0]
    for label in labels:
        yield np.full_like(ordinary, label)


def families(case):
    """Yield lists of data sets of one public shape, ordinary ones first."""
    some, one = case.some, case.one
    yield [as_data(*base) for base in bases(case, 12, some)]
    yield [as_data(*base) for base in bases(case, 600, one, few=True)]


def as_data(X, y, weights):
    return tuple(part for part in (X, y, weights) if part is not None)


def records_to_try(case, d, params=()):
    """Return replacements of a record: zero, at a bound, huge, of every target."""
    axis, ones, signs = np.eye(d)[0], np.ones(d), (-1.0) ** np.arange(d)
    rows = [0 * axis, axis, -axis, HUGE * axis, -HUGE * axis, 3 * np.eye(d)[-1]]
    if d > 1:
        rows += [ones / d, HUGE * ones, -HUGE * ones, HUGE * signs]
    records = [
        (row, target, weight)
        for row, target in itertools.product(rows, _targets(case, params))
        for weight in ([HUGE] if case.weighted else [None])
    ]
    return [*records, (*records[1][:2], 0.0)] if case.weighted else records


def _targets(case, params):
    targets = case.targets(params)
    # also one of ordinary size, whose effects extreme ones may hide
    return targets if is_classifier(case.estimator) or targets == [None] else [*targets, 1.0]


def neighbourhoods(case, n, d, params=(), few=False):
    """Yield lists of data sets, any two of which differ in the first record alone."""
    records = records_to_try(case, d, params)
    for X, y, weights in bases(case, n, d, params, few):
        found = [as_data(X, y, weights)]
        for row, target, weight in records:
            parts = [X.copy()]
            parts[0][0] = row
            for values, value in ((y, target), (weights, weight)):
                if values is not None:
                    parts.append(values.copy())
                    parts[-1][0] = value
            found.append(tuple(parts))
        yield found


def neighbourhoods_of_persons(case, d, params=()):
    """Yield lists of data sets, any two of which differ in the rows of the first person alone.

    The others have two rows each, and the first one a row, five like it, or several of all kinds.
    """
    records = records_to_try(case, d, params)
    for X, y, weights in bases(case, 10, d, params, few=True):
        others = as_data(X, y, weights)
        own = [[record] * times for record in records for times in (1, 5)]
        own += [records[::2], records[:7], records[-3:]]
        found = []
        for rows in own:
            parts = [
                np.concatenate([np.array([row[place] for row in rows], dtype=part.dtype), part])
                for place, part in zip((0, 1, 2) if y is not None else (0,), others)
            ]
            found.append(OfPersons.of(parts, np.append([0] * len(rows), 1 + np.arange(10) // 2)))
        yield found


def many_columns(case):
    """Return a large number of columns, or None if the statement lists its own."""
    if case.statement.n_features != type(case.statement)().n_features:
        return None
    return MANY_COLUMNS if case.supervised else MANY_CELLS
