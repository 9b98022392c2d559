"""Check what a strategy states, spends and keeps, on searches that use it."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..accounting.privacy_loss import PrivacyLoss
from ..exceptions import BudgetExceededError
from ..noise import InnerStream, root_stream
from .attempts import Untouchable, attempt, refused
from .case import as_bytes, differing, leaves, what_is_kept
from .strategy_case import a_ledger, quiet
from .tally import require
from .telling import Telling

# attributes that are released: the best candidate, and its model
CHOSEN = ("best_index_", "best_params_", "best_estimator_")
ROUNDING = 1 + 1e-9


def _fits(case, **parameters):
    """Yield the results of fits with one seed to data sets of one shape."""
    for data in case.subject.varied():
        search = case.search(7, **parameters)
        found = attempt(lambda: search.fit(*data))
        require(
            found.error is None,
            f"A search that was planned is refused when it is fitted: {found.error}",
        )
        yield search, found


def check_the_statement(case):
    """Check that losses are within the requested ones, and, like all messages, equal for all records."""
    for refit in (True, False):
        stated = set()
        for search, found in _fits(case, refit=refit):
            loss = search.privacy_
            require(isinstance(loss, PrivacyLoss), "privacy_ must be a PrivacyLoss.")
            require(
                loss.epsilon < math.inf, "privacy_ states an infinite loss: the search is not private."
            )
            require(
                loss.epsilon <= search.epsilon,
                f"privacy_ states epsilon {loss.epsilon:g} after a search with {search.epsilon:g}.",
            )
            stated.add((str(loss), loss.delta, *found.said))
        require(
            len(stated) == 1,
            f"What is stated and said (with refit={refit}) depends on the records: "
            f"{' / '.join(text for text, *_ in sorted(stated))}",
        )


def check_what_is_kept(case):
    """Check that only the choice and the model depend on the records, and both are what they seem."""
    searches, classes, strategies = [], [], []
    with case.watched() as made:
        for search, _ in _fits(case):
            searches.append(search)
            classes.append(_kept_by_classes(case.kind))
            strategies.append(_parts(vars(made[-1])))
    kept = [_parts(vars(search), *search.get_params(deep=False), *CHOSEN) for search in searches]
    for name, found in (("The search", kept), ("The class of the strategy", classes)):
        for other in found[1:]:
            names = differing(found[0], other)
            require(not names, f"{name} keeps {', '.join(names)}, which depends on the records.")
    points = case.subject.points
    for search in searches:
        require(
            search.best_params_ == points[search.best_index_],
            "best_params_ is not the point of the grid that was chosen.",
        )
    chosen = [search.best_index_ for search in searches]
    for i, j in itertools.combinations(range(len(searches)), 2):
        if chosen[i] != chosen[j]:
            continue
        names = differing(strategies[i], strategies[j])
        require(not names, f"The strategy keeps {', '.join(names)}, which depends on the records.")
        models = [_model(searches[place]) for place in (i, j)]
        names = differing(*(what_is_kept(case.subject.case, model) for model in models))
        require(not names, f"The released model keeps {', '.join(names)}, which depends on the records.")
    for search in searches:
        for path, leaf in leaves(vars(search)):
            keys = InnerStream, np.random.Generator, np.random.RandomState
            require(
                path[0] == "random_state" or not (isinstance(leaf, type) and issubclass(leaf, keys)),
                f"{path[0]} keeps the key of noise.",
            )


def check_plan(case):
    """Check that a plan, made before any record, reserves what a fit states, and does not change."""
    plan = case.plan()
    first, *others = case.subject.varied()
    search = case.fit(first, 7)
    problem, alone = case.problem(first, refit=False)
    with quiet():
        choice = case.kind.of(problem).choose(*first, *[None][len(first) - 1 :], root_stream(7))
    # a model that the strategy trains itself is charged with the choice
    planned = plan.selection_epsilon + (0.0 if choice.estimator is None else plan.training_epsilon)
    for what, stated, upper_bound in (
        ("A fit", search.privacy_.epsilon, plan.epsilon),
        ("A choice", alone.privacy_.epsilon, planned),
    ):
        require(
            stated <= upper_bound * ROUNDING,
            f"{what} states epsilon {stated:g}, and its plan is {upper_bound:g}.",
        )
    for name in ("strategy", "epsilon", "selection_epsilon", "training_epsilon", "training_size"):
        planned, done = getattr(plan, name), getattr(search.plan_, name)
        require(planned == done, f"{name} is {planned} in plan and {done} in plan_, for the same shape.")
    case.fit(others[0], 7)
    require(repr(case.plan()) == repr(plan), "plan is another one after a fit to records.")


def check_ledger(case):
    """Check that a ledger is charged before records are read, and counts what `privacy_` states."""
    data, asked = case.subject.varied()[0], case.search().epsilon
    with a_ledger(1.5 * asked, 0.9) as ledger:
        search = case.fit(data, ledger=ledger)
        entries, loss = ledger.history(), search.privacy_
        require(len(entries) == 1, f"A fit makes {len(entries)} entries in the ledger, not one.")
        (entry,) = entries
        require(
            (entry.epsilon, entry.delta) == (loss.epsilon, loss.delta),
            f"The ledger counts epsilon {entry.epsilon:g} and delta {entry.delta:g} for a search that "
            f"states {loss.epsilon:g} and {loss.delta:g}.",
        )
        require(
            entry.reserved_epsilon >= entry.epsilon and entry.reserved_delta >= entry.delta,
            f"epsilon {entry.reserved_epsilon:g} is reserved, and {entry.epsilon:g} is spent.",
        )
    with a_ledger(asked / 1e3, 0.9) as ledger, quiet():
        refused(
            lambda: case.search(ledger=ledger).fit(*(Untouchable() for _ in data)),
            (BudgetExceededError,),
            "A search beyond the budget",
        )


def check_training(case):
    """Check that the model is trained as planned and stated, and reproducibly with a seed."""
    data = case.subject.varied()[0]
    search, again = (case.fit(data, 7) for _ in range(2))
    model, loss, plan = _model(search), search.privacy_, search.plan_
    spent = model.trained_epsilon_
    require(
        spent <= loss.epsilon * ROUNDING,
        f"The released model has cost epsilon {spent:g}, and privacy_ states {loss.epsilon:g}.",
    )
    require(
        spent <= plan.training_epsilon * ROUNDING,
        f"The released model has cost epsilon {spent:g}, and plan_ says {plan.training_epsilon:g}.",
    )
    require(
        search.best_index_ == again.best_index_ and model.answer_ == _model(again).answer_,
        "Two fits with the same seed differ: all noise must come from the stream.",
    )


def check_noise(case):
    """Check that the released model's noise is not that of compared models, or of the choice."""
    log = []
    data = case.subject.varied()[0]
    Telling.log = []
    try:
        case.fit(data, Watched.root(log))
        trained = Telling.log
    finally:
        Telling.log = None
    of_fits = [key for is_fit, key in trained if is_fit and key is not None]
    of_models = [key for is_fit, key in trained if not is_fit]
    drawn = {key for key in log if key not in set(of_models)}
    for key in set(of_fits):
        require(
            of_models.count(key) == of_fits.count(key) == 1,
            "A model that is released has the noise of another one that was compared.",
        )
    # each key may be used only for models' noise
    for key in set(of_models):
        require(
            log.count(key) <= of_models.count(key),
            "A model has noise that the choice, or the parts of the records, have as well.",
        )
    return None if drawn or of_models else "no noise is taken from the stream"


@dataclass(frozen=True)
class Watched(InnerStream):
    """A stream that records the key of each generator made from it."""

    log: list[Any] = field(default_factory=list, repr=False, compare=False)

    @classmethod
    def root(cls, log):
        return cls(bytes(range(32)), False, log)

    def __deepcopy__(self, memo):
        return self

    def __getattribute__(self, name):
        found = object.__getattribute__(self, name)
        if name == "key":
            object.__getattribute__(self, "log").append(found)
        return found

    def _of(self, key, released):
        return Watched(key, released, self.log)

    def child(self, *path):
        plain = InnerStream(vars(self)["key"])
        return self._of(plain.child(*path).key, self.released)

    def for_release(self):
        return self._of(vars(self)["key"], True)


def _model(search):
    best = search.best_estimator_
    return best[-1] if hasattr(best, "steps") else best


def _parts(attributes, *without):
    """Return the state that is reachable from attributes, except candidates: {path: bytes}."""
    kept = {name: value for name, value in attributes.items() if name not in (*without, "problem")}
    return {
        path: as_bytes(leaf) for path, leaf in leaves(kept) if not {"problem", "candidates"} & {*path}
    }


def _kept_by_classes(kind):
    """Return the state of a strategy's classes, except the library's own."""
    library = "dpselect.model_selection", "dpselect.testing"
    own = [part for part in kind.__mro__ if not part.__module__.startswith(library)]
    return {
        (part.__name__, *path): value
        for part in own
        if part is not object and not part.__module__.startswith("abc")
        for path, value in _parts(
            {
                name: value
                for name, value in vars(part).items()
                if not name.startswith("__") and not name.startswith("_abc_")
            }
        ).items()
    }
