"""polars: a model of a table of pandas predicts one of polars."""

import numpy as np
import pytest

pl = pytest.importorskip("polars")


def test_polars(people):
    frame = pl.DataFrame({name: people.new[name].to_list() for name in people.new})
    expected = people.model.predict_proba(people.new)
    for rows in (frame, frame.with_columns(pl.col("income").fill_nan(None))):
        np.testing.assert_allclose(people.plain.predict_proba(rows), expected, atol=1e-12)
        np.testing.assert_allclose(people.model.predict_proba(rows), expected, atol=1e-12)
