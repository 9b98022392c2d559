"""Holdout sets whose persons have any number of rows: a person moves a mean by no more than a record."""

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from dpselect import (
    BudgetExceededError,
    CertificateError,
    Ladder,
    PrivacyLedger,
    Thresholdout,
    ThresholdoutFeatureSelector,
)
from dpselect.holdout.thresholdout import both_scores
from dpselect.metrics import AccuracyScore
from dpselect.noise import root_stream
from dpselect.records.held_records import HeldRecords

HOLDOUT_PERSON = "replace all rows of one holdout person"
RNG = np.random.default_rng(0)
SIZES = np.minimum(RNG.geometric(0.3, 2000), 40)
IDS = RNG.permutation(np.repeat(np.arange(2000), SIZES))
X = RNG.normal(size=(len(IDS), 3))
Y = (X[:, 0] + RNG.normal(size=len(IDS)) > 0).astype(int)
MODEL = LogisticRegression().fit(X[:100], Y[:100])
TRAIN = IDS < 1000


def holdout(groups=IDS, **given):
    parts = {"X_holdout": X[~TRAIN], "y_holdout": Y[~TRAIN]}
    if groups is not None:
        parts |= {"groups": groups[TRAIN], "groups_holdout": groups[~TRAIN]}
    made = Thresholdout(0.0, 0.01, **({"random_state": root_stream(0)} | given))
    return made.fit(X[TRAIN], Y[TRAIN], **parts)


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_replaced_person_moves_a_mean_by_one_of_them(size):
    """Of any question, and of a score; the broken twin counts rows."""
    worst = dict.fromkeys(("persons", "rows"), 0.0)
    ids, others = np.append(np.arange(20), np.full(size, 20)), np.append(np.arange(20), [20] * 7)
    rows, y = np.zeros((20, 3)), np.zeros(20, dtype=int)
    for value in (0.0, 1.0):
        for name in worst:
            found = []
            for whose, own in ((ids, value), (others, 1 - value)):
                m = len(whose) - 20
                table = np.vstack([rows, np.full((m, 3), 9 * own)])
                labels = np.append(y, np.full(m, int(own)))
                groups = whose if name == "persons" else np.arange(len(whose))
                held = HeldRecords(table, labels, groups)
                found.append(
                    (
                        held.values(lambda X, y: y).mean(),
                        both_scores(AccuracyScore(), Constant(), held, held)[1],
                    )
                )
            worst[name] = max(worst[name], np.abs(np.subtract(*found)).max() * 21)
    assert worst["persons"] == pytest.approx(1, abs=1e-9)
    assert size == 1 or worst["rows"] > 2


class Constant:
    classes_ = np.arange(2)

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


def test_one_row_a_person_is_no_groups_to_the_last_bit():
    plain, persons = holdout(None), holdout(np.arange(len(IDS)))
    for made in (lambda h: h.score(MODEL), lambda h: h.query(lambda X, y: y)):
        assert made(plain) == made(persons)
    assert plain.privacy_.epsilon == persons.privacy_.epsilon
    assert persons.privacy_.adjacency == persons.spent_.adjacency == HOLDOUT_PERSON
    losses = [lambda X, y: y != 0, lambda X, y: MODEL.predict(X) != y]
    for step in (0.01, None):
        ladders = Ladder(step).fit(X, Y), Ladder(step).fit(X, Y, groups=np.arange(len(IDS)))
        assert [one.query(loss) for one in ladders[:1] for loss in losses] == [
            other.query(loss) for other in ladders[1:] for loss in losses
        ]


def test_answers_are_means_over_persons(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=10.0, adjacency=HOLDOUT_PERSON)
    fitted = holdout(ledger=ledger, random_state=None)
    assert fitted.privacy_.epsilon == pytest.approx(2 * 10 / (0.01 * 1000))
    assert "1000 holdout persons" in str(fitted.privacy_)
    assert ledger.spent()[0] == fitted.privacy_.epsilon
    with pytest.raises(ValueError, match="replace one holdout record"):
        holdout(None, ledger=ledger, random_state=None)
    hits = MODEL.predict(X) == Y
    expected = np.mean([hits[IDS == u].mean() for u in range(1000, 2000)])
    assert fitted.score(MODEL) == pytest.approx(expected, abs=0.2)
    held = HeldRecords(X[~TRAIN], Y[~TRAIN], IDS[~TRAIN])
    assert held.values(lambda X, y: MODEL.predict(X) == y).mean() == pytest.approx(expected)
    assert both_scores(AccuracyScore(), MODEL, held, held)[1] == pytest.approx(expected)


def test_a_ladder_climbs_by_persons():
    ids = np.append(np.arange(99), np.full(901, 99))
    y = np.append(np.zeros(99, dtype=int), np.ones(901, dtype=int))
    ladder = Ladder(0.001).fit(np.zeros((1000, 1)), y, groups=ids)
    assert ladder.query(lambda X, y: y) == 0.01 and ladder.privacy_.epsilon == math.inf
    assert Ladder(0.001).fit(np.zeros((1000, 1)), y).query(lambda X, y: y) == 0.901


def test_columns_are_chosen_by_persons():
    given = dict(n_features_to_select=1, threshold=0.1, noise_rate=0.01, random_state=root_stream(1))
    fitted = ThresholdoutFeatureSelector(LogisticRegression(), **given).fit(X, Y, groups=IDS)
    assert fitted.get_support(indices=True).tolist() == [0]
    assert fitted.privacy_.epsilon == pytest.approx(2 * 10 / (0.01 * 400))
    assert fitted.privacy_.adjacency == HOLDOUT_PERSON
    alone = ThresholdoutFeatureSelector(LogisticRegression(), **given)
    plain = clone_of(alone).fit(X, Y)
    same = clone_of(alone).fit(X, Y, groups=np.arange(len(IDS)))
    assert np.array_equal(plain.improvements_, same.improvements_)


def clone_of(selector):
    return ThresholdoutFeatureSelector(**selector.get_params(deep=False))


class OwnScore(AccuracyScore):
    def __call__(self, estimator, X, y):
        return 0.0


def test_what_is_refused():
    with pytest.raises(ValueError, match="groups was given without groups_holdout"):
        Thresholdout().fit(X, Y, X_holdout=X, y_holdout=Y, groups=IDS)
    with pytest.raises(ValueError, match="groups_holdout was given without groups"):
        Thresholdout().fit(X, Y, X_holdout=X, y_holdout=Y, groups_holdout=IDS)
    with pytest.raises(CertificateError, match="sample_weight"):
        holdout().score(MODEL, OwnScore())
    with pytest.raises(CertificateError, match="sample_weight"):
        ThresholdoutFeatureSelector(
            LogisticRegression(), n_features_to_select=1, scoring=OwnScore()
        ).fit("no records", None, groups=[1])
    # a function that is wrong tells no number of rows
    with pytest.raises(ValueError) as caught:
        holdout().query(lambda X, y: y[:7] if len(y) == (~TRAIN).sum() else y)
    assert str((~TRAIN).sum()) not in str(caught.value)
    spent = holdout(budget=1)
    spent.query(lambda X, y: 1.0 * TRAIN[: len(y)] if len(y) == TRAIN.sum() else 0.0 * y)
    with pytest.raises(BudgetExceededError):
        for _ in range(100):
            spent.query(lambda X, y: np.full(len(y), float(len(y) == TRAIN.sum())))
