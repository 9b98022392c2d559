"""Classifiers that see the same rows are trained, and scored on splits, all together."""

import numpy as np

from ..noise import release
from .design import classification_problems
from .solver import minimise


def alike(estimators):
    """Return the places of estimators that can be solved together, group by group."""
    groups = {}
    for i, estimator in enumerate(estimators):
        estimator._check_parameters()
        groups.setdefault(estimator._problem_key(), []).append(i)
    return groups.values()


def fit_alike(estimators, X, y):
    """Fit classifiers that agree in `_problem_key`, in one solve."""
    leader = estimators[0]
    design, signs, classes = classification_problems(leader, X, y)
    (W,) = solve_alike(estimators, design, signs)
    for estimator, w in zip(estimators, W):
        vars(estimator).pop("privacy_", None)
        estimator._publish(w, classes, leader)


def solve_alike(estimators, design, signs, parts=None):
    """Return the noisy coefficients on each part of the rows, shape (J, k, K, d)."""
    leader, k, K = estimators[0], len(estimators), signs.shape[1]
    p, sizes = leader.n_features_in_, [design.n_rows] if parts is None else parts.train_sizes
    draws = np.array([e.unit_noise(p, K) for e in estimators])
    scales = [[e._perturbation(int(n), p, K) for e in estimators] for n in sizes]
    mu, tau, linear, output, step = (
        np.array([[getattr(s, name) for s in row] for row in scales])
        for name in ("mu", "tau", "linear_scale", "output_scale", "step")
    )
    W = minimise(
        design, signs, np.tile(np.arange(K), k), leader._loss(),
        mu=np.repeat(mu, K, axis=1), tau=np.repeat(tau, K, axis=1),
        # (J, k, K, d) becomes (J, d, k K)
        linear=np.moveaxis(linear[:, :, None, None] * draws[:, 0], 3, 1).reshape(
            len(sizes), -1, k * K
        ),
        max_iter=leader.max_iter, parts=parts,
    )
    W = np.moveaxis(W.reshape(len(sizes), -1, k, K), 1, 3)
    return release(W, output[:, :, None, None] * draws[:, 1], step[:, :, None, None])


def scores_alike(estimators, score, X, y, parts):
    """Return the exact scores of classifiers that agree in `_problem_key`, shape (J, k)."""
    estimators[0]._certified(score)
    design, signs, _ = classification_problems(estimators[0], X, y)
    W = solve_alike(estimators, design, signs, parts)
    J, k, K, d = W.shape
    columns = W.reshape(J, k * K, d).transpose(0, 2, 1)

    def penalties(rows, signs, test):
        total = np.zeros((J, k * K))
        for j, chosen in enumerate(test.T):
            chosen = np.flatnonzero(chosen)
            margins = rows.take(chosen).dot(columns[j]).reshape(-1, k, K)
            margins *= signs[chosen, None]
            total[j] = score.total(margins).ravel()
        return (total,)

    (total,) = design.sum(penalties, signs, parts.test, columns=k * K)
    return -total.reshape(J, k, K).mean(axis=2) / parts.test_sizes[:, None]
