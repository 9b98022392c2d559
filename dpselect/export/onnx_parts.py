"""ONNX operators for each class of this library."""

from functools import singledispatch

import numpy as np
from scipy.linalg import helmert
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from ..base.estimator import PrivateDensity
from ..linear_model.classifier import DPLinearClassifier
from ..linear_model.logistic import DPLogisticRegression
from ..linear_model.model import LinearModel
from ..linear_model.poisson import LEAST, DPPoissonRegressor
from ..linear_model.ridge import DPRidge
from ..preprocessing import BoundedScaler, DPBoundsScaler, NormClipper, TableEncoder
from ..preprocessing.plain_tables import spellings
from ..preprocessing.schema import CategoryColumn
from ..preprocessing.terms import (
    CategoryTerm,
    CosineTerm,
    CycleTerm,
    FourierTerm,
    NumberTerm,
    PairTerm,
    turns,
)
from ..utils.parameters import as_fitted
from .graph import INTEGERS, NUMBERS, TEXT


def inputs(graph, step):
    """Return the inputs of a graph whose first step is given: rows, or a dict of columns."""
    if not isinstance(step, TableEncoder):
        return graph.input("X", step.n_features_in_)
    columns = step.schema_.columns
    return {
        name: graph.input(str(name), 1, TEXT if isinstance(column, CategoryColumn) else NUMBERS)
        for name, column in columns.items()
    }


@singledispatch
def add(step, graph, rows):
    """Add the operators of a step, and return its output rows; None for a model."""
    raise TypeError(
        f"{type(step).__name__} has no operators here, and to leave it out would be wrong in silence; "
        "build the Pipeline of TableEncoder, BoundedScaler, DPBoundsScaler or NormClipper and a linear "
        "model of dpselect, or hand over to_sklearn(...)."
    )


@add.register(PrivateDensity)
def _density(step, graph, rows):
    raise TypeError(
        f"{type(step).__name__} has no operators here; write to_frame(), a table of all that was "
        "released, or save the model with skops."
    )


@add.register(str)
@add.register(type(None))
def _passthrough(step, graph, rows):
    return rows


@add.register(FrozenEstimator)
def _frozen(step, graph, rows):
    return add(step.estimator, graph, rows)


@add.register(Pipeline)
def _pipeline(step, graph, rows):
    for _, part in step.steps:
        rows = add(part, graph, rows)
    return rows


# ---- rows


@add.register(BoundedScaler)
@add.register(DPBoundsScaler)
def _scaler(step, graph, rows):
    low, high = step.bounds_.T if isinstance(step, DPBoundsScaler) else step.limits(step.n_features_in_)
    half = high / 2 - low / 2
    return graph.Div(graph.Sub(graph.between(rows, low, high), low / 2 + high / 2), half)


@add.register(NormClipper)
def _clipper(step, graph, rows):
    return graph.clipped(rows, {step.norm: float(step.bound)})


# ---- tables


@add.register(TableEncoder)
def _encoder(step, graph, columns):
    read = {name: _read(column, graph, columns[name]) for name, column in step.schema_.columns.items()}
    return graph.concatenated(
        [features(term, graph, *(read[name] for name in term.columns)) for term in step.terms_]
    )


def _read(column, graph, cells):
    """Return indices among the levels, or one more for others; or clipped numbers, NaN for a gap."""
    if isinstance(column, CategoryColumn):
        known, n = spellings(column), len(column.levels)
        return graph.LabelEncoder(
            cells,
            keys_strings=[*known],
            values_int64s=[place % (n + 1) for place in known.values()],
            default_int64=column.levels.index("<unknown>") if column.unknown else n,
        )
    for code in column.codes:
        cells = graph.Where(graph.Equal(cells, np.float64(code)), np.float64(np.nan), cells)
    return graph.between(cells, column.low, column.high)


def _scaled(column, graph, x, gap):
    """Return z between 0 and 1, with missing numbers filled, or else `gap`."""
    low, high = (TRANSFORMS_AT[column.transform](end) for end in (column.low, column.high))
    z = graph.Div(graph.Sub(TRANSFORMS[column.transform](graph, x), low), high - low)
    if not column.missing:
        return z
    fill = gap if column.fill is None else column.read(np.array([column.fill]))[0]
    return graph.Where(graph.IsNaN(z), np.float64(fill), z)


def _arcsinh(graph, x):
    # scaled, so that squares of large numbers do not overflow
    size = graph.Abs(x)
    unit = graph.Max(size, np.float64(1))
    scaled, one = graph.Div(size, unit), graph.Div(np.float64(1), unit)
    root = graph.Sqrt(graph.Add(graph.Mul(scaled, scaled), graph.Mul(one, one)))
    value = graph.Add(graph.Log(unit), graph.Log(graph.Add(scaled, root)))
    return graph.Mul(graph.Sign(x), value)


TRANSFORMS = {
    None: lambda graph, x: x,
    "log1p": lambda graph, x: graph.Log(graph.Add(x, np.float64(1))),
    "arcsinh": _arcsinh,
}
TRANSFORMS_AT = {None: np.float64, "log1p": np.log1p, "arcsinh": np.arcsinh}


@singledispatch
def features(term, graph, *read):
    """Return the features of a term."""
    raise TypeError(f"{type(term).__name__} has no operators here; write to_sklearn(...).")


@features.register(NumberTerm)
def _number(term, graph, read):
    (column,) = term.parts
    x = _scaled(column, graph, read, 0.5)
    if term.is_line:
        x = graph.Sub(graph.Mul(x, np.float64(2)), np.float64(1))
    else:
        i = np.arange(1, term.n_curves + 1)
        x = graph.Div(_turned(column.periodic, graph, x, term.n_curves), np.sqrt(i)[np.newaxis])
    if not column.missing:
        return x
    gaps = graph.IsNaN(read)
    if column.fill is None:
        x = graph.Where(gaps, np.float64(0), x)
    return graph.Concat(x, graph.cast(gaps, NUMBERS), axis=1)


@features.register(CategoryTerm)
def _category(term, graph, read):
    n = len(term.levels)
    if term.cuts:
        above = graph.GreaterOrEqual(read, np.array([term.cuts]))
        places = graph.ReduceSum(graph.cast(above, INTEGERS), np.array([1]), keepdims=1)
        # the index of a gap: its own level, or the appended row of NaN
        read = graph.Where(graph.IsNaN(read), np.int64(len(term.cuts) + 1), places)
    codes = np.eye(n) if term.code == "onehot" else helmert(n).T
    nothing = np.full((1, codes.shape[1]), np.nan if term.cuts else 0.0)
    return graph.Squeeze(graph.Gather(np.vstack([codes, nothing]), read, axis=0), np.array([1]))


@features.register(CosineTerm)
def _cosine(term, graph, read):
    (column,) = term.parts
    x = _turned(column.periodic, graph, _scaled(column, graph, read, 0.5), len(term.names))
    if column.missing and column.fill is None:
        x = graph.Where(graph.IsNaN(read), np.float64(0), x)
    return x


@features.register(CycleTerm)
def _cycle(term, graph, read):
    (before, cycles), i = term.turns_of_z, np.arange(1, len(term.names) + 1)
    z = _scaled(term.source, graph, read, 0.0)
    turned = graph.Add(graph.Mul(z, np.float64(cycles)), np.float64(before))
    x = graph.Div(_turned(True, graph, turned, len(i)), np.sqrt(i)[np.newaxis])
    if term.source.missing and term.source.fill is None:
        x = graph.Where(graph.IsNaN(read), np.float64(0), x)
    return x


def _turned(periodic, graph, z, n):
    k, shift = turns(n, periodic)
    angle = graph.Mul(z, np.pi * k[np.newaxis])
    return graph.cos(graph.Sub(angle, np.pi * shift[np.newaxis]) if periodic else angle)


@features.register(PairTerm)
def _pair(term, graph, *read):
    one, other = (features(factor, graph, x) for factor, x in zip(term.factors, read))
    m, k = (len(factor.names) for factor in term.factors)
    first = graph.Gather(one, np.repeat(np.arange(m), k), axis=1)
    second = graph.Gather(other, np.tile(np.arange(k), m), axis=1)
    return graph.Mul(graph.Mul(first, second), np.float64(term.amplitude))


@features.register(FourierTerm)
def _fourier(term, graph, *read):
    z = graph.concatenated([_scaled(column, graph, x, 0.5) for column, x in zip(term.parts, read)])
    x = graph.Sub(graph.Mul(z, np.float64(2)), np.float64(1))
    angle = graph.Add(graph.MatMul(x, term.weights), term.offsets)
    return graph.Mul(graph.cos(angle), np.float64(np.sqrt(2 / len(term.offsets))))


# ---- models


@add.register(LinearModel)
@add.register(DPRidge)
def _linear_model(model, graph, rows):
    model = as_fitted(model)
    coef, intercept = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    decision = graph.Add(graph.MatMul(graph.clipped(rows, model.row_bounds()), coef.T), intercept)
    if isinstance(model, DPLinearClassifier):
        _classes(model, graph, decision)
        return
    if isinstance(model, DPPoissonRegressor):
        highest = np.log(float(model.target_bound))
        decision = graph.Exp(graph.Max(graph.Min(decision, highest), np.float64(LEAST)))
    graph.output("prediction", graph.Squeeze(decision, np.array([1])), ["n"])


def _classes(model, graph, decision):
    classes, axis = model.classes_, np.array([1])
    if isinstance(model, DPLogisticRegression) and model.largest_derivative < 1:
        decision = _log_odds(graph, decision, np.float64(model.largest_derivative))
    K, wrong = len(classes), graph.IsNaN(graph.ReduceSum(decision, axis, keepdims=0))
    if K == 2:
        single = graph.Squeeze(decision, axis)
        places = graph.cast(graph.Greater(single, np.float64(0)), INTEGERS)
        graph.output("decision", single, ["n"])
    else:
        places = graph.ArgMax(decision, axis=1, keepdims=0)
        graph.output("decision", decision, ["n", K])
    _output_labels(classes, graph, places, wrong)
    if isinstance(model, DPLogisticRegression):
        graph.output("probabilities", _probabilities(graph, decision, K), ["n", K])


def _log_odds(graph, z, largest):
    """Return the log odds of predictions of CappedLogisticLoss."""
    less, more = (graph.Log(graph.Max(graph.Sigmoid(u), largest)) for u in (z, graph.Neg(z)))
    return graph.Sub(z, graph.Sub(less, more))


def _output_labels(classes, graph, places, wrong):
    # an index out of range makes runtimes refuse rows without a decision
    places = graph.Where(wrong, np.int64(len(classes)), places)
    kind = classes.dtype.kind
    if kind == "U" or (kind == "O" and all(isinstance(label, str) for label in classes)):
        labels = classes.astype(TEXT)
    elif kind in "biuf":
        labels = classes.astype({"b": bool, "f": NUMBERS}.get(kind, INTEGERS))
    else:
        raise TypeError(
            f"Labels of type {classes.dtype} are unknown to ONNX; train on texts or on numbers."
        )
    graph.output("label", graph.Gather(labels, places), ["n"], labels.dtype)


def calibrate(model, graph):
    """Apply the curve of a CalibratedModel to probabilities, and set its threshold."""
    given = [output.name for output in graph.outputs]
    if "probabilities" not in given or len(model.classes_) > 2:
        raise TypeError(
            "A calibrated model has operators here only of two classes with probabilities; hand over "
            "the model before calibration, or to_sklearn(...)."
        )
    # remove outputs of the uncalibrated model: its decision implies other labels
    _, _, before = map(graph.withdrawn, ("label", "decision", "probabilities"))
    score, axis = graph.Gather(before, np.array([1]), axis=1), np.array([1])
    scores, curve = model.curve_
    knots = np.union1d(scores, [0.0, 1.0])
    heights = np.interp(knots, scores, curve)
    widths = np.diff(knots)
    along = graph.Min(
        graph.Max(graph.Sub(score, knots[np.newaxis, :-1]), np.float64(0)), widths[np.newaxis]
    )
    p = graph.Add(graph.MatMul(along, (np.diff(heights) / widths)[:, np.newaxis]), heights[:1])
    compared = (p, 0.5) if model.threshold is None else (score, model.upper_threshold)
    positive = graph.Squeeze(graph.Greater(compared[0], np.float64(compared[1])), axis)
    wrong = graph.Squeeze(graph.IsNaN(score), axis)
    _output_labels(model.classes_, graph, graph.cast(positive, INTEGERS), wrong)
    graph.output("probabilities", graph.Concat(graph.Sub(np.float64(1), p), p, axis=1), ["n", 2])


def _probabilities(graph, decision, K):
    if K == 2:
        return graph.Concat(graph.Sigmoid(graph.Neg(decision)), graph.Sigmoid(decision), axis=1)
    # in logarithms, so that very negative decisions do not all round to 0
    tail = graph.Log(graph.Add(graph.Exp(graph.Neg(graph.Abs(decision))), np.float64(1)))
    return graph.Softmax(graph.Sub(graph.Min(decision, np.float64(0)), tail), axis=1)
