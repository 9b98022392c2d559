"""Synthetic tables of problems, for the tests of the solver."""

import numpy as np

from dpselect.linear_model.design import Design
from dpselect.linear_model.losses import PseudoHuberLoss


def problem(n, d, k, seed, K=1, R=1.0, spread=1.0, loss=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * spread * R
    X = X * np.exp(rng.normal(size=d))
    signs = np.where(X[:, :1] + rng.normal(size=(n, K)) * R > 0, 1, -1).astype(np.int8)
    return dict(
        design=Design(X, R, R),
        targets=targets_for(loss, signs),
        which=rng.integers(K, size=k),
        mu=10 ** rng.uniform(-6, 1, size=k) * R * R,
        linear=rng.normal(size=(d + 1, k)) * 10 ** rng.uniform(-4, 2, size=k) * R,
    )


def targets_for(loss, signs):
    """Return labels as they are for a loss of margins, and else as targets at and within the bound."""
    if isinstance(loss, PseudoHuberLoss):
        return loss.centre + loss.unit * np.where(signs > 0, 3.0, -0.3)
    bound = getattr(loss, "target_bound", None)
    if bound is None:
        return signs
    return np.where(signs > 0, bound, 0.3 * bound * (np.arange(len(signs)) % 2)[:, None])


def gradient_norms(p, loss, W):
    y, A = p["targets"][:, p["which"]], rows_of(p["design"])
    G = A.T @ loss.derivative(A @ W, y) / len(A) + p["mu"] * W + p["linear"]
    return np.linalg.norm(G, axis=0)


def rows_of(design):
    """Return the rows that a design stands for, shape (n, d)."""
    A = design.factor * design.X
    return np.hstack([A, np.full((len(A), 1), design.constant)])
