"""A column of dates is the days since a public one, however it is stored."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpselect import DPLogisticRegression, StabilityGridSearchCV
from dpselect._command_line.messages import CommandError
from dpselect._command_line.table_files import read_table
from dpselect.preprocessing import PublicSchema, TableEncoder, dates, tabular_pipeline

SCHEMA = {"day": {"date": ["2015-01-01", "2015-12-31"], "missing": True}}
DAYS = [0.0, 59.0, np.nan, 364.0]
DATES = [datetime.date(2015, 1, 1), datetime.date(2015, 3, 1), None, datetime.date(2015, 12, 31)]
TIMES = pd.Series(pd.to_datetime(DATES))

STORED = {
    "texts": pd.DataFrame({"day": ["2015-01-01", " 2015-03-01", "NA", "2015-12-31 10:30"]}),
    "compact texts": pd.DataFrame({"day": ["20150101", "20150301", "", "20151231"]}),
    "dates": pd.DataFrame({"day": DATES}),
    "times": pd.DataFrame({"day": TIMES}),
    "times of a zone": pd.DataFrame({"day": TIMES.dt.tz_localize("UTC")}),
    "categories": pd.DataFrame({"day": TIMES.astype("category")}),
    "days": pd.DataFrame({"day": DAYS}),
    "days as texts": pd.DataFrame({"day": ["0", "59", "?", "364"]}),
    "compact numbers": pd.DataFrame({"day": [20150101.0, 20150301.0, np.nan, 20151231.0]}),
    "compact whole numbers": pd.DataFrame({"day": [20150101, 20150301, None, 20151231]}, dtype=object),
    "compact numbers of arrow": pa.table({"day": [20150101, 20150301, None, 20151231]}),
    "polars": pl.DataFrame({"day": DATES}),
    "times of polars": pl.from_pandas(pd.DataFrame({"day": TIMES})),
    "arrow": pa.table({"day": DATES}),
    "times of numpy": np.array(TIMES.to_numpy()[:, np.newaxis], dtype=object),
}


def check(stored):
    X = STORED[stored]
    found = TableEncoder(SCHEMA, expansion="linear").fit_transform(X)
    expected = TableEncoder(SCHEMA, expansion="linear").fit_transform(STORED["days"])
    assert (found == expected).all()


@pytest.mark.parametrize("stored", STORED)
def test_dates(stored):
    check(stored)


@pytest.mark.parametrize(
    "cell", [20151301, "20151301", 1_022_015, 1_121_120, 1_700_000_000, "-20150101", 1e300, -(10**8)]
)
def test_numbers_that_are_no_days_between_dates_are_refused(tmp_path, cell):
    frame = pd.DataFrame({"day": [cell, 4]})
    frame.astype(str).to_csv(tmp_path / "d.csv", index=False)
    with pytest.raises(ValueError, match="no number") as caught:
        TableEncoder(SCHEMA).fit_transform(frame)
    assert str(cell) not in str(caught.value)
    with pytest.raises(CommandError, match="not a date"):
        read_table(str(tmp_path / "d.csv"), dict(PublicSchema(SCHEMA).columns), few=1)


@pytest.mark.parametrize("cell", ["9999-12-31", "0001-01-01", 99991231, datetime.date(9999, 12, 31)])
def test_dates_that_are_far_away_count_as_the_nearer_end(tmp_path, cell):
    frame = pd.DataFrame({"day": [cell, 4]}, dtype=object)
    frame.to_csv(tmp_path / "d.csv", index=False)
    tables = [frame, read_table(str(tmp_path / "d.csv"), dict(PublicSchema(SCHEMA).columns), few=1)]
    for table in tables:
        rows = TableEncoder(SCHEMA, expansion="linear").fit_transform(table)
        assert rows[0, 0] == (-1 if cell == "0001-01-01" else 1)


@pytest.mark.parametrize(
    "code", ["9999-12-31", "1900-01-01", 19000101, "19000101", 99999999, "99999999", -1, "-1"]
)
@pytest.mark.parametrize("form", [None, "%d.%m.%Y"])
def test_dates_that_mean_a_gap(tmp_path, code, form):
    schema = {"day": {"date": ["2015-01-01", "2015-12-31"], "missing_values": [code], "format": form}}
    if form is None:
        del schema["day"]["format"]
    year = next((year for year in (1900, 9999) if str(code).startswith(str(year))), None)
    year = None if "99999999" in str(code) else year
    cell = int(code) if year is None else datetime.date.fromisoformat(str(code))
    text = cell.strftime(form or "%Y-%m-%d") if hasattr(cell, "year") else str(cell)
    other = datetime.date(2015, 3, 1).strftime(form or "%Y-%m-%d")
    frames = [pd.DataFrame({"day": [cell, datetime.date(2015, 3, 1)]}, dtype=object)]
    frames.append(pd.DataFrame({"day": [text, other]}))
    frames[-1].to_csv(tmp_path / "d.csv", index=False)
    frames.append(read_table(str(tmp_path / "d.csv"), dict(PublicSchema(schema).columns), few=1))
    for frame in frames:
        rows = TableEncoder(schema, expansion="linear").fit_transform(frame)
        assert rows[:, 1].tolist() == [1.0, 0.0] and rows[1, 0] == 2 * 59 / 364 - 1


@pytest.mark.parametrize("form", ["%d%m%Y", "%Y", "%y%m%d", "%j"])
def test_formats_that_a_table_may_hold_as_numbers(form):
    with pytest.raises(ValueError, match="'format' has digits alone"):
        PublicSchema({"day": {**SCHEMA["day"], "format": form}})
    PublicSchema({"day": {**SCHEMA["day"], "format": "%Y%m%d"}})


def test_a_day_too_many_is_seen(monkeypatch):
    parsed = dates._parsed
    monkeypatch.setattr(
        dates, "_parsed", lambda text, form, origin, *more: parsed(text, form, origin - 1, *more)
    )
    with pytest.raises(AssertionError):
        check("texts")


@pytest.mark.parametrize("stored", ["texts", "times", "polars", "dates", "compact numbers"])
def test_a_search_reads_dates(stored):
    X = STORED[stored]
    X = pl.concat([X] * 50) if stored == "polars" else pd.concat([X] * 50, ignore_index=True)
    model = tabular_pipeline(SCHEMA, DPLogisticRegression(classes=["no", "yes"]))
    search = StabilityGridSearchCV(model, {}).fit(X, np.array(["no", "yes"] * 100))
    assert search.privacy_.epsilon == 1 and search.predict(X).shape == (200,)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize(
    "form, write", [(None, "%Y-%m-%d"), ("%d.%m.%Y", "%d.%m.%Y"), ("%m/%d/%y",) * 2]
)
def test_files(tmp_path, ending, form, write):
    entry = SCHEMA["day"] | ({} if form is None else {"format": form})
    texts = [None if day is None else day.strftime(write) for day in DATES] * 2
    path = tmp_path / f"d{ending}"
    frame = pd.DataFrame({"day": texts, "id": range(8)})
    frame.to_csv(path, index=False) if ending == ".csv" else frame.to_parquet(path)
    columns = dict(PublicSchema({"day": entry}).columns)
    found = read_table(str(path), columns, drop=["id"])["day"].to_numpy()
    np.testing.assert_array_equal(found, DAYS * 2)


def test_times_in_parquet(tmp_path):
    pd.DataFrame({"day": [*TIMES, *TIMES]}).to_parquet(tmp_path / "d.parquet")
    found = read_table(str(tmp_path / "d.parquet"), dict(PublicSchema(SCHEMA).columns))["day"]
    np.testing.assert_array_equal(found, DAYS * 2)


@pytest.mark.parametrize("form", [None, "%d.%m.%Y", "%Y%m%d", "%m/%d/%y %H:%M"])
def test_a_row_that_is_made_up_has_the_format(form):
    """So a plan needs no example."""
    schema = {"day": SCHEMA["day"] | {"format": form}, "age": (0, 9)}
    (row,) = PublicSchema(schema).invented_row().tolist()
    assert row[0] == datetime.date(2015, 1, 1).strftime(form or "%Y-%m-%d")
    model = tabular_pipeline(schema, DPLogisticRegression(classes=["no", "yes"]))
    assert StabilityGridSearchCV(model, {}).plan(1000, 2).epsilon == 1


def test_entries():
    schema = PublicSchema({"day": SCHEMA["day"] | {"format": "%d.%m.%Y", "fill": 3}})
    assert schema.to_dict()["day"]["date"] == SCHEMA["day"]["date"]
    assert PublicSchema(schema.to_dict()) == schema
    assert schema.columns["day"].unit == "days since 2015-01-01" and schema.columns["day"].high == 364


@pytest.mark.parametrize("entry, says", [
    ({"date": ["2015"]}, "is not the first and the last one"),
    ({"date": "2015-01-01"}, "is not the first and the last one"),
    ({"date": ["2015-01-01", "2015-02-30"]}, "is not the first and the last one"),
    ({"date": [0, 1]}, "is not the first and the last one"),
    ({"date": ["2015-01-01", "2015-01-01"]}, "is not before its last one"),
    ({"date": ["2015-01-01", "2016-01-01"], "format": 3}, "its 'format' is no text"),
    ({"date": ["2015-01-01", "2016-01-01"], "bounds": [0, 1]}, "which means nothing there"),
])  # fmt: skip
def test_entries_that_are_none(entry, says):
    with pytest.raises(ValueError, match=says):
        PublicSchema({"day": entry})


def test_other_texts_are_refused_without_quoting_them():
    with pytest.raises(ValueError, match="'day' of X holds something that is no number") as caught:
        TableEncoder(SCHEMA).fit_transform(pd.DataFrame({"day": ["2015-01-01", "9 Thermidor"]}))
    assert "Thermidor" not in str(caught.value)
