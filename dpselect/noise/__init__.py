"""Noise: from ``random_state`` to generators, and the unit draws of the mechanisms."""

from .draws import ball_laplace, exponential, gaussian, gumbel, laplace
from .gate import charged_scale, lattice_laplace, release, release_step
from .generators import InnerStream, as_generator, check_random_state, is_seeded, root_stream
from .lattice import (
    geometric,
    grid_step,
    lattice_noise,
    nearest_multiple,
    two_sided_geometric,
)
from .paths import BallLaplacePath, BrownianPath, LatticePath

__all__ = [
    "BallLaplacePath",
    "BrownianPath",
    "InnerStream",
    "LatticePath",
    "as_generator",
    "ball_laplace",
    "charged_scale",
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
    "release",
    "release_step",
    "root_stream",
    "two_sided_geometric",
]
