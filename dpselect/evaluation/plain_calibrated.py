"""A calibrated classifier of two classes, and its threshold, in scikit-learn alone."""

import numpy as np
from scipy.special import expit, logit
from sklearn.ensemble import StackingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from ..preprocessing.plain_rows import having

# tolerated error of a probability: above the rounding error of its logit, below the documented accuracy
STEP = 2.0**-44
DUMMY_SCORES = np.array([[0.0], [1.0]])


def plain_calibrated(plain, classes, curve, threshold):
    """Return a classifier that puts the scores of `plain` through a curve.

    Parameters
    ----------
    plain : classifier
        Fitted, of scikit-learn, with `predict_proba` or `decision_function`.
    classes : ndarray of shape (2,)
    curve : tuple of 2 ndarrays
        Scores and probabilities.
    threshold : float or None
        Of scores.
    """
    method = "predict_proba" if hasattr(plain, "predict_proba") else "decision_function"
    steps = [] if method == "predict_proba" else [FunctionTransformer(expit)]
    scores, found = curve
    if threshold is not None:
        above = np.nextafter(threshold, 1.0)
        scores, curve = np.union1d(scores, [threshold, above]), (scores, found)
        # a small step at the threshold separates its sides even where the curve is flat
        found = np.interp(scores, *curve) * (1 - 4 * STEP) + STEP + 2 * STEP * (scores > threshold)
    else:
        found = found * (1 - 2 * STEP) + STEP
    steps += [
        FunctionTransformer(np.interp, kw_args={"xp": scores, "fp": found}),
        FunctionTransformer(logit),
        having(
            LogisticRegression(),
            coef_=np.ones((1, 1)),
            intercept_=np.zeros(1),
            classes_=np.arange(2),
            n_features_in_=1,
        ),
    ]
    last = make_pipeline(*steps)
    if threshold is not None:
        last = FixedThresholdClassifier(
            FrozenEstimator(last),
            threshold=float(np.interp(threshold, scores, found)) + STEP,
            response_method="predict_proba",
        ).fit(DUMMY_SCORES, [0, 1])
    first = LogisticRegression().fit(DUMMY_SCORES, classes)
    stack = StackingClassifier(
        [("model", first)], FrozenEstimator(last), cv="prefit", stack_method=method
    ).fit(DUMMY_SCORES, classes)
    return having(
        stack, estimators=[("model", plain)], estimators_=[plain], named_estimators_={"model": plain}
    )
