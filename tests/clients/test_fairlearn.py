"""fairlearn: errors by group, and thresholds around a model that is not fitted again."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score

metrics = pytest.importorskip("fairlearn.metrics")
postprocessing = pytest.importorskip("fairlearn.postprocessing")


def test_fairlearn(numbers):
    group = np.where(numbers.new[:, 1] > 0, "a", "b")
    own, plain = (
        metrics.MetricFrame(
            metrics=accuracy_score,
            y_true=numbers.labels,
            y_pred=model.predict(numbers.new),
            sensitive_features=group,
        ).by_group
        for model in (numbers.model, numbers.plain)
    )
    assert own.equals(plain) and set(own.index) == {"a", "b"}


def test_thresholds(numbers):
    # fitted to records that took no part in training: the thresholds are functions of these
    group, found = np.where(numbers.new[:, 1] > 0, "a", "b"), []
    for model in (numbers.model, numbers.plain):
        fair = postprocessing.ThresholdOptimizer(
            estimator=model, prefit=True, predict_method="predict_proba"
        ).fit(numbers.new, numbers.labels, sensitive_features=group)
        found.append(fair.predict(numbers.new, sensitive_features=group, random_state=0))
    assert np.array_equal(*found)
