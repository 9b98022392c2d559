"""Say what a statement takes to be public, and what it does not cover."""

import inspect

from ..accounting.privacy_loss import Adjacency
from ..evaluation import CalibratedModel, Evaluation
from ..linear_model import CoefficientIntervals
from ..preprocessing.learned_ranges import TableRanges
from ..preprocessing.schema import NumberColumn
from ..private_model import PrivateModel
from .document import Table
from .released_parts import as_text, estimators_in, fitted_parts_of, given_parts, params_of

# parameters that are reported elsewhere, or do not affect the release
UNSAID = ("ledger", "random_state", "n_jobs", "verbose", "pre_dispatch", "memory")
SCHEMA = "The schema, what columns of the table can hold:"
LEARNED_SCHEMA = (
    "The schema with bounds of numbers that were learned, beyond which they count as a bound:"
)
NOT_COVERED = (
    (
        "How the public assumptions were found. A bound, a category, a grid or a norm that was looked "
        "up in these records is a further release, which nothing here counts."
    ),
    "Other releases from the same records. Their losses add up, whoever makes them.",
    (
        "What is told of the records beside this release: scores of them, plots, counts, logs, and how "
        "long the computation took."
    ),
    (
        "What can be learned of people in general. A model may say something true of a person "
        "whose record was never there."
    ),
)


def public_assumptions(model, loss):
    """Return the blocks on what was known or decided without looking at the records."""
    rows = [
        (where, name, as_text(value))
        for where, part in given_parts(model)
        for name, value in params_of(part).items()
        if name not in (*UNSAID, "schema")
        and not estimators_in(value)
        and not _computed(part, name)
        and (not _is_default(part, name, value) or (part is model and name == "epsilon"))
    ]
    blocks = [
        (
            "Who signs this states that the following was known or decided without looking at the "
            "records, or follows from private releases of them, whose losses count as well. All other "
            "parameters have the defaults of the versions below."
        )
    ]
    computed = [(where, part) for where, part in given_parts(model) if _computed(part, "threshold")]
    rows += [(where, *map(as_text, part.threshold_target)) for where, part in computed]
    if rows:
        blocks.append(Table(("Part", "Parameter", "Value"), tuple(rows)))
    blocks += [
        f"The threshold of {where}, {as_text(part.threshold)}, was computed from the released "
        "evaluation."
        for where, part in computed
    ]
    ranges_learned = any(part.label.endswith(TableRanges.what) for _, part, _ in loss.outline())
    for _, part in fitted_parts_of(model):
        if hasattr(part, "schema_"):
            blocks += [LEARNED_SCHEMA if ranges_learned else SCHEMA, _schema(part.schema_)]
    if ranges_learned:
        given = [part for _, part in given_parts(model) if getattr(part, "ranges", None) is not None]
        for part in given:
            blocks += [
                f"{SCHEMA[:-1]}, within which bounds were learned:",
                _schema(part.public_schema()),
            ]
    return tuple(blocks)


def _computed(part, name):
    """Return whether a parameter is a released object, or was computed from it by this library."""
    if not isinstance(part, CalibratedModel):
        return False
    return name == "evaluation" or (name == "threshold" and part.threshold_target is not None)


def _is_default(part, name, value):
    parameter = inspect.signature(type(part).__init__).parameters.get(name)
    return parameter is not None and as_text(parameter.default) == as_text(value)


def _schema(schema):
    rows = []
    for name, column in schema.columns.items():
        if isinstance(column, NumberColumn):
            holds = f"{column.low:g} to {column.high:g} {column.unit or ''}".strip()
        else:
            holds = as_text(list(column.categories))
        more = {
            key: value
            for key, value in column.entry().items()
            if key not in ("bounds", "categories", "unit")
        }
        said = "; ".join(f"{key}: {as_text(value)}" for key, value in more.items())
        rows.append((str(name), f"{holds}; {said}" if said else holds))
    return Table(("Column", "Holds"), tuple(rows))


def not_covered(model, trained, loss, seeded):
    """Return the list of what this loss does not count."""
    known = getattr(model, "of_training_records", False)
    given, seed = params_of(trained), "Whoever knows the seed (random_state) that the noise came from."
    items = [
        # a search sets learned classes in its models, so look at the given parts
        (
            any(params_of(part).get("classes", 0) is None for _, part in given_parts(model)),
            "The labels: they were learned from the records, as classes=None asks.",
        ),
        (
            given.get("trusted_steps"),
            f"That {as_text(given.get('trusted_steps'))} treats each row by itself: it was declared.",
        ),
        (
            getattr(model, "other_records", False),
            "That the evaluation is of other records than those of the training: it was declared.",
        ),
        (given.get("public_splits"), "That the splits do not depend on the records: it was declared."),
        (
            loss.adjacency in (Adjacency.REPLACE_HOLDOUT_RECORD, Adjacency.REPLACE_HOLDOUT_PERSON),
            "The training records; and that what is asked of the holdout treats each record by itself.",
        ),
        (
            isinstance(model, CoefficientIntervals) and not known,
            "The model that the intervals are about, and its training records.",
        ),
        (
            isinstance(model, CoefficientIntervals),
            (
                "That the model describes the records: a penalty, "
                "rows that were brought within a norm, and what it leaves out move coefficients, and no "
                "interval tells how far."
            ),
        ),
        (
            isinstance(model, Evaluation) and not known,
            "The model that was evaluated, and its training records.",
        ),
        (
            known,
            (
                "The model that this is about, which was trained on the same records: its loss and this "
                "one add up."
            ),
        ),
        (
            any(params_of(part).get("max_sample_weight") is not None for _, part in given_parts(model))
            or getattr(model, "max_weight", None) is not None,
            (
                "Weights that follow from other records, too, as by raking or by shares that were "
                "counted in them: each has to follow from its own record and from public numbers."
            ),
        ),
        (seeded, seed),
        (
            accounts := _accounts(model),
            (
                "That models of other libraries keep to what these libraries state of them, which "
                f"nothing here proves or tests: {'; '.join(accounts)}."
            ),
        ),
    ]
    return (NOT_COVERED + tuple(item for holds, item in items if holds),)


def _accounts(model):
    """Return the accounts by which the released or compared models are private."""
    candidates = getattr(getattr(model, "plan_", None), "params", ())
    values = [value for params in candidates for value in params.values()]
    given = [part for each in (model, *values) for _, part in given_parts(each)]
    return sorted({part.account for part in given if isinstance(part, PrivateModel)})
