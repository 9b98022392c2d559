"""Scores of labels that are not means over records, but have a known sensitivity.

A record may move one of them by as much as it likes: it may be the only one of its class. A choice
compares candidates on the *same* records, so each may be multiplied by a positive number that depends on
the labels alone. With the right number one record moves it by a known amount: the page "Strategies of a
private search" has the proofs, in terms of how the score falls and rises as a record's weight does.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..exceptions import CertificateError
from ..rows import align
from ..utils.type_aliases import Estimator, MatrixLike
from ..utils.validation import check_number
from .score import (
    AtLeastScore,
    Score,
    check_shape,
    predicted_by,
    weighted_sum,
    weighted_total,
    with_labels,
)


@dataclass(frozen=True)
class LabelScore(AtLeastScore):
    """A score that is a function of some sums over the records.

    `constant` is n times how far one of n records moves what is compared.
    """

    task = "classifier"
    class_share: float = 0.25

    constant: ClassVar[float]

    def __post_init__(self):
        share = check_number(
            "class_share",
            self.class_share,
            high=0.5,
            high_included=True,
            why="tests of an accuracy-first search are made for a class that is so rare",
            instead="write a guess of the rarest class's share, such as 0.25",
        )
        object.__setattr__(self, "class_share", share)

    @property
    def assumed(self) -> str:  # type: ignore[override]  # a read-only property
        return f" if the rarest class has a share of {self.class_share:.4g}"

    @abstractmethod
    def _sums(self, estimator, X, y, sample_weight):
        """Return the sums that determine the score."""

    @abstractmethod
    def _value(self, sums):
        """Return the score."""

    @abstractmethod
    def _compared(self, sums):
        """Return the comparison, which has a known sensitivity."""

    @abstractmethod
    def _shortfall(self, sums, target):
        """Return the shortfall from a target, which has a known sensitivity."""

    def __call__(  # type: ignore[override]  # other scores need no y
        self,
        estimator: Estimator,
        X: MatrixLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """Score a fitted classifier.

        Parameters
        ----------
        estimator : classifier
        X : array-like of shape (m, p)
        y : array-like of shape (m,)
        sample_weight : array-like of shape (m,), default=None
            How often each row counts.

        Returns
        -------
        float
            As scikit-learn's metric of the same name; NaN where that is not defined.

        Raises
        ------
        CertificateError
            If the score is about two classes, and the classifier has more.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(self._value(self._sums(estimator, X, y, sample_weight)))

    def sensitivity(self, n: int) -> float:
        return self.constant / n

    def comparison(
        self,
        estimator: Estimator,
        X: MatrixLike,
        y: npt.ArrayLike | None = None,
        **weight: npt.ArrayLike,
    ) -> float:
        sums = self._sums(estimator, X, y, weight.get("sample_weight"))
        return float(self._compared(sums))

    def shortfall(
        self,
        estimator: Estimator,
        X: MatrixLike,
        y: npt.ArrayLike,
        target: float,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        return float(self._shortfall(self._sums(estimator, X, y, sample_weight), target))


@dataclass(frozen=True)
class RocAucScore(LabelScore):
    """The area under the ROC curve: the fraction of pairs of the two classes that are ranked right.

    It is compared as 4 P N (AUC - 1/2) / m^2, P and N being the numbers of records of the two classes,
    which is AUC - 1/2 if they are equally frequent. One of m records moves that by at most 4 / m.

    Parameters
    ----------
    class_share : float, default=0.25
        A guess of the rarer class's share, in (0, 1/2], for which an accuracy-first search makes its
        tests; no promise depends on it.

    Raises
    ------
    ValueError
        If `class_share` is not in (0, 1/2].

    Examples
    --------
    >>> from dpselect.metrics import RocAucScore
    >>> RocAucScore().sensitivity(1000)
    0.004
    """

    stake = 0.5
    compared_width = 1.0
    constant: ClassVar[float] = 4.0

    def _sums(self, estimator, X, y, sample_weight):
        """Return the number of correctly ranked pairs above half, and the sizes of the two classes."""
        second = _two_classes(self, estimator)
        decision, y = with_labels(_decisions(estimator, X), y)
        # gather one number per row, wherever rows are, because ranking needs all of them
        decision, y = (np.asarray(align((), given)[1]) for given in (decision, y))
        decision = decision.astype(np.float64, copy=False)
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(align((), sample_weight)[1])
        check_shape(decision.shape, y.shape)
        # NaN ranks below all others
        place = np.unique(np.where(np.isnan(decision), -np.inf, decision), return_inverse=True)[1]
        positive = y == second
        p, n = (np.bincount(place, weight * which) for which in (positive, ~positive))
        P, N = p.sum(), n.sum()
        return p @ (n.cumsum() - n / 2) - P * N / 2, P, N

    def _value(self, sums):
        surplus, P, N = sums
        return 0.5 + np.float64(surplus) / (P * N)

    def _compared(self, sums):
        surplus, P, N = sums
        return 4 * surplus / (P + N) ** 2

    @property
    def unit(self) -> float:  # type: ignore[override]  # a read-only property
        return 4 * self.class_share * (1 - self.class_share)

    def _shortfall(self, sums, target):
        surplus, P, N = sums
        return 4 * ((target - 0.5) * P * N - surplus) / (P + N) ** 2

    def shortfall_sensitivity(self, n: int, target: float) -> float:
        return self.constant / n

    def indistinguishable(self, difference: float) -> str:
        rarer = f"one has a share p, {difference / 4:.2g} / (p (1 - p))."
        return f"{_for_equal_classes(super().indistinguishable(difference))} {rarer}"


@dataclass(frozen=True)
class BalancedAccuracyScore(LabelScore):
    """The mean over the classes of the recall.

    It is compared as 2 (n / m) (score - 1/2), n being the number of records of the rarest class. One of
    m records moves that by at most 2 / m.

    Parameters
    ----------
    class_share : float, default=0.25
        A guess of the rarest class's share, in (0, 1/2], for which an accuracy-first search makes its
        tests; no promise depends on it.

    Raises
    ------
    ValueError
        If `class_share` is not in (0, 1/2].

    Examples
    --------
    >>> from dpselect.metrics import BalancedAccuracyScore
    >>> BalancedAccuracyScore().sensitivity(1000)
    0.002
    """

    stake = 0.5
    compared_width = 1.0
    constant: ClassVar[float] = 2.0

    def _sums(self, estimator, X, y, sample_weight):
        """Return the sizes of the classes, their numbers of correct predictions, and that of records."""
        classes = np.asarray(estimator.classes_)

        def members(predicted, y, weight):
            of_class = y[:, None] == classes
            right = of_class & (predicted == y)[:, None]
            return weighted_sum(np.stack([of_class, right], axis=1).astype(np.float64), weight)

        (sizes, hits), total = _label_sums(members, estimator, X, y, sample_weight)
        # a model that learned its classes may lack some labels, so the total is counted separately
        return sizes, hits, total

    def _value(self, sums):
        sizes, hits, _ = sums
        there = sizes > 0
        return float(np.mean(hits[there] / sizes[there])) if there.any() else 0.0

    def _compared(self, sums):
        return -self._shortfall(sums, 0.5)

    @property
    def unit(self) -> float:  # type: ignore[override]  # a read-only property
        return 2 * self.class_share

    def _shortfall(self, sums, target):
        sizes, hits, total = sums
        recalls = np.divide(hits, sizes, out=np.zeros_like(hits), where=sizes > 0)
        return 2 * sizes.min() * (target - recalls.mean()) / total

    def shortfall_sensitivity(self, n: int, target: float) -> float:
        return (2 + abs(2 * target - 1)) / n

    def indistinguishable(self, difference: float) -> str:
        rarer = f"the rarest one has a share p, {difference / 2:.2g} / p."
        return f"{_for_equal_classes(super().indistinguishable(difference))} {rarer}"


@dataclass(frozen=True)
class F1Score(LabelScore):
    """The harmonic mean of precision and recall of the second class.

    It is compared as 2 (P / m) F1, P being the number of records of the second class. One of m records
    moves that by at most 4 / m.

    Parameters
    ----------
    class_share : float, default=0.25
        A guess of the second class's share, in (0, 1/2], for which an accuracy-first search makes its
        tests; no promise depends on it.

    Raises
    ------
    ValueError
        If `class_share` is not in (0, 1/2].

    Examples
    --------
    >>> from dpselect.metrics import F1Score
    >>> F1Score().sensitivity(1000)
    0.004
    """

    # for two equally frequent classes, relative to always predicting the second one
    stake = 1 / 3
    compared_width = 2.0
    constant: ClassVar[float] = 4.0

    def _sums(self, estimator, X, y, sample_weight):
        """Return the numbers of true positives, positive records, positive predictions, and records."""
        second = _two_classes(self, estimator)

        def counts(predicted, y, weight):
            member, chosen = y == second, predicted == second
            columns = np.stack([member & chosen, member, chosen, np.ones(len(y))], axis=1)
            return weighted_sum(columns.astype(np.float64), weight)

        return _label_sums(counts, estimator, X, y, sample_weight)[0]

    def _value(self, sums):
        hits, members, chosen, _ = sums
        return 2 * hits / (members + chosen) if members + chosen > 0 else 0.0

    def _compared(self, sums):
        return 2 * sums[1] / sums[3] * self._value(sums)

    @property
    def unit(self) -> float:  # type: ignore[override]  # a read-only property
        return 2 * self.class_share

    def _shortfall(self, sums, target):
        hits, members, chosen, total = sums
        return (target * (members + chosen) - 2 * hits) / total

    def shortfall_sensitivity(self, n: int, target: float) -> float:
        return (2 - target) / n

    def indistinguishable(self, difference: float) -> str:
        rarer = f"the second one has a share p, {difference / 2:.2g} / p."
        return f"{_for_equal_classes(super().indistinguishable(difference))} {rarer}"


def _for_equal_classes(sentence: str) -> str:
    return f"{sentence[:-1]} where two classes are equally frequent; where"


def _two_classes(score: Score, estimator: Estimator) -> Any:
    """Return the second of two classes, or refuse more."""
    classes = np.asarray(estimator.classes_)
    if len(classes) != 2:
        raise CertificateError(
            f"{type(score).__name__} is about two classes, and {type(estimator).__name__} has "
            f"{len(classes)}, of which none is the positive one; use 'balanced_accuracy', 'accuracy' or "
            "'brier'."
        )
    return classes[1]


def _decisions(estimator: Estimator, X: MatrixLike) -> Any:
    """Return the decision values that rank the rows."""
    if hasattr(estimator, "decision_function"):
        decision = predicted_by(estimator, "decision_function", X)
    else:
        decision = predicted_by(estimator, "predict_proba", X)[:, 1]
    check_shape(decision.shape, (len(decision),))
    return decision


def _label_sums(function, estimator, X, y, sample_weight):
    """Return the sums of ``function(predicted, y, weight)`` over the rows, and the number of rows."""
    predicted, y = with_labels(predicted_by(estimator, "predict", X), y)
    check_shape(predicted.shape, y.shape)
    return weighted_total(function, sample_weight, predicted, y)
