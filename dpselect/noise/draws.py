"""Unit draws: noise before it is scaled, from a generator and public shapes alone."""

import math

import numpy as np


def ball_laplace(generator, n_draws, dimension):
    """Draw vectors with density proportional to ``exp(-||r||_2)``.

    A uniform direction times a Gamma(`dimension`, 1) length.

    Parameters
    ----------
    generator : numpy.random.Generator
    n_draws : int
        Number of independent vectors.
    dimension : int
        Number of coordinates d of each, 1 or more.

    Returns
    -------
    ndarray of shape (n_draws, dimension)

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, *Differentially Private Empirical Risk
    Minimization*, JMLR 12, 2011, equation (7).
    """
    direction = generator.standard_normal((n_draws, dimension))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return direction * generator.standard_gamma(dimension, size=(n_draws, 1))


def laplace(generator, shape):
    """Draw independent standard Laplace variables, density ``exp(-|r|) / 2``."""
    return generator.laplace(size=shape)


def exponential(generator, shape):
    """Draw independent standard exponential variables, mean 1."""
    return generator.standard_exponential(size=shape)


def gaussian(generator, shape):
    """Draw independent standard normal variables."""
    return generator.standard_normal(shape)


def gumbel(generator, shape):
    """Draw independent standard Gumbel variables."""
    return generator.gumbel(size=shape)


def two_sided_geometric(generator, shape, ratio):
    """Draw independent integers k with probabilities proportional to ``ratio ** abs(k)``.

    The difference of two geometric variables. Added to integers of l1 sensitivity S it gives
    ``-S log(ratio)``-differential privacy, without rounding.

    Parameters
    ----------
    generator : numpy.random.Generator
    shape : int or tuple of int
    ratio : float
        In [0, 1); 0 gives zeros.

    Returns
    -------
    ndarray of int64

    Notes
    -----
    A geometric variable is an exponential one, divided by ``-log(ratio)`` and rounded down.
    numpy's exponential variables end at about 44, so integers beyond ``44 / -log(ratio)`` in
    either direction, of probability below 2**-63, hardly occur.

    References
    ----------
    Ghosh, Roughgarden and Sundararajan, *Universally Utility-Maximizing Privacy
    Mechanisms*, STOC 2009.

    Examples
    --------
    >>> from dpselect.noise import as_generator, two_sided_geometric
    >>> two_sided_geometric(as_generator(), 3, ratio=0.0)
    array([0, 0, 0])
    """
    rate = -math.log(ratio) if ratio > 0 else math.inf
    shape = (shape,) if np.ndim(shape) == 0 else tuple(shape)
    up, down = (generator.standard_exponential((2, *shape)) / rate).astype(np.int64)
    return up - down
