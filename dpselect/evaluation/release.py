"""The one release of an evaluation."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ..density.noise import noise_ratio
from ..estimator import warn_if_seeded
from ..holdout.records import Records
from ..ledger import PrivacyLedger, spending
from ..noise import as_generator, check_random_state, discrete_laplace, is_seeded, release
from ..noise.generators import RandomState
from ..privacy import PrivacyLoss
from ..records import one_label_a_row, public_classes
from ..type_aliases import Estimator, MatrixLike
from ..validation import check_epsilon
from .evaluation import Evaluation
from .scores import N_BINS, probabilities, score_counts


def evaluate(
    model: Estimator,
    X: MatrixLike,
    y: npt.ArrayLike,
    *,
    epsilon: float,
    ledger: PrivacyLedger | None = None,
    random_state: RandomState = None,
) -> Evaluation:
    """Tell how good a fitted classifier is, with epsilon-differential privacy.

    One release, the noisy counts of (score bin, label), from which all figures and their intervals
    are read. Neighbouring data sets differ in one record of X and y. Public are the number of
    records, the model, and every parameter.

    **The model is taken to be public**: the loss covers the records that it is evaluated on, and not
    those that it was trained on. Records that were set aside by their index, for instance the last
    fifth, are disjoint from the training records, and the two losses compose as a maximum:
    ``PrivacyLoss.parallel([model.privacy_, evaluation.privacy_])``. Of the training records themselves
    the losses add up, and the figures are too kind.

    Parameters
    ----------
    model : classifier
        Fitted, of two classes, with `predict_proba` or `decision_function`: an estimator, a search or a
        Pipeline. Its prediction of a row must depend on this row alone: that is your word. The
        second one of `classes_` is the positive class. Decisions f count as the scores
        1 / (1 + exp(-f)).
    X : array-like of shape (m, n_features)
        Records that took no part in training.
    y : array-like of shape (m,)
        Labels, all of them among the model's `classes_`.
    epsilon : float
        Privacy loss of the release, greater than 0; ``inf`` gives exact counts.
    ledger : PrivacyLedger, default=None
        Pays, in place of one that is open (``with ledger:``). If too little is left, BudgetExceededError
        is raised before any record is read.
    random_state : None, int, SeedSequence, RandomState or Generator, default=None
        None draws noise from a cryptographic generator keyed by the operating system. Everything
        else is for tests: the noise can be drawn again.

    Returns
    -------
    Evaluation

    Raises
    ------
    BudgetExceededError
        If the ledger has less left; no record is read.
    NotFittedError
        If the model is not fitted.
    TypeError, ValueError
        If a parameter is out of range, the model has more than two classes or no scores, records and
        labels differ in number, or the model fails on a record; what it says is not repeated.

    Warns
    -----
    SeededNoiseWarning
        If `random_state` is not None.

    References
    ----------
    Discrete Laplace noise: Ghosh, Roughgarden and Sundararajan, *Universally Utility-maximizing Privacy
    Mechanisms*, STOC 2009. The page "Evaluation" has the intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from dpselect import evaluate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(6_000, 2))
    >>> y = (X[:, 0] + rng.normal(size=6_000) > 0).astype(int)
    >>> model = LogisticRegression().fit(X[:1_000], y[:1_000])
    >>> evaluation = evaluate(model, X[1_000:], y[1_000:], epsilon=1.0)
    >>> print(evaluation.privacy_)
    (epsilon = 1, delta = 0) differential privacy, adjacency: replace one record
      epsilon 1: evaluate: 64 counts of scores and labels; the model is not covered
    """
    epsilon = check_epsilon(epsilon)
    check_random_state(random_state)
    classes = binary_classes(model)
    warn_if_seeded(EvaluationRelease(epsilon, ledger, random_state))
    loss = PrivacyLoss(
        epsilon, label=f"evaluate: {2 * N_BINS} counts of scores and labels; the model is not covered",
        seeded=epsilon != math.inf and is_seeded(random_state),
    )
    with spending(EvaluationRelease(epsilon, ledger, random_state), loss):
        held = Records(X, one_label_a_row(y, "evaluate"))
        held.evaluate(lambda X, y: public_classes(y, classes, "evaluate"))
        counts = held.evaluate_quietly(
            lambda X, y: score_counts(probabilities(model, X), y, classes[1])
        )
        noise = standard_noise(epsilon, random_state)
        counts = release(counts, noise, step=1.0).reshape(N_BINS, 2)
    return Evaluation(counts, len(held), classes, hasattr(model, "predict_proba"), loss)


@dataclass(frozen=True)
class EvaluationRelease:
    """What spends, as a ledger knows it."""

    epsilon: float
    ledger: Any
    random_state: Any


def binary_classes(model):
    """Return the two labels of a fitted classifier, or refuse a model that cannot be evaluated."""
    if isinstance(model, type) or not (
        hasattr(model, "predict_proba") or hasattr(model, "decision_function")
    ):
        raise TypeError(
            "model must be a fitted classifier with predict_proba or decision_function, because "
            "records are counted by their scores; give for instance a fitted DPLogisticRegression."
        )
    check_is_fitted(model)
    classes = np.array(getattr(model, "classes_", ()))
    if classes.shape != (2,):
        raise ValueError(
            "model does not have a `classes_` of two labels, and scores are counted for two; evaluate a "
            "classifier that was fitted on two classes."
        )
    return classes


def standard_noise(epsilon, random_state):
    """Return the noise of the counts: one replaced record lowers a count by 1 and raises another."""
    if epsilon == math.inf:
        return np.zeros(2 * N_BINS)
    return discrete_laplace(as_generator(random_state), 2 * N_BINS, noise_ratio(epsilon))
