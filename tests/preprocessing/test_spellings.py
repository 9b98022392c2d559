"""A category is found however a table spells it, and a column that can match nothing is refused."""

import unicodedata

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpselect import DPLogisticRegression, StabilityGridSearchCV
from dpselect.preprocessing import PublicSchema, TableEncoder, spellings, tabular_pipeline
from dpselect.preprocessing.table_cells import MISSING_TEXTS


def codes(categories, cells, **said):
    column = PublicSchema({"c": {"categories": categories, **said}}).columns["c"]
    return column.read(np.array([*cells, None], dtype=object)[:-1]).tolist()


ALIKE = [
    (["yes", "no"], ["Yes", "NO", " yes ", "YES"], [0, 1, 0, 0]),
    (["Zürich", "Genève"], [unicodedata.normalize("NFD", "Zürich"), "GENÈVE"], [0, 1]),
    (["New York", "rome"], ["NEW YORK", "new york", "New york", "Rome"], [0, 0, 0, 1]),
    (["07", "7", "12"], ["07", "7", 7, "7.0", "007", "12", 12.0], [0, 1, 1, 1, 1, 2, 2]),
    (["01", "02"], ["01", "1", 2, "002"], [0, 0, 1, 1]),
    (["a", "A"], ["a", "A"], [0, 1]),  # as they are listed
    (["Ab", "aB"], ["Ab", "aB", "ab", "AB"], [0, 1, -1, -1]),  # could be two
    (["Na", "Fe"], ["Na", "NA", "na", "FE"], [0, -1, -1, 1]),  # a gap is no metal
    (["yes", "no"], ["yes.", "nope", "y"], [-1, -1, -1]),
]


@pytest.mark.parametrize("categories, cells, expected", ALIKE)
def test_spellings(categories, cells, expected):
    assert codes(categories, cells) == expected


def test_a_list_of_spellings_without_other_cases_is_seen(monkeypatch):
    spellings.known_spellings.cache_clear()
    monkeypatch.setattr(spellings, "_spelt", lambda text: [text])
    for categories, cells, expected in ALIKE[:3]:
        with pytest.raises(AssertionError):
            test_spellings(categories, cells, expected)
    spellings.known_spellings.cache_clear()


def test_gaps():
    assert codes(["a", "b"], [*MISSING_TEXTS, None, np.nan, "-9"], missing=True)[:-1] == [2] * (
        len(MISSING_TEXTS) + 2
    )
    assert codes(["a", "b"], ["-9", -9, "Refused", "x"], missing_values=[-9, "Refused"]) == [2, 2, 2, -1]
    assert codes(["none", "some"], ["None", "NONE", None]) == [-1, -1, -1]
    assert codes(["None", "some"], ["None", None]) == [0, -1]
    column = PublicSchema({"c": {"bounds": [0, 9], "missing_values": [99, "x"]}}).columns["c"]
    assert (
        column.missing and np.isnan(column.numbers(np.array(["99", "X", 99, "?"], dtype=object))).all()
    )
    assert PublicSchema({"c": column.entry()}).columns["c"] == column


@pytest.mark.parametrize("entry, says", [
    ({"bounds": [0, 9], "missing_values": 9}, "no list of texts and numbers"),
    ({"bounds": [0, 9], "missing_values": [None]}, "no list of texts and numbers"),
    ({"bounds": [0, 9], "missing_values": ["x"], "missing": False}, "and 'missing': False"),
    ({"categories": ["a", "b"], "missing_values": ["a"]}, "are among its categories"),
    ({"categories": ["1", "2"], "missing_values": [2]}, "are among its categories"),
])  # fmt: skip
def test_gaps_that_are_none(entry, says):
    with pytest.raises(ValueError, match=says):
        PublicSchema({"c": entry})


# --- columns of another type

TYPES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "array": lambda columns: np.array(list(columns.values())).T,
}
NUMBERS = {
    "booleans": [True, False] * 100,
    "numbers": [1, 0] * 100,
    "floats with a gap": [1.0, 0.0] * 99 + [1.0, np.nan],
}
LABELS = np.array(["no", "yes"] * 100)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("values", NUMBERS)
def test_numbers_are_no_texts(kind, values):
    X = TYPES[kind]({"smoker": NUMBERS[values]})
    model = tabular_pipeline({"smoker": ["yes", "no"]}, DPLogisticRegression(classes=["no", "yes"]))
    for fit in (model.fit, StabilityGridSearchCV(model, {}).fit, model[0].fit_transform):
        with pytest.raises(ValueError, match="'smoker'.*holds numbers or booleans"):
            fit(X, LABELS)


def test_objects_of_booleans_are_refused_by_a_search():
    X = pd.DataFrame({"smoker": [True, False, None, True] * 50}, dtype=object)
    model = tabular_pipeline({"smoker": ["yes", "no"]}, DPLogisticRegression(classes=["no", "yes"]))
    with pytest.raises(ValueError, match="'smoker'.*holds numbers or booleans"):
        StabilityGridSearchCV(model, {}).fit(X, LABELS)


@pytest.mark.parametrize("cells", [["yes", "no"], ["Yes", "No"], ["YES", "NO"]])
@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "array"])
def test_nothing_is_lost_in_silence(cells, kind):
    """What the column tells is found with any spelling."""
    rng = np.random.default_rng(0)
    smoker = rng.choice(cells, 4000)
    y = np.where(smoker == cells[0], "ill", "well")
    model = tabular_pipeline({"smoker": ["yes", "no"]}, DPLogisticRegression(classes=["ill", "well"]))
    assert model.fit(TYPES[kind]({"smoker": smoker}), y).score(TYPES[kind]({"smoker": smoker}), y) == 1


def test_handle_unknown():
    schema = {"job": ["clerk", "nurse"], "grade": {"categories": ["1", "2"], "unknown": True}}
    X = pd.DataFrame({"job": ["clerk", "nurse"] * 100, "grade": ["1", "9"] * 100})
    strict = TableEncoder(schema, handle_unknown="error")
    assert (strict.fit_transform(X) == TableEncoder(schema).fit_transform(X)).all()
    for cell in ("pilot", None, 3):
        wrong = X.astype(object)
        wrong.loc[7, "job"] = cell
        with pytest.raises(ValueError, match="Column 'job' of X holds a value that") as caught:
            strict.fit_transform(wrong)
        assert "pilot" not in str(caught.value) and "7" not in str(caught.value)
        assert (TableEncoder(schema).fit_transform(wrong)[7, 0] == 0) == (cell != "clerk")
    model = tabular_pipeline(schema, DPLogisticRegression(classes=["no", "yes"]), handle_unknown="error")
    assert StabilityGridSearchCV(model, {}).fit(X, LABELS).privacy_.epsilon == 1
    with pytest.raises(ValueError, match="'job'"):
        StabilityGridSearchCV(model, {}).fit(X.assign(job="pilot"), LABELS)
    with pytest.raises(ValueError, match="handle_unknown"):
        TableEncoder(schema, handle_unknown="raise").fit(X)


# --- numbers that are stored otherwise

AGE = {"age": {"bounds": (0, 100), "missing": True}}
STORED = {
    "texts": lambda x: [str(v) for v in x],
    "texts with a blank": lambda x: [" ", *map(str, x[1:])],
    "texts with gaps": lambda x: ["N/A", "-", None, *map(str, x[3:])],
    "numbers and texts": lambda x: [x[0], *map(str, x[1:])],
    "no value": lambda x: [None] * len(x),
    "booleans": lambda x: [v > 5 for v in x],
    "nan": lambda x: [np.nan] * len(x),
}


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("kind", ["pandas", "array", "polars"])
def test_a_search_reads_numbers_as_a_fit_does(stored, kind):
    cells = STORED[stored](list(range(10)) * 20)
    if kind == "polars" and stored == "numbers and texts":
        cells = [str(cell) for cell in cells]  # columns of polars have one type
    X = pd.DataFrame({"age": cells}) if kind == "pandas" else np.array(cells, dtype=object)[:, None]
    X = pl.DataFrame({"age": cells}, strict=False) if kind == "polars" else X
    model = tabular_pipeline(AGE, DPLogisticRegression(classes=["no", "yes"]))
    search = StabilityGridSearchCV(model, {}).fit(X, LABELS)
    assert search.privacy_.epsilon == 1
    expected = model[0].fit_transform(X)
    assert (search.best_estimator_[0].transform(X) == expected).all()
    assert search.predict(X).shape == (200,)


def test_texts_that_are_no_numbers_are_refused_by_a_search():
    model = tabular_pipeline(AGE, DPLogisticRegression(classes=["no", "yes"]))
    with pytest.raises(ValueError, match="holds something that is no number") as caught:
        StabilityGridSearchCV(model, {}).fit(pd.DataFrame({"age": ["98765x"] * 200}), LABELS)
    assert "98765" not in str(caught.value)


@pytest.mark.parametrize("entry", [["a", "b"], {"categories": ["a", "b"], "missing": True}, ["1", "2"]])
@pytest.mark.parametrize("cells", [[None] * 200, [np.nan] * 200, [""] * 200])
def test_a_column_of_categories_without_any_value(entry, cells):
    model = tabular_pipeline({"c": entry}, DPLogisticRegression(classes=["no", "yes"]))
    assert StabilityGridSearchCV(model, {}).fit(pd.DataFrame({"c": cells}), LABELS).privacy_.epsilon == 1
