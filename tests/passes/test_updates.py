"""Which copies before updates become kernels of their own on a grid of workgroups."""

from __future__ import annotations

import pytest
from onnx import ModelProto, TensorProto, helper
from tests.session.test_aliases import model

import landbridge as lb
from landbridge.executable.instructions import Call


def inner(rows: int) -> ModelProto:
    """Rows put into a tensor that is read again later, so that it is copied, and that is no input."""
    nodes = [
        helper.make_node("Tanh", ["x"], ["t"]),
        helper.make_node("ScatterND", ["t", "at", "new"], ["s"]),
        helper.make_node("Add", ["s", "t"], ["y"]),
    ]
    inputs = {"x": (rows, 64), "at": ((3, 1), TensorProto.INT64), "new": (3, 64)}
    return model(nodes, inputs, {"y": (rows, 64)})


@pytest.mark.parametrize(
    ("target", "rows", "separate"),
    [("llvm", 16, True), ("opencl", 16, False), ("opencl", 256, True)],
)
def test_a_small_copy_is_made_by_the_workgroup_that_updates(target: str, rows: int, separate: bool) -> None:
    calls = [each for each in lb.compile(inner(rows), target).main.instructions if isinstance(each, Call)]
    assert any(call.moves_bytes == rows * 64 * 4 for call in calls) is separate
