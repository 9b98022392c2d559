"""Noise: from ``random_state`` to generators, and the unit draws of the mechanisms."""

from .draws import ball_laplace, exponential, gaussian, gumbel, laplace
from .generators import InnerStream, as_generator, check_random_state, is_seeded, root_stream
from .lattice import (
    geometric,
    grid_step,
    lattice_laplace,
    lattice_noise,
    nearest_multiple,
    two_sided_geometric,
)
from .paths import BallLaplacePath, BrownianPath, LaplacePath, LatticePath

__all__ = [
    "BallLaplacePath",
    "BrownianPath",
    "InnerStream",
    "LaplacePath",
    "LatticePath",
    "as_generator",
    "ball_laplace",
    "check_random_state",
    "exponential",
    "gaussian",
    "geometric",
    "grid_step",
    "gumbel",
    "is_seeded",
    "laplace",
    "lattice_laplace",
    "lattice_noise",
    "nearest_multiple",
    "root_stream",
    "two_sided_geometric",
]
