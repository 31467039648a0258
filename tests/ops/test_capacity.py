"""Lengths within a buffer of a fixed capacity: what is filled, and what is refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import landbridge as lb

BUFFER, NEW = np.zeros((8, 3), np.float32), np.zeros((2, 3), np.float32)


def session(call: str) -> lb.Session:
    """Of a program that counts up to the length that ``call`` gives."""
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17, "landbridge" : 1]>
        g (int64[1] length, float[8, 3] buffer, float[2, 3] new) => (int64[k] y, float[2, 3] z) {{
            zero = Constant <value_int = 0> () one = Constant <value_int = 1> ()
            n = landbridge.{call}  last = Squeeze (n)  y = Range (zero, last, one)  z = Neg (new) }}""")
    return lb.Session(lb.compile(model))


@pytest.mark.parametrize(
    ("call", "added"),
    [("LengthWithin <axis = 0> (length, new, buffer, buffer)", 0), ("LengthAfter <axis = 0> (length, new, buffer)", 2)],
    ids=["LengthWithin", "LengthAfter"],
)
def test_a_length_that_fits(call: str, added: int) -> None:
    program = session(call)
    for length in (5, 1, 8 - added):
        (y, _) = program(np.array([length]), BUFFER, NEW)
        np.testing.assert_array_equal(y, np.arange(length + added))
    with pytest.raises(lb.ShapeError, match=r"is 9 with length=\d; 8 is legal"):
        program(np.array([9 - added]), BUFFER, NEW)


def test_a_buffer_without_room_takes_no_step() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[S, 3] x, float[P, 3] past) => (float[T, 3] present, float[1, 3] y) <int64[1] axis = {0}> {
            present = Concat <axis = 0> (past, x)  y = ReduceSum (present, axis) }""")
    program = lb.Session(lb.compile(model, alias={"present": "past"}))
    with pytest.raises(lb.ShapeError, match=r"is 1 with P=0, S=1; 0 is legal"):
        program(np.ones((1, 3), np.float32), np.zeros((0, 3), np.float32), np.array([0]))
    present, y = program(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32), np.array([0]))
    assert present.shape == (0, 3)
    np.testing.assert_array_equal(y, np.zeros((1, 3)))


def test_a_cpu_reads_all_of_a_buffer_that_a_mask_is_for() -> None:
    """A device reads what is filled: ``tests/frontend/bodies/test_attention_on_devices.py``."""
    program = session("LongestFilled <axis = 0> (length, buffer)")
    for length in (0, 5, 9):
        (y, _) = program(np.array([length]), BUFFER, NEW)
        np.testing.assert_array_equal(y, np.arange(8))


@pytest.mark.parametrize(
    "call",
    ["LongestFilled <axis = 0> (length, buffer)", "LengthWithin <axis = 0> (length, new, buffer, buffer)"],
    ids=["LongestFilled", "LengthWithin"],
)
def test_a_length_is_one_integer(call: str) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17, "landbridge" : 1]>
        g (int64[2] length, float[8, 3] buffer, float[2, 3] new) => (float[3] y) {{
            n = landbridge.{call} zero = Constant <value_ints = [0]> () x = Slice (buffer, zero, n, zero)
            y = ReduceSum <keepdims = 0> (x, zero) }}""")
    with pytest.raises(lb.UnsupportedOperatorError, match=r"a length of shape \[2\]; legal: one integer"):
        lb.compile(model, target="opencl")


def test_the_shape_before_a_run() -> None:
    """Of a buffer that ``new`` made ``total`` long: that of what was filled before."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17, "landbridge" : 1]>
        g (int64[1] length, float[8, 3] buffer, float[2, 3] new) => (int64[2] y) {
            total = landbridge.LengthAfter <axis = 0> (length, new, buffer)
            shape = landbridge.ShapeBefore <axis = 0> (buffer, total, new) none = Constant <value_ints = [0, 0]> ()
            y = Add (shape, none) }""")
    program = lb.Session(lb.compile(model))
    for length in (5, 1, 6):
        (y,) = program(np.array([length]), BUFFER, NEW)
        np.testing.assert_array_equal(y, [length, 3])
