"""Plot a released density of one or two columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from sklearn.utils.validation import check_is_fitted

from ..density import DPHistogramDensity
from ..utils.type_aliases import Estimator, FloatArray
from .display import Display


@dataclass(kw_only=True, eq=False, repr=False)
class DensityDisplay(Display):
    """A histogram density of one or two columns.

    Make one with :meth:`from_estimator`.

    Parameters
    ----------
    density : ndarray of shape (n_bins,) or (n_bins_1, n_bins_2)
    edges : list of ndarray
        Edges of the cells along each column.
    names : list of str
        Of the columns.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    artist_ : matplotlib StepPatch or QuadMesh

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect import DensityDisplay, DPHistogramDensity
    >>> ages = np.random.default_rng(0).beta(2, 5, size=(1000, 1))
    >>> DensityDisplay.from_estimator(DPHistogramDensity(bounds=(0, 1)).fit(ages)).density.shape
    (10,)
    """

    density: FloatArray
    edges: list[FloatArray]
    names: list[str]

    @classmethod
    def from_estimator(cls, estimator: Estimator) -> Self:
        """Read a fitted density.

        Parameters
        ----------
        estimator : DPHistogramDensity or search
            Fitted to one or two columns; of a search its `best_estimator_` is shown.

        Returns
        -------
        DensityDisplay

        Raises
        ------
        TypeError
            If it is no density, or one behind the steps of a Pipeline.
        ValueError
            If it has more columns.
        """
        check_is_fitted(estimator)
        estimator = getattr(estimator, "best_estimator_", estimator)
        if not isinstance(estimator, DPHistogramDensity):
            raise TypeError(
                f"estimator must be a DPHistogramDensity, or a search of one, not a "
                f"{type(estimator).__name__}, because its cells are drawn; of a Pipeline give the last "
                "step, whose units are those after the scaling."
            )
        n_columns = len(estimator.bin_edges_)
        if n_columns > 2:
            raise ValueError(
                f"estimator is a density of {n_columns} columns, and a picture shows one or two; fit "
                "one to these columns."
            )
        names = getattr(estimator, "feature_names_in_", [f"column {j}" for j in range(n_columns)])
        return cls(
            density=estimator.density_, edges=list(estimator.bin_edges_), names=[str(n) for n in names]
        )

    def _draw(self, ax):
        """Draw the density."""
        if len(self.edges) == 1:
            self.artist_ = ax.stairs(self.density, self.edges[0], fill=True, alpha=0.6)
            ax.set(xlabel=self.names[0], ylabel="density", ylim=(0, None))
        else:
            self.artist_ = ax.pcolormesh(*self.edges, self.density.T, vmin=0)
            ax.figure.colorbar(self.artist_, ax=ax, label="density")
            ax.set(xlabel=self.names[0], ylabel=self.names[1])
