"""The memory of a State exists once from its first run on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import landbridge as lb

STATUS = Path("/proc/self/status")
#: 128 MiB: far more than a run takes besides.
CAPACITY = 1 << 16
WIDTH = 512

GROWN = """
<ir_version: 8, opset_import: ["" : 17]>
grown (float[1, 1, 512] x, float[1, P, 512] past) => (float[1, 1] y, float[1, T, 512] present)
<int64[1] axis = {1}>
{
    present = Concat <axis = 1> (past, x)
    sums = ReduceSum <keepdims = 0> (present, axis)
    y = ReduceMax <axes = [1], keepdims = 1> (sums)
}
"""
SCATTERED = """
<ir_version: 10, opset_import: ["" : 18]>
scattered (float[N, 512] past, int64[1, 1] at, float[1, 512] x) => (float[N, 512] present)
{
    present = ScatterND (past, at, x)
}
"""


def resident() -> int:
    (line,) = (each for each in STATUS.read_text().splitlines() if each.startswith("VmRSS"))
    return 1024 * int(line.split()[1])


@pytest.mark.parametrize("case", ["grown, open", "grown", "scattered"])
def test_a_state_takes_its_bytes_once(case: str) -> None:
    grows = case.startswith("grown")
    shape = (1, CAPACITY, WIDTH) if grows else (CAPACITY, WIDTH)
    shapes = None if case.endswith("open") else {"past": shape}
    session = lb.Session(
        lb.compile(onnx.parser.parse_model(GROWN if grows else SCATTERED), alias="auto", shapes=shapes)
    )
    state = session.bind_state(capacity=CAPACITY) if grows else session.bind_state()
    feeds = {"x": np.ones((1, 1, WIDTH) if grows else (1, WIDTH), np.float32)}
    feeds |= {} if grows else {"at": np.array([[7]])}
    before = resident()
    for _ in range(3):
        session(feeds)
    assert resident() - before < 1.4 * 4 * CAPACITY * WIDTH
    assert state.tensors["past"].shape == shape
