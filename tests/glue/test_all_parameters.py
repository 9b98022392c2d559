"""Every public parameter takes two values or more in the covering arrays, or is irrelevant for a reason.

A new parameter fails here until it has met all others, or somebody has said why it need not.
"""

import inspect
from collections import defaultdict

import pytest
from sklearn.pipeline import Pipeline

import dpselect
from dpselect import preprocessing

from . import pairs, release_pairs

TOLD = "what is printed or told while it works"
OF_STEPS = "names steps whose word is taken: tests/preprocessing/test_pipeline_check.py"
HOLDOUT = "asked about in tests/glue/test_hostile_functions.py and test_holdouts_and_bounds.py"
TABLES = "of tables, and without records: tests/preprocessing"
# by the name of a class or function, then of its parameters; the reason
IRRELEVANT = {
    "AccuracyFirstSearchCV": {
        "failure_probability": "tests/accuracy_first/test_forms.py tries several",
        "max_epsilon": "a limit: tests/accuracy_first/test_limit.py",
        "on_failure": "raises in place of a release: tests/accuracy_first/test_search.py",
        "verbose": TOLD,
        "trusted_steps": OF_STEPS,
    },
    "StabilityGridSearchCV": {
        "verbose": TOLD,
        "trusted_steps": OF_STEPS,
        "pre_dispatch": "of joblib's queue",
        "return_train_score": "True is refused",
    },
    "DPBoundsScaler": {"tail": "tests/preprocessing/test_private_bounds.py tries several"},
    "BoundedScaler": {"bounds": TABLES},
    "Ladder": {"step": HOLDOUT},
    # releases nothing, of invented records
    "coef_interval_forecast": dict.fromkeys(
        (
            "model",
            "X",
            "y",
            "epsilon",
            "n_samples",
            "n_records",
            "contrast",
            "confidence_level",
            "sample_weight",
            "groups",
        ),
        "tests/linear_model/test_coefficients.py",
    ),
    "Thresholdout": dict.fromkeys(("threshold", "noise_rate", "budget", "random_state"), HOLDOUT),
    "ThresholdoutFeatureSelector": dict.fromkeys(
        (
            "estimator",
            "n_features_to_select",
            "scoring",
            "threshold",
            "noise_rate",
            "budget",
            "cv",
            "public_splits",
            "n_jobs",
            "random_state",
        ),
        HOLDOUT,
    ),
    "PrivateModel": dict.fromkeys(
        (
            "estimator",
            "epsilon",
            "adjacency",
            "conversion",
            "delta",
            "epsilon_parameter",
            "delta_parameter",
            "classes",
            "classes_parameter",
            "public_parameters",
            "public_records",
            "random_state",
        ),
        "wraps models of others: tests/private_model",
    ),
    "NormClipper": dict.fromkeys(("norm", "bound"), "of each row by itself: tests/preprocessing"),
    "TableEncoder": dict.fromkeys(
        (
            "schema",
            "expansion",
            "n_epsilon",
            "class_share",
            "n_mu",
            "columns",
            "categories",
            "cut_points",
            "pairs",
            "n_fourier",
            "gamma",
            "random_state",
            "sparse_output",
            "handle_unknown",
            "ranges",
        ),
        TABLES,
    ),
    "TabularPipeline": dict.fromkeys(("steps", "transform_input", "memory", "verbose"), TABLES),
    "tabular_pipeline": dict.fromkeys(("schema", "model", "encoder_params"), TABLES),
    "schema_template": {"columns": TABLES},
    "check_pipeline_privacy": dict.fromkeys(("pipeline", "trusted_steps"), OF_STEPS),
    "privacy_of": {"estimator": "of what is fitted", "trusted_steps": OF_STEPS},
    "privacy_report": dict.fromkeys(
        ("model", "ledger", "evaluation", "about", "date"), "tells of what is there: tests/report"
    ),
    "calibrated": {"other_records": "says how losses add up: tests/evaluation/test_with_positive.py"},
    "config_context": {"strict": "tests/test_config.py"},
    "set_config": {"strict": "tests/test_config.py"},
}
# fit's own, where they are not those of all
OF_A_FIT = {
    "Thresholdout": dict.fromkeys(("X_holdout", "y_holdout", "groups", "groups_holdout"), HOLDOUT),
    "ThresholdoutFeatureSelector": {"groups": HOLDOUT},
    "Ladder": {"groups": HOLDOUT},
    "DPBoundsScaler": {"groups": "given with those of the model: axis groups, step private"},
    **dict.fromkeys(
        ("StabilityGridSearchCV", "AccuracyFirstSearchCV"),
        {
            "params": "weights and ids: axes sample_weight and groups",
        },
    ),
    "TabularPipeline": {"params": TABLES},
}
# what arrays hand to functions and fits, by the axes that decide it
AXES_OF = {
    "evaluate": {
        "model": "kind",
        "X": "container",
        "y": "labels",
        "epsilon": "epsilon",
        "target_range": "ends",
        "confidence": "release",
        "thresholds": "ends",
        "by": "levels",
        "levels": "levels",
        "groups": "groups",
        "sample_weight": "sample_weight",
        "max_weight": "sample_weight",
        "ledger": "ledger",
        "random_state": "state",
    },
    "coef_interval": {
        "model": "kind",
        "X": "container",
        "y": "labels",
        "epsilon": "epsilon",
        "n_samples": "groups",
        "sample_weight": "sample_weight",
        "groups": "groups",
        "ledger": "ledger",
        "random_state": "state",
    },
    "calibrated": {
        "model": "kind",
        "evaluation": "epsilon",
        "method": "release",
        "recall": "release",
        "precision": "release",
        "rate": "release",
    },
}
FIT_PARAMETERS = {"sample_weight": "sample_weight", "groups": "groups"}


def public():
    """Return all public classes that are fitted, and functions, by their names."""
    found = {
        name: getattr(module, name) for module in (dpselect, preprocessing) for name in module.__all__
    }
    return {
        name: thing
        for name, thing in found.items()
        if inspect.isfunction(thing) or (inspect.isclass(thing) and hasattr(thing, "get_params"))
    }


def estimators():
    """Yield every estimator of the covering arrays."""
    for row in pairs.fit_rows().values():
        yield pairs.estimator_of(row, 7 if row["state"] == "integer" else None)
    for rows, make in (
        (pairs.search_rows(), pairs.search_of),
        (pairs.accuracy_rows(), pairs.accuracy_search_of),
        (release_pairs.law_rows(), release_pairs.search_of),
    ):
        for row in rows.values():
            yield make(row, pairs.N, 7 if row["state"] == "integer" else None)
    for row in pairs.density_rows().values():
        yield pairs.density_of(row, random_state=7 if row["state"] == "integer" else None)
    for row in release_pairs.release_rows().values():
        yield release_pairs.model_of(row)


def values_met():
    """Return the values of each parameter of each class, as texts."""
    found = defaultdict(lambda: defaultdict(set))

    def note(estimator):
        if isinstance(estimator, Pipeline):
            for _, step in estimator.steps:
                note(step)
            return
        for name, value in estimator.get_params(deep=False).items():
            found[type(estimator).__name__][name].add(repr(value))
        if hasattr(estimator, "estimator"):
            note(estimator.estimator)

    for estimator in estimators():
        note(estimator)
    return found


@pytest.fixture(scope="module")
def met():
    return values_met()


def rows_of(name):
    rows = release_pairs.release_rows().values()
    kinds = {
        "evaluate": {*release_pairs.AT_ONCE},
        "coef_interval": {"intervals"},
        "calibrated": {"sigmoid", "isotonic", "threshold"},
    }[name]
    return [row for row in rows if row["release"] in kinds]


def check_all_met(name, thing, met, irrelevant=IRRELEVANT):
    """Look for a parameter that takes one value only, and for a reason that is none any more."""
    reasons = irrelevant.get(name, {})
    for parameter in inspect.signature(thing).parameters:
        if name in AXES_OF:
            axis = AXES_OF[name].get(parameter)
            if axis is None and parameter in reasons:
                continue
            assert axis, f"{name}({parameter}=...) is in no covering array"
            several = len({str(row[axis]) for row in rows_of(name)}) > 1
        else:
            # (who pays is an axis of all arrays, and given when an estimator is made)
            pays = parameter == "ledger" and inspect.isclass(thing)
            several = len(met[name][parameter]) > 1 or pays
        values = sorted(met[name][parameter])
        assert several != (parameter in reasons), f"{name}({parameter}=...): {values}"
    assert reasons.keys() <= inspect.signature(thing).parameters.keys()
    if not hasattr(thing, "fit"):
        return
    own = OF_A_FIT.get(name, {})
    for parameter in inspect.signature(thing.fit).parameters:
        if parameter not in ("self", "X", "y", "fit_params") and parameter not in own:
            arrays = (pairs.FIT_AXES, pairs.DENSITY_AXES, pairs.SEARCH_AXES)
            assert parameter in FIT_PARAMETERS, f"{name}.fit({parameter}=...) is in no covering array"
            assert any(len(axes.get(FIT_PARAMETERS[parameter], [])) > 1 for axes in arrays)


@pytest.mark.parametrize("name", public())
def test_every_parameter_meets_all_others_or_is_irrelevant(name, met):
    check_all_met(name, public()[name], met)


def test_what_is_listed_is_public():
    assert IRRELEVANT.keys() | OF_A_FIT.keys() | AXES_OF.keys() <= public().keys()
    assert all(reason for reasons in IRRELEVANT.values() for reason in reasons.values())


class DPLogisticRegression(dpselect.DPLogisticRegression):
    def __init__(self, *, shuffled=False, classes=None):
        """Have a parameter more."""

    def fit(self, X, y, *, offsets=None):
        """Have one more here."""


def test_new_parameters_are_noticed(met):
    with pytest.raises(AssertionError, match="shuffled"):
        check_all_met("DPLogisticRegression", DPLogisticRegression, met)
    with pytest.raises(AssertionError, match="offsets"):
        check_all_met(
            "DPLogisticRegression",
            DPLogisticRegression,
            met,
            {"DPLogisticRegression": {"shuffled": "for this test"}},
        )
    with pytest.raises(AssertionError, match="by="):
        check_all_met("evaluate", lambda model, by, by_what: None, met, {"evaluate": {"by": "a reason"}})
    # a reason for what has met all others by now
    with pytest.raises(AssertionError, match="alpha"):
        check_all_met("DPRidge", dpselect.DPRidge, met, {"DPRidge": {"alpha": "none"}})
