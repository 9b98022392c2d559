"""Encoders and imputers for numbers are refused where the table has text, and the other way round."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
)

from dpselect import DPLogisticRegression
from dpselect.model_selection.private_steps import freeze
from dpselect.model_selection.row_steps import PublicRows, fit, public_rows
from dpselect.preprocessing import DPBoundsScaler
from dpselect.preprocessing.kinds_check import check_kinds
from dpselect.preprocessing.table_form import TableForm

FORM = TableForm("pandas", ("numbers", "text", "text"), ["n", "t", "u"])
NUMBER, TEXT = OneHotEncoder(categories=[[0, 1]]), OneHotEncoder(categories=[["a", "b"]])
FILL = SimpleImputer(strategy="constant", fill_value=0)


def on(step, columns):
    return ColumnTransformer([("part", step, columns)])


@pytest.mark.parametrize(
    "columns",
    [
        ["n"],
        "n",
        [0],
        0,
        slice(0, 1),
        slice("n", "n"),
        slice(None, "n"),
        [True, False, False],
        [-3],
        np.array(["n"]),
        [],
    ],
)
def test_a_selection_of_columns(columns):
    check_kinds(on(NUMBER, columns), FORM)
    check_kinds(on(FILL, columns), FORM)
    if np.size(columns):
        with pytest.raises(ValueError, match="'part' .*are text, and column 0 of X holds num"):
            check_kinds(on(TEXT, columns), FORM)


@pytest.mark.parametrize(
    "step",
    [
        on(NUMBER, ["t"]),
        on(NUMBER, slice("t", None)),
        on(on(NUMBER, ["u"]), ["t", "u"]),
        on(OrdinalEncoder(categories=[[0], [0, np.nan]]), ["n", "u"]),
        on(FILL, ["n", "t"]),
        make_pipeline(SimpleImputer(strategy="constant", fill_value="none"), on(NUMBER, [2])),
        make_pipeline(
            "passthrough", FeatureUnion([("part", OneHotEncoder(categories=[[0], [0], ["a"]]))])
        ),
        ColumnTransformer([("part", "drop", ["n", "t"])], remainder=NUMBER),
        MissingIndicator(features="all", missing_values=-1),
        SimpleImputer(strategy="constant", fill_value="none", missing_values=0),
    ],
)
def test_numbers_for_text_are_refused(step):
    with pytest.raises(ValueError, match="Step '.*' .*number.*holds text.*ColumnTransformer"):
        check_kinds(step, FORM)


@pytest.mark.parametrize(
    "step",
    [
        OneHotEncoder(categories=[[0, np.nan], ["a", None], [1, "a"]]),
        on(NUMBER, ["unknown"]),  # scikit-learn says so
        on(NUMBER, [7]),
        make_pipeline(on(PolynomialFeatures(), ["n"]), OneHotEncoder(categories=[[1], [1]])),
        "passthrough",
    ],
)
def test_others_pass(step):
    check_kinds(step, FORM)


@pytest.mark.parametrize(
    "step",
    [
        OneHotEncoder(categories=[[np.nan]]),
        OrdinalEncoder(categories=[[None]]),
    ],
)
def test_an_encoder_that_takes_either_kind_is_refused(step):
    for column in "nt":
        with pytest.raises(ValueError, match="no category that is a number or a text"):
            check_kinds(on(step, [column]), FORM)


def test_a_vectorizer_of_numbers_is_refused():
    words = HashingVectorizer(preprocessor=str, n_features=4)
    check_kinds(on(words, "t"), FORM)
    with pytest.raises(ValueError, match="made for text, and column 0 of X holds numbers"):
        check_kinds(on(words, "n"), FORM)


ANY = OneHotEncoder(categories=[[0, 1]], handle_unknown="ignore", sparse_output=False)
BEHIND = {
    "a function": make_pipeline(FunctionTransformer(), on(ANY, [1])),
    "columns": make_pipeline(on("passthrough", [1]), ANY),
    "a union": make_pipeline(FeatureUnion([("all", "passthrough")]), on(ANY, [2])),
    "a frame": make_pipeline(
        on("passthrough", [1]).set_output(transform="pandas"), on(ANY, ["part__t"])
    ),
    "a step inside": on(make_pipeline(FunctionTransformer(), ANY), [1]),
    "in a process": make_pipeline(
        FunctionTransformer(), ColumnTransformer([("a", "drop", [0]), ("b", ANY, [1])], n_jobs=2)
    ),
}


@pytest.mark.parametrize("place", BEHIND)
def test_steps_behind_new_columns_are_watched(place):
    if place == "a frame":
        pytest.importorskip("pandas")
    step = clone(BEHIND[place])
    numbers = TableForm("array", ("numbers",) * 3)
    if place != "a frame":
        public = PublicRows(numbers.dummies(), numbers)
        check_kinds(step, numbers)
        fit(step, public)
    form = TableForm("pandas" if place == "a frame" else "array", FORM.kinds, FORM.columns)
    check_kinds(step, form)
    with pytest.raises(ValueError, match="are numbers, and column 0 of X holds text"):
        fit(step, PublicRows(form.dummies(), form))


CODES = OrdinalEncoder(categories=[["a", "b"]], handle_unknown="use_encoded_value", unknown_value=-1)


def test_what_a_step_is_given_is_what_those_before_it_make():
    # text that was coded is numbers
    step = make_pipeline(on("passthrough", [1]), clone(CODES), clone(ANY))
    form = TableForm("array", FORM.kinds, FORM.columns)
    fit(step, PublicRows(form.dummies(), form))


def test_steps_before_a_private_one_are_checked():
    encoder = ColumnTransformer([("t", clone(TEXT), [0])], sparse_threshold=0)
    estimator = make_pipeline(encoder, DPBoundsScaler(), DPLogisticRegression(classes=[0, 1]))
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match="'t' .* are text, and column 0 of X holds numbers"):
        freeze(estimator, X, None, None, public_rows(X))


def test_all_are_named():
    with pytest.raises(ValueError, match="'first' .*; Step 'second' "):
        check_kinds(
            FeatureUnion(
                [
                    ("first", OneHotEncoder(categories=[["a"], ["a"], ["a"]])),
                    ("second", FILL),
                ]
            ),
            FORM,
        )
