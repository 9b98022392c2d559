"""The loss of one fit's releases, against exact laws; and what must not make it smaller."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

from dpselect import (
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    PrivacyLedger,
    PrivacyLoss,
    StabilityGridSearchCV,
    privacy_of,
)
from dpselect.accounting import joint
from dpselect.accounting.composition import compose_gaussian, stated_profile, two_sided
from dpselect.accounting.events import ChoiceEvent, GaussianEvent, ObjectiveEvent
from dpselect.accounting.gaussian import gaussian_epsilon, gaussian_mu
from dpselect.accounting.joint import jointly
from dpselect.accounting.totals import composed_epsilon
from dpselect.preprocessing import DPBoundsScaler

from .test_accounting import exact_epsilon, gaussian_loss

DELTA = 1e-6
TAIL = dict(tail_from=0.5, tail_mu=gaussian_mu(0.9, DELTA), tail_lost=1e-4, tail_delta=1e-9)


def choice(epsilon, times=1):
    return PrivacyLoss(times * epsilon, event=ChoiceEvent(epsilon, times))


def test_sums_become_the_exact_losses():
    model, mu = gaussian_loss(0.9, DELTA), gaussian_mu(0.9, DELTA)
    for others, exact in (
        ([PrivacyLoss(0.1)], exact_epsilon(DELTA, mus=[mu], pures=[0.1])),
        ([PrivacyLoss(0.1), PrivacyLoss(0.2)], exact_epsilon(DELTA, mus=[mu], pures=[0.1, 0.2])),
        ([gaussian_loss(0.3, DELTA)], exact_epsilon(2 * DELTA, mus=[mu, gaussian_mu(0.3, DELTA)])),
        (
            [choice(0.1)],
            max(exact_epsilon(DELTA, mus=[mu], choices=[(0.1, t)]) for t in np.linspace(0.01, 0.09, 9)),
        ),
        ([PrivacyLoss(0.1, 2e-7)], exact_epsilon(1.2e-6, mus=[mu], pures=[0.1], own=2e-7)),
    ):
        for losses in ([model, *others], [*others, model]):
            found = jointly(losses, "both")
            assert (
                exact * (1 - 1e-9)
                <= found.epsilon
                <= 1.002 * exact
                < 0.99 * (math.fsum(loss.epsilon for loss in losses))
            )
            assert found.parts == tuple(losses) and found.composition == "joint"
            assert found.delta == math.fsum(loss.delta for loss in losses)
            # an accountant goes by the parts, and does not count them twice
            together = composed_epsilon(found, found.delta, accountant="concentrated")
            assert found.epsilon * 0.99 < together <= found.epsilon
    # the twin that takes a choice for noise of the same length is less than the exact loss
    losses = [model, PrivacyLoss(0.4, event=GaussianEvent(0.1))]
    assert jointly(losses, "").epsilon < exact_epsilon(DELTA, mus=[mu], pures=[0.4])


def test_many_choices_cost_little():
    found = jointly([choice(0.01, 25), gaussian_loss(0.75, DELTA)], "bounds and model")
    assert 0.75 < found.epsilon < 0.77
    few = jointly([choice(0.1, 4), gaussian_loss(0.75, DELTA)], "").epsilon
    mu = gaussian_mu(0.75, DELTA)
    assert few >= exact_epsilon(DELTA, mus=[mu], choices=[(0.1, 0.05)] * 4) > few * 0.95
    # Renyi divergences are another proof of about as much
    rho = 25 * 0.01**2 / 8 + gaussian_mu(0.75, DELTA) ** 2 / 2
    mu = exact_epsilon(DELTA, mus=[math.sqrt(2 * rho)])
    assert found.epsilon == pytest.approx(mu, rel=0.02)


@pytest.mark.slow
def test_thousands_of_choices_cost_little():
    model = gaussian_loss(0.75, DELTA)
    found = [jointly([choice(0.25 / n, n), model], "").epsilon for n in (500, 5_000, 100_000)]
    assert found[0] >= found[1] >= found[2] >= exact_epsilon(DELTA, mus=[gaussian_mu(0.75, DELTA)])
    assert found[2] < 0.752
    # one by one or not, in any order
    parts = [*[choice(0.25 / 5_000)] * 5_000, model, choice(0.1)]
    assert jointly(parts[::-1], "").epsilon == jointly(parts, "").epsilon < 0.78
    # choices between two, the exact law of which is known
    n, epsilon = 2_000, 0.02
    up = 1 / (1 + math.exp(-epsilon / 2))
    k = np.arange(n + 1)
    law, losses = binom.pmf(k, n, up), (2 * k - n) * epsilon / 2
    exact = brentq(lambda e: law @ np.maximum(-np.expm1(e - losses), 0) - 1e-5, 0, n * epsilon)
    assert exact < composed_epsilon([choice(epsilon, n)], 1e-5) < 1.4 * exact


def test_thousands_of_choices_that_tell_all_add_up():
    losses = [choice(3000.0, 1001), gaussian_loss(0.5, DELTA)]
    assert jointly(losses, "").epsilon == 3000 * 1001 + 0.5


def test_a_gaussian_mechanism_beside_another():
    step, epsilons = 1e-3, np.arange(3001) * 1e-3
    deltas = two_sided(GaussianEvent(0.3).profile(epsilons), step)
    found = compose_gaussian(deltas, step, 0.4)[3000:5001]
    exact = GaussianEvent(0.5).profile(epsilons[:2001])
    assert (exact <= found).all() and (found <= 1.01 * exact).all()
    assert (exact > compose_gaussian(deltas, step, 0.39)[3000:5001]).any()


def test_what_is_known_only_in_the_tail_serves_there():
    objective = PrivacyLoss(0.9, DELTA, event=ObjectiveEvent(0.22, 0.2, **TAIL))
    found = jointly([objective, PrivacyLoss(0.1)], "")
    gaussian = jointly([gaussian_loss(0.9, DELTA), PrivacyLoss(0.1)], "")
    assert gaussian.epsilon - 1e-3 <= found.epsilon < gaussian.epsilon + 3e-3
    for event in (replace(objective.event, tail_from=0.99), ObjectiveEvent(0.22, 0.2), None):
        assert jointly([replace(objective, event=event), PrivacyLoss(0.1)], "").epsilon == 1.0


@pytest.mark.parametrize("share", [0.05, 0.1, 0.5])
def test_gaussian_noise_beside_noise_in_the_objective(share, monkeypatch):
    objective = PrivacyLoss(0.9, DELTA, event=ObjectiveEvent(0.22, 0.2, **TAIL))
    mu = math.sqrt(share) * gaussian_mu(0.9, DELTA)
    release = PrivacyLoss(gaussian_epsilon(mu, DELTA), DELTA, event=GaussianEvent(mu))
    # where the objective is a Gaussian mechanism, as it may be, both are one
    exact = exact_epsilon(2 * DELTA, mus=[gaussian_mu(0.9, DELTA), mu])
    for losses in ([objective, release], [release, objective]):
        assert exact <= jointly(losses, "").epsilon < 1.02 * exact
    assert jointly([release, replace(objective, event=None)], "").epsilon > 1.02 * exact
    # the broken twin forgets the one beside the other
    monkeypatch.setattr(joint, "compose_gaussian", lambda deltas, step, mu: deltas)
    assert jointly([objective, release], "").epsilon < 0.99 * exact


def test_equal_losses_count_twice():
    losses = [PrivacyLoss(0.5, DELTA, event=ObjectiveEvent(0.05, 0.05))] * 2
    assert 0.5 < jointly(losses, "").epsilon < 1


def of_every_kind(epsilon):
    """Return a loss of each kind that the composition tells apart."""
    return {
        "gaussian": gaussian_loss(epsilon, DELTA),
        "objective": PrivacyLoss(
            epsilon, DELTA, event=ObjectiveEvent(gaussian_mu(0.8 * epsilon, DELTA), 0.1 * epsilon)
        ),
        "choice": choice(epsilon),
        "choices": choice(epsilon / 4, 4),
        "pure": PrivacyLoss(epsilon),
        "stated": PrivacyLoss(epsilon, DELTA),
    }


def alone(loss, delta):
    """Return the least epsilon that one release has at a delta."""

    def profile(epsilon):
        stated = stated_profile(loss.epsilon, loss.delta, np.array(epsilon))
        if loss.event is None or loss.event.times > 1:
            return stated
        return min(stated, loss.event.profile(np.array(epsilon)))

    if profile(loss.epsilon) > delta:
        return loss.epsilon
    return brentq(lambda epsilon: profile(epsilon) - delta, 0.0, loss.epsilon)


def check_each_counts(name, beside, compose=jointly):
    main, small = of_every_kind(0.9)[name], of_every_kind(0.02)
    for order in (1, -1):
        losses = [main, *(small[other] for other in beside)][::order]
        found = compose(losses, "together")
        added = PrivacyLoss.sequential(losses)
        assert found.delta == added.delta and found.epsilon <= added.epsilon
        # four choices may cost much less together
        least = 0.3 if name == "choices" else alone(main, found.delta)
        assert found.epsilon >= least * (1 - 1e-9)


BESIDE = [
    others
    for size in (1, 2, 5, 6)
    for others in combinations(of_every_kind(0.02), size)
    if not {"gaussian", "objective", "stated"}.isdisjoint(others)
]


@pytest.mark.parametrize("name", of_every_kind(0.9))
def test_each_release_counts_whatever_is_beside_it(name):
    for beside in BESIDE:
        check_each_counts(name, beside)


@pytest.mark.parametrize("name", of_every_kind(0.9))
def test_a_release_that_is_left_out_is_found(name):
    def without(losses, label):
        kept = [loss for loss in losses if loss.epsilon < 0.5]
        nothing = PrivacyLoss(0.0, PrivacyLoss.sequential(losses).delta)
        found = jointly([*kept, nothing], label)
        return replace(found, delta=nothing.delta, composition="release", parts=())

    for beside in BESIDE:
        with pytest.raises(AssertionError):
            check_each_counts(name, beside, without)


@pytest.mark.parametrize(
    "losses",
    [
        [PrivacyLoss(0.5), PrivacyLoss(0.5)],
        [PrivacyLoss(0.5, DELTA), PrivacyLoss(0.5)],
        [gaussian_loss(0.5, DELTA), PrivacyLoss(0.5, kind="ex-post")],
        [gaussian_loss(0.5, DELTA), PrivacyLoss(math.inf)],
        [PrivacyLoss(0.5, DELTA, event=ObjectiveEvent(0.3, 0.3))] * 2,
        [PrivacyLoss.parallel([gaussian_loss(0.5, DELTA), PrivacyLoss(0.5)]), PrivacyLoss(0.1)],
    ],
)
def test_otherwise_losses_add_up(losses):
    assert jointly(losses, "sum") == PrivacyLoss.sequential(losses, "sum")


def test_a_joint_loss_is_checked_and_read():
    parts = [gaussian_loss(0.5, DELTA), PrivacyLoss(0.25)]
    joint = PrivacyLoss.joint(parts, 0.7)
    assert PrivacyLoss.from_dict(joint.to_dict()) == joint
    assert "together, less than the sum of" in str(joint) and "0.25" in str(joint)
    outer = PrivacyLoss.sequential([joint, PrivacyLoss(0.1)])
    assert outer.epsilon == pytest.approx(0.8) and outer.releases == (*parts, PrivacyLoss(0.1))
    for bad in (0.76, math.inf):
        with pytest.raises(ValueError, match="do not follow"):
            PrivacyLoss.joint(parts, bad)
    with pytest.raises(ValueError, match="do not follow"):
        replace(joint, delta=0.0)
    with pytest.raises(ValueError, match="promise more"):
        replace(PrivacyLoss.joint([replace(parts[0], seeded=True)], 0.5), seeded=False)


rng = np.random.default_rng(0)
X = rng.uniform(-0.1, 0.1, (3000, 40))
Y = (X[:, 0] > 0).astype(int)


def fitted(model, grid, strategy="optimal_risk", **parameters):
    return StabilityGridSearchCV(model, grid, strategy=strategy, **parameters).fit(X, Y).privacy_


@pytest.mark.slow
def test_searches_and_pipelines_state_less(tmp_path):
    model = DPLogisticRegression(classes=[0, 1], delta=DELTA)
    grid = {"data_norm": [0.5, 1.0]}
    found = fitted(model, grid)
    assert found.composition == "joint" and 0.9 < found.epsilon < 0.98
    steps = make_pipeline(DPBoundsScaler(0.25), model.set_params(data_norm=6.0, epsilon=0.75))
    assert 0.75 < privacy_of(steps.fit(X, Y)).epsilon < 0.78
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=1.0, delta=DELTA)
    spent = fitted(steps, {"dplogisticregression__data_norm": [3.0, 6.0]}, ledger=ledger)
    assert spent.epsilon < 0.78 and ledger.spent() == (spent.epsilon, DELTA)
    ridge = DPRidge(delta=DELTA, data_norm="auto", target_range=(0, 1)).fit(X, Y).privacy_
    assert 0.95 < ridge.epsilon < 0.96


@pytest.mark.slow
def test_records_decide_nothing_of_what_is_stated():
    model = DPLogisticRegression(classes=[0, 1], delta=DELTA)
    # whether delta is used follows the choice
    found = fitted(model, {"delta": [0.0, DELTA], "data_norm": [0.5, 1.0]})
    assert found.epsilon == pytest.approx(1.0, abs=1e-12) and found.composition == "sequential"
    # a norm that is learned, and noise of several lengths
    learned = clone(model).set_params(data_norm="auto", norm="l2")
    several = {"huber_width": [0.5, 0.05], "alpha": [0.1, 1.0]}
    svc = DPLinearSVC(classes=[0, 1], delta=DELTA)
    for model, grid, strategy, scoring in (
        (learned, {"tol": [1e-10, 1e-11]}, "optimal_risk", None),
        (svc, several, "stability", "ramp"),
    ):
        search = StabilityGridSearchCV(model, grid, strategy=strategy, scoring=scoring)
        found = {search.fit(factor * X, Y).privacy_ for factor in (1.0, 0.1, 3.0, 10.0)}
        assert len(found) == 1


class FewColumns(TransformerMixin, BaseEstimator):
    """Chooses columns by the records, and with them the noise of a model."""

    releases_privately = True

    def __init__(self, epsilon=0.25, few=30, random_state=None):
        self.epsilon, self.few, self.random_state = epsilon, few, random_state

    def fit(self, X, y=None):
        self.privacy_ = PrivacyLoss(float(self.epsilon), event=ChoiceEvent(self.epsilon))
        self.columns_ = slice(0, 31 if X[0, 0] > 0 else self.few)
        return self

    def transform(self, X):
        return X[:, self.columns_]


def test_a_step_that_decides_how_many_columns_there_are_makes_no_loss_smaller():
    model = make_pipeline(FewColumns(), DPLogisticRegression(0.75, classes=[0, 1], delta=DELTA))
    found = privacy_of(model.fit(X, Y))
    assert found == PrivacyLoss.sequential(found.parts, label="Pipeline") and found.epsilon == 1.0
    assert fitted(model, {"dplogisticregression__data_norm": [0.5, 1.0]}).epsilon == 1.0


def test_a_step_that_decides_how_many_columns_there_are_decides_nothing_of_what_is_stated():
    model = DPLogisticRegression(classes=[0, 1], delta=DELTA)
    # more columns are more choices, with a delta, and Gaussian noise
    steps = make_pipeline(FewColumns(0.1, few=2), DPBoundsScaler(0.5, delta=DELTA), model)
    search = StabilityGridSearchCV(steps, {"dplogisticregression__data_norm": [0.5, 1.0]})
    for first in (-0.05, 0.05):
        rows = np.vstack([np.full((1, 40), first), X[1:]])
        found = search.fit(rows, Y).privacy_
        assert (found.epsilon, found.delta) == (1.0, 2 * DELTA)
        assert composed_epsilon(found, 3 * DELTA, accountant="concentrated") == 1.0


@pytest.mark.parametrize("step", [FewColumns(), DPBoundsScaler(0.25)])
def test_what_was_fitted_before_makes_no_loss_smaller(step):
    # how much the model spends may follow what came out
    frozen = FrozenEstimator(step.fit(X))
    for first in (frozen, ColumnTransformer([("a", frozen, slice(0, 40))], sparse_threshold=0)):
        model = make_pipeline(first, DPLogisticRegression(0.75, classes=[0, 1], delta=DELTA))
        found = privacy_of(model.fit(X, Y), trusted_steps=[FrozenEstimator])
        assert (found.composition, found.epsilon) == ("sequential", 1.0)
