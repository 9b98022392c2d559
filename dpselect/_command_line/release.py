"""The search that the command runs, and the file that keeps its model."""

import os
import pickle
from importlib import import_module

import numpy as np
from sklearn.pipeline import Pipeline

from ..linear_model import DPLogisticRegression
from ..model_selection import StabilityGridSearchCV
from ..preprocessing import PublicSchema, tabular_pipeline
from .messages import CommandError, name_of
from .schema import is_categorical


def make_search(domains, classes, alphas, epsilon, ledger=None):
    """Return the unfitted search for columns with these domains.

    Parameters
    ----------
    domains : dict
        Name -> column of the schema or None, in the order of X.
    classes : list
        All labels.
    alphas : list of float
        Candidates; none means alpha="auto".
    epsilon : float
        Of all that is released.
    ledger : PrivacyLedger, default=None
        What pays for it.

    Returns
    -------
    StabilityGridSearchCV
    """
    model = DPLogisticRegression(classes=classes)
    if None in domains.values():  # all columns are on their own scale
        pipeline = Pipeline([("model", model)])
    else:
        # one coefficient for a number, and one for each category: the report names them
        pipeline = tabular_pipeline(
            PublicSchema(domains), model, expansion="linear", categories="onehot"
        )
    grid = {"model__alpha": alphas or ["auto"]}
    return StabilityGridSearchCV(pipeline, grid, epsilon=epsilon, ledger=ledger)


def dummy_row(domains):
    """Return one row that has the form of X and holds nothing of it, for planning.

    Parameters
    ----------
    domains : dict

    Returns
    -------
    ndarray of shape (1, p)
    """
    row = [str(c.categories[0]) if is_categorical(c) else 0.0 for c in domains.values()]
    return np.array([row], dtype=object if any(map(is_categorical, domains.values())) else np.float64)


def plan(search, domains, classes, n_samples):
    """Return the plan of a search, from public numbers alone.

    Parameters
    ----------
    search : StabilityGridSearchCV
    domains : dict
    classes : list
    n_samples : int

    Returns
    -------
    SelectionPlan
    """
    return search.plan(n_samples, len(domains), len(classes), example=dummy_row(domains))


class ModelFile:
    """Where the model goes; everything that can fail early fails when this is made.

    A release that cannot be written has cost its privacy loss for nothing.

    Parameters
    ----------
    path : str
        Ends in .pkl or .skops.

    Raises
    ------
    CommandError
        If the ending is unknown, skops is not installed, or the folder takes no files.
    """

    def __init__(self, path):
        self.path = path
        self._dumps = self._serialiser()
        folder = os.path.dirname(path) or "."
        if not os.path.isdir(folder):
            raise CommandError(f"The folder of --save {name_of(path)} does not exist.")
        if os.path.isdir(path) or not os.access(path if os.path.exists(path) else folder, os.W_OK):
            raise CommandError(f"The file --save {name_of(path)} cannot be written.")

    def _serialiser(self):
        if self.path.lower().endswith(".pkl"):
            return pickle.dumps
        if not self.path.lower().endswith(".skops"):
            raise CommandError(f"The file --save {name_of(self.path)} must end in .skops or .pkl.")
        try:
            return import_module("skops.io").dumps
        except ImportError:
            raise CommandError(
                'Saving as .skops needs skops; run python -m pip install "dpselect[skops]" first.'
            ) from None

    def write(self, model):
        """Write a released model.

        Parameters
        ----------
        model : estimator

        Raises
        ------
        CommandError
            If the disk refuses it.
        """
        content = self._dumps(model)
        try:
            with open(self.path, "wb") as stream:
                stream.write(content)
        except OSError as error:
            raise CommandError(
                f"The file --save {name_of(self.path)} could not be written ({error.strerror}), "
                "and the privacy loss of the model has been spent."
            ) from None
