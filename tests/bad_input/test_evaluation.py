"""Bad input for evaluations."""

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, LogisticRegression

from dpselect import DPLogisticRegression, DPRidge, calibrated, coef_interval, evaluate

from .properties import attempt, cases, check_error
from .values import changes, junk, records

ROWS = np.random.default_rng(1).random((40, 2))
LABELS = np.arange(40) % 2
MODELS = (
    DPLogisticRegression(float("inf"), classes=[0, 1]).fit(ROWS, LABELS),
    LogisticRegression().fit(ROWS, LABELS),
    LogisticRegression().fit(ROWS, np.arange(40) % 3),
    LinearRegression().fit(ROWS, ROWS[:, 0]),
)
ODD = (np.float16(0.3), np.float32(0.04), Fraction(1, 3), 1.0, 1e-9, float("inf"))


@cases(
    300,
    params=changes(
        model=MODELS,
        epsilon=ODD,
        random_state=(0, None),
        ledger=(None,),
        by=(LABELS, None, ROWS[:, 0]),
        levels=([0, 1], None, ["a", "b"]),
        target_range=((0, 1), None, (-1e99, 1e99)),
        groups=(np.arange(40) // 2, None, ROWS[:, 0]),
        confidence=(False, True),
    ),
    data=records(),
)
def test_evaluate(params, data):
    given = {"model": MODELS[0], "epsilon": 1.0, **params}
    found = attempt(lambda: evaluate(given.pop("model"), *data, **given))
    if found.error is not None:
        check_error(
            found.error,
            (
                "model",
                "epsilon",
                "ledger",
                "random_state",
                "question",
                "by",
                "levels",
                "target_range",
                "groups",
                "confidence",
            ),
        )
        return "error"
    evaluation = found.value
    persons = given.get("groups") is not None
    assert evaluation.counts_.size >= 48 and (persons or (evaluation.counts_ % 1 == 0).all())
    assert attempt(lambda: (repr(evaluation), evaluation._repr_html_())).error is None
    return "result"


EVALUATION = evaluate(MODELS[1], ROWS, LABELS, epsilon=10.0)


@cases(
    100,
    name=st.one_of(st.sampled_from(EVALUATION.metrics), junk()),
    threshold=st.one_of(st.floats(0, 1), junk()),
)
def test_questions(name, threshold):
    found = attempt(lambda: EVALUATION.metric(name, threshold))
    if found.error is not None:
        check_error(found.error, ("name", "threshold"))
        return "error"
    assert found.value.empty or found.value.low <= found.value.value <= found.value.high
    return "result"


SURE = evaluate(MODELS[2], ROWS, np.arange(40) % 3, epsilon=10.0, confidence=True)
GROUPED = evaluate(MODELS[2], ROWS, np.arange(40) % 3, epsilon=10.0, by=LABELS, levels=[0, 1])


@cases(
    100,
    name=st.one_of(st.sampled_from(GROUPED.class_metrics), junk()),
    label=st.one_of(st.integers(0, 2), junk()),
    level=st.one_of(st.integers(0, 1), junk()),
)
def test_questions_of_classes_and_groups(name, label, level):
    found = attempt(lambda: GROUPED.group(level).class_metric(name, label))
    if found.error is not None:
        check_error(found.error, ("name", "label", "level"))
        return "error"
    assert found.value.empty or found.value.low <= found.value.value <= found.value.high
    return "result"


@cases(
    150,
    params=changes(
        model=MODELS,
        evaluation=(EVALUATION, GROUPED, SURE),
        method=("sigmoid", "isotonic", None),
        recall=(0.5, None, np.float16(0.3), Fraction(1, 3)),
        precision=(0.4, None),
        rate=(0.2, None),
    ),
)
def test_calibrated(params):
    given = {"model": MODELS[1], "evaluation": EVALUATION, **params}
    found = attempt(lambda: calibrated(given.pop("model"), given.pop("evaluation"), **given))
    if found.error is not None:
        check_error(found.error, ("model", "evaluation", "method", "recall", "precision", "rate"))
        return "error"
    assert attempt(lambda: (repr(found.value), found.value.predict_proba(ROWS))).error is None
    return "result"


FITTED = (
    MODELS[0],
    DPLogisticRegression(5.0, classes=[0, 1]).fit(ROWS, LABELS),
    DPRidge(5.0, target_range=(-1, 1)).fit(ROWS, ROWS[:, 0]),
    *MODELS[1:],
    DPLogisticRegression(5.0, classes=[0, 1, 2]).fit(ROWS, np.arange(40) % 3, groups=np.arange(40)),
    DPLogisticRegression(5.0, classes=[0, 1], max_sample_weight=2.0).fit(ROWS, LABELS),
)


@cases(
    150,
    params=changes(
        model=FITTED,
        epsilon=ODD,
        n_samples=(40, np.int8(40), 1, 10**9),
        random_state=(0, None),
        ledger=(None,),
        groups=(np.arange(40), None, ROWS[:, 0]),
        sample_weight=(np.full(40, 3.0), None, ROWS[:, 0] - 1),
    ),
    level=st.one_of(st.floats(0, 1), junk()),
    data=records(),
)
def test_coef_interval(params, level, data):
    given = {"model": FITTED[1], "epsilon": 50.0, "n_samples": 40, **params}
    found = attempt(lambda: coef_interval(given.pop("model"), *data, **given))
    if found.error is not None:
        check_error(
            found.error,
            (
                "model",
                "epsilon",
                "n_samples",
                "ledger",
                "random_state",
                "question",
                "groups",
                "sample_weight",
            ),
        )
        return "error"
    asked = attempt(lambda: found.value.confidence_interval(level))
    if asked.error is not None:
        check_error(asked.error, ("confidence_level",))
        return "error"
    low, high = asked.value
    assert found.value.empty or (low <= high).all()
    assert attempt(lambda: (repr(found.value), found.value.to_frame())).error is None
    return "result"
