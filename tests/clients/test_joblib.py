"""joblib: files, and predictions in other processes."""

import joblib
import numpy as np
import pytest


@pytest.mark.slow
def test_joblib(people, tmp_path):
    expected = people.model.predict_proba(people.new)
    for model in (people.model, people.plain):
        joblib.dump(model, tmp_path / "model.joblib")
        loaded = joblib.load(tmp_path / "model.joblib")
        with joblib.parallel_config("loky", n_jobs=2):
            halves = joblib.Parallel()(
                joblib.delayed(loaded.predict_proba)(part) for part in (people.new[:50], people.new[50:])
            )
        np.testing.assert_allclose(np.vstack(halves), expected, atol=1e-12)
