"""Standard noise, before it is scaled, from a generator and public shapes alone."""

from __future__ import annotations

import numpy as np

from ..utils.type_aliases import FloatArray, Shape


def spherical_laplace(generator: np.random.Generator, n_vectors: int, dimension: int) -> FloatArray:
    """Draw vectors with density proportional to ``exp(-||r||_2)``.

    A uniform direction times a Gamma(`dimension`, 1) length.

    Parameters
    ----------
    generator : numpy.random.Generator
    n_vectors : int
        Number of independent vectors.
    dimension : int
        Number of coordinates d of each, 1 or more.

    Returns
    -------
    ndarray of shape (n_vectors, dimension)

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, *Differentially Private Empirical Risk
    Minimization*, JMLR 12, 2011, equation (7).

    Examples
    --------
    >>> from dpselect.noise import as_generator, spherical_laplace
    >>> spherical_laplace(as_generator(), 2, dimension=3).shape
    (2, 3)
    """
    direction = generator.standard_normal((n_vectors, dimension))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return direction * generator.standard_gamma(dimension, size=(n_vectors, 1))


def laplace(generator: np.random.Generator, shape: Shape) -> FloatArray:
    """Draw independent standard Laplace variables, density ``exp(-|r|) / 2``.

    Parameters
    ----------
    generator : numpy.random.Generator
    shape : int or tuple of int

    Returns
    -------
    ndarray of shape `shape`

    Examples
    --------
    >>> from dpselect.noise import as_generator, laplace
    >>> laplace(as_generator(), (2, 3)).shape
    (2, 3)
    """
    return generator.laplace(size=shape)


def exponential(generator: np.random.Generator, shape: Shape) -> FloatArray:
    """Draw independent standard exponential variables, mean 1.

    Parameters
    ----------
    generator : numpy.random.Generator
    shape : int or tuple of int

    Returns
    -------
    ndarray of shape `shape`

    Examples
    --------
    >>> from dpselect.noise import as_generator, exponential
    >>> exponential(as_generator(), (2, 3)).shape
    (2, 3)
    """
    return generator.standard_exponential(size=shape)


def gaussian(generator: np.random.Generator, shape: Shape) -> FloatArray:
    """Draw independent standard normal variables.

    Parameters
    ----------
    generator : numpy.random.Generator
    shape : int or tuple of int

    Returns
    -------
    ndarray of shape `shape`

    Examples
    --------
    >>> from dpselect.noise import as_generator, gaussian
    >>> gaussian(as_generator(), (2, 3)).shape
    (2, 3)
    """
    return generator.standard_normal(shape)


def gumbel(generator: np.random.Generator, shape: Shape) -> FloatArray:
    """Draw independent standard Gumbel variables.

    Parameters
    ----------
    generator : numpy.random.Generator
    shape : int or tuple of int

    Returns
    -------
    ndarray of shape `shape`

    Examples
    --------
    >>> from dpselect.noise import as_generator, gumbel
    >>> gumbel(as_generator(), (2, 3)).shape
    (2, 3)
    """
    return generator.gumbel(size=shape)
