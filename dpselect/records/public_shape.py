"""The public shape of records: the number of records, columns and problems."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class PublicShape:
    """The public facts about records, on which decisions may depend.

    Parameters
    ----------
    n_samples : int
        Records n.
    n_features : int
        Columns of X.
    n_problems : int, default=1
        1 for two classes and for other tasks, otherwise the number of classes.
    persons : bool, default=False
        Whether n counts persons, each with any number of rows.

    Examples
    --------
    >>> from dpselect import DPLogisticRegression
    >>> from dpselect.records import PublicShape
    >>> calibration = DPLogisticRegression().calibration(PublicShape(1000, 3), epsilon=0.5)
    >>> calibration.epsilon
    0.5
    """

    n_samples: int
    n_features: int
    n_problems: int = 1
    persons: bool = False


def n_problems(model):
    """Return the number of one-vs-rest problems of a model: 1 for two classes, else their number."""
    classes = getattr(model, "classes", None)
    return 1 if classes is None or np.size(classes) == 2 else np.size(classes)
