"""Random stopping: release the best of a random number of private runs.

Each run takes one of the candidates at random. Its epsilon is paid about two or three times in
all, however many runs are made on average, and its delta as often as there are runs on average.
Functions of numbers; they know nothing of estimators.
"""

import math

from scipy.optimize import brentq

from ..noise import as_generator, root_stream

# above the rounding error of a mean number of runs
ROUNDING = 2.0**-30


def total_epsilon(run_epsilon, law, run_delta=0.0):
    """Return the privacy loss of :func:`random_stopping`, whose runs have `run_epsilon`, e, each.

    e + (1 + eta) ln((exp(e) + gamma) / (1 + gamma exp(e))), for score and output of a run together.

    Let Q be the law of one run, candidate and output together; the candidate is drawn without the
    data. For an output y with score s, let l and h be the probabilities under Q of a score less
    than s, and of s at most. The runs that reach s are independent and have the law of Q given s,
    so the first of them is y with probability Q(y) / (h - l), and

        P(y) = Q(y) (f(h) - f(l)) / (h - l),

    the mean of f' over [l, h], times Q(y). On a neighbouring data set the same holds, with l', h',
    Q'. A point x of [l, h] and the point x' at the same share of [l', h'] are the probabilities of
    one randomised test under Q and Q', so u = 1 - x and u' = 1 - x' satisfy u' <= exp(e) u and 1 -
    u' >= exp(-e) (1 - u). So

        f'(x) / f'(x') = ((gamma + (1 - gamma) u') / (gamma + (1 - gamma) u))^(1 + eta),

    which is largest where both are equalities, u = 1 / (1 + exp(e)) and u' = exp(e) u. There it is
    ((exp(e) + gamma) / (1 + gamma exp(e)))^(1 + eta). Add e for Q(y) / Q'(y).

    No smaller number holds: an output of small probability m exp(e) and m, between worse ones and
    better ones of probabilities u and u', comes arbitrarily close. Papernot and Steinke,
    *Hyperparameter Tuning with Renyi Differential Privacy*, 2022, have (2 + eta) e, which is the
    limit as gamma goes to 0, and 3 e is from Liu and Talwar, *Private Selection from Private
    Candidates*, 2019.

    A delta of the whole hardly makes this smaller. The same outputs, with m a few times delta, show
    that for e >= 0.1 and delta <= 1e-6 no accounting can go below 0.97 of it, up to means of 100.

    Runs that are (e, d)-private have u' <= exp(e) u + d and 1 - u <= exp(e) (1 - u') + d, whose
    largest ratio is in `selection_loss`, and P is (this, E[K] d)-private: theorem 6 of the page
    "Strategies of a private search".
    """
    return run_epsilon + law.selection_loss(run_epsilon, run_delta)


def run_epsilon(total, law, run_delta=0.0):
    """Return the epsilon of each run for which :func:`total_epsilon` is at most `total`."""
    if total == math.inf:
        return math.inf

    def excess(e):
        return total_epsilon(e, law, run_delta) - total

    if excess(0.0) >= 0:
        raise ValueError(
            f"delta={run_delta!r} of each run leaves nothing of epsilon={total!r}; give a smaller delta."
        )
    run = brentq(excess, 0.0, total, xtol=1e-300, rtol=1e-14)
    while excess(run) > 0:
        run *= 1 - 1e-15
    return run


def run_delta(total, law):
    """Return the delta of each run with which all have at most `total`: E[K] of them."""
    return total / law.mean * (1 - ROUNDING)


def random_stopping(run, n_candidates, law, random_state=None):
    """Run random candidates a random number of times and keep the best run.

    ``run(index, stream)`` returns ``(score, output)``, with noise from the InnerStream `stream`
    alone; score and output together have the privacy loss of a run. Returns the candidate of the
    run with the largest score, the first of equal ones, and its output. A score that is not a
    number is the least; one that is taken from the data without noise is not private, even if it is
    not released.

    The privacy loss is :func:`total_epsilon`. The number of runs is drawn without the data, but knowing
    it next to the output costs more: the best of k runs has a loss of up to k times that of a run. So it
    must not be disclosed, and is not a part of the result. Whoever can time the call learns it. The
    other runs are forgotten, and `run` must not keep them, log them or stop the call by an error that
    depends on the data.
    """
    root = root_stream(random_state)
    n_runs = law.draw(root.child("number of runs"))
    candidates = as_generator(root.child("candidates"))
    best, chosen, kept = None, None, None
    for t in range(n_runs):
        index = int(candidates.integers(n_candidates))
        score, output = run(index, root.child("run", t))
        # the proof assumes a total order of scores, so NaN is refused
        score = -math.inf if math.isnan(score) else score
        if best is None or score > best:
            best, chosen, kept = score, index, output
    return chosen, kept
