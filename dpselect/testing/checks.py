"""The list of checks that every private estimator must pass, here and in other packages.

The checks are attacks. They see an estimator from outside: `fit`, what it predicts, its parameters
and attributes, `privacy_`, the ledger. They bring the records, so none of yours are needed, and none
should be used: a message of a failed check may show them.
"""

import warnings
from collections.abc import Callable
from functools import partial, update_wrapper

from sklearn.base import is_classifier

from ..model_selection.delegation import SearchDelegationMixin
from ..utils.type_aliases import Estimator
from .attacks import check_the_stated_loss
from .case import Case
from .certificate import check_certificate
from .exact_loss import check_the_loss_of_each_noise
from .kept import (
    check_a_second_fit,
    check_failed_fits,
    check_grid,
    check_plain_form,
    check_what_is_kept,
    check_what_is_said,
)
from .noise_checks import (
    check_noise_is_fresh,
    check_noise_is_independent,
    check_seeds,
    check_without_noise,
)
from .parameters_checks import (
    check_epsilon,
    check_epsilon_is_passed,
    check_fit_parameters,
    check_parameters,
)
from .person_checks import check_groups
from .records_checks import (
    check_bad_records,
    check_labels,
    check_paths,
    check_predictions,
    check_training_records,
)
from .spending_checks import check_ledger, check_the_statement
from .statement_checks import ReleaseStatement
from .sums_checks import check_noise_hides_all, check_the_gate
from .tally import CheckReport, CheckResult, counted, run_checks


def check_private_estimator(
    estimator: Estimator,
    statement: ReleaseStatement | None = None,
    *,
    n_trials: int = 2000,
) -> CheckReport:
    """Check that an estimator keeps the guarantees of private estimators.

    That it passes is no proof. The checks find what they look for: a privacy loss that is larger than
    stated on the records that they try, by a sixth or more where noise passes
    :func:`dpselect.noise.release` or ``_standard_noise``, and otherwise by a third or more in one
    dimension and by a factor of about two in several; exact values in what is kept or said; noise whose
    size depends on the records; records that are not clipped; a budget that is not asked, or that does
    not count what is spent; noise that is shared, repeated or missing. They do not see a loss on other
    records, a delta that is too small for noise that is not Gaussian, times, memory, or what methods
    other than `fit` and predictions reveal. A proof says what holds; this says that the code does not
    contradict it.

    Run scikit-learn's :func:`~sklearn.utils.estimator_checks.check_estimator` besides.

    Parameters
    ----------
    estimator : estimator
        Unfitted, with parameters `epsilon` and `random_state`. It is cloned. Classifiers need
        `classes`. If its `fit` takes `sample_weight` with these parameters, weights are attacked, too.
    statement : ReleaseStatement, default=None
        What it releases. None stands for ``ReleaseStatement()``.
    n_trials : int, default=2000
        Most fits to each pair of neighbours that are distinguished; most pairs need a tenth. More find
        smaller mistakes. 0 leaves these attacks out.

    Returns
    -------
    CheckReport
        Which checks ran, with how many comparisons, and what they left out and why. A check that does
        not apply passes, so read it once: ``print(check_private_estimator(estimator))``.

    Raises
    ------
    AssertionError
        If a check fails; it names all that fail, and what each found.
    ValueError
        If it is no such estimator: a search, a Pipeline, a class, or a classifier without `classes`.

    See Also
    --------
    private_estimator_checks : The same checks one by one, for pytest.

    Examples
    --------
    One estimator passes, and its twin keeps a number that it ought not to keep:

    >>> import numpy as np
    >>> from dpselect.preprocessing import DPBoundsScaler
    >>> from dpselect.testing import check_private_estimator
    >>> report = check_private_estimator(DPBoundsScaler(), n_trials=0)
    >>> print(report)
    DPBoundsScaler passes ... of ... checks of private estimators, with ... comparisons; ...
    check_parameters: ... comparisons
    ...
    >>> class Counts(DPBoundsScaler):
    ...     def fit(self, X, y=None):
    ...         super().fit(X)
    ...         self.outside_ = int(np.sum(np.abs(np.asarray(X)) > 1))
    ...         return self
    >>> check_private_estimator(Counts(), n_trials=0)
    Traceback (most recent call last):
    ...
    AssertionError: Counts fails 1 of ... checks of private estimators.
    check_what_is_kept: outside_ depends on the records; ...
    """
    checks = private_estimator_checks(estimator, statement, n_trials=n_trials)
    named = [(check.__name__, partial(check, model)) for model, check in checks]
    return run_checks(type(estimator).__name__, "private estimators", named)


def private_estimator_checks(
    estimator: Estimator,
    statement: ReleaseStatement | None = None,
    *,
    n_trials: int = 2000,
) -> list[tuple[Estimator, Callable[[Estimator], CheckResult]]]:
    """Return the checks of :func:`check_private_estimator`, to be run one by one.

    Parameters
    ----------
    estimator : estimator
    statement : ReleaseStatement, default=None
    n_trials : int, default=2000
        As there.

    Returns
    -------
    list of (estimator, callable)
        What was given, and a check: ``check(estimator)`` raises an AssertionError if it fails, and
        returns a CheckResult.

    Examples
    --------
    >>> import pytest
    >>> from dpselect import DPRidge
    >>> from dpselect.testing import private_estimator_checks
    >>> MODEL = DPRidge(target_range=(-1, 1))
    >>> @pytest.mark.parametrize("estimator, check", private_estimator_checks(MODEL))
    ... def test_private_estimator(estimator, check):
    ...     check(estimator)
    """
    _check_can_be_checked(estimator)
    statement = ReleaseStatement() if statement is None else statement
    checks: tuple[Callable[..., None], ...] = CHECKS[:-1]
    checks += (update_wrapper(partial(CHECKS[-1], n_trials=n_trials), CHECKS[-1]),)
    return [(estimator, _Check(check, statement)) for check in checks]


def _check_can_be_checked(estimator):
    """Refuse what the checks cannot fit to records of theirs, with what to give in its place."""
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        kind = "a class" if isinstance(estimator, type) else type(estimator).__name__
        raise ValueError(
            f"estimator must be an unfitted estimator, got {kind}, which has no parameters to set; give "
            "an instance."
        )
    name, params = type(estimator).__name__, estimator.get_params(deep=False)
    if isinstance(estimator, SearchDelegationMixin):
        raise ValueError(
            f"estimator must be one that releases something itself, got {name}, which chooses among "
            "others; give its estimator here, and its strategy to check_strategy."
        )
    lacking = [each for each in ("epsilon", "random_state") if each not in params]
    if lacking:
        raise ValueError(
            f"estimator must have a parameter {lacking[0]!r}, with which the checks fit it again and "
            f"again, and {name} has none; give a private estimator, of a Pipeline a single step."
        )
    if is_classifier(estimator) and params.get("classes") is None:
        raise ValueError(
            f"A classifier needs its public labels, of which the checks make records, and {name} has "
            "none; write classes=[0, 1]."
        )


class _Check:
    """A check of one estimator, with a name and an id for pytest."""

    def __init__(self, check, statement):
        self.check, self.statement, self.__name__ = check, statement, check.__name__
        self.__doc__ = check.__doc__

    def __call__(self, estimator):
        with warnings.catch_warnings(), counted() as tally:
            warnings.simplefilter("ignore")
            self.check(Case(estimator, self.statement))
        left_out = tuple(tally.left_out)
        if not tally.n_comparisons and not left_out:
            left_out = ("it does not apply to this estimator",)
        return CheckResult(self.__name__, tally.n_comparisons, left_out)


CHECKS = (
    check_parameters,
    check_epsilon,
    check_epsilon_is_passed,
    check_fit_parameters,
    check_groups,
    check_noise_is_fresh,
    check_seeds,
    check_without_noise,
    check_noise_is_independent,
    check_noise_hides_all,
    check_the_gate,
    check_paths,
    check_predictions,
    check_bad_records,
    check_labels,
    check_training_records,
    check_what_is_kept,
    check_plain_form,
    check_what_is_said,
    check_a_second_fit,
    check_failed_fits,
    check_grid,
    check_the_statement,
    check_ledger,
    check_certificate,
    check_the_loss_of_each_noise,
    check_the_stated_loss,  # the last one takes n_trials
)
