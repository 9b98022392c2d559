"""The methods of ``selection_strategies.py``: every strategy of private selection.

A search of the library trains its candidates one search at a time. Here all searches of a
round, over all methods and values of epsilon, are taken apart: models that see the same rows
are trained in one batch, and models that two methods train alike are trained once. What is
private about a search is not written again: budgets come from the strategies' plans,
choices from ``dpselect.mechanisms`` and ``dpselect.base.certificates``, certificates, bounds and
costs from the models. ``--check`` compares the result with whole searches.

A method is a generator. It yields lists of `Order`, is sent the trained models, and returns
the order of the model that it releases, and the model.
"""

import math
import time
from functools import partial

import numpy as np
from _selection_rounds import SIZES, WIDTHS, Order, Round

from dpselect.base.certificates import (
    LEAST_RADIUS,
    SplitPatterns,
    public_reach,
    select_by_risk_bound,
)
from dpselect.linear_model.calibration import public_alpha
from dpselect.mechanisms import (
    exponential_mechanism,
    exponential_noise_scales,
    noisy_argmax,
)
from dpselect.mechanisms.random_stopping import random_stopping
from dpselect.mechanisms.stopping_laws import geometric
from dpselect.metrics import AccuracyScore, BrierScore, RampScore
from dpselect.model_selection.plan import minimum_detectable_difference
from dpselect.model_selection.strategies import STRATEGIES
from dpselect.model_selection.strategies.data_independent import best_by_rule
from dpselect.model_selection.strategies.optimal_risk import SHARE
from dpselect.model_selection.strategies.random_stopping import RUNS
from dpselect.model_selection.strategies.stability import HEAD_START
from dpselect.noise import as_generator, laplace

DELTA = 1e-6  # of budget_split with shares of zero-concentrated differential privacy


def auto(game, plan, epsilon):
    """Do what the plan of strategy="auto" says."""
    if plan.strategy == "first_candidate":
        return (yield from fixed(game, plan, epsilon, int(np.argmax(plan.considered))))
    return (yield from METHODS[plan.strategy](game, plan, epsilon))


def fixed(game, plan, epsilon, i):
    """Train candidate i with everything."""
    order = game.release(i, epsilon)
    (model,) = yield [order]
    return order, model


def data_independent(game, plan, epsilon):
    e = plan.training_epsilon
    return (yield from fixed(game, plan, e, best_by_rule(game.problem, e)[0]))


def risk_bound(game, plan, epsilon):
    reach, n = None, game.size("T+V")
    if plan.selection_epsilon > 0:
        reach = public_reach(n, game.k, plan.selection_epsilon)
    if reach is None:
        return (yield from fixed(game, plan, epsilon, 0))
    return (yield from bounded(game, plan.training_epsilon, plan.selection_epsilon, reach))


def forced_optimal_risk(game, plan, epsilon):
    """Select by risk bounds even where the library says that nothing would be seen."""
    share = SHARE * epsilon
    reach = public_reach(game.size("T+V"), game.k, share) or LEAST_RADIUS
    return (yield from bounded(game, epsilon - share, share, reach))


def bounded(game, e, share, reach):
    n = game.size("T+V")
    bounds = [
        game.trial(i, e).calibration(candidate.shape(n)).risk_bound(reach)
        for i, candidate in enumerate(game.candidates)
    ]
    values = [game.optimal_values(i, e, reach) for i in range(game.k)]
    best = select_by_risk_bound(values, bounds, share, game.noise())
    return (yield from fixed(game, None, e, best))


def stability(game, plan, epsilon):
    """Select by the Brier score, with certificates at the noise samples that were drawn.

    The alpha of the public rule has a head start.
    """
    share = plan.selection_epsilon / plan.epsilon * epsilon
    orders = game.for_choice(epsilon - share)
    models = yield orders
    score = BrierScore()
    bounds = [
        game.trial(i, order.epsilon, order.noise).certificate(
            score, game.candidates[i].shape(game.size("T"))
        )
        for i, order in enumerate(orders)
    ]
    patterns = SplitPatterns.from_splits(game.problem.splits, game.size("T+V"))
    sensitivities = patterns.sensitivities(
        np.array([[bound.training] for bound in bounds]),
        np.array([[bound.span] for bound in bounds]),
    )
    scores = game.scores(orders, models, score)
    preferred = best_by_rule(game.problem, epsilon - share)
    if len(preferred) < game.k:
        scales = exponential_noise_scales(sensitivities, share)
        scores[preferred] += HEAD_START * minimum_detectable_difference(scales)
    best = noisy_argmax(scores, sensitivities, share, game.noise())
    return (yield from fixed(game, plan, epsilon - share, best))


def published_stability(game, plan, epsilon):
    """Algorithm 2 of Chaudhuri and Vinterbo with the constants of their theorem 4, for the ramp."""
    e = epsilon / 2
    orders = game.for_choice(e)
    models = yield orders
    n, m = game.size("T"), game.size("V")
    beta = 1 / m
    for candidate in game.candidates:
        model = candidate.model
        radius = math.hypot(model.data_norm, model.intercept_scaling)
        alpha = model.alpha
        if alpha == "auto":
            loss = model.problem().loss
            alpha = public_alpha(loss, model.perturbation, n, candidate.n_features + 1, radius, e)
        # beta_1 = 2 / lambda_min for rows of norm 1, the constant of the intercept included
        beta = max(beta, 2 * radius**2 / alpha / n)
    scores = game.scores(orders, models, RampScore())
    best = noisy_argmax(scores, [beta] * game.k, epsilon - e, game.noise())
    final = game.release(best, e, part="T")
    (model,) = yield [final]
    return final, model


def budget_split(game, plan, epsilon, score):
    orders = game.for_choice(plan.training_epsilon)
    models = yield orders
    scores = game.scores(orders, models, score)
    best = exponential_mechanism(scores, score.width / game.size("V"), epsilon, game.noise())
    return orders[best], models[best]


def data_split(game, plan, epsilon):
    pieces = as_generator(game.stream.child("pieces")).permutation(game.parts["T"])
    pieces = np.array_split(pieces, game.k)
    orders = []
    for i, order in enumerate(game.for_choice(plan.training_epsilon)):
        game.parts[f"piece {i}"] = pieces[i]
        orders.append(order._replace(part=f"piece {i}"))
    models = yield orders
    score = AccuracyScore()
    scores = game.scores(orders, models, score)
    best = exponential_mechanism(scores, score.width / game.size("V"), epsilon, game.noise())
    return orders[best], models[best]


def stopping(game, plan, epsilon):
    """Play random stopping twice with one stream: to learn what it trains, and with the models."""
    law = geometric(float(RUNS * game.k))
    e, stream, score = plan.training_epsilon, game.stream.child("stopping"), BrierScore()
    scale = score.width / game.size("V") / e
    orders = []

    def learn(i, noise):
        orders.append(Order(i, e, noise.child("model")))
        return 0.0, None

    random_stopping(learn, game.k, law, stream)
    models = yield orders
    runs = iter(zip(game.scores(orders, models, score), orders, models))

    def run(i, noise):
        value, *released = next(runs)
        return value + scale * float(laplace(as_generator(noise.child("score")), ())), released

    return random_stopping(run, game.k, law, stream)[1]


def at_random(game, plan, epsilon, part):
    i = int(as_generator(game.stream.child("random")).integers(game.k))
    order = game.release(i, epsilon, part)
    (model,) = yield [order]
    return order, model


def control(game, plan, epsilon, again):
    """Take the best model on V, exactly; train the candidate on T and V if `again`."""
    orders = game.for_choice(epsilon)
    models = yield orders
    best = int(np.argmax(game.scores(orders, models, BrierScore())))
    if not again:
        return orders[best], models[best]
    return (yield from fixed(game, plan, epsilon, best))


METHODS = {
    "auto": auto,
    "data_independent": data_independent,
    "optimal_risk": risk_bound,
    "optimal_risk made to": forced_optimal_risk,
    "stability": stability,
    "CV13": published_stability,
    "budget_split count": partial(budget_split, score=AccuracyScore()),
    "budget_split": partial(budget_split, score=BrierScore()),
    "budget_split zCDP": partial(budget_split, score=BrierScore()),
    "data_split": data_split,
    "random_stopping": stopping,
    "random": partial(at_random, part="T+V"),
    "random T": partial(at_random, part="T"),
    "control": partial(control, again=True),
    "control T": partial(control, again=False),
    **{f"map {i}": partial(fixed, i=i) for i in range(1 + len(WIDTHS) * len(SIZES))},
}
# strategy whose plan a method keeps to, and delta
BUDGETS = {
    **{name: (name, 0.0) for name in METHODS if name in STRATEGIES},
    "budget_split count": ("budget_split", 0.0),
    "budget_split zCDP": ("budget_split", DELTA),
}


def plans(contest):
    """Return the plans of a contest's methods, by method and epsilon.

    They are those of ``StabilityGridSearchCV.plan``, which compares all strategies each time.

    Parameters
    ----------
    contest : Contest

    Returns
    -------
    dict of (str, float) to SelectionPlan
        For the methods that have one.
    """
    plans = {}
    for method in contest.methods:
        strategy, delta = BUDGETS.get(method, (None, 0.0))
        for epsilon in contest.epsilons if strategy else ():
            plan = STRATEGIES[strategy].of(contest.problem(0, epsilon, delta)).plan
            # a slow one, of which only the shares are needed: they are always the same
            first = plans.get((method, contest.epsilons[0])) if method == "stability" else None
            plans[method, epsilon] = first or plan()
    return plans


def play(contest, plans, number):
    """Run all methods of a contest at all epsilons in one round.

    Parameters
    ----------
    contest : Contest
    plans : dict
        ``plans(contest)``.
    number : int
        Of the round.

    Returns
    -------
    list of dict
        One row for each method and epsilon.
    """
    start = time.process_time()
    game = Round(contest, plans, number)
    running = {
        (method, epsilon): METHODS[method](game, plans.get((method, epsilon)), epsilon)
        for method in contest.methods
        if method != "random_stopping" or number < contest.stopping_rounds
        for epsilon in contest.epsilons
    }
    answers, rows = dict.fromkeys(running), []
    y_train = contest.y[game.parts["T+V"]]
    base = {"data": contest.data, "title": contest.title, "round": number}
    base["base rate"] = np.mean((y_train.mean() - contest.y[game.parts["test"]]) ** 2)
    while running:
        requested = {}
        for key, method in list(running.items()):
            try:
                requested[key] = method.send(answers[key])
            except StopIteration as end:
                order, model = end.value
                rows.append(
                    {
                        **base,
                        "method": key[0],
                        "epsilon": key[1],
                        "chosen": order.candidate + 1,
                        **game.judge(order, model),
                    }
                )
                del running[key]
        trained = game.train(order for orders in requested.values() for order in orders)
        answers = {key: [trained[order] for order in orders] for key, orders in requested.items()}
    seconds = time.process_time() - start
    return [{**row, "seconds": seconds} for row in rows]
