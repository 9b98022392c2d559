"""Bad input for evaluations."""

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from dpselect import DPLogisticRegression, evaluate

from .properties import attempt, cases, check_error
from .values import changes, junk, records

ROWS = np.random.default_rng(1).random((40, 2))
LABELS = np.arange(40) % 2
MODELS = (
    DPLogisticRegression(float("inf"), classes=[0, 1]).fit(ROWS, LABELS),
    LogisticRegression().fit(ROWS, LABELS),
)
ODD = (np.float16(0.3), np.float32(0.04), Fraction(1, 3), 1.0, 1e-9, float("inf"))


@cases(
    400, params=changes(model=MODELS, epsilon=ODD, random_state=(0, None), ledger=(None,)),
    data=records(),
)
def test_evaluate(params, data):
    given = {"model": MODELS[0], "epsilon": 1.0, **params}
    found = attempt(lambda: evaluate(given.pop("model"), *data, **given))
    if found.error is not None:
        check_error(found.error, ("model", "epsilon", "ledger", "random_state", "question"))
        return "error"
    evaluation = found.value
    assert evaluation.counts_.shape == (32, 2) and (evaluation.counts_ % 1 == 0).all()
    assert attempt(lambda: (repr(evaluation), evaluation._repr_html_())).error is None
    return "result"


EVALUATION = evaluate(MODELS[1], ROWS, LABELS, epsilon=10.0)


@cases(
    200, name=st.one_of(st.sampled_from(EVALUATION.metrics), junk()),
    threshold=st.one_of(st.floats(0, 1), junk()),
)
def test_questions(name, threshold):
    found = attempt(lambda: EVALUATION.metric(name, threshold))
    if found.error is not None:
        check_error(found.error, ("name", "threshold"))
        return "error"
    assert found.value.empty or found.value.low <= found.value.value <= found.value.high
    return "result"
