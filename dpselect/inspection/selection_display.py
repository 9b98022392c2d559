"""Plot the power of a search: the noise of each candidate against the possible gain."""

import math
from typing import Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..model_selection import StabilityGridSearchCV
from ..model_selection.plan import SelectionPlan
from .display import Display

# more candidates than these are numbered, not named
MAX_NAMES = 30


class StabilitySearchDisplay(Display):
    """The noise of a selection, candidate by candidate, before or after it was made.

    Make one with :meth:`from_search` or :meth:`from_plan`.

    Parameters
    ----------
    plan : SelectionPlan
    best_index : int or None
        The chosen candidate; None before a choice.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : matplotlib PathCollection
        The scale of the noise of each candidate; empty if no scores are compared.

    Examples
    --------
    >>> from dpselect import DPLogisticRegression, StabilityGridSearchCV, StabilitySearchDisplay
    >>> search = StabilityGridSearchCV(
    ...     DPLogisticRegression(), {"data_norm": [0.5, 1.0, 2.0]}, epsilon=1.0
    ... )
    >>> display = StabilitySearchDisplay.from_plan(search.plan(n_samples=20_000, n_features=10))
    >>> display.names
    ['data_norm=0.5', 'data_norm=1.0', 'data_norm=2.0']
    """

    def __init__(self, plan: SelectionPlan, *, best_index: int | None = None) -> None:
        self.plan = plan
        self.best_index = best_index

    @classmethod
    def from_search(cls, search: StabilityGridSearchCV) -> Self:
        """Read a fitted search.

        Parameters
        ----------
        search : StabilityGridSearchCV
            Fitted, with a finite epsilon.

        Returns
        -------
        StabilitySearchDisplay

        Raises
        ------
        ValueError
            If the search is not private: it has no plan.
        """
        check_is_fitted(search)
        if not hasattr(search, "plan_"):
            raise ValueError(
                "search was fitted with epsilon=inf, so its scores are exact and there is no noise to "
                "show; look at its cv_results_, or fit it with a finite epsilon."
            )
        return cls(search.plan_, best_index=search.best_index_)

    @classmethod
    def from_plan(cls, plan: SelectionPlan) -> Self:
        """Show a plan.

        Parameters
        ----------
        plan : SelectionPlan
            From :meth:`StabilityGridSearchCV.plan <dpselect.StabilityGridSearchCV.plan>`.

        Returns
        -------
        StabilitySearchDisplay
        """
        return cls(plan)

    @property
    def names(self) -> list[str]:
        """list of str : Short names of the candidates."""
        if len(self.plan.params) > MAX_NAMES:
            return [str(i) for i in range(len(self.plan.params))]
        return [
            ", ".join(f"{name.rpartition('__')[2]}={_short(value)}" for name, value in params.items())
            or "the only candidate"
            for params in self.plan.params
        ]

    def _draw(self, ax):
        """Draw the noise of each candidate, and the minimum detectable difference."""
        plan = self.plan
        places = np.arange(len(plan.params))
        compared = not math.isnan(plan.minimum_detectable_difference)
        colors = ["tab:orange" if i == self.best_index else "tab:blue" for i in places]
        noise = np.where(plan.considered, plan.noise_scale, np.nan) if compared else np.array([])
        self.points_ = ax.scatter(noise, places[: len(noise)], c=colors[: len(noise)], zorder=3)
        ax.grid(axis="y", color="0.9")
        for place in places[~plan.considered] if compared else ():
            ax.text(
                0.04,
                place,
                "not considered",
                transform=ax.get_yaxis_transform(),
                va="center",
                color="gray",
                backgroundcolor="white",
                zorder=4,
            )
        if compared and (plan.noise_scale[plan.considered] > 0).any():
            ax.set_xscale("log")
        if compared:
            if plan.minimum_detectable_difference > 0:
                ax.axvline(
                    plan.minimum_detectable_difference,
                    color="tab:blue",
                    linestyle="--",
                    label="minimum detectable difference",
                )
            ax.axvline(plan.stake, color="black", label="what a perfect model gains")
            ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), frameon=False)
        else:
            ax.text(
                0.5,
                0.5,
                "nothing is compared: the choice costs nothing",
                ha="center",
                va="center",
                transform=ax.transAxes,
            )
        ax.set_yticks(places, self.names)
        if self.best_index is not None:
            ax.get_yticklabels()[self.best_index].set_color("tab:orange")
        ax.set(
            xlabel="scale of the noise of the score",
            ylim=(len(places) - 0.5, -0.5),
            title=plan.division,
        )


def _short(value):
    text = f"{value:.4g}" if type(value) is float and value != round(value, 1) else str(value)
    return text if len(text) <= 24 else text[:21] + "..."
