"""scikit-learn models with the predictions of this library's linear models."""

from copy import deepcopy

import numpy as np
from scipy.special import expit
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import StackingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler

from ..preprocessing.plain_rows import clipping, having

# attributes that fitted models have in common with scikit-learn's
SHARED = ("coef_", "intercept_", "classes_")
# below it (with a margin for rounding) expit is subnormal in float64
LOWEST_LOGIT = -700.0


def plain_model(model, bounds, last):
    """Return a Pipeline that clips rows to `bounds`, and predicts by `last`.

    `last` is a linear model of scikit-learn, or has one as its `regressor_` or its only `estimators_`.
    """
    n, names = model.n_features_in_, getattr(model, "feature_names_in_", None)
    released = {name: deepcopy(vars(model)[name]) for name in SHARED if name in vars(model)}
    having(linear_part(last), **released, n_features_in_=n)
    return Pipeline([*clipping(bounds, n, names).steps, ("model", last)])


def linear_part(last):
    """Return the linear model in the last step of a plain model."""
    if isinstance(last, StackingClassifier):
        return last.estimators_[0]
    return getattr(last, "regressor_", last)


def check_probabilities(model):
    """Refuse a multiclass model if all probabilities of some row may round to 0.

    Scikit-learn divides them by their sum, and has 1 / K of each where that is 0.
    """
    coef, intercept = (
        np.vstack([part, part.mean(axis=0)]) for part in (model.coef_, model.intercept_[:, np.newaxis])
    )
    lengths = {"l2": np.linalg.norm(coef, axis=1), "l1": np.abs(coef).max(axis=1)}
    largest = np.min([bound * lengths[norm] for norm, bound in model.row_bounds().items()], axis=0)
    # for every row, some class has a prediction of at least its intercept less `largest`
    if np.max(intercept[:, 0] - largest) < LOWEST_LOGIT:
        raise ValueError(
            f"{type(model).__name__} has coefficients so large that of some rows the probabilities of "
            f"all {len(model.classes_)} classes may round to 0, and scikit-learn divides by their sum; "
            "write to_onnx in place of to_sklearn, or train with a larger alpha or epsilon."
        )


def logistic_predictor(classes, max_derivative):
    """Return a model whose probabilities are one-vs-rest, divided by their sum.

    They are those of a logistic loss of a largest derivative: see CappedLogisticLoss.
    """
    # with more than two classes, LogisticRegression would compute a softmax
    K = len(classes)
    decisions = 1 if K == 2 else K
    # seeded: where it is fitted below, on dummy rows, it keeps how many steps that took
    linear, of_decisions = (
        LogisticRegression() if K == 2 else SGDClassifier(loss="log_loss", random_state=0)
        for _ in range(2)
    )
    if max_derivative == 1:
        return linear
    less, more = (
        make_pipeline(
            *signs,
            FunctionTransformer(expit),
            FunctionTransformer(np.clip, kw_args={"a_min": max_derivative, "a_max": None}),
            # divide by the value of the dummy row, `max_derivative`, which is 1 for the logistic loss
            MaxAbsScaler(),
            FunctionTransformer(np.log),
        )
        for signs in ([], [FunctionTransformer(np.negative)])
    )
    features = make_union("passthrough", less, more).fit(np.zeros((1, decisions)))  # dummy row
    one = np.eye(decisions)
    having(
        of_decisions,
        coef_=np.hstack([one, -one, one]),
        intercept_=np.zeros(decisions),
        classes_=np.arange(K),
        n_features_in_=3 * decisions,
    )
    dummy_rows = np.eye(K)
    stack = StackingClassifier(
        [("linear", linear.fit(dummy_rows, classes))],
        FrozenEstimator(make_pipeline(features, of_decisions)),
        cv="prefit",
        stack_method="decision_function",
    ).fit(dummy_rows, classes)
    return having(stack, named_estimators_={"linear": linear})


def exponential_predictor(n_features, least, bound):
    """Return a regressor that predicts exp(z), for z clipped below at `least`, and at most `bound`."""
    limit = {"a_min": least, "a_max": float(np.log(bound))}
    rates = make_pipeline(
        FunctionTransformer(np.log, np.exp, check_inverse=False),
        FunctionTransformer(inverse_func=np.clip, inv_kw_args=limit, check_inverse=False),
    )
    regressor = TransformedTargetRegressor(LinearRegression(), transformer=rates, check_inverse=False)
    return regressor.fit(np.zeros((2, n_features)), np.ones(2))  # dummy rows
