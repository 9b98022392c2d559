"""Encoders and imputers for numbers are refused where the table has text, and the other way round."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PolynomialFeatures

from dpselect.preprocessing.kinds_check import check_kinds
from dpselect.preprocessing.public_schema import PublicSchema

SCHEMA = PublicSchema("pandas", ("numbers", "text", "text"), ["n", "t", "u"])
NUMBER, TEXT = OneHotEncoder(categories=[[0, 1]]), OneHotEncoder(categories=[["a", "b"]])
FILL = SimpleImputer(strategy="constant", fill_value=0)


def on(step, columns):
    return ColumnTransformer([("part", step, columns)])


@pytest.mark.parametrize("columns", [
    ["n"], "n", [0], 0, slice(0, 1), slice("n", "n"), slice(None, "n"), [True, False, False], [-3],
    np.array(["n"]), [],
])
def test_a_selection_of_columns(columns):
    check_kinds(on(NUMBER, columns), SCHEMA)
    check_kinds(on(FILL, columns), SCHEMA)
    if np.size(columns):
        with pytest.raises(ValueError, match="'part' .*are text, and column 0 of X holds num"):
            check_kinds(on(TEXT, columns), SCHEMA)


@pytest.mark.parametrize("step", [
    on(NUMBER, ["t"]),
    on(NUMBER, slice("t", None)),
    on(on(NUMBER, ["u"]), ["t", "u"]),
    on(OrdinalEncoder(categories=[[0], [0, np.nan]]), ["n", "u"]),
    on(FILL, ["n", "t"]),
    make_pipeline(SimpleImputer(strategy="constant", fill_value="none"), on(NUMBER, [2])),
    make_pipeline("passthrough", FeatureUnion([("part", OneHotEncoder(categories=[[0], [0], ["a"]]))])),
    ColumnTransformer([("part", "drop", ["n", "t"])], remainder=NUMBER),
])
def test_numbers_for_text_are_refused(step):
    with pytest.raises(ValueError, match="Step '.*' .*number.*holds text.*ColumnTransformer"):
        check_kinds(step, SCHEMA)


@pytest.mark.parametrize("step", [
    OneHotEncoder(categories=[[0, np.nan], ["a", None], [1, "a"]]),
    on(NUMBER, ["unknown"]),  # scikit-learn says so
    on(NUMBER, [7]),
    make_pipeline(on(PolynomialFeatures(), ["n"]), OneHotEncoder(categories=[[1], [1]])),
    "passthrough",
])
def test_others_pass(step):
    check_kinds(step, SCHEMA)


def test_all_are_named():
    with pytest.raises(ValueError, match="'first' .*; Step 'second' "):
        check_kinds(FeatureUnion([
            ("first", OneHotEncoder(categories=[["a"], ["a"], ["a"]])), ("second", FILL),
        ]), SCHEMA)
