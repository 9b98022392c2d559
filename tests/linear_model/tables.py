"""Synthetic tables of problems, for the tests of the solver."""

import numpy as np

from dpselect.linear_model.design import Design


def problem(n, d, k, seed, K=1, R=1.0, spread=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * spread * R
    X = X * np.exp(rng.normal(size=d))
    signs = np.where(X[:, :1] + rng.normal(size=(n, K)) * R > 0, 1, -1).astype(np.int8)
    return dict(
        design=Design(X, R, R),
        signs=signs,
        which=rng.integers(K, size=k),
        mu=10 ** rng.uniform(-6, 1, size=k) * R * R,
        linear=rng.normal(size=(d + 1, k)) * 10 ** rng.uniform(-4, 2, size=k) * R,
    )


def gradient_norms(p, loss, W):
    y, A = p["signs"][:, p["which"]], rows_of(p["design"])
    G = A.T @ (y * loss.derivative(y * (A @ W))) / len(A) + p["mu"] * W + p["linear"]
    return np.linalg.norm(G, axis=0)


def rows_of(design):
    """Return the rows that a design stands for, shape (n, d)."""
    A = design.factor * design.X
    return np.hstack([A, np.full((len(A), 1), design.constant)])
