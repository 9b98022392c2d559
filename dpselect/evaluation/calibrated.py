"""Thresholds and calibration from an evaluation that has already been released."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import StackingClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.pipeline import Pipeline

from ..accounting.privacy_loss import PrivacyLoss
from ..preprocessing.estimator_loss import privacy_of
from ..preprocessing.plain_pipelines import to_sklearn
from ..records.training import warns_of_training_records
from ..rows import block_map
from ..utils.type_aliases import Array, Estimator, FloatArray, MatrixLike
from ..utils.validation import check_choice, check_flag, check_number
from .binary import BIN, LABEL, BinaryEvaluation
from .plain_calibrated import plain_calibrated
from .score_bins import N_BINS, class_probabilities, probabilities

# bins are merged until a rate exceeds so many standard deviations of its noise
FEWEST_DEVIATIONS = 6.0
# bounds on the slope and the intercept of a sigmoid
BOUNDS = ((0.05, 20.0), (-20.0, 20.0))
METHODS = ("sigmoid", "isotonic")


def calibrated(
    model: Estimator,
    evaluation: BinaryEvaluation,
    *,
    method: str | None = "sigmoid",
    recall: float | None = None,
    precision: float | None = None,
    rate: float | None = None,
    other_records: bool = False,
) -> CalibratedModel:
    """Calibrate a model's probabilities, or set its threshold, by an evaluation, at no more epsilon.

    Takes the place of :class:`sklearn.calibration.CalibratedClassifierCV` and
    :class:`sklearn.model_selection.TunedThresholdClassifierCV`, which look at exact records. All that is
    used is released already: this is post-processing.

    Read more in :doc:`/thresholds`.

    Parameters
    ----------
    model : classifier
        The one that was evaluated; the probabilities of another one would come out wrong.
    evaluation : BinaryEvaluation or ConfidenceEvaluation
        Of this model, or of one group of records. Targets are about its positive label: give
        ``evaluation.with_positive("ja")`` if that is not the second one in sorted order. A model of
        three or more classes needs ``evaluate(..., confidence=True)``: the probability of its prediction
        becomes that of being right, others share the rest as before, and predictions stay the same.
    method : {"sigmoid", "isotonic"} or None, default="sigmoid"
        "sigmoid": a line in the logits of the scores, two numbers, which stay near those of no change
        where there is much noise. "isotonic": a rising curve through rates of bins, each so wide that
        noise leaves its rate known; for many records. None leaves probabilities as they are.
    recall : float, default=None
        In (0, 1): predictions are positive above the highest threshold with this recall.
    precision : float, default=None
        In (0, 1): above the lowest threshold with this precision.
    rate : float, default=None
        In (0, 1): above the score with this share of positive predictions, between two of
        ``evaluation.thresholds`` as if scores were spread evenly there; of persons it is a mean over
        persons, and another share of their rows. ``evaluation.metric("recall", rate=...)`` has an
        interval that holds for any spread. One of the three may be given; with none, predictions are
        positive where the probability exceeds 1/2.
    other_records : bool, default=False
        Your word that the evaluation is of other records than those of the training, and that which ones
        was decided without looking at them. Then the larger of both losses counts, and not their sum; a
        statement repeats it. The `evaluation_` of a search needs no such word.

    Returns
    -------
    CalibratedModel

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range, the evaluation has no scores, or other classes than the model's,
        a threshold is asked for with more than two classes, or none is known to reach what is asked for.

    References
    ----------
    Platt, *Probabilistic Outputs for Support Vector Machines*, 1999; Zadrozny and Elkan, *Transforming
    Classifier Scores into Accurate Multiclass Probability Estimates*, KDD 2002; of several classes Gupta
    and Ramdas, *Top-label Calibration and Multiclass-to-binary Reductions*, ICLR 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect import DPLogisticRegression, calibrated, evaluate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30_000, 2))
    >>> y = (X[:, 0] + rng.normal(size=30_000) > 1).astype(int)
    >>> model = DPLogisticRegression(classes=[0, 1]).fit(X[:10_000], y[:10_000])
    >>> evaluation = evaluate(model, X[10_000:20_000], y[10_000:20_000], epsilon=1.0)
    >>> careful = calibrated(model, evaluation, recall=0.9)
    >>> positive = y[20_000:] == 1
    >>> bool(abs(careful.predict(X[20_000:][positive]).mean() - 0.9) < 0.05)
    True
    """
    if not isinstance(evaluation, BinaryEvaluation):
        raise TypeError(
            f"evaluation of type {type(evaluation).__name__} has no scores, which are what is "
            "calibrated; give evaluate(model, X, y, epsilon=...) of a classifier of two classes, or of "
            "more with confidence=True."
        )
    classes, counted = np.array(getattr(model, "classes_", ())), evaluation.classes
    reversed_too = len(classes) == 2 and np.array_equal(classes[::-1], counted)
    if isinstance(model, type) or not (reversed_too or np.array_equal(classes, counted)):
        raise ValueError(
            "model does not have the classes_ of evaluation, which then is not about its scores; give "
            "the fitted model that was evaluated."
        )
    if method is not None:
        check_choice("method", method, METHODS, why="only these are known here, or None")
    targets = {
        name: value
        for name, value in (("recall", recall), ("precision", precision), ("rate", rate))
        if value is not None
    }
    for name, value in targets.items():
        check_number(
            name,
            value,
            high=1.0,
            why="it is a share",
            instead="write a number between 0 and 1",
        )
    if len(targets) > 1:
        raise ValueError(
            f"{' and '.join(targets)} were given, and one threshold cannot be set for two targets; "
            "leave one out."
        )
    if targets and len(classes) > 2:
        raise ValueError(
            f"{next(iter(targets))} was given for {len(classes)} classes, and a threshold tells two "
            "apart; leave it out."
        )
    found = CalibratedModel(model, evaluation, method=method, other_records=other_records)
    found._check_other_records()
    for name, value in targets.items():
        found.threshold = threshold_for(evaluation, name, float(value))
        found._target = name, float(value), found.threshold
    return found


class CalibratedModel(ClassifierMixin, BaseEstimator):
    """A classifier that is calibrated by an evaluation: see :func:`calibrated`.

    It is fitted, and stays so: `fit` changes nothing, and a clone is the model itself.

    Parameters
    ----------
    estimator : classifier
        The model that was evaluated.
    evaluation : BinaryEvaluation or ConfidenceEvaluation
    method : {"sigmoid", "isotonic"} or None, default="sigmoid"
    threshold : float, default=None
        Of two classes. The positive label of `evaluation` is predicted where the *estimator's* score of
        it exceeds the threshold. None: where the calibrated probability exceeds 1/2.
        :func:`calibrated` computes it from the evaluation.
    other_records : bool, default=False
        Whether the evaluation is of other records than those of the training: as for :func:`calibrated`.
        If they are known to be the same, `privacy_` raises ValueError.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    curve_ : tuple of 2 ndarrays
        Scores, of more than two classes the largest probabilities, and the probabilities that they stand
        for; between them, lines. Released, as a function of the evaluation.
    privacy_ : PrivacyLoss
        Of the estimator and the evaluation: their sum, unless the evaluation is the estimator's own
        `evaluation_`. It is the larger one of both if they are of different records.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect import DPLogisticRegression, StabilityGridSearchCV, calibrated
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(10_000, 2))
    >>> y = (X[:, 0] + rng.normal(size=10_000) / 4 > 0).astype(int)
    >>> search = StabilityGridSearchCV(
    ...     DPLogisticRegression(classes=[0, 1]), {"alpha": [0.01, 1.0]}, evaluation=0.3
    ... ).fit(X, y)
    >>> model = calibrated(search, search.evaluation_)
    >>> model.privacy_.epsilon
    1.0
    >>> model.predict_proba(X[:2]).shape
    (2, 2)
    """

    def __init__(
        self,
        estimator: Estimator,
        evaluation: BinaryEvaluation,
        *,
        method: str | None = "sigmoid",
        threshold: float | None = None,
        other_records: bool = False,
    ) -> None:
        self.estimator = estimator
        self.evaluation = evaluation
        self.method = method
        self.threshold = threshold
        self.other_records = other_records

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Do nothing: the model is fitted, and X and y are not read.

        Parameters
        ----------
        X, y : object, default=None
            Not read.

        Returns
        -------
        self : object
        """
        return self

    def __sklearn_is_fitted__(self):
        return True

    def __sklearn_clone__(self):
        return self

    @property
    def _post_processed(self):
        return self.estimator

    @warns_of_training_records
    def score(
        self,
        X: MatrixLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """Return the fraction of correct predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records that took no part in training.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        float

        Warns
        -----
        PrivacyLeakWarning
            If `X` is what the model was trained on, or a part of it.
        """
        return super().score(X, y, sample_weight)

    @property
    def classes_(self) -> Array:
        """ndarray of shape (n_classes,) : The labels."""
        return np.array(self.estimator.classes_)

    @property
    def n_features_in_(self) -> int:
        """int : Number of columns of X."""
        return self.estimator.n_features_in_

    @property
    def positive_label(self) -> Any:
        """object : Of two classes the label that the threshold is about; None of more."""
        return None if len(self.classes_) > 2 else self.evaluation.outcomes[1]

    @property
    def upper_threshold(self) -> float | None:
        """float or None : The score of the second class above which that is predicted."""
        if self.threshold is None or self.positive_label == self.classes_[1]:
            return self.threshold
        return 1.0 - self.threshold

    @property
    def _of_second(self):
        """The evaluation with the second class as the positive one, as scores are."""
        if len(self.classes_) > 2 or self.positive_label == self.classes_[1]:
            return self.evaluation
        return self.evaluation.with_positive(self.evaluation.outcomes[0])

    @property
    def threshold_target(self) -> tuple[str, float] | None:
        """tuple of (str, float) or None : Target of the threshold, such as ("rate", 0.2)."""
        *target, threshold = getattr(self, "_target", (None,))
        return tuple(target) if target and threshold == self.threshold else None

    @property
    def curve_(self) -> tuple[FloatArray, FloatArray]:
        """tuple of 2 ndarrays : Scores, and their calibrated probabilities."""
        if self.method is None:
            ends = np.array(self._of_second.edges)
            return ends, ends
        return (_sigmoid if self.method == "sigmoid" else _isotonic)(self._of_second)

    @property
    def privacy_(self) -> PrivacyLoss:
        """PrivacyLoss : Loss of the estimator and the evaluation."""
        pipeline = isinstance(self.estimator, Pipeline)  # whose parts state what they spent
        loss = privacy_of(self.estimator) if pipeline else self.estimator.privacy_
        # compare by identity: another evaluation with an equal loss is a release of its own
        if self.evaluation.source is getattr(self.estimator, "evaluation_", None):
            return loss
        self._check_other_records()
        together = PrivacyLoss.parallel if self.other_records else PrivacyLoss.sequential
        return together([loss, self.evaluation.privacy_], label=type(self).__name__)

    def _check_other_records(self):
        check_flag("other_records", self.other_records, why="it says which losses add up")
        if self.other_records and self.evaluation.of_training_records:
            raise ValueError(
                "other_records=True, and the evaluation is known to be of records that the model was "
                "trained on, so that the losses add up; leave it out, or evaluate records that were set "
                "aside."
            )

    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Return the calibrated probabilities of all classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        curve = self.curve_
        if len(self.classes_) > 2:
            p = class_probabilities(self.estimator, X, len(self.classes_))
            return block_map(partial(_with_confidence, curve), p)

        def both(scores):
            p = np.interp(scores, *curve)
            return np.column_stack([1 - p, p])

        return block_map(both, probabilities(self.estimator, X))

    def predict(self, X: MatrixLike) -> Array:
        """Predict the class of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        classes = self.classes_
        if len(classes) > 2:
            p = class_probabilities(self.estimator, X, len(classes))
            return block_map(lambda p: classes[np.nan_to_num(p).argmax(axis=1)], p)
        if self.threshold is None:
            positive = block_map(lambda p: p[:, 1] > 0.5, self.predict_proba(X))
        else:
            positive = block_map(lambda s: s > self.upper_threshold, probabilities(self.estimator, X))
        return block_map(lambda positive: classes[positive.astype(int)], positive)

    def to_sklearn(self) -> StackingClassifier:
        """Return an equal classifier of scikit-learn alone, of two classes.

        Returns
        -------
        sklearn.ensemble.StackingClassifier
            Its `final_estimator_` calibrates the scores of the model, and holds the threshold.
            Probabilities are equal up to 1e-12.

        Raises
        ------
        TypeError
            If there are more than two classes, or the estimator has no equal one in scikit-learn.
        """
        if len(self.classes_) > 2:
            raise TypeError(
                f"What calibrates probabilities of {len(self.classes_)} classes has no equal in "
                "scikit-learn; hand over this object, or, for the same predictions and the "
                "probabilities before calibration, estimator.to_sklearn()."
            )
        return plain_calibrated(
            to_sklearn(self.estimator), self.classes_, self.curve_, self.upper_threshold
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = len(self.classes_) > 2
        return tags


def _with_confidence(curve, p):
    """Calibrate the largest probability by `curve`, and rescale the others.

    It stays the largest one of its row.
    """
    p = np.nan_to_num(np.array(p, dtype=np.float64))
    rows, first = np.arange(len(p)), p.argmax(axis=1)
    confidence = p[rows, first]
    p[rows, first] = 0.0
    others = p.sum(axis=1, keepdims=True)
    # if the others are all 0, divide equally
    rescaled = np.where(others > 0, p / np.where(others > 0, others, 1.0), 1 / (p.shape[1] - 1))
    rescaled[rows, first] = 0.0
    # the predicted class must keep the largest probability
    least = (1 + 2.0**-40) * rescaled.max(axis=1)
    found = np.maximum(np.interp(confidence, *curve), least / (1 + least))
    rescaled *= (1 - found)[:, None]
    rescaled[rows, first] = found
    return rescaled


def _by_label(evaluation):
    """Return the noisy counts of negative and positive records of each bin."""
    return evaluation.noisy_counts.h.reshape(N_BINS, 2).T


def _sigmoid(evaluation):
    """Return Platt's curve: the logit of the probability is linear in that of the score.

    The sum of log-likelihoods is linear in the counts. A penalty keeps the line near that of no
    change: as strong as noise in the second derivative, so that there is one line, and as errors of
    the first one ask for if slopes and intercepts differ by 1 from no change.
    """
    negative, positive = _by_label(evaluation)
    edges, middles = np.array(evaluation.edges), evaluation.probabilities
    z, score = logit(middles), middles[BIN]
    counts, each = evaluation.noisy_counts, np.repeat(z, 2)
    steepness = score * (1 - score) * (1 + each**2)
    unknown = math.sqrt(counts.noise(steepness))
    known = max(float(counts.h @ steepness), unknown, 1.0)
    error = max(counts.noise((LABEL - score) * each), counts.noise(LABEL - score))
    strength = 2 * unknown + (known + error) / known

    def lost(line):
        u = line[0] * z + line[1]
        p = expit(u)
        residual = (negative + positive) * p - positive
        value = -(positive @ log_expit(u) + negative @ log_expit(-u))
        value += strength / 2 * ((line[0] - 1) ** 2 + line[1] ** 2)
        slope = np.array([residual @ z, residual.sum()]) + strength * (line - np.array([1.0, 0.0]))
        return value / evaluation.n_records, slope / evaluation.n_records

    slope, intercept = minimize(lost, [1.0, 0.0], jac=True, bounds=BOUNDS).x
    # clip scores of exactly 0 or 1, whose logit is infinite
    scores = np.concatenate([edges[:1], np.sort([*edges[1:-1], *middles]), edges[-1:]])
    inside = np.clip(scores, middles[0], middles[-1])
    return scores, expit(slope * logit(inside) + intercept)


def _isotonic(evaluation):
    """Return an increasing curve through rates of groups of bins, each with more records than noise."""
    counts, (negative, positive) = evaluation.noisy_counts, _by_label(evaluation)
    groups, first = [], 0
    for last in range(N_BINS):
        here = (first <= BIN) & (BIN <= last)
        if (counts.h @ here) > FEWEST_DEVIATIONS * math.sqrt(counts.noise(1.0 * here)):
            groups.append((first, last))
            first = last + 1
    if groups:
        groups[-1] = groups[-1][0], N_BINS - 1
    else:
        groups = [(0, N_BINS - 1)]
    scores, rates, sizes = [], [], []
    for first, last in groups:
        bins = slice(first, last + 1)
        size = (negative + positive)[bins]
        total = max(size.sum(), 1.0)
        centre = float(size @ evaluation.probabilities[bins]) / total
        scores.append(np.clip(centre, evaluation.edges[first], evaluation.edges[last + 1]))
        rates.append(np.clip(positive[bins].sum() / total, 0.0, 1.0))
        sizes.append(total)
    fitted = IsotonicRegression(y_min=0.0, y_max=1.0).fit(scores, rates, sample_weight=sizes)
    return np.asarray(scores), fitted.predict(scores)


def _between(thresholds, rates, target):
    """Return the score with a share of scores above it, spread evenly in arcsines of roots."""
    angles = np.arccos(1 - 2 * np.concatenate([[0.0], thresholds, [1.0]]))
    angle = np.interp(target, np.concatenate([[1.0], rates, [0.0]])[::-1], angles[::-1])
    return float((1 - np.cos(angle)) / 2)


def threshold_for(evaluation, name, target):
    """Return a threshold with a given recall, precision or rate, or refuse an unreachable one.

    Of recall and precision it is the edge of a bin; a rate is interpolated between two edges. Figures
    at all thresholds are made to rise or fall, as without noise recall and rate do, before they are
    compared.
    """
    known, found = [], []
    for threshold in evaluation.thresholds:
        value = evaluation.metric("selection_rate" if name == "rate" else name, threshold).value
        if not math.isnan(value):
            known.append(threshold)
            found.append(value)
    if known:
        rising = name == "precision"
        smooth = IsotonicRegression(increasing=rising).fit_transform(np.array(known), np.array(found))
        if name == "rate":
            return _between(np.array(known), np.clip(smooth, 0.0, 1.0), target)
        reached = np.flatnonzero(smooth >= target)
        if len(reached):
            # recall decreases with the threshold, so take the highest one
            return float(known[reached[-1] if name == "recall" else reached[0]])
    raise ValueError(
        f"{name}={target!r} is not known to be reached at any threshold, because scores do not tell "
        "the classes apart so well, or noise hides it; ask for less, or evaluate more records or with a "
        "larger epsilon."
    )
