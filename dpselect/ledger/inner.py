"""Ledgers of estimators whose releases are charged to another estimator or function."""

from ..config import warn_caller
from ..exceptions import PrivacyLeakWarning
from .spending import current_ledger, is_included


def refuse_inner_ledger(estimator, payer):
    """Refuse a ledger of an estimator or step where only `payer`, a "search", is charged."""
    for name in _inner_ledgers(estimator):
        raise ValueError(
            f"{name} is given, but what a {payer} trains is paid for once, as a whole, and not by "
            f"each of its parts; give ledger= to the {payer}."
        )


def warn_if_uncharged(release, model, name):
    """Warn if no ledger is charged for a release about a model that was fitted with one."""
    if current_ledger(release) is None and not is_included() and _inner_ledgers(model):
        warn_caller(
            f"{name} was given no ledger, and none is open, while the {type(model).__name__} has one, "
            f"so this release is counted nowhere; give {name} the ledger= of these records.",
            PrivacyLeakWarning,
        )


def _inner_ledgers(estimator):
    try:
        params = getattr(estimator, "get_params", dict)()
    except AttributeError:  # a third-party model that does not store its parameters under their names
        return []
    return [
        name
        for name, value in params.items()
        if name.rpartition("__")[2] == "ledger" and value is not None
    ]
