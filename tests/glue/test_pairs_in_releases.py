"""Any two settings of a release meet in one of these: evaluations, intervals, calibrations.

Three classes and persons, weights and groups, deltas and containers: whatever meets, one record moves
what is released by no more than the noise hides, the container changes nothing, and what is stated
follows from public numbers.
"""

import math
import os
import tempfile
import warnings
from contextlib import nullcontext
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dpselect import Evaluation, PrivacyLedger, SeededNoiseWarning
from dpselect.linear_model import coefficients
from dpselect.linear_model.coefficient_fits import fits_of
from dpselect.linear_model.coefficient_intervals import upper
from dpselect.noise import root_stream
from dpselect.records.held_records import HeldRecords
from dpselect.records.persons import adjacency_of
from tests.marks import slow_but

from . import pairs
from .pairs import N
from .release_pairs import (
    Records,
    fitted,
    law_rows,
    post_processed,
    release,
    release_rows,
    search_of,
)

ROWS = release_rows()
SEARCHES = law_rows()
# intervals take long to simulate
INTERVALS = [name for name, row in ROWS.items() if row["release"] == "intervals"]
FAST = [
    i for i, name in enumerate(ROWS) if name == INTERVALS[1] or (name not in INTERVALS and i % 9 == 0)
]
each_row = pytest.mark.parametrize("name", slow_but([*ROWS], *FAST))


def ledger_of(row):
    file = os.path.join(tempfile.mkdtemp(), "records.ledger")
    unit = adjacency_of(row["groups"] != "none")
    return PrivacyLedger(file, epsilon=1e6, delta=0.5, adjacency=unit)


@cache
def model_of(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return fitted(ROWS[name])


def released(row, name, records, container=None, seed=0, ledger=None):
    """Return what a row releases with noise that a seed names, or with any."""
    state = root_stream(31).child(name, seed) if row["state"] == "integer" else None
    given = ledger if row["ledger"] == "given" else None
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        # a model of arrays does not know the names of columns
        warnings.filterwarnings("ignore", "X has feature names", UserWarning)
        pairs.work_in_pieces(patch, row)
        with ledger if ledger is not None and row["ledger"] == "open" else nullcontext():
            return release(row, model_of(name), records, container, given, state)


def numbers_of(model, records, found):
    """Return all to which noise is added, in its unit."""
    if isinstance(found, Evaluation):
        return found.counts_.ravel()
    last, parts = model[-1] if hasattr(model, "steps") else model, []
    fits = fits_of(last, records.n)
    matrices = found.curvature_, found.gradients_
    curvatures, gradients = (each if len(fits) > 1 else each[None] for each in matrices)
    for fit, *pair in zip(fits, curvatures, gradients):
        rows, columns, share = upper(len(fit.w))
        W = np.outer(fit.weights, fit.weights)
        parts += [share * (W * M)[rows, columns] / b for M, b in zip(pair, fit.bounds)]
    return records.n * np.concatenate(parts)


# ---- one record, or all rows of a person


def neighbours(row, seed):
    """Return records, and those of which one record, or all rows of one person, are others."""
    one, other = Records(row, seed), Records(row, seed)
    own = np.arange(N) == 17
    if one.groups is not None:
        ids = np.array(one.groups, dtype=object)
        own = ids == max(sorted(set(one.groups), key=str), key=list(one.groups).count)
    rng, size = np.random.default_rng(seed + 40), own.sum()
    # short numbers, which all containers hold
    other.X[own] = rng.choice([-3000, -2, 0, 1, 3000], size=(size, row["columns"]))
    for name in ("y", "by"):
        if getattr(one, name) is not None:
            values = getattr(other, name)
            values[own] = rng.permutation(values)[:size]
    if one.weight is not None:
        other.weight[own] = rng.choice([0.0, 1.0, 1e6], size=size)
    return one, other


def check_neighbours(name):
    """Compare releases on neighbours, without noise: that is added afterwards."""
    row, worst = ROWS[name] | {"ledger": "none", "state": "integer", "epsilon": math.inf}, 0.0
    # (intervals take long to simulate)
    for seed in range(1 if row["release"] == "intervals" else 3):
        records = neighbours(row, seed)
        one, other = (numbers_of(model_of(name), part, released(row, name, part)) for part in records)
        moved = (
            np.abs(one - other).sum()
            if row["release"] != "intervals"
            else (np.linalg.norm(one - other) / math.sqrt(len(fits(name))))
        )
        worst = max(worst, moved)
    # a record leaves a cell and enters another; and so do two matrices of each class
    assert worst <= 2 + 1e-6, worst
    return worst


def fits(name):
    model = model_of(name)
    return fits_of(model[-1] if hasattr(model, "steps") else model, Records(ROWS[name], 0).n)


@each_row
def test_one_record_or_person_moves_a_release_as_far_as_its_noise_hides(name):
    check_neighbours(name)


@pytest.mark.slow
def test_some_records_move_a_release_nearly_so_far():
    worst = {}
    for name in [*INTERVALS[:3], *list(ROWS)[::7]]:
        release = ROWS[name]["release"]
        worst[release] = max(worst.get(release, 0.0), check_neighbours(name))
    # (no record has the longest row and the longest gradient of every class)
    least = {release: 0.2 if release == "intervals" else 1.5 for release in worst}
    assert all(moved > least[release] for release, moved in worst.items()), worst


WITH_PERSONS = [
    name for name, row in ROWS.items() if row["groups"] != "none" and row["kind"] != "density"
]


@pytest.mark.slow
def test_rows_that_count_as_persons_are_caught(monkeypatch):
    usual = HeldRecords.__init__

    def as_rows(self, X, y, groups=None):
        # of another number of them, as if weights of rows were forgotten
        usual(self, X, y, groups)
        if self.persons is not None:
            object.__setattr__(self.persons, "weight", np.ones(N))

    monkeypatch.setattr(HeldRecords, "__init__", as_rows)
    caught = 0
    for name in WITH_PERSONS[:8]:
        if ROWS[name]["release"] == "intervals":
            continue
        try:
            check_neighbours(name)
        except AssertionError:
            caught += 1
    assert caught >= 3, caught


@pytest.mark.slow
def test_sums_that_are_longer_than_their_bounds_are_caught(monkeypatch):
    usual = coefficients.fits_of

    def longer(*args):
        return tuple(
            replace(fit, sums=lambda X, y, fit=fit: [10 * M for M in fit.sums(X, y)])
            for fit in usual(*args)
        )

    monkeypatch.setattr(coefficients, "fits_of", longer)
    with pytest.raises(AssertionError):
        for name in INTERVALS[:6]:
            check_neighbours(name)


# ---- containers, statements, ledgers


@each_row
def test_a_container_changes_nothing(name):
    row = ROWS[name] | {"ledger": "none", "state": "integer"}
    records, model = Records(row, 0), model_of(name)
    one, other = (released(row, name, records, container) for container in ("C", row["container"]))
    for found in (one, other):
        assert type(found) is type(one) and str(found.privacy_) == str(one.privacy_)
    numbers = [numbers_of(model, records, found) for found in (one, other)]
    np.testing.assert_allclose(*numbers, rtol=1e-7, atol=1e-6)
    calibrations = [post_processed(row, model, found) for found in (one, other)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X has feature names", UserWarning)
        check_calibrations(row, records, calibrations)


def check_calibrations(row, records, calibrations):
    if calibrations[0] is not None:
        rows = records.X[:20]
        predicted = [calibration.predict_proba(rows) for calibration in calibrations]
        np.testing.assert_allclose(*predicted, rtol=1e-9)
        given = pairs.contained(records.X, row["container"])
        whole = np.asarray(calibrations[1].predict_proba(given))
        np.testing.assert_allclose(whole[:20], predicted[0], rtol=1e-9)
        assert ((whole >= 0) & (whole <= 1)).all() and np.allclose(whole.sum(axis=1), 1)


def facts_of(row, found, ledger):
    """Return all that a release says but for released numbers."""
    facts = [type(found), str(found.privacy_), found.privacy_]
    if isinstance(found, Evaluation):
        facts += [found.counts_.shape, found.metrics, found.levels, found.n_records]
        if found.levels:
            facts += [found.group(level).n_records for level in found.levels]
    else:
        facts += [found.names, found.curvature_.shape, found.gradients_.shape, found.errors.shape]
    if ledger is not None:
        # the model, which rows share, may have been fitted while the ledger was open
        entry = ledger.history()[-1]
        facts += [(entry.statement, entry.reserved_epsilon, entry.reserved_delta)]
    return facts


@each_row
def test_what_is_stated_and_reserved_follows_from_public_numbers(name):
    row, found = ROWS[name], []
    for seed in range(2):
        ledger = None if row["ledger"] == "none" else ledger_of(row)
        told = released(row, name, Records(row, seed), seed=seed, ledger=ledger)
        found.append(facts_of(row, told, ledger))
    assert found[0] == found[1]
    loss, epsilon = told.privacy_, row["epsilon"] * (1000 if row["release"] == "intervals" else 1)
    assert (loss.epsilon, loss.delta) == (epsilon, 0.0)
    assert loss.adjacency == adjacency_of(row["groups"] != "none")
    assert loss.seeded == (row["state"] == "integer" and row["epsilon"] < math.inf)
    if ledger is not None:
        (entry,) = ledger.history()
        assert entry.reserved_epsilon >= loss.epsilon and entry.reserved_delta >= loss.delta
        assert ledger.spent() == (loss.epsilon, loss.delta)


# ---- settings of searches that are the same to all candidates


def search_facts(row, seed):
    ledger = ledger_of(row)
    # what is drawn for splits is public
    records = Records(row | {"levels": 1}, seed)
    n = records.n if row["evaluation"] is None else records.n - round(row["evaluation"] * records.n)
    search = search_of(row, n, 7, ledger=ledger)
    with warnings.catch_warnings():
        # of a scoring that has no part in the choice, too
        warnings.simplefilter("ignore", UserWarning)
        search.fit(records.X, records.y, **records.params())
    (entry,) = ledger.history()
    loss = search.privacy_
    spent = loss.epsilon, loss.delta
    assert entry.reserved_epsilon >= spent[0] and entry.reserved_delta >= spent[1]
    assert ledger.spent() == spent
    # (a norm that is learned is a number that is released, and decides how far one record moves scores)
    facts = [str(search.plan_)] if row["data_norm"] == "given" else []
    if row["strategy"] not in ("optimal_risk", "auto", "random_stopping"):
        facts += [spent, [part.epsilon for part in loss.releases]]
    return facts, (entry.reserved_epsilon, entry.reserved_delta)


@pytest.mark.parametrize("name", slow_but([*SEARCHES], *range(0, len(SEARCHES), 14)))
def test_settings_of_searches_state_and_reserve_what_is_public(name):
    one, other = (search_facts(SEARCHES[name], seed) for seed in range(2))
    assert one == other
