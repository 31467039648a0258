"""Scan of opset 8, which had batches, gives what it gives in onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb
from landbridge.errors import UnsupportedOperatorError

TEXT = """<ir_version: 3, opset_import: ["": 8]> g ({lengths}float[{b}, 2] initial, float[{b}, {t}, 2] x)
    => (float[{b}, 2] y, float[{b}, {t}, 2] z) {{
    y, z = Scan <num_scan_inputs = 1, directions = [{back}],
        body = body (float[2] s, float[2] n) => (float[2] sum, float[2] row) {{ sum = Add (s, n) row = Mul (sum, n) }}>
        ({first}, initial, x) }}"""


@pytest.mark.sample(4)
@pytest.mark.parametrize("back", [0, 1])
@pytest.mark.parametrize(("rows", "steps"), [(1, 3), (3, 5), (2, 150)])
def test_each_row_of_a_batch_is_scanned(rows: int, steps: int, back: int) -> None:
    model = onnx.parser.parse_model(TEXT.format(b=rows, t=steps, back=back, lengths="", first='""'))
    generator = np.random.default_rng(0)
    feeds = {name: generator.standard_normal(shape).astype(np.float32) for name, shape in _shapes(rows, steps)}
    wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    found = lb.Session(lb.compile(model))(feeds)
    for name, expected in zip("yz", wanted, strict=True):
        np.testing.assert_allclose(np.asarray(found[name]), expected, rtol=1e-6, atol=1e-6)


def _shapes(rows: int, steps: int) -> list[tuple[str, tuple[int, ...]]]:
    return [("initial", (rows, 2)), ("x", (rows, steps, 2))]


def test_rows_of_different_lengths_are_refused() -> None:
    model = onnx.parser.parse_model(TEXT.format(b=2, t=3, back=0, lengths="int64[2] n, ", first="n"))
    with pytest.raises(UnsupportedOperatorError, match="a length for each row of its batch"):
        lb.compile(model)
