"""Train, score and bound many linear models on the same rows together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..base.estimator import Trial
from ..metrics import Score
from ..noise import release
from ..records.persons import person_weights
from ..rows import Parts, in_part
from ..utils.type_aliases import FloatArray, MatrixLike
from .design import design_and_targets
from .solver import minimise


def by_problem(trials):
    """Return the indices of trials that can be solved together, with their problem."""
    groups = {}
    for i, trial in enumerate(trials):
        groups.setdefault(trial.model.problem(trial.epsilon), []).append(i)
    return groups.items()


def solve(calibrations, noises, design, targets, parts=None):
    """Return the noisy coefficients on each part of the rows, shape (J, k, K, d).

    Parameters
    ----------
    calibrations : list of list of LinearNoise
        Entry [j][i]: of model i for the size of part j.
    noises : list of ndarray
        Standard noise of each model.
    design, targets, parts
        As for :func:`~dpselect.linear_model.solver.minimise`.
    """
    problem, J, k, K = calibrations[0][0].problem, len(calibrations), len(noises), targets.shape[1]
    noises = np.array(noises)
    mu, tau, linear, output, step = (
        np.array([[getattr(c.scales, name) for c in row] for row in calibrations])
        for name in ("mu", "solved", "linear_scale", "output_scale", "step")
    )
    # (J, k, K, d)
    linear = linear[:, :, None, None] * noises[:, 0]
    if problem.offsets:  # because the gradient of the penalty is mu (w - o)
        linear -= mu[:, :, None, None] * problem.origin(linear.shape[3])
    W = minimise(
        design,
        targets,
        np.tile(np.arange(K), k),
        problem.loss,
        mu=np.repeat(mu, K, axis=1),
        tau=np.repeat(tau, K, axis=1),
        # (J, k, K, d) becomes (J, d, k K)
        linear=linear.transpose(0, 3, 1, 2).reshape(J, -1, k * K),
        max_iter=problem.max_iter,
        parts=parts,
    )
    W = W.reshape(J, -1, k, K).transpose(0, 2, 3, 1)
    W = release(W, output[:, :, None, None] * noises[:, 1], step[:, :, None, None])
    for released, row in zip(W, calibrations):
        for i, calibration in enumerate(row):
            released[i] = calibration.given_back(released[i])
    return W


def scores_of_splits(
    trials: Sequence[Trial],
    score: Score,
    X: MatrixLike,
    y: npt.ArrayLike,
    parts: Parts,
) -> FloatArray:
    """Train on each split's training part and score on its other part, in one sweep.

    Parameters
    ----------
    trials : list of Trial
        Of linear models.
    score : Score
        For which the models have certificates.
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    parts : Parts
        Of J splits.

    Returns
    -------
    ndarray of shape (J, k)
        Exact functions of the records, not released.
    """
    scores = np.empty((len(parts.test_sizes), len(trials)))
    for problem, places in by_problem(trials):
        problem.certified(score)
        some = [trials[i] for i in places]
        scores[:, places] = problem.split_scores(some, score, some[0].records(X, y), parts)
    return scores


def optimal_values(trials: Sequence[Trial], X: MatrixLike, y: npt.ArrayLike, reach: float) -> FloatArray:
    """Return the least regularised risks of linear models over their balls.

    Those with the same view of the rows are solved together.

    Parameters
    ----------
    trials : list of Trial
        Models with the epsilon and the noise of their training.
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    reach : float
        As for `risk_bound`.

    Returns
    -------
    ndarray of shape (len(trials),)
        Exact functions of the records, which must not leave a search without noise.
    """
    values = np.empty(len(trials))
    for problem, places in by_problem(trials):
        records = trials[places[0]].records(X, y)
        calibrations = [trials[i].calibration(records.shape) for i in places]
        values[places] = problem.optimal_values(calibrations, records, reach)
    return values


def linear_split_scores(problem, trials, score, records, parts):
    """Return the scores of trials with one LinearProblem, shape (J, k)."""
    design, targets = design_and_targets(problem, records)
    calibrations = [
        [trial.calibration(replace(records.shape, n_samples=int(n))) for trial in trials]
        for n in parts.train_sizes
    ]
    noises = [trial.noise(records.shape) for trial in trials]
    W = solve(calibrations, noises, design, targets, parts)
    J, k, K, d = W.shape
    columns = W.reshape(J, k * K, d).transpose(0, 2, 1)

    def penalties(rows, targets, test, *weights):
        total = np.zeros((J, k * K))
        for j in range(J):
            chosen = np.flatnonzero(in_part(test, j))
            predictions = rows.take(chosen).dot(columns[j]).reshape(-1, k, K)
            aligned = targets[chosen, None], *(weight[chosen] for weight in weights)
            total[j] = problem.loss.penalties(score, predictions, *aligned).ravel()
        return (total,)

    (total,) = design.sum(penalties, targets, parts.test, *person_weights(records), columns=k * K)
    return -total.reshape(J, k, K).mean(axis=2) / parts.test_sizes[:, None]
