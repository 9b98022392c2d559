"""Bad input for statements of privacy, and for scores."""

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from dpselect import DPHistogramDensity, DPLogisticRegression, DPRidge, PrivacyLoss, metrics
from dpselect.metrics.scores import SCORES

from .properties import attempt, cases, check_error
from .values import GOOD_LABELS, NUMBERS, changes, junk, records

NAMES = (
    "epsilon",
    "delta",
    "kind",
    "adjacency",
    "label",
    "seeded",
    "composition",
    "parts",
    "losses",
)
LOSSES = [
    PrivacyLoss(0.5),
    PrivacyLoss(1e308),
    PrivacyLoss(float("inf")),
    PrivacyLoss(0.0, 0.6),
    PrivacyLoss(0.1, kind="ex-post", seeded=True),
    PrivacyLoss(0.1, adjacency="add or remove one record"),
    PrivacyLoss(np.float16(0.3)),
]


def check_loss(loss):
    assert loss.epsilon >= 0 and 0 <= loss.delta <= 1
    assert type(loss.epsilon) is float and type(loss.delta) is float
    assert loss.epsilon >= max((part.epsilon for part in loss.parts), default=0.0)
    assert loss.seeded or not any(part.seeded for part in loss.parts)
    assert loss.kind == "ex-post" or not any(part.kind == "ex-post" for part in loss.parts)
    assert isinstance(str(loss), str) and len(loss.to_dict()) == 9


@cases(
    500,
    params=changes(
        epsilon=(0.0, 0.5, 1, np.float16(0.3), Fraction(1, 3), float("inf"), 1.0),
        delta=(0.0, 0.5, 1),
        kind=("ex-post", "differential privacy"),
        adjacency=("add or remove one record",),
        label=("a",),
        seeded=(True, False),
        composition=("sequential", "parallel", "release"),
        parts=(
            (LOSSES[0], LOSSES[0]),
            (LOSSES[0],),
            (LOSSES[4],),
            (LOSSES[5],),
            [LOSSES[0]],
            (0.5,),
        ),
    ),
)
def test_loss(params):
    found = attempt(lambda: PrivacyLoss(**{"epsilon": 0.5, **params}))
    if found.error is None:
        check_loss(found.value)
        return "result"
    check_error(found.error, NAMES)
    return "error"


@cases(
    300,
    how=st.sampled_from([PrivacyLoss.sequential, PrivacyLoss.parallel]),
    losses=st.one_of(
        st.lists(st.sampled_from(LOSSES[:5]), max_size=4),
        st.lists(st.one_of(st.sampled_from(LOSSES), st.sampled_from(LOSSES), junk()), max_size=4),
        junk(),
    ),
    more=st.one_of(st.just({}), st.just({}), st.builds(lambda label: {"label": label}, junk())),
)
def test_composition(how, losses, more):
    found = attempt(lambda: how(losses, **more))
    if found.error is None:
        check_loss(found.value)
        total = sum if how == PrivacyLoss.sequential else max
        np.testing.assert_allclose(found.value.epsilon, total(loss.epsilon for loss in losses))
        return "result"
    check_error(found.error, NAMES)
    return "error"


@cases(
    250,
    make=st.one_of(
        st.builds(
            lambda params: (metrics.RampScore, params),
            changes(low=(-1.0, 0, np.float16(0.3), Fraction(1, 3)), high=(2.0, np.float32(1.5), 10)),
        ),
        st.builds(
            lambda params: (metrics.ClippedSquaredErrorScore, params),
            changes(bound=(2.0, np.float16(0.3), np.int8(100), Fraction(1, 3), 1e-300, 1e300)),
        ),
        st.builds(
            lambda scoring: (metrics.get_score, {"scoring": scoring}),
            st.one_of(junk(), st.sampled_from([*SCORES, metrics.BrierScore()])),
        ),
    ),
)
def test_making_scores(make):
    kind, params = make
    found = attempt(lambda: kind(**params))
    if found.error is not None:
        check_error(found.error, ("low", "high", "bound", "scoring"))
        return "error"
    score = found.value
    assert score.stake >= 0 and score.width > 0
    if hasattr(score, "lipschitz"):
        assert np.isfinite(score.lipschitz) and score.lipschitz > 0
    if isinstance(score, metrics.MarginScore):
        assert np.isfinite(score.penalty(np.array([-1e300, -1.0, 0.0, 1.0, 1e300]))).all()
    return "result"


ROWS = np.random.default_rng(1).random((20, 2))
LABELS = np.arange(20) % 2
CLASSIFIER = DPLogisticRegression(classes=[0, 1]).fit(ROWS, LABELS)
SCORED = [
    *(
        (score, CLASSIFIER)
        for name, score in SCORES.items()
        if name not in ("clipped_squared_error", "integrated_squared_error")
    ),
    (metrics.BrierScore(), DPLogisticRegression(classes=[0, 1, 2]).fit(ROWS, LABELS)),
    (metrics.ClippedSquaredErrorScore(), DPRidge(target_range=(-1, 1)).fit(ROWS, LABELS)),
    (metrics.IntegratedSquaredErrorScore(), DPHistogramDensity(bin_width=0.5, bounds=(0, 1)).fit(ROWS)),
]


@cases(350, scored=st.sampled_from(SCORED), data=records({**GOOD_LABELS, **NUMBERS}))
def test_scores(scored, data):
    score, model = scored
    found = attempt(lambda: score(model, *data))
    if found.error is None:
        assert type(found.value) is float
        # as in scikit-learn, where one class has no record
        assert np.isfinite(found.value) or isinstance(score, metrics.RocAucScore)
        return "result"
    check_error(found.error, ("records", "predictions"))
    return "error"
