"""Plots of an evaluation: metrics with their intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..evaluation import BinaryEvaluation, Evaluation, MulticlassEvaluation, RegressionEvaluation
from ..evaluation.estimate import Estimate
from ..utils.type_aliases import Array, FloatArray
from .display import Display


def _checked(evaluation: Any, kinds: Any, instead: str) -> Any:
    if not isinstance(evaluation, kinds):
        raise TypeError(
            f"evaluation of type {type(evaluation).__name__} has no such picture; give {instead}."
        )
    return evaluation


def _named(evaluation, name):
    if name is not None or evaluation.level is None:
        return name
    return f"group {evaluation.level!r}"


@dataclass(kw_only=True, eq=False, repr=False)
class EvaluationRocDisplay(Display):
    """The ROC curve of an evaluation, with a band.

    Make one with :meth:`from_evaluation`. Between two thresholds the curve is a straight line.

    Parameters
    ----------
    curve : dict of ndarrays
        As :meth:`BinaryEvaluation.roc_curve <dpselect.evaluation.BinaryEvaluation.roc_curve>` gives it.
    roc_auc : Estimate
    name : str, default=None
        For the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D
        The curve, at the thresholds where both rates are known.
    band_ : matplotlib Polygon
        Between the ends of the intervals of 95 % of each point, towards both corners.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect import DPLogisticRegression, EvaluationRocDisplay, evaluate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2))
    >>> y = (X[:, 0] + rng.normal(size=20_000) > 0).astype(int)
    >>> model = DPLogisticRegression(classes=[0, 1]).fit(X[:10_000], y[:10_000])
    >>> evaluation = evaluate(model, X[10_000:], y[10_000:], epsilon=1.0)
    >>> display = EvaluationRocDisplay.from_evaluation(evaluation)
    >>> display.roc_auc == evaluation.metric("roc_auc")
    True
    """

    curve: dict[str, FloatArray]
    roc_auc: Estimate
    name: str | None = None

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation, *, name: str | None = None) -> Self:
        """Read an evaluation.

        Parameters
        ----------
        evaluation : BinaryEvaluation
        name : str, default=None
            For the legend; None is that of the group, if it is one.

        Returns
        -------
        EvaluationRocDisplay

        Raises
        ------
        TypeError
            If it is no evaluation of a classifier of two classes.
        """
        found = _checked(evaluation, BinaryEvaluation, "an evaluation of a classifier of two classes")
        return cls(curve=found.roc_curve(), roc_auc=found.metric("roc_auc"), name=_named(found, name))

    def _draw(self, ax):
        curve, known = self.curve, ~np.isnan(self.curve["recall"] + self.curve["false_positive_rate"])

        def line(rate, recall):
            # thresholds increase, so both rates decrease
            return np.array([1.0, *curve[rate][known], 0.0]), np.array([1.0, *curve[recall][known], 0.0])

        area = "" if self.roc_auc.empty else f"AUC = {self.roc_auc}"
        label = " ".join(filter(None, (self.name, f"({area})" if self.name and area else area)))
        (self.line_,) = ax.plot(*line("false_positive_rate", "recall"), marker=".", label=label or None)
        above = line("false_positive_rate_low", "recall_high")
        below = line("false_positive_rate_high", "recall_low")
        outline = [np.concatenate([one, other[::-1]]) for one, other in zip(above, below)]
        (self.band_,) = ax.fill(*outline, color=self.line_.get_color(), alpha=0.2, lw=0)
        ax.plot([0, 1], [0, 1], color="0.7", lw=0.8, ls="--", zorder=0)
        ax.set(
            xlabel="false positive rate",
            ylabel="true positive rate",
            xlim=(-0.01, 1.01),
            ylim=(-0.01, 1.01),
            aspect="equal",
        )
        if label:
            ax.legend(loc="lower right")


@dataclass(kw_only=True, eq=False, repr=False)
class EvaluationCalibrationDisplay(Display):
    """Predicted and observed rates, or means, in eight public ranges of predictions, with intervals.

    Make one with :meth:`from_evaluation`.

    Parameters
    ----------
    curve : dict of ndarrays
        As `calibration_curve` of an evaluation gives it.
    unit : str
        What is predicted.
    name : str, default=None
        For the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : matplotlib ErrorbarContainer
        A point for each range where both are known.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect import DPRidge, EvaluationCalibrationDisplay, evaluate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 1))
    >>> model = DPRidge(1.0, target_range=(-2, 2)).fit(X[:10_000], X[:10_000, 0])
    >>> evaluation = evaluate(model, X[10_000:], X[10_000:, 0], epsilon=1.0, target_range=(-2, 2))
    >>> EvaluationCalibrationDisplay.from_evaluation(evaluation).curve["predicted"].shape
    (8,)
    """

    curve: dict[str, FloatArray]
    unit: str
    name: str | None = None

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation, *, name: str | None = None) -> Self:
        """Read an evaluation.

        Parameters
        ----------
        evaluation : BinaryEvaluation or RegressionEvaluation
        name : str, default=None
            For the legend; None is that of the group, if it is one.

        Returns
        -------
        EvaluationCalibrationDisplay

        Raises
        ------
        TypeError
            If it is no such evaluation.
        ValueError
            If scores are no probabilities.
        """
        found = _checked(
            evaluation,
            (BinaryEvaluation, RegressionEvaluation),
            "an evaluation of a classifier of two classes or of a regression",
        )
        binary = isinstance(found, BinaryEvaluation)
        unit = f"share of {found.outcomes[1]!r}" if binary else "target"
        return cls(curve=found.calibration_curve(), unit=unit, name=_named(found, name))

    def _draw(self, ax):
        curve, known = self.curve, ~np.isnan(self.curve["predicted"] + self.curve["observed"])

        def errors(name):
            value = curve[name][known]
            return [value - curve[name + "_low"][known], curve[name + "_high"][known] - value]

        predicted, observed = curve["predicted"][known], curve["observed"][known]
        self.points_ = ax.errorbar(
            predicted,
            observed,
            xerr=errors("predicted"),
            yerr=errors("observed"),
            marker="o",
            label=self.name,
        )
        ends = [*predicted, *observed] or [0.0, 1.0]
        ax.plot([min(ends), max(ends)], [min(ends), max(ends)], color="0.7", lw=0.8, ls="--", zorder=0)
        ax.set(xlabel=f"predicted {self.unit}", ylabel=f"observed {self.unit}")
        if self.name:
            ax.legend(loc="upper left")


@dataclass(kw_only=True, eq=False, repr=False)
class EvaluationConfusionDisplay(Display):
    """The expected confusion matrix of an evaluation, with an interval in each cell.

    Make one with :meth:`from_evaluation`.

    Parameters
    ----------
    matrix : tuple of tuples of Estimate
        Rows are labels and columns predictions.
    classes : ndarray
    name : str, default=None
        For the title.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    image_ : matplotlib AxesImage
    texts_ : list of matplotlib Text

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from dpselect import EvaluationConfusionDisplay, evaluate
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=1000).fit(X[::2], y[::2])
    >>> evaluation = evaluate(model, X[1::2], y[1::2], epsilon=10.0)
    >>> len(EvaluationConfusionDisplay.from_evaluation(evaluation).matrix)
    3
    """

    matrix: tuple[tuple[Estimate, ...], ...]
    classes: Array
    name: str | None = None

    @classmethod
    def from_evaluation(
        cls, evaluation: Evaluation, *, threshold: float = 0.5, name: str | None = None
    ) -> Self:
        """Read an evaluation.

        Parameters
        ----------
        evaluation : BinaryEvaluation or MulticlassEvaluation
        threshold : float, default=0.5
            Of two classes: scores above it are positive predictions.
        name : str, default=None
            For the title; None is that of the group, if it is one.

        Returns
        -------
        EvaluationConfusionDisplay

        Raises
        ------
        TypeError
            If it is no evaluation of a classifier.
        ValueError
            If the threshold is not in [0, 1], or not 0.5 for more than two classes.
        """
        kinds = (BinaryEvaluation, MulticlassEvaluation)
        found = _checked(evaluation, kinds, "an evaluation of a classifier")
        if isinstance(found, BinaryEvaluation):
            matrix = found.confusion_matrix(threshold)
        elif threshold == 0.5:
            matrix = found.confusion_matrix()
        else:
            raise ValueError(
                f"threshold={threshold!r} is for two classes, and of more the most probable one is "
                "predicted; leave threshold out."
            )
        classes = found.classes if len(found.classes) == len(matrix) else np.array(found.outcomes)
        return cls(matrix=matrix, classes=classes, name=_named(found, name))

    def _draw(self, ax):
        values = np.array([[cell.value for cell in row] for row in self.matrix])
        shown = np.nan_to_num(np.maximum(values, 0.0))
        self.image_, self.texts_ = ax.imshow(shown, cmap="Blues"), []
        for i, row in enumerate(self.matrix):
            for j, cell in enumerate(row):
                text = (
                    "?"
                    if math.isnan(cell.value)
                    else (f"{cell.value:.0f}\n[{cell.low:.0f}, {cell.high:.0f}]")
                )
                color = "white" if 2 * shown[i, j] > shown.max() else "black"
                size = "medium" if len(row) < 5 else "x-small"
                self.texts_.append(
                    ax.text(j, i, text, ha="center", va="center", color=color, fontsize=size)
                )
        names, places = [str(label) for label in self.classes.tolist()], range(len(self.classes))
        ax.set_xticks(places, names)
        ax.set_yticks(places, names)
        ax.set(xlabel="prediction", ylabel="label", title=self.name or "")
