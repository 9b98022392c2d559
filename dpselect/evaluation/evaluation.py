"""Base of evaluations: every metric is computed from one release of noisy counts."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..accounting.privacy_loss import PrivacyLoss
from ..utils.type_aliases import FloatArray
from ..utils.validation import check_choice, check_member, imported_pandas
from .estimate import Estimate, Metric
from .intervals import NoisyCounts

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Evaluation(ABC):
    """An evaluation of a model, from one release: see :func:`evaluate`.

    All metrics are functions of `counts_` and of public numbers, and cost nothing more. The kinds are
    :class:`~dpselect.evaluation.BinaryEvaluation`, :class:`~dpselect.evaluation.MulticlassEvaluation`,
    :class:`~dpselect.evaluation.ConfidenceEvaluation` and
    :class:`~dpselect.evaluation.RegressionEvaluation`.

    Parameters
    ----------
    counts_ : ndarray
        Released: how many records are in each cell, with discrete Laplace noise; of groups, one set
        of cells each. Negative numbers stay: setting them to 0 would add records to all cells that
        have none.
    n_records : int
        Number of records m of all groups, or of persons; public.
    privacy_ : PrivacyLoss
        What the evaluation spent. It does not cover the model.
    levels : tuple, default=()
        The public groups; empty if there are none.
    level : object, default=None
        The group whose figures these are; None for all records.
    of_training_records : bool, default=False
        Whether the records are known to be those that the model was trained on: then both losses add up,
        and figures are too good. False also where it is not known.
    max_weight : float, default=None
        To which the weights of records were clipped: then `counts_` are sums of weights as fractions of
        it. None if each record counts once.
    """

    counts_: FloatArray
    n_records: int
    privacy_: PrivacyLoss
    levels: tuple[Any, ...] = ()
    level: Any = None
    of_training_records: bool = False
    max_weight: float | None = None

    @property
    def source(self) -> Any:
        """Evaluation : That of which this is another view; itself if it is none."""
        return vars(self).get("_source", self)

    @property
    def _of_persons(self):
        """bool : Whether records are persons, each the mean of their rows."""
        return self.privacy_.adjacency.unit == "person"

    @property
    @abstractmethod
    def _readers(self) -> Mapping[str, Metric]:
        """Return the function that estimates each of `metrics`."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """tuple of str : What the counts tell of how far to believe the figures, for nothing more."""
        return ()

    @property
    def metrics(self) -> tuple[str, ...]:
        """tuple of str : Names of the metrics of this model."""
        return tuple(self._readers)

    def metric(self, name: str) -> Estimate:
        """Return a metric with its 95 % interval.

        Parameters
        ----------
        name : str
            One of `metrics`.

        Returns
        -------
        Estimate

        Raises
        ------
        ValueError
            If there is no such metric.
        """
        return self._asked(name)

    def group(self, level: Any) -> Self:
        """Return the evaluation of one public group.

        Parameters
        ----------
        level : object
            One of `levels`.

        Returns
        -------
        Evaluation
            Of the same release. How many records a group has is not public, and part of the noise.

        Raises
        ------
        ValueError
            If there is no such group.
        """
        place = check_member("level", level, self.levels, why="no other group is counted by itself")
        return replace(self, level=self.levels[place])

    def to_frame(self) -> DataFrame:
        """Return all metrics as a dataframe.

        Returns
        -------
        pandas.DataFrame
            A row for each of `metrics`, with columns "value", "low" and "high"; NaN where nothing can
            be said. If there are `levels`, a row for each group and metric.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return self._frame()

    def _frame(self, *asked):
        pandas = imported_pandas("to_frame", "call metric")
        if self.levels and self.level is None:
            frames = [self.group(level)._frame(*asked) for level in self.levels]
            return pandas.concat(frames, keys=self.levels, names=["group"])
        rows = [self._asked(name, *asked) for name in self.metrics]
        return pandas.DataFrame(
            [(e.value, e.low, e.high) for e in rows],
            index=pandas.Index(self.metrics, name="metric"),
            columns=["value", "low", "high"],
        )

    def _asked(self, name, *asked):
        check_choice("name", name, self.metrics, why="no figure of this model has this name")
        return self._estimate(self._readers[name], *asked)

    def _estimate(self, metric, *asked):
        return Estimate(*map(float, metric(self.noisy_counts, *asked)))

    def _expected(self, here):
        """Return the expected number of records in the cells that `here` marks."""
        n_groups = max(len(self.levels), 1)
        weights = np.tile(here, n_groups)
        if self.level is not None:
            weights *= np.repeat(np.arange(n_groups) == self.levels.index(self.level), len(here))
        metric = Metric(lambda counts: counts.mean(weights, np.ones(len(weights))), unit=self.n_records)
        return Estimate(*map(float, metric(self._moved)))

    @cached_property
    def _moved(self):
        weighted = self.max_weight is not None
        variance = noise_variance(self.privacy_.epsilon, self._of_persons or weighted)
        if weighted:  # the sum of the weights is not public
            return NoisyCounts(self.counts_.ravel(), variance, math.inf)
        return NoisyCounts.of(self.counts_.ravel(), self.n_records, variance)

    @cached_property
    def noisy_counts(self) -> NoisyCounts:
        """NoisyCounts : Counts of the group or of all records, shifted to sum to `n_records`."""
        if not self.levels:
            return self._moved
        if self.level is None:
            return self._moved.over_groups(len(self.levels))
        return self._moved.group(self.levels.index(self.level), len(self.levels))

    def _figures(self):
        """Return the estimates to print, as a dict."""
        return {name: self.metric(name) for name in self.metrics}

    def __repr__(self) -> str:
        lines = [self._head()]
        for part in self._parts():
            if part is not self:
                lines.append(f"group {part.level!r}")
            lines += [f"{name:<18} {estimate}" for name, estimate in part._figures().items()]
        return "\n".join([*lines, *self.remarks, str(self.privacy_)])

    def _repr_html_(self) -> str:
        names = ["value [95 %]" if part is self else f"group {part.level!r}" for part in self._parts()]
        found = [part._figures() for part in self._parts()]
        style = " style='text-align:left'"
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        rows = "".join(
            f"<tr><td{style}>{escape(name)}</td>"
            + "".join(f"<td{style}>{escape(str(figures[name]))}</td>" for figures in found)
            + "</tr>"
            for name in found[0]
        )
        return (
            f"<p>{escape(self._head())}</p><table><thead><tr><th>metric</th>{head}</tr>"
            f"</thead><tbody>{rows}</tbody></table>"
            + "".join(f"<p>{escape(remark)}</p>" for remark in self.remarks)
            + self.privacy_._repr_html_()
        )

    def _parts(self):
        levels = self.levels if self.level is None else ()
        return [self, *(self.group(level) for level in levels)]

    def _head(self):
        of = "Evaluation" if self.level is None else f"Evaluation of group {self.level!r}"
        on = f"{self.n_records} {self.privacy_.adjacency.unit}s"
        if self.max_weight is not None:
            on += f" with weights of up to {self.max_weight:g}"
        return f"{of} on {on}, {self._at()}with intervals of 95 %"

    def _at(self):
        return ""


def noise_variance(epsilon, fractions=False):
    """Return the variance of the noise of a count.

    Of integers 2 q / (1 - q)^2 for ``q = exp(-epsilon / 2)``, of fractions 8 / epsilon^2.
    """
    if fractions:
        return 2 * (2 / epsilon) ** 2
    return 0.0 if epsilon == math.inf else 0.5 / math.sinh(min(epsilon, 200.0) / 4) ** 2
