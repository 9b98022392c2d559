"""pandas: columns by name, in all types; others are refused."""

import numpy as np
import pytest


def test_pandas(people):
    new, expected = people.new, people.model.predict_proba(people.new)
    for frame in (new, new[new.columns[::-1]], new.convert_dtypes(), new.astype({"job": "category"})):
        np.testing.assert_allclose(people.plain.predict_proba(frame), expected, atol=1e-12)
    with pytest.raises(ValueError, match="age"):
        people.plain.predict(new.rename(columns={"age": "years"}))
