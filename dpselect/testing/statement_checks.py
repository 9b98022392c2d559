"""An author's statement about a release, which makes it attackable."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ReleaseStatement:
    """The contents of an estimator's release, and the records for which it is checked.

    Neighbouring data sets differ in one record that is replaced; the number of records is public.

    Parameters
    ----------
    attributes : tuple of str, default=None
        Attributes that hold numbers with noise. Nothing else that a fitted object keeps may depend on
        the records, but for what is `derived`. None takes all names with an underscore at the end that
        `_release` returns, and ``gram_`` and ``moment_``, ``density_``, ``bounds_``, or ``coef_`` and
        ``intercept_``, whichever the estimator has first.
    derived : tuple of str, default=()
        Attributes that are computed from those, and from public numbers. Those that the estimator
        names in `keeps` are some, too.
    row_bound : str, default="data_norm"
        Parameter with the norm to which rows are scaled down, if there is one of this name.
    n_features : tuple of two int, default=(1, 3)
        Columns of the records: as few as possible, and some.
    draw_records : callable, default=None
        ``draw_records(rng, n_samples, n_features)`` returns X, or ``(X, y)``, of ordinary size. None
        draws rows of [-1, 1], labels from `classes`, and targets of [-1, 1], or small counts if
        targets must not be negative. Weights of records are drawn besides.
    settings : tuple of dict, default=()
        Parameters, each with which the estimator is attacked as well. Every numeric parameter is
        multiplied by 4 in any case.

    Examples
    --------
    >>> from dpselect.testing import ReleaseStatement
    >>> statement = ReleaseStatement(("mean_",), settings=({"bound": 0.1},))
    """

    attributes: tuple[str, ...] | None = None
    derived: tuple[str, ...] = ()
    row_bound: str = "data_norm"
    n_features: tuple[int, int] = (1, 3)
    draw_records: Callable[..., Any] | None = None
    settings: tuple[Mapping[str, Any], ...] = field(default=())
