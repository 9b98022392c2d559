"""A file that runs no code when it is loaded: the list of its types is complete, and no longer."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from dpselect import DPHistogramDensity, DPLogisticRegression, DPRidge, evaluate
from dpselect.evaluation import CalibratedModel
from dpselect.export import TRUSTED_TYPES, to_sklearn
from dpselect.preprocessing import BoundedScaler, DPBoundsScaler, NormClipper, tabular_pipeline

from ..glue import cases
from .rows import MODELS, SCHEMA, X, table

sio = pytest.importorskip("skops.io")
NAMES = ("logistic-objective-l1-3 classes-1", "capped-objective-l2-2 classes-1",
         "svc-output-l2-2 classes-1", "huber-objective-l2-1", "ridge-covariance-l1-1-ball None",
         "poisson 3.0")
EVERYTHING = {
    "pairs": [("age", "debt")], "n_fourier": 3, "cut_points": {"income": [100.0]}, "expansion": 2,
}


def models():
    """Fitted models with every class that a list of types can meet, and the rows to predict."""
    for name in NAMES:
        yield MODELS[name], *cases.records_for(MODELS[name])
    model = make_pipeline(
        DPBoundsScaler(), BoundedScaler((-1, 1)), NormClipper(), DPLogisticRegression(classes=[0, 1])
    )
    yield model, X, cases.labels(2, X)
    yield tabular_pipeline(SCHEMA, DPRidge(target_range=(0, 1)), **EVERYTHING), table(), np.ones(300)
    yield DPHistogramDensity(bounds=(-4, 4), bin_width=4.0), X, None
    # so large a delta that noise is Gaussian with few columns
    for perturbation in ("objective", "output"):
        model = DPLogisticRegression(0.5, delta=0.05, classes=[0, 1], perturbation=perturbation)
        yield model, X, cases.labels(2, X)


def test_the_list_is_what_files_hold():
    needed = set()
    for model, rows, y in models():
        model = clone(model).fit(rows, y)
        for form in [model] if y is None else [model, to_sklearn(model)]:
            file = sio.dumps(form)
            needed |= {*sio.get_untrusted_types(data=file)}
            loaded = sio.loads(file, trusted=TRUSTED_TYPES)
            if hasattr(form, "privacy_"):
                assert loaded.privacy_ == form.privacy_
                assert loaded.privacy_.adjacency is form.privacy_.adjacency  # which knows its unit
            method = "score_samples" if y is None else "predict"
            new = rows.copy()
            assert np.array_equal(getattr(loaded, method)(new), getattr(form, method)(new))
    model = DPLogisticRegression(classes=[0, 1]).fit(X, cases.labels(2, X))
    evaluation = evaluate(model, X.copy(), cases.labels(2, X), epsilon=1.0)
    file = sio.dumps(CalibratedModel(model, evaluation, threshold=0.5).to_sklearn())
    needed |= {*sio.get_untrusted_types(data=file)}
    sio.loads(file, trusted=TRUSTED_TYPES).predict(X)
    assert sorted(needed) == TRUSTED_TYPES
