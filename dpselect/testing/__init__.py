"""Checks that attack private estimators and strategies, for this library's and third-party ones."""

from .checks import check_private_estimator, private_estimator_checks
from .statement_checks import ReleaseStatement
from .strategies import check_strategy, strategy_checks
from .tally import CheckReport, CheckResult

__all__ = [
    "CheckReport",
    "CheckResult",
    "ReleaseStatement",
    "check_private_estimator",
    "check_strategy",
    "private_estimator_checks",
    "strategy_checks",
]
