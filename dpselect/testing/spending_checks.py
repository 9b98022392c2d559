"""Check the stated loss, and what a ledger counts."""

import copy
import tempfile

import numpy as np

from ..accounting.privacy_loss import PrivacyLoss
from ..exceptions import (
    BudgetExceededError,
)
from .attempts import Untouchable, attempt, refused, stays_as_it_was
from .case import open_ledger, stated_delta
from .tally import leave_out, require


def check_the_statement(case):
    """Check that `privacy_` states the spent loss, before and after parameters change."""
    data = case.data()
    for epsilon in (0.5, 3, 1e-3):
        model = case.fit(data, None, epsilon=epsilon)
        loss = model.privacy_
        require(isinstance(loss, PrivacyLoss), "privacy_ must be a PrivacyLoss.")
        require(
            loss.epsilon == float(epsilon) and loss.delta in (0.0, stated_delta(case)),
            f"privacy_ states epsilon {loss.epsilon:g} and delta {loss.delta:g} after a fit with "
            f"{epsilon:g} and {stated_delta(case):g}.",
        )
        if loss.delta != stated_delta(case):
            released = [
                case.numbers(case.fit(data, epsilon=epsilon, **delta)) for delta in ({}, {"delta": 0.0})
            ]
            require(
                np.array_equal(*released),
                f"privacy_ states delta 0 after a fit with delta {stated_delta(case):g}, which "
                "releases something else than one with delta=0.0.",
            )
        require(
            loss.adjacency == PrivacyLoss(1.0).adjacency and loss.kind == PrivacyLoss(1.0).kind,
            "privacy_ states another guarantee than the one that is checked.",
        )
        model.set_params(epsilon=99.0)
        require(model.privacy_ is loss, "privacy_ changes with the parameters after the fit.")
    require(copy.deepcopy(model).privacy_ == loss, "privacy_ does not travel with a copy of the model.")


def check_ledger(case):
    """Check that a ledger is charged before records are read, and counts what `privacy_` states."""
    data = case.data()
    untouchable = [Untouchable() for _ in data]
    sources = ["open", "parameter"] if "ledger" in case.params else ["open"]
    for source in sources:
        with tempfile.TemporaryDirectory() as folder:
            ledger = open_ledger(folder, epsilon=1.0)
            model = case.model(epsilon=0.75)

            def fit(*records):
                if source == "parameter":
                    return model.set_params(ledger=ledger).fit(*records)
                with ledger:
                    return model.fit(*records)

            for name, (X, *y) in {
                "one dimension": (data[0][:, 0], *data[1:]),
                "NaN": (data[0] * np.nan, *data[1:]),
            }.items():
                attempt(lambda: fit(X, *y))
                require(
                    ledger.spent() in ((0.0, 0.0), (0.75, 0.0), (0.75, stated_delta(case))),
                    f"A fit that was refused for X with {name} is counted with {ledger.spent()}.",
                )
            already = len(ledger.history())
            if ledger.spent()[0]:
                leave_out("what a fit is counted with, as one that was refused was counted")
                return
            fit(*data)
            entries = ledger.history()[already:]
            require(len(entries) == 1, f"A fit makes {len(entries)} entries in the ledger, not one.")
            (entry,) = entries
            require(
                ledger.spent() == (0.75, model.privacy_.delta)
                and (entry.epsilon, entry.delta) == (model.privacy_.epsilon, model.privacy_.delta),
                f"The ledger counts epsilon {entry.epsilon:g} and delta {entry.delta:g} for a fit "
                f"that states 0.75 and {model.privacy_.delta:g}.",
            )
            require(
                entry.label == model.privacy_.label, "The ledger names something else than privacy_."
            )
            with stays_as_it_was(model, "A fit that no budget pays"):
                refused(lambda: fit(*untouchable), (BudgetExceededError,), "A fit beyond the budget")
            require(ledger.spent() == (0.75, entry.delta), "A refused fit is counted.")
