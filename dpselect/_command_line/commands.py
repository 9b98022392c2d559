"""The commands; each refuses what it can before a record is read."""

import csv
import io
import json
import locale
import sys

import numpy as np

from ..evaluation import CalibratedModel
from ..evaluation import evaluate as evaluate_model
from ..exceptions import AccuracyNotReachedError
from ..ledger import is_ledger_file
from ..linear_model import coef_interval
from ..metrics.scores import target_range
from ..preprocessing import schema_template
from ..preprocessing.schema import CategoryColumn, NumberColumn
from ..preprocessing.table_cells import as_number
from ..records.persons import Persons, adjacency_of
from ..report import privacy_report
from . import printing
from .file_columns import KeptColumn
from .files import ExportFile, ModelFile, OutputFile, PlanFile, ReportFile, write_all
from .ledger_command import charged_to, create_ledger, open_ledger, spend
from .ledger_command import to_text as ledger_text
from .messages import LOGGER, CommandError, columns_named, name_of, say_note
from .models import load_model
from .option_words import in_options
from .table_files import (
    YEAR,
    check_dropped,
    found_format,
    is_no_name,
    pandas,
    read_header,
    read_schema,
    read_table,
    refuse_foreign_numbers,
)
from .tasks import check_person, coded, make_task
from .text_files import TextFormat, written

FORMULAS = ("=", "+", "-", "@")
FILL_IN = (
    "In place of each null write the bounds of a column of numbers, such as [0, 120], or all categories "
    'as texts, such as ["yes", "no"]; where values may be missing, {"bounds": [0, 120], "missing": '
    'true} or {"categories": ["yes", "no"], "missing": true}. Never look them up in the records. Leave '
    'ids and free texts out (--drop), and of dates say {"date": ["2015-01-01", "2026-12-31"]}.'
)


def schema(arguments):
    """Write a schema to fill in, or check one against the column names of a file."""
    output = _output(arguments)
    found = read_header(arguments.file, text_format(arguments))
    check_dropped(arguments.drop, found, arguments.file)
    names = list(dict.fromkeys(name for name in found if name not in ("", *arguments.drop)))
    _check_names(names, arguments.file)
    if twice := [name for name in names if found.count(name) > 1]:
        names = [name for name in names if name not in twice]
        say_note(
            f"The {columns_named(twice)} is there more than once, and the schema leaves it out; give "
            "each column a name of its own to use it."
        )
    if arguments.check is None:
        # what a shell makes of other letters when it writes a file is not known
        escaped = output is None and locale.getencoding().lower() not in ("utf-8", "utf8")
        _write(output, json.dumps(schema_template(names), indent=1, ensure_ascii=escaped))
        say_note(FILL_IN)
        return
    known = read_schema(arguments.check).columns
    known = {name: column for name, column in known.items() if name not in arguments.drop}
    lacking, more = [n for n in names if n not in known], [n for n in known if n not in names]
    wrong = [f"it lacks the {columns_named(lacking)}, which --drop leaves out"] if lacking else []
    wrong += [f"the records lack its {columns_named(more)}"] if more else []
    if wrong:
        raise CommandError(f"The schema {name_of(arguments.check)} does not fit: {'; '.join(wrong)}.")
    frame = read_table(arguments.file, known, text_format(arguments), others="left out", few=1)
    refuse_foreign_numbers(frame, known, arguments.file)
    print(
        f"The schema {name_of(arguments.check)} has all {len(names)} columns of "
        f"{name_of(arguments.file)}, and every cell is what it says."
    )


def _check_names(names, path):
    """Refuse a header that is a record, whose cells must not get into a schema."""
    if not names:
        raise CommandError(f"The file {name_of(path)} has no column that has a name of its own.")
    years = [name for name in names if YEAR.fullmatch(name)]
    if any(map(is_no_name, names)) or len(years) == len(names):
        raise CommandError(
            f"The file {name_of(path)} has a number for the name of a column, as if there "
            "were no header; its first row must hold the names."
        )
    if years:
        say_note(
            f"The {columns_named(years)} is named by a number; if the file has no header, its first "
            "record is in this schema: delete it then, and give the file a header."
        )


def plan(arguments):
    """Print the loss that a fit would spend; no file of records is needed."""
    output = None if arguments.output is None else PlanFile(arguments.output, arguments.force)
    ledger = _ledger(arguments, arguments.person)
    task = make_task(read_schema(arguments.schema), arguments.target, arguments)
    planned = task.plan(arguments.records)
    if ledger is not None and not hasattr(planned, "loss"):
        raise CommandError(
            "--ledger counts releases of a fixed epsilon, and --excess-risk looks for one; leave it out."
        )
    if output is not None:
        output.write_plan(planned, ledger)
        say_note(f"The page of the plan is {name_of(arguments.output)}.")
    carried = None if ledger is None else ledger.carries(planned.loss)
    if arguments.json:
        more = {} if ledger is None else {"carried": carried}
        print(json.dumps({**planned.to_dict(), **more}, allow_nan=False))
        return
    print(printing.plan_text(planned, task))
    if ledger is not None:
        print(f"{name_of(arguments.ledger)} ({ledger}) pays for {carried} such releases.")


def fit(arguments):
    """Read, plan, fit, save and print."""
    model_file = ModelFile(arguments.save, arguments.force) if arguments.save else None
    report = _report_file(arguments)
    ledger = _ledger(arguments, arguments.person)
    if ledger is not None and not (arguments.save or arguments.json or arguments.report):
        raise CommandError(
            "--ledger pays for a model that only the printed text would keep; give --save MODEL, or "
            "--report or --json."
        )
    task = make_task(read_schema(arguments.schema), arguments.target, arguments)
    frame = read_table(arguments.file, task.columns, text_format(arguments), arguments.drop)
    refuse_foreign_numbers(frame, task.columns, arguments.file)
    given = _persons_and_weights(frame, task, arguments.file)
    planned = task.plan(Persons.of(given["groups"], frame).n if "groups" in given else len(frame))
    if not arguments.json:
        print(printing.plan_text(planned, task), end="\n\n", flush=True)
    X, y = frame[list(task.schema.columns)], None
    if task.name == "density":
        X = coded(X, task.schema.columns)
    if task.target is not None:
        y = frame[task.target.name].to_numpy()
    search = task.search
    try:
        with charged_to(ledger):
            search.fit(X, y.astype(str) if task.classes else y, **given)
    except AccuracyNotReachedError as error:
        raise CommandError(
            f"No model was found whose risk is at most {arguments.excess_risk:g} above the least; "
            f"finding that out has cost epsilon={error.privacy.epsilon:.6g}, so give a larger "
            "--excess-risk, a larger --epsilon or more records."
        ) from None
    writes = [lambda: model_file.write_model(search)] if model_file else []
    if report:
        stated = {"evaluation": printing.evaluation_of(search), "about": arguments.about}
        writes.append(lambda: report.write_report(privacy_report(search, ledger, **stated)))
    try:
        write_all(*writes)
    finally:
        # the loss was spent even if a file could not be written, so print the release
        if arguments.json:
            print(printing.to_json(task, search, planned))
        else:
            print(printing.to_text(search, counted=ledger is not None))


def _persons_and_weights(frame, task, path):
    """Return parameters of a fit, and take the persons out of the table."""
    given = {} if task.person is None else {"groups": frame.pop(task.person.name).to_numpy()}
    if task.weights is not None:
        weight = frame[task.weights.name].to_numpy()
        if (weight < 0).any():
            raise CommandError(
                f"The file {name_of(path)} does not fit: its column {name_of(task.weights.name)} "
                "(--weights) holds a negative number."
            )
        given["model__sample_weight"] = weight
    return given


def predict(arguments):
    """Write predictions, one line a record."""
    output, model = _output(arguments), _model(arguments)
    task = "probabilities" if arguments.probabilities else "prediction"
    if arguments.probabilities and not hasattr(model, "predict_proba"):
        raise CommandError("--probabilities needs a classifier; leave it out.")
    if arguments.threshold is not None and (
        not hasattr(model, "predict_proba") or len(model.classes_) > 2
    ):
        raise CommandError("--threshold needs a classifier of two classes; leave it out.")
    positive = None if arguments.threshold is None else _positive(model, arguments.positive)
    kept = _kept(arguments)
    X = _rows(model, arguments)
    if arguments.outside:
        _say_outside(X, _columns(model, arguments))
    LOGGER.info("predicting")
    if not hasattr(model, "predict"):
        found = {"log_density": model.score_samples(X)}
    elif arguments.threshold is not None:
        found = {"prediction": _above(model, X, positive, arguments.threshold)}
    elif task == "prediction":
        found = {"prediction": model.predict(X)}
    else:
        found = dict(zip(map(str, model.classes_), model.predict_proba(X).T))
    if twice := [name for name in kept if name in found]:
        raise CommandError(
            f"The {columns_named(twice)} (--keep) would have the name of a prediction; leave that out."
        )
    _say_formulas([*kept, *found, *getattr(model, "classes_", ())])
    stream, form = io.StringIO(), found_format(arguments.file, text_format(arguments))
    writer = csv.writer(stream, delimiter=form.separator, lineterminator="\n")
    writer.writerow([*kept, *found])
    columns = (written(column, form) for column in found.values())
    writer.writerows(zip(*kept.values(), *columns))
    _write(output, stream.getvalue().rstrip("\n"))


def _positive(model, given):
    """Return the index of the positive class: the one named, or the second of the schema."""
    labels = list(map(str, model.classes_))
    listed = getattr(printing.parts(model)[1], "classes", None)
    label = given if given is not None else str(labels[1] if listed is None else list(listed)[1])
    if label not in labels:
        raise CommandError(
            f"The model does not predict {name_of(label)} (--positive); write one of its two labels."
        )
    return labels.index(label)


def _above(model, X, positive, threshold):
    """Return the positive label where its probability is above a threshold, else the other one."""
    say_note(
        f"{name_of(model.classes_[positive])} is predicted where its probability is above {threshold:g}."
    )
    above = model.predict_proba(X)[:, positive] > threshold
    return model.classes_[np.where(above, positive, 1 - positive)]


def export(arguments):
    """Write a model for programs without dpselect, or the cells of a density."""
    output, model = ExportFile(arguments.output, arguments.force), _model(arguments)
    output.write_export(model, _columns(model, arguments))


def evaluate(arguments):
    """Release figures of a model on records that it has not seen."""
    report = _report_file(arguments)
    ledger, model = _ledger(arguments, arguments.person), _model(arguments)
    frame, y, ends, more = _judged(model, arguments)
    LOGGER.info("predicting")
    with charged_to(ledger):
        found = evaluate_model(model, frame, y, epsilon=arguments.epsilon, target_range=ends, **more)
    found = printing.evaluation_of(model, found)
    try:
        if report is not None:
            report.write_report(privacy_report(model, ledger, evaluation=found, about=arguments.about))
    finally:
        print(
            json.dumps(printing.figures(found), allow_nan=False)
            if arguments.json
            else f"{found}\nIt holds if none of these records trained the model. That cannot be "
            "checked, because a model keeps no trace of its records."
        )


def intervals(arguments):
    """Release confidence intervals of the coefficients of a model."""
    report = _report_file(arguments)
    ledger, model = _ledger(arguments, arguments.person), _model(arguments)
    trained = printing.predictor(model)
    search = model.estimator if isinstance(model, CalibratedModel) else model
    n_samples = getattr(getattr(search, "plan_", None), "n_samples", None)
    if n_samples is None or not hasattr(trained, "steps"):
        raise CommandError(
            "Intervals need a model of dpselect fit that has coefficients, not a density."
        )
    weights = getattr(trained[-1], "max_sample_weight", None)
    if (weights is None) != (arguments.weights is None):
        raise CommandError(
            "--weights is missing, and the model was fitted with weights; name the column."
            if arguments.weights is None
            else "--weights means nothing to a model that was fitted without; leave it out."
        )
    column = (
        {} if weights is None else {arguments.weights: NumberColumn(arguments.weights, 0.0, weights)}
    )
    frame, y, _, more = _judged(model, arguments, column)
    for name in column:
        more["sample_weight"] = frame.pop(name).to_numpy()
    try:
        with charged_to(ledger):
            found = coef_interval(
                trained, frame, y, epsilon=arguments.epsilon, n_samples=n_samples, **more
            )
    except (TypeError, ValueError) as error:  # about the model and public numbers
        raise CommandError(in_options(str(error))) from None
    try:
        if report is not None:
            report.write_report(privacy_report(found, ledger, about=arguments.about))
    finally:
        print(
            json.dumps(printing.interval_figures(trained, found), allow_nan=False)
            if arguments.json
            else f"{printing.interval_text(trained, found)}\nThe loss of the model is not in it. Of the "
            "records that trained the model, both losses add up."
        )


def report(arguments):
    """Write the privacy statement of a saved model, or the report of a ledger."""
    output = ReportFile("--output", arguments.output, arguments.force) if arguments.output else None
    ledger = open_ledger(arguments.ledger) if arguments.ledger else None
    of_ledger = is_ledger_file(arguments.model)
    if of_ledger and ledger is not None:
        raise CommandError(
            "--ledger goes with a model, and a report of a ledger is about all of its entries; leave it "
            "out."
        )
    subject = open_ledger(arguments.model) if of_ledger else _model(arguments)
    said = privacy_report(subject, ledger, about=arguments.about)
    if output is None:
        print(said)
    else:
        output.write_report(said)


def ledger(arguments):
    """Create, show or use the ledger of a data set."""
    if arguments.action == "create":
        found = create_ledger(
            arguments.ledger,
            arguments.epsilon,
            arguments.delta,
            arguments.persons,
            arguments.composition,
        )
    else:
        found = open_ledger(arguments.ledger)
    if arguments.action == "spend":
        spend(found, arguments.epsilon, arguments.delta, arguments.label, arguments.rows_per_person)
    print(found.to_json() if getattr(arguments, "json", False) else ledger_text(found))


COMMANDS = {
    "schema": schema,
    "plan": plan,
    "fit": fit,
    "predict": predict,
    "export": export,
    "evaluate": evaluate,
    "intervals": intervals,
    "report": report,
    "ledger": ledger,
}


def text_format(arguments):
    """Return how the file of records is written."""
    return TextFormat(
        arguments.separator,
        arguments.encoding,
        arguments.decimal or ".",
        arguments.thousands or "",
        arguments.date_format,
    )


def _ledger(arguments, person):
    if arguments.ledger is None:
        for name in ("label", "user"):
            if getattr(arguments, name) is not None:
                raise CommandError(
                    f"--{name} needs --ledger, where it is kept; leave it out, or give both."
                )
        return None
    ledger = open_ledger(arguments.ledger, arguments.label, arguments.user)
    adjacency = adjacency_of(person is not None)
    if ledger.adjacency != adjacency:
        raise CommandError(
            f"{name_of(arguments.ledger)} counts losses for the adjacency '{ledger.adjacency}', and "
            f"this release is for '{adjacency}': --person COL and a ledger made with --persons go "
            "together."
        )
    return ledger


def _target(model, name):
    """Return the target column of a saved model, or None, and the range of a regression."""
    if not hasattr(model, "predict"):
        if name is not None:
            raise CommandError("--target means nothing for a density; leave it out.")
        return None, None
    if name is None:
        raise CommandError("--target is missing; it names the column with what is right.")
    if hasattr(model, "classes_"):
        return CategoryColumn(name, tuple(map(str, model.classes_))), None
    ends = target_range(printing.parts(model)[1])
    return NumberColumn(name, *ends), ends


def _judged(model, arguments, more=()):
    """Return rows, labels or targets, the range of a regression, and `groups` in a dict."""
    target, ends = _target(model, arguments.target)
    more = dict(more) if target is None else {**dict(more), target.name: target}
    person = check_person(arguments.person, _columns(model, arguments) | more)
    if person is not None:
        more[person.name] = person
    frame = _rows(model, arguments, more)
    groups = {} if person is None else {"groups": frame.pop(person.name).to_numpy()}
    y = None if target is None else frame.pop(target.name).to_numpy()
    if ends is None and y is not None:
        # labels in a file are texts, but those of a model made in Python may be of other types
        y = model.classes_[pandas().Index(target.categories).get_indexer(y.astype(str))]
    return frame, y, ends, groups


def _rows(model, arguments, more=()):
    """Return the columns that a saved model reads, by name, without others of the file."""
    columns = _columns(model, arguments) | dict(more)
    frame = read_table(arguments.file, columns, text_format(arguments), others="left out", few=1)
    encoder, _ = printing.parts(model)
    if encoder is None:
        frame = coded(frame, columns)
    names = getattr(encoder, "feature_names_in_", [])
    # columns that the encoder ignores stay empty
    return frame if set(names) <= set(columns) else frame.reindex(columns=[*names, *more])


def _kept(arguments):
    """Return the cells of copied columns, by name."""
    found = read_header(arguments.file, text_format(arguments)) if arguments.keep else []
    if lacking := [name for name in arguments.keep if name not in found]:
        raise CommandError(
            f"The file {name_of(arguments.file)} lacks the {columns_named(lacking)} (--keep)."
        )
    columns = {name: KeptColumn(name) for name in arguments.keep}
    frame = columns and read_table(
        arguments.file, columns, text_format(arguments), others="left out", few=1
    )
    return {name: frame[name].tolist() for name in columns}


def _say_outside(X, columns):
    """Note how many values of each column count as the nearer bound."""
    numbers = {name: column for name, column in columns.items() if isinstance(column, NumberColumn)}
    for name, column in numbers.items():
        cells = X[name].to_numpy()
        n = np.count_nonzero((cells < column.low) | (cells > column.high))
        say_note(f"{n} of {len(cells)} values of the column {name_of(name)} are beyond its bounds.")


def _say_formulas(names):
    """Note public names of a model or a header that a spreadsheet would run as formulas."""
    if any(str(name).startswith(FORMULAS) and as_number(str(name)) is None for name in names):
        say_note(
            "A label or the name of a column begins as a formula does (=, +, - or @), and formulas "
            "in a spreadsheet can run programs; import the predictions as text."
        )


def _columns(model, arguments):
    encoder, _ = printing.parts(model)
    if encoder is None:
        return _density_columns(model, arguments)
    if arguments.schema is not None:
        raise CommandError("--schema means nothing here, as the model has its schema; leave it out.")
    return dict(encoder.schema_.columns)


def _density_columns(model, arguments):
    """Return the columns of a density, with the categories of the schema, if one is given."""
    _, density = printing.parts(model)
    known = {} if arguments.schema is None else read_schema(arguments.schema).columns
    columns = {
        str(name): NumberColumn(str(name), edges[0], edges[-1])
        for name, edges in zip(getattr(density, "feature_names_in_", []), density.bin_edges_)
    }
    for name, edges in zip(columns, density.bin_edges_):
        column = known.get(name)
        if isinstance(column, CategoryColumn):
            if np.shape(edges) != (len(column.levels) + 1,) or edges[0] != -0.5:
                raise CommandError(
                    f"The column {name_of(name)} of the density has other cells than the schema has "
                    "categories; give the schema of the fit."
                )
            columns[name] = column
    return columns


def _model(arguments):
    return load_model(arguments.model, arguments.trust_pickle)


def _report_file(arguments):
    if arguments.report is None:
        return None
    return ReportFile("--report", arguments.report, arguments.force, paid_for=True)


def _output(arguments):
    if arguments.output is None:
        return None
    return OutputFile("--output", arguments.output, arguments.force)


def _write(output, text):
    if output is not None:
        output.write(text + "\n")
        return
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        raise CommandError(
            "The output has letters that this terminal cannot show; give --output FILE, which will be "
            "UTF-8."
        ) from None
    print(text)
