"""Waves of the season, the weekday and the hour of dates, from the days alone."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpselect import DPHuberRegressor, TermsDisplay
from dpselect.__main__ import main
from dpselect.preprocessing import PublicSchema, TableEncoder, tabular_pipeline
from dpselect.preprocessing import dates as dates_module

FIRST, LAST = "2015-06-17", "2019-12-31"  # a Wednesday
LENGTHS = {"year": 365.2425, "week": 7.0, "day": 1.0}
ENTRY = {"date": [FIRST, LAST], "cycles": ["year", "week", "day"]}
TIMES = pd.Series(
    pd.to_datetime(["2015-06-17 00:00", "2016-02-29 18:30", "2017-01-02 06:00", "2019-12-31 23:59"])
)
SINCE_FIRST = ((TIMES - pd.Timestamp(FIRST)) / pd.Timedelta("1D")).to_numpy()


def by_hand(cycle):
    """Return the features of a periodic column that was computed in the table."""
    started = {
        "year": SINCE_FIRST + (pd.Timestamp(FIRST) - pd.Timestamp("2000-01-01")).days,
        "week": SINCE_FIRST + 2,
        "day": SINCE_FIRST,
    }[cycle]
    schema = {"t": {"bounds": (0, LENGTHS[cycle]), "periodic": True}}
    return TableEncoder(schema, expansion=4).fit_transform((started % LENGTHS[cycle])[:, np.newaxis])


def check(table):
    encoder = TableEncoder({"t": ENTRY}, expansion=4)
    rows = encoder.fit_transform(table)
    for term in encoder.terms_[1:]:
        cycle = term.parts[0].name.removeprefix("t_")
        np.testing.assert_allclose(rows[:, term.outputs], by_hand(cycle), atol=1e-11)
        assert all(name.startswith(f"t_{cycle}_") for name in term.names)
    assert len(encoder.terms_) == 4


STORED = {
    "times": pd.DataFrame({"t": TIMES}),
    "times of a zone": pd.DataFrame({"t": TIMES.dt.tz_localize("Asia/Tokyo")}),
    "texts": pd.DataFrame({"t": TIMES.dt.strftime("%Y-%m-%d %H:%M:%S.%f")}),
    "days": pd.DataFrame({"t": SINCE_FIRST}),
    "objects": pd.DataFrame({"t": TIMES.astype(object)}),
    "numpy": TIMES.to_numpy().astype(object)[:, np.newaxis],
    "polars": pl.from_pandas(pd.DataFrame({"t": TIMES})),
    "arrow": pa.Table.from_pandas(pd.DataFrame({"t": TIMES})),
}


@pytest.mark.parametrize("stored", STORED)
def test_cycles_are_those_of_periodic_columns(stored):
    check(STORED[stored])


def test_a_week_that_begins_on_sunday_is_seen(monkeypatch):
    phase = dates_module.phase
    monkeypatch.setattr("dpselect.preprocessing.table_terms.phase", lambda *given: phase(*given) + 1)
    with pytest.raises(AssertionError):
        check(STORED["days"])


def test_without_hours_a_time_is_its_day():
    entry = {**ENTRY, "cycles": ["week"]}
    encoder = TableEncoder({"t": entry})
    rows = [encoder.fit_transform(pd.DataFrame({"t": t})) for t in (TIMES, TIMES.dt.floor("D"))]
    assert (rows[0] == rows[1]).all()
    column = PublicSchema({"t": ENTRY}).columns["t"]
    assert column.high == PublicSchema({"t": entry}).columns["t"].high + 1  # to midnight
    assert column.entry()["date"] == [FIRST, LAST]
    assert PublicSchema({"t": column.entry()}).columns["t"] == column


def test_gaps_fills_and_dates_beyond():
    times = pd.DataFrame({"t": [None, "1900-01-01 10:00", "2015-06-20", "2030-05-05"]})
    gaps = {**ENTRY, "missing_values": ["1900-01-01"]}
    encoder = TableEncoder({"t": gaps}, expansion=4)
    rows = encoder.fit_transform(times)
    assert not rows[:2, 5:].any() and rows[2, 5:].any() and encoder.terms_[1].start == 5
    filled = TableEncoder({"t": {**gaps, "fill": 3}}, expansion=4).fit_transform(times)
    assert (filled[:2, 5:] == filled[2, 5:]).all() and (rows[2:] == filled[2:]).all()
    last = TableEncoder({"t": ENTRY}, expansion=4).fit_transform(pd.DataFrame({"t": ["2020-01-01"]}))
    assert (np.delete(rows[3], 4) == last[0]).all()


def test_a_column_is_read_with_its_cycles_or_not_at_all():
    schema = {"a": (0, 1), "t": ENTRY, "b": (0, 1)}
    for n_epsilon in (1.0, 1e3, 3e3, 1e5):
        encoder = TableEncoder(schema, columns="first", n_epsilon=n_epsilon)
        encoder.fit(np.zeros((1, 3)))
        terms = [term.columns[0] for term in encoder.terms_]
        assert encoder.columns_ == tuple(dict.fromkeys(terms)) and terms.count("t") == 4
    mixed = TableEncoder(schema, pairs=[("a", "t")], n_fourier=5).fit(np.zeros((1, 3)))
    assert mixed.terms_[-2].columns == ("a", "t") and mixed.terms_[-1].columns == ("a", "t", "b")


def fitted(times=TIMES):
    X = pd.concat([pd.DataFrame({"t": times})] * 50, ignore_index=True)
    model = tabular_pipeline({"t": {**ENTRY, "missing": True}}, DPHuberRegressor(target_range=(0, 3)))
    return model.fit(X, np.arange(len(X)) % 4)


def test_export():
    runtime = pytest.importorskip("onnxruntime")
    from dpselect.export import to_onnx

    model = fitted()
    days = pd.DataFrame({"t": [*SINCE_FIRST, np.nan, -9.0]})
    expected = model.predict(days)
    np.testing.assert_allclose(model.to_sklearn().predict(days), expected, atol=1e-9)
    session = runtime.InferenceSession(to_onnx(model).SerializeToString())
    (found,) = session.run(None, {"t": days.to_numpy()})
    np.testing.assert_allclose(found.ravel(), expected, atol=1e-9)


def test_pictures_and_values():
    model = fitted()
    drawn = TermsDisplay.from_estimator(model)
    assert [term.name for term in drawn.terms] == ["t", "t_year", "t_week", "t_day"]
    week = model[0].terms_[2]
    assert week.values(8)[0].tolist() == list(range(8))
    monday = model[0].transform(pd.DataFrame({"t": ["2017-01-02"]}))[0, week.outputs]
    np.testing.assert_allclose(week.at([0.0])[0], monday, atol=1e-11)


def test_the_command_reads_the_hours(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    times = pd.concat([TIMES] * 50, ignore_index=True)
    frame = pd.DataFrame({"t": times.dt.strftime("%d.%m.%Y %H:%M:%S"), "y": np.arange(200) % 4})
    frame.to_csv("d.csv", index=False)
    (tmp_path / "s.json").write_text(json.dumps({"t": ENTRY, "y": [0, 3]}))
    form = ["--date-format", "%d.%m.%Y %H:%M:%S"]
    fit = ["fit", "d.csv", "--schema", "s.json", "--target", "y", "--epsilon", "1"]
    assert main([*fit, "--save", "m.skops", *form]) == 0
    assert main(["predict", "m.skops", "d.csv", "--output", "p.csv", *form]) == 0
    capsys.readouterr()
    found = pd.read_csv("p.csv")["prediction"].to_numpy()
    assert len(np.unique(found)) == 4 and (found[:4] == found[4:8]).all()


@pytest.mark.parametrize("entry, says", [
    ({**ENTRY, "cycles": "week"}, "its 'cycles' is no list"),
    ({**ENTRY, "cycles": ["month"]}, "its 'cycles' is no list"),
    ({**ENTRY, "cycles": ["week", "week"]}, "its 'cycles' is no list"),
    ({**ENTRY, "cycles": [7]}, "its 'cycles' is no list"),
    ({"bounds": (0, 7), "cycles": ["week"]}, "it has 'cycles', which means nothing there"),
    ({"date": [LAST, FIRST], "cycles": ["week"]}, "its first date is not before"),
])  # fmt: skip
def test_entries_that_are_none(entry, says):
    with pytest.raises(ValueError, match=says):
        PublicSchema({"t": entry})
