"""Noise samples, from the cryptographic generator."""

import numpy as np

from dpselect import noise

from ._records import Suite

SIZE = 10_000


class Samples(Suite):
    """Each kind of noise: `SIZE` numbers."""

    params = [
        "laplace",
        "exponential",
        "gaussian",
        "gumbel",
        "spherical_laplace",
        "geometric",
        "grid_noise",
        "grid_laplace",
        "discrete_laplace",
    ]
    param_names = ["kind"]

    def setup(self, kind):
        generator = noise.as_generator()
        step = noise.grid_step(1.0)
        self.draw = {
            "spherical_laplace": lambda: noise.spherical_laplace(generator, SIZE // 20, 20),
            "geometric": lambda: noise.geometric(generator, SIZE, 1e-3),
            "grid_noise": lambda: noise.grid_noise(generator, SIZE, 1.0, step),
            "grid_laplace": lambda: noise.grid_laplace(generator, np.zeros(SIZE), 1.0, 1.0),
            "discrete_laplace": lambda: noise.discrete_laplace(generator, SIZE, 0.5),
        }.get(kind) or (lambda: getattr(noise, kind)(generator, SIZE))

    def time_draw(self, kind):
        self.draw()


class Generators(Suite):
    """What a fit does before it draws."""

    def time_as_generator(self):
        noise.as_generator()

    def time_child_stream(self):
        noise.as_generator(noise.root_stream().child("benchmark"))


class Paths(Suite):
    """Noise-reduction paths: 100 levels from the most private one on."""

    params = ["discrete_laplace", "spherical_laplace", "brownian"]
    param_names = ["kind"]

    def setup(self, kind):
        self.generator = noise.as_generator()
        self.levels = np.geomspace(0.01, 10, 100)

    def time_walk(self, kind):
        path = {
            "discrete_laplace": lambda: noise.DiscreteLaplacePath(self.generator, 400, 0.01, 10.0),
            "spherical_laplace": lambda: noise.SphericalLaplacePath(self.generator, 1, 20, 0.01, 10.0),
            "brownian": lambda: noise.BrownianPath(self.generator, 400),
        }[kind]()
        if kind == "brownian":
            for level in self.levels:
                path.read_at(1 / level)
        else:
            for level in self.levels:
                path.read(level)
