"""Events against the exact laws of the mechanisms that they describe."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from scipy.stats import norm
from sklearn.base import clone

from dpselect import (
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    PrivacyLedger,
    StabilityGridSearchCV,
)
from dpselect.accounting.events import (
    ChoiceEvent,
    GaussianEvent,
    ObjectiveEvent,
    event_of,
    pure_gaussian,
    worst_event,
)
from dpselect.accounting.gaussian import gaussian_epsilon, gaussian_mu
from dpselect.preprocessing import DPBoundsScaler
from dpselect.records.public_shape import PublicShape

EPSILONS = np.array([0.0, 0.01, 0.1, 0.5, 1.0, 2.0])


def hockey_stick(p, q, epsilon):
    return np.maximum(p - np.exp(epsilon) * q, 0).sum()


@pytest.mark.parametrize("mu", [1e-3, 0.2, 1.0, 5.0])
def test_gaussian_profiles_are_the_laws_divergences(mu):
    x = np.linspace(-12, 12 + mu, 400_001)
    p, q = norm.pdf(x), norm.pdf(x - mu)
    exact = [hockey_stick(q, p, e) * (x[1] - x[0]) for e in EPSILONS * mu]
    found = GaussianEvent(mu).profile(EPSILONS * mu)
    assert found == pytest.approx(exact, rel=1e-5)
    far = GaussianEvent(mu).profile(np.array([mu * mu / 2 + 20 * mu]))
    assert 0 < far[0] < 1e-80


@pytest.mark.parametrize("mu, delta", [(0.01, 1e-9), (0.237, 1e-6), (3.0, 1e-3), (1.0, 0.3), (1.0, 0.6)])
def test_gaussian_epsilon_is_the_inverse(mu, delta):
    epsilon = gaussian_epsilon(mu, delta)
    assert GaussianEvent(mu).profile(epsilon) <= delta * (1 + 1e-9)
    assert epsilon == 0 or GaussianEvent(mu).profile(epsilon * (1 - 1e-6)) > delta
    if epsilon > 0:
        assert gaussian_mu(epsilon, delta) == pytest.approx(mu, rel=1e-9)


def choice(scores, epsilon):
    """Probabilities of the exponential mechanism for scores of sensitivity 1."""
    return softmax(epsilon * np.asarray(scores) / 2)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_no_exponential_mechanism_exceeds_a_choice_and_one_reaches_it(epsilon):
    rng, event, worst = np.random.default_rng(0), ChoiceEvent(epsilon), np.zeros(len(EPSILONS))
    at = EPSILONS * epsilon / 2
    for _ in range(2000):
        scores = rng.normal(size=rng.integers(2, 6)) * rng.choice([0.1, 1, 10 / epsilon])
        moved = scores + rng.choice([-1.0, 0.0, 1.0], size=len(scores))
        p, q = choice(scores, epsilon), choice(moved, epsilon)
        worst = np.maximum(worst, [hockey_stick(p, q, e) for e in at])
    assert (worst <= event.profile(at)).all()
    # two outcomes, of which the first has the odds that are worst at this epsilon
    for e, bound in zip(at[at < epsilon], event.profile(at[at < epsilon])):
        gap = (e + epsilon) / epsilon * np.linspace(-40, 40, 200_001)
        p, q = 1 / (1 + np.exp(-gap)), 1 / (1 + np.exp(epsilon - gap))
        assert (p - np.exp(e) * q).max() == pytest.approx(bound, rel=1e-3)
    # a twin that counts half of the epsilon is exceeded
    assert (worst > ChoiceEvent(epsilon / 2).profile(at))[at < epsilon].any()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_divergences_of_choices_and_the_gaussian_mechanism_that_tells_more(epsilon):
    gap = np.linspace(-30, 30, 2001)
    p = np.stack([1 / (1 + np.exp(-gap)), 1 / (1 + np.exp(gap))])
    q = np.stack([1 / (1 + np.exp(epsilon - gap)), 1 / (1 + np.exp(gap - epsilon))])
    xi, rho = ChoiceEvent(epsilon).concentrated
    for a in (1.001, 2.0, 10.0, 100.0):
        divergence = logsumexp(a * np.log(p) + (1 - a) * np.log(q), axis=0) / (a - 1)
        assert 0.5 * min(1, 1 / a / epsilon) < (divergence.max() / (xi + a * rho)) <= 1 + 1e-9
    # the Gaussian test of level q has power p or more, and at the steepest place no more
    power = norm.cdf(norm.ppf(q[0]) + ChoiceEvent(epsilon).gaussian)
    assert (power >= p[0] - 1e-12).all() and (power - p[0]).min() < 1e-6
    pure = 1 / (1 + math.exp(-epsilon))
    assert norm.cdf(norm.ppf(1 - pure) + pure_gaussian(epsilon)) == pytest.approx(pure)


def test_several_choices_add_divergences():
    one, many = ChoiceEvent(0.1), ChoiceEvent(0.1, times=7)
    assert many.concentrated[1] == pytest.approx(7 * one.concentrated[1])
    assert many.gaussian == pytest.approx(math.sqrt(7) * one.gaussian)


@pytest.mark.parametrize("mu, shift", [(0.1, 0.05), (1.0, 0.3)])
def test_objective_profiles_are_those_of_their_law(mu, shift):
    z = norm.ppf((np.arange(400_000) + 0.5) / 400_000)
    loss = shift + mu * np.maximum(z, 0)
    exact = [-np.expm1(np.minimum(e - loss, 0)).mean() for e in EPSILONS]
    found = ObjectiveEvent(mu, shift).profile(EPSILONS)
    assert found == pytest.approx(exact, rel=1e-3, abs=1e-7)
    xi, rho = ObjectiveEvent(mu, shift).concentrated
    for a in (1.01, 3.0, 20.0):  # of a loss with this mean, that grows as fast with the noise
        plain = shift + mu * z
        assert np.log(np.exp((a - 1) * plain).mean()) / (a - 1) <= (xi + rho * a) * (1 + 1e-3)


def test_events_go_through_text_and_bad_ones_are_refused():
    for event in (GaussianEvent(0.5), ChoiceEvent(0.1, 3), ObjectiveEvent(0.1, 0.2)):
        assert event_of(event.to_dict()) == event
    for bad in ({"mu": 0.0}, {"mu": math.inf}, {"mu": math.nan}):
        with pytest.raises(ValueError, match="mu"):
            GaussianEvent(**bad)
    with pytest.raises(TypeError, match="times"):
        ChoiceEvent(1.0, 1.5)
    assert worst_event([GaussianEvent(0.1), GaussianEvent(0.2)]) == GaussianEvent(0.2)
    objectives = [ObjectiveEvent(0.1, 0.4), ObjectiveEvent(0.2, 0.3)]
    assert worst_event(objectives) == ObjectiveEvent(0.2, 0.4)
    assert worst_event([GaussianEvent(0.1), None]) is worst_event([None, None]) is None


rng = np.random.default_rng(0)
X = rng.uniform(-0.4, 0.4, (400, 30))
Y = (X[:, 0] > 0).astype(int)


def test_fits_say_what_made_them():
    ridge = DPRidge(data_norm=1.0, target_range=(0.0, 1.0), delta=1e-6).fit(X, Y)
    assert ridge.privacy_.event == GaussianEvent(gaussian_mu(1.0, 1e-6))
    bounds = DPBoundsScaler(0.6).fit(X[:, :3]).privacy_.event
    assert (bounds.times, bounds.epsilon) == (6, pytest.approx(0.1, rel=1e-8)) and bounds.epsilon > 0.1
    model = DPLogisticRegression(classes=[0, 1], delta=1e-6, perturbation="output")
    assert model.fit(X, Y).privacy_.event == GaussianEvent(gaussian_mu(1.0, 1e-6))
    for classes in ([0, 1], [0, 1, 2]):
        model = DPLogisticRegression(classes=classes, delta=1e-6).fit(X, Y)
        event, shape = model.privacy_.event, PublicShape(400, 30, len(classes) if classes[2:] else 1)
        assert isinstance(event, ObjectiveEvent)
        # what it says of one fit is more than is stated, so both are used
        assert 1e-6 < event.profile(1.0) < 1e-3
        worse = model.calibration(shape).event(learned=True)
        assert worse is None  # norm="auto" may be decided by what is learned
        alpha = model.calibration(shape).alpha
        worse = model.set_params(norm="l2", alpha=alpha).calibration(shape).event(learned=True)
        assert worse.mu >= event.mu and worse.shift >= event.shift and worse.tail_from > 1e300
    for model in (DPLogisticRegression(classes=[0, 1]), DPLogisticRegression(math.inf, classes=[0, 1])):
        assert model.fit(X, Y).privacy_.event is None


@pytest.mark.parametrize(
    "kind, classes, given",
    [
        (DPLogisticRegression, [0, 1], {"norm": "l2"}),
        (DPLinearSVC, [0, 1], {"fit_intercept": False}),
        (DPLogisticRegression, [0, 1, 2], {"fit_intercept": False}),
    ],
)
def test_an_event_that_covers_whatever_norm_is_learned(kind, classes, given):
    shape = PublicShape(2000, 60, len(classes) if classes[2:] else 1)
    places = np.array([*np.linspace(0, 1, 40), 2.0])

    def events(alpha, learned):
        return [
            kind(0.3, classes=classes, delta=1e-6, data_norm=R, alpha=alpha, **given)
            .calibration(shape)
            .event(learned=learned)
            for R in 2.0 ** np.array([-20, -2.25, 20])
        ]

    (one,) = set(events("auto", True))
    if "norm" not in given:  # beside a bound on the l1 norm R decides which noise is taken
        bounded = kind(0.3, classes=classes, delta=1e-6, data_norm_l1=7.7, **given).calibration(shape)
        assert bounded.law == "gaussian" and bounded.event(learned=True) is None
    for each in events("auto", False):
        assert (each.profile(places) <= one.profile(places) * (1 + 1e-9)).all()
        assert each.concentrated <= tuple(x * (1 + 1e-9) for x in one.concentrated)
    # with a number for alpha the worst norm counts, and that is what any other event would forget
    numbers, (worst,) = events(0.1, False), set(events(0.1, True))
    assert worst.shift > 1.1 * one.shift and worst.tail_from > 1e300
    assert max(each.shift for each in numbers) > 1.1 * min(each.shift for each in numbers)
    assert all(each.shift <= worst.shift for each in numbers)


def test_a_learned_norm_costs_less_beside_gaussian_noise():
    model = DPLogisticRegression(classes=[0, 1], delta=1e-6, data_norm="auto", norm="l2")
    assert 0.95 < model.fit(X, Y).privacy_.epsilon < 0.99
    assert model.set_params(alpha=0.01).fit(X, Y).privacy_.epsilon == 1.0


def test_what_is_learned_first_is_a_choice_and_decides_no_event():
    model = DPLogisticRegression(classes=[0, 1], delta=1e-6, data_norm="auto", norm="l2")
    fits = [model.fit(factor * X, Y).privacy_ for factor in (1, 0.01)]
    assert fits[0].parts[0].event == ChoiceEvent(fits[0].parts[0].epsilon + 2.0**-36)
    assert isinstance(fits[0].parts[1].event, ObjectiveEvent)
    assert fits[0].parts[1].event == fits[1].parts[1].event
    alone = DPLogisticRegression(classes=[0, 1], delta=1e-6, data_norm="auto").fit(X, Y).privacy_
    assert alone.parts[1].event is None


def test_a_choice_by_records_decides_no_event():
    model = DPLogisticRegression(classes=[0, 1], delta=1e-6)
    grid = {"data_norm": [0.5, 4.0], "alpha": [0.05, 1.0]}
    search = StabilityGridSearchCV(model, grid, strategy="stability", epsilon=4.0, scoring="ramp")
    found = {}
    for seed in range(8):
        with pytest.warns(UserWarning, match="seed"):
            fitted = search.set_params(random_state=seed).fit(X, Y)
        found[fitted.best_index_] = fitted.privacy_.releases[-1].event
    assert len(found) > 1 and len(set(found.values())) == 1
    own = fitted.best_estimator_.privacy_.event
    assert worst_event([own, found[fitted.best_index_]]) == found[fitted.best_index_]


def losses_of(event):
    """Losses of an event, each with one that says a little less than that in epsilon, or in delta."""
    for at in (0.0, 0.3, 1.0, 3.0):
        size = event.mu if isinstance(event, GaussianEvent) else event.epsilon
        epsilon = at * size
        delta = float(event.profile(np.array(epsilon)))
        if delta > 1e-290:
            yield (epsilon, delta), (epsilon, 0.999 * delta)
        if at and delta == 0:
            yield (epsilon, delta), (0.999 * size, 0.0)


def check_slack(event, tmp_path):
    ledger = PrivacyLedger(tmp_path / f"{event}.ledger", epsilon=1e3, delta=0.9)
    for enough, less in losses_of(event):
        ledger.spend(*enough, event=event)
        with pytest.raises(ValueError, match="count less than is spent"):
            ledger.spend(*less, event=event)


@pytest.mark.parametrize("size", [1e-8, 1e-6, 1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("kind", [GaussianEvent, ChoiceEvent])
def test_an_event_that_spends_more_is_refused_at_every_size(kind, size, tmp_path, monkeypatch):
    # (a choice of nearly no epsilon may cost the grid of its noise besides)
    size *= 1e4 if kind is ChoiceEvent and size < 1e-6 else 1
    check_slack(kind(size), tmp_path)
    if size < 1e-2:

        def careless(event, epsilon, delta):
            return bool(event.profile(np.array(epsilon * (1 + 1e-6) + 1e-6)) > delta * (1 + 1e-6))

        monkeypatch.setattr(kind, "exceeds", careless)
        with pytest.raises(pytest.fail.Exception):
            check_slack(kind(size), tmp_path)


def test_several_choices_that_spend_more_are_refused_at_every_size(tmp_path):
    ledger = PrivacyLedger(tmp_path / "a.ledger", epsilon=1e3, delta=0.1)
    for size in (1e-8, 1e-5, 1e-2, 1.0):
        many = ChoiceEvent(size, times=12)
        ledger.spend(12 * size, event=many)
        with pytest.raises(ValueError, match="count less than is spent"):
            ledger.spend(0.98 * 12 * size, event=many)
    with pytest.raises(ValueError, match="count less than is spent"):
        ledger.spend(0.0, event=ChoiceEvent(1e-12))


@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("delta", [0.0, 1e-8, 1e-3])
def test_losses_of_fits_may_be_entered_by_hand_at_every_size(epsilon, delta, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.3, 0.3, size=(500, 6))
    y = (X[:, 0] > 0).astype(int)
    ledger, n_events = PrivacyLedger(tmp_path / "a.ledger", epsilon=1e3, delta=0.1), 0
    for model in (
        DPLogisticRegression(epsilon, classes=[0, 1], delta=delta),
        DPBoundsScaler(epsilon),
        DPLogisticRegression(epsilon, classes=[0, 1], delta=delta, perturbation="output"),
        DPRidge(epsilon, target_range=(0, 1), norm="l2", delta=delta),
    ):
        loss = model.fit(X, y).privacy_
        n_events += loss.event is not None
        ledger.spend(loss.epsilon, loss.delta, event=loss.event)
    assert n_events > 0


RADII = (0.03, 0.5, 1.0, 20.0)


def check_event_at_any_radius(stated, model, shape):
    """What is stated with a norm that was learned is no less than what a fit with any norm states."""
    for radius in RADII:
        true = clone(model).set_params(data_norm=radius).calibration(shape).event()
        for epsilon in (0.3, 1.0, 2.0):
            assert stated.profile(epsilon) >= (1 - 1e-9) * true.profile(epsilon), (radius, epsilon)


@pytest.mark.parametrize("perturbation", ["objective", "output"])
@pytest.mark.parametrize("alpha", ["auto", 1e-6, 1e-3, 0.1, 10.0])
@pytest.mark.parametrize("base_rate", [None, 0.1])
@pytest.mark.parametrize("persons", [False, True])
def test_an_event_with_a_learned_norm_holds_for_any_norm(perturbation, alpha, base_rate, persons):
    model = DPLogisticRegression(
        1.0, classes=[0, 1], alpha=alpha, delta=1e-6, norm="l2", perturbation=perturbation
    ).set_params(base_rate=base_rate)
    shape = PublicShape(3000, 60, 1, persons)
    noises = [clone(model).set_params(data_norm=radius).calibration(shape) for radius in RADII]
    events = [noise.event(learned=True) for noise in noises]
    assert all(event == events[0] for event in events)
    if events[0] is not None:
        check_event_at_any_radius(events[0], model, shape)


def test_the_event_of_another_alpha_is_caught():
    model = DPLogisticRegression(1.0, classes=[0, 1], delta=1e-6, norm="l2")
    shape = PublicShape(3000, 60)
    stated = model.calibration(shape).event(learned=True)
    check_event_at_any_radius(stated, model, shape)
    with pytest.raises(AssertionError):
        check_event_at_any_radius(stated, model.set_params(alpha=1e-6), shape)
