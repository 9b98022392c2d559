import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from dpselect import (
    BudgetExceededError,
    CertificateError,
    PrivacyLedger,
    SeededNoiseWarning,
    ThresholdoutFeatureSelector,
)
from dpselect.holdout.feature_selector import forward_selection
from dpselect.metrics import ClippedSquaredErrorScore
from dpselect.noise import root_stream
from dpselect.utils.parameters import KEPT

from ..test_leaks import holds, leaves

RELEASED = {"support_", "n_features_", "order_", "improvements_", "uses_"}
SEED = root_stream(0)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=2000)
    X = rng.normal(size=(2000, 8))
    X[:, 2] += 2 * y
    X[:, 5] += y
    return X, y


def selector(estimator=None, **parameters):
    parameters = {
        "n_features_to_select": 2,
        "threshold": 0.2,
        "noise_rate": 0.001,
        "random_state": SEED,
        **parameters,
    }
    return ThresholdoutFeatureSelector(estimator or LogisticRegression(), **parameters)


def test_finds_what_carries_signal(data):
    found = selector().fit(*data)
    assert found.order_.tolist() == [2, 5] and found.n_features_ == 2
    assert found.get_support(indices=True).tolist() == [2, 5]
    assert found.improvements_[0] > 0.8 and 0 < found.improvements_[1] < 0.1
    np.testing.assert_array_equal(found.transform(data[0]), data[0][:, [2, 5]])


def test_privacy(data):
    loss = selector(budget=3, noise_rate=0.01, cv=KFold(2)).fit(*data).privacy_
    assert loss.epsilon == pytest.approx(2 * 3 / (0.01 * 1000))
    assert loss.adjacency == "replace one holdout record" and loss.seeded
    assert "1000 holdout records; training records are not protected" in loss.label
    assert loss.delta == 0.0 and loss.kind == "differential privacy"


def test_a_column_that_overfits_is_found_out():
    """A tree learns an identifier by heart; the holdout records tell."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=1000)
    X = np.column_stack([rng.random(1000), y ^ (rng.random(1000) < 0.2)])
    tree = DecisionTreeClassifier(random_state=0)
    parameters = {"n_features_to_select": 1, "cv": KFold(2), "noise_rate": 1e-3}
    found = selector(tree, threshold=0.1, **parameters).fit(X, y)
    assert found.order_.tolist() == [1] and found.uses_ == 1
    assert selector(tree, threshold=0.9, **parameters).fit(X, y).order_.tolist() == [0]


# --- the steps, on paper


def paper(table, answer=None, n_steps=1, width=1.0, permutation=np.asarray):
    """Run the steps on a table of scores by column; a set of columns has the sum of theirs."""
    asked = []

    def scores(candidates):
        return [tuple(np.sum([table[c] for c in columns], axis=0)) for columns in candidates]

    def told(train, held, width):
        asked.append((round(train, 9), round(held, 9), width))
        return held if answer is None else answer(train, held, width)

    return (*forward_selection(scores, told, len(table), n_steps, width, permutation), asked)


def test_asks_for_improvements_of_twice_the_width():
    table = [(0.5, 0.4), (0.6, 0.7), (0.1, -0.1)]
    chosen, improvements, asked = paper(table, n_steps=2, width=3.0)
    assert chosen == [1, 0] and improvements == pytest.approx([0.7, 0.4])
    assert asked[:3] == [(0.5, 0.4, 3.0), (0.6, 0.7, 3.0), (0.1, -0.1, 3.0)]
    assert asked[3:] == [(0.5, 0.4, 6.0), (0.1, -0.1, 6.0)]


def test_improvements_are_not_clipped():
    """None improves, and the least bad is last in the list."""
    table = [(0.9, 0.9), (-0.3, -0.3), (-0.2, -0.2), (-0.1, -0.1)]
    assert paper(table, n_steps=2)[0] == [0, 3]
    assert paper(table, lambda t, h, w: max(0.0, h), n_steps=2)[0] == [0, 1]


def test_equal_answers_are_decided_by_the_shuffled_order():
    rng = np.random.default_rng(0)
    first = [paper([(0.5, 0.5)] * 8, permutation=rng.permutation)[0][0] for _ in range(400)]
    counts = np.bincount(first, minlength=8)
    # each has 50 on average, with standard deviation 6.6
    assert counts.min() > 10 and counts.max() < 95


@pytest.mark.slow
def test_the_selector_shuffles(data):
    X = np.zeros((50, 10))
    y = np.arange(50) % 2
    first = {
        int(
            selector(
                n_features_to_select=1,
                random_state=SEED.child(i),
                threshold=1.0,
                noise_rate=1e-5,
                cv=KFold(2),
            )
            .fit(X, y)
            .order_[0]
        )
        for i in range(20)
    }
    assert len(first) > 4


def test_a_step_that_is_cut_short_is_dropped():
    left = iter([True] * 4)

    def answer(train, held, width):
        if next(left, None) is None:
            raise BudgetExceededError
        return held

    assert paper([(0.0, 0.1), (0.0, 0.2), (0.0, 0.3)], answer, n_steps=3)[0] == [2]


# --- the budget


def test_a_spent_budget_stops_with_what_was_chosen(data):
    X, y = data
    found = selector(
        n_features_to_select=8, threshold=0.0, noise_rate=0.0008, budget=15, random_state=None
    )
    with pytest.warns(UserWarning, match="budget=15 was spent after [1-7] of 8 columns") as caught:
        found.fit(X, y)
    n = found.n_features_
    assert n == len(found.order_) == found.support_.sum()
    assert len(caught) == 1 and f"after {n} of 8" in str(caught[0].message)
    assert found.uses_ == 15
    assert found.transform(X).shape == (2000, n)


def test_a_budget_that_is_spent_at_once(data):
    chooser = selector(threshold=0.0, budget=1, noise_rate=1e-6)
    with pytest.raises(BudgetExceededError, match="first column .* epsilon=5000 is spent"):
        chooser.fit(*data)
    assert not hasattr(chooser, "privacy_") and not hasattr(chooser, "support_")


class InterruptedAt(LogisticRegression):
    def __init__(self, n_columns=0):
        super().__init__()
        self.n_columns = n_columns

    def fit(self, X, y):
        if X.shape[1] == self.n_columns:
            raise KeyboardInterrupt
        return super().fit(X, y)


@pytest.mark.parametrize("step", [2, 3])
def test_an_interrupt_after_an_answer_counts_in_full(data, step, tmp_path):
    ledger = PrivacyLedger(tmp_path / "held", 1e6, adjacency="replace one holdout record")
    chooser = selector(InterruptedAt(step), n_features_to_select=3, ledger=ledger)
    with pytest.raises(KeyboardInterrupt):
        chooser.fit(*data)
    expected = selector(n_features_to_select=3).fit(*data).privacy_
    assert ledger.spent() == (expected.epsilon, 0.0) and expected.epsilon > 0


# --- as scikit-learn's selectors


def test_names_and_output(data):
    X = pd.DataFrame(data[0], columns=[f"c{j}" for j in range(8)])
    found = selector().set_output(transform="pandas").fit(X, data[1])
    assert found.feature_names_in_.tolist() == X.columns.tolist()
    assert found.get_feature_names_out().tolist() == ["c2", "c5"]
    pd.testing.assert_frame_equal(found.transform(X), X[["c2", "c5"]])


@pytest.mark.slow
def test_pipelines(data):
    X, y = data
    model = make_pipeline(StandardScaler(), selector(), LogisticRegression()).fit(X, y)
    assert model[1].get_support(indices=True).tolist() == [2, 5] and model.score(X, y) > 0.8
    inner = make_pipeline(StandardScaler(), RandomForestClassifier(20, random_state=0))
    assert selector(inner, n_features_to_select=1, threshold=0.9).fit(X, y).order_.tolist() == [2]


@pytest.mark.slow
def test_sparse_rows_and_text_labels(data):
    X, y = data
    expected = selector(cv=KFold(2)).fit(X, y)
    labels = np.where(y == 1, "ill", "well")
    for rows, targets in ((sparse.csr_array(X), y), (X, labels), (X.tolist(), y.tolist())):
        found = selector(cv=KFold(2)).fit(rows, targets)
        assert found.order_.tolist() == expected.order_.tolist()


def test_regression(data):
    X, y = data
    found = selector(LinearRegression(), scoring=ClippedSquaredErrorScore(2.0), threshold=0.3).fit(
        X, X[:, 6] + X[:, 1] / 2
    )
    assert found.order_.tolist() == [6, 1]
    with pytest.raises(CertificateError, match="no finite width"):
        selector(scoring="logistic").fit(X, y)


@pytest.mark.slow
def test_more_processes_change_nothing(data):
    one, two = (selector(n_jobs=n_jobs).fit(*data) for n_jobs in (None, 2))
    assert one.order_.tolist() == two.order_.tolist()
    assert one.improvements_.tolist() == two.improvements_.tolist()


@pytest.mark.slow
def test_seeds(data):
    with pytest.warns(SeededNoiseWarning):
        found = [
            selector(random_state=7, noise_rate=0.01, threshold=0.0, budget=50).fit(*data)
            for _ in range(2)
        ]
    assert found[0].improvements_.tolist() == found[1].improvements_.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not selector(random_state=None).fit(*data).privacy_.seeded


@pytest.mark.parametrize(
    "parameters, error, match",
    [
        ({"n_features_to_select": 0}, ValueError, "n_features_to_select=0"),
        ({"n_features_to_select": 9}, ValueError, "X has 8 columns"),
        ({"n_features_to_select": 0.5}, TypeError, "must be an integer"),
        ({"threshold": 2.0}, ValueError, "threshold=2.0"),
        ({"noise_rate": -1.0}, ValueError, "noise_rate=-1.0"),
        ({"budget": math.inf}, TypeError, "budget must be an integer"),
        ({"cv": StratifiedKFold(3)}, ValueError, "looks at the labels"),
        ({"cv": [([0, 1], [2, 3])]}, ValueError, "public_splits"),
        ({"cv": [([0, 1], [1, 2])], "public_splits": True}, ValueError, "disjoint"),
        ({"scoring": "roc_auc"}, CertificateError, "RocAucScore has no finite width"),
    ],
)
def test_refused(data, parameters, error, match):
    with pytest.raises(error, match=match):
        selector(**parameters).fit(*data)


# --- what it shows


@pytest.mark.slow
def test_nothing_but_what_was_released_depends_on_a_holdout_record(data):
    X, y = data
    other, labels = X.copy(), y.copy()
    # the first fold of KFold is held out
    other[7], labels[7] = 123.456789, 0
    fits = [
        selector(n_features_to_select=6, cv=KFold(2), threshold=0.0, noise_rate=0.001, budget=99).fit(
            *part
        )
        for part in ((X, y), (other, labels))
    ]
    one, two = ({path: leaf for path, leaf in leaves(found)} for found in fits)
    differing = {str(path[0]) for path in one.keys() | two.keys() if one.get(path) != two.get(path)}
    assert differing <= RELEASED and "improvements_" in differing
    assert vars(fits[0]).keys() - set(fits[0].get_params(deep=False)) == RELEASED | {
        "privacy_",
        "n_features_in_",
        KEPT,
    }


def test_no_record_and_no_key_is_kept(data):
    found = selector(random_state=None).fit(*data)
    assert not holds(found, data[0].ravel())
    content = pickle.dumps(found)
    assert b"InnerStream" not in content and len(content) < 3000
    # it forgets the holdout set, so that copies do no harm
    assert pickle.loads(content).order_.tolist() == found.order_.tolist()
    assert not hasattr(clone(found), "order_")


class QuotesHeldRows(LogisticRegression):
    """Says a record's value, in a warning and an error, when it predicts held-out rows."""

    def predict(self, X):
        if len(X) != 1600:
            warnings.warn(f"saw {X[0, 0]}", stacklevel=2)
            raise ValueError(f"cannot predict {X[0, 0]!r}")
        return super().predict(X)


def test_errors_do_not_quote_holdout_records(data):
    with pytest.raises(ValueError, match="could not be answered on the holdout") as caught:
        selector(QuotesHeldRows()).fit(*data)
    assert not any(repr(float(x)) in str(caught.value) for x in data[0].ravel())
    assert caught.value.__context__ is None
