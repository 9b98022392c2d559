"""Functions of whoever asks: whatever they return, one record or person moves a mean by 1/n at most.

They are asked about holdout records, with persons and without. What is not a number, or far outside of
[0, 1], counts for no more than any other answer, and what is no answer at all is refused in silence.
"""

import itertools
import math
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from dpselect import Ladder, SeededNoiseWarning, Thresholdout, ThresholdoutFeatureSelector
from dpselect.metrics import RampScore
from dpselect.metrics.regression_scores import ClippedSquaredErrorScore
from dpselect.metrics.scores import SCORES
from dpselect.noise import root_stream
from dpselect.records.held_records import HeldRecords
from tests.marks import slow_but

INF, NAN, SECRET = float("inf"), float("nan"), 98765.4321
N = 12
VALUES = (0.0, 1.0, NAN, 1e6, -1e6, INF, -INF, 1e300, 1.0 + 1e-9, -5e-324)
# rows of which a function tells that they are the person's
MARK = 1e6
UNITS = {"records": 1, "persons of one row": 1, "persons": 3, "persons of 50 rows": 50}


def holdout_of(unit, marked):
    """Return rows, labels and ids of N records, or persons, of which one may be marked."""
    size = UNITS[unit]
    number = np.repeat(np.arange(N), np.r_[size if marked else 1, np.full(N - 1, min(size, 3))])
    X = np.zeros((len(number), 2))
    X[:, 1] = number
    if marked:
        X[number == 0, 0] = MARK
    y = 0.1 * (number % 4)
    return X, y, None if unit == "records" else 7 * number


def answering(value):
    """Return a function that returns a value for each row that is marked."""
    return lambda X, y: np.where(X[:, 0] == MARK, value, y)


def quietly(function, *args, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return function(*args, **params)


def thresholdout_of(unit, marked, score=None):
    X, y, groups = holdout_of(unit, marked)
    train, labels = np.zeros((8, 2)), np.full(8, 0.9)
    if score is not None:
        y, labels = (y > 0.15).astype(int), np.ones(8, dtype=int)
    given = {} if groups is None else {"groups": np.arange(8), "groups_holdout": groups}
    asked = Thresholdout(0.01, 1e-3, budget=50, random_state=root_stream(3))
    return quietly(asked.fit, train, labels, X_holdout=X, y_holdout=y, **given)


def ladder_of(unit, marked, step=2.0**-20):
    X, y, groups = holdout_of(unit, marked)
    return Ladder(step).fit(X, y, **({} if groups is None else {"groups": groups}))


def check_questions(unit, value):
    """Compare answers on neighbours: a person with marked rows, and another one in their place."""
    answers = []
    for marked in (False, True):
        asked = thresholdout_of(unit, marked)
        answers.append(asked.query(answering(value)))
        assert asked.uses_ == 1
    # (the noise is the same)
    assert abs(answers[1] - answers[0]) <= (1 + 1e-9) / N
    losses = [ladder_of(unit, marked).query(answering(value)) for marked in (False, True)]
    assert abs(losses[1] - losses[0]) <= (1 + 1e-9) / N + 2.0**-20
    assert all(0 <= loss <= 1 for loss in losses)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("unit", UNITS)
def test_no_answer_counts_for_more_than_one(unit, value):
    check_questions(unit, value)


def check_values(unit):
    """Look at what each record, or person, adds to a mean."""
    X, y, groups = holdout_of(unit, True)
    for value, missing in itertools.product(VALUES, (0.0, 1.0)):
        held = HeldRecords(X, y, groups)
        found = held.values(answering(value), missing=missing)
        assert found.shape == (N,) and ((found >= 0) & (found <= 1)).all()
        expected = missing if math.isnan(value) else min(max(value, 0.0), 1.0)
        assert found[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("unit", UNITS)
def test_each_counts_for_a_number_between_0_and_1(unit):
    check_values(unit)


def for_persons(change):
    """Return `values` that are made in another way for persons, and as usual without."""
    usual = HeldRecords.values

    def values(held, function, quietly=True, missing=0.0):
        if held.persons is None:
            return usual(held, function, quietly, missing)
        found = held.evaluate_quietly(lambda X, y: np.asarray(function(X, y), dtype=np.float64))
        number, weight = held.persons.number, held.persons.weight
        return change(found, missing, lambda found: np.bincount(number, found * weight, len(held)))

    return values


def unclipped(found, missing, mean):
    return mean(np.where(np.isnan(found), missing, found))


def with_holes(found, missing, mean):
    return mean(np.clip(found, 0.0, 1.0))


@pytest.mark.parametrize("twin, value", [(unclipped, 1e6), (unclipped, -1e6), (with_holes, NAN)])
def test_answers_of_persons_as_they_are_are_caught(twin, value, monkeypatch):
    monkeypatch.setattr(HeldRecords, "values", for_persons(twin))
    check_questions("records", value)
    with pytest.raises(AssertionError):
        check_values("persons")
    with pytest.raises((AssertionError, ValueError)):
        check_questions("persons", value)


# ---- what is no answer


def fails(X, y):
    raise RuntimeError(f"{SECRET}")


NO_ANSWERS = {
    "texts": lambda X, y: np.full(len(X), f"not {SECRET}"),
    "objects": lambda X, y: np.full(len(X), object()),
    "dates": lambda X, y: [{"a": SECRET}] * len(X),
    "one number": lambda X, y: SECRET,
    "a column": lambda X, y: np.full((len(X), 1), 0.5),
    "too many": lambda X, y: np.full(len(X) + 1, 0.5),
    "too few": lambda X, y: np.full(len(X) - 1, 0.5),
    "nothing": lambda X, y: None,
    "huge integers": lambda X, y: [10**400] * len(X),
    "it fails": fails,
}


@pytest.mark.parametrize("unit", ["records", "persons"])
@pytest.mark.parametrize("what", NO_ANSWERS)
def test_what_is_no_answer_is_refused_in_silence(what, unit):
    # on training records, which are not protected, there is one
    def function(X, y):
        return y if len(X) == 8 else NO_ANSWERS[what](X, y)

    said = []
    for marked in (False, True):
        asked, ladder = thresholdout_of(unit, marked), ladder_of(unit, marked)
        for ask in (asked.query, ladder.query):
            with pytest.raises(ValueError) as caught:
                ask(function)
            error = caught.value
            assert str(SECRET) not in str(error) and error.__context__ is None
            said.append((marked, str(error)))
        assert asked.uses_ == 0 and ladder.n_accepted_ == 0
    if unit == "persons":
        # how many rows there are is not public
        assert len({text for _, text in said}) == 1


# ---- scores of models that predict such numbers


class Hostile(ClassifierMixin, RegressorMixin, BaseEstimator):
    """A model that predicts a value for each row that is marked."""

    def __init__(self, value=0.0, usual=0.8):
        self.value, self.usual = value, usual

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = None  # scores of all types take it
        return tags

    def fit(self, X, y):
        """Learn nothing."""
        self.classes_ = np.array([0, 1])
        return self

    def decision_function(self, X):
        return np.where(np.asarray(X)[:, 0] == MARK, self.value, self.usual)

    def predict(self, X):
        return self.decision_function(X)

    def predict_proba(self, X):
        p = self.decision_function(X)
        return np.column_stack([1 - p, p])


BOUNDED = {
    name: score
    for name, score in {
        **SCORES,
        "a ramp": RampScore(-3, 2),
        "clipped": ClippedSquaredErrorScore(4.0),
    }.items()
    if math.isfinite(score.width)
}


def check_score(name, unit, value):
    score, found = BOUNDED[name], []
    for marked in (False, True):
        asked = thresholdout_of(unit, marked, score)
        found.append(asked.score(Hostile(value).fit(None, None), score))
    noise = 0.02 * score.width
    assert np.isfinite(found).all()
    # an answer is that of the training records, or it has the same noise
    both_held = abs(found[1] - found[0]) <= score.width / N * (1 + 1e-9)
    assert both_held or max(found) - min(found) <= score.width * (1 + 1e-9) + noise


SCORED = [(name, unit) for name in BOUNDED for unit in ("records", "persons", "persons of 50 rows")]


@pytest.mark.parametrize("name, unit", slow_but(SCORED, *range(0, len(SCORED), 8)))
def test_no_prediction_counts_for_more_than_the_width_of_a_score(name, unit):
    for value in VALUES:
        check_score(name, unit, value)


@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("value", [NAN, 1e6, -1e6])
def test_columns_are_not_chosen_by_such_predictions(persons, value):
    rng, found = np.random.default_rng(0), []
    y = rng.uniform(0, 1, size=200)
    groups = {"groups": np.arange(200) // 2} if persons else {}
    for marked in ([], [0, 1], range(100)):
        X = rng.normal(size=(200, 3))
        X[marked] = MARK
        selector = ThresholdoutFeatureSelector(
            Hostile(value),
            n_features_to_select=2,
            scoring=ClippedSquaredErrorScore(1.0),
            threshold=0.0,
            noise_rate=1e-3,
            budget=50,
            random_state=root_stream(4),
        )
        found.append(quietly(selector.fit, X, y, **groups).improvements_)
    # within the range of the score, and the noise of 20 answers
    assert np.isfinite(found).all() and np.abs(found).max() <= 1.05
    # two of 200, or one of 100 persons
    assert np.abs(np.subtract(found[0], found[1])).max() < 0.05
