"""The search of the command for each task, from the schema and the options alone."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..density import DPHistogramDensity
from ..linear_model import DPHuberRegressor, DPLogisticRegression, DPPoissonRegressor
from ..model_selection import AccuracyFirstSearchCV, StabilityGridSearchCV
from ..preprocessing import PublicSchema, tabular_pipeline
from ..preprocessing.schema import CategoryColumn, NumberColumn
from .file_columns import PersonColumn
from .messages import CommandError, columns_named, name_of
from .option_words import in_options
from .table_files import pandas

# where the risk is promised, alpha must not depend on epsilon
FIRST_ALPHA = 0.01
# grid size of an accuracy-first search, down to a thousandth of the largest epsilon
LEVELS = 200
# bins of each column of a density
BINS = 20


@dataclass(frozen=True)
class Task:
    """A search to fit, determined by public numbers alone.

    Attributes
    ----------
    name : str
        "classification", "regression", "counts" or "density".
    schema : PublicSchema
        Of the columns that a prediction reads.
    target : NumberColumn or CategoryColumn or None
    search : estimator
        Unfitted.
    person : PersonColumn or None
        Says whose row it is; None if each row is a person.
    weights : NumberColumn or None
        Says how often each row counts.
    """

    name: str
    schema: PublicSchema
    target: Any
    search: Any
    person: Any = None
    weights: Any = None

    @property
    def columns(self):
        """dict : All columns of the table."""
        more = [c for c in (self.target, self.person, self.weights) if c is not None]
        return {**self.schema.columns, **{column.name: column for column in more}}

    @property
    def classes(self):
        """list of str : Labels, or empty."""
        return list(map(str, self.target.categories)) if self.name == "classification" else []

    def plan(self, n_records):
        """Return the plan of the search, or name the option that breaks the guarantee."""
        density = self.name == "density"
        row = {
            name: [0.0 if density else str(c.categories[0])]
            if isinstance(c, CategoryColumn)
            else [float(c.low)]
            for name, c in self.schema.columns.items()
        }
        try:
            return self.search.plan(
                n_records,
                len(row),
                max(2, len(self.classes)),
                example=pandas().DataFrame(row),
                persons=self.person is not None,
            )
        except (ValueError, TypeError) as error:  # no record has been read yet
            raise CommandError(in_options(str(error))) from None


def make_task(schema, target, arguments):
    """Return the Task of the arguments of ``fit`` and ``plan``.

    Parameters
    ----------
    schema : PublicSchema
    target : str or None
    arguments : argparse.Namespace

    Returns
    -------
    Task

    Raises
    ------
    CommandError
        If the schema and the options do not go together.
    """
    _check_dropped(arguments.drop, schema)
    columns = {name: column for name, column in schema.columns.items() if name not in arguments.drop}
    if target is not None and target not in columns:
        raise CommandError(f"The schema has no column {name_of(target)} (--target); describe it there.")
    column = columns.pop(target, None)
    person = check_person(arguments.person, {**columns, target: column})
    name = arguments.task or ("regression" if isinstance(column, NumberColumn) else "classification")
    _check_target(name, target, column)
    if name == "density":
        _refuse_for_density(arguments)
    weights = _check_weights(arguments, {**columns, target: column, arguments.person: person})
    if not columns:
        raise CommandError("The schema has no column to predict from; say what the others can hold.")
    schema = PublicSchema({name: column.entry() for name, column in columns.items()})
    if name == "density":
        pipeline = _density(columns, arguments.bins or [BINS])
    else:
        encoded = {"expansion": arguments.expansion or "auto"}
        if arguments.lines:
            encoded = {"expansion": "linear", "categories": "onehot"}
        if arguments.learn_ranges:
            encoded["ranges"] = "auto"
        model = _model(name, column)
        _set_params(model, name, arguments)
        try:
            pipeline = tabular_pipeline(schema, model, **encoded, **_choice(schema, arguments))
        except ValueError as error:  # about the schema and the options
            raise CommandError(in_options(str(error))) from None
    return Task(name, schema, column, _search(name, pipeline, arguments), person, weights)


def _choice(schema, arguments):
    """Return the parameters of the encoder that say which columns and pairs are read."""
    listed = arguments.columns or []
    lacking = [name for name in listed if name not in schema.columns]
    columns = "first" if listed == ["first"] and lacking else listed or None
    pairs = arguments.pairs or ()
    lacking = [] if columns == "first" else lacking
    lacking += [] if pairs == "auto" else [n for pair in pairs for n in pair if n not in schema.columns]
    if lacking:
        raise CommandError(
            f"The schema has no {columns_named(list(dict.fromkeys(lacking)))} to predict from "
            "(--columns, --pairs); describe it there."
        )
    return {"columns": columns, "pairs": pairs}


def _set_params(model, name, arguments):
    """Set what options say of the model, or refuse options that it does not have."""
    if arguments.class_weight is not None:
        labels = list(model.classes) if name == "classification" else []
        if wrong := [label for label in arguments.class_weight if label not in labels]:
            raise CommandError(
                f"--class-weight has the label {name_of(wrong[0])}, which the target does not have in "
                "the schema; write labels of a classification."
            )
        model.set_params(class_weight=arguments.class_weight)
    if arguments.base_rate is not None:
        model.set_params(base_rate=_base_rate(model, name, arguments.base_rate))
    if arguments.learn_ranges and arguments.excess_risk is not None:
        raise CommandError(
            "--learn-ranges takes a tenth of a fixed epsilon, and --excess-risk looks for one; leave "
            "one out."
        )
    if arguments.max_weight is not None:
        model.set_params(max_sample_weight=arguments.max_weight)
    if arguments.delta is not None:
        if arguments.excess_risk is not None:
            raise CommandError(
                "--delta and --excess-risk do not go together, because each model that is tried could "
                "cost it; leave one out."
            )
        model.set_params(delta=arguments.delta)


def _base_rate(model, name, rate):
    """Return a public share of the second label in the schema, or a mean count, as the model has it."""
    if name == "counts":
        return rate
    labels = list(model.classes) if name == "classification" else []
    if len(labels) != 2 or not 0 < rate < 1:
        raise CommandError(
            "--base-rate is the share of the second one of two labels, between 0 and 1, or the mean of "
            "counts; write such a number, or leave it out."
        )
    return rate if labels == sorted(labels) else 1 - rate


def _check_weights(arguments, columns):
    """Return the column of weights, or None, or refuse one with another role."""
    name = arguments.weights
    if name is None:
        return None
    if name in columns:
        raise CommandError(
            f"The column {name_of(name)} (--weights) says how often a record counts, and has no other "
            "role; leave it out of the schema, or say --drop."
        )
    return NumberColumn(name, 0.0, arguments.max_weight)


def _check_dropped(drop, schema):
    """Refuse names joined by commas; other names may be columns of the file alone."""
    for name in drop:
        parts = [part.strip() for part in name.split(",")]
        if len(parts) > 1 and name not in schema.columns and set(parts) & set(schema.columns):
            raise CommandError(
                f"The schema has no column {name_of(name)} (--drop); write --drop {' '.join(parts)}."
            )


def check_person(name, columns):
    """Return the column of person ids, or None, or refuse one with another role."""
    if name is None:
        return None
    if name in columns:
        raise CommandError(
            f"The column {name_of(name)} (--person) says whose row it is, and nothing may be learned "
            "from it; leave it out of the schema, or say --drop."
        )
    return PersonColumn(name)


def _check_target(name, target, column):
    shown = f"The target {name_of(target)}"
    if name == "classification":
        if not isinstance(column, CategoryColumn) or column.missing or column.unknown:
            raise CommandError(
                f"{shown} must have its classes in the schema as texts, and nothing else, such as "
                '["0", "1"].'
            )
    elif name != "density" and (not isinstance(column, NumberColumn) or column.missing):
        raise CommandError(
            f"{shown} must have its two bounds in the schema, and no gaps, such as [0, 100]."
        )
    elif name != "density" and column.transform is not None:
        raise CommandError(
            f"{shown} has a transform in the schema, and is predicted as it is; leave the transform "
            "out, and for the mean of amounts of very different sizes, such as costs, say --task "
            "counts, or transform the column in the file, with bounds that belong to it."
        )
    if name == "counts" and column.low < 0:
        raise CommandError(f"{shown} must have bounds of 0 or more in the schema, because it counts.")


def _refuse_for_density(arguments):
    for option in (
        *("alpha", "lines", "expansion", "excess_risk", "delta", "columns"),
        *("pairs", "class_weight", "weights", "max_weight", "base_rate", "learn_ranges"),
    ):
        if getattr(arguments, option):
            weighted = " (a table with weights needs Python: DPHistogramDensity with max_sample_weight)"
            raise CommandError(
                f"--{option.replace('_', '-')} means nothing for a density; leave it out"
                f"{weighted if option == 'weights' else ''}."
            )


def _model(name, column):
    if name == "classification":
        return DPLogisticRegression(classes=list(map(str, column.categories)))
    if name == "regression":
        return DPHuberRegressor(target_range=(column.low, column.high))
    return DPPoissonRegressor(target_bound=column.high)


def _density(columns, bins):
    numbers = [name for name, column in columns.items() if isinstance(column, NumberColumn)]
    for name in numbers:
        if columns[name].missing:
            raise CommandError(
                f"The column {name_of(name)} of numbers has gaps, which are in no cell of a density; "
                "leave it out with --drop."
            )
    if len(bins) not in (1, len(numbers)):
        raise CommandError(
            f"--bins has {len(bins)} numbers, and the density is of the {columns_named(numbers)}; "
            "give one number for each, in this order, or one for all."
        )
    cells = dict(zip(numbers, bins if len(bins) > 1 else bins * len(numbers)))
    # in the units of the table, so that the cells are readable
    tiles = [
        (column.low, column.high, (column.high - column.low) / cells[name])
        if name in cells
        else (-0.5, len(column.levels) - 0.5, 1.0)
        for name, column in columns.items()
    ]
    return DPHistogramDensity(
        bounds=[(low, high) for low, high, _ in tiles], bin_width=[width for _, _, width in tiles]
    )


def coded(frame, columns):
    """Return a table of numbers: categories by their place among the levels, as densities have them.

    Parameters
    ----------
    frame : DataFrame
    columns : dict
        Of a schema, by name.
    """
    codes = {
        name: frame[name].cat.codes
        for name, column in columns.items()
        if isinstance(column, CategoryColumn)
    }
    return frame.assign(
        **{
            name: code.where(code >= 0, len(columns[name].levels) - 1).astype(float)
            for name, code in codes.items()
        }
    )


def _search(name, pipeline, arguments):
    epsilon, alphas = arguments.epsilon, arguments.alpha
    if arguments.excess_risk is not None:
        if alphas and len(alphas) > 1:
            raise CommandError(
                "--excess-risk chooses nothing but the privacy loss; give one --alpha, or none."
            )
        pipeline.set_params(model__alpha=alphas[0] if alphas else FIRST_ALPHA)
        grid = {"model__epsilon": np.geomspace(epsilon / 1000, epsilon, LEVELS)}
        return AccuracyFirstSearchCV(
            pipeline,
            grid,
            target=arguments.excess_risk,
            max_epsilon=epsilon,
            evaluation=arguments.evaluation,
        )
    grid = {} if name == "density" else {"model__alpha": alphas or ["auto"]}
    return StabilityGridSearchCV(pipeline, grid, epsilon=epsilon, evaluation=arguments.evaluation)
