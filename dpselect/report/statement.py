"""The contents of a privacy report, computed from a release: sections of sentences and tables."""

from __future__ import annotations

import datetime
import math
import os
import platform
from importlib.metadata import version

from ..accounting.privacy_loss import Adjacency, PrivacyLoss
from ..evaluation import CalibratedModel, Evaluation
from ..ledger import PrivacyLedger, how_losses_add_up
from ..linear_model import CoefficientIntervals
from ..preprocessing.estimator_loss import privacy_of
from ..utils.parameters import as_fitted
from ..utils.type_aliases import Estimator
from .assumptions import not_covered, public_assumptions
from .document import PrivacyReport, Section, Table
from .guidelines import guideline_sections
from .ledger_report import ledger_loss, ledger_sections
from .meaning import meaning
from .quality import coefficients, quality_of
from .released_parts import as_text, fitted_parts_of, given_parts, params_of, words_of_loss
from .theorems import proof_of

LIBRARIES = ("dpselect", "numpy", "scipy", "scikit-learn", "randomgen", "joblib")
# attributes that are independent of the records: a solver's limit, and a flag of scikit-learn
NOT_RELEASED = ("n_iter_", "multimetric_")
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
# descriptions of parameters that a search may have chosen
CHOICES = {
    "expansion": 'into how many curves a number is turned; "linear" is a straight line',
    "columns": "the columns of the table that are read",
    "pairs": "the columns of which combinations count",
    "alpha": "the strength of the regularisation",
    "bin_width": "the width of a cell",
    "data_norm": "the length to which longer rows are scaled down",
}


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
        Section(f"What epsilon = {loss.epsilon:.6g} means", meaning(planned, loss)),
        Section("What is taken to be public", public_assumptions(model, loss)),
        Section("What is not covered", not_covered(model, trained, loss, seeded)),
    ]
    if isinstance(evaluation, Evaluation):
        sections.append(Section("How good it is", quality_of(model, evaluation, loss, apart)))
    if isinstance(model, CoefficientIntervals):
        sections.append(Section("How well the coefficients are known", coefficients(model)))
    given = [(where, params_of(part)) for where, part in given_parts(model)]
    fitted = [(where, vars(part)) for where, part in fitted_parts_of(model)]
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
        text += HOW[part.composition].format(loss.adjacency.unit) if part.parts else ""
        rows.append(("\N{EN DASH} " * depth + text, *_amounts(part, loss), where))
    amounts = ("epsilon", "delta")[: 1 + (loss.delta > 0)]
    blocks = [] if about is None else [f"The records: {about}."]
    blocks += [
        f"{name} was released with {words_of_loss(loss)}.",
        Table(("Release", *amounts, "Why it is private"), tuple(rows)),
    ]
    if loss.delta == 0 and any(params_of(part).get("delta") for _, part in given_parts(model)):
        blocks.append("A delta was allowed, and none was needed: this release has none.")
    if loss.epsilon < math.inf:
        blocks.append(
            'Theorems and proofs are on the pages under "Mechanisms" of the documentation of dpselect.'
        )
    blocks += _choice(trained, strategy)
    values = [
        (where, ", ".join(names))
        for where, part in fitted_parts_of(model)
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
    parts = [part for _, part in fitted_parts_of(model)]
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
        said.append(f"Chosen was {as_text(chosen)}." + (f" ({'; '.join(meant)}.)" if meant else ""))
    if strategy in FREE and len(candidates) > 1:
        said.append(f"The choice follows from public numbers and chance alone: {FREE_PROOF}.")
    return said


def _protected(loss, n):
    if loss.epsilon == math.inf:
        return ("Nobody: an infinite epsilon protects no record.",)
    blocks = [
        NEIGHBOURS.get(loss.adjacency, "What is protected is said by the adjacency.")
        + f" (Adjacency: {loss.adjacency}.)",
        f"The number of {loss.adjacency.unit}s is public{'' if n is None else f': there are {n:,}'}.",
    ]
    if loss.adjacency.unit == "person":
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


def _n_records(model, loss):
    """Return the number of records, or of persons, if the release has it, or None."""
    plan = getattr(model, "plan_", None)
    holders = ((model, "n_records"), (plan, "n_samples"), (model, "n_samples_"))
    if loss.adjacency.unit == "person":
        holders = holders[:2]
    n = next((getattr(holder, name) for holder, name in holders if hasattr(holder, name)), None)
    # a plan does not include the records that a search held out
    own = getattr(model, "evaluation_", None)
    return n if n is None or own is None else n + own.n_records
