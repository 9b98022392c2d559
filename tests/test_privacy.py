import dataclasses
import json
import math
import pickle
import random

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


@pytest.mark.parametrize("compose", [PrivacyLoss.sequential, PrivacyLoss.parallel])
@pytest.mark.parametrize("name", ["epsilon", "delta"])
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_total_that_does_not_follow_from_its_parts_is_refused(compose, name, factor):
    loss = compose([PrivacyLoss(0.5, 1e-6), PrivacyLoss(0.25, 2e-6)])
    with pytest.raises(ValueError, match="do not follow"):
        dataclasses.replace(loss, **{name: factor * getattr(loss, name)})


def test_a_total_without_its_composition_is_refused():
    parts = (PrivacyLoss(0.5), PrivacyLoss(0.5))
    with pytest.raises(ValueError, match="disagree"):
        PrivacyLoss(1.0, parts=parts)
    with pytest.raises(ValueError, match="unknown"):
        PrivacyLoss(1.0, composition="magic", parts=parts)


def test_a_total_promises_no_more_than_its_parts():
    part = PrivacyLoss(0.5, kind="ex-post", adjacency="replace one holdout record", seeded=True)
    promise = {"kind": part.kind, "adjacency": part.adjacency, "seeded": True}
    PrivacyLoss(0.5, composition="sequential", parts=(part,), **promise)
    for better in (
        {"kind": "differential privacy"},
        {"adjacency": "replace one record"},
        {"seeded": False},
    ):
        with pytest.raises(ValueError, match="more than the parts"):
            PrivacyLoss(0.5, composition="sequential", parts=(part,), **{**promise, **better})


def test_a_total_beyond_float64_is_infinite():
    assert PrivacyLoss.sequential([PrivacyLoss(1e308)] * 2).epsilon == float("inf")


@pytest.mark.parametrize("bad", [
    {"epsilon": "1"}, {"epsilon": None}, {"epsilon": [1.0]}, {"delta": 1j}, {"label": None},
    {"seeded": 1}, {"parts": 5}, {"parts": (0.5,)},
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


def test_kind_and_adjacency_are_checked():
    with pytest.raises(ValueError, match="kind"):
        PrivacyLoss(1.0, kind="almost private")
    with pytest.raises(ValueError, match="different adjacenc"):
        PrivacyLoss.sequential(
            [PrivacyLoss(1.0), PrivacyLoss(1.0, adjacency="add or remove one record")]
        )
    with pytest.raises(ValueError, match="adjacency='one pair'"):
        PrivacyLoss(1.0, adjacency="one pair")
    with pytest.raises(ValueError, match="nothing to compose"):
        PrivacyLoss.parallel([])


def test_text_says_when_it_is_not_private_and_when_noise_was_seeded():
    assert "not private" in str(PrivacyLoss(math.inf))
    assert "whoever knows the seed" in str(PrivacyLoss(1.0, seeded=True))


def test_text_says_how_the_parts_make_the_total():
    a, b = PrivacyLoss(0.5, label="a"), PrivacyLoss(1.0, label="b")
    assert str(PrivacyLoss.sequential([a, b])).splitlines()[1:] == [
        "  sum of",
        "    epsilon 0.5: a",
        "    epsilon 1: b",
    ]
    assert str(PrivacyLoss.parallel([a, b])).splitlines()[1] == "  larger of"
    assert str(PrivacyLoss.parallel([a, b, b])).splitlines()[1] == "  largest of"
    # levels that say nothing are left out; those that do are not
    one, two = PrivacyLoss.sequential([a]), PrivacyLoss.sequential([a, b])
    assert str(one).splitlines()[1:] == ["  epsilon 0.5: a"]
    d = PrivacyLoss(0.25, 1e-6, label="d")
    nested = PrivacyLoss.sequential([two, PrivacyLoss.parallel([b, d])])
    assert str(nested).splitlines() == [
        "(epsilon = 2.5, delta = 1e-06) differential privacy, adjacency: replace one record",
        "  sum of",
        "    epsilon 0.5: a",
        "    epsilon 1: b",
        "    epsilon 1, delta 1e-06: larger of",
        "      epsilon 1: b",
        "      epsilon 0.25, delta 1e-06: d",
    ]
    assert str(PrivacyLoss.sequential([PrivacyLoss.parallel([a, b])])).splitlines()[1] == "  larger of"


def test_a_dict_says_the_same():
    a, b = PrivacyLoss(0.5, label="a"), PrivacyLoss(1.0, 1e-6, label="b", kind="ex-post", seeded=True)

    def back(said):
        return PrivacyLoss(**{**said, "parts": tuple(map(back, said["parts"]))})

    for loss in (a, PrivacyLoss.sequential([a, PrivacyLoss.parallel([a, b], label="c")])):
        assert back(json.loads(json.dumps(loss.to_dict()))) == loss


def test_what_is_printed_adds_up():
    """Every printed total is computed again from the lines below it."""

    def total(lines, indent):
        """Return the total of the lines of a level, and how many of them belong to it."""
        if lines[0].strip() in ("sum of", "larger of", "largest of"):
            amount, how, at = None, lines[0].strip(), 1
        else:
            head, _, how = lines[0].strip().partition(": ")
            amount, at = float(head.removeprefix("epsilon ")), 1
        if not how.endswith(" of"):
            return amount, 1
        parts = []
        while at < len(lines) and len(lines[at]) - len(lines[at].lstrip()) == indent + 2:
            part, used = total(lines[at:], indent + 2)
            parts.append(part)
            at += used
        made = sum(parts) if how == "sum of" else max(parts)
        assert amount in (None, made) and len(parts) > 1
        return made, at

    rng = random.Random(0)

    def some_loss(depth):
        if depth == 0 or rng.random() < 0.3:
            return PrivacyLoss(rng.randrange(1, 9) / 8, label="model")
        parts = [some_loss(depth - 1) for _ in range(rng.randrange(1, 4))]
        return rng.choice([PrivacyLoss.sequential, PrivacyLoss.parallel])(parts)

    for _ in range(200):
        loss = some_loss(3)
        _, *lines = str(loss).splitlines()
        assert total(lines, 2) == (loss.epsilon, len(lines))
        assert loss._repr_html_().count("<tr>") == 1 + len(lines)
