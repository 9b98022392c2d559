"""Check the noise: fresh, reproducible only with a seed, absent at infinity, one for each number."""

import copy
import itertools
import math
import random
import tempfile
import warnings

import numpy as np
from scipy.stats import rankdata

from ..config import config_context
from ..exceptions import (
    BudgetExceededError,
    PrivacyLeakError,
    SeededNoiseWarning,
)
from .attempts import attempt, refused, stays_as_it_was
from .case import TINY, differing, leaves, open_ledger, what_is_kept
from .tally import require


def check_noise_is_fresh(case):
    """Check that unseeded fits have new noise, which no attribute can reproduce."""
    data = case.data()
    models = [case.model(epsilon=TINY) for _ in range(3)]
    models.append(copy.deepcopy(models[0]))
    found, kept = [], []
    state, numpys = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        for model in [*models, models[0]]:
            random.seed(0)
            np.random.seed(0)  # noqa: NPY002
            model.fit(*data)
            found.append(case.numbers(model).tolist())
            kept.append(what_is_kept(case, model))
    finally:
        random.setstate(state)
        np.random.set_state(numpys)  # noqa: NPY002
    for one, other in itertools.combinations(found, 2):
        require(one != other, "Two fits with random_state=None have the same noise.")
    for other in kept[1:]:
        names = differing(kept[0], other)
        require(not names, f"{', '.join(names)} changes with the noise, as a key or a seed would.")
    keys = (np.random.Generator, np.random.BitGenerator, np.random.RandomState, np.random.SeedSequence)
    for path, leaf in leaves({n: v for n, v in vars(models[0]).items()}):
        require(not isinstance(leaf, keys), f"{path[0]} keeps a generator.")


def check_seeds(case):
    """Check that a seed reproduces the noise, and so warns and is marked."""
    data = case.data()
    one, again = (case.fit(data, 3) for _ in range(2))
    require(
        np.array_equal(case.numbers(one), case.numbers(again))
        and what_is_kept(case, one) == what_is_kept(case, again),
        "Two fits with the same random_state differ; all but noise must be a function of the records.",
    )
    tiny = [case.numbers(case.fit(data, seed, epsilon=TINY)).tolist() for seed in (3, 4)]
    require(tiny[0] != tiny[1], "Two seeds give the same noise.")
    generator = np.random.RandomState(0)
    found = [case.numbers(case.fit(data, generator, epsilon=TINY)).tolist() for _ in range(2)]
    require(found[0] != found[1], "Two fits with one generator have the same noise.")
    for seed, expected in ((None, False), (0, True), (np.random.default_rng(0), True)):
        model = case.model(seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(*data)
        seeds = [w for w in caught if issubclass(w.category, SeededNoiseWarning)]
        what = f"random_state of type {type(seed).__name__}"
        require(bool(seeds) == expected, f"A fit with {what} must {'' if expected else 'not '}warn.")
        require(model.privacy_.seeded is expected, f"privacy_.seeded is wrong for {what}.")
    model = case.model(0)
    with config_context(strict=True), stays_as_it_was(model, "A fit that strict mode refuses"):
        refused(lambda: model.fit(*data), (PrivacyLeakError,), "A seed in strict mode")


def check_without_noise(case):
    """Check that epsilon=inf is non-private: it states no guarantee, and no ledger is charged."""
    data = case.data()
    found = []
    for seed in (None, 0, 1):
        result = attempt(lambda: case.fit(data, seed, epsilon=math.inf))
        require(result.error is None, f"epsilon=inf is refused: {result.error}")
        require(SeededNoiseWarning not in result.warned, "Without noise a seed does no harm.")
        require(result.value.privacy_.epsilon == math.inf, "privacy_ promises what is not private.")
        found.append(case.numbers(result.value))
    require(
        all(np.array_equal(found[0], other) for other in found),
        "epsilon=inf still has noise: two fits differ.",
    )
    with tempfile.TemporaryDirectory() as folder:
        model = case.model(epsilon=math.inf)
        with stays_as_it_was(model, "A fit that no budget pays"), open_ledger(folder):
            refused(lambda: model.fit(*data), (BudgetExceededError,), "epsilon=inf with an open ledger")


def check_noise_is_independent(case):
    """Check that no two numbers share their noise."""
    params = {**case.several_outputs(), "epsilon": TINY}
    data = case.data(params=params)
    found = np.array(
        [case.numbers(case.fit(data, seed, **params), derived=False)[:100] for seed in range(40)]
    )
    found = found[:, np.ptp(found, axis=0) > 0]
    require(found.size, "The release has no noise.")
    # at this epsilon the noise dominates, so that absolute values are its own
    for values in (found, np.abs(found)):
        ranks = rankdata(values, axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            shared = np.abs(np.corrcoef(ranks, rowvar=False))
        shared = np.atleast_2d(shared)
        np.fill_diagonal(shared, 0.0)
        require(
            not np.nanmax(shared, initial=0.0) > 0.95,
            "Two released numbers have the same noise, and their difference or quotient tells the "
            "records; draw noise for each.",
        )
