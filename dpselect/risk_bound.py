"""Choosing among models by the least risk that any of them could reach on the records.

The *optimal value* of a candidate is the least regularised mean loss over a ball: a number, which
one record moves far less than it moves the model that attains it. A candidate is judged by this
number plus a public forecast of what the noise of its release will add, a private
noisy argmax picks one, and only that one is trained, on all records. The page "Choosing among
models by the risk" of the documentation has statement and proof.
"""

import math
from dataclasses import dataclass

import numpy as np

from .exceptions import CertificateError
from .mechanisms import noisy_argmax

# How far computed values may lie from the exact ones, as a share of how far one record moves them.
INEXACTNESS = 1e-3
# What the noise of a choice may cost, in the mean loss, and the reach that is too short or long
# enough for a comparison to be useful. Found by experiment.
LARGEST_LOSS, LEAST_REACH, FARTHEST_REACH = 0.035, 2.0, 10.0


@dataclass(frozen=True)
class RiskBound:
    """Public numbers about the optimal value of one candidate, before any data.

    Attributes
    ----------
    sensitivity : float
        How far one record moves the computed value.
    inexactness : float
        Half the length of an interval, placed by public numbers about the exact value, in which
        the computed one lies. Twice this is part of `sensitivity`.
    forecast : float
        A guess of what the noise of the release adds to the value. Promises nothing.
    ball : float
        Radius of the ball over which the value is taken, or less: a bound on the minimiser.
    unit : tuple
        What the value is a mean of. Values of different units cannot be compared.
    stake : float
        What a perfect model gains over one that says nothing, at most; for plans only.
    """

    sensitivity: float
    inexactness: float
    forecast: float
    ball: float
    unit: tuple
    stake: float = math.nan

    @classmethod
    def of(cls, span, n_samples, residual, forecast, ball, unit, stake):
        """Put the bound together.

        Parameters
        ----------
        span : float
            Largest difference of two records' losses at a minimiser.
        n_samples : int
            n.
        residual : float
            The `inexactness`.
        forecast, ball, unit, stake
            As above.

        Returns
        -------
        RiskBound
        """
        sensitivity = span / n_samples + 2 * residual
        return cls(
            float(sensitivity), float(residual), float(forecast), float(ball), unit, float(stake)
        )


def select_by_risk_bound(values, bounds, epsilon, random_state=None):
    """Select the candidate with the least bound on its risk, epsilon-differentially private.

    Parameters
    ----------
    values : array-like of shape (k,)
        The optimal values. They are exact functions of the records and must not leave a
        search.
    bounds : list of RiskBound
        Of the candidates, from public numbers.
    epsilon : float
        Privacy loss of the choice.
    random_state : None, int, SeedSequence, RandomState, Generator or InnerStream
        See :func:`dpselect.noise.root_stream`.

    Returns
    -------
    int

    Raises
    ------
    CertificateError
        If the values are means of different losses.

    Examples
    --------
    >>> from dpselect.risk_bound import RiskBound, select_by_risk_bound
    >>> small = RiskBound(1e-4, 0.0, 0.01, 5.0, ("logistic",))
    >>> noisy = RiskBound(1e-4, 0.0, 0.30, 5.0, ("logistic",))
    >>> select_by_risk_bound([0.45, 0.40], [small, noisy], epsilon=1.0)
    0
    """
    check_units(bounds)
    forecasts = np.array([bound.forecast for bound in bounds])
    sensitivities = [bound.sensitivity for bound in bounds]
    return noisy_argmax(-(np.asarray(values) + forecasts), sensitivities, epsilon, random_state)


def check_units(bounds):
    """Refuse candidates whose values are means of different losses.

    Parameters
    ----------
    bounds : list of RiskBound

    Raises
    ------
    CertificateError
    """
    units = sorted({bound.unit for bound in bounds}, key=repr)
    if len(units) > 1:
        raise CertificateError(
            "Candidates cannot be compared by their risk, because they minimise different losses: "
            f"{', '.join(' '.join(map(str, unit)) for unit in units)}; let candidates differ in "
            'features or regularisation only, or use strategy="stability".'
        )


def public_reach(n_samples, n_candidates, epsilon):
    """Return how far models may reach whose risks are compared, or None for no comparison.

    Parameters
    ----------
    n_samples : int
        n.
    n_candidates : int
        k.
    epsilon : float
        Privacy loss of the choice.

    Returns
    -------
    float or None
        Largest prediction of a model in the ball, in units of the largest target, which is 1
        for classifiers. None if models that say little are all that could be compared; it is
        then better to spend everything on one candidate that was named in advance.

    Notes
    -----
    A choice among k candidates whose values move by 2 U / n is off by about
    2 U ln(k) / (n epsilon): this U makes it ``LARGEST_LOSS``. Found by experiment.

    Examples
    --------
    >>> from dpselect.risk_bound import public_reach
    >>> public_reach(n_samples=50_000, n_candidates=10, epsilon=0.05)
    10.0
    >>> public_reach(n_samples=1_000, n_candidates=10, epsilon=0.05) is None
    True
    """
    reach = LARGEST_LOSS * n_samples * epsilon / (2 * math.log(max(n_candidates, 2)))
    return min(reach, FARTHEST_REACH) if reach >= LEAST_REACH else None
