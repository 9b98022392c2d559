"""A column of which no cell is what the schema says is refused before anything is spent."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.pipeline import make_pipeline

from dpselect import DPLogisticRegression, PrivacyLedger, StabilityGridSearchCV
from dpselect.preprocessing import TableEncoder, foreign_columns, tabular, tabular_pipeline
from dpselect.preprocessing.foreign_columns import FIRST_ROWS

N = 3 * FIRST_ROWS
FIRST = np.arange(N) % 2 == 0
LABELS = np.where(FIRST, "ill", "well")
YES, DAYS = ["yes", "no"], {"date": ["2015-01-01", "2016-01-01"]}


def of(one, other):
    cells = np.empty(N, dtype=object)
    cells[FIRST], cells[~FIRST] = one, other
    return cells


FOREIGN = {
    "first letters": (YES, of("Y", "N")),
    "truth": (YES, of("True", "False")),
    "another language": (YES, of("ja", "nein")),
    "codes": (YES, of("1", "0")),
    "objects of booleans": (YES, of(True, False)),
    "texts and booleans": (YES, of("True", False)),
    "quoted": (YES, of('"yes"', '"no"')),
    "a categorical of others": (YES, pd.Categorical(of("Y", "N"))),
    "unused categories": (YES, pd.Categorical(of("Y", "N"), categories=["yes", "no", "Y", "N"])),
    "a string array": (YES, pd.array(of("Y", "N"), dtype="string")),
    "a dictionary of arrow": (
        YES,
        pd.Series(pa.array(of("Y", "N").tolist()).dictionary_encode().to_pandas()),
    ),
    "other numbers": (["1", "2"], np.where(FIRST, 7, 8)),
    "decimal commas": (["1", "2"], of("1,0", "2,0")),
    "longer codes": (["J44", "E11"], of("J44.1", "E11.9")),
    "gaps and others": ({"categories": YES, "missing": True}, of("Y", None)),
    "hundredths": ((0.0, 1.0), np.where(FIRST, 40.0, 60.0)),
    "below": ((0, 120), -np.where(FIRST, 40.0, 60.0)),
    "numbers as texts": ((0.0, 1.0), of("40", "60")),
    "days of a spreadsheet": (DAYS, np.where(FIRST, 42_005, 42_100)),
    "dates of another year": (DAYS, of(datetime.date(1999, 1, 1), "1999-02-02")),
}
CONTAINERS = {
    "pandas": pd.DataFrame,
    "polars": lambda c: pl.DataFrame({name: pl.Series(name, list(x)) for name, x in c.items()}),
    "arrow": lambda c: pa.table({name: pa.array(list(x)) for name, x in c.items()}),
    "array": lambda c: np.array([np.asarray(x, dtype=object) for x in c.values()]).T,
    "list": lambda c: [list(row) for row in zip(*c.values())],
}


def fits(entry):
    model = tabular_pipeline({"c": entry, "age": (0, 9)}, DPLogisticRegression(classes=["ill", "well"]))
    return model.fit, StabilityGridSearchCV(model, {"model__alpha": [0.1, 0.2]}).fit


EACH = [(kind, "pandas") for kind in FOREIGN]
EACH += [
    (kind, container)
    for kind in ("truth", "other numbers", "gaps and others", "hundredths")
    for container in CONTAINERS
]


@pytest.mark.parametrize("kind, container", dict.fromkeys(EACH))
def test_foreign_columns_are_refused(kind, container):
    entry, cells = FOREIGN[kind]
    X = CONTAINERS[container]({"c": cells, "age": [5] * N})
    for fit in fits(entry):
        with pytest.raises(ValueError, match="Column 'c' of X|'c'.*holds numbers") as caught:
            fit(X, LABELS)
        assert not any(str(cell) in str(caught.value) for cell in ("J44.1", "42005", "nein", "1999"))


def test_a_refusal_costs_nothing(tmp_path):
    ledger = PrivacyLedger(tmp_path / "l.ledger", epsilon=9.0)
    for fit in fits(YES):
        with ledger, pytest.raises(ValueError, match="no cell is one of the categories"):
            fit(pd.DataFrame({"c": of("Y", "N"), "age": 5.0}), LABELS)
    assert ledger.spent() == (0, 0)


@pytest.mark.parametrize("kind", ["truth", "unused categories", "other numbers", "hundredths"])
def test_one_cell_that_fits_is_enough(kind):
    """So the last of all decides, wherever the blocks end."""
    entry, cells = FOREIGN[kind]
    cells = np.array(cells, dtype=object)
    cells[-1] = entry[0]
    for fit in fits(entry):
        fit(pd.DataFrame({"c": cells, "age": 5.0}), LABELS)


def test_gaps_and_one_row_are_not_foreign():
    for entry in (YES, {"bounds": (0, 1), "missing": True}):
        for fit in fits(entry):
            fit(pd.DataFrame({"c": [None] * N, "age": 5.0}), LABELS)
    search = StabilityGridSearchCV(fits(YES)[0].__self__, {})
    search.plan(100, 2, 2, example=pd.DataFrame({"c": ["maybe"], "age": [5.0]}))


@pytest.mark.parametrize(
    "entry", [{"categories": ["E75"], "missing": True}, {"categories": YES, "unknown": True}]
)
def test_a_list_that_leaves_room_for_others_may_have_no_record(entry):
    """Whether anybody has a rare disease is not for an error to tell."""
    for fit in fits(entry):
        fit(pd.DataFrame({"c": of("I21", "J18"), "age": 5.0}), LABELS)


def test_few_cells_are_read_of_a_column_that_fits(monkeypatch):
    read, plain = [], foreign_columns.plain_values
    monkeypatch.setattr(foreign_columns, "plain_values", lambda x: read.append(len(x)) or plain(x))
    fits(YES)[0](pd.DataFrame({"c": of("yes", "no"), "age": 5.0}), LABELS)
    assert read == [FIRST_ROWS, FIRST_ROWS]


def test_a_fit_that_does_not_look_is_seen(monkeypatch):
    monkeypatch.setattr(tabular, "refuse_foreign_columns", lambda columns, known: None)
    with pytest.raises(pytest.fail.Exception):
        test_foreign_columns_are_refused("truth", "pandas")


def test_one_entry_for_all_columns_names_the_column():
    model = DPLogisticRegression(classes=["ill", "well"], data_norm=2.0)
    search = StabilityGridSearchCV(make_pipeline(TableEncoder((0, 1)), model), {})
    with pytest.raises(ValueError, match="Columns 'x1', 'x2' of X"):
        search.fit(np.full((N, 3), [0.5, 7, 9]), LABELS)
