"""Transposed convolutions are blocked by channels, whether or not anything is fused with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

import landbridge as lb


@pytest.mark.parametrize("attributes", ["strides=[2,2],pads=[1,1,1,1]", "strides=[2,2],output_padding=[1,1]"])
def test_channels_are_blocked(attributes: str, tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[1,32,6,7] x) => (float[1,32,h,w] y) {'
    model = onnx.parser.parse_model(text + f"y = ConvTranspose<{attributes}>(x, v) }}")
    rng = np.random.default_rng(5)
    weights, x = (rng.standard_normal(s).astype(np.float32) for s in ((32, 32, 3, 3), (1, 32, 6, 7)))
    model.graph.initializer.append(numpy_helper.from_array(weights, "v"))
    session = lb.Session(lb.compile(model, target="llvm -vector-bits=512", dump=tmp_path), device="cpu")
    (packed,) = tmp_path.glob("*-pack.mlir")
    assert "lb.pack" in packed.read_text()
    session.set_input("x", x)
    session.run()
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    with session.get_output(0).host_view("r") as found:
        np.testing.assert_allclose(np.array(found), wanted, rtol=1e-4, atol=1e-4)
