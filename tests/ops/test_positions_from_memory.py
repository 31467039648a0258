"""What operators read at positions that inputs state stays inside, whatever the inputs hold."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.errors import ShapeError
from tests.witnesses.guard_pages import SIDES, GuardedRun, in_child

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


def pad_nothing(mode: str) -> lb.Session:
    """Pad of a 0 x 3 input by two rows, with a value that is an input."""
    shapes = {"x": (0, 3), "v": (), "y": (2, 3)}
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    pads = numpy_helper.from_array(np.array([1, 0, 1, 0]), "p")
    node = helper.make_node("Pad", ["x", "p", "v"], ["y"], mode=mode)
    graph = helper.make_graph([node], "pad", values[:2], values[2:], [pads])
    return lb.Session(lb.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)))


def test_padding_around_nothing() -> None:
    (found,) = pad_nothing("constant")(np.zeros((0, 3), np.float32), np.array(5, np.float32))
    np.testing.assert_array_equal(np.asarray(found), np.full((2, 3), 5, np.float32))


@pytest.mark.parametrize("mode", ["edge", "reflect"])
def test_an_empty_tensor_has_no_element_to_repeat(mode: str) -> None:
    with pytest.raises(ShapeError, match="an axis without elements has none to repeat"):
        pad_nothing(mode)
