"""skrub: its vectorizer learns from the records, and is refused; its plans take fitted models."""

import numpy as np
import pytest

from dpselect import DPLogisticRegression, StabilityGridSearchCV, privacy_of
from dpselect.export import to_sklearn

skrub = pytest.importorskip("skrub")


def test_skrub(people):
    model = skrub.tabular_pipeline(DPLogisticRegression(classes=[0, 1]))
    with pytest.raises(ValueError, match="learns from the data"):
        StabilityGridSearchCV(model, {}, epsilon=1.0).fit(people.X, people.y)
    model.fit(people.X, people.y)
    for refused in (privacy_of, to_sklearn):
        with pytest.raises(ValueError, match="learns from the data"):
            refused(model)


def test_a_selection_of_columns(people):
    frame = people.new.assign(name="x")
    chosen = skrub.SelectCols(list(people.new)).fit_transform(frame)
    assert np.array_equal(people.plain.predict(chosen), people.model.predict(people.new))
