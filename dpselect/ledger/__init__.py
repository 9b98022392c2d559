"""A privacy budget on disk, and who is charged for a release."""

from .charging import charged, current_ledger, uncharged
from .entry import LedgerEntry
from .ledger import PrivacyLedger, Reservation

__all__ = ["LedgerEntry", "PrivacyLedger", "Reservation", "charged", "current_ledger", "uncharged"]
