"""scikit-learn steps with the effect of this library's, all with public state.

A step gets its attributes from public numbers in place of a fit, or is fitted on a dummy row.
"""

import numpy as np
from sklearn import config_context
from sklearn.compose import ColumnTransformer
from sklearn.metrics.pairwise import manhattan_distances
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.utils import check_array
from sklearn.utils.extmath import row_norms


def having(step, **attributes):
    """Return a step with public attributes set, instead of fitting it."""
    vars(step).update(attributes)
    return step


def checked_rows(n_features):
    """Return a step that makes rows float64, and refuses non-numbers and columns with other names."""
    as_read = {"dtype": "float64", "accept_sparse": "csr", "ensure_all_finite": False}
    step = FunctionTransformer(check_array, kw_args=as_read, validate=True, accept_sparse=True)
    return step.fit(np.ones((1, n_features)))


def as_float64(gaps=False):
    """Return a step that refuses non-numbers; NaN passes if there may be `gaps`."""
    finite = {"ensure_all_finite": "allow-nan" if gaps else True}
    return FunctionTransformer(check_array, kw_args={"dtype": "float64", **finite})


def affine(centre, scale):
    """Return a step that maps x to (x - centre) / scale; nan stays nan."""
    centre, scale = np.atleast_1d(np.float64(centre)), np.atleast_1d(np.float64(scale))
    return having(StandardScaler(), mean_=centre, scale_=scale, n_features_in_=len(scale))


def between(low, high, n_features=1):
    """Return a step that clips all columns to [low, high]; nan stays nan."""
    return having(
        MinMaxScaler(feature_range=(low, high), clip=True),
        min_=np.zeros(n_features),
        scale_=np.ones(n_features),
        n_features_in_=n_features,
    )


def scaling(low, high, names):
    """Return steps that clip columns to [low, high] and map them to [-1, 1]."""
    n = len(low)
    return _fitted(
        n,
        names,
        columns=checked_rows(n),
        scale=affine(low / 2 + high / 2, high / 2 - low / 2),
        clip=between(-1.0, 1.0, n),
    )


def clipping(bounds, n_features, names=None):
    """Return steps that scale rows down to norms, such as ``{"l2": 1.0}``.

    They divide (x, |x|, bound) by its largest entry, which is the larger one of |x| and the bound, and
    multiply x by the bound. Further norms are columns of their own, in units of the first.
    """
    unit = next(iter(bounds.values()))
    weights = {norm: unit / bound for norm, bound in bounds.items()}
    constant = make_pipeline(*lengths(n_features, "l2"), PolynomialFeatures(degree=0))
    union = FeatureUnion(
        [
            ("rows", "passthrough"),
            *((norm, make_pipeline(*lengths(n_features, norm))) for norm in bounds),
            ("bound", constant),
        ],
        transformer_weights={**weights, "bound": unit},
    )
    rows = ColumnTransformer(
        [("rows", "passthrough", slice(0, n_features))],
        transformer_weights={"rows": unit},
        sparse_threshold=1.0,
    )
    return _fitted(
        n_features,
        names,
        columns=checked_rows(n_features),
        norms=union,
        largest=Normalizer("max", copy=False),
        rows=rows,
    )


def lengths(n_features, norm):
    """Return the steps from rows to a column of their norms."""
    if norm == "l1":
        origin = np.zeros((1, n_features))
        return [FunctionTransformer(manhattan_distances, kw_args={"Y": origin}, accept_sparse=True)]
    column = FunctionTransformer(np.expand_dims, kw_args={"axis": 1})
    return [FunctionTransformer(row_norms, accept_sparse=True), column]


@config_context(transform_output="default")
def _fitted(n_features, names, **steps):
    """Return a Pipeline of these steps; those that are not fitted see a dummy row."""
    row = np.zeros((1, n_features))
    for step in steps.values():
        fitted = hasattr(step, "n_features_in_")
        row = step.transform(row) if fitted else step.fit_transform(row)
    if names is not None:
        having(steps["columns"], feature_names_in_=np.array(names, dtype=object))
    # dataframes between steps would have other column names
    return Pipeline(list(steps.items())).set_output(transform="default")
