"""Noise: from ``random_state`` to generators, and the standard noise of the mechanisms."""

from .gate import all_finite, grid_laplace, release, release_step, scale_with_rounding
from .generators import InnerStream, as_generator, check_random_state, is_seeded, root_stream
from .grid import (
    discrete_laplace,
    geometric,
    grid_noise,
    grid_step,
    nearest_multiple,
)
from .paths import BrownianPath, DiscreteLaplacePath, SphericalLaplacePath
from .standard_noise import exponential, gaussian, gumbel, laplace, spherical_laplace

__all__ = [
    "BrownianPath",
    "DiscreteLaplacePath",
    "InnerStream",
    "SphericalLaplacePath",
    "all_finite",
    "as_generator",
    "check_random_state",
    "discrete_laplace",
    "exponential",
    "gaussian",
    "geometric",
    "grid_laplace",
    "grid_noise",
    "grid_step",
    "gumbel",
    "is_seeded",
    "laplace",
    "nearest_multiple",
    "release",
    "release_step",
    "root_stream",
    "scale_with_rounding",
    "spherical_laplace",
]
