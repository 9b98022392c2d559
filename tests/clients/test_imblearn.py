"""imbalanced-learn: its pipelines resample records, and are refused; its scores take predictions."""

import pytest
from sklearn.base import clone

from dpselect import StabilityGridSearchCV, privacy_of
from dpselect.export import to_sklearn

imblearn = pytest.importorskip("imblearn")
metrics = pytest.importorskip("imblearn.metrics")
over_sampling = pytest.importorskip("imblearn.over_sampling")


def test_imblearn(numbers):
    pipeline = imblearn.pipeline.make_pipeline(
        over_sampling.RandomOverSampler(random_state=0), clone(numbers.model[-1])
    )
    with pytest.raises((ValueError, TypeError), match="container of its own kind"):
        StabilityGridSearchCV(pipeline, {}, epsilon=1.0).fit(numbers.X, numbers.y)
    pipeline.fit(numbers.X, numbers.y)
    for refused in (privacy_of, to_sklearn):
        with pytest.raises(ValueError, match="container of its own kind"):
            refused(pipeline)


def test_scores(numbers):
    own, plain = (
        metrics.geometric_mean_score(numbers.labels, model.predict(numbers.new))
        for model in (numbers.model, numbers.plain)
    )
    assert own == plain > 0.5
