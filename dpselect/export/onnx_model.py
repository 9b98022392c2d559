"""Convert a fitted model to a file for every ONNX runtime."""

import json
from collections.abc import Collection
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..evaluation import CalibratedModel
from ..preprocessing.estimator_loss import privacy_of
from ..preprocessing.pipeline_check import check_pipeline_privacy
from ..utils.parameters import as_fitted
from ..utils.type_aliases import Estimator
from .graph import Graph
from .onnx_parts import add, calibrate, inputs

OUTPUTS = ("label", "decision", "probabilities", "prediction")


def to_onnx(estimator: Estimator, trusted_steps: Collection[str | type] = ()) -> Any:
    """Convert a model to an ONNX graph, for runtimes without Python.

    It predicts as `estimator` does, in float64, and states the privacy loss in its metadata.

    Parameters
    ----------
    estimator : estimator
        Fitted: a linear model of dpselect, a Pipeline with one whose steps are dpselect's, a search, or
        what :func:`~dpselect.calibrated` returns for a classifier of two classes with probabilities.
    trusted_steps : collection of str or class, default=()
        As for :func:`to_sklearn`.

    Returns
    -------
    onnx.ModelProto
        To be written by ``onnx.save``. Inputs: ``X`` of shape (n, n_features); or, before a
        TableEncoder, each column by its name, of shape (n, 1), numbers as float64 (nan is a gap) and
        categories as text. Outputs: ``prediction`` of shape (n,); or ``label`` of shape (n,),
        ``decision`` as from `decision_function`, and ``probabilities`` of shape (n, n_classes).

    Raises
    ------
    ImportError
        If onnx is not installed: ``pip install dpselect[onnx]``.
    NotFittedError
        If it is not fitted.
    TypeError
        If it has a part that is none of dpselect's, or labels that ONNX does not know.
    ValueError
        If a step learned from the data and did not pay for it, a category is written as a gap is, or a
        column is called as an output is.

    Notes
    -----
    Rows with a gap that the schema does not allow, or with a number that is none: a regression predicts
    nan, and a classification is refused by the runtime, for all rows at once. Categories are written as
    :func:`to_sklearn` says.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect import DPLogisticRegression
    >>> from dpselect.export import to_onnx
    >>> from dpselect.preprocessing import tabular_pipeline
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.integers(18, 100, size=(1000, 1)), rng.integers(2, size=1000)
    >>> model = tabular_pipeline({"age": (18, 100)}, DPLogisticRegression(classes=[0, 1])).fit(X, y)
    >>> graph = to_onnx(model)
    >>> [given.name for given in graph.graph.input]
    ['age']
    """
    graph = Graph()
    check_is_fitted(estimator)
    trained = as_fitted(estimator.estimator if isinstance(estimator, CalibratedModel) else estimator)
    chosen = getattr(trained, "best_estimator_", trained)
    trusted_steps = (*trusted_steps, *getattr(trained, "trusted_steps", ()))
    check_pipeline_privacy(chosen, trusted_steps)
    loss = privacy_of(estimator, trusted_steps)
    first = chosen
    while isinstance(first, Pipeline):
        first = next(part for _, part in first.steps if part not in (None, "passthrough"))
    rows = inputs(graph, first)
    twice = [name for name in OUTPUTS if name in (rows if isinstance(rows, dict) else ())]
    if twice:
        raise ValueError(
            f"Columns {twice} are called as outputs of the graph are; give them other names in the "
            "table and the schema."
        )
    add(chosen, graph, rows)
    if isinstance(estimator, CalibratedModel):
        calibrate(estimator, graph)
    return graph.model("dpselect", privacy=json.dumps(loss.to_dict()))
