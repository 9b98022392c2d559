"""The arguments of the command, all checked before any file is read."""

import argparse
from importlib.metadata import version

from ..accounting.filters import COMPOSITIONS
from .file_names import refuse_shared_files
from .messages import CommandError, printable
from .option_values import CHECKS

DESCRIPTION = (
    "From a table of sensitive records to a model that can be handed over, under one stated privacy "
    "loss. "
    "Without arguments: a demonstration on public data."
)
EPILOG = (
    "A beginning: 'dpselect schema records.csv > schema.json' writes a schema to fill in; 'dpselect "
    "plan' says "
    "what a fit would spend; 'dpselect fit' makes a release."
)
SCHEMA_HELP = (
    "what is public of each column, a JSON object: "
    '{"age": [0, 120], "grade": ["1", "2", "3"], "income": '
    '{"bounds": [0, 1e6], "transform": "log1p", "missing": true}}; never looked up in the records'
)
TASKS = ("classification", "regression", "counts", "density")


class _Parser(argparse.ArgumentParser):
    """A parser that reports a mistake as one sentence, without the usage."""

    def error(self, message):
        # argparse quotes arguments as they are, and those can hold line breaks
        raise CommandError(f"{printable(message)}; see {self.prog} --help.")


def parse(argv):
    """Return the checked arguments of the command, with its name in `command`.

    Parameters
    ----------
    argv : list of str

    Returns
    -------
    argparse.Namespace

    Raises
    ------
    CommandError
        If an argument is missing, unknown or out of range.
    """
    parser = _Parser(prog="dpselect", description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=version("dpselect"))
    commands = parser.add_subparsers(dest="command", parser_class=_Parser, metavar="COMMAND")
    for name, (add, text) in COMMANDS.items():
        command = commands.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False
        )
        add(command)
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:
        shown = " ".join(filter(None, [parser.prog, arguments.command]))
        raise CommandError(
            printable(f"unrecognized arguments: {' '.join(unknown)}; see {shown} --help.")
        )
    return _checked(arguments)


def _checked(arguments):
    for name, check in CHECKS.items():
        if getattr(arguments, name, None) is not None:
            setattr(arguments, name, check(f"--{name.replace('_', '-')}", getattr(arguments, name)))
    if arguments.command in ("fit", "plan"):
        _check_task(arguments)
    if getattr(arguments, "positive", None) is not None and arguments.threshold is None:
        raise CommandError("--positive means nothing without --threshold; leave it out, or give both.")
    if getattr(arguments, "probabilities", False) and arguments.threshold is not None:
        raise CommandError("--threshold decides, and --probabilities does not; leave one out.")
    if getattr(arguments, "composition", None) == "renyi" and not arguments.delta:
        raise CommandError(
            "--composition renyi needs a --delta above 0, such as 1e-6, because "
            "divergences say nothing without one."
        )
    if getattr(arguments, "about", None) is not None and not getattr(arguments, "report", True):
        raise CommandError("--about needs --report, where it is said; leave it out, or give both.")
    _check_marks(arguments)
    refuse_shared_files(arguments)
    return arguments


def _check_task(arguments):
    if arguments.target is None and arguments.task != "density":
        raise CommandError("--target is missing; it names the column to predict.")
    if arguments.target is not None and arguments.task == "density":
        raise CommandError("--target means nothing for a density; leave it out.")
    if arguments.bins is not None and arguments.task != "density":
        raise CommandError("--bins means nothing without --task density; leave it out.")
    if arguments.lines and arguments.expansion is not None:
        raise CommandError("--lines has no curves, and --expansion says how many; leave one out.")
    if (arguments.weights is None) != (arguments.max_weight is None):
        raise CommandError(
            "--weights and --max-weight go together, because without a bound one record could count "
            "for any number; give both, or leave both out."
        )


def _check_marks(arguments):
    marks = [getattr(arguments, name, None) for name in ("decimal", "thousands", "separator")]
    marks[0] = marks[0] or "."
    if len(set(filter(None, marks))) < len(list(filter(None, marks))):
        raise CommandError(
            "--decimal, --thousands and --separator must be different marks; without --decimal that is "
            "a point."
        )


def _fit(parser):
    _file(parser)
    _drop(parser)
    _task(parser)
    _person(parser)
    parser.add_argument("--save", metavar="MODEL", help="write the model: .skops or .pkl")
    parser.add_argument(
        "--report", metavar="FILE", help="write the privacy statement: .html, .md or .json"
    )
    _about(parser)
    _ledger(parser)
    _json(parser)
    _force(parser)


def _about(parser):
    parser.add_argument(
        "--about",
        metavar="TEXT",
        help="name of the records and of who is responsible for them, for the statement",
    )


def _plan(parser):
    _task(parser)
    _drop(parser)
    _person(parser)
    parser.add_argument(
        "--records",
        metavar="N",
        required=True,
        help="how many records there will be; with --person, how many persons",
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="write a page with controls for epsilon, records, columns and delta (.html), or its "
        "numbers (.json)",
    )
    parser.add_argument(
        "--ledger",
        metavar="LEDGER",
        help="a budget: say how many such releases it pays for; none is made",
    )
    parser.set_defaults(label=None, user=None)
    _force(parser)
    _json(parser)


def _task(parser):
    parser.add_argument("--schema", metavar="JSON", required=True, help=SCHEMA_HELP)
    parser.add_argument("--target", metavar="COL", help="column to predict")
    parser.add_argument(
        "--epsilon", metavar="E", required=True, help="privacy loss of all that is released"
    )
    parser.add_argument(
        "--task",
        choices=TASKS,
        help="default: classification for a target with categories, regression for one with bounds",
    )
    parser.add_argument(
        "--alpha",
        nargs="+",
        metavar="A",
        help="strengths of the regularisation to choose from; without it, or with one, "
        "nothing is selected and the model gets the whole epsilon",
    )
    parser.add_argument(
        "--lines",
        action="store_true",
        help="numbers add straight lines to a prediction, and not curves: one "
        "coefficient for each number and each category; for intervals take --expansion linear",
    )
    parser.add_argument(
        "--expansion",
        metavar="K",
        help="cosines in the curve of each number, or linear; default: by the schema and public numbers",
    )
    parser.add_argument(
        "--evaluation",
        metavar="SHARE",
        help="of the records that say how good the "
        "model is and do not train it, such as 0.2; the same privacy loss covers both",
    )
    parser.add_argument(
        "--delta",
        metavar="D",
        help="chance with which the promise may fail, such as 1e-6, for less noise; default: 0",
    )
    parser.add_argument(
        "--columns",
        nargs="+",
        metavar="COL",
        help="columns that a prediction reads, or first, for a schema in the order of importance: as "
        "many as the records can support; default: all of the schema",
    )
    parser.add_argument(
        "--pairs",
        nargs="+",
        action="append",
        metavar="COL",
        help="two columns with an interaction, such as --pairs hour weekday; once for each pair, or "
        "--pairs auto",
    )
    parser.add_argument(
        "--learn-ranges",
        action="store_true",
        help="learn narrower bounds of numbers within those of the schema, for a tenth of epsilon, if "
        "public numbers say that they can be known; for bounds that are much too wide",
    )
    parser.add_argument(
        "--base-rate",
        metavar="P",
        help="public guess of the share of the second label in the schema, such as 0.05, or of the mean "
        "of counts; default: learned for a little of epsilon if that pays",
    )
    parser.add_argument(
        "--class-weight",
        nargs="+",
        metavar="LABEL=W",
        help="how often a record of a label counts, such as ill=5; 1 for others",
    )
    parser.add_argument(
        "--weights",
        metavar="COL",
        help="column that says how often a record counts; takes --max-weight",
    )
    parser.add_argument(
        "--max-weight",
        metavar="W",
        help="to which weights are clipped: a public number that few exceed",
    )
    parser.add_argument(
        "--bins",
        nargs="+",
        metavar="K",
        help="of a density: cells for "
        "each column, one number for all or one for each, in the order of the schema; "
        "default: 20",
    )
    parser.add_argument(
        "--excess-risk",
        metavar="R",
        help="accuracy first: the smallest privacy "
        "loss, of at most E, that can be shown to bring the risk of the model (its mean "
        "loss with the penalty) within R of the least that there is; takes one --alpha",
    )


def _person(parser):
    parser.add_argument(
        "--person",
        metavar="COL",
        help="column with the id of the person whose row it "
        "is: protected then are all rows of a person, who counts as one record",
    )


def _schema(parser):
    _file(parser)
    _drop(parser)
    parser.add_argument(
        "--check", metavar="JSON", help="name all mistakes of a schema in place of writing one"
    )
    _output(parser)


def _predict(parser):
    _model(parser)
    _categories(parser)
    _file(parser)
    parser.add_argument("--probabilities", action="store_true", help="one column for each class")
    parser.add_argument(
        "--threshold",
        metavar="P",
        help="of two classes predict the positive one where its probability is above P, such as 0.3; "
        "default: 0.5, or what the model has",
    )
    parser.add_argument(
        "--positive",
        metavar="LABEL",
        help="of --threshold; default: the second one in the schema of the fit",
    )
    parser.add_argument(
        "--keep",
        nargs="+",
        metavar="COL",
        default=[],
        help="columns of the file to copy beside the predictions, such as an id",
    )
    parser.add_argument(
        "--outside",
        action="store_true",
        help="note how many values of each column are beyond its bounds: exact, so for you alone",
    )
    _output(parser)


def _export(parser):
    _model(parser)
    _categories(parser)
    parser.add_argument(
        "--output",
        metavar="FILE",
        required=True,
        help="for those without dpselect: "
        ".onnx, or .skops of scikit-learn's own classes; .csv with the cells of a "
        "density",
    )
    _force(parser)


def _evaluate(parser):
    _judged(parser, "evaluation", "model, with its evaluation")


def _intervals(parser):
    _judged(parser, "intervals", "intervals")
    parser.add_argument(
        "--weights", metavar="COL", help="column with the weights, of a model that was fitted with some"
    )


def _judged(parser, release, stated):
    _model(parser)
    _categories(parser)
    _file(parser)
    parser.add_argument("--target", metavar="COL", help="column with what is right; a density has none")
    parser.add_argument("--epsilon", metavar="E", required=True, help=f"privacy loss of the {release}")
    _person(parser)
    parser.add_argument(
        "--report",
        metavar="FILE",
        help=f"write the privacy statement of the {stated}: .html, .md or .json",
    )
    _about(parser)
    _ledger(parser)
    _json(parser)
    _force(parser)


def _report(parser):
    _model(parser, "; or a ledger, of which all entries are told")
    parser.add_argument("--ledger", metavar="LEDGER", help="whose state is told")
    _about(parser)
    parser.add_argument("--output", metavar="FILE", help=".html, .md or .json; default: printed")
    _force(parser)


def _ledgers(parser):
    actions = parser.add_subparsers(dest="action", parser_class=_Parser, required=True, metavar="ACTION")
    for name, text in (
        ("create", "make the budget of one data set"),
        ("show", "what was spent, and what is left"),
        ("spend", "count a release that was made elsewhere"),
    ):
        action = actions.add_parser(name, help=text, allow_abbrev=False)
        action.add_argument("ledger", metavar="LEDGER")
        if name != "show":
            action.add_argument("--epsilon", metavar="E", required=True)
            action.add_argument("--delta", metavar="D", default="0", help="default: 0")
        if name == "create":
            action.add_argument(
                "--persons",
                action="store_true",
                help="a budget of persons with all their rows, for releases with --person",
            )
            action.add_argument(
                "--composition",
                choices=COMPOSITIONS,
                help="how losses add up; renyi, "
                "with a --delta, is for many releases with Gaussian noise; default: sum",
            )
        if name == "spend":
            action.add_argument("--label", metavar="TEXT", required=True, help="what was released")
            action.add_argument(
                "--rows-per-person",
                metavar="C",
                help="in a budget of persons: E and D "
                "are those of a row, and nobody has more than C, which is public",
            )
        else:
            _json(action)


def _file(parser):
    parser.add_argument(
        "file",
        metavar="FILE",
        help="the records, with names of columns: .csv, .tsv "
        "or .txt "
        "(also .gz, .bz2 or .xz), or .parquet",
    )
    parser.add_argument(
        "--separator", metavar="S", help="of the columns; default: found in the first line"
    )
    parser.add_argument(
        "--encoding", metavar="E", help="of a text file, such as cp1252; default: utf-8, or as marked"
    )
    parser.add_argument("--decimal", metavar="D", help="mark before decimals; default: a point")
    parser.add_argument("--thousands", metavar="T", help="mark between thousands; default: none")
    parser.add_argument(
        "--date-format",
        metavar="F",
        help="of dates, such as %%d.%%m.%%Y; default: what the schema says, or 2026-12-31",
    )


def _drop(parser):
    parser.add_argument("--drop", nargs="+", metavar="COL", default=[], help="columns to leave out")


def _model(parser, others=""):
    parser.add_argument(
        "model",
        metavar="MODEL",
        help=f"what 'dpselect fit --save' has written: .skops, or a .pkl of your own{others}",
    )
    parser.add_argument(
        "--trust-pickle",
        action="store_true",
        help="read a .pkl, which can run any program of whoever wrote it; a .skops file cannot",
    )


def _categories(parser):
    parser.add_argument(
        "--schema", metavar="JSON", help="of a density of categories: that of the fit, for their names"
    )


def _ledger(parser):
    parser.add_argument("--ledger", metavar="LEDGER", help="the budget that pays for the release")
    parser.add_argument("--label", metavar="TEXT", help="what the release is for, in the ledger")
    parser.add_argument("--user", metavar="NAME", help="who releases; default: the user account")


def _output(parser):
    parser.add_argument("--output", metavar="FILE", help="default: printed")
    _force(parser)


def _json(parser):
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _force(parser):
    parser.add_argument("--force", action="store_true", help="replace files that are there")


COMMANDS = {
    "schema": (_schema, "write a schema to fill in, from the names of the columns"),
    "plan": (_plan, "say what a fit would spend and what it could tell, before any data is read"),
    "fit": (_fit, "tune a model and release it"),
    "predict": (_predict, "predict with a model that was released"),
    "export": (_export, "write a model for programs without dpselect, or the cells of a density"),
    "evaluate": (_evaluate, "say how good a model is on records that it has not seen"),
    "intervals": (_intervals, "say how well the coefficients of a model are known, with confidence"),
    "report": (
        _report,
        "write the privacy statement of a model, or the report of a ledger, to be signed",
    ),
    "ledger": (_ledgers, "keep the budget of a data set"),
}
