"""Fitted models of rows and of a table, the same as plain scikit-learn, and new records."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from dpselect import DPLogisticRegression
from dpselect.export import to_sklearn
from dpselect.preprocessing import BoundedScaler, tabular_pipeline

SCHEMA = {"age": (18, 90), "job": ["clerk", "farmer"], "income": {"bounds": (0, 1e5), "missing": True}}
MODEL = DPLogisticRegression(epsilon=5.0, classes=[0, 1])


def table(seed, n=400):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(10, 100, n),
            "job": rng.choice(["clerk", "farmer", "pirate"], n),
            "income": np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(10, 1, n)),
        }
    )


def pytest_collection_modifyitems(items):
    """Let other libraries warn of what they do with each other."""
    for item in items:
        if "clients" in item.path.parts:
            item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture(scope="session")
def numbers():
    """A model of rows of numbers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] > 0).astype(int)
    model = clone(make_pipeline(BoundedScaler((-2, 2)), MODEL)).fit(X, y)
    new = rng.normal(size=(100, 3)) * 2
    return SimpleNamespace(
        X=X, y=y, model=model, plain=to_sklearn(model), new=new, labels=(new[:, 0] > 0).astype(int)
    )


@pytest.fixture(scope="session")
def people():
    """A model of a table."""
    X = table(0)
    y = (X["age"] > 50).astype(int)
    model = tabular_pipeline(SCHEMA, MODEL).fit(X, y)
    return SimpleNamespace(X=X, y=y, model=model, plain=to_sklearn(model), new=table(1))
