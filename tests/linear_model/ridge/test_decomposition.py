import numpy as np
import pytest

from dpselect.linear_model.ridge import decomposition
from dpselect.linear_model.ridge.decomposition import LARGE, Decomposition


@pytest.mark.parametrize("rho", [0.0, 0.3])
@pytest.mark.parametrize("shift", [0.0, 50.0])
@pytest.mark.parametrize("d", [2, 3, LARGE + 1])
def test_two_factors_say_what_one_does(d, shift, rho, monkeypatch):
    """With eigenvalues of both signs, as noise makes them, and with positive ones alone."""
    rng = np.random.default_rng(d)
    gram = rng.standard_normal((d, d))
    gram = gram + gram.T + shift * np.eye(d)
    moment, other = rng.standard_normal((2, d))
    found = {}
    for large in (1, d):
        monkeypatch.setattr(decomposition, "LARGE", large)
        decomposed = Decomposition.of(gram, moment, rho)
        assert (decomposed.reflections is None) == (large == d)
        found[large] = [
            some.minimiser(alpha, radius)
            for some in (decomposed, decomposed.with_moment(other))
            for alpha, radius in ((0.01, 0.1), (0.01, 1e6), (3.0, 1e6))
        ]
    np.testing.assert_allclose(found[1], found[d], rtol=1e-7, atol=1e-9 * np.abs(found[d]).max())


def test_inside_the_ball_it_is_the_formula_of_its_docstring():
    rng = np.random.default_rng(0)
    d, rho, alpha = LARGE + 1, 0.3, 0.5
    root = rng.standard_normal((d, d))
    gram, moment = root @ root.T / d, rng.standard_normal(d)
    M = gram + alpha * np.eye(d)
    expected = np.linalg.solve(M @ M + rho**2 * np.eye(d), M @ moment)
    np.testing.assert_allclose(Decomposition.of(gram, moment, rho).minimiser(alpha, 1e6), expected)
