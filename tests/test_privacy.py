import dataclasses
import json
import math
import pickle

import pytest

from dpselect import PrivacyLoss


def test_sequential_adds_and_parallel_takes_the_largest():
    a, b = PrivacyLoss(0.3, 1e-6, label="a"), PrivacyLoss(0.7, 2e-6, label="b")
    both = PrivacyLoss.sequential([a, b])
    assert (both.epsilon, both.delta) == (1.0, 3e-6)
    blocks = PrivacyLoss.parallel([a, b])
    assert (blocks.epsilon, blocks.delta) == (0.7, 2e-6)
    assert [r.label for r in PrivacyLoss.sequential([both, blocks]).releases] == ["a", "b"] * 2


def test_composition_keeps_what_weakens_the_statement():
    plain, ex_post = PrivacyLoss(0.1), PrivacyLoss(0.1, kind="ex-post")
    assert PrivacyLoss.sequential([plain, ex_post]).kind == "ex-post"
    assert PrivacyLoss.parallel([plain, plain]).kind == "differential privacy"
    assert PrivacyLoss.sequential([plain, PrivacyLoss(0.1, seeded=True)]).seeded
    assert PrivacyLoss.sequential([plain, PrivacyLoss(math.inf)]).epsilon == math.inf
    assert PrivacyLoss.sequential([PrivacyLoss(1, 0.7), PrivacyLoss(1, 0.7)]).delta == 1.0


def test_a_total_that_does_not_follow_from_its_parts_is_refused():
    parts = (PrivacyLoss(0.5), PrivacyLoss(0.5))
    with pytest.raises(ValueError, match="do not follow"):
        PrivacyLoss(0.5, composition="sequential", parts=parts)
    with pytest.raises(ValueError, match="disagree"):
        PrivacyLoss(1.0, parts=parts)
    with pytest.raises(ValueError, match="unknown"):
        PrivacyLoss(1.0, composition="magic", parts=parts)


def test_a_total_promises_no_more_than_its_parts():
    part = PrivacyLoss(0.5, kind="ex-post", neighbours="replace one pair", seeded=True)
    promise = {"kind": part.kind, "neighbours": part.neighbours, "seeded": True}
    PrivacyLoss(0.5, composition="sequential", parts=(part,), **promise)
    for better in (
        {"kind": "differential privacy"}, {"neighbours": "replace one record"}, {"seeded": False}
    ):
        with pytest.raises(ValueError, match="more than the parts"):
            PrivacyLoss(0.5, composition="sequential", parts=(part,), **{**promise, **better})


def test_a_total_beyond_float64_is_infinite():
    assert PrivacyLoss.sequential([PrivacyLoss(1e308)] * 2).epsilon == float("inf")


@pytest.mark.parametrize("bad", [
    {"epsilon": "1"}, {"epsilon": None}, {"epsilon": [1.0]}, {"delta": 1j}, {"label": None},
    {"neighbours": []}, {"seeded": 1}, {"parts": 5}, {"parts": (0.5,)},
])  # fmt: skip
def test_other_types_are_refused(bad):
    with pytest.raises(TypeError, match=next(iter(bad))):
        PrivacyLoss(**{"epsilon": 1.0, **bad})


def test_is_immutable_and_travels():
    loss = PrivacyLoss.sequential([PrivacyLoss(0.5), PrivacyLoss(0.25, 1e-9)])
    with pytest.raises(dataclasses.FrozenInstanceError):
        loss.epsilon = 0.0
    assert pickle.loads(pickle.dumps(loss)) == loss
    assert json.loads(json.dumps(loss.to_dict()))["epsilon"] == 0.75


@pytest.mark.parametrize("bad", [-1.0, math.nan])
def test_epsilon_must_be_a_loss(bad):
    with pytest.raises(ValueError, match="epsilon"):
        PrivacyLoss(bad)


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_delta_must_be_a_probability(bad):
    with pytest.raises(ValueError, match="delta"):
        PrivacyLoss(1.0, bad)


def test_kind_and_relation_are_checked():
    with pytest.raises(ValueError, match="kind"):
        PrivacyLoss(1.0, kind="almost private")
    with pytest.raises(ValueError, match="neighbouring relations"):
        PrivacyLoss.sequential([PrivacyLoss(1.0), PrivacyLoss(1.0, neighbours="add or remove")])
    with pytest.raises(ValueError, match="nothing to compose"):
        PrivacyLoss.parallel([])


def test_text_says_when_it_is_not_private_and_when_noise_was_seeded():
    assert "not private" in str(PrivacyLoss(math.inf))
    assert "whoever knows the seed" in str(PrivacyLoss(1.0, seeded=True))
