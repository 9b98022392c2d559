"""Warnings and errors about guarantees that would break, or were weakened."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .accounting.privacy_loss import PrivacyLoss


class PrivacyLeakWarning(UserWarning):
    """Data was used in a way that the stated privacy loss does not cover.

    The message says what was taken and which argument makes it public knowledge
    instead. It never contains the data. In strict mode it is a PrivacyLeakError.
    """


class SeededNoiseWarning(UserWarning):
    """A result was released with noise that anyone who knows the seed can remove.

    In strict mode it is a PrivacyLeakError, and nothing is released.
    """


class PrivacyLeakError(ValueError):
    """Raised in strict mode in place of a PrivacyLeakWarning or a SeededNoiseWarning.

    See :func:`dpselect.config_context`.
    """


class CertificateError(ValueError):
    """No proof covers an estimator together with a score, a method or a question."""


class BudgetExceededError(RuntimeError):
    """A request exceeds a budget; nothing was drawn or released for it."""


class AccuracyNotReachedError(RuntimeError):
    """No model up to the largest epsilon was found accurate enough; none is returned.

    Parameters
    ----------
    message : str
    privacy : PrivacyLoss
        What the search has spent to find that out. It is finite.
    """

    def __init__(self, message: str, privacy: "PrivacyLoss") -> None:
        super().__init__(message, privacy)
        self.privacy = privacy

    def __str__(self):
        return self.args[0]
