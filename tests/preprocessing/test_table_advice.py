"""What a plan says about the columns of a table: by what encoders then do."""

import re

import numpy as np
import pytest

from dpselect import DPLogisticRegression, StabilityGridSearchCV
from dpselect.preprocessing import TableEncoder, table_advice, tabular_pipeline

MODEL = DPLogisticRegression(classes=[0, 1], base_rate=0.5)
ORDERED = {"a": (0, 1), "b": ["no", "yes"], "c": list("pqrst"), "d": (0, 1), "e": [*map(str, range(80))]}
WIDE = {"e": [*map(str, range(9))]} | {f"x{j}": (0, 1) for j in range(60)}
EXAMPLES = {
    len(ORDERED): np.array([[0.5, "no", "p", 0.5, "0"]], dtype=object),
    len(WIDE): np.array([["0", *[0.5] * 60]], dtype=object),
    2: np.array([[0.5, "p"]], dtype=object),
}


def planned(n, epsilon=1.0, schema=ORDERED, delta=0.0, grid=None, **options):
    pipeline = tabular_pipeline(schema, MODEL.set_params(delta=delta), **options)
    search = StabilityGridSearchCV(pipeline, grid or {}, epsilon=epsilon)
    return search.plan(n, len(schema), example=EXAMPLES[len(schema)]).advice


def about(word, messages):
    return [message for message in messages if word in message]


def signal(n_epsilon, n_mu=None, schema=ORDERED, **options):
    """Return n epsilon over the length of the shortest noise, in units of the length of a row."""
    encoder = TableEncoder(schema, n_epsilon=n_epsilon, n_mu=n_mu, **options).fit(EXAMPLES[len(schema)])
    R, G, d = encoder.typical_norm(), encoder.typical_norm("l1"), encoder.terms_[-1].outputs.stop
    return max(n_epsilon / min(d, (2 * d) ** 0.5 * G / R), (n_mu or 0.0) / d**0.5)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_first_columns_are_those_that_fits_read(delta):
    def said(n, epsilon):
        (message,) = about("'first'", planned(n, epsilon, delta=delta, columns="first"))
        counts = re.findall(r"(\d+) (?:of|at)", message)
        return message, [*map(int, counts)]

    found = set()
    for n in (50, 300, 1000, 3000, 9000):
        message, (now, *others) = said(n, 0.3)
        assert f"to {[*ORDERED][now - 1]!r};" in message
        assert others == [said(n, 0.3 * times)[1][0] for times in (1 / 3, 3, 10)]
        found |= {now, *others}
    assert found >= {2, 4, 5}
    assert about("'first'", planned(1000)) == []


@pytest.mark.parametrize("schema", [ORDERED, WIDE], ids=["long", "wide"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_long_lists_are_named_where_the_signal_is_weak(delta, schema):
    weak = set()
    for n in np.geomspace(300, 15_000, 10).astype(int):
        pipeline = tabular_pipeline(schema, MODEL.set_params(delta=delta)).bound(n, 1.0)
        known = signal(pipeline[0].n_epsilon, pipeline[0].n_mu, schema)
        lines = about("long lists", planned(n, delta=delta, schema=schema))
        assert bool(lines) == (known < 100)
        for line in lines:
            # (of a simplex one less)
            assert re.search("'e' has (79|80|8|9); ", line)
            assert f"; n epsilon over the length of the noise is {known:.2g}," in line
        weak.add(bool(lines))
    assert weak == {True, False}
    # of eight categories nothing is said
    short = {"a": (0, 1), "c": list("pqrstuvw")}
    assert about("long lists", planned(100, schema=short)) == []


def test_named_pairs_are_questioned_where_the_signal_is_weak():
    pairs = [("a", "b"), ("c", "d")]
    weak = set()
    for n in (300, 600, 1200, 2400, 4800):
        lines = about("pairs", planned(n, pairs=pairs))
        assert bool(lines) == (signal(float(n), pairs=pairs) < 60)
        weak.add(bool(lines))
    assert weak == {True, False}
    assert about("pairs", planned(300, pairs="auto")) == about("pairs", planned(300)) == []
    # one line for a grid of which one candidate has them
    assert len(about("pairs", planned(300, grid={"encoder__pairs": [(), pairs]}))) == 1


def test_a_twin_that_counts_pure_noise_alone_is_seen(monkeypatch):
    monkeypatch.setattr(
        table_advice.TypicalNoise,
        "of",
        lambda encoder: table_advice.TypicalNoise(encoder.n_epsilon, 0.0),
    )
    with pytest.raises(AssertionError):
        test_long_lists_are_named_where_the_signal_is_weak(1e-6, WIDE)
