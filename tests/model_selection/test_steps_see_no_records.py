"""What steps that learn nothing store is the same on neighbours, in every container.

The broken twin fits them on the records, as a Pipeline does that is fitted by itself.
"""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from dpselect import DPLogisticRegression
from dpselect.model_selection.candidates import Candidate
from dpselect.model_selection.exact_scores import records_for_steps
from dpselect.model_selection.row_steps import quietly
from dpselect.preprocessing import DATA_INDEPENDENT, check_pipeline_privacy

from .tables import ANY, CONTAINERS, SPARSE, STEPS, TEXTS, neighbours

MODEL = DPLogisticRegression(classes=[0, 1])
NOW = ("csv", "nullable", "csr")


def some_now(names):
    """All containers take about a minute; the others are tried by whole searches, too."""
    now = "csr" if "csr" in names else "nullable"
    return [name if name == now else pytest.param(name, marks=pytest.mark.slow) for name in names]


def dense(rows):
    rows = rows.toarray() if sparse.issparse(rows) else np.asarray(rows)
    return rows.astype(float)


def fit_steps(step, X):
    """Return the fitted steps and the rows that a search trains on."""
    candidate = Candidate({}, make_pipeline(clone(step), MODEL), ())
    X, public = records_for_steps([candidate], X)
    candidate = candidate.fitted_on(public)
    rows = candidate.transform(X)
    dense(rows)
    return candidate.fitted_steps, rows


def fit_on_records(step, X):
    steps = make_pipeline(clone(step))
    return steps, quietly(steps.fit_transform, X)


def kept(fit, step, X):
    """What leaves a search with the steps: all that they store, and the form of what they give."""
    steps, rows = fit(step, X)
    try:
        names = steps.get_feature_names_out().tolist()
    except (AttributeError, ValueError):
        names = None  # no names are known
    return pickle.dumps(steps), names, type(rows), rows.shape[1:]


def tables(name, family):
    """The neighbours in a container, without those that it cannot hold."""
    for rows in neighbours(family):
        try:
            yield {**CONTAINERS, **SPARSE}[name](rows)
        except (TypeError, ValueError):
            pass


def compare(fit, name, half=None):
    """Return how many tables were compared, and the steps whose neighbours differ."""
    compared, differing = 0, []
    for family, steps in STEPS.items():
        if name in SPARSE and family != "numbers":
            continue
        for step in steps[half::2] if half is not None else steps:
            found = []
            for X in tables(name, family):
                try:
                    found.append(kept(fit, step, X))
                except (TypeError, ValueError):
                    pass  # refused, which no privacy loss covers
            compared += max(0, len(found) - 1)
            if any(other != found[0] for other in found[1:]):
                differing.append(type(step).__name__)
    return compared, differing


def test_every_step_that_may_pass_is_tried():
    def types(step):
        parts = step.get_params().values()
        return {type(step), *(type(part) for part in parts)}

    tried = set().union(*(types(step) for steps in STEPS.values() for step in steps))
    assert {kind.__name__ for kind in set(DATA_INDEPENDENT) - tried} == {"FeatureHasher"}
    for steps in STEPS.values():
        for step in steps:
            check_pipeline_privacy(make_pipeline(step, MODEL))


@pytest.mark.parametrize("name", some_now([*CONTAINERS, *SPARSE]))
def test_what_steps_store_is_the_same_on_neighbours(name):
    """Of all steps in some containers, and of every second step in each of the others."""
    half = None if name in NOW else [*CONTAINERS, *SPARSE].index(name) % 2
    compared, differing = compare(fit_steps, name, half)
    assert compared >= (50 if name in SPARSE else 120) / (1 if half is None else 2)
    assert not differing


# containers that take their types from the records
TYPED = set(CONTAINERS) - {"array of objects", "pandas objects"}


@pytest.mark.parametrize("name", some_now(sorted(TYPED)))
def test_the_broken_twin_is_caught(name):
    _, differing = compare(fit_on_records, name)
    assert {"SimpleImputer", "OneHotEncoder", "OrdinalEncoder"} <= set(differing)


def outcome(function, *args):
    try:
        return dense(function(*args))
    except (TypeError, ValueError):
        return None


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("name", some_now([*CONTAINERS, *SPARSE]))
def test_rows_are_what_they_were_in_training_and_in_prediction(name):
    """Of steps fitted on a dummy row, of records as they come, and of steps fitted on the records."""
    tried = 0
    for family, steps in STEPS.items():
        if name in SPARSE and family != "numbers":
            continue
        for step in steps:
            # one like the others, and one with a gap where it can be held
            for X in [*tables(name, family)][1:4:2]:
                try:
                    fitted, rows = fit_steps(step, X)
                except (TypeError, ValueError):
                    continue
                plain = outcome(lambda X, step=step: fit_on_records(step, X)[1], X)
                if plain is not None:
                    tried += 1
                    np.testing.assert_array_equal(dense(rows), plain)
                    np.testing.assert_array_equal(outcome(fitted.transform, X), plain)
    assert tried >= (10 if name in SPARSE else 40)


MISSING = [np.nan, None]


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("name", [name for name in CONTAINERS if name != "array"])
def test_a_missing_text_is_in_prediction_what_it_was_in_training(name, missing):
    encoder = OneHotEncoder(categories=[["a", "b", "c", missing], ["x", "y", missing]], **ANY)
    X = CONTAINERS[name]([*TEXTS[:5], [None, "y"], ["a", None], *TEXTS[7:]])
    fitted, rows = fit_steps(encoder, X)
    np.testing.assert_array_equal(dense(fitted.transform(X)), dense(rows))
