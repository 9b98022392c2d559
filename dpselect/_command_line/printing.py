"""What the command prints of a release: for people, or as JSON. Nothing else leaves it."""

import json
import math

import numpy as np

from .messages import printable

MOST_LINES = 30  # of coefficients; JSON has all


def not_released(search):
    """Return what the search saw and did not release, in words."""
    selection = [
        "the scores of the candidates",
        "the models that were trained on the splits",
    ]
    always = [
        "the number of steps that the solver needed",
        "the noise that was drawn, and its keys",
        "the records, and any mean, range or count of their columns",
    ]
    difference = getattr(search.plan_, "minimum_detectable_difference", math.nan)
    return ([] if math.isnan(difference) else selection) + always


def to_json(task, search, plan):
    """Return the release as one line of JSON, without NaN and Infinity.

    With `schema`, `encoder`, `model`, `params` and `attributes` the model can be built again.
    """
    model = search.best_estimator_[-1]
    params = {name: value for name, value in model.get_params().items()
              if name not in ("ledger", "random_state")}
    released = {
        "task": task.name,
        "target": None if task.target is None else task.target.name,
        "schema": task.schema.to_dict(),
        "plan": plan.to_dict() if hasattr(plan, "to_dict") else list(plan.messages),
        "best_params": search.best_params_,
        "privacy": search.privacy_.to_dict(),
        "encoder": _encoder(search.best_estimator_[0]),
        "model": type(model).__name__,
        "params": params,
        "attributes": {
            name: value for name, value in vars(model).items()
            if name.endswith("_") and name != "privacy_" and not name.startswith("_")
        },
        "coefficients": _coefficients(search.best_estimator_),
        "not_released": not_released(search),
    }
    return json.dumps(released, allow_nan=False, default=_plain)


def _encoder(encoder):
    params = encoder.get_params()
    params.pop("schema", None)
    return params | ({"expansion": encoder.expansion_} if hasattr(encoder, "expansion_") else {})


def _plain(value):
    """Return what numpy holds as JSON keeps it."""
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else str(value)


def _coefficients(pipeline):
    """Return intercept and coefficients by class and feature; with one output there is one entry."""
    model = pipeline[-1]
    if not hasattr(model, "coef_"):
        return {}
    names = ["intercept", *pipeline[0].get_feature_names_out()]
    rows = np.column_stack([np.ravel(model.intercept_), np.atleast_2d(model.coef_)])
    classes = [str(name) for name in getattr(model, "classes_", ["prediction"])]
    return {
        label: dict(zip(names, row)) for label, row in zip(classes[-len(rows):], rows.tolist())
    }


def to_text(search):
    """Return the release for people: parameters, coefficients, loss, what stays behind."""
    return "\n\n".join([
        _section("Chosen parameters", _parameters(search)),
        _section("Released model", _model_lines(search.best_estimator_)),
        _section("Privacy loss", str(search.privacy_).splitlines()),
        _section("Not released", not_released(search)),
    ])


def _section(title, lines):
    return "\n".join([title, *(f"  {line}" for line in lines)])


def plan_text(plan):
    """Return the plan for people."""
    return _section("Plan, from public numbers alone", str(plan).splitlines())


def _parameters(search):
    alone = len(getattr(search, "cv_results_", {}).get("params", ())) == 1
    remark = " (the only candidate: nothing was selected)" if alone else ""
    chosen = search.best_params_.items()
    lines = [f"{name.rpartition('__')[2]} = {value}{remark}" for name, value in chosen]
    return lines or [f"all as given{remark}"]


def _model_lines(pipeline):
    table = _coefficients(pipeline)
    if not table:
        return [f"{type(pipeline[-1]).__name__} of {pipeline[0].n_features_in_} columns"]
    lines = [f"coefficients towards {', '.join(map(printable, table))}"]
    names = [printable(str(name)) for name in next(iter(table.values()))]
    width = max(map(len, names[: MOST_LINES + 1]))
    for name, *values in list(zip(names, *(row.values() for row in table.values())))[: MOST_LINES + 1]:
        lines.append(f"{name:{width}}" + "".join(f" {value:10.4g}" for value in values))
    if len(names) > MOST_LINES + 1:
        lines.append(f"and {len(names) - MOST_LINES - 1} more; --json prints all")
    return lines
