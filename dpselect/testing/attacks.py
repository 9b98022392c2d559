"""Attack the stated loss: distinguish neighbouring data sets by repeated releases."""

import itertools
import math

import numpy as np

from ..audit import guessing_game
from .case import as_records, parameters_to_try, stated_delta
from .neighbours import neighbourhoods
from .tally import leave_out, require


def _settings(case):
    """Yield the settings to try: (parameters, number of columns, records, changed records)."""
    yield {"epsilon": 1.5}, case.one, 2, 1
    yield {"epsilon": 1.5}, case.one, 8, 1
    yield {"epsilon": 1.5}, case.some, 3, 1
    yield {"epsilon": 3.0}, case.one, 3, 1
    yield {"epsilon": 0.15}, case.one, 10, 10
    for params in list(parameters_to_try(case, 1.5))[1:]:
        yield params, case.one, 3, 1


def _worst_neighbours(case, setting, bases, seeds):
    """Return the largest move of neighbours, in spreads of the noise, and that pair."""
    params, d, n, changed = setting
    edge = case.edge(d, params)
    best = (0.0, None)
    for base in (edge[0], edge[-1])[:bases]:
        data = [as_records([record] * changed + [base] * (n - changed)) for record in edge]
        found = np.array(
            [[case.numbers(case.fit(part, seed, **params)) for part in data] for seed in range(seeds)]
        )
        spread = case.spread(data[0], range(10, 16), **params)
        moved = np.abs(found[:, :, None] - found[:, None]).mean(axis=0)
        size = moved.max(initial=0.0)
        score = np.linalg.norm(moved / np.maximum(spread, 1e-9 * size + 1e-300), axis=-1)
        i, j = np.unravel_index(np.argmax(score), score.shape)
        best = max(best, (float(score[i, j]), (data[i], data[j])), key=lambda pair: pair[0])
    return best


def _among_others(case, setting):
    """Return the pair with the largest move, where one record among ordinary ones is replaced."""
    params, d, _, _ = setting
    best = (0.0, None)
    for hood in neighbourhoods(case, 12, d, params, few=True):
        found = np.array([case.numbers(case.fit(data, **params)) for data in hood])
        spread = case.spread(hood[0], range(10, 16), **params)
        size = np.abs(found).max(initial=0.0)
        score = np.linalg.norm(
            (found[:, None] - found) / np.maximum(spread, 1e-9 * size + 1e-300), axis=-1
        )
        i, j = np.unravel_index(np.argmax(score), score.shape)
        best = max(best, (float(score[i, j]), (hood[i], hood[j])), key=lambda pair: pair[0])
    return best


def check_the_stated_loss(case, n_trials):
    """Check that the worst neighbours cannot be distinguished better than is stated."""
    if not n_trials:
        leave_out("n_trials is 0")
        return
    tried = []
    for number, setting in enumerate(_settings(case)):
        try:
            apart, _ = _worst_neighbours(case, setting, 1, 1)
        except (TypeError, ValueError) as refusal:
            leave_out(f"{setting[0]}, which is refused: {str(refusal)[:60]}")
            continue
        tried.append((-apart / (setting[0]["epsilon"] * setting[3]), number, setting))
    seeds = itertools.count(1000)
    usual = {"epsilon": 1.5}, case.some, 12, 1
    found = [
        (number, setting, _worst_neighbours(case, setting, 2, 2)[1])
        for _, number, setting in sorted(tried)[:3]
    ]
    for number, setting, pair in [(len(tried), usual, _among_others(case, usual)[1]), *found]:
        if pair is None:
            leave_out(f"{setting[0]}, with which no record moves anything")
            continue
        params, _, n, changed = setting
        epsilon = params["epsilon"] * changed
        result = guessing_game(
            lambda data: case.numbers(case.fit(data, next(seeds), **params)),
            *pair,
            epsilon,
            delta=min(0.5, changed * math.exp(epsilon) * stated_delta(case)),
            n_trials=n_trials,
            random_state=number,
        )
        require(
            not result.refuted,
            f"With {params} and {n} records, of which {changed} changed, {result.right} of "
            f"{result.right + result.wrong} guesses of the data set were right, which a loss of "
            f"{epsilon:g} does not allow.",
        )
