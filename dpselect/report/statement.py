"""The contents of a privacy report, computed from a release: sections of sentences and tables."""

import datetime
import inspect
import math
import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np

from ..accounting.privacy_loss import KINDS, Adjacency, PrivacyLoss
from ..evaluation import CalibratedModel, Estimate, Evaluation
from ..evaluation.at_rate import NAMES as AT_A_RATE
from ..ledger import PrivacyLedger, how_losses_add_up
from ..linear_model import CoefficientIntervals
from ..preprocessing.estimator_loss import MEMBERS, privacy_of
from ..preprocessing.pipeline_check import fitted_parts
from ..preprocessing.schema import NumberColumn
from ..private_model import PrivateModel
from ..utils.parameters import as_fitted
from ..utils.type_aliases import Estimator
from .document import PrivacyReport, Section, Table
from .guidelines import guideline_sections
from .ledger_report import ledger_loss, ledger_sections
from .theorems import proof_of

PRIORS = (0.01, 0.1, 0.5)
LIBRARIES = ("dpselect", "numpy", "scipy", "scikit-learn", "randomgen", "joblib")
# parameters that are reported elsewhere, or do not affect the release
UNSAID = ("ledger", "random_state", "n_jobs", "verbose", "pre_dispatch", "memory")
# attributes that are independent of the records: a solver's limit, and a flag of scikit-learn
NOT_RELEASED = ("n_iter_", "multimetric_")
MAX_CHARACTERS = 200
# strategies that choose by public numbers alone
FREE = ("data_independent", "random", "first_candidate")
FREE_PROOF = 'Proposition 1 of "Strategies of a private search"'
JOINT_PROOF = 'Propositions 3 and 4 of "How losses add up"'
SIGNATURE = Section("Signature", (Table(("Name", "Function", "Date", "Signature"), (("",) * 4,)),))
NEIGHBOURS = {
    Adjacency.REPLACE_RECORD: "Protected is each record: a row of the table, with its label or target.",
    Adjacency.REPLACE_PERSON: "Protected is each person: all of their rows of the table, however many, "
    "with their labels or targets.",
    Adjacency.REPLACE_HOLDOUT_RECORD: "Protected is each holdout record: a row of those that answers "
    "are computed from. Records that models were trained on are not protected by this release.",
    Adjacency.REPLACE_HOLDOUT_PERSON: "Protected is each holdout person: all of their rows that answers "
    "are computed from. Rows that models were trained on are not protected by this release.",
}
# composition -> reason
HOW = {
    "sequential": " (on the same records)",
    "parallel": " (no {} is in two of them)",
    "joint": " (on the same records)",
}
# metric -> description
FIGURES = {
    "accuracy": "share of predictions that are right",
    "balanced_accuracy": "the same share of each label, and the mean of these",
    "precision": "share of positive predictions that are right",
    "recall": "share of positive records that are predicted as such",
    "specificity": "share of negative records that are predicted as such",
    "f1": "harmonic mean of precision and recall",
    "lift": "precision, in multiples of positive_rate",
    "positive_rate": "share of positive records",
    "selection_rate": "share of scores above the threshold",
    "roc_auc": "how often a positive record has a higher score than a negative one",
    "brier": "mean squared error of the probability",
    "log_loss": "mean of minus the logarithm of the label's probability",
    "calibration_error": "mean distance of predicted and observed rates",
    "r2": "share of the variance of the targets that is predicted",
    "rmse": "root of the mean squared error",
    "mae": "mean size of the error",
    "bias": "mean of the target less the prediction",
    "selective_accuracy": "share of right predictions among those above the threshold",
    "confidence_auc": "how often a right prediction is more probable than a wrong one",
    "confidence_brier": "mean squared error of the prediction's probability",
    "integrated_squared_error": "the larger, the closer the density is to that of the records",
    "log_gain": "mean logarithm of the density, less that of a uniform one",
    "zero_density": "share of records where the density is 0",
}
# descriptions of parameters that a search may have chosen
CHOICES = {
    "expansion": 'into how many curves a number is turned; "linear" is a straight line',
    "columns": "the columns of the table that are read",
    "pairs": "the columns of which combinations count",
    "alpha": "the strength of the regularisation",
    "bin_width": "the width of a cell",
    "data_norm": "the length to which longer rows are scaled down",
}
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


def privacy_report(
    model: Estimator | PrivacyLedger,
    ledger: PrivacyLedger | None = None,
    *,
    evaluation: Evaluation | None = None,
    about: str | None = None,
    date: datetime.date | None = None,
) -> PrivacyReport:
    """Describe what was released, its loss and the assumptions, in words that can be signed.

    A function of what was released and of public numbers alone, so it costs nothing: no record is read.
    It answers what NIST SP 800-226 asks of a guarantee: unit and parameters, model of trust, what was
    bounded, bias and utility, security and side channels, and what the curator still has to do.

    Read more in :doc:`/yearly_report`.

    Parameters
    ----------
    model : estimator
        Fitted: a private estimator, step, density or holdout of dpselect, a search, what
        :func:`~dpselect.calibrated` returns, a Pipeline or another estimator that
        :func:`~dpselect.privacy_of` takes; or an :class:`~dpselect.Evaluation` or what
        :func:`~dpselect.coef_interval` returns. Of a search give the search: its `best_estimator_` does
        not know of the choice. Or a :class:`~dpselect.PrivacyLedger`, for a report of the data set: what
        was released when, by whom and for what, what is left, and what it adds up to.
    ledger : PrivacyLedger, default=None
        Budget of the records; its state as of now, with the label of each entry, is part of the report.
    evaluation : Evaluation, default=None
        Of the model, from :func:`~dpselect.evaluate`. It is a release of its own; the report says how
        the two add up, and is about both if it is known that the model was trained on the same records.
    about : str, default=None
        Name of the records and of who is responsible for them, such as "Admissions of 2029, St. Anne's
        Hospital". It stands first, and it is public.
    date : datetime.date, default=None
        Of the report; None is today.

    Returns
    -------
    PrivacyReport
        With `to_html`, `to_markdown`, `to_json` and `save`; notebooks show it as a page.

    Raises
    ------
    NotFittedError
        If nothing was released yet.
    TypeError
        If `ledger`, `evaluation`, `about` or `date` is something else.
    ValueError
        If the model states no privacy loss, or the losses of its parts do not add up.

    See Also
    --------
    privacy_of : The loss alone.

    Notes
    -----
    With odds of ``p / (1 - p)`` before a release of loss epsilon, those after it are at most
    ``exp(epsilon)`` times as large. Two records that are equally likely are distinguished with a
    probability of at most ``(exp(epsilon) + delta) / (exp(epsilon) + 1)``.

    References
    ----------
    Near, Darais, Lefkovitz and Howarth, *Guidelines for Evaluating Differential Privacy Guarantees*,
    NIST SP 800-226, 2025. The bound on the odds and the role of delta: Kairouz, Oh and Viswanath, *The
    Composition Theorem for Differential Privacy*, ICML 2015, theorem 2.1. The game: Wasserman and Zhou,
    *A Statistical Framework for Differential Privacy*, JASA 105, 2010, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect import DPLogisticRegression, privacy_report
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> model = DPLogisticRegression(classes=[0, 1]).fit(X, (X[:, 0] > 0).astype(int))
    >>> report = privacy_report(model)
    >>> report
    <PrivacyReport of ...: epsilon = 1>
    >>> print([section.title for section in report.sections][:3])
    ['What was released', 'Who is protected', 'What epsilon = 1 means']
    >>> report.save("report.html")  # doctest: +SKIP
    """
    _check_types(ledger, evaluation, about, date)
    if isinstance(model, PrivacyLedger):
        return _report_of_ledger(model, ledger, evaluation, about, date)
    loss, model = privacy_of(model), as_fitted(model)
    # the additions of a calibrated model follow from the evaluation
    trained = as_fitted(model.estimator) if isinstance(model, CalibratedModel) else model
    known = (getattr(model, "evaluation", None), model, getattr(trained, "evaluation_", None))
    sources = [one.source for one in known if isinstance(one, Evaluation)]
    found = next((one for one in known if isinstance(one, Evaluation)), None)
    evaluation = found if evaluation is None else evaluation
    # compare by identity: another evaluation with an equal loss is a release of its own
    apart = evaluation is not None and not any(evaluation.source is one for one in sources)
    # a plan covers the search alone, without a later evaluation
    planned = trained if loss == getattr(trained, "privacy_", None) else model
    if evaluation is not None and apart and evaluation.of_training_records:
        if evaluation.privacy_.adjacency == loss.adjacency:
            loss = PrivacyLoss.sequential([loss, evaluation.privacy_], label=type(model).__name__)
            planned = None
    seeded = loss.seeded or (evaluation is not None and evaluation.privacy_.seeded)
    name = type(model).__name__
    sections = [
        Section("What was released", _released(name, model, trained, loss, about)),
        Section("Who is protected", _protected(loss, _n_records(trained, loss))),
        Section(f"What epsilon = {loss.epsilon:.6g} means", _meaning(planned, loss)),
        Section("What is taken to be public", _public(model)),
        Section("What is not covered", _not_covered(model, trained, loss, seeded)),
    ]
    if isinstance(evaluation, Evaluation):
        sections.append(Section("How good it is", _quality(model, evaluation, loss, apart)))
    if isinstance(model, CoefficientIntervals):
        sections.append(Section("How well the coefficients are known", _coefficients(model)))
    given = [(where, _params(part)) for where, part in _given_parts(model)]
    fitted = [(where, vars(part)) for where, part in _fitted_parts(model)]
    measured = evaluation if isinstance(evaluation, Evaluation) else None
    sections += [
        *guideline_sections(loss, given, fitted, measured),
        Section("Budget of the records", _budget(ledger, loss)),
        Section("How it was made", _making(loss, seeded)),
        SIGNATURE,
    ]
    date = datetime.date.today() if date is None else date
    return PrivacyReport(f"Privacy statement: {name}", date.isoformat(), loss, tuple(sections))


def _report_of_ledger(ledger, second, evaluation, about, date):
    for name, given in (("ledger", second), ("evaluation", evaluation)):
        if given is not None:
            raise TypeError(
                f"{name} goes with a model, and a report of a ledger is about all of its entries; leave "
                "it out, or give the model first."
            )
    loss = ledger_loss(ledger)
    sections = [
        *ledger_sections(ledger, about, NEIGHBOURS.get(loss.adjacency, "")),
        SIGNATURE,
    ]
    date = datetime.date.today() if date is None else date
    title = f"Privacy budget: {os.path.basename(ledger.path)}"
    return PrivacyReport(title, date.isoformat(), loss, tuple(sections))


def _check_types(ledger, evaluation, about, date):
    for name, given, kind, why in (
        ("ledger", ledger, PrivacyLedger, "its state is told; write PrivacyLedger(path)"),
        ("evaluation", evaluation, Evaluation, "its figures are told; write evaluate(...)"),
        ("about", about, str, "it names the records; write a text"),
        ("date", date, datetime.date, "it dates a signature; write datetime.date(2030, 1, 31), or None"),
    ):
        if given is not None and not isinstance(given, kind):
            raise TypeError(
                f"{name} must be a {kind.__name__}, not a {type(given).__name__}, because {why}."
            )


def _released(name, model, trained, loss, about):
    strategy = getattr(getattr(trained, "plan_", None), "strategy", getattr(trained, "method_", ""))
    rows = []
    for depth, part, text in loss.outline():
        proof = "" if part.parts or part.epsilon == math.inf else proof_of(part, strategy)
        where = "documentation of its class" if proof is None else str(proof)
        where = JOINT_PROOF if part.composition == "joint" else where
        text += HOW[part.composition].format(_unit(loss)) if part.parts else ""
        rows.append(("\N{EN DASH} " * depth + text, *_amounts(part, loss), where))
    amounts = ("epsilon", "delta")[: 1 + (loss.delta > 0)]
    blocks = [] if about is None else [f"The records: {about}."]
    blocks += [
        f"{name} was released with {_in_words(loss)}.",
        Table(("Release", *amounts, "Why it is private"), tuple(rows)),
    ]
    if loss.epsilon < math.inf:
        blocks.append(
            'Theorems and proofs are on the pages under "Mechanisms" of the documentation of dpselect.'
        )
    blocks += _choice(trained, strategy)
    values = [
        (where, ", ".join(names))
        for where, part in _fitted_parts(model)
        if (
            names := sorted(
                name
                for name in vars(part)
                if name.endswith("_") and name[0] != "_" and name not in NOT_RELEASED
            )
        )
    ]
    if values:
        blocks += [
            "All that was released, and public numbers beside it, is in these attributes:",
            Table(("Part", "Attributes"), tuple(values)),
        ]
    parts = [part for _, part in _fitted_parts(model)]
    if any(hasattr(part, "coef_") and hasattr(part, "data_norm") for part in parts):
        blocks.append(
            "In predictions, too, rows are brought within the norm of the training before coefficients "
            "apply: hand over the object, and not its coefficients alone."
        )
    return tuple(blocks)


def _amounts(part, loss):
    """Return epsilon, and delta if the whole loss has one."""
    return (f"{part.epsilon:.6g}", f"{part.delta:.6g}")[: 1 + (loss.delta > 0)]


def _choice(model, strategy):
    """Return the sentences on the choice of a search."""
    said, chosen = [], getattr(model, "best_params_", None)
    if not getattr(model, "reached_", True):
        said.append("No model was found that meets the target.")
    candidates = getattr(getattr(model, "plan_", None), "params", None)
    if chosen and (candidates is None or len(candidates) > 1):
        names = [name.rpartition("__")[2] for name in chosen]
        meant = [f"{name}: {CHOICES[name]}" for name in names if name in CHOICES]
        said.append(f"Chosen was {_said(chosen)}." + (f" ({'; '.join(meant)}.)" if meant else ""))
    if strategy in FREE and len(candidates) > 1:
        said.append(f"The choice follows from public numbers and chance alone: {FREE_PROOF}.")
    return said


def _in_words(loss):
    if loss.epsilon == math.inf:
        return "no differential privacy: epsilon is infinite"
    kind = "an ex-post privacy loss of" if loss.kind == KINDS[1] else "differential privacy,"
    return f"{kind} epsilon = {loss.epsilon:.6g} and delta = {loss.delta:.6g}"


def _protected(loss, n):
    if loss.epsilon == math.inf:
        return ("Nobody: an infinite epsilon protects no record.",)
    blocks = [
        NEIGHBOURS.get(loss.adjacency, "What is protected is said by the adjacency.")
        + f" (Adjacency: {loss.adjacency}.)",
        f"The number of {_unit(loss)}s is public{'' if n is None else f': there are {n:,}'}.",
    ]
    if _unit(loss) == "person":
        blocks.append(
            "Their ids are not released, but who is in the table is not protected: ids are taken as "
            "given. The number of rows is protected."
        )
    elif loss.adjacency in NEIGHBOURS:
        blocks.append(
            "The unit is a record, not a person. A person with k records has k times this epsilon"
            + (", and a larger delta." if loss.delta else ".")
        )
    return tuple(blocks)


def _meaning(model, loss):
    if loss.epsilon == math.inf:
        return ("Nothing is promised: what was released is to be handled like the records themselves.",)
    factor, bound, one = _factor(loss.epsilon), loss, _unit(loss)
    if loss.kind == KINDS[1]:
        bound = getattr(getattr(model, "plan_", None), "at_most", None)
        blocks = [
            (
                "This epsilon was not fixed in advance: it bounds the loss of the outcome that came "
                f"out. Replacing one {one} changes its probability by a factor of at most {factor}."
            )
        ]
        if loss.delta:
            blocks.append(f"With a probability of at most delta = {loss.delta:.6g} the loss is larger.")
        if bound is not None:
            blocks.append(
                "Whatever had come out, the search as a whole is differentially private with epsilon = "
                f"{bound.epsilon:.6g} and delta = {bound.delta:.6g}. This number was known before the "
                "records were read, and is the one to quote where differential privacy is asked for; "
                "the one above is about this outcome alone."
            )
    else:
        besides = f", and by delta = {loss.delta:.6g} besides" if loss.delta else ""
        blocks = [
            (
                f"What can come out is about as likely, whatever one {one} says: replacing the {one} "
                f"changes the probability of an event by a factor of at most {factor}{besides}."
            )
        ]
        if loss.delta:
            blocks.append(
                f"Nobody can learn more than from a release that shows the {one} openly with a "
                f"probability of {loss.delta:.6g}, one in {1 / loss.delta:,.0f}, and otherwise has "
                "delta = 0, for which:"
            )
    blocks += [
        (
            f"Someone knows all other {one}s, and holds a statement about this one for true with some "
            "probability. How probable can the release make it?"
        ),
        Table(
            ("Before", "After, at most"),
            tuple((f"{100 * prior:g} %", _percent(posterior(prior, loss.epsilon))) for prior in PRIORS),
        ),
    ]
    if bound is not None:
        blocks.append(
            f"A game: someone knows all other {one}s, and that a fair coin chose this one among two. "
            f"They tell which one in at most {_percent(success(bound.epsilon, bound.delta))} of all "
            "cases, and in 50 % by guessing."
        )
    blocks.append("This holds whatever else they know, and whatever is computed from the release later.")
    if loss.seeded:
        blocks.append(
            "It does not hold for those who know the seed: they can remove the noise, and nothing is "
            "promised against them."
        )
    return tuple(blocks)


def _unit(loss):
    return loss.adjacency.unit


def posterior(prior, epsilon):
    """Return the largest posterior probability of an event, after the release, for a prior one."""
    return prior / (prior + (1 - prior) * math.exp(-epsilon))


def success(epsilon, delta):
    """Return the largest probability of distinguishing two equally likely records."""
    return min(1.0, (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon)))


def _percent(fraction):
    """Return a fraction in percent, rounded up, with enough digits below 100 %."""
    remaining = max(100 * (1 - fraction), 1e-9)
    digits = max(1, 1 - math.floor(math.log10(remaining)))
    return f"{math.ceil(round(100 * fraction * 10**digits, 9)) / 10**digits:.{digits}f} %"


def _factor(epsilon):
    return f"{math.exp(epsilon):,.4g}" if epsilon < 700 else f"exp({epsilon:.6g})"


def _public(model):
    rows = [
        (where, name, _said(value))
        for where, part in _given_parts(model)
        for name, value in _params(part).items()
        if name not in (*UNSAID, "schema")
        and not _estimators(value)
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
    computed = [(where, part) for where, part in _given_parts(model) if _computed(part, "threshold")]
    rows += [(where, *map(_said, part.threshold_target)) for where, part in computed]
    if rows:
        blocks.append(Table(("Part", "Parameter", "Value"), tuple(rows)))
    blocks += [
        f"The threshold of {where}, {_said(part.threshold)}, was computed from the released evaluation."
        for where, part in computed
    ]
    for _, part in _fitted_parts(model):
        if hasattr(part, "schema_"):
            blocks += ["The schema, what columns of the table can hold:", _schema(part.schema_)]
    return tuple(blocks)


def _computed(part, name):
    """Return whether a parameter is a released object, or was computed from it by this library."""
    if not isinstance(part, CalibratedModel):
        return False
    return name == "evaluation" or (name == "threshold" and part.threshold_target is not None)


def _is_default(part, name, value):
    parameter = inspect.signature(type(part).__init__).parameters.get(name)
    return parameter is not None and _said(parameter.default) == _said(value)


def _schema(schema):
    rows = []
    for name, column in schema.columns.items():
        if isinstance(column, NumberColumn):
            holds = f"{column.low:g} to {column.high:g} {column.unit or ''}".strip()
        else:
            holds = _said(list(column.categories))
        more = {
            key: value
            for key, value in column.entry().items()
            if key not in ("bounds", "categories", "unit")
        }
        said = "; ".join(f"{key}: {_said(value)}" for key, value in more.items())
        rows.append((str(name), f"{holds}; {said}" if said else holds))
    return Table(("Column", "Holds"), tuple(rows))


def _not_covered(model, trained, loss, seeded):
    known = getattr(model, "of_training_records", False)
    given, seed = _params(trained), "Whoever knows the seed (random_state) that the noise came from."
    items = [
        # a search sets learned classes in its models, so look at the given parts
        (
            any(_params(part).get("classes", 0) is None for _, part in _given_parts(model)),
            "The labels: they were learned from the records, as classes=None asks.",
        ),
        (
            given.get("trusted_steps"),
            f"That {_said(given.get('trusted_steps'))} treats each row by itself: it was declared.",
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
            any(_params(part).get("max_sample_weight") is not None for _, part in _given_parts(model))
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
    given = [part for each in (model, *values) for _, part in _given_parts(each)]
    return sorted({part.account for part in given if isinstance(part, PrivateModel)})


def _quality(model, evaluation, loss, apart):
    own, blocks, at, at_rate = evaluation.privacy_, [], {}, {}
    most = evaluation.max_weight
    weighted = "" if most is None else f", each counted by its weight, up to {most:g}"
    if isinstance(model, CalibratedModel) and not apart:
        at = {} if model.threshold is None else {"threshold": model.threshold}
        if model.positive_label is not None:
            evaluation = evaluation.with_positive(model.positive_label)
        where = f", at the threshold {_said(model.threshold)}" if at else ""
        target, rate = model.threshold_target or (None, None)
        if target == "rate":
            at_rate = dict.fromkeys(AT_A_RATE, {"rate": rate})
            where += (
                f": {', '.join(AT_A_RATE)} where {rate:.0%} of the records with the highest scores are "
                "positive predictions, and all other figures at the nearest threshold that is counted"
            )
        blocks.append(
            f"Figures are of the scores of {type(model.estimator).__name__}, before calibration{where}."
        )
    rows = tuple(
        (name, str(evaluation.metric(name, **at_rate.get(name, at))), FIGURES[name])
        for name in evaluation.metrics
    )
    positive = f" Positive is {evaluation.classes[1]}." if "recall" in evaluation.metrics else ""
    blocks += [
        (
            f"Measured on {evaluation.n_records:,} {_unit(own)}s{weighted}. What was released are "
            f"{evaluation.counts_.size} noisy counts, from which all figures are computed. Intervals of "
            f"95 % cover sampling and noise.{positive}"
        ),
        Table(("Figure", "Value [95 %]", "What it is"), rows),
    ]
    if evaluation.of_training_records:
        blocks.append(
            "Its records are those that the model was trained on: the figures are too good, and the "
            "losses of model and evaluation add up."
        )
    if apart and own.adjacency != loss.adjacency:
        blocks.append(
            f"The evaluation is a release of its own, with {_in_words(own)}, and about another "
            f"adjacency: {own.adjacency}. Its loss and that of the model do not add up."
        )
    elif apart and not evaluation.of_training_records:
        largest, total = max(loss.epsilon, own.epsilon), loss.epsilon + own.epsilon
        blocks.append(
            f"The evaluation is a release of its own, with {_in_words(own)}. If its records took no "
            "part in training, and which ones was decided without looking at them, both together have "
            f"epsilon = {largest:.6g}. Otherwise they have {total:.6g}, and the figures are too good."
        )
    return tuple(blocks)


def _coefficients(intervals):
    low, high = intervals.confidence_interval()
    rows = tuple(
        (str(name), str(Estimate(math.nan if intervals.empty else c, start, end)), f"{fraction:.0%}")
        for name, c, start, end, fraction in zip(
            intervals.names, intervals.coef, low, high, intervals.noise_share
        )
    )
    return (
        "Intervals of 95 % cover sampling and noise.",
        Table(("Column", "Coefficient [95 %]", "Variance due to noise"), rows),
        *([intervals.hint] if intervals.lost else []),
    )


def _budget(ledger, loss):
    if ledger is None:
        return ("No ledger was given: what else was released from these records is not known here.",)
    amounts = (("Budget", ledger.budget), ("Spent", ledger.spent()), ("Left", ledger.remaining()))
    entries = ledger.history()
    rows = tuple((name, *(f"{amount:.6g}" for amount in both)) for name, both in amounts)
    blocks = [
        f"The ledger {os.path.basename(ledger.path)!r} counts for the adjacency: {ledger.adjacency}.",
        Table(("", "epsilon", "delta"), rows),
        *filter(None, [how_losses_add_up(ledger)[0]]),
        (
            f"Entries: {len(entries)}. Reserved, not committed and counted in full: "
            f"{sum(entry.committed_at is None for entry in entries)}."
        ),
    ]
    if entries:
        blocks.append(
            Table(
                ("Entry", "Day", "epsilon", "delta"),
                tuple(
                    (
                        entry.label,
                        entry.reserved_at.date().isoformat(),
                        f"{entry.epsilon:.6g}",
                        f"{entry.delta:.6g}",
                    )
                    for entry in entries
                ),
            )
        )
    if ledger.adjacency != loss.adjacency:
        blocks.append("This release is for another adjacency, and cannot be one of its entries.")
    return tuple(blocks)


def _making(loss, seeded):
    noise = (
        "There was no noise."
        if loss.epsilon in (0.0, math.inf)
        else "The noise came from a seed: this is for tests, not for release."
        if seeded
        else "The noise was drawn from the operating system's entropy, and no seed was given."
    )
    versions = [("Python", platform.python_version()), *((name, version(name)) for name in LIBRARIES)]
    return (
        noise,
        "Versions where this report was written:",
        Table(("Library", "Version"), tuple(versions)),
    )


def _parts(members, model, where=""):
    """Yield (name, part) of an object and all of its parts."""
    name = type(model).__name__
    yield f"{where}: {name}" if where else name, model
    for label, part in members(model):
        if part is not None and not isinstance(part, str):
            yield from _parts(members, as_fitted(part), f"{where}.{label}" if where else label)


def _fitted_parts(model):
    def members(model):
        if hasattr(model, "best_estimator_"):
            return [("best_estimator_", model.best_estimator_)]
        if isinstance(model, CalibratedModel):
            return [("estimator", model.estimator), ("evaluation", model.evaluation)]
        if type(model) in MEMBERS:
            return [(f"estimators_[{i}]", part) for i, part in enumerate(MEMBERS[type(model)](model))]
        return fitted_parts(model)

    return _parts(members, model)


def _given_parts(model):
    def members(model):
        return [found for name, value in _params(model).items() for found in _estimators(value, name)]

    return _parts(members, model)


def _estimators(value, name=""):
    """Return the named estimators in a parameter."""
    if isinstance(value, (list, tuple)):
        named = [entry for entry in value if isinstance(entry, tuple) and len(entry) > 1]
        return [found for entry in named for found in _estimators(entry[1], str(entry[0]))]
    return [(name, value)] if hasattr(value, "get_params") and not isinstance(value, type) else []


def _params(part):
    return part.get_params(deep=False) if hasattr(part, "get_params") else {}


def _n_records(model, loss):
    """Return the number of records, or of persons, if the release has it, or None."""
    plan = getattr(model, "plan_", None)
    holders = ((model, "n_records"), (plan, "n_samples"), (model, "n_samples_"))
    if _unit(loss) == "person":
        holders = holders[:2]
    n = next((getattr(holder, name) for holder, name in holders if hasattr(holder, name)), None)
    # a plan does not include the records that a search held out
    own = getattr(model, "evaluation_", None)
    return n if n is None or own is None else n + own.n_records


def _said(value: Any) -> str:
    """Return a parameter as text, cut where it is long; never the address of an object."""
    if isinstance(value, Mapping):
        text = "; ".join(f"{key}: {_said(entry)}" for key, entry in value.items())
    elif isinstance(value, (list, tuple, set, frozenset, np.ndarray)):
        text = ", ".join(map(_said, value))
    elif isinstance(value, (float, np.floating)):
        text = f"{value:.6g}"
    elif callable(value) and hasattr(value, "__qualname__"):
        text = value.__qualname__
    else:
        text = str(value)
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}\N{HORIZONTAL ELLIPSIS}"
