"""What is learned before training is paid for once, out of one epsilon, wherever a model is fitted."""

import itertools
import math

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from dpselect import (
    AccuracyFirstSearchCV,
    CertificateError,
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    PrivacyLedger,
    StabilityGridSearchCV,
)
from dpselect.base.estimator import Trial
from dpselect.base.learned_numbers import Division, first_releases
from dpselect.linear_model.norms_and_rates import ClassShares, MeanCount, MedianNorm
from dpselect.model_selection.learned_first import ToLearn
from dpselect.model_selection.strategies import STRATEGIES
from dpselect.noise import InnerStream, as_generator
from dpselect.preprocessing import DPBoundsScaler, tabular_pipeline
from dpselect.records.public_shape import PublicShape
from dpselect.records.records import Weighted
from dpselect.testing import ReleaseStatement, check_private_estimator, private_estimator_checks
from tests.glue.cases import VARIANTS, in_pairs, key, records_for
from tests.glue.recording import Recorder

N, P = 1500, 40
EPSILON = 0.15  # so little that class shares take more than a twentieth of it

LOGISTIC = DPLogisticRegression(
    EPSILON, data_norm="auto", data_norm_l1="auto", base_rate="auto", classes=[0, 1]
)
MODELS = {
    "logistic": LOGISTIC,
    "three classes": clone(LOGISTIC).set_params(epsilon=0.4, classes=[0, 1, 2]),
    "svc": DPLinearSVC(EPSILON, data_norm="auto", classes=[0, 1]),
    "poisson": DPPoissonRegressor(0.5, data_norm="auto", base_rate="auto", target_bound=10.0),
    "huber": DPHuberRegressor(EPSILON, data_norm="auto", data_norm_l1="auto", target_range=(0, 4)),
    "gaussian": DPLogisticRegression(EPSILON, delta=1e-6, data_norm="auto", classes=[0, 1]),
    "ridge": DPRidge(EPSILON, data_norm="auto", target_range=(-1, 1)),
    "ridge objective": DPRidge(
        EPSILON, data_norm="auto", target_range=(-1, 1), alpha=1.0, perturbation="objective"
    ),
}


def data(name="logistic", n=N):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, P)), rng.permutation(np.arange(n) % (3 if name == "three classes" else 2))


class Spent:
    """Records the epsilons of what is learned, and of what is trained."""

    def __init__(self, monkeypatch):
        self.first, self.trained = [], []

        def learn(kind):
            original = kind.learn

            def learning(release, records, epsilon, generator):
                self.first.append((release, epsilon))
                return original(release, records, epsilon, generator)

            monkeypatch.setattr(kind, "learn", learning)

        def release(kind):
            original = kind._release

            def releasing(model, records, calibration, noise):
                if records.shape.n_samples > 2:  # and not a dry run
                    self.trained.append(calibration.epsilon)
                return original(model, records, calibration, noise)

            monkeypatch.setattr(kind, "_release", releasing)

        for kind in (MedianNorm, ClassShares, MeanCount):
            learn(kind)
        for kind in {type(model) for model in MODELS.values()}:
            release(kind)

    def total(self):
        return math.fsum([epsilon for _, epsilon in self.first] + self.trained)


def planned_releases(model, shape):
    """Return what a fit learns first, by public numbers."""
    learned = first_releases(model)
    guess = clone(model).set_params(**{name: release.stand_in for name, release in learned.items()})
    planned = [release.planned(guess, shape, model.epsilon) for release in learned.values()]
    return [release for release in planned if release]


def check_a_fit(model, name, spent):
    """Whatever a fit releases adds up to its epsilon, and is stated."""
    spent.first.clear(), spent.trained.clear()
    X, y = data(name)
    fitted = clone(model).fit(X, y)
    planned = planned_releases(model, PublicShape(*X.shape, 3 if name == "three classes" else 1))
    assert [release for release, _ in spent.first] == planned
    signal = N * model.epsilon / (3 if name == "three classes" else 1) / (P + 1)
    # where there is a model to learn, it learns the shares of the classes, too
    left_out = "classes" if signal >= 100 and isinstance(model, DPLogisticRegression) else "none"
    asked = [release for release in first_releases(model).values() if left_out not in release.what]
    assert [type(release) for release in planned] == [*map(type, asked)]
    fractions = [release.fraction for release in planned]
    assert [epsilon / model.epsilon for _, epsilon in spent.first] == pytest.approx(fractions)
    assert spent.total() == pytest.approx(model.epsilon, rel=1e-12)
    assert spent.total() <= model.epsilon == fitted.privacy_.epsilon
    stated = [loss.epsilon for loss in fitted.privacy_.releases]
    assert stated == [epsilon for _, epsilon in spent.first] + spent.trained


@pytest.mark.parametrize("name", MODELS)
def test_what_a_fit_releases_adds_up(name, monkeypatch):
    check_a_fit(MODELS[name], name, Spent(monkeypatch))


@pytest.mark.parametrize("name", ["logistic", "three classes", "poisson"])
@pytest.mark.parametrize("epsilon", [0.02, 0.7, 3.0, 30.0])
def test_it_adds_up_whatever_fraction_is_taken(name, epsilon, monkeypatch):
    model = clone(MODELS[name]).set_params(epsilon=epsilon)
    if name == "poisson" and epsilon == 0.02:
        model.set_params(base_rate=2.0)  # it would not be learned
    check_a_fit(model, name, Spent(monkeypatch))


class WholeForTheModel(DPLogisticRegression):
    """Trains with all of epsilon, as if what it learned first were free."""

    def _calibration(self, shape, epsilon):
        return super()._calibration(shape, self.epsilon)


class LearnsTwice(DPLogisticRegression):
    """Takes the median norm of a second release, which it does not state."""

    def _check_records(self, X, y):
        records = super()._check_records(X, y)
        MedianNorm("l2").learn(records, self.epsilon / 20, np.random.default_rng())
        return records


@pytest.mark.parametrize("twin", [WholeForTheModel, LearnsTwice])
def test_broken_twins_spend_more_than_they_state(twin, monkeypatch):
    with pytest.raises(AssertionError):
        check_a_fit(twin(**LOGISTIC.get_params()), "logistic", Spent(monkeypatch))


@pytest.mark.parametrize("name", MODELS)
def test_the_model_is_that_of_the_numbers_as_if_typed(name):
    X, y = data(name)
    model = clone(MODELS[name]).set_params(epsilon=float("inf"))
    fitted = clone(model).fit(X, y)
    typed = {f: vars(fitted)[f"{f}_"] for f in first_releases(model)}
    expected = clone(model).set_params(**typed).fit(X, y)
    for attribute in ("coef_", "intercept_"):
        np.testing.assert_array_equal(getattr(fitted, attribute), getattr(expected, attribute))
    X = 100 * X  # rows that are clipped
    np.testing.assert_array_equal(fitted.predict(X), expected.predict(X))
    assert fitted.get_params() == model.get_params()


# in all settings of the models that learn, whatever the noise of the rest is made of
LEARNING = (
    in_pairs(
        {
            name: clone(model).set_params(
                data_norm="auto",
                data_norm_l1="auto" if model.data_norm_l1 else None,
            )
            for name, model in VARIANTS.items()
            if "0.2" not in name and name[-2:] != "-0" and "density" not in name
        }
    )
    | MODELS
)


@pytest.mark.parametrize("name", LEARNING)
def test_the_noise_is_that_of_the_numbers_as_if_typed_and_each_has_its_own(name, monkeypatch):
    model = clone(LEARNING[name]).set_params(random_state=key("first", name))
    X, y = data(name) if name in MODELS else records_for(model)
    recorder = Recorder(monkeypatch).watch_keys()
    fitted = clone(model).fit(X, y)
    *first, last = keys = [key for key, _ in recorder.keys()]
    assert len(set(keys)) == len(keys) == len(fitted.privacy_.parts) == 1 + len(first)
    typed = {f: vars(fitted)[f"{f}_"] for f in first_releases(model)}
    # with the rest of epsilon, and the noise that is drawn last
    typed |= {"epsilon": fitted.privacy_.parts[-1].epsilon, "random_state": InnerStream(last)}
    assert typed["epsilon"] < model.epsilon
    expected = vars(clone(model).set_params(**typed).fit(X, y))
    for attribute in ("coef_", "intercept_", "gram_", "moment_"):
        np.testing.assert_array_equal(vars(fitted).get(attribute), expected.get(attribute))


# with a delta, what is learned may decide which noise is the shortest
DECIDING = {name: model for name, model in LEARNING.items() if model.delta} | {
    f"{name}, rows of l1 norm {l1}": clone(MODELS[name]).set_params(
        epsilon=0.4, delta=0.02, data_norm_l1=l1
    )
    for name in ("logistic", "svc", "poisson", "huber")
    for l1 in (0.3, 3.0)
}


@pytest.mark.parametrize("name", DECIDING)
def test_what_is_stated_depends_on_no_record(name):
    """Neither a delta nor an event may follow a number that was learned."""
    X, y = records_for(DECIDING[name])
    short, long = (clone(DECIDING[name]).fit(unit * X, y) for unit in (1e-3, 1e3))
    assert short.privacy_ == long.privacy_


# each kind of number that is learned, for each number of classes
LEARNED = {
    (release, len(getattr(model, "classes", ()))): model
    for model in LEARNING.values()
    if not model.delta
    for release in first_releases(model).values()
}


def learned_of_persons(release, model, times):
    X, y = records_for(model, n=len(times))
    ids = np.repeat(np.arange(len(times)), times)
    records = Trial(model, 1.0).records(X[ids], Weighted(y[ids], None, ids))
    return release.learn(records, 1.0, as_generator(key("persons")))


@pytest.mark.parametrize("release, K", LEARNED, ids=str)
def test_what_is_learned_counts_a_person_once_however_many_rows(release, K):
    one, many = (
        learned_of_persons(release, LEARNED[release, K], times)
        for times in (np.ones(N, dtype=int), 2 ** (np.arange(N) % 5))
    )
    assert many == pytest.approx(one, rel=1e-6)


def test_it_is_learned_anew_by_each_fit():
    X, y = data()
    model = DPLogisticRegression(50.0, data_norm="auto", classes=[0, 1]).fit(X, y)
    assert 50 < model.fit(100 * X, y).data_norm_ / model.fit(X, y).data_norm_ < 200
    model.set_params(data_norm=2.0).fit(X, y)
    assert not hasattr(model, "data_norm_") and len(model.privacy_.releases) == 1
    # a model that was fitted goes by the parameters of its fit
    before = model.predict(X)
    assert (model.set_params(data_norm="auto").predict(X) == before).all()


def test_nothing_is_said_of_a_model_before():
    model = DPLogisticRegression(alpha=0.1, data_norm="auto", classes=[0, 1])
    fitted = clone(model).fit(*data())
    for asked, one in itertools.product(
        (
            lambda model: model.calibration(PublicShape(N, P)),
            lambda model: model.standard_noise(P),
            lambda model: model.stability_certificate(None, N, P),
            lambda model: model.risk_bound(N, P),
            lambda model: model.accuracy_form(),
        ),
        # a certificate is about what a fit does with other records, too
        (model, fitted),
    ):
        with pytest.raises(CertificateError, match='data_norm="auto" is learned'):
            asked(one)


def test_the_ledger_pays_once(tmp_path):
    X, y = data()
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=1.0)
    with ledger:
        model = clone(LOGISTIC).fit(X, y)
        StabilityGridSearchCV(LOGISTIC, {"alpha": [0.1, 1.0]}, epsilon=0.2).fit(X, y)
    assert model.privacy_.epsilon == EPSILON
    assert ledger.remaining()[0] == pytest.approx(1.0 - EPSILON - 0.2)


class Stop(Exception):
    pass


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("strategy", [None, *(name for name in STRATEGIES if name != "control")])
@pytest.mark.parametrize("place", range(3))
def test_what_fails_after_a_number_was_learned_has_spent(place, strategy, monkeypatch, tmp_path):
    left = itertools.count(place, -1)

    def stops(learn):
        def learning(release, records, epsilon, generator):
            learn(release, records, epsilon, generator)
            if next(left) == 0:
                raise Stop
            return 0.5

        return learning

    for kind in (MedianNorm, ClassShares, MeanCount):
        monkeypatch.setattr(kind, "learn", stops(kind.learn))
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=1.0)
    model, X_y = clone(LOGISTIC).set_params(ledger=ledger), data()
    if strategy:
        grid = {"alpha": [0.5, 1.0, 2.0]}
        model = StabilityGridSearchCV(LOGISTIC, grid, epsilon=EPSILON, strategy=strategy, ledger=ledger)
    with pytest.raises(Stop):
        model.fit(*X_y)
    assert ledger.spent()[0] == EPSILON


def check_divisions(kind):
    """Shares and what is left are their fractions of an epsilon, and add up to it without rounding."""
    rng = np.random.default_rng(0)
    for epsilon in [*rng.uniform(0.01, 9, 1000), *np.exp(rng.uniform(-30, 30, 1000))]:
        fractions = rng.dirichlet(np.ones(rng.integers(2, 6)))[1:]
        fractions = fractions if rng.integers(2) else np.exp(rng.uniform(-12, -1.4, len(fractions)))
        names = "abcde"[: len(fractions)]
        division = kind({n: ClassShares(f) for n, f in zip(names, fractions.tolist())}, epsilon)
        shares = [division.share(name) for name in names]
        assert math.fsum([*shares, division.rest]) == epsilon
        assert shares == pytest.approx(fractions * epsilon, rel=1e-9)
        assert division.rest == pytest.approx((1 - math.fsum(fractions)) * epsilon, abs=1e-12 * epsilon)
        losses = division.losses(dict.fromkeys(names, "Model"), seeded=False)
        assert [loss.epsilon for loss in losses] == shares


class RoundedShares(Division):
    """The broken twin takes the nearest number of float64."""

    def share(self, name):
        return self.releases[name].fraction * self.epsilon


class SharesAlike(Division):
    """The broken twin gives all the fraction of the first."""

    def share(self, name):
        return super().share(next(iter(self.releases)))


def test_a_division_adds_up():
    check_divisions(Division)
    for twin in (RoundedShares, SharesAlike):
        with pytest.raises(AssertionError):
            check_divisions(twin)


class Learner:
    """Records the epsilon with which something is learned."""

    what, delta = "a number", 0.0

    def __init__(self, fraction):
        self.fraction, self.seen = fraction, []

    def event(self, epsilon):
        return None

    def learn(self, records, epsilon, generator):
        self.seen.append(epsilon)
        return 0.0


def test_what_is_stated_is_what_is_learned_with():
    for epsilon in (0.3, 7.0, math.inf):
        learners = {"a": Learner(0.8), "b": Learner(0.01)}
        division = Division(learners, epsilon)
        for name in learners:
            division.learn(name, None, key("division"))
        seen = [learner.seen for learner in learners.values()]
        losses = division.losses({"a": "Model", "b": "Model"}, seeded=False) if epsilon < 9 else None
        assert seen == ([[loss.epsilon] for loss in losses] if losses else [[math.inf], [math.inf]])


# ---- in a search


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "control"])
def test_a_search_learns_once_for_all_candidates(strategy, monkeypatch, tmp_path):
    spent = Spent(monkeypatch)
    X, y = data()
    name = "alpha" if strategy in ("data_independent", "stability") else "intercept_scaling"
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=EPSILON)
    search = StabilityGridSearchCV(
        LOGISTIC, {name: [0.5, 1.0, 2.0]}, epsilon=EPSILON, strategy=strategy, ledger=ledger
    ).fit(X, y)
    learned = [(release, epsilon) for release, epsilon in spent.first if epsilon < math.inf]
    assert [type(release) for release, _ in learned] == [MedianNorm, MedianNorm, ClassShares]
    epsilons = [epsilon for _, epsilon in learned]
    (*_, shares) = planned_releases(LOGISTIC, PublicShape(N, P))
    assert 0.1 < shares.fraction < 0.2
    assert epsilons == pytest.approx([EPSILON / 20, EPSILON / 20, shares.fraction * EPSILON])
    assert search.privacy_.epsilon <= EPSILON
    assert [loss.epsilon for loss in search.privacy_.releases[:3]] == epsilons
    assert search.plan_.steps_epsilon == pytest.approx(math.fsum(epsilons))
    best = search.best_estimator_
    assert isinstance(best.data_norm, float) and 0 < best.base_rate < 1
    # no candidate was trained with more than the rest
    assert max(spent.trained) <= (EPSILON - math.fsum(epsilons)) * (1 + 1e-12)
    assert first_releases(LOGISTIC).keys() == {"data_norm", "data_norm_l1", "base_rate"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("steps", [[], [("step", DPBoundsScaler(2.0))]], ids=["rows", "private step"])
@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "control"])
def test_a_search_is_that_of_the_numbers_as_if_typed_with_what_is_left(strategy, steps):
    X, y = data(n=300)
    X = 30 * X[:, :3]  # longer than what is guessed before
    model = DPLogisticRegression(alpha=0.1, data_norm="auto", data_norm_l1="auto", classes=[0, 1])
    name = "alpha" if strategy in ("data_independent", "stability") else "intercept_scaling"

    def search(model, epsilon):
        return StabilityGridSearchCV(
            Pipeline([*steps, ("model", model)]),
            {f"model__{name}": [0.5, 1.0, 2.0]},
            epsilon=epsilon,
            strategy=strategy,
            n_noise_samples=2,
            random_state=4,
        ).fit(X, y)

    found = search(model, 40.0)
    assert found.privacy_.epsilon == 40.0
    shares = [loss.epsilon for loss in found.privacy_.releases if "median" in loss.label]
    assert len(shares) == 2
    norms = {norm: getattr(found.best_estimator_[-1], norm) for norm in ("data_norm", "data_norm_l1")}
    expected = search(clone(model).set_params(**norms), 40.0 - math.fsum(shares))
    assert found.best_index_ == expected.best_index_
    for number in ("sensitivity", "noise_scale", "span", "training_epsilon", "selection_epsilon"):
        assert getattr(found.plan_, number) == pytest.approx(getattr(expected.plan_, number), rel=1e-9)
    np.testing.assert_allclose(
        found.best_estimator_[-1].coef_, expected.best_estimator_[-1].coef_, rtol=1e-6
    )


@pytest.mark.filterwarnings("ignore")
def test_only_the_models_that_wait_for_a_number_get_it():
    X, y = data()
    grid = {"base_rate": [None, 0.4, "auto"], "fit_intercept": [True]}
    model = DPLogisticRegression(classes=[0, 1])
    for seed in range(4):
        search = StabilityGridSearchCV(
            model, grid, epsilon=EPSILON, strategy="random", random_state=seed
        ).fit(X, y)
        rate = search.best_estimator_.base_rate
        asked = search.best_params_["base_rate"]
        assert 0 < rate < 1 and rate != 0.4 if asked == "auto" else rate == asked
        assert len(search.privacy_.releases) == 2


DIVIDE = ToLearn.divide


def check_fractions_of_candidates(monkeypatch, divide=DIVIDE):
    """A number that candidates need to different precision is learned once, to the largest one."""
    monkeypatch.setattr(ToLearn, "divide", divide)
    spent, (X, y) = Spent(monkeypatch), data()
    X = X[:, :12]
    pipeline = Pipeline(
        [("powers", PolynomialFeatures(include_bias=False)), ("model", DPLogisticRegression())]
    ).set_params(model__base_rate="auto", model__classes=[0, 1])
    # with 90 columns noise leaves nothing but the shares, and with 12 there is a model to learn
    grid = {"powers__degree": [1, 2], "model__fit_intercept": [True, False]}
    search = StabilityGridSearchCV(pipeline, grid, epsilon=EPSILON, strategy="random").fit(X, y)
    wanted = [
        planned_releases(clone(pipeline[-1]).set_params(epsilon=EPSILON), PublicShape(N, p))
        for p in (12, 90)
    ]
    (one,), (other,) = wanted
    assert one.fraction < 0.5 and other.fraction == 0.8
    (learned,) = spent.first
    assert learned == (other, pytest.approx(0.8 * EPSILON))
    (loss, *_) = search.privacy_.releases
    assert loss.epsilon == learned[1] == search.plan(N, 12).steps_epsilon
    asked = search.best_params_["model__fit_intercept"]
    assert (search.best_estimator_[-1].base_rate is not None) == asked


def smallest_fraction(numbers, candidates, epsilon, n_samples):
    """The broken twin learns as precisely as the candidate that needs it least."""
    division, paying = DIVIDE(numbers, candidates, epsilon, n_samples)
    planned = [
        release.planned(candidates[i].model, candidates[i].shape(n_samples), epsilon)
        for name, release in division.releases.items()
        for i in paying[name]
    ]
    return Division({"base_rate": min(planned, key=lambda one: one.fraction)}, epsilon), paying


@pytest.mark.filterwarnings("ignore")
def test_one_number_serves_candidates_that_need_it_to_different_precision(monkeypatch):
    with monkeypatch.context() as patch:
        check_fractions_of_candidates(patch)
    with monkeypatch.context() as patch, pytest.raises(AssertionError):
        check_fractions_of_candidates(patch, smallest_fraction)


def test_a_search_in_which_it_is_not_worth_it_spends_nothing_on_it():
    model = DPLogisticRegression(classes=[0, 1], base_rate="auto")
    search = StabilityGridSearchCV(model, {"alpha": [0.1, 1.0]}, epsilon=50.0).fit(*data())
    assert len(search.privacy_.releases) == 1 and search.privacy_.epsilon == 50.0
    assert search.best_estimator_.base_rate is None


@pytest.mark.parametrize(
    "grid",
    [
        {"polynomialfeatures__degree": [1, 2]},
        {"logistic__data_norm": ["auto"], "polynomialfeatures__degree": [1, 2]},
    ],
)
def test_rows_of_several_kinds_would_need_several_releases(grid):
    pipeline = make_pipeline(PolynomialFeatures(), clone(LOGISTIC)).set_params()
    pipeline.steps[-1] = ("logistic", pipeline.steps[-1][1])
    with pytest.raises(ValueError, match="a release of its own; write a number for data_norm"):
        StabilityGridSearchCV(pipeline, grid).fit("no records", None)


def test_a_plan_says_what_is_learned_first():
    search = StabilityGridSearchCV(clone(LOGISTIC), {"alpha": [0.1, 1.0]}, epsilon=EPSILON)
    plan, (*_, shares) = search.plan(N, P), planned_releases(LOGISTIC, PublicShape(N, P))
    assert plan.steps_epsilon == pytest.approx((2 / 20 + shares.fraction) * EPSILON)
    assert any('data_norm="auto" is learned first' in message for message in plan.messages)
    # of more records less is enough, of many the model learns them, too
    plans = [search.plan(n, P).steps_epsilon / EPSILON for n in (4000, 20_000, 100_000)]
    assert plans == pytest.approx([2 / 20 + 0.05, 2 / 20 + np.sqrt(2) / 0.04 / 20_000 / EPSILON, 2 / 20])
    # and without an intercept there are none to learn
    search.estimator.set_params(fit_intercept=False)
    assert search.plan(N, P).steps_epsilon == pytest.approx(2 * EPSILON / 20)


def test_an_accuracy_first_search_does_without_shares_and_asks_for_norms():
    grid = {"epsilon": np.geomspace(0.01, 50, 30)}
    model = DPLogisticRegression(alpha=0.1, classes=[0, 1], base_rate="auto")
    search = AccuracyFirstSearchCV(model, grid, target=0.3).fit(*data())
    assert search.best_estimator_.base_rate is None
    with pytest.raises(CertificateError, match="write a number for data_norm"):
        AccuracyFirstSearchCV(model.set_params(data_norm="auto"), grid, target=0.3).fit("none", None)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["certified", "predict_verify", "above_threshold", "doubling"])
def test_an_accuracy_first_search_with_a_public_rate(method):
    X, y = data()
    y = (X[:, 0] > 1).astype(int)
    model = DPLogisticRegression(alpha=0.3, classes=[0, 1], base_rate=0.16, perturbation="output")
    loss = model.problem().loss
    search = AccuracyFirstSearchCV(
        model,
        {"epsilon": np.geomspace(0.1, 5000, 80)},
        target=0.05,
        method=method,
        max_epsilon=math.inf,
        failure_probability=1e-6,
        random_state=3,
    ).fit(X, y)
    exact = clone(model).set_params(epsilon=float("inf"), max_derivative=model.largest_derivative)
    exact.fit(X, y)

    def risk(model):
        apart = np.append(model.coef_, model.intercept_ - loss.prediction(np.log(0.16 / 0.84)))
        margins = (2 * y - 1) * loss.prediction(model.decision_function(X))
        return loss.value(margins).mean() + 0.15 * apart @ apart

    assert -1e-9 < risk(search.best_estimator_) - risk(exact) < 0.05


def test_tables_learn_class_shares_where_they_are_scarce():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(2100, 12)), rng.uniform(size=2100) < 0.1
    schema = dict.fromkeys("abcdefghijkl", (0, 1))
    scarce = tabular_pipeline(schema, DPLogisticRegression(0.1, classes=[False, True]), expansion=2).fit(
        X, y
    )
    assert 0 < scarce["model"].base_rate_ < 1 and len(scarce["model"].privacy_.releases) == 2
    assert 0.05 * 0.1 < scarce["model"].privacy_.releases[0].epsilon < 0.25 * 0.1
    some = tabular_pipeline(schema, DPLogisticRegression(1.0, classes=[False, True])).fit(X, y)
    # little is enough to know the share
    assert some["model"].privacy_.releases[0].epsilon == pytest.approx(np.sqrt(2) / 0.04 / 2100)
    assert some["model"].base_rate_ == pytest.approx(y.mean(), abs=0.4)
    for epsilon in (50.0, np.inf):
        plenty = DPLogisticRegression(epsilon, classes=[False, True])
        plenty = tabular_pipeline(schema, plenty).fit(X, y)["model"]
        assert plenty.base_rate_ is None and len(plenty.privacy_.releases) == 1
    # what the user says stays
    public = DPLogisticRegression(0.1, classes=[False, True], base_rate=0.1, data_norm="auto")
    public = tabular_pipeline(schema, public).fit(X, y)["model"]
    assert public.base_rate == 0.1 and public.data_norm == "auto" and public.data_norm_ > 0


# ---- the checks of all private estimators


class Exactly(ClassShares):
    """The broken twin counts without noise."""

    def learn(self, records, epsilon, generator):
        return super().learn(records, math.inf, generator)


class LearnsExactly(DPLogisticRegression):
    def first_releases(self):
        return {"base_rate": Exactly()} if self.base_rate == "auto" else {}


CHECKED = {
    "shares": (
        DPLogisticRegression(base_rate="auto", classes=[0, 1]),
        ReleaseStatement(("coef_", "intercept_", "base_rate_")),
    ),
    "norms": (
        DPLogisticRegression(data_norm="auto", data_norm_l1="auto", classes=[0, 1]),
        ReleaseStatement(("coef_", "intercept_", "data_norm_", "data_norm_l1_")),
    ),
    "huber": (
        DPHuberRegressor(data_norm="auto", target_range=(-1, 1)),
        ReleaseStatement(("coef_", "intercept_", "data_norm_")),
    ),
    "ridge": (
        DPRidge(data_norm="auto", target_range=(-1, 1)),
        ReleaseStatement(("gram_", "moment_", "data_norm_"), derived=("coef_", "intercept_")),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKED)
def test_they_pass_the_checks(name):
    check_private_estimator(*CHECKED[name], n_trials=500)


@pytest.mark.slow
def test_a_public_rate_passes_the_checks():
    model = DPLogisticRegression(base_rate=0.1, classes=[0, 1], max_derivative=0.6)
    check_private_estimator(model, n_trials=0)


@pytest.mark.slow
def test_what_is_learned_without_noise_is_found():
    statement = ReleaseStatement(("coef_", "intercept_", "base_rate_"))
    model = LearnsExactly(base_rate="auto", classes=[0, 1])
    model, check = private_estimator_checks(model, statement, n_trials=500)[-1]
    assert check.__name__ == "check_the_stated_loss"
    with pytest.raises(AssertionError, match="guesses of the data set were right"):
        check(model)
