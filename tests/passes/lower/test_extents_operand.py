"""Sizes that a kernel takes: also one that only says where it reads."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from tests.session.state_histories import read

import landbridge as lb

#: Of ``data``, six elements from the one on that is the extent of ``other``: no extent of the Slice is open.
MODEL = """<ir_version: 8, opset_import: ["" : 17]>
part (float[4,11] data, float[S] other) => (float[4,6] y) <int64[1] six = {6}, int64[1] axis = {1}> {
    first = Shape(other)
    end = Add(first, six)
    cut = Slice(data, first, end, axis)
    y = Neg(cut)
}"""


@pytest.mark.parametrize("target", ["llvm", "opencl", "vulkan"])
def test_a_size_that_only_says_where_a_kernel_reads(target: str) -> None:
    executable = lb.compile(onnx.parser.parse_model(MODEL), target, dims={"S": lb.Dim(1, 5)})
    session = lb.Session(executable, device=None if target == "llvm" else target)
    data = np.random.default_rng(0).standard_normal((4, 11)).astype(np.float32)
    for first in (1, 5, 2, 1):
        (y,) = session(data, np.zeros(first, np.float32))
        np.testing.assert_array_equal(read(y), -data[:, first : first + 6])
