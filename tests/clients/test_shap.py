"""shap: what each column adds to the predictions of a model, clipping included."""

import numpy as np
import pytest

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
    # of the last step, whose rows are clipped; of coef_ and long rows it would be another model
    steps, new = numbers.plain[-1].steps, numbers.new[:10]
    before, last = numbers.plain[:-1].transform(new), steps[-1][1]
    clipped = numbers.plain[-1][:-1].transform(before)
    found = shap.LinearExplainer(last, np.zeros((1, 3)))(clipped)
    decision = numbers.model.decision_function(new)
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, decision, atol=1e-9)
    wrong = shap.LinearExplainer(numbers.model[-1], np.zeros((1, 3)))(before)
    assert np.abs(wrong.values.sum(axis=1) + wrong.base_values - decision).max() > 0.1
