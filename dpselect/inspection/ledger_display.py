"""Plot a privacy budget over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from ..ledger import PrivacyLedger, how_losses_add_up
from ..utils.type_aliases import Array, FloatArray
from .display import Display


@dataclass(kw_only=True, eq=False, repr=False)
class PrivacyLedgerDisplay(Display):
    """The spent part of a privacy budget, over time.

    Make one with :meth:`from_ledger`.

    Parameters
    ----------
    times : ndarray of shape (n,) of datetime64
        When each entry was reserved (UTC).
    epsilons : ndarray of shape (n,)
        What each entry adds to what all releases cost together.
    uncommitted : ndarray of shape (n,) of bool
        Entries whose release may or may not have come out.
    budget : float
        Epsilon in all.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D
        The sum of the entries so far.

    Examples
    --------
    >>> import os, tempfile
    >>> from dpselect import PrivacyLedger, PrivacyLedgerDisplay
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = PrivacyLedger(os.path.join(folder.name, "patients.ledger"), epsilon=1.0)
    >>> ledger.spend(0.25)
    >>> display = PrivacyLedgerDisplay.from_ledger(ledger)
    >>> display.epsilons
    array([0.25])
    >>> folder.cleanup()
    """

    times: Array
    epsilons: FloatArray
    uncommitted: npt.NDArray[np.bool_]
    budget: float

    @classmethod
    def from_ledger(cls, ledger: PrivacyLedger) -> Self:
        """Read a ledger.

        Parameters
        ----------
        ledger : PrivacyLedger

        Returns
        -------
        PrivacyLedgerDisplay
        """
        history = ledger.history()
        epsilons = [entry.epsilon for entry in history]
        if ledger.composition != "sum" or ledger.parts:
            epsilons = np.diff(how_losses_add_up(ledger)[1], prepend=0.0)
        times = [entry.reserved_at.replace(tzinfo=None) for entry in history]
        return cls(
            times=np.array(times, dtype="datetime64[us]"),
            epsilons=np.array(epsilons, dtype=float),
            uncommitted=np.array([entry.kind == "uncommitted" for entry in history], dtype=bool),
            budget=ledger.budget[0],
        )

    def _draw(self, ax):
        """Draw the sum of the entries, below the budget."""
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        total = np.cumsum(self.epsilons)
        (self.line_,) = ax.step(self.times, total, where="post", marker="o", label="spent")
        if self.uncommitted.any():
            ax.plot(
                self.times[self.uncommitted],
                total[self.uncommitted],
                "o",
                mfc="white",
                color=self.line_.get_color(),
                label="not committed, counts in full",
            )
        ax.axhline(self.budget, color="black", linestyle="--", label="budget")
        locator = AutoDateLocator()
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        ax.set(xlabel="time (UTC)", ylabel="epsilon", ylim=(0, 1.08 * self.budget))
        ax.legend(loc="best")
