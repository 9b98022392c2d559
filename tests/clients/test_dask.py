"""dask: blocks of rows on a cluster."""

import numpy as np
import pytest

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")


def test_dask(numbers, people):
    rows = da.from_array(numbers.new, chunks=(30, 3))
    found = rows.map_blocks(numbers.plain.predict_proba, dtype=float, chunks=(rows.chunks[0], (2,)))
    np.testing.assert_allclose(found, numbers.model.predict_proba(numbers.new), atol=1e-12)
    frame = dd.from_pandas(people.new, npartitions=3)
    found = frame.map_partitions(people.plain.predict, meta=np.array([0])).compute()
    assert np.array_equal(found, people.model.predict(people.new))
