"""Which states are windows of a stream: the last samples of an input, whose number is known, and of new ones."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import onnx
import pytest

import landbridge as lb
from landbridge.executable.instructions import Call

#: Nodes from ``past`` (1, 4, 6) and ``x`` (1, 4, 5) to ``y`` and ``present``, which is a window of 11 samples.
WINDOWS = {
    "from the end": "all = Concat<axis=2>(past, x)  present = Slice(all, minus_6, end, two)  y = Relu(all)",
    "from the begin": "all = Concat<axis=2>(past, x)  present = Slice(all, five, eleven, two)  y = Relu(all)",
    "to the last one": "all = Concat<axis=-1>(past, x)  present = Slice(all, five, end, minus_1, one)  y = Abs(all)",
    "parts": "all = Concat<axis=2>(past, x)  rest, present = Split<axis=-1>(all, parts)  y = Relu(all)",
    "parts that are read": "all = Concat<axis=2>(past, x)  rest, present = Split<axis=2>(all, parts)  y = Relu(rest)",
    "a state that is read": "all = Concat<axis=2>(past, x)  present = Slice(all, minus_6, end, two)  y = Relu(present)",
    "new samples of unknown shape": """h = Relu(x)  n = Conv<pads=[1,1]>(h, w)  all = Concat<axis=2>(past, n)
        present = Slice(all, minus_6, end, two)  y = Relu(all)""",
}
#: The same, of which nothing is a window.
OTHERS = {
    "other samples": "all = Concat<axis=2>(past, x)  present = Slice(all, one, seven, two)  y = Relu(all)",
    "each second": "all = Concat<axis=2>(past, x)  present = Slice(all, minus_6, end, two, two)  y = Relu(all)",
    "along another axis": "all = Concat<axis=2>(past, x)  present = Slice(all, minus_6, end, one)  y = Relu(all)",
    "new ones first": "all = Concat<axis=2>(x, past)  present = Slice(all, minus_6, end, two)  y = Relu(all)",
    "a past that is read": "all = Concat<axis=2>(past, x)  present = Slice(all, minus_6, end, two)  y = Relu(past)",
    "the first part": "all = Concat<axis=2>(past, x)  present, rest = Split<axis=2>(all, other)  y = Relu(all)",
}
INTS = {"minus_6": -6, "minus_1": -1, "one": 1, "two": 2, "five": 5, "seven": 7, "eleven": 11, "end": 1 << 60}


def model(nodes: str, new: str = "5") -> onnx.ModelProto:
    ints = ", ".join(f"int64[1] {name} = {{{number}}}" for name, number in INTS.items())
    return onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        stream (float[1,4,{new}] x, float[1,4,6] past, float[4,4,3] w) => (float[1,4,b] y, float[1,a,c] present)
        <{ints}, int64[2] parts = {{5, 6}}, int64[2] other = {{6, 5}}> {{ {nodes} }}""")


@pytest.mark.parametrize("form", WINDOWS)
def test_a_window(form: str) -> None:
    main = lb.compile(model(WINDOWS[form]), alias="auto").main
    shapes = {spec.name: spec.shape for spec in (*main.inputs, *main.outputs)}
    assert main.aliases == (("present", "past"),)
    assert shapes["past"] == shapes["present"] == (1, 4, 11)


@pytest.mark.parametrize("form", OTHERS)
def test_no_window(form: str) -> None:
    main = lb.compile(model(OTHERS[form]), alias="auto").main
    assert not main.aliases
    assert {spec.name: spec.shape for spec in main.inputs}["past"] == (1, 4, 6)


def test_numbers_that_shapes_gives() -> None:
    """The file leaves the new samples open; with a name for them, their most is not known, and two buffers swap."""
    nodes = WINDOWS["from the end"]
    main = lb.compile(model(nodes, "S"), alias="auto", shapes={"x": (1, 4, 3), "past": (1, 4, 6)}).main
    assert {spec.name: spec.shape for spec in main.inputs}["past"] == (1, 4, 9)
    assert not lb.compile(model(nodes, "S"), alias="auto").main.aliases


@pytest.mark.parametrize("form", ["from the end", "a state that is read"])
@pytest.mark.parametrize("target", ["llvm", "opencl"])
def test_an_open_number_of_new_samples(form: str, target: str) -> None:
    """Lines of the window have the most, and nothing copies those of a run."""
    main = lb.compile(model(WINDOWS[form], "S"), target, alias="auto", dims={"S": lb.Dim(2, 5)}).main
    shapes = {spec.name: spec.shape for spec in (*main.inputs, *main.outputs)}
    assert main.aliases == (("present", "past"),)
    assert shapes["past"] == shapes["present"] == (1, 4, 11)
    moves = [each for each in main.instructions if isinstance(each, Call) and each.moves_bytes]
    assert [each.moves_bytes for each in moves] == [4 * 4 * 11], "the copy that one memory leaves out"


@pytest.mark.parametrize("form", ["to the last one", "from the begin", "parts"])
def test_forms_that_hold_for_one_number_alone(form: str) -> None:
    """A Slice from a number on, and parts of numbers, are the last samples where the number of new ones is known."""
    nodes = WINDOWS[form]
    assert lb.compile(model(nodes, "S"), alias="auto", dims={"S": 5}).main.aliases
    with suppress(lb.CompileError):
        assert not lb.compile(model(nodes, "S"), alias="auto", dims={"S": lb.Dim(5, 9)}).main.aliases


@pytest.mark.parametrize("most", [None, 1 << 21])
def test_a_range_without_an_end_has_two_buffers(most: int | None) -> None:
    main = lb.compile(model(WINDOWS["from the end"], "S"), alias="auto", dims={"S": lb.Dim(2, most)}).main
    assert not main.aliases


def test_a_window_that_is_named() -> None:
    main = lb.compile(model(WINDOWS["parts"]), alias={"present": "past"}).main
    assert main.aliases == (("present", "past"),)


def test_a_past_with_a_value_in_the_file_is_no_window() -> None:
    """It is a constant, as importers treat inputs that have a value, and keeps its shape."""
    stream = model(WINDOWS["parts"])
    stream.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((1, 4, 6), np.float32), "past"))
    main = lb.compile(stream, alias="auto").main
    assert not main.aliases and [spec.name for spec in main.inputs] == ["x", "w"]


@pytest.mark.parametrize("target", ["opencl", "vulkan"])
def test_a_window_of_a_device(target: str) -> None:
    main = lb.compile(model(WINDOWS["parts"]), target, alias="auto").main
    assert main.aliases == (("present", "past"),)


def test_programs_of_several_devices_have_two_buffers() -> None:
    """A state may then have to be copied from one to the other."""
    both = {"gpu": "opencl", "cpu": "llvm"}
    assert not lb.compile(model(WINDOWS["parts"]), both, alias="auto").main.aliases
