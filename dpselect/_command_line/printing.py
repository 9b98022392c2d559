"""The output of the command for a release, as text or JSON; nothing else is printed."""

import json
import math

import numpy as np

from ..evaluation import CalibratedModel
from ..inspection.terms_display import N_POINTS, TermsDisplay
from ..model_selection.plan import SelectionPlan, plain
from ..preprocessing.schema import NumberColumn
from ..preprocessing.terms import CategoryTerm, CycleTerm, NumberTerm
from .messages import name_of, printable
from .option_words import in_options

NO_LEDGER = "No ledger counts it, and releases about the same records add up: see --ledger."
MAX_LINES = 30  # of coefficients as text; JSON has all


def not_released(search):
    """Return a sentence on what the search saw and did not release."""
    selection = [
        "the scores of the candidates",
        "the models that were trained on the splits",
    ]
    always = [
        "the noise that was drawn, and its keys",
        "the records, and any exact mean, range or count of their columns",
    ]
    if hasattr(parts(search)[1], "n_iter_"):
        always.insert(0, "the number of steps that the solver needed")
    difference = getattr(search.plan_, "minimum_detectable_difference", math.nan)
    return ([] if math.isnan(difference) else selection) + always


def to_json(task, search, plan):
    """Return the release as one line of JSON, without NaN and Infinity.

    With `schema`, `encoder`, `model`, `params` and `attributes` the model can be built again.
    """
    encoder, model = parts(search)
    params = {
        name: value
        for name, value in model.get_params().items()
        if name not in ("ledger", "random_state")
    }
    released = {
        "task": task.name,
        "target": None if task.target is None else task.target.name,
        "schema": task.schema.to_dict(),
        "plan": plan.to_dict(),
        "best_params": search.best_params_,
        "privacy": search.privacy_.to_dict(),
        "encoder": None if encoder is None else _encoder(encoder),
        "model": type(model).__name__,
        "params": params,
        "attributes": {
            name: value
            for name, value in vars(model).items()
            if name.endswith("_") and name not in ("privacy_", "feature_names_in_")
        },
        "coefficients": _coefficients(encoder, model),
        "evaluation": figures(evaluation_of(search)) if hasattr(search, "evaluation_") else None,
        "not_released": not_released(search),
    }
    return json.dumps(released, allow_nan=False, default=_plain)


def predictor(model):
    """Return the predicting object: a search, or the result of `calibrated` on it."""
    model = model.estimator if isinstance(model, CalibratedModel) else model
    return getattr(model, "best_estimator_", model)


def parts(model):
    """Return the encoder of a released model, None of a density, and the model."""
    found = predictor(model)
    return (found[0], found[-1]) if hasattr(found, "steps") else (None, found)


def evaluation_of(model, evaluation=None):
    """Return an evaluation, by default that of the search, whose positive label is the schema's second.

    The search has sorted labels, and its positive one is the second of these.
    """
    evaluation = getattr(model, "evaluation_", None) if evaluation is None else evaluation
    label = _positive(parts(model)[1])
    return evaluation if evaluation is None or label is None else evaluation.with_positive(label)


def _positive(model):
    """Return the second of two labels, in the order of the schema; None of other models."""
    labels = getattr(model, "classes", None)
    return list(labels)[1] if labels is not None and len(labels) == 2 else None


def _sign(model):
    """Return by what coefficients are multiplied, so that they speak for the positive label."""
    label = _positive(model)
    return 1 if label is None or model.classes_[1] == label else -1


def figures(evaluation):
    """Return an evaluation for JSON, with None for uninformative intervals."""
    found = {name: evaluation.metric(name) for name in evaluation.metrics}
    return {
        f"{evaluation.privacy_.adjacency.unit}s": evaluation.n_records,
        "privacy": evaluation.privacy_.to_dict(),
        "figures": {
            name: {key: plain(getattr(figure, key)) for key in ("value", "low", "high")}
            for name, figure in found.items()
        },
    }


def interval_text(pipeline, found):
    """Return what values add to a prediction, with intervals, as text."""
    unit, table = _effects(pipeline, found)
    classes = f" of {', '.join(map(printable, table))}" if hasattr(pipeline[-1], "classes_") else ""
    lines = [f"What values add to the {unit}{classes}, with intervals of 95 %"]
    names = [printable(str(name)) for name in next(iter(table.values())) if name != "offset"]
    for name in names[:MAX_LINES]:
        shown = [_interval(*row[name]) for row in table.values()]
        lines.append(f"{name:{max(map(len, names[:MAX_LINES]))}}  {'   '.join(shown)}")
    if len(names) > MAX_LINES:
        lines.append(f"and {len(names) - MAX_LINES} more; --json prints all")
    lines += [said for said in str(found).splitlines() if said.startswith("Least is known")]
    return "\n".join([*lines, str(found.privacy_)])


def _interval(value, low, high):
    return "not known" if low != low else f"{value:.4g} [{low:.4g}, {high:.4g}]"


def interval_figures(pipeline, found):
    """Return intervals for JSON, of coefficients and of what values add, None where nothing is known."""
    sign = _sign(pipeline[-1])
    low, high = (sign * end for end in found.confidence_interval()[::sign])
    unit, effects = _effects(pipeline, found)
    names = [": ".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in found.names]
    return {
        "privacy": found.privacy_.to_dict(),
        "towards": _positive(pipeline[-1]),
        "coefficients": {name: _ends(row) for name, *row in zip(names, sign * found.coef, low, high)},
        "unit": unit,
        "effects": {
            label: {name: _ends(row) for name, row in rows.items() if name != "offset"}
            for label, rows in effects.items()
        },
    }


def _ends(row):
    return dict(zip(("value", "low", "high"), map(plain, row)))


def _encoder(encoder):
    params = encoder.get_params()
    params.pop("schema", None)
    return params | ({"expansion": encoder.expansion_} if hasattr(encoder, "expansion_") else {})


def _plain(value):
    """Convert numpy's types to JSON's."""
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else str(value)


def _coefficients(encoder, model):
    """Return intercept and coefficients by class and feature; one entry for a single output."""
    if not hasattr(model, "coef_"):
        return {}
    names = ["intercept", *encoder.get_feature_names_out()]
    rows = _sign(model) * np.column_stack([np.ravel(model.intercept_), np.atleast_2d(model.coef_)])
    classes = [str(name) for name in getattr(model, "classes_", ["prediction"])][:: _sign(model)]
    return {label: dict(zip(names, row)) for label, row in zip(classes[-len(rows) :], rows.tolist())}


def _effects(pipeline, intervals=None):
    """Return the unit, and by class the effect of each value: of a number at its bounds, middle, gap.

    With `intervals` an effect is a row of it and its ends.
    """
    classes = np.asarray(getattr(pipeline[-1], "classes_", [None])).tolist()
    table, positive = {}, _positive(pipeline[-1])
    for target in classes if positive is None else [positive]:
        display = TermsDisplay.from_estimator(pipeline, target=target, intervals=intervals)
        rows = {"offset": display.offset}
        for term in display.terms:
            band = [] if intervals is None else term.band[:2]
            shown = np.array([term.effect, *band]).T if band else term.effect
            rows |= {_names_of_values(term, i): shown[i].tolist() for i in _shown(term)}
        table["prediction" if target is None else str(target)] = rows
    return display.unit.removesuffix(f" of {target}"), table


def _shown(term):
    """Return the places of the values of a term that are printed: of numbers ends, middle and gap."""
    parts, values = term.term.parts, term.values
    shown = np.ones(len(values[0]), dtype=bool)
    for part, x in zip(parts, values):
        if isinstance(part, NumberColumn) and not isinstance(term.term, CategoryTerm):
            shown &= np.isin(x, (np.nanmin(x), np.nanmax(x))) | np.isnan(x)
    # a line is 0 in the middle
    if isinstance(term.term, NumberTerm | CycleTerm) and not getattr(term.term, "is_line", False):
        shown[N_POINTS // 2] = True
    return np.flatnonzero(shown).tolist()


def _names_of_values(term, i):
    values = [x.tolist()[i] for x in term.values]
    return ", ".join(f"{part.name} {_value(x)}" for part, x in zip(term.term.parts, values))


def _value(value):
    if value is None or value != value:
        return "missing"
    return f"= {value:g}" if isinstance(value, float) else f"= {value}"


def to_text(search, counted=True):
    """Return the release as text: parameters, coefficients, loss, and what is not released.

    `counted` says whether a ledger has counted it.
    """
    uncounted = [] if counted else [NO_LEDGER]
    sections = {
        "Chosen parameters": _parameters(search),
        "Released model": _model_lines(search),
        "Privacy loss": [*str(search.privacy_).splitlines(), *uncounted],
        "Not released": not_released(search),
    }
    if hasattr(search, "evaluation_"):
        # without its loss, which the total below includes
        said = str(evaluation_of(search)).removesuffix(f"\n{search.evaluation_.privacy_}")
        sections = {**sections, "How good it is": said.splitlines()}
    return "\n\n".join(_section(title, lines) for title, lines in sections.items())


def _section(title, lines):
    return "\n".join([title, *(f"  {line}" for line in lines)])


def plan_text(plan, task=None):
    """Return the plan as text; of a task with what is predicted, and in the words of the command."""
    # no comparison of strategies, because the command does not let users choose one
    shown = plan.without_comparison() if isinstance(plan, SelectionPlan) else plan
    lines, said = str(shown).splitlines(), []
    if task is not None:
        unit = "records" if task.person is None else "persons"
        lines, said = [in_options(line, unit) for line in lines], _predicted(task)
    return _section("Plan, from public numbers alone", [*said, *lines])


def _predicted(task):
    """Return lines about what is predicted, and about categories that are easily mistaken."""
    lines = []
    if task.name == "classification":
        lines.append(f"classification: {name_of(task.target.name)} is one of {', '.join(task.classes)}")
    elif task.target is not None:
        ends = f"from {task.target.low:g} to {task.target.high:g}"
        lines.append(f"{task.name}: {name_of(task.target.name)} is a number {ends}")
        if (task.target.low, task.target.high) == (0, 1):
            lines.append('(for two classes 0 and 1 write ["0", "1"] in the schema)')
    for name, column in task.schema.columns.items():
        if alike := _alike(getattr(column, "categories", ())):
            said = ", ".join(map(repr, alike))
            lines.append(f"{name_of(name)} has categories that differ in case or blanks only: {said}")
    return lines


def _alike(categories):
    forms = ["".join(value.split()).casefold() for value in map(str, categories)]
    return [value for value, form in zip(categories, forms) if forms.count(form) > 1]


def _parameters(search):
    alone = len(getattr(search, "cv_results_", {}).get("params", ())) == 1
    remark = " (the only candidate: nothing was selected)" if alone else ""
    chosen = search.best_params_.items()
    lines = [f"{name.rpartition('__')[2]} = {value}{remark}" for name, value in chosen]
    return lines or [f"all as given{remark}"]


def _model_lines(search):
    encoder, model = parts(search)
    if encoder is None:
        cells = " x ".join(map(str, model.density_.shape))
        return [f"histogram of {cells} cells; dpselect export MODEL --output cells.csv writes them"]
    if encoder.expansion_ == "linear":
        table = _coefficients(encoder, model)
        classes = f" towards {', '.join(map(printable, table))}" if hasattr(model, "classes_") else ""
        lines = [f"coefficients{classes}"]
    else:
        unit, table = _effects(search.best_estimator_)
        classes = f" of {', '.join(map(printable, table))}" if hasattr(model, "classes_") else ""
        lines = [f"what values add to the {unit}{classes}"]
    names = [printable(str(name)) for name in next(iter(table.values()))]
    width = max(map(len, names[: MAX_LINES + 1]))
    for name, *values in list(zip(names, *(row.values() for row in table.values())))[: MAX_LINES + 1]:
        lines.append(f"{name:{width}}" + "".join(f" {value:10.4g}" for value in values))
    if len(names) > MAX_LINES + 1:
        lines.append(f"and {len(names) - MAX_LINES - 1} more; --json prints all")
    return lines
