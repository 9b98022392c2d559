"""Count the comparisons of checks, and what they left out: a check that does not run is reported."""

from collections.abc import Callable, Iterable
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
    """Report of the checks that an estimator, or a strategy, passed, and of what they left out.

    Parameters
    ----------
    subject : str
        Name of its class.
    kind : str
        Of which things the checks are, in words.
    results : tuple of CheckResult
        One for each check, in their order. A result has `name`, `n_comparisons` and `left_out`, the
        reasons why a part of it did not run. A check with `n_comparisons` of 0 has shown nothing.

    Examples
    --------
    >>> from dpselect.preprocessing import DPBoundsScaler
    >>> from dpselect.testing import check_private_estimator
    >>> report = check_private_estimator(DPBoundsScaler(), n_trials=0)
    >>> [result.name for result in report.results if not result.n_comparisons]
    ['check_the_gate', 'check_labels', ..., 'check_the_stated_loss']
    >>> print(report.results[-1])
    check_the_stated_loss: not run
        left out: n_trials is 0
    """

    subject: str
    kind: str
    results: tuple[CheckResult, ...]

    def __str__(self) -> str:
        total = sum(result.n_comparisons for result in self.results)
        ran = sum(result.n_comparisons > 0 for result in self.results)
        head = (
            f"{self.subject} passes {ran} of {len(self.results)} checks of {self.kind}, with "
            f"{total} comparisons; {len(self.results) - ran} did not apply."
        )
        return "\n".join([head, *map(str, self.results)])

    __repr__ = __str__


def run_checks(
    subject: str,
    kind: str,
    checks: Iterable[tuple[str, Callable[[], CheckResult]]],
) -> CheckReport:
    """Run named checks; raise one AssertionError with all failures, or return a report."""
    failures, results = [], []
    for name, check in checks:
        try:
            results.append(check())
        except Exception as error:  # unexpected errors of the estimator or strategy are failures, too
            failures.append((name, error))
    if failures:
        found = "\n".join(
            f"{name}: {'' if isinstance(error, AssertionError) else type(error).__name__ + ': '}{error}"
            for name, error in failures
        )
        raise AssertionError(
            f"{subject} fails {len(failures)} of {len(failures) + len(results)} checks of {kind}.\n"
            f"{found}"
        ) from failures[0][1]
    return CheckReport(subject, kind, tuple(results))


class _Tally:
    def __init__(self):
        self.n_comparisons, self.left_out = 0, {}


_tally: ContextVar[_Tally | None] = ContextVar("_tally", default=None)


@contextmanager
def counted():
    """Count the calls of `require` and `leave_out` inside the block."""
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
    """Record what a check does not cover, and why."""
    tally = _tally.get()
    if tally is not None:
        tally.left_out[text] = None
