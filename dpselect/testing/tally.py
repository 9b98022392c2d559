"""Counts of what checks compared, and what they left out: a check that does not run says so."""

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class CheckResult:
    """One check that passed.

    Parameters
    ----------
    name : str
        Of the check.
    n_comparisons : int
        Requirements that were evaluated.
    left_out : tuple of str
        What was not checked, each with the reason.
    """

    name: str
    n_comparisons: int
    left_out: tuple[str, ...] = ()

    def __str__(self) -> str:
        done = f"{self.n_comparisons} comparisons" if self.n_comparisons else "not run"
        return "\n".join([f"{self.name}: {done}", *(f"    left out: {text}" for text in self.left_out)])


@dataclass(frozen=True, repr=False)
class CheckReport:
    """Which checks an estimator passed, and what they left out.

    Parameters
    ----------
    estimator : str
        Name of its class.
    results : tuple of CheckResult
        One for each check, in their order. A result has `name`, `n_comparisons` and `left_out`, the
        reasons why a part of it did not run. A check with `n_comparisons` of 0 has shown nothing.

    Examples
    --------
    >>> from dpselect import DPRidge
    >>> from dpselect.testing import check_private_estimator
    >>> report = check_private_estimator(DPRidge(target_range=(-1, 1)), n_trials=0)
    >>> [result.name for result in report.results if not result.n_comparisons]
    ['check_labels', 'check_certificate', 'check_the_stated_loss']
    >>> print(report.results[-1])
    check_the_stated_loss: not run
        left out: n_trials is 0
    """

    estimator: str
    results: tuple[CheckResult, ...]

    def __str__(self) -> str:
        total = sum(result.n_comparisons for result in self.results)
        ran = sum(result.n_comparisons > 0 for result in self.results)
        head = (
            f"{self.estimator} passes {ran} of {len(self.results)} checks of private estimators, with "
            f"{total} comparisons; {len(self.results) - ran} did not apply."
        )
        return "\n".join([head, *map(str, self.results)])

    __repr__ = __str__


class _Tally:
    def __init__(self):
        self.n_comparisons, self.left_out = 0, {}


_tally: ContextVar[_Tally | None] = ContextVar("_tally", default=None)


@contextmanager
def counted():
    """Count what `require` and `leave_out` are called for meanwhile."""
    tally = _Tally()
    token = _tally.set(tally)
    try:
        yield tally
    finally:
        _tally.reset(token)


def require(condition, text):
    """Compare, and fail a check if a requirement does not hold."""
    tally = _tally.get()
    if tally is not None:
        tally.n_comparisons += 1
    if not condition:
        raise AssertionError(text)


def leave_out(text):
    """Note what a check does not look at, and why."""
    tally = _tally.get()
    if tally is not None:
        tally.left_out[text] = None
