"""How far the answers of a reusable holdout may be from the truth about new records.

Public numbers only. All functions speak of records that are drawn independently from one law P, of
questions that are means of numbers in [0, 1], and of an analyst who sees the holdout records
through the answers only. The page "Reusable holdout" of the documentation has the proofs.
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp


def privacy_deviation(epsilon, n_holdout, n_questions, failure_probability):
    """Bound how far holdout means are from P, for questions that are chosen with privacy.

    Parameters
    ----------
    epsilon : float
        Privacy loss of all answers in the holdout records, greater than 0.
    n_holdout, n_questions : int
        n and m.
    failure_probability : float
        beta in (0, 1).

    Returns
    -------
    float
        sqrt((k + ln(4 m / beta)) / (2 n)), with k = v + sqrt(v^2 + 2 v ln(2 / beta)) and
        v = n epsilon^2 / 4.

    References
    ----------
    Dwork, Feldman, Hardt, Pitassi, Reingold and Roth, *Generalization in Adaptive Data Analysis and
    Holdout Reuse*, 2015, section 3: approximate max-information. Here k is no larger than theirs,
    epsilon^2 n / 2 + epsilon sqrt(n ln(4 / beta) / 2).
    """
    v = n_holdout * epsilon**2 / 4
    k = v + math.sqrt(v * v + 2 * v * math.log(2 / failure_probability))
    return math.sqrt((k + math.log(4 * n_questions / failure_probability)) / (2 * n_holdout))


def counting_deviation(budget, n_values, n_holdout, n_questions, failure_probability):
    """Bound how far holdout means are from P, by counting the questions that can be reached.

    Parameters
    ----------
    budget : int
        B.
    n_values : int
        V: how many values a holdout mean can take; n + 1 for a share of records, 2 n + 1 for a
        difference of two shares.
    n_holdout, n_questions : int
        n and m.
    failure_probability : float
        beta in (0, 1).

    Returns
    -------
    float
        sqrt(ln(2 Q / beta) / (2 n)) with Q = sum over u < B of C(m, u + 1) V^u. The noise, whatever
        it is, has no part in it.
    """
    m, uses = n_questions, np.arange(min(budget, n_questions))
    choices = gammaln(m + 1) - gammaln(uses + 2) - gammaln(m - uses)
    questions = logsumexp(choices + uses * math.log(n_values))
    return math.sqrt((questions + math.log(2 / failure_probability)) / (2 * n_holdout))


def answer_deviation(threshold, noise_rate, budget, n_questions, failure_probability):
    """Bound how far the answers are from the holdout means.

    Parameters
    ----------
    threshold, noise_rate : float
        T and sigma, in units of the questions' width.
    budget, n_questions : int
        B and m.
    failure_probability : float
        beta in (0, 1).

    Returns
    -------
    float
        T + 6 sigma ln((m + 2 B) / beta).
    """
    draws = n_questions + 2 * budget
    return threshold + 6 * noise_rate * math.log(draws / failure_probability)


def published_tolerance(budget, n_holdout, n_questions, failure_probability):
    """Return the smallest tolerance of the source's theorem for n holdout records.

    Parameters
    ----------
    budget, n_holdout, n_questions : int
        B, n and m.
    failure_probability : float
        beta in (0, 1).

    Returns
    -------
    float
        tau; it says something only below 1. With T = 3 tau / 4 and sigma =
        tau / (96 ln(4 m / beta)), all answers are within tau of P, as long as fewer than B
        questions had training means further than tau / 2 from P.

    Notes
    -----
    The theorem asks for n >= n_0 with n_0 up to a constant. Here n is large enough as soon as
    :func:`privacy_deviation`, for 2 B / (sigma n) and a quarter of beta, is at most tau / 8: that
    is what its proof needs, and the noise takes the other three quarters.

    References
    ----------
    Dwork, Feldman, Hardt, Pitassi, Reingold and Roth, *Generalization in Adaptive Data Analysis and
    Holdout Reuse*, 2015, section 4, the theorem on Thresholdout.
    """
    noise = 96 * math.log(4 * n_questions / failure_probability)

    def excess(log_tau):
        tau = math.exp(log_tau)
        epsilon = 2 * budget * noise / (tau * n_holdout)
        return tau / 8 - privacy_deviation(epsilon, n_holdout, n_questions, failure_probability / 4)

    return math.exp(brentq(excess, -40.0, 40.0))
