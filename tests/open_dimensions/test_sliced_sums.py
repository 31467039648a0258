"""Sums over all that slices of open axes leave, whose extents are made of minima and maxima, beside onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb

#: Starts, ends, axes and steps.
SLICES = {
    "the last five": ([-5], [100000], [1], [1]),
    "from the fourth row and the fifth column on": ([3, 4], [100000, 100000], [0, 1], [1, 1]),
    "every second row and third column": ([3, 4], [100000, 100000], [0, 1], [2, 3]),
}


def slice_of(name: str) -> str:
    given = zip(("starts", "ends", "axes", "steps"), SLICES[name], strict=True)
    made = " ".join(f"{what} = Constant<value_ints = {values}>()" for what, values in given)
    return f"{made} part = Slice(x, starts, ends, axes, steps)"


#: Means of rows, of eight at once too, whose every eight columns became one, with four reflected at each end.
PADDED = """
    pads = Constant<value_ints = [0, 0, 4, 0, 0, 4]>()  one = Constant<value_ints = [1]>()
    x3 = Unsqueeze(x, one)
    pooled = AveragePool<kernel_shape = [8], strides = [8]>(x3)
    padded = Pad<mode = "reflect">(pooled, pads)
    y = ReduceMean<axes = [2], keepdims = 0>(padded)
"""


def run(body: str, rank: int, sizes: list[tuple[int, int]]) -> None:
    result = "float y" if rank == 0 else "float[b,c] y"
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[h,w] x) => ({result}) {{ {body} }}'
    )
    session, peer = lb.Session(lb.compile(model)), onnxruntime.InferenceSession(model.SerializeToString())
    for size in sizes:
        x = np.random.default_rng(size[1]).random(size, np.float32)
        np.testing.assert_allclose(session({"x": x})["y"], peer.run(None, {"x": x})[0], rtol=1e-5, err_msg=str(size))


@pytest.mark.parametrize("name", SLICES)
def test_all_that_a_slice_leaves_is_added_up(name: str) -> None:
    run(f"{slice_of(name)} y = ReduceSum<keepdims = 0>(part)", 0, [(5, 8), (6, 20), (40, 300)])


def test_means_of_rows_that_are_padded_with_what_is_in_them() -> None:
    run(PADDED, 2, [(1, 40), (3, 64), (9, 200), (17, 320)])
