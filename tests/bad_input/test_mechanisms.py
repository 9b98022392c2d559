"""Bad input for noise, mechanisms and audits: functions of numbers."""

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from dpselect import audit, mechanisms, noise

from .properties import attempt, cases, check_error
from .values import changes, junk

SCORES = st.one_of(
    st.just([0.0, 1.0, 0.5]),
    st.lists(st.sampled_from([0.0, 1.0, -1e300, 1e300, 0.5]), max_size=4),
    junk(),
)
SENSITIVITIES = st.one_of(
    st.just([1.0, 2.0, 1e-3]),
    st.lists(st.sampled_from([0.0, 1.0, 1e-300, 1e300]), max_size=4),
    junk(),
)
EPSILONS = st.one_of(
    st.sampled_from([1.0, float("inf"), np.float16(0.3), Fraction(1, 3), np.int8(2), 1e-9]), junk()
)
STATES = st.one_of(st.just(0), st.just(None), st.just(0), junk())


@cases(
    400,
    name=st.sampled_from(["noisy_argmax", "exponential_mechanism", "exponential_noise_scales"]),
    scores=SCORES,
    sensitivities=SENSITIVITIES,
    epsilon=EPSILONS,
    state=STATES,
)
def test_selection(name, scores, sensitivities, epsilon, state):
    mechanism = getattr(mechanisms, name)
    if name == "exponential_noise_scales":
        found = attempt(lambda: mechanism(sensitivities, epsilon))
    else:
        if name == "exponential_mechanism" and isinstance(sensitivities, list) and sensitivities:
            sensitivities = sensitivities[0]
        found = attempt(lambda: mechanism(scores, sensitivities, epsilon, state))
    if found.error is not None:
        check_error(found.error, ("scores", "sensitivities", "sensitivity", "epsilon", "random_state"))
        return "error"
    if name == "exponential_noise_scales":
        assert np.isfinite(found.value).all() and (found.value >= 0).all()
    else:
        assert type(found.value) is int and 0 <= found.value < len(scores)
    return "result"


@cases(
    150,
    state=st.one_of(
        junk(),
        st.integers(-10, 2**80),
        st.sampled_from(
            [
                None,
                0,
                np.uint8(3),
                2**100,
                np.random.SeedSequence(1),
                np.random.default_rng(1),
                np.random.RandomState(1),
                noise.InnerStream(bytes(32)),
            ]
        ),
    ),
)
def test_generators(state):
    found = attempt(
        lambda: (noise.as_generator(state), noise.root_stream(state), noise.is_seeded(state))
    )
    if found.error is None:
        generator, stream, seeded = found.value
        assert 0 <= generator.random() < 1 and len(stream.key) == 32 and seeded == (state is not None)
        return "result"
    check_error(found.error, ("random_state",))
    return "error"


COUNTS = st.sampled_from([1, 2, 3, np.int8(100)])
LAWS = {
    "geometric": dict(
        shape=COUNTS, rate=st.sampled_from([0.5, [0.5], 1e-3, np.float16(0.3), float("inf")])
    ),
    "discrete_laplace": dict(shape=COUNTS, ratio=st.sampled_from([0.0, 0.5, 0.999, np.float32(0.5)])),
    "grid_laplace": dict(
        values=st.sampled_from([np.array([0.1, -1.0]), [0.5], 0.5, np.array([])]),
        scales=st.sampled_from([1.0, 1e-3, np.float16(0.3), 1e200]),
        epsilon=st.sampled_from([0.5, 10.0]),
    ),
    "DiscreteLaplacePath": dict(
        shape=COUNTS, low=st.sampled_from([0.1, 1e-9, 1]), high=st.sampled_from([1, 1e9])
    ),
    "SphericalLaplacePath": dict(
        n_vectors=COUNTS,
        dimension=COUNTS,
        low=st.sampled_from([0.1, 1e-9, 1]),
        high=st.sampled_from([1, 1e9]),
    ),
}


def arguments(name):
    """Draw a law and its arguments, at most one of which is junk."""
    good = st.fixed_dictionaries(LAWS[name])
    bad = st.tuples(good, st.sampled_from([key for key in LAWS[name] if key not in SHAPES]), junk()).map(
        lambda drawn: {**drawn[0], drawn[1]: drawn[2]}
    )
    return st.tuples(st.just(name), st.one_of(good, bad))


# numpy's own words on shapes are clear
SHAPES = ("shape", "n_vectors", "dimension")


@cases(450, drawn=st.one_of(*map(arguments, LAWS)), seed=st.integers(0, 99))
def test_noise(drawn, seed):
    name, given = drawn
    found = attempt(lambda: getattr(noise, name)(noise.as_generator(seed), **given))
    if found.error is not None:
        check_error(found.error, given)
        return "error"
    if name.endswith("Path"):
        low, high = float(given["low"]), float(given["high"])
        path_values = attempt(
            lambda: [
                found.value.read(min(max(epsilon, low), high))
                for epsilon in (low, low**0.5 * high**0.5, high)
            ]
        )
        assert path_values.error is None and np.isfinite(path_values.value).all()
    else:
        assert np.isfinite(found.value).all()
    return "result"


ROWS = np.array([0.0, 1.0, 0.5])


def without_builtins(params):
    """Replace functions whose own errors would be nobody's fault here."""
    return {name: 5 if value is len or value is type else value for name, value in params.items()}


def mean(records):
    return records.mean() + np.random.default_rng(0).random()


@cases(
    75,
    params=changes(
        delta=(0.0, 0.5, np.float16(0.1)),
        n_trials=(100, np.int16(120)),
        confidence=(0.9, np.float16(0.5)),
        float_bits=(True, False),
        random_state=(0, 1),
        release=(
            mean,
            lambda records: records,
            lambda records: None,
            lambda records: "a text",
            lambda records: np.array([]),
            lambda records: np.nan,
            lambda records: np.inf,
            5,
            lambda records: records[: np.random.default_rng().integers(1, 3)],
            lambda records: 1j,
            lambda records: [[1], [1, 2]],
            lambda records: 1e300,
        ),
    ),
)
def test_epsilon_lower_bound(params):
    params = without_builtins(params)
    given = {
        "release": mean,
        "records": ROWS,
        "neighbour": ROWS[::-1],
        "n_trials": 100,
        "random_state": 0,
        **params,
    }
    found = attempt(lambda: audit.epsilon_lower_bound(**given))
    if found.error is None:
        assert found.value.epsilon >= 0 and np.isfinite(found.value.epsilon)
        return "result"
    check_error(found.error, given)
    return "error"


@cases(
    150,
    params=changes(
        n_samples=(1, 5, np.int8(5)),
        bound=(None, 0.1, np.float16(0.5), Fraction(1, 3)),
        n_trials=(1, 2),
        n_steps=(0, 3),
        random_state=(0, None),
        score_of=(
            np.mean,
            lambda records: np.random.default_rng().random(),
            lambda records: "a text",
            lambda records: np.nan,
            lambda records: None,
            lambda records: records,
            5,
        ),
        draw_records=(
            lambda rng, size: rng.random(size),
            lambda rng, size: rng.random(size + 1),
            5,
            lambda rng, size: (rng.random(size),),
            lambda rng, size: None,
            lambda rng, size: (),
            lambda rng, size: [0.5] * size,
        ),
    ),
)
def test_stability_violation(params):
    params = without_builtins(params)
    given = {
        "score_of": np.mean,
        "draw_records": lambda rng, size: rng.random(size),
        "n_samples": 5,
        "n_trials": 1,
        "n_steps": 2,
        "random_state": 0,
        **params,
    }
    if not isinstance(given["n_trials"], float):
        # counts of millions are allowed, and take their time
        for name in ("n_samples", "n_trials", "n_steps"):
            if isinstance(given[name], (int, np.integer)) and given[name] > 1000:
                given[name] = 3
    found = attempt(lambda: audit.stability_violation(**given))
    if found.error is None:
        assert found.value.change >= 0 and np.isfinite(found.value.change)
        return "result"
    check_error(found.error, given)
    return "error"
