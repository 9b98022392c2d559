"""The base class of Displays."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Display(ABC):
    """A plot on axes of matplotlib."""

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None makes a new figure.

        Returns
        -------
        self : object

        Raises
        ------
        ImportError
            If matplotlib is not installed: ``pip install dpselect[plot]``.
        """
        pyplot = imported_pyplot()
        ax = pyplot.subplots(layout="constrained")[1] if ax is None else ax
        self._draw(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @abstractmethod
    def _draw(self, ax):
        """Draw on `ax`."""


def imported_pyplot():
    """Return matplotlib.pyplot, or raise with instructions how to install it."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError(
            "Pictures need matplotlib, which is not installed; run pip install dpselect[plot]."
        ) from None
    return pyplot
