"""Progress of a search in public facts: which step, which candidates, and how many are left.

Never how long something took, nor how many passes a solver made: both depend on the records. Models do
not tell of their training: "random_stopping" must not tell how many it trains.
"""

import logging
from contextlib import contextmanager

from ..utils.type_aliases import Function

try:  # scikit-learn 1.9 and later
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]  # in place of the import
        """Stands where scikit-learn has no callbacks."""

    def _with_callbacks(method):
        return method


def with_callbacks(fit: Function) -> Function:
    """Decorate the `fit` of a search so that scikit-learn's callbacks are called."""
    return _with_callbacks(fit)


class Progress:
    """Tells how far a search is: to the log, by lines of text if it is verbose, and to callbacks.

    scikit-learn's callbacks get the search, which holds no results yet, and never records, models or
    scores; they cannot stop it. A context manager, for the whole of a fit. Without a search, nothing is
    told.
    """

    def __init__(self, search=None):
        self._search = search
        self._root = None

    def __enter__(self):
        if isinstance(self._search, CallbackSupportMixin) and hasattr(
            self._search, "_init_callback_context"
        ):
            self._root = self._search._init_callback_context(max_subtasks=None)
            self._root.call_on_fit_task_begin(estimator=self._search)
        return self

    def __exit__(self, kind, *rest):
        if self._root is not None and kind is None:
            self._root.call_on_fit_task_end(estimator=self._search)

    def over(self, items, what):
        """Yield items, whose number and order are public, and tell when each is done."""
        items = list(items)
        root = self._root and self._begin(self._root, what, len(items))
        for i, item in enumerate(items, start=1):
            task = root and self._begin(root, f"{what} {i}", 0)
            yield item
            if task:
                task.call_on_fit_task_end(estimator=self._search)
            self._say(f"{what} {i} of {len(items)}: done")
        if root:
            root.call_on_fit_task_end(estimator=self._search)

    def step(self, what):
        """Report that a step begins; which steps there are follows from public numbers."""
        self._say(what)
        if self._root is not None:
            self._begin(self._root, what, 0).call_on_fit_task_end(estimator=self._search)

    @contextmanager
    def handed_on(self, what, estimator):
        """Report a step that another estimator does without privacy.

        scikit-learn's callbacks that are propagated, such as its ProgressBar, are told of each fit.
        """
        self._say(what)
        if self._root is None:
            yield
            return
        task = self._begin(self._root, what, 0)
        with task.propagate_callback_context(estimator):
            yield
        task.call_on_fit_task_end(estimator=self._search)

    def _say(self, text):
        if self._search is None:
            return
        logging.getLogger(f"dpselect.{type(self._search).__name__}").info(text)
        if self._search.verbose:
            print(text)

    def _begin(self, parent, name, n_tasks):
        task = parent.subcontext(task_name=name, max_subtasks=n_tasks)
        task.call_on_fit_task_begin(estimator=self._search)
        return task
