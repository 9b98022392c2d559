"""A ledger counts one unit: losses of rows are refused where persons are counted, or stated for them."""

import math
import pickle
import threading
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from dpselect import (
    AccuracyFirstSearchCV,
    BudgetExceededError,
    DPHistogramDensity,
    DPLogisticRegression,
    PrivacyLedger,
    PrivacyLoss,
)

PERSON, HOLDOUT_PERSON = "replace all rows of one person", "replace all rows of one holdout person"


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "ledger", epsilon=4.0, delta=1e-3, adjacency=PERSON)


def test_rows_are_refused_where_persons_are_counted(ledger):
    with pytest.raises(ValueError, match="groups=person_ids.*rows_per_person=.*numbers are public"):
        ledger.spend(0.1)
    with pytest.raises(ValueError, match="add or remove"):
        PrivacyLedger(ledger.path, rows_per_person=3).spend(0.1, adjacency="add or remove one record")
    rows = PrivacyLedger(ledger.path + "2", epsilon=1.0)
    with pytest.raises(ValueError, match="replace one record") as caught:
        rows.spend(0.1, adjacency=PERSON)
    # no number of rows makes a loss for persons one for rows
    assert "rows_per_person" not in str(caught.value)
    assert ledger.spent() == rows.spent() == (0.0, 0.0)
    with pytest.raises(ValueError, match="replace one holdout record"):
        PrivacyLedger(ledger.path, rows_per_person=3).spend(0.1, adjacency="replace one holdout record")


@pytest.mark.parametrize("bad", [0, -1, 1.5, "3", True, math.inf])
def test_bad_numbers_of_rows(ledger, bad):
    for make in (
        lambda: PrivacyLedger(ledger.path, rows_per_person=bad),
        lambda: PrivacyLoss(1.0).for_persons(bad),
    ):
        with pytest.raises((ValueError, TypeError), match="rows_per_person"):
            make()


def test_rows_are_counted_so_many_times(ledger):
    stated = PrivacyLedger(ledger.path, rows_per_person=3)
    X = np.random.default_rng(0).uniform(size=(300, 1))
    with pickle.loads(pickle.dumps(stated)):
        density = DPHistogramDensity(0.5, bounds=(0, 1)).fit(X)
    assert density.privacy_.epsilon == 0.5 and density.privacy_.adjacency == "replace one record"
    entry = ledger.history()[0]
    assert entry.epsilon == entry.reserved_epsilon == 1.5
    assert "3 times the loss of a row; numbers of rows are public" in entry.label
    assert "for each person with all rows" in str(ledger)
    stated.spend(0.5, adjacency=PERSON)
    assert ledger.spent()[0] == 2.0
    with pytest.raises(BudgetExceededError):
        stated.reserve(0.7)
    # what came out is less than what was reserved, and counts as often
    stated.reserve(0.6, 1e-5).commit(PrivacyLoss(0.25, kind="ex-post"))
    assert ledger.spent() == (2.75, 0.0)


def test_other_threads_count_as_the_ledger_that_was_opened_says(ledger):
    X, fitted = np.random.default_rng(0).uniform(size=(300, 1)), []

    def fit():
        fitted.append(DPHistogramDensity(0.5, bounds=(0, 1)).fit(X))

    with PrivacyLedger(ledger.path, rows_per_person=3, label="March"):
        thread = threading.Thread(target=fit)
        thread.start()
        thread.join()
    (entry,) = ledger.history()
    assert fitted and entry.epsilon == 1.5 and entry.label.startswith("March: ")


def test_a_ledger_of_records_takes_no_number_of_rows(tmp_path):
    """Its losses would count once, whatever is said of persons."""
    rows = PrivacyLedger(tmp_path / "rows", epsilon=1.0)
    with pytest.raises(ValueError, match="rows_per_person=3"):
        PrivacyLedger(rows.path, rows_per_person=3)
    with pytest.raises(ValueError, match="rows_per_person=3"):
        PrivacyLedger(tmp_path / "new", epsilon=1.0, rows_per_person=3)
    assert not (tmp_path / "new").exists()
    assert PrivacyLedger(tmp_path / "holdout", 1.0, adjacency=HOLDOUT_PERSON, rows_per_person=3)


def test_what_could_not_be_committed_is_refused_before_it_is_released(ledger):
    """An ex-post loss with a delta has no statement for persons, in whichever unit it was reserved."""
    search = AccuracyFirstSearchCV(
        DPLogisticRegression(classes=[0, 1], alpha=0.1, perturbation="output"),
        {"epsilon": np.geomspace(0.01, 0.1, 5)},
        target=0.9,
        method="brownian",
        delta=1e-7,
    )
    X = np.random.default_rng(0).uniform(-1, 1, size=(200, 2))
    with pytest.raises(ValueError, match="ex-post loss with a delta"):
        with PrivacyLedger(ledger.path, rows_per_person=2):
            search.fit(X, X[:, 0] > 0)
    assert not ledger.history()


@pytest.mark.parametrize("epsilon", [0.1, 1 / 3, 0.7, 1e-300])
def test_epsilons_are_never_rounded_down(epsilon):
    for size in (1, 3, 7, 1000):
        assert Fraction(PrivacyLoss(epsilon).for_persons(size).epsilon) >= size * Fraction(epsilon)
    assert PrivacyLoss(1e308).for_persons(10).epsilon == math.inf


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_the_delta_holds_for_a_group_of_gaussian_noise(size, epsilon):
    """Of a Gaussian release each row moves by one standard deviation; delta is its exact one."""

    def exact(epsilon, moved):
        less, more = (norm.cdf(sign * moved / 2 - epsilon / moved) for sign in (1, -1))
        return less - math.exp(epsilon) * more

    sigma = 0.1
    loss = PrivacyLoss(epsilon, exact(epsilon, sigma)).for_persons(size)
    assert loss.epsilon == pytest.approx(size * epsilon)
    assert exact(loss.epsilon, size * sigma) <= loss.delta * (1 + 1e-9)
    expected = exact(epsilon, sigma) * sum(math.exp(i * epsilon) for i in range(size))
    assert loss.delta == pytest.approx(expected)


def test_deltas_add_up_for_a_release_that_spends_them_all():
    """An event that grows by each row as much as it may: the broken twin takes C times delta."""
    epsilon, delta, size = 1.0, 1e-3, 4
    stated = PrivacyLoss(epsilon, delta).for_persons(size)
    # P(S) of data sets 0, ..., size rows apart, as large as each step allows
    chain = [0.0]
    for _ in range(size):
        chain.append(math.exp(epsilon) * chain[-1] + delta)
    assert chain[-1] <= stated.delta * (1 + 1e-9) and chain[-1] > 1.5 * size * delta


def test_what_has_no_rule_is_refused():
    for loss in (
        PrivacyLoss(1.0, adjacency=PERSON),
        PrivacyLoss(1.0, adjacency="add or remove one record"),
        PrivacyLoss(1.0, 1e-6, kind="ex-post"),
    ):
        with pytest.raises(ValueError, match="add up"):
            loss.for_persons(2)
    assert PrivacyLoss(math.inf).for_persons(2).epsilon == math.inf
    assert PrivacyLoss(100.0, 1e-3).for_persons(50).delta == 1.0
    holdout = PrivacyLoss(1.0, adjacency="replace one holdout record", seeded=True).for_persons(2)
    assert holdout.adjacency == HOLDOUT_PERSON and holdout.seeded
    both = PrivacyLoss.sequential([PrivacyLoss(1.0, adjacency=PERSON), PrivacyLoss(0.5).for_persons(4)])
    assert both.epsilon == 3.0
