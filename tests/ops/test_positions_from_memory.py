"""What operators read at positions that inputs state stays inside, whatever the inputs hold."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import landbridge as lb
from tests.guard_pages import SIDES, GuardedRun, in_child

WILD = (np.nan, np.inf, -np.inf, 3e38, -3e38, 2.0**63, -(2.0**31), 1.0, -1.0, 1.0000001)


def check_grid(mode: str, padding: str, align: int, target: str) -> None:
    """Points of a grid nowhere near the picture, in each coordinate."""
    picture = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    grid = np.array([(a, b) for a in WILD for b in WILD], np.float32).reshape(1, len(WILD), len(WILD), 2)
    shapes = {"x": picture.shape, "g": grid.shape, "y": (1, 2, len(WILD), len(WILD))}
    x, g, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items())
    node = helper.make_node("GridSample", ["x", "g"], ["y"], mode=mode, padding_mode=padding, align_corners=align)
    graph = helper.make_graph([node], "grid", [x, g], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    executable = lb.compile(model, target)
    for side in SIDES:
        (found,) = GuardedRun(executable, side)(picture, grid)
        # the corners of the picture are (-1, -1) and (1, 1) of the grid where these are aligned
        if align and padding == "border":
            assert found[0, :, WILD.index(1.0), WILD.index(-1.0)].tolist() == [3.0, 15.0]
            assert found[0, :, WILD.index(np.inf), WILD.index(-3e38)].tolist() == [3.0, 15.0] or mode != "nearest"


@pytest.mark.sample(3)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_a_grid_of_any_numbers(mode: str, padding: str, align: int, target: str) -> None:
    in_child(check_grid, mode, padding, align, target)


def check_gather(operator: str, target: str) -> None:
    """Indices out of range in both directions: the error of a model, but no fault."""
    edges = np.array([-(2**63), 2**63 - 1, -4, -3, 2, 3, 1 << 31, -(1 << 31), 1 << 61], np.int64)
    x = np.arange(3, dtype=np.float32)
    indices = edges.reshape(-1, 1) if operator == "GatherND" else edges
    shapes = {"x": (TensorProto.FLOAT, x.shape), "i": (TensorProto.INT64, indices.shape), "y": (1, edges.shape)}
    values = [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in shapes.items()]
    graph = helper.make_graph([helper.make_node(operator, ["x", "i"], ["y"])], "gather", values[:2], values[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    executable = lb.compile(model, target)
    for side in SIDES:
        (found,) = GuardedRun(executable, side)(x, indices)
        assert found[3] == 0 and found[4] == 2


@pytest.mark.parametrize("operator", ["Gather", "GatherElements", "GatherND"])
def test_indices_of_any_size(operator: str) -> None:
    in_child(check_gather, operator, "llvm")
