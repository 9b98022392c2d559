import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier

from dpselect import (
    BudgetExceededError,
    CertificateError,
    PrivacyLoss,
    SeededNoiseWarning,
    Thresholdout,
)
from dpselect.metrics import ClippedSquaredErrorScore, RampScore, Score
from dpselect.noise import root_stream

from ..test_leaks import leaves

SEED = root_stream(0)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=4000)
    X = rng.normal(size=(4000, 5)) + 0.123456789
    X[:, 0] += y
    return {"X": X[:2000], "y": y[:2000], "X_holdout": X[2000:], "y_holdout": y[2000:]}


@pytest.fixture(scope="module")
def parrot(data):
    return DecisionTreeClassifier(random_state=0).fit(data["X"], data["y"])


def held(data, **parameters):
    parameters = {"noise_rate": 1e-6, "threshold": 0.05, "random_state": SEED, **parameters}
    return Thresholdout(**parameters).fit(**data)


def test_query(data):
    holdout = held(data)

    def positive(X, y):
        return X[:, 0] > 0

    assert holdout.query(positive) == positive(data["X"], None).mean()
    assert holdout.uses_ == 0
    # one that knows the training labels
    answer = holdout.query(lambda X, y: y if y is data["y"] else np.zeros(len(y)))
    assert answer == pytest.approx(0.0, abs=1e-4)
    assert holdout.uses_ == 1


def test_score(data, parrot):
    holdout = held(data)
    model = LogisticRegression().fit(data["X"], data["y"])
    assert holdout.score(model) == model.score(data["X"], data["y"])
    expected = parrot.score(data["X_holdout"], data["y_holdout"])
    assert holdout.score(parrot) == pytest.approx(expected, abs=1e-4)
    assert holdout.uses_ == 1


@pytest.mark.parametrize("scoring", ["brier", RampScore(low=-1.0)])
def test_scores_of_margins(data, scoring):
    model = LogisticRegression().fit(data["X"], data["y"])
    assert -1 < held(data).score(model, scoring) < 0


def test_a_score_of_another_width(data):
    """The threshold and the noise are in units of the width."""
    scores = ClippedSquaredErrorScore(bound=1.0), ClippedSquaredErrorScore(bound=64.0)
    small, large = {**data}, {**data, "y": 8 * data["y"], "y_holdout": 8 * data["y_holdout"]}
    answers = []
    for part, score in zip((small, large), scores):
        model = Ridge().fit(part["X"][:30], part["y"][:30])
        holdout = held(part, threshold=0.0, noise_rate=0.05)
        answers.append([holdout.score(model, score) / score.width for _ in range(5)])
    assert answers[0] == pytest.approx(answers[1])


def test_privacy(data):
    holdout = held(data, noise_rate=0.01, budget=7)
    assert holdout.privacy_ == PrivacyLoss(
        2 * 7 / (0.01 * 2000),
        adjacency="replace one holdout record",
        seeded=True,
        label="Thresholdout: at most 7 noisy answers from 2000 holdout records; training records "
        "are not protected",
    )
    assert not held(data, random_state=None).privacy_.seeded
    # a loss in all records is another thing
    with pytest.raises(ValueError, match="do not compose"):
        PrivacyLoss.sequential([holdout.privacy_, PrivacyLoss(1.0)])


def test_spent(data, parrot):
    holdout = held(data, budget=2, noise_rate=0.001)
    unit = 1 / (0.001 * 2000)
    assert (holdout.spent_.epsilon, holdout.spent_.kind) == (0.0, "ex-post")
    holdout.query(lambda X, y: np.ones(len(y)))
    assert holdout.spent_.epsilon == unit / 2
    for _ in range(2):
        holdout.score(parrot)
    assert holdout.spent_.epsilon == holdout.privacy_.epsilon == 4 * unit
    # the statement is about all that is possible, and stays
    assert holdout.privacy_ == held(data, budget=2, noise_rate=0.001).privacy_


def test_budget(data, parrot):
    holdout = held(data, budget=1)
    holdout.score(parrot)
    asked = []
    with pytest.raises(BudgetExceededError, match="budget=1 times"):
        holdout.query(lambda X, y: asked.append(X))
    with pytest.raises(BudgetExceededError):
        holdout.score(parrot)
    assert not asked
    # a new fit is a new loss
    assert holdout.fit(**data).uses_ == 0


def test_a_record_that_is_not_a_number_costs_no_more_than_others(data):
    held_rows = data["X_holdout"].copy()
    held_rows[0] = np.nan
    answers = []
    for rows in (data["X_holdout"], held_rows):
        holdout = held({**data, "X_holdout": rows}, threshold=0.0)
        answers.append(holdout.query(lambda X, y: 0.5 + 0 * X[:, 0]))
    assert abs(answers[0] - answers[1]) <= 1 / 2000 + 1e-4


def test_refused_scores(data, parrot):
    holdout = held(data)
    for scoring in ("hinge", "logistic", "integrated_squared_error"):
        with pytest.raises(CertificateError, match="no finite width"):
            holdout.score(parrot, scoring)
    with pytest.raises(CertificateError, match="RocAucScore has no finite width"):
        holdout.score(parrot, "roc_auc")
    assert holdout.spent_.epsilon == 0.0


class Overflows:
    """Its margins are not finite on records that it was not trained on."""

    classes_ = np.array([0, 1])

    def decision_function(self, X):
        return np.full(len(X), np.nan)


class NoScore(Score):
    width = 1.0

    def __call__(self, estimator, X, y):
        return np.nan


def test_scores_that_are_not_finite(data):
    # a margin that is not a number counts as the worst
    assert held(data).score(Overflows(), "brier") == -1.0
    with pytest.raises(ValueError, match="not finite"):
        held(data).score(Overflows(), NoScore())


@pytest.mark.parametrize(
    "parameters, error, match",
    [
        ({"threshold": -0.1}, ValueError, "threshold=-0.1"),
        ({"threshold": "small"}, TypeError, "threshold must be a number"),
        ({"noise_rate": 0.0}, ValueError, "noise_rate=0.0"),
        ({"noise_rate": float("nan")}, ValueError, "noise_rate=nan"),
        ({"budget": 0}, ValueError, "budget=0"),
        ({"budget": 2.5}, TypeError, "budget must be an integer"),
        ({"random_state": -1}, ValueError, "not a seed"),
    ],
)
def test_refused_parameters(data, parameters, error, match):
    with pytest.raises(error, match=match):
        held(data, **parameters)


def test_seeds(data):
    with pytest.warns(SeededNoiseWarning):
        one = held(data, random_state=1, threshold=0.0)
    with pytest.warns(SeededNoiseWarning):
        other = held(data, random_state=1, threshold=0.0)

    def zeros(X, y):
        return np.zeros(len(X))

    # two fresh ones are never alike
    fresh = [held(data, random_state=None, threshold=0.0, noise_rate=0.1, budget=99) for _ in "ab"]
    assert [one.query(zeros) for _ in range(5)] == [other.query(zeros) for _ in range(5)]
    assert [fresh[0].query(zeros) for _ in range(50)] != [fresh[1].query(zeros) for _ in range(50)]


# --- what it shows


def test_not_fitted():
    holdout = Thresholdout()
    for ask in (lambda: holdout.query(None), lambda: holdout.score(None), lambda: holdout.uses_):
        with pytest.raises(NotFittedError):
            ask()
    assert not hasattr(holdout, "spent_")


def test_neither_pickled_nor_copied(data):
    holdout = held(data)
    for copied in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            copied(holdout)
    # a shallow copy has the same account
    twin = copy.copy(holdout)
    twin.query(lambda X, y: np.zeros(len(X)) if X is data["X"] else np.ones(len(X)))
    assert holdout.uses_ == 1
    unfitted = clone(holdout)
    assert not hasattr(unfitted, "privacy_") and unfitted.get_params() == holdout.get_params()
    assert pickle.loads(pickle.dumps(unfitted)).get_params().keys() == holdout.get_params().keys()


def test_nothing_public_depends_on_the_holdout_records(data):
    one = held(data)
    other = held({**data, "X_holdout": -data["X_holdout"], "y_holdout": 1 - data["y_holdout"]})
    public = [name for name in dir(one) if name.endswith("_") and not name.startswith("_")]
    assert set(public) == {"privacy_", "spent_", "uses_"}
    for name in public:
        assert dict(leaves(getattr(one, name))) == dict(leaves(getattr(other, name)))
    assert repr(one) == repr(other)
    assert "123456789" not in str(vars(one))
