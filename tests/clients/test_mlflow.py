"""mlflow: a model in two lines; a fit that is logged by itself warns."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from dpselect import PrivacyLeakWarning, privacy_of
from dpselect.export import TRUSTED_TYPES

mlflow = pytest.importorskip("mlflow")
pytest.importorskip("mlflow.sklearn")


@pytest.fixture
def tracking(tmp_path):
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    mlflow.set_experiment(experiment_id=mlflow.create_experiment("e", f"file://{tmp_path}/files"))
    yield
    mlflow.sklearn.autolog(disable=True)
    mlflow.set_tracking_uri(before)


@pytest.mark.slow
def test_mlflow(tracking, people):
    with mlflow.start_run():
        logged = mlflow.sklearn.log_model(
            people.plain, name="model", serialization_format="skops", skops_trusted_types=TRUSTED_TYPES
        )
        mlflow.log_dict(privacy_of(people.model).to_dict(), "privacy.json")
    stated = mlflow.artifacts.load_dict(f"runs:/{logged.run_id}/privacy.json")
    assert stated == privacy_of(people.model).to_dict()
    loaded = mlflow.sklearn.load_model(logged.model_uri)
    assert np.array_equal(loaded.predict_proba(people.new), people.plain.predict_proba(people.new))


@pytest.mark.slow
def test_autologging(tracking, numbers):
    mlflow.sklearn.autolog(log_models=False)
    with pytest.warns(PrivacyLeakWarning, match="autologging"):
        clone(numbers.model).fit(numbers.X, numbers.y)
    (run,) = mlflow.search_runs(output_format="list")
    assert run.data.metrics["training_accuracy_score"] > 0.5  # what the warning is about
    mlflow.sklearn.autolog(disable=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        clone(numbers.model).fit(numbers.X, numbers.y)
    assert len(mlflow.search_runs(output_format="list")) == 1
