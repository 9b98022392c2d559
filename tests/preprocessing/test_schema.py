"""What people know of their columns: from a dict, a file, declared types; all mistakes at once."""

import datetime
import json
import re

import numpy as np
import pytest
from sklearn.utils import get_tags

from dpselect.preprocessing import PublicSchema, TableEncoder, schema, schema_template, spellings
from dpselect.preprocessing.schema import CategoryColumn, NumberColumn
from dpselect.preprocessing.table_cells import as_number

KNOWN = {
    "age": (0, 120),
    "job": ["farmer", "clerk"],
    "income": {"bounds": (0, 1e6), "transform": "log1p", "fill": 0, "unit": "USD", "missing": True},
    "grade": {"categories": [1, 2, 3], "unknown": True, "missing": True},
    "hour": {"bounds": (0, 24), "periodic": True},
}
COLUMNS = {
    "age": NumberColumn("age", 0.0, 120.0),
    "job": CategoryColumn("job", ("farmer", "clerk")),
    "income": NumberColumn("income", 0.0, 1e6, "log1p", True, 0.0, "USD"),
    "grade": CategoryColumn("grade", (1, 2, 3), True, True),
    "hour": NumberColumn("hour", 0.0, 24.0, periodic=True),
}


def test_entries_and_files(tmp_path):
    schema = PublicSchema(KNOWN)
    assert schema.columns == COLUMNS and list(schema.columns) == list(KNOWN)
    assert PublicSchema(schema.to_dict()) == schema == PublicSchema(schema.columns)
    path = tmp_path / "schema.json"
    entries = {f" {name}": entry for name, entry in schema.to_dict().items()}
    path.write_text("\ufeff" + json.dumps(entries))
    assert PublicSchema.from_json(path) == PublicSchema.from_json(str(path)) == schema


def test_declared_types():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    two = [pd.CategoricalDtype(["a", "b"]), pl.Enum(["a", "b"]), np.array(["a", "b"]), ("a", "b")]
    truth = [bool, "bool", np.bool_, np.dtype(bool), pd.BooleanDtype(), pl.Boolean, [False, True]]
    for entries, known in ((two, ("a", "b")), (truth, (False, True))):
        columns = PublicSchema(dict(enumerate(entries))).columns
        assert columns == {i: CategoryColumn(i, known) for i in range(len(entries))}


def test_types_that_were_found_in_records_are_not_declared():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"job": pd.Categorical(["a", "b"])})
    assert schema_template(frame) == schema_template(frame.columns) == {"job": None}
    with pytest.raises(ValueError, match="'job' \\(it is not filled in\\)"):
        PublicSchema(schema_template(frame))
    for column in ("job", ["job", "job"]):
        with pytest.raises(ValueError, match="columns=.* are not different names"):
            schema_template(column)


def test_what_is_wrong_with_many_columns_is_said_once():
    with pytest.raises(ValueError) as error:
        PublicSchema({**dict.fromkeys("ab"), "age": (1, 0), "c": None})
    assert "of columns 'a', 'b', 'c' (it is not filled in), of column 'age' (its" in str(error.value)


WRONG = {
    "empty": (None, "it is not filled in"),
    "a number": (3, "it is neither bounds nor a list of categories"),
    "upside down": ((1, 0), "its bounds are not two finite numbers low < high"),
    "dates": (
        (datetime.date.min, datetime.date.max),
        (
            "its bounds are not two finite numbers "
            "low < high, and of dates these are the days since a public one"
        ),
    ),
    "flat": ((1e16, 1e16 + 1), "its bounds are not"),
    "endless": ((0, float("inf")), "its bounds are not"),
    "text": ((0, "1"), "its bounds are not"),
    "flat as logarithm": ({"bounds": (1e300, 1e300 * (1 + 1e-15)), "transform": "log1p"}, "its bounds"),
    "three": ([1, 2, 3], "it lists numbers that are not two bounds, and categories are written as text"),
    "one": (["a"], "it has fewer than two categories"),
    "twice": (["1", "1.0"], 'it has categories that mean the same, as 1 and "1" do'),
    "true": (["True", "1"], "it has categories that mean the same"),
    "spaces": (["a", " a"], "it has categories that mean the same"),
    "nothing": ({"categories": ["a", None]}, "its categories are not texts or finite numbers"),
    "log": ({"bounds": (-2, 3), "transform": "log1p"}, "log1p has no value at -1 or less; arcsinh has"),
    "both": ({"bounds": (0, 1), "categories": ["a", "b"]}, "it needs either bounds or categories"),
    "much": (
        {"bounds": (0, 1), "transform": "sqrt", "fill": 3, "unit": 5, "missing": "no", "loud": 1},
        (
            "its transform is not one of [None, 'log1p', 'arcsinh'], and its 'missing' is neither True "
            "nor False, and its fill is no number between the bounds, and its unit is no text, and it "
            "has 'loud', which means nothing there"
        ),
    ),
    "wave": (
        {"bounds": (0, 1), "transform": "log1p", "periodic": True},
        "it is periodic and has a transform",
    ),
    "maybe": ({"bounds": (0, 1), "periodic": "yes"}, "its 'periodic' is neither True nor False"),
    "season": ({"categories": ["a", "b"], "periodic": True}, "it has 'periodic', which means nothing"),
    "fill": ({"bounds": (0, 1), "fill": 0.5}, "it has a fill, and no 'missing': True"),
    "unit": ({"categories": ["a", "b"], "unit": "m"}, "it has 'unit', which means nothing there"),
}


def test_all_mistakes_at_once():
    with pytest.raises(ValueError, match="^The schema does not say.*; write for each column") as caught:
        PublicSchema({**KNOWN, **{name: entry for name, (entry, _) in WRONG.items()}})
    listed = re.findall(r"of columns? ([^(]*) \((.*?)\)(?=, of column|; write)", str(caught.value))
    reasons = {name: why for names, why in listed for name in re.findall("'(.*?)'", names)}
    assert reasons.keys() == WRONG.keys()
    for name, (entry, said) in WRONG.items():
        assert reasons[name].startswith(said)
        with pytest.raises(ValueError, match="of column") as alone:
            PublicSchema({name: entry})
        assert str(alone.value).count("of column") == 1
    assert not any(name in str(caught.value) for name in KNOWN if name not in ("fill", "age"))


@pytest.mark.parametrize(
    "text, said",
    [
        ("{", r"is not valid JSON \(line 1\)"),
        (b"\xff\xfe", r"is not valid JSON \(line 1\)"),  # the mark of UTF-16, and nothing else
        (b"\xff{}", "is not UTF-8 text,"),
        ("[1]", "no JSON object"),
        ("{}", "is empty"),
        ('{"a": [0, 1], "a ": [1, 0]}', r"of 'a' \(it is there twice\), of column 'a' \(its bounds"),
        (None, "cannot be read"),
    ],
)
def test_files_that_say_nothing(text, said, tmp_path):
    path = tmp_path / "schema.json"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=f"The schema.*{said}"):
        PublicSchema.from_json(path)


def test_a_number_is_read_between_its_bounds():
    values = np.array([-5.0, 0.0, 10.0, 99.0, 1e9])
    for transform, function in ((None, np.positive), ("log1p", np.log1p), ("arcsinh", np.arcsinh)):
        z = NumberColumn("x", 0.0, 99.0, transform).read(values)
        np.testing.assert_allclose(z, function(values.clip(0, 99)) / function(99.0), rtol=1e-15)
        assert z[:2].tolist() == [0, 0] and z[3:].tolist() == [1, 1]


def test_a_category_is_read_among_the_levels():
    column = COLUMNS["grade"]
    assert column.levels == (1, 2, 3, "<unknown>", "<missing>")
    cells = [1, 1.0, True, "1", " 1 ", "2.0", np.float32(3), "x", 7, None, float("nan"), "?", "", "nan"]
    expected = [0, 0, 0, 0, 0, 1, 2, 3, 3, 4, 4, 4, 4, 4]
    assert column.read(np.array([*cells, None], dtype=object)[:-1]).tolist() == expected
    closed = CategoryColumn("grade", ("1", "?"))
    assert closed.read(np.array(["1", "?", "x", None], dtype=object)).tolist() == [0, 1, -1, -1]
    assert closed.read(np.array([1.0, 2.0, np.nan])).tolist() == [0, -1, -1]


@pytest.mark.parametrize("unknown", [True, False])
@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize("categories", [("a", "b"), (1, 2), (True, False), ("1", 2.5)])
def test_a_gap_or_another_value_is_the_level_that_was_asked_for(categories, missing, unknown):
    """A gap without a level of its own is as any other value."""
    column = CategoryColumn("x", categories, missing, unknown)
    read = [column.read(np.array([cell, "."], dtype=object))[0] for cell in (None, np.nan, "", "other")]
    levels = [column.levels[code] if code >= 0 else None for code in read]
    other = "<unknown>" if unknown else None
    assert levels == ["<missing>" if missing else other] * 3 + [other]
    assert column.read(column.values(0)).tolist() == list(range(len(column.levels)))


def n_read(monkeypatch, cached):
    """How many categories are parsed by the predictions of a fitted encoder."""
    levels, parsed = [str(i) for i in range(50)], []
    with monkeypatch.context() as patched:
        patched.setattr(spellings, "as_number", lambda value: parsed.append(value) or as_number(value))
        if not cached:
            patched.setattr(schema, "known_spellings", spellings.known_spellings.__wrapped__)
        encoder = TableEncoder({"c": levels}).fit([["1"]])
        encoder.transform([["1"]])
        del parsed[:]
        for _ in range(3):
            get_tags(encoder)
            encoder.transform([["2"]])
    return len(parsed)


def test_a_list_of_categories_is_read_once_for_many_predictions(monkeypatch):
    assert n_read(monkeypatch, cached=True) == 0
    assert n_read(monkeypatch, cached=False) == 3 * 50  # and a twin reads it in each of them


def test_lists_that_compare_as_equal_mean_the_same():
    """What is known of one list is taken for another that is equal to it."""
    cells = np.array([1, 1.0, True, "1", "true", "1.0", 0, -0.0, "-0", "false", None, "x"], dtype=object)
    for lists in ([(1, 0), (True, False), (1.0, -0.0)], [(1, "x"), (True, "x"), (1.0, "x")]):
        assert len({*lists}) == 1
        read = [CategoryColumn("c", given).read(cells).tolist() for given in lists]
        uncached = [spellings.known_spellings.__wrapped__(given, ()) for given in lists]
        assert read[0] == read[1] == read[2] and uncached[0] == uncached[1] == uncached[2]
