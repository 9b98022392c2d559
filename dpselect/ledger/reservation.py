"""A reserved loss of a ledger."""

from dataclasses import dataclass

from ..accounting.privacy_loss import PrivacyLoss
from .admission import in_unit
from .budget_file import transaction


@dataclass(frozen=True)
class Reservation:
    """A reserved loss, which counts as spent until the loss of the outcome is committed.

    Attributes
    ----------
    path : str
        Of the ledger.
    id : int
        Of the entry.
    token : str
        Random; only its holder can commit the entry.
    rows_per_person : int or None
        As of the ledger.
    """

    path: str
    id: int
    token: str
    rows_per_person: int | None = None

    def commit(self, loss: PrivacyLoss) -> None:
        """Replace the reserved loss by that of the outcome.

        Parameters
        ----------
        loss : PrivacyLoss
            Of everything that was released under this reservation; of kind "ex-post" if how much it is
            follows from what came out.

        Raises
        ------
        ValueError
            If the loss exceeds the reservation or is for another adjacency, or the reservation was
            committed before or is not in this ledger. The entry then stays as it is.
        """
        if not isinstance(loss, PrivacyLoss):
            raise TypeError(
                f"loss must be a PrivacyLoss, not a {type(loss).__name__}, because only that says what "
                "came out; write PrivacyLoss(epsilon, delta)."
            )
        with transaction(self.path) as file:
            file.commit(self.id, self.token, in_unit(loss, file, self.rows_per_person))
