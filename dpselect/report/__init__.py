"""Privacy statements: what was released, in words that a data-protection officer can sign."""

from .document import PrivacyReport, Section, Table
from .statement import privacy_report

__all__ = ["PrivacyReport", "Section", "Table", "privacy_report"]
