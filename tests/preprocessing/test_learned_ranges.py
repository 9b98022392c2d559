"""Ranges of numbers that are learned first: sensitivity, noise, bounds, budget, and what is refused."""

import math
from dataclasses import replace
from functools import lru_cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from dpselect import (
    AccuracyFirstSearchCV,
    Adjacency,
    BudgetExceededError,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    PrivacyLeakError,
    PrivacyLedger,
    RowChunks,
    StabilityGridSearchCV,
    config_context,
    privacy_of,
    privacy_report,
)
from dpselect.accounting.gaussian import gaussian_mu
from dpselect.model_selection.learned_first import ToLearn
from dpselect.noise import as_generator, gaussian, release, spherical_laplace
from dpselect.preprocessing import (
    BoundedScaler,
    PublicSchema,
    TableEncoder,
    TabularPipeline,
    learned_ranges,
    ranges_of_a_fit,
    tabular_pipeline,
)
from dpselect.preprocessing.learned_ranges import RangesNoise, TableRanges, beta_ranges, narrowed
from dpselect.preprocessing.ranges_of_a_fit import Shares
from dpselect.preprocessing.schema import NumberColumn
from dpselect.records import PublicShape
from dpselect.records.persons import Persons
from dpselect.rows import computed
from tests.marks import slow_but

pytestmark = pytest.mark.filterwarnings("ignore::dpselect.SeededNoiseWarning")
N = 4000
SCHEMA = {
    "age": (0, 1000),
    "income": {"bounds": (0, 1e9), "transform": "log1p"},
    "dose": {"bounds": (-50, 50), "missing": True},
    "job": ["farmer", "clerk", "cook"],
    "hour": {"bounds": (0, 24), "periodic": True},
    "day": {"date": ["2020-01-01", "2029-12-31"]},
    "grade": (0, 10),
}
LEARNED = ("age", "income", "dose")
CUTS = {"grade": [5]}
LOGISTIC = DPLogisticRegression(2.0, classes=[0, 1], random_state=0)


def table(n=N, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": scale * rng.normal(400, 20, n),
            "income": scale * rng.lognormal(10, 1, n),
            "dose": np.where(rng.random(n) < 0.2, np.nan, scale * rng.normal(5, 1, n)),
            "job": rng.choice(SCHEMA["job"], n),
            "hour": rng.uniform(0, 24, n),
            "day": rng.integers(0, 3000, n),
            "grade": rng.uniform(0, 10, n),
        }
    )
    return X, np.arange(n) % 2


def pipeline(model=LOGISTIC, schema=SCHEMA, **params):
    return tabular_pipeline(schema, model, ranges="auto", cut_points=CUTS, **params)


# ---- the sensitivity: all pairs of records, gaps and persons among them

GAP = NumberColumn("gap", 0.0, 1.0, missing=True)
NUMBERS = (NumberColumn("a", 0.0, 1.0), GAP, replace(GAP, name="filled", fill=0.25))


def contribution(rows, persons=None):
    release = TableRanges(NUMBERS)
    sums = release.summed(np.atleast_2d(rows), persons)
    return sums.places * sums.unit


def record(numbers, gap):
    return np.array([numbers[0], 0.0 if gap else numbers[1], float(gap), numbers[2], 0.0])


@lru_cache
def farthest():
    """Return the longest way that a record can move the sums, by optimisation from several starts."""
    rng, found = np.random.default_rng(0), []
    for one, other in ((False, False), (False, True)):

        def length(u, one=one, other=other):
            u = np.clip(u, -1, 1)
            return -np.linalg.norm(contribution(record(u[:3], one)) - contribution(record(u[3:], other)))

        starts = [np.array([1, 1, 1, -0.15, -0.15, -0.15]), *rng.uniform(-1, 1, (2, 6))]
        solver = {"method": "Nelder-Mead", "options": {"maxiter": 400}}
        found += [-minimize(length, start, **solver).fun for start in starts]
    return max(found)


def stated_sensitivity(noise):
    return noise._scale * noise._loss


def test_no_record_moves_the_sums_farther_than_the_noise_is_made_for():
    longest, stated = farthest(), stated_sensitivity(RangesNoise(3, 1.0))
    assert 0.9999 * stated < longest <= stated
    # any two on a grid, of one number: the closed form of the page
    u = np.linspace(-1, 1, 201)
    curve = np.array([u, 2 * u * u - 1])
    squares = ((curve[:, :, None] - curve[:, None, :]) ** 2).sum(axis=0)
    assert squares.max() <= learned_ranges.SQUARED_SENSITIVITY < 1.0001 * squares.max()


def test_the_distance_of_the_ends_would_be_too_little(monkeypatch):
    monkeypatch.setattr(learned_ranges, "SQUARED_SENSITIVITY", 4.0)
    assert farthest() > 1.1 * stated_sensitivity(RangesNoise(3, 1.0))


@pytest.mark.parametrize("rows", [1, 3, 1000])
def test_a_person_moves_the_sums_no_farther_than_a_record(rows):
    rng, stated = np.random.default_rng(0), stated_sensitivity(RangesNoise(3, 1.0))
    found = []
    for spread in (0.0, 0.3, 1.0):
        moved = []
        for middle in (1.0, -0.1464):
            u = np.clip(middle + spread * rng.uniform(-1, 1, (rows, 3)), -1, 1)
            X = np.array([record(numbers, False) for numbers in u])
            persons = Persons.of(["a"] * rows, X)
            moved.append(contribution(X, persons))
        found.append(np.linalg.norm(moved[0] - moved[1]))
    assert 0.999 * stated < max(found) <= stated


def test_of_a_person_with_very_many_rows_none_counts():
    X = np.tile(record([1.0, 1.0, 1.0], False), (5, 1))
    persons = Persons.of(["a"] * 5, X)
    few = Persons(persons.number, np.full(5, 2.0**-30), 1)  # as of 2^30 rows
    assert np.abs(contribution(X, persons) - 1).max() < 1e-6 and not contribution(X, few).any()


# ---- the noise, and its law


@pytest.mark.parametrize("mu", [None, 0.3])
def test_the_noise_has_the_law_that_is_stated(mu):
    noise = RangesNoise(2, 0.7, mu)
    drawn = np.array([noise.sample(g) for g in [as_generator(0)] for _ in range(4000)])
    lengths = np.linalg.norm(drawn, axis=1) / noise.scale
    law = stats.gamma(4) if mu is None else stats.chi(4)
    assert stats.kstest(lengths, law.cdf).pvalue > 1e-6
    directions = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    assert np.abs(directions.mean(axis=0)).max() < 6 / math.sqrt(4 * 4000)
    assert drawn.std() == pytest.approx(noise.deviation, rel=0.05)


def stated_share(noise):
    """Return the exact loss of the sums for the farthest records, over what is stated."""
    if noise.mu is None:
        standard, stated = spherical_laplace(as_generator(0), 1, 6)[0], noise.epsilon
    else:
        standard, stated = gaussian(as_generator(0), 6), noise.mu
    scale = np.linalg.norm(noise.sample(as_generator(0))) / np.linalg.norm(standard)
    return farthest() / scale / stated


@pytest.mark.parametrize("mu", [None, 0.3])
def test_the_exact_loss_is_what_is_stated(mu, monkeypatch):
    noise = RangesNoise(3, 0.7, mu)
    assert 0.999 < stated_share(noise) <= 1
    # the broken twin has half of the noise
    monkeypatch.setattr(learned_ranges, "spherical_laplace", lambda *a: spherical_laplace(*a) / 2)
    monkeypatch.setattr(learned_ranges, "gaussian", lambda *a: gaussian(*a) / 2)
    assert stated_share(noise) > 1.9


def test_what_passes_the_gate_is_the_sums_and_this_noise(monkeypatch):
    passed = []
    monkeypatch.setattr(learned_ranges, "release", lambda *args: passed.append(args) or release(*args))
    X = np.array([record(u, gap) for u, gap in (((0.5, 1, -1), False), ((0.25, 0, 1), True))])
    ranges = TableRanges(NUMBERS)
    sums = ranges.summed(X)
    ranges.learn(sums, 0.7, as_generator(0))
    ((places, noise, step, unit),) = passed
    assert (places * unit == [0.75, 1, 0, -0.5 - 0.875, 1, 2]).all()
    assert (noise == RangesNoise(3, 0.7).sample(as_generator(0))).all()
    assert unit % step == 0 and step <= RangesNoise(3, 0.7).step


# ---- from means to bounds


def test_bounds_are_quantiles_of_a_beta_law():
    laws = [stats.beta(1, 1), stats.beta(2, 5), stats.beta(30, 3)]
    u = [(2 * law.mean() - 1, 4 * law.var() + (2 * law.mean() - 1) ** 2) for law in laws]
    means = np.array([mean for mean, _ in u] + [2 * square - 1 for _, square in u])
    low, high = beta_ranges(means, 0.0)
    for law, *ends in zip(laws, low, high):
        np.testing.assert_allclose(ends, law.ppf([0.02, 0.98]), rtol=1e-9)
    wider = beta_ranges(means, 0.01)
    assert (wider[0] < low).all() and (wider[1] > high).all()


@pytest.mark.parametrize("means", [(5.0, -7.0), (-1.0, 1.0), (1.0, 1.0), (0.0, -1.0), (-9.0, 9.0)])
@pytest.mark.parametrize("deviation", [0.0, 1e-9, 0.1])
def test_whatever_noise_makes_of_means_gives_a_range(means, deviation):
    (low,), (high,) = beta_ranges(np.array(means), deviation)
    assert 0 <= low < low + 0.0099 <= high <= 1


def test_a_narrower_schema_lies_within_the_given_one():
    schema = PublicSchema({**SCHEMA, "filled": {"bounds": (0, 10), "missing": True, "fill": 9}})
    ends = {"age": (0.25, 0.5), "income": (0.0, 1.0), "dose": (0.1, 1.0), "filled": (0.0, 0.5)}
    narrow = narrowed(schema, ends).columns
    assert (narrow["age"].low, narrow["age"].high) == (250, 500)
    assert narrow["income"] == schema.columns["income"] and narrow["job"] == schema.columns["job"]
    assert (narrow["dose"].low, narrow["dose"].high) == (-40, 50)
    assert (narrow["filled"].high, narrow["filled"].fill) == (5, 5)
    assert PublicSchema(narrowed(schema, ends).to_dict()) == narrowed(schema, ends)
    # so close that rounding makes both ends equal
    tight = PublicSchema({"a": (1e16, 1e16 + 4)})
    assert narrowed(tight, {"a": (0.1, 0.11)}) == tight


# ---- a fit

MODELS = {
    "pure": LOGISTIC,
    "delta": clone(LOGISTIC).set_params(delta=1e-6),
    "output": clone(LOGISTIC).set_params(delta=1e-6, perturbation="output"),
    "three": clone(LOGISTIC).set_params(delta=1e-6, classes=[0, 1, 2]),
    "svc": DPLinearSVC(2.0, delta=1e-6, classes=[0, 1]),
    "huber": DPHuberRegressor(2.0, delta=1e-6, target_range=(0, 1)),
    "ridge": DPRidge(2.0, delta=1e-6, target_range=(0, 1)),
    "poisson": DPPoissonRegressor(2.0, target_bound=1.0),
    "base rate": DPLogisticRegression(0.7, base_rate="auto", delta=1e-6, classes=[0, 1]),
}


@pytest.mark.parametrize("name, persons", slow_but([*product(MODELS, [False, True])], 0, 2, 9, 12, 16))
def test_a_fit_spends_no_more_than_its_model_is_given(name, persons, tmp_path):
    model, stated = MODELS[name], []
    groups = {"groups": np.arange(4 * N) // 2} if persons else {}
    for scale in (1.0, 1e-3):
        X, y = table(4 * N, scale)
        fitted = pipeline(model)
        ledger = PrivacyLedger(
            tmp_path / f"{scale}",
            epsilon=model.epsilon,
            delta=getattr(model, "delta", 0.0),
            adjacency="replace all rows of one person" if persons else "replace one record",
        )
        with ledger:
            fitted.fit(X, y, **groups)
        loss = privacy_of(fitted)
        assert loss.epsilon <= model.epsilon and loss.delta <= getattr(model, "delta", 0.0)
        (entry,) = ledger.history()
        assert (entry.epsilon, entry.delta) == (loss.epsilon, loss.delta)
        assert entry.statement.parts == loss.parts
        stated.append((loss, entry.reserved_epsilon, entry.reserved_delta))
        # what was learned, and what stays as it was given
        known, given = fitted[0].schema_.columns, PublicSchema(SCHEMA).columns
        assert [key for key in known if known[key] != given[key]] == list(LEARNED)
        for one, other in ((given[key], known[key]) for key in LEARNED):
            assert one.low <= other.low < other.high <= one.high
        assert fitted[0].ranges == "auto" and fitted[0].schema is SCHEMA
        assert fitted[1].epsilon == model.epsilon
        part = fitted[1].privacy_
        assert part.epsilon < model.epsilon and fitted[0].privacy_.label.endswith(TableRanges.what)
    assert stated[0] == stated[1]


def used_and_stated(model, monkeypatch, search=False):
    """Return epsilon and mu of the noise that ranges were learned with, and what is stated of them."""
    used, (X, y) = [], table()
    with monkeypatch.context() as patch:
        learn = TableRanges.learn

        def watched(self, records, epsilon, generator):
            used.append((self.noise(epsilon).epsilon, self.noise(epsilon).mu))
            return learn(self, records, epsilon, generator)

        patch.setattr(TableRanges, "learn", watched)
        fitted = pipeline(model)
        if search:
            fitted = StabilityGridSearchCV(fitted, {"model__alpha": [0.1]}, epsilon=model.epsilon)
        loss = privacy_of(fitted.fit(X, y)).releases[0]
    assert len(used) == 1 and TableRanges.what in loss.label
    event = loss.event
    return used[0], (loss.epsilon, event and event.mu), loss


@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize("name", ["pure", "delta", "output"])
def test_what_a_fit_releases_has_the_noise_that_is_stated(name, search, monkeypatch):
    used, stated, loss = used_and_stated(MODELS[name], monkeypatch, search)
    assert used == stated
    if loss.event is not None:  # what it costs alone, if nothing else is known of it
        assert gaussian_mu(loss.epsilon, loss.delta) == pytest.approx(used[1], rel=1e-6)
    # the broken twin draws noise for the whole epsilon, and states a part of it
    monkeypatch.setattr(TableRanges, "noise", lambda self, epsilon: RangesNoise(3, MODELS[name].epsilon))
    used, stated, _ = used_and_stated(MODELS[name], monkeypatch, search)
    assert used != stated


def test_bounds_follow_the_records():
    X, y = table(40_000)
    columns = pipeline().fit(X, y)[0].schema_.columns
    assert 250 < columns["age"].low < 360 and 440 < columns["age"].high < 550
    assert columns["income"].low > 20 and columns["income"].high < 1e8
    # gaps, which count as the middle of the schema with any spread, make a range wider
    assert -40 < columns["dose"].low < 5 < columns["dose"].high < 45


def test_with_a_delta_the_model_keeps_most_of_the_budget():
    schema = dict.fromkeys("abcdefghij", (0, 1))
    X, y = np.random.default_rng(0).beta(2, 5, (N, 10)), np.arange(N) % 2
    loss = privacy_of(tabular_pipeline(schema, MODELS["delta"], ranges="auto").fit(X, y))
    ranges, model = loss.parts
    assert loss.composition == "joint" and loss.epsilon > 0.998 * 2.0
    # no proof can leave it more than this
    m, rest = gaussian_mu(2.0, 1e-6), gaussian_mu(model.epsilon, model.delta)
    assert ranges.event.mu == math.sqrt(0.1) * m
    assert 0.98 * math.sqrt(0.9) * m < rest < math.sqrt(0.9) * m


def test_the_same_seed_gives_the_same_ranges_and_others_others():
    X, y = table()
    found = [pipeline(clone(LOGISTIC).set_params(random_state=seed)).fit(X, y) for seed in (0, 0, 1)]
    first, same, other = [fitted[0].schema_ for fitted in found]
    assert first == same != other and (found[0][1].coef_ == found[1][1].coef_).all()


@pytest.mark.parametrize("epsilon", [0.1, math.inf])
def test_where_noise_is_long_or_none_the_whole_budget_trains(epsilon):
    X, y = table()
    model = clone(LOGISTIC).set_params(epsilon=epsilon)
    fitted, plain = pipeline(model).fit(X, y), tabular_pipeline(SCHEMA, model, cut_points=CUTS).fit(X, y)
    assert fitted[0].schema_ == PublicSchema(SCHEMA) and not hasattr(fitted[0], "privacy_")
    assert privacy_of(fitted).epsilon == epsilon and (fitted[1].coef_ == plain[1].coef_).all()
    assert fitted[0].ranges == "auto"


def test_the_rule_is_about_public_numbers_alone():
    ranges, least = ranges_of_a_fit.ranges_to_learn(pipeline()), {}
    for delta in (0.0, 1e-6):
        model = clone(LOGISTIC).set_params(delta=delta)
        given = replace(ranges, allowed_delta=delta)
        learns = {
            n: Shares.of(given, model, PublicShape(n, 20), Adjacency.REPLACE_RECORD, "") is not None
            for n in (100, 200, 300, 400, 425, 450, 475, 500, 1000)
        }
        assert list(learns.values()) == sorted(learns.values())
        least[delta] = min(n for n, enough in learns.items() if enough)
    # a mean has noise of .12 at n epsilon = sqrt(5.1447 p (2 p + 1)) / (.1 * .12), p = 3
    pure = math.sqrt(5.1447 * 3 * 7) / 0.012 / 2.0
    assert pure <= least[0.0] < pure + 25 and least[1e-6] < least[0.0]


def test_a_fit_forgets_what_an_earlier_one_has_learned():
    X, y = table()
    fitted = pipeline().fit(X, y)
    fitted.set_params(encoder__ranges=None).fit(X, y)
    assert not hasattr(fitted[0], "privacy_") and fitted[0].schema_ == PublicSchema(SCHEMA)
    assert privacy_of(fitted).epsilon == 2.0
    assert clone(pipeline().fit(X, y))[0].ranges == "auto"


@pytest.mark.parametrize("container", [pd.DataFrame.copy, pd.DataFrame.to_numpy, RowChunks])
def test_tables_of_all_kinds_give_the_same_ranges(container, monkeypatch):
    X, y = table()
    expected = pipeline().fit(X, y)
    monkeypatch.setattr(computed, "FEW_NUMBERS", 0)  # encode in each pass
    if container is RowChunks:
        rows = RowChunks(lambda i: X.to_numpy()[1500 * i :][:1500], [1500, 1500, 1000], 7)
    else:
        rows = container(X)
    assert pipeline().fit(rows, y)[0].schema_ == expected[0].schema_


def test_weights_do_not_reach_the_ranges():
    X, y = table()
    model = clone(LOGISTIC).set_params(max_sample_weight=2.0)
    schemas = [
        pipeline(model).fit(X, y, sample_weight=weight)[0].schema_
        for weight in (np.ones(N), np.linspace(0, 2, N))
    ]
    assert schemas[0] == schemas[1]


# ---- refusals cost nothing

REFUSED = {
    "alone": (lambda X, y: TableEncoder(SCHEMA, ranges="auto").fit(X), "no epsilon"),
    "another pipeline": (
        lambda X, y: Pipeline([("a", TableEncoder(SCHEMA, ranges="auto")), ("b", LOGISTIC)]).fit(X, y),
        "no epsilon",
    ),
    "labels": (lambda X, y: pipeline(DPLogisticRegression()).fit(X, y), "classes=None"),
    "norm": (
        lambda X, y: pipeline(clone(LOGISTIC).set_params(data_norm="auto")).fit(X, y),
        "norm that is learned",
    ),
    "memory": (lambda X, y: pipeline().set_params(memory="folder").fit(X, y), "memory"),
    "steps": (
        lambda X, y: TabularPipeline([("first", BoundedScaler((0, 1))), *pipeline().steps]).fit(X, y),
        "before its encoder",
    ),
    "another value": (lambda X, y: tabular_pipeline(SCHEMA, LOGISTIC, ranges="learn"), "'auto'"),
    "wrong label": (lambda X, y: pipeline().fit(X, np.where(np.arange(N) == 7, 9, y)), "labels"),
    "wrong cell": (lambda X, y: pipeline().fit(X.replace({"age": {X.age[7]: np.inf}}), y), "age"),
    "a gap": (lambda X, y: pipeline().fit(X.replace({"age": {X.age[7]: np.nan}}), y), "age"),
    "weights": (lambda X, y: pipeline().fit(X, y, sample_weight=np.ones(N)), "max_sample_weight"),
    "too large weights": (
        lambda X, y: pipeline(clone(LOGISTIC).set_params(max_sample_weight=2.0)).fit(
            X, y, sample_weight=np.full(N, -1.0)
        ),
        "sample_weight",
    ),
    "no weights": (
        lambda X, y: pipeline(clone(LOGISTIC).set_params(max_sample_weight=2.0)).fit(
            X, y, sample_weight=np.ones(N - 1)
        ),
        "sample_weight",
    ),
    "weights of another model": (
        lambda X, y: pipeline(MODELS["ridge"]).fit(X, y, sample_weight=np.ones(N)),
        "sample_weight",
    ),
    "strict": (lambda X, y: strictly(pipeline().fit, X, y), "seed"),
    "fit parameters": (lambda X, y: pipeline().fit(X, y, model__callback=print), "callback"),
    "short labels": (lambda X, y: pipeline().fit(X, y[1:]), "numbers of samples"),
    "persons": (lambda X, y: pipeline().fit(X, y, groups=[None] * N), "groups"),
    "a model's parameter": (lambda X, y: pipeline().set_params(model__alpha=-1.0).fit(X, y), "alpha"),
    "accuracy first": (
        lambda X, y: AccuracyFirstSearchCV(
            pipeline(clone(LOGISTIC).set_params(alpha=0.1)), {"model__epsilon": [0.5, 1.0]}, target=0.5
        ).fit(X, y),
        "no epsilon",
    ),
    "a grid of schemas": (
        lambda X, y: StabilityGridSearchCV(
            pipeline(), {"encoder__schema": [SCHEMA, {**SCHEMA, "age": (0, 500)}]}, epsilon=2.0
        ).fit(X, y),
        "release of its own",
    ),
    "a grid of deltas": (
        lambda X, y: StabilityGridSearchCV(pipeline(), {"model__delta": [0.0, 1e-6]}, epsilon=2.0).fit(
            X, y
        ),
        "release of its own",
    ),
}


def strictly(fit, X, y):
    with config_context(strict=True):
        fit(X, y)


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_proof_is_refused_before_anything_is_spent(case, tmp_path):
    fit, said = REFUSED[case]
    with PrivacyLedger(tmp_path / "ledger", epsilon=9.0, delta=0.1) as ledger:
        with pytest.raises((ValueError, TypeError, PrivacyLeakError), match=said):
            fit(*table())
    assert ledger.spent() == (0.0, 0.0)


def test_a_ledger_with_less_left_reads_no_record(tmp_path, monkeypatch):
    monkeypatch.setattr(TableRanges, "summed", lambda *_: pytest.fail("records were read"))
    with PrivacyLedger(tmp_path / "ledger", epsilon=1.9), pytest.raises(BudgetExceededError):
        pipeline().fit(*table())


def test_a_fit_that_fails_after_noise_counts_in_full_and_changes_nothing(tmp_path, monkeypatch):
    X, y = table()
    fitted = pipeline().fit(X, y)
    before = fitted[0].schema_, fitted[1].coef_

    def fails(*args):
        raise RuntimeError

    monkeypatch.setattr(DPLogisticRegression, "_release", fails)
    with PrivacyLedger(tmp_path / "ledger", epsilon=9.0) as ledger, pytest.raises(RuntimeError):
        fitted.fit(X, y)
    assert ledger.spent() == (2.0, 0.0)
    assert (fitted[0].schema_, fitted[1].coef_) == before and fitted[0].ranges == "auto"
    assert fitted[1].epsilon == 2.0


def test_what_a_model_states_beyond_the_plan_is_refused(monkeypatch):
    planned = DPLogisticRegression.planned_loss
    monkeypatch.setattr(
        DPLogisticRegression, "planned_loss", lambda *a: replace(planned(*a), epsilon=0.1)
    )
    with pytest.raises(ValueError, match="more than was planned"):
        pipeline().fit(*table())


# ---- searches


GRIDS = (
    {"model__alpha": [0.01]},
    {"encoder__expansion": ["linear", 2, 4]},
    {"encoder__ranges": [None, "auto"], "encoder__pairs": [(), [("age", "job")]]},
)


@pytest.mark.parametrize(
    "grid, persons, delta", slow_but([*product(GRIDS, [False, True], [0.0, 1e-6])], 1, 6, 9), ids=str
)
def test_a_search_learns_once_for_all_candidates(grid, persons, delta, monkeypatch, tmp_path):
    learned, learn = [], TableRanges.learn
    monkeypatch.setattr(
        TableRanges, "learn", lambda self, *args: learned.append(learn(self, *args)) or learned[-1]
    )
    stated = []
    for scale in (1.0, 1e-3):
        X, y = table(4 * N, scale)
        groups = {"groups": np.arange(4 * N) // 2} if persons else {}
        search = StabilityGridSearchCV(
            pipeline(clone(LOGISTIC).set_params(delta=delta)), grid, epsilon=2.0, random_state=0
        )
        plan = search.plan(2 * N if persons else 4 * N, 7, persons=persons)
        assert any("ranges of the numbers 0.2 takes" in message for message in plan.messages)
        assert plan.delta == delta
        search.fit(X, y, **groups)
        loss = search.privacy_
        assert loss.epsilon <= 2.0 and loss.delta <= delta
        assert TableRanges.what in loss.parts[0].label and loss.parts[0].epsilon == pytest.approx(0.2)
        best = search.best_estimator_[0]
        wanted = narrowed(PublicSchema(SCHEMA), learned[-1])
        without = search.best_params_.get("encoder__ranges", "auto") is None
        assert best.schema_ == (PublicSchema(SCHEMA) if without else wanted)
        assert len(search.predict(X)) == len(X)
        stated.append([(part.epsilon, part.delta) for part in loss.parts])
    assert len(learned) == 2 and stated[0] == stated[1]


def test_a_search_evaluates_the_model_within_the_ranges():
    X, y = table()
    grid = {"encoder__ranges": ["auto", None]}
    for param_grid in ({}, grid):
        search = StabilityGridSearchCV(pipeline(), param_grid, epsilon=8.0, evaluation=0.2).fit(X, y)
        assert search.evaluation_.n_records == len(X) // 5 and search.privacy_.epsilon <= 8.0


def test_a_plan_says_where_nothing_is_learned():
    search = StabilityGridSearchCV(pipeline(), {"encoder__expansion": [2, 4]}, epsilon=0.1)
    plan = search.plan(4000, 7)
    assert any("ranges='auto' learns nothing" in message for message in plan.messages)
    assert not any(TableRanges.what in message for message in plan.messages)
    X, y = table()
    fitted = search.fit(X, y)
    assert fitted.best_estimator_[0].schema_ == PublicSchema(SCHEMA)
    assert TableRanges.what not in str(fitted.privacy_)


@pytest.mark.slow
def test_a_page_of_plans_varies_what_is_left_for_the_model():
    assert "epsilon" in StabilityGridSearchCV(pipeline(), {}, epsilon=2.0).plan(4000, 7).to_html()


def test_without_noise_a_search_learns_nothing():
    X, y = table(600)
    model = DPLogisticRegression(random_state=0)
    search = StabilityGridSearchCV(pipeline(model), {"encoder__expansion": [2]}, epsilon=math.inf, cv=2)
    assert search.fit(X, y).best_estimator_[0].schema_ == PublicSchema(SCHEMA)


def test_scikit_learns_search_learns_in_each_fit(tmp_path):
    X, y = table(1200)
    with PrivacyLedger(tmp_path / "ledger", epsilon=90.0) as ledger:
        with pytest.warns(UserWarning):
            GridSearchCV(pipeline(), {"encoder__expansion": [2, 4]}, cv=2).fit(X, y)
    assert len(ledger.history()) == 5


def test_a_report_tells_given_and_learned_bounds_apart():
    X, y = table()
    for fitted in (
        pipeline().fit(X, y),
        StabilityGridSearchCV(pipeline(), {"model__alpha": [0.1]}, epsilon=2.0).fit(X, y),
    ):
        text = privacy_report(fitted).to_markdown()
        assert "bounds of numbers that were learned" in text and "0 to 1000" in text
        assert 'Theorem 6 of "First releases"' in text
    text = privacy_report(tabular_pipeline(SCHEMA, LOGISTIC).fit(X, y)).to_markdown()
    assert "were learned" not in text


FIRST = (
    {f"a{i}": (0, 100) for i in range(3)}
    | {f"c{i}": list("abcdefgh") for i in range(30)}
    | {f"z{i}": (0, 100) for i in range(20)}
)


def check_first(grid, epsilon=1.0):
    """Check that a search learns ranges of the numbers that its models can read, as a fit does."""
    learned, learn = [], TableRanges.learn

    def watched(self, *args):
        learned.append([column.name for column in self.columns])
        return learn(self, *args)

    rng, n = np.random.default_rng(0), 3000
    X = np.empty((n, len(FIRST)), dtype=object)
    for j, (name, entry) in enumerate(FIRST.items()):
        X[:, j] = rng.uniform(0, 10, n) if name[0] in "az" else rng.choice(entry, n)
    y = (X[:, 0] > 5).astype(int)
    model = tabular_pipeline(FIRST, LOGISTIC, columns="first", ranges="auto")
    search = StabilityGridSearchCV(model, grid, epsilon=epsilon, random_state=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TableRanges, "learn", watched)
        clone(model).set_params(model__epsilon=epsilon).fit(X, y)
        search.fit(X, y)
    assert learned[0] == ["a0", "a1", "a2"] and learned[1:] == learned[:1]
    encoder = search.best_estimator_[0]
    assert {"a0", "a1", "a2"} <= set(encoder.columns_) < set(FIRST)
    assert all(encoder.schema_.columns[name].high < 100 for name in learned[0])
    assert search.privacy_.epsilon <= epsilon


@pytest.mark.parametrize(
    "grid", [{}, {"model__base_rate": [0.5, 0.02]}, {"encoder__expansion": ["linear", 2]}], ids=str
)
def test_a_search_learns_no_ranges_of_columns_that_nothing_reads(grid):
    check_first(grid)


def test_a_search_that_forgets_how_many_records_there_are_is_seen(monkeypatch):
    usual = ToLearn.of
    monkeypatch.setattr(ToLearn, "of", lambda candidates, *public: usual(candidates))
    with pytest.raises(AssertionError):
        check_first({})
