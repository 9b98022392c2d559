"""Lower bounds on the privacy loss of any repeatable release."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import beta
from sklearn.ensemble import RandomForestClassifier

from ..utils.validation import check_callable, check_flag, check_number, unquoted
from .random_numbers import numpy_generator

# fractions of the releases that train a classifier, and that choose an event; the others are counted
TRAINING, CHOOSING = 0.4, 0.2
# size of the forest, and of its leaves: smaller ones would overfit
TREES, LEAF = 50, 20
# number of thresholds that are tried
THRESHOLDS = 200
MANTISSA_BITS = 53


@dataclass(frozen=True)
class EpsilonBound:
    """A lower bound on the privacy loss, with the evidence.

    Parameters
    ----------
    epsilon : float
        The loss is at least this, unless something of probability 1 - `confidence` happened.
    confidence : float
    delta : float
        The delta that was allowed for.
    shares : (float, float)
        How often the event came about on the two data sets, among the releases that counted.
    n_trials : int
        Releases from each data set.
    """

    epsilon: float
    confidence: float
    delta: float
    shares: tuple[float, float]
    n_trials: int


def epsilon_lower_bound(
    release: Callable[[Any], npt.ArrayLike],
    records: Any,
    neighbour: Any,
    *,
    delta: float = 0.0,
    n_trials: int = 10_000,
    confidence: float = 0.999,
    float_bits: bool = True,
    random_state: int | np.random.Generator | None = None,
) -> EpsilonBound:
    """Bound the privacy loss of a release from below, by distinguishing two data sets.

    A classifier learns from some releases which data set they come from. An event, "its answer
    exceeds a threshold", is chosen on others, and counted on the rest.

    Parameters
    ----------
    release : callable
        ``release(records)`` returns what is released, as a number or an array whose shape is
        always the same. It draws new noise at each call.
    records, neighbour : object
        Two neighbouring data sets, as `release` takes them.
    delta : float, default=0.0
        In [0, 1): the loss that is bounded is the epsilon of (epsilon, delta)-privacy.
    n_trials : int, default=10_000
        Releases from each data set, 100 or more.
    confidence : float, default=0.999
        In (0, 1): probability with which the bound holds.
    float_bits : bool, default=True
        Whether the classifier also sees how many bits each number takes, which gives away noise
        that was added in floating point.
    random_state : None, int, Generator, ..., default=None
        For the parts of the releases and the classifier; see :func:`numpy.random.default_rng`.

    Returns
    -------
    EpsilonBound
        With ``epsilon`` 0 or more. Above the claimed epsilon, it refutes the claim. Below, it
        proves nothing: another event may tell more.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    With probability p and q of an event on the two data sets, (epsilon, delta)-privacy means
    p <= exp(epsilon) q + delta. The bound is log((p' - delta) / q'), with p' below p and q' above
    q by Clopper and Pearson, each wrong with probability (1 - confidence) / 2. What counts took
    no part in choosing the event.

    References
    ----------
    Jagielski, Ullman and Oprea, *Auditing Differentially Private Machine Learning*, NeurIPS 2020;
    for the bits, Mironov, *On Significance of the Least Significant Bits for Differential
    Privacy*, CCS 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect.audit import epsilon_lower_bound
    >>> rng = np.random.default_rng(0)
    >>> def noisy_sum(records):  # claims epsilon = 1 for records of [0, 1], with noise for 4
    ...     return records.sum() + rng.laplace(scale=0.25)
    >>> found = epsilon_lower_bound(
    ...     noisy_sum, np.zeros(5), np.array([1.0, 0, 0, 0, 0]), float_bits=False, random_state=0
    ... )
    >>> 1 < found.epsilon < 4
    True

    For an estimator of your own, return what it releases. Each fit must draw new noise, and the
    event may be looked for in any released attribute, or in predictions:

    >>> from sklearn.base import BaseEstimator
    >>> class NoisyMean(BaseEstimator):  # claims epsilon = 1 for rows of [0, 1], with noise for 4
    ...     def fit(self, X, y=None):
    ...         self.mean_ = np.mean(X) + rng.laplace(scale=0.25 / len(X))
    ...         return self
    >>> found = epsilon_lower_bound(
    ...     lambda X: NoisyMean().fit(X).mean_, np.zeros((5, 1)), np.eye(5, 1), n_trials=2_000,
    ...     float_bits=False, random_state=0,
    ... )
    >>> 1 < found.epsilon < 4
    True
    """
    why = {"why": "the bound is counted from it", "instead": "write a number in its range"}
    n_trials = check_number("n_trials", n_trials, low=100, low_included=True, integer=True, **why)
    delta = check_number("delta", delta, low_included=True, high=1.0, **why)
    confidence = check_number("confidence", confidence, high=1.0, **why)
    check_callable("release", release, call="release(records)")
    check_flag("float_bits", float_bits, why="it says what the classifier sees")
    rng = numpy_generator(random_state)
    # sequentially: workers with copies of a generator would all draw the same noise
    outputs = [_release(release, data) for data in (records, neighbour) for _ in range(n_trials)]
    if len({output.shape for output in outputs}) > 1 or outputs[0].size == 0:
        raise ValueError(
            "release returned arrays of different or no length, which no classifier can compare; "
            "return at least one number, and as many each time."
        )
    features = _features(np.stack(outputs), float_bits).reshape(2, n_trials, -1)
    features = [part[rng.permutation(n_trials)] for part in features]
    first, second = int(TRAINING * n_trials), int((TRAINING + CHOOSING) * n_trials)
    classifier = RandomForestClassifier(
        TREES, min_samples_leaf=LEAF, random_state=int(rng.integers(2**31))
    )
    labels = np.repeat([0, 1], first)
    classifier.fit(np.concatenate([part[:first] for part in features]), labels)
    answers = [classifier.predict_proba(part[first:])[:, 1] for part in features]
    error = (1 - confidence) / 2
    sign, threshold = _best_event([a[: second - first] for a in answers], delta, error)
    hits = [np.count_nonzero(sign * a[second - first :] > threshold) for a in answers]
    # events of large answers are likelier on the second data set
    more, less = hits[::-1] if sign > 0 else hits
    counted = n_trials - second
    bound = float(_bound(np.array([more]), np.array([less]), counted, delta, error)[0])
    return EpsilonBound(
        max(bound, 0.0), confidence, delta, tuple(hit / counted for hit in hits), n_trials
    )


def _release(release, data):
    # a forest uses single precision
    limit = float(np.finfo(np.float32).max) / 2
    released = unquoted(np.asarray, release(data), dtype=np.float64, what="what release returned")
    # NaN may distinguish data sets, so map it to a number
    return np.clip(np.ravel(np.nan_to_num(released, nan=-limit / 2)), -limit, limit)


def _features(outputs, float_bits):
    """Return the numbers, with the number of bits and the exponent of each."""
    if not float_bits:
        return outputs
    mantissas, exponents = np.frexp(outputs)
    mantissa = np.abs(np.ldexp(mantissas, MANTISSA_BITS)).astype(np.int64)
    # exponent of the largest power of two that divides the mantissa
    trailing = np.log2(np.maximum(mantissa & -mantissa, 1))
    # exponent of the last nonzero bit of the number
    return np.concatenate([outputs, trailing, exponents - MANTISSA_BITS + trailing], axis=1)


def _best_event(answers, delta, error):
    """Return the sign and the threshold of the event with the largest bound."""
    best = (-math.inf, 1.0, 0.0)
    size = len(answers[0])
    for sign in (1.0, -1.0):
        signed = [np.sort(sign * a) for a in answers]
        thresholds = np.unique(np.quantile(np.concatenate(signed), np.linspace(0, 1, THRESHOLDS)))
        hits = [size - np.searchsorted(a, thresholds, side="right") for a in signed]
        more, less = hits[::-1] if sign > 0 else hits
        bounds = _bound(more, less, size, delta, error)
        i = int(np.argmax(bounds))
        if bounds[i] > best[0]:
            best = (bounds[i], sign, thresholds[i])
    return best[1:]


def _bound(more, less, size, delta, error):
    """Return log((p' - delta) / q') for counts of an event among `size` on either data set."""
    p = np.where(more > 0, beta.ppf(error, np.maximum(more, 1), size - more + 1), 0.0)
    q = np.where(less < size, beta.isf(error, less + 1, np.maximum(size - less, 1)), 1.0)
    with np.errstate(divide="ignore"):
        return np.where(p > delta, np.log(np.maximum(p - delta, 0.0) / q), -np.inf)
