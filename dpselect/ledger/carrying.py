"""Pickled estimators keep the ledger that was open, so fits in workers are charged.

Processes that fit for another one (joblib's, Dask's) get pickles of estimators. So a pickle names the
ledgers that were open in its process, and fits of the unpickled estimator spend from them.
"""

from collections.abc import Callable
from contextlib import ExitStack
from contextvars import ContextVar
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ..config import carried_config, get_config
from ..utils.processes import this_process
from .open_blocks import block
from .spending import Origin, has_ended, open_here, opening_process, spending_from

# attribute of an unpickled estimator: its Origin
ORIGIN = "_origin"
# attribute of an estimator that is about to be pickled as a part of a fitted one
WITHHELD = "_withheld"
# the process whose open ledger is withheld, while a fitted estimator is copied for its pickle
_withheld = ContextVar("withheld", default="")


@block
def restored_origin(estimator):
    """Enter the ledger and the mode in which an estimator was pickled, if it was."""
    origin = vars(estimator).get(ORIGIN)
    with ExitStack() as stack:
        if origin is not None:
            stack.enter_context(spending_from(origin))
            stack.enter_context(carried_config(origin.strict))
        yield


class CarriesLedgerMixin:
    """Mixin for estimators whose pickles carry the open ledger, and strict mode.

    It comes before ``BaseEstimator``. Unpickled estimators spend from that ledger when they are fitted,
    and so do their clones; a parameter `ledger`, and a ledger that the fitting thread has opened, come
    first.

    A fitted estimator may be a release, which is no business of the ledger of its maker: its pickle
    records that a ledger was open, but not which one. It is not fitted again where none is. Once the
    block has ended, the same holds for what came back from other processes, as parts of meta-estimators
    do.
    """

    def __reduce_ex__(self, protocol: Any) -> Any:
        origin = self._origin_now()
        reduced: Any = super().__reduce_ex__(protocol)
        make, arguments, state, *others = reduced
        state = {name: part for name, part in (state or {}).items() if name not in (ORIGIN, WITHHELD)}
        if origin == Origin():
            return (make, arguments, state, *others)
        if origin.withheld:
            state = _without_ledgers(state, origin.withheld)
        return (_unpickle, (origin, make, arguments), state, *others)

    def _origin_now(self):
        """Return the Origin to store in a pickle that is made now."""
        withheld = vars(self).get(WITHHELD)
        if withheld is None and _is_fitted(self):
            withheld = opening_process() or vars(self).get(ORIGIN, Origin()).withheld
        if withheld is None and has_ended(vars(self).get(ORIGIN, Origin())):
            # it came back from a worker, maybe as a part of a release
            withheld = this_process().identity
        if withheld is not None:
            return Origin(withheld=withheld)
        with restored_origin(self):
            return replace(open_here(), strict=get_config()["strict"])

    def __copy__(self):
        return _copied(self, super().__reduce_ex__(4), lambda part: part)

    def __deepcopy__(self, memo):
        duplicate = _copied(self, super().__reduce_ex__(4), lambda part: deepcopy(part, memo))
        if _withheld.get():
            vars(duplicate)[WITHHELD] = _withheld.get()
        return duplicate

    @property
    def __sklearn_clone__(self) -> Callable[[], Any]:
        """Hook for `sklearn.base.clone`, which keeps the Origin of an unpickled estimator."""
        if ORIGIN not in vars(self):
            raise AttributeError(f"{type(self).__name__} object has no __sklearn_clone__.")
        return self._clone_with_origin

    def _clone_with_origin(self):
        made_here = copy(self)
        del vars(made_here)[ORIGIN]
        duplicate = clone(made_here)
        vars(duplicate)[ORIGIN] = vars(self)[ORIGIN]
        return duplicate


def _is_fitted(estimator):
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def _without_ledgers(state, process):
    """Copy a state without the ledgers of the estimators in it, which need not be fitted."""
    before = _withheld.set(process)
    try:
        return deepcopy(state)
    finally:
        _withheld.reset(before)


def _copied(estimator, reduced, copied):
    make, arguments, state, *_ = reduced
    duplicate = make(*map(copied, arguments))
    duplicate.__setstate__(copied(state))
    return duplicate


def _unpickle(origin, make, arguments):
    """Make an unpickled object, whose state follows, and store its Origin."""
    estimator = make(*arguments)
    if origin.withheld != this_process().identity:
        vars(estimator)[ORIGIN] = origin
    return estimator
