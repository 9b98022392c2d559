"""A privacy budget on disk, and who is charged for a release."""

from .carrying import CarriesLedgerMixin, where_it_came_from
from .charging import charged, current_ledger, uncharged
from .entry import LedgerEntry
from .ledger import PrivacyLedger, Reservation

__all__ = [
    "CarriesLedgerMixin",
    "LedgerEntry",
    "PrivacyLedger",
    "Reservation",
    "charged",
    "current_ledger",
    "uncharged",
    "where_it_came_from",
]
