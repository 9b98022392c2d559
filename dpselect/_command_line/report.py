"""What the command prints of a release: for people, or as JSON. Nothing else leaves it."""

import json
import math

from ..preprocessing.terms import CategoryTerm
from .messages import printable

MOST_LINES = 30  # of coefficients; JSON has all


def not_released(search):
    """Return what the search saw and did not release.

    Parameters
    ----------
    search : StabilityGridSearchCV
        Fitted.

    Returns
    -------
    list of str
    """
    selection = [
        "the scores of the candidates",
        "the models that were trained on the splits",
    ]
    always = [
        "the number of steps that the solver needed",
        "the noise that was drawn, and its keys",
        "the records, and any mean, range or count of their columns",
    ]
    compared = not math.isnan(search.plan_.minimum_detectable_difference)
    return (selection if compared else []) + always


def coefficients(pipeline, domains):
    """Return the coefficients by class and column.

    Parameters
    ----------
    pipeline : Pipeline
        Of :func:`.release.make_search`, fitted.
    domains : dict
        By the names of the columns.

    Returns
    -------
    dict
        Class -> column -> number, or category -> number for a categorical column, or one with gaps.
        With two classes there is one entry, for the second.
    """
    rows = zip(_positive_classes(pipeline[-1]), pipeline[-1].coef_.tolist())
    if len(pipeline) == 1:
        return {name: dict(zip(domains, row)) for name, row in rows}
    terms = pipeline[0].terms_
    return {
        name: {term.columns[0]: _by_level(term, row[term.outputs]) for term in terms}
        for name, row in rows
    }


def _by_level(term, values):
    if isinstance(term, CategoryTerm):
        return dict(zip(map(str, term.levels), values))
    return values[0] if len(values) == 1 else dict(zip(["number", "<missing>"], values))


def _positive_classes(model):
    classes = [str(name) for name in model.classes_]
    return classes[1:] if len(classes) == 2 else classes


def to_json(search, plan, domains):
    """Return the release as one line of JSON, without NaN and Infinity.

    Parameters
    ----------
    search : StabilityGridSearchCV
        Fitted.
    plan : SelectionPlan
    domains : dict

    Returns
    -------
    str
    """
    model = search.best_estimator_[-1]
    intercepts = zip(_positive_classes(model), model.intercept_)
    released = {
        "plan": plan.to_dict(),
        "best_params": search.best_params_,
        "privacy": search.privacy_.to_dict(),
        "coefficients": coefficients(search.best_estimator_, domains),
        "intercept": {name: float(value) for name, value in intercepts},
        "classes": [str(name) for name in model.classes_],
        "not_released": not_released(search),
    }
    return json.dumps(released, allow_nan=False)


def to_text(search, domains):
    """Return the release for people: parameters, coefficients, loss, what stays behind.

    Parameters
    ----------
    search : StabilityGridSearchCV
        Fitted.
    domains : dict

    Returns
    -------
    str
    """
    blocks = [
        _section("Chosen parameters", _parameters(search)),
        _section("Released model", _model_lines(search.best_estimator_, domains)),
        _section("Privacy loss", str(search.privacy_).splitlines()),
        _section("Not released", not_released(search)),
    ]
    return "\n\n".join(blocks)


def _section(title, lines):
    return "\n".join([title, *(f"  {line}" for line in lines)])


def plan_text(plan):
    """Return the plan for people."""
    return _section("Plan, from public numbers alone", str(plan).splitlines())


def _parameters(search):
    selected = len(search.cv_results_["params"]) > 1
    remark = "" if selected else " (the only candidate: nothing was selected)"
    return [
        f"{name.rpartition('__')[2]} = {value}{remark}"
        for name, value in search.best_params_.items()
    ]


def _model_lines(pipeline, domains):
    model = pipeline[-1]
    names = _positive_classes(model)
    columns = coefficients(pipeline, domains).values()
    table = [("intercept", list(model.intercept_))]
    for name, *values in zip(domains, *(c.values() for c in columns)):
        table += _entries(printable(name), values)
    width = max(len(label) for label, _ in table)
    scaled = "" if None in domains.values() else " (numeric columns scaled to [-1, 1])"
    lines = [f"coefficients towards {', '.join(map(printable, names))}{scaled}"]
    lines += [
        f"{label:{width}}" + "".join(f" {value:10.4g}" for value in values)
        for label, values in table[: MOST_LINES + 1]
    ]
    if len(table) > MOST_LINES + 1:
        lines.append(f"and {len(table) - MOST_LINES - 1} more; --json prints all")
    return lines


def _entries(name, values):
    """Return (label, one value for each class) of a column, one entry a category."""
    if isinstance(values[0], dict):
        return [
            (f"{name}={printable(category)}", [value[category] for value in values])
            for category in values[0]
        ]
    return [(name, values)]
