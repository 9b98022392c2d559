"""Confidence intervals of the coefficients of a private linear model: the release."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline

from ..accounting.privacy_loss import PrivacyLoss
from ..base.fit_warnings import warn_if_seeded
from ..ledger import PrivacyLedger, spending, warn_if_uncharged, without_spending
from ..model_selection.private_steps import last_step, steps_before
from ..model_selection.row_steps import quietly
from ..noise import (
    as_generator,
    check_random_state,
    is_seeded,
    release,
    release_step,
    scale_with_rounding,
    spherical_laplace,
)
from ..noise.generators import RandomState
from ..preprocessing import TableEncoder
from ..preprocessing.pipeline_check import check_pipeline_privacy
from ..preprocessing.table_form import read_form
from ..records.held_records import HeldRecords
from ..records.persons import adjacency_of
from ..records.records import Weighted, check_weights, numeric_rows
from ..records.training import (
    holds_training_records,
    uncounted_loss_note,
    warn_of_training_records,
)
from ..rows import as_lazy, is_lazy, map_rows
from ..utils.parameters import as_fitted, with_values
from ..utils.type_aliases import Estimator, MatrixLike
from ..utils.validation import check_epsilon, check_number
from .coefficient_fits import check_model, check_same_unit, fits_of
from .coefficient_intervals import SHARING, CoefficientIntervals, intervals_of, least_curvature, upper

# replacing a record removes two matrices of norm 1 per class, and adds two others
SENSITIVITY = 2.0


def coef_interval(
    model: Estimator,
    X: MatrixLike,
    y: npt.ArrayLike,
    *,
    epsilon: float,
    n_samples: int,
    sample_weight: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    ledger: PrivacyLedger | None = None,
    random_state: RandomState = None,
) -> CoefficientIntervals:
    """Return confidence intervals of a private model's coefficients, with epsilon-differential privacy.

    They cover both the chance by which records came into the data and the noise of privacy, and are
    about the coefficients that the model would have without noise for infinitely many records of the
    same kind, with the same `alpha` and the same bounds on rows and targets, and with what `alpha`
    "auto" may do to them after training. A penalty and clipping move these away from those of an
    unpenalised regression, and no interval includes that.

    The law of the model's noise is known. What is not are the curvature of the loss and the spread of
    its derivatives: two matrices, which are released from these records with noise. Neighbouring data
    sets differ in one record. Public are the number of records, the model and every parameter, and,
    if a Pipeline stands before the model, which columns hold numbers and which text (the page "Steps
    before the model").

    **The model is taken to be public**: of records that were set aside by their index the total is the
    larger of the two losses, ``PrivacyLoss.parallel([model.privacy_, intervals.privacy_])``; of the
    training records themselves the intervals are as good, and the losses add up. `privacy_` says so
    where X is known to be what the model was trained on.

    Read more in :doc:`/intervals`.

    Parameters
    ----------
    model : DPLogisticRegression, DPLinearSVC, DPPoissonRegressor, DPHuberRegressor or DPRidge
        Fitted, or a Pipeline that ends with one, whose other steps treat each row by itself (of a search
        its `best_estimator_`); intervals then have the names of the columns that the model sees. Not one
        that a search chose among private models, as "budget_split" does: the choice looked at its noise,
        which intervals take for that of one fit. (One that "optimal_risk" chose may be: it is trained
        after the choice.) Three or more classes are as many models, one against the rest each.
    X : array-like of shape (m, n_features)
        Records like those that the model was trained on. Intervals of invented records forecast those of
        the real ones, and cost nothing.
    y : array-like of shape (m,)
        Their labels or targets.
    epsilon : float
        Privacy loss of the release, greater than 0; ``inf`` gives exact matrices.
    n_samples : int
        How many records, or persons, the model was trained on, which is public; those that a search
        set aside by ``evaluation=`` do not count.
    sample_weight : array-like of shape (m,), default=None
        How often each record counts, clipped to the model's `max_sample_weight`: if, and only if, it
        has one. A part of the record, as for `fit`.
    groups : array-like of shape (m,), default=None
        The id of the person whose row it is: if, and only if, the model was fitted with `groups`.
        Neighbours then differ in all rows of one person, and the number of persons is public.
    ledger : PrivacyLedger, default=None
        Pays, in place of one that is open (``with ledger:``).
    random_state : None, int, SeedSequence, RandomState or Generator, default=None
        None draws noise from a cryptographic generator keyed by the operating system. Everything else
        is for tests: the noise can be drawn again.

    Returns
    -------
    CoefficientIntervals

    Raises
    ------
    BudgetExceededError
        If the ledger has less left; no record is read.
    NotFittedError
        If the model is not fitted.
    TypeError, ValueError
        If a parameter is out of range, the law of the model's noise is not known, there are so few
        records that no interval would be bounded, or the model refuses a record; its message is not
        repeated.

    Warns
    -----
    PrivacyLeakWarning
        If nothing pays, while the model has a `ledger`.
    SeededNoiseWarning
        If `random_state` is not None.

    References
    ----------
    White, *Maximum Likelihood Estimation of Misspecified Models*, Econometrica 50, 1982, for the
    variance without noise. The page "Intervals of coefficients" has statement and proof.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect import DPLogisticRegression, coef_interval
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(40_000, 2)) / 2**0.5
    >>> y = (X @ [2, -1] + rng.logistic(size=40_000) > 0).astype(int)
    >>> model = DPLogisticRegression(classes=[0, 1], alpha=0.001).fit(X[:20_000], y[:20_000])
    >>> intervals = coef_interval(model, X[20_000:], y[20_000:], epsilon=1.0, n_samples=20_000)
    >>> low, high = intervals.confidence_interval(0.95)
    >>> bool((low < high).all()), low.shape
    (True, (3,))
    """
    epsilon = check_epsilon(epsilon)
    check_random_state(random_state)
    n_samples = check_number(
        "n_samples",
        n_samples,
        integer=True,
        why="the errors of coefficients fall with it",
        instead="write how many records the model was trained on",
    )
    check_pipeline_privacy(model)
    given, (steps, model, names) = model, _parts(model)
    check_same_unit(model, sample_weight, groups)
    fits = fits_of(model, n_samples, names)
    trained = holds_training_records(given, X)
    plan = IntervalPlan(fits, epsilon, ledger, random_state, groups is not None, trained)
    warn_if_seeded(plan)
    warn_if_uncharged(plan, given, "coef_interval")
    with spending(plan, plan.loss):
        X, sample_weight = _rows_of_fit(X, sample_weight, steps, model)
        return plan.intervals(X, y, sample_weight, groups)


def coef_interval_forecast(
    model: Estimator,
    X: MatrixLike,
    y: npt.ArrayLike,
    *,
    epsilon: float,
    n_samples: int,
    n_records: int | None = None,
    confidence_level: float = 0.95,
    sample_weight: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    contrast: npt.ArrayLike | None = None,
) -> dict[Any, float]:
    """Forecast how wide the intervals of coefficients will be, from invented records.

    Nothing is released or paid, so X and y must be invented, or public. Any number of records will do,
    if they are like those that are expected: bounds that most values do not fill, or a rare category,
    make intervals wide.

    Read more in :doc:`/intervals`.

    Parameters
    ----------
    model : DPLogisticRegression, DPLinearSVC, DPPoissonRegressor, DPHuberRegressor or DPRidge
        As for :func:`coef_interval`; before there is a model, fit one on the invented records.
    X : array-like of shape (k, n_features)
        Invented or public records.
    y : array-like of shape (k,)
        Their labels or targets, as far from the model's predictions as is expected.
    epsilon : float
        Privacy loss of the release that is planned.
    n_samples : int
        How many records, or persons, the model is trained on.
    n_records : int, default=None
        How many the intervals are to be released from; None for as many as `n_samples`.
    confidence_level : float, default=0.95
        In (0, 1).
    sample_weight, groups : array-like of shape (k,), default=None
        As for :func:`coef_interval`; invented, too.
    contrast : array-like of shape (n_features,) or (n_coefficients,), default=None
        Weights of a sum of coefficients, as for
        :meth:`~dpselect.linear_model.CoefficientIntervals.contrast`: the difference of two rows.

    Returns
    -------
    dict
        From the name of each coefficient to half the width of its interval; NaN where nothing would be
        known. With `contrast`, "contrast" has that of the sum.

    Raises
    ------
    TypeError, ValueError
        As :func:`coef_interval`.

    Warns
    -----
    PrivacyLeakWarning
        If X is what the model was trained on, which may be real records.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect import DPLogisticRegression, coef_interval_forecast
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(4000, 2)) / 2**0.5
    >>> y = (X @ [2, -1] + rng.logistic(size=4000) > 0).astype(int)
    >>> model = DPLogisticRegression(classes=[0, 1], alpha=0.001).fit(X[:2000], y[:2000])
    >>> widths = {
    ...     n: coef_interval_forecast(model, X[2000:], y[2000:], epsilon=1.0, n_samples=n)[0]
    ...     for n in (20_000, 200_000)
    ... }
    >>> widths[200_000] < widths[20_000]
    True
    """
    epsilon = check_epsilon(epsilon)
    n_samples, n_records = (
        check_number(
            name,
            number,
            integer=True,
            why="the errors of coefficients fall with it",
            instead="write how many records are planned",
        )
        for name, number in (
            ("n_samples", n_samples),
            ("n_records", n_samples if n_records is None else n_records),
        )
    )
    check_pipeline_privacy(model)
    if holds_training_records(model, X):
        warn_of_training_records(
            model,
            "X is what model was trained on, and widths that are computed from real records tell "
            "of them without a loss; give invented records, or write coef_interval(...), which pays.",
        )
    steps, model, names = _parts(model)
    check_same_unit(model, sample_weight, groups)
    plan = IntervalPlan(fits_of(model, n_samples, names), epsilon, persons=groups is not None)
    plan.check_size(n_records)
    X, sample_weight = _rows_of_fit(X, sample_weight, steps, model)
    found = plan.forecast(X, y, n_records, sample_weight, groups)
    widths = _half_widths(found, confidence_level)
    if contrast is not None:
        estimate = found.contrast(contrast, confidence_level)
        widths["contrast"] = (estimate.high - estimate.low) / 2
    return widths


def half_widths_before(model, X, y, epsilon, n_samples, persons=False):
    """Forecast half the widths of 95 % intervals of a model that is not fitted, from invented rows.

    Model and intervals have a loss of `epsilon` each, and `n_samples` records, or persons. Raises
    ValueError if so few say nothing, whatever they are.

    Returns
    -------
    dict
        From the name of each coefficient; NaN where nothing would be known.
    """
    groups = np.arange(len(y)) if persons else None
    # without noise, whose law is that of the plan
    exact = with_values(model, epsilon=math.inf, delta=0.0, ledger=None, random_state=None)
    with without_spending():
        exact.fit(X, y, groups=groups)
    exact.set_params(delta=model.delta)
    plan = IntervalPlan(fits_of(exact, n_samples, epsilon=epsilon), epsilon, persons=persons)
    plan.check_size(n_samples)
    # two digits are shown, in little time
    return _half_widths(plan.forecast(X, y, n_samples, groups=groups, sharing=SHARING))


def _half_widths(intervals, level=0.95):
    """Return half the widths of intervals, by name."""
    low, high = intervals.confidence_interval(level)
    return dict(zip(intervals.names, ((high - low) / 2).tolist()))


def _parts(model):
    """Return the steps before a model, or None, the model, and the names of its columns, or None."""
    steps, model = steps_before(model), as_fitted(last_step(model))
    check_model(model)
    if not steps:
        return None, model, None
    steps = Pipeline(steps)
    try:
        names = tuple(steps.get_feature_names_out())
    except (AttributeError, ValueError):  # the step does not support feature names
        names = None
    return steps, model, names


def _rows_of_fit(X, sample_weight, steps, model):
    """Return rows as the model takes them, and checked weights."""
    if steps is not None:
        X = _transformed_rows(X, steps, model)
    # refuse other columns than those of the fit, whose rows might exceed the norm that calibrates the
    # noise
    X = numeric_rows(model, X, **model.reads, reset=False)
    return X, None if sample_weight is None else check_weights(sample_weight, X)


def _transformed_rows(X, steps, model):
    """Return rows after the steps, each computed from its own record, without changing column types."""
    X = as_lazy(X)
    if not isinstance(steps[0], TableEncoder):  # it parses each cell independently
        X = read_form(X).convert(X)
    if is_lazy(X):
        return map_rows(partial(quietly, steps.transform), X, (model.n_features_in_,))
    return quietly(steps.transform, X)


@dataclass(frozen=True)
class IntervalPlan:
    """A planned release of intervals, and its loss, from public numbers."""

    fits: tuple
    epsilon: float
    ledger: Any = None
    random_state: Any = None
    persons: bool = False
    of_training_records: bool = False

    @property
    def loss(self):
        """PrivacyLoss : Loss of the release."""
        d, matrices = len(self.fits[0].w), 2 * len(self.fits)
        return PrivacyLoss(
            self.epsilon,
            adjacency=adjacency_of(self.persons),
            label=f"coef_interval: {'two' if matrices == 2 else matrices} matrices of {d} x {d} "
            f"derivatives; {uncounted_loss_note(self.of_training_records)}",
            seeded=self.epsilon != math.inf and is_seeded(self.random_state),
        )

    def deviation(self, m):
        """Return the standard deviation of an entry of the matrices, relative to its bound."""
        K, d = len(self.fits), len(self.fits[0].w)
        # standard deviation of one entry of spherical noise in this dimension
        return self.scale(m)[1] * math.sqrt(K * d * (d + 1) + 1)

    def check_size(self, m):
        """Refuse so few records that no curvature can be distinguished from the noise."""
        fit, d = self.fits[0], len(self.fits[0].w)
        # the trace is at most the first bound
        times = least_curvature(fit, self.deviation(m)) / (fit.bounds[0] / d + fit.mu)
        if times > 1:
            units = f"{adjacency_of(self.persons).unit}s"
            raise ValueError(
                f"epsilon={self.epsilon!r} on {m} {units} says nothing of {d} coefficients, whatever "
                f"the {units} are, because the curvature is lost in the noise; give at least "
                f"{math.ceil(m * times)} {units}, or epsilon={self.epsilon * times:.3g}, or a model "
                "with fewer columns."
            )

    def scale(self, m):
        """Return the step of the grid, and the scale of spherical noise for the mean matrices."""
        if self.epsilon == math.inf:
            return None, 0.0
        moved = SENSITIVITY * math.sqrt(len(self.fits)) / m
        return release_step(moved / self.epsilon), moved / self.epsilon

    def sums(self, X, y, sample_weight=None, groups=None):
        """Return the number of records and, to be called, the sums of both matrices of each fit."""
        evaluated = HeldRecords(X, y, groups)

        def sums(X, y):
            records = Weighted.of(y, sample_weight, groups)
            return [fit.sums(X, records) for fit in self.fits]

        return len(evaluated), partial(evaluated.evaluate_quietly, sums)

    def forecast(self, X, y, n_records, sample_weight=None, groups=None, sharing=None):
        """Return intervals as n_records like these would have them, around invented coefficients."""
        m, sums = self.sums(X, y, sample_weight, groups)
        means = [[matrix / m for matrix in pair] for pair in sums()]
        # noise of the release, and the same again that intervals count with
        deviation = math.sqrt(2) * self.deviation(n_records)
        return intervals_of(self.fits, means, deviation, self.loss, sharing)

    def intervals(self, X, y, sample_weight=None, groups=None):
        """Release the matrices, and compute intervals from them; charges no ledger."""
        m, sums = self.sums(X, y, sample_weight, groups)
        self.check_size(m)
        matrices = released_matrices(self, sums(), m)
        found = intervals_of(self.fits, matrices, self.deviation(m), self.loss)
        return replace(found, of_training_records=self.of_training_records)


def released_matrices(plan, sums, m):
    """Return both mean matrices of each fit with noise, from their sums."""
    d = len(plan.fits[0].w)
    rows, columns, weight = upper(d)
    weighted = [np.outer(fit.weights, fit.weights) for fit in plan.fits]
    values = np.concatenate(
        [
            weight * (weights * matrix)[rows, columns] / (bound * m)
            for fit, weights, pair in zip(plan.fits, weighted, sums)
            for matrix, bound in zip(pair, fit.bounds)
        ]
    )
    if plan.epsilon < math.inf:
        step, scale = plan.scale(m)
        scale = scale_with_rounding(scale, step, plan.epsilon, len(values))
        noise = scale * spherical_laplace(as_generator(plan.random_state), 1, len(values))[0]
        values = release(values, noise, step)
    return [
        [bound * _matrix(half / weight, d) / weights for half, bound in zip(pair, fit.bounds)]
        for fit, weights, pair in zip(plan.fits, weighted, values.reshape(len(plan.fits), 2, -1))
    ]


def _matrix(entries, d):
    rows, columns, _ = upper(d)
    matrix = np.zeros((d, d))
    matrix[rows, columns] = entries
    return matrix + np.triu(matrix, 1).T
