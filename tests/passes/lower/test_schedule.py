"""Schedules as programs tell of them: what is chosen for CPUs of which facts are known."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.executable.kernel_facts import facts_of


def convolution(channels: int, stride: int) -> onnx.ModelProto:
    """3x3, of 32 channels to so many."""
    w = numpy_helper.from_array(np.ones((channels, 32, 3, 3), np.float32), "w")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 32, 28, 28))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, channels, 28 // stride, 28 // stride))
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1], strides=[stride, stride])
    graph = helper.make_graph([node], "one", [x], [y], [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def chosen(channels: int, cpu: str, stride: int = 1) -> list[str]:
    """The schedules of the convolution's kernel, of one result in 16 lanes and one in fewer each."""
    executable = lb.compile(convolution(channels, stride), target=f"llvm -mtriple=x86_64-linux-gnu -mcpu={cpu}")
    (found,) = (facts.schedule for facts in facts_of(executable).values() if "3x3" in facts.schedule)
    return [each.split(", ")[0] for each in found.split("; ")]


def widths(channels: int, cpu: str, stride: int = 1) -> list[int]:
    return [int(each.split(" of ")[1].split()[0]) for each in chosen(channels, cpu, stride)]


@pytest.mark.parametrize("channels", [24, 40])
def test_a_last_column_is_narrow_where_that_is_cheaper(channels: int) -> None:
    assert widths(channels, "znver4") == [16, 8]
    assert widths(channels, "icelake-server") == [16]


def test_a_column_alone_is_as_narrow_as_it_may_be() -> None:
    assert widths(8, "icelake-server", 2) == widths(8, "znver4", 2) == [8]


def test_lanes_lie_along_pixels_where_28_of_32_are_worth_more_than_8_channels() -> None:
    assert widths(8, "icelake-server") == [16]
    assert widths(8, "znver4") == [8]
    assert widths(12, "znver4") == [16] and chosen(12, "znver4")[0].startswith("12x1 ")


def test_columns_share_the_loads_of_rows() -> None:
    rows, columns = map(int, chosen(24, "icelake-server")[0].split()[0].split("x"))
    assert columns == 2 and rows >= 10
