"""Privacy budgets on disk, and the choice of the ledger that a release spends from."""

from .access import LedgerAccessError
from .budget_file import how_losses_add_up
from .carrying import CarriesLedgerMixin, restored_origin
from .entry import LedgerEntry
from .inner import refuse_inner_ledger, warn_if_uncharged
from .ledger import PrivacyLedger
from .on_disk import is_ledger_file
from .reservation import Reservation
from .spending import current_ledger, is_included, spending, without_spending

__all__ = [
    "CarriesLedgerMixin",
    "LedgerAccessError",
    "LedgerEntry",
    "PrivacyLedger",
    "Reservation",
    "current_ledger",
    "how_losses_add_up",
    "is_included",
    "is_ledger_file",
    "refuse_inner_ledger",
    "spending",
    "warn_if_uncharged",
    "restored_origin",
    "without_spending",
]
