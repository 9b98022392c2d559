"""Held-out records, which can be evaluated and never shown."""

import warnings

import numpy as np
from sklearn.utils import check_consistent_length

from ..config import usual_settings
from ..rows import align, n_rows
from ..utils.validation import unquoted
from .persons import Persons, check_one_label_a_row


class HeldRecords:
    """Held-out records that are never displayed, pickled or copied.

    Parameters
    ----------
    X : array-like of shape (n, n_features)
    y : array-like of shape (n,) or None
    groups : array-like of shape (n,), default=None
        The id of the person whose row it is.

    Attributes
    ----------
    n_rows : int
        Not public if there are `persons`.
    persons : Persons or None
    """

    def __init__(self, X, y, groups=None):
        if groups is not None:
            check_one_label_a_row(X, y)
        rows, labels = align(X, y)
        unquoted(check_consistent_length, rows, labels, what="X or y")
        # len() of a sparse matrix raises, and counting distributed rows may take a pass
        self.n_rows = n_rows(rows)
        if self.n_rows == 0:
            raise ValueError("X holds no records, so no mean exists; give at least one.")
        self.persons = None if groups is None else Persons.of(groups, rows)
        self._X, self._y = X, y

    def __len__(self):
        """Return the number of records, or of persons."""
        return self.n_rows if self.persons is None else self.persons.n

    def evaluate(self, function):
        """Return ``function(X, y)``."""
        return function(self._X, self._y)

    def evaluate_quietly(self, function):
        """Return ``function(X, y)``, and suppress warnings and errors that may quote the records.

        Raises
        ------
        ValueError
            If `function` raises anything; the original message may quote records.
        """
        try:
            with warnings.catch_warnings(), usual_settings():
                warnings.simplefilter("ignore")
                return self.evaluate(function)
        except Exception as error:
            kind = type(error).__name__
        # outside the except block, so that the original error is not attached as __context__
        raise ValueError(
            f"A question could not be answered on the holdout records ({kind}), and the reason may "
            "quote them; ask a question that has an answer for every record."
        )

    def values(self, function, quietly=True, missing=0.0):
        """Return one number in [0, 1] for each record, or person: the mean of their rows.

        Parameters
        ----------
        function : callable
            ``function(X, y)`` returns one number for each row.
        quietly : bool
            Whether its errors, warnings and shapes are silenced.
        missing : float
            What counts in place of what is not a number.

        Returns
        -------
        ndarray of shape (n,)
            Numbers outside [0, 1] are moved to the nearest end, and what is not a number to
            `missing`: no record can move the mean by more than 1 / n.

        Raises
        ------
        ValueError
            If the function fails, or does not return one number for each record.
        """
        evaluate = self.evaluate_quietly if quietly else self.evaluate
        found = evaluate(lambda X, y: np.asarray(function(X, y), dtype=np.float64))
        if found.shape != (self.n_rows,):
            # the number of values may disclose the number of records
            shape = "another shape" if quietly else f"shape {found.shape}"
            n = "n_samples" if self.persons is not None else self.n_rows
            raise ValueError(
                f"The function returned an array of {shape}, and each record must count for one "
                f"number; return an array of shape ({n},)."
            )
        found = np.clip(np.where(np.isnan(found), missing, found), 0.0, 1.0)
        if self.persons is None:
            return found
        return np.bincount(self.persons.number, found * self.persons.weight, len(self))

    def __reduce__(self):
        raise TypeError(
            "Held records cannot be pickled or copied, because whoever reads the file would see "
            "them and pay for no question; save the answers, and fit again where it is needed."
        )
