"""What holds for every call: a clear error or a valid result, nothing half-fitted, no data said."""

import io
import linecache
import re
import traceback
import warnings
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field

import numpy as np
import pytest
import sklearn
from hypothesis import HealthCheck, Phase, given, settings
from scipy import sparse
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.validation import check_is_fitted

import dpselect
from dpselect.exceptions import (
    AccuracyNotReachedError,
    BudgetExceededError,
    CertificateError,
    PrivacyLeakWarning,
    SeededNoiseWarning,
)
from dpselect.preprocessing.table_cells import CellError

# digits of the secrets in whatever units and precision
LEAK = re.compile(r"7\.?316[45]|SECRET-42|987654|1987-06")
ERRORS = {
    CellError,
    TypeError,
    ValueError,
    CertificateError,
    BudgetExceededError,
    AccuracyNotReachedError,
    NotFittedError,
    InvalidParameterError,
}
WARNINGS = (
    PrivacyLeakWarning,
    SeededNoiseWarning,
    DataConversionWarning,
    UserWarning,
    FutureWarning,
)
PACKAGES = tuple(package.__path__[0] for package in (dpselect, sklearn))
# number of cases of each test that was made by `cases`
CASES = {}


@dataclass
class Attempt:
    """What came of a call, and all that it said."""

    value: object = None
    error: Exception | None = None
    said: list = field(default_factory=list)


def attempt(call):
    """Call, and refuse warnings of numpy."""
    out, err, found = io.StringIO(), io.StringIO(), Attempt()
    with warnings.catch_warnings(record=True) as caught, redirect_stdout(out), redirect_stderr(err):
        warnings.simplefilter("always")
        try:
            found.value = call()
        except Exception as error:
            found.error = error
    found.said = [out.getvalue(), err.getvalue(), *(str(w.message) for w in caught)]
    error = found.error
    while error is not None:
        found.said += [str(error), repr(error), *getattr(error, "__notes__", ())]
        error = error.__cause__ or error.__context__
    for text in found.said:
        assert not LEAK.search(text), f"a record is shown: {text}"
    for warning in caught:
        assert issubclass(warning.category, WARNINGS), f"{warning.category}: {warning.message}"
    return found


def check_error(error, names):
    """Check that a deliberate `raise` said what is wrong with what.

    Parameters
    ----------
    error : Exception
    names : collection of str
        Parameters, of which the message has to name one.
    """
    shown = "".join(traceback.format_exception(error)[-4:])
    assert type(error) in ERRORS, shown
    frame = traceback.extract_tb(error.__traceback__)[-1]
    line = linecache.getline(frame.filename, frame.lineno).strip()
    assert line.startswith("raise") and frame.filename.startswith(PACKAGES), shown
    assert str(error), shown
    if frame.filename.startswith(PACKAGES[0]):
        named = "|".join([r"\w+Score", *map(re.escape, {"X", "y", *names})])
        assert re.search(rf"(?<!\w)({named})(?!\w)", str(error)), f"names nothing: {error}"


def cases(n, **strategies):
    """Make a test of `n` cases from a check that returns "error" or "result".

    The fast tests run a fifth of them. The test fails if fewer ran, or if nearly all ended in the
    same way.
    """

    def decorate(check):
        @pytest.mark.parametrize("n_cases", [n // 5, pytest.param(n, marks=pytest.mark.slow)])
        def test(n_cases):
            ends = Counter()

            @settings(
                max_examples=n_cases,
                derandomize=True,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=(Phase.generate, Phase.shrink),
            )
            @given(**strategies)
            def run(**drawn):
                ends[check(**drawn)] += 1

            run()
            assert ends.total() >= n_cases and set(ends) == {"error", "result"}, ends
            assert min(ends.values()) >= n_cases / 50, ends

        CASES[f"{check.__module__}.{check.__name__}"] = n
        test.__name__ = check.__name__
        test.__module__ = check.__module__
        return test

    return decorate


def released(estimator):
    """Return what a fit left, by name: a fitted object's attributes that are no parameters."""
    params = estimator.get_params(deep=False)
    return {name: value for name, value in vars(estimator).items() if name not in params}


def check_fit(estimator, params, data, *, good=None, loss=None, use=None, fit=None):
    """Fit with changed parameters, and check what is left.

    Parameters
    ----------
    estimator : estimator
        With good parameters, unfitted.
    params : dict
        To be set before the fit.
    data : tuple
        For `fit`.
    good : tuple, default=None
        Data for an earlier fit with the good parameters.
    loss : callable, default=None
        From the estimator to the epsilon that `privacy_` must state.
    use : callable, default=None
        To be called with the fitted estimator.
    fit : callable, default=None
        ``fit(estimator, *data)``, if not its method.
    """
    fit = fit or (lambda estimator, *data: estimator.fit(*data))
    parameters, before = estimator.get_params(deep=False), None
    if good is not None:
        attempt(lambda: fit(estimator, *good))
        before = released(estimator)
        copies = {k: v.copy() for k, v in before.items() if isinstance(v, np.ndarray)}
    found = attempt(lambda: fit(estimator.set_params(**params), *data))
    if found.error is None:
        assert found.value is estimator
        check_fitted(estimator, loss, use)
        return "result"
    check_error(found.error, names_of(estimator))
    if isinstance(found.error, AccuracyNotReachedError):
        # an outcome that was paid for
        assert released(estimator).keys() == {"privacy_", "plan_", "method_", "reached_"}
        assert estimator.privacy_ == found.error.privacy
        return "error"
    if before is None:
        assert not released(estimator)
        estimator.set_params(**parameters)  # a bad inner estimator has no tags
        with pytest.raises(NotFittedError):
            check_is_fitted(estimator)
    else:
        after = released(estimator)
        assert after.keys() == before.keys()
        assert all(after[name] is before[name] for name in before)
        assert all((before[name] == copies[name]).all() for name in copies)
    return "error"


def names_of(estimator):
    """Return the parameters' names, those of inner estimators without their prefixes too."""
    return {part for name in estimator.get_params() for part in (name, name.rpartition("__")[2])}


def check_fitted(estimator, loss=None, use=None):
    check_is_fitted(estimator)
    for name, value in released(estimator).items():
        check_finite(value, name)
    if loss is not None:
        assert type(estimator.privacy_.epsilon) is float
        assert estimator.privacy_.epsilon == loss(estimator)
        assert estimator.privacy_.epsilon >= 0
    if use is not None:
        found = attempt(lambda: use(estimator))
        assert found.error is None, found.error
        check_finite(found.value, "prediction")


def check_finite(value, name):
    # inf as long as there is none; NaN where a strategy has no such public number; what was given
    if name in ("best_loss_", "cv_results_", "_params_of_fit"):
        return
    if isinstance(value, dict):
        for key, part in value.items():
            check_finite(part, f"{name}[{key}]")
        return
    value = value.data if sparse.issparse(value) else value
    if isinstance(value, (float, np.ndarray)) and np.asarray(value).dtype.kind in "fc":
        assert np.isfinite(value).all(), f"{name} = {value}"
