"""pytest plugin: run scikit-learn's own tests with our search as GridSearchCV.

Load it with ``-p swap_plugin`` (its folder on PYTHONPATH): plugins given by -p
are configured before any test module is imported, so ``from sklearn.model_selection import
GridSearchCV`` in a test module gets ours. Each test's number of fits of ours
goes into the junit file, as the property ``swapped_fits``.
"""

from types import FunctionType

import pytest
import sklearn.model_selection
import sklearn.model_selection._search as sklearn_search

# Before the swap: the twin must be scikit-learn's.
from dpselect import StabilityGridSearchCV
from dpselect.model_selection import nonprivate

REAL = sklearn.model_selection.GridSearchCV
fits = 0


class GridSearchCV(StabilityGridSearchCV):
    """Ours, with epsilon=inf by default; see ``__init__`` below."""

    def fit(self, X, y=None, **params):
        global fits
        fits += 1
        return super().fit(X, y, **params)


# The very same constructor, code and all, but for one default.
_init = StabilityGridSearchCV.__init__
GridSearchCV.__init__ = FunctionType(
    _init.__code__,
    _init.__globals__,
    "__init__",
    _init.__defaults__,
    _init.__closure__,
)
GridSearchCV.__init__.__kwdefaults__ = {**_init.__kwdefaults__, "epsilon": float("inf")}


def pytest_configure():
    # not at import: whoever collects this file, for its doctests say, must not be swapped
    sklearn.model_selection.GridSearchCV = GridSearchCV
    # all_estimators(), called while test_metaestimators.py is imported, looks into the
    # defining modules and would list two classes named GridSearchCV. Put back once
    # collected: workers must be able to unpickle the twin by its name.
    sklearn_search.GridSearchCV = GridSearchCV


def pytest_collection_finish():
    sklearn_search.GridSearchCV = REAL


def pytest_collection_modifyitems(items):
    assert nonprivate.GridSearchCV is REAL
    assert issubclass(REAL, sklearn_search.BaseSearchCV)
    for module in {item.module for item in items}:
        assert getattr(module, "GridSearchCV", GridSearchCV) is GridSearchCV, module


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    before = fits
    try:
        return (yield)
    finally:
        item.user_properties.append(("swapped_fits", fits - before))
