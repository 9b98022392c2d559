"""shap: what each column adds to the predictions of a model, clipping included."""

import numpy as np
import pytest
from scipy.special import expit

shap = pytest.importorskip("shap")


def explained(model, background, new):
    def predict(rows):
        return model.predict_proba(rows)[:, 1]

    return shap.Explainer(predict, background, algorithm="exact")(new)


def test_shap(numbers):
    # a background is shown with the values: public rows, and no records
    background, new = np.zeros((1, 3)) + [[0.5, 0.0, -0.5]], numbers.new[:10]
    own, plain = (explained(model, background, new) for model in (numbers.model, numbers.plain))
    np.testing.assert_allclose(plain.values, own.values, atol=1e-12)
    total = plain.values.sum(axis=1) + plain.base_values
    np.testing.assert_allclose(total, numbers.model.predict_proba(new)[:, 1], atol=1e-12)


def test_linear_explainer(numbers):
    # of what is linear in the last step, whose rows are clipped; of coef_ and long rows it would be
    # another model
    steps, new = numbers.plain[-1].steps, numbers.new[:10]
    before, last = numbers.plain[:-1].transform(new), steps[-1][1].estimators_[0]
    clipped = numbers.plain[-1][:-1].transform(before)
    decision = numbers.model.decision_function(new)

    def log_odds(model, rows):
        found = shap.LinearExplainer(model, np.zeros((1, 3)))(rows)
        linear, most = found.values.sum(axis=1) + found.base_values, numbers.model[-1].largest_derivative
        return np.log(np.minimum(expit(linear), most) / np.minimum(expit(-linear), most))

    np.testing.assert_allclose(log_odds(last, clipped), decision, atol=1e-9)
    assert np.abs(log_odds(numbers.model[-1], before) - decision).max() > 0.1
