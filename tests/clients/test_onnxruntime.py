"""onnxruntime: the graph that dpselect writes; skl2onnx writes none, and says so."""

import numpy as np
import pytest

from dpselect.export import to_onnx

runtime = pytest.importorskip("onnxruntime")


def test_onnxruntime(people):
    session = runtime.InferenceSession(to_onnx(people.model).SerializeToString())
    given = {
        "age": people.new[["age"]].to_numpy(float),
        "income": people.new[["income"]].to_numpy(float),
        "job": people.new[["job"]].to_numpy(object),
    }
    found, label = session.run(["probabilities", "label"], given)
    np.testing.assert_allclose(found, people.model.predict_proba(people.new), atol=1e-12)
    assert np.array_equal(label, people.model.predict(people.new))


def test_skl2onnx_refuses(numbers):
    skl2onnx = pytest.importorskip("skl2onnx")
    for model in (numbers.model, numbers.plain):
        with pytest.raises(Exception, match="FunctionTransformer|shape calculator|Unexpect rank"):
            skl2onnx.to_onnx(model, numbers.X[:1])
