"""Support vectors, and codes of features, of ``ai.onnx.ml``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.frontend.bodies.against_onnxruntime import check, of_model

R = np.random.default_rng(0)


def test_codes() -> None:
    check(
        """g (float[N, 4] x, int64[N, 4] i, float[N, 2] z)
            => (float[N, 4] p, float[N, 6] q, float[N, 4, 3] r, int64[N, 4] s, float[N, 4] t) {
            p = ai.onnx.ml.Binarizer <threshold = 0.25> (x)
            q = ai.onnx.ml.FeatureVectorizer <inputdimensions = [4, 2]> (x, z)
            r = ai.onnx.ml.OneHotEncoder <cats_int64s = [0, 2, 3], zeros = 1> (i)
            s = ai.onnx.ml.LabelEncoder <keys_int64s = [0, 2, 3], values_int64s = [7, 8, 9], default_int64 = 5> (i)
            t = ai.onnx.ml.LabelEncoder <keys_int64s = [1, 2], values_floats = [0.5, 1.5], default_float = 3.0>
                (i) }""",
        {
            "x": R.standard_normal((3, 4)).astype(np.float32),
            "i": R.integers(0, 5, (3, 4)),
            "z": np.ones((3, 2), np.float32),
        },
    )


@pytest.mark.sample(4)
@pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")
@pytest.mark.parametrize(
    ("kernel", "classes", "probable"),
    [
        *((kernel, classes, False) for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID") for classes in (0, 2, 4)),
        ("RBF", 2, True),
        ("LINEAR", 4, True),
    ],
)
def test_support_vectors(kernel: str, classes: int, probable: bool) -> None:
    """``classes``: 0 for a regression; ``probable``: their probabilities, of what is very unlikely too."""
    per_class, features = [3, 2, 4, 2][:classes], 5
    count = sum(per_class) if classes else 7
    vectors = R.standard_normal((count, features))
    common: dict[str, Any] = {
        "kernel_type": kernel,
        "kernel_params": [0.3, 0.5, 3.0],
        "support_vectors": vectors.ravel().tolist(),
        "domain": "ai.onnx.ml",
        "post_transform": "NONE",
    }
    if classes:
        pairs = classes * (classes - 1) // 2
        names, scores = ["Y", "Z"], classes if probable else max(2, pairs)
        if probable:
            common |= {"prob_a": (-3 * R.random(pairs)).tolist(), "prob_b": R.standard_normal(pairs).tolist()}
        made = helper.make_node(
            "SVMClassifier",
            ["X"],
            names,
            **common,
            classlabels_ints=list(range(10, 10 + classes)),
            coefficients=R.standard_normal(count * (classes - 1)).tolist(),
            rho=R.standard_normal(pairs).tolist(),
            vectors_per_class=per_class,
        )
        outputs = [
            helper.make_tensor_value_info("Y", TensorProto.INT64, ["N"]),
            helper.make_tensor_value_info("Z", TensorProto.FLOAT, ["N", scores]),
        ]
    else:
        made = helper.make_node(
            "SVMRegressor",
            ["X"],
            ["Y"],
            **common,
            n_supports=count,
            coefficients=R.standard_normal(count).tolist(),
            rho=[0.25],
        )
        outputs = [helper.make_tensor_value_info("Y", TensorProto.FLOAT, ["N", 1])]
    inputs = [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["N", features])]
    graph = helper.make_graph([made], "g", inputs, outputs)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    x = R.standard_normal((6, features)).astype(np.float32)
    ours, theirs = of_model(helper.make_model(graph, opset_imports=opsets, ir_version=10), {"X": x})
    for found, wanted in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
