"""How a cache grows, found by the structure of the positions that its steps are written at, whatever their names."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import landbridge as lb
from landbridge.executable.state_growth import growths_of

HEAD = 'ir_version: 10, opset_import: ["" : 18]'
#: A cache of rows of 3, after the form of its positions and of its write.
ROWS = """
<{head}>
cache ({inputs}, float[8, 3] past, float[S, 3] x) => (float[8, 3] present{outputs})
<int64 zero = {{0}}, int64 one = {{1}}, int64[1] last = {{1}}, int64[1] first = {{0}}, int64[1] row = {{-1}},
 int64[8] every = {{0, 1, 2, 3, 4, 5, 6, 7}}{shapes}>
{{
    steps = Shape <start = 0, end = 1> (x)
    count = Squeeze (steps)
    {positions}
    {write}
}}
"""
SCATTER = "at = Unsqueeze (places, last) present = ScatterND (past, at, x)"
ELEMENTS = """
    column = Unsqueeze (places, last) sizes = Shape (x) every_row = Expand (column, sizes)
    present = ScatterElements <axis = 0> (past, every_row, x)"""
SHAPES = {SCATTER: ", int64[S] places, int64[S, 1] at", ELEMENTS: ", int64[S, 1] column, int64[S, 3] every_row"}
COUNTED = "r = Range (zero, count, one) places = Add (r, q)"


def model(
    positions: str, inputs: str, write: str = SCATTER, outputs: str = "", *, declares: bool = True
) -> onnx.ModelProto:
    """``declares``: the shapes of positions and indices, as exporters do and some optimizers do not."""
    shapes = SHAPES[write] if declares else ""
    text = ROWS.format(head=HEAD, inputs=inputs, outputs=outputs, positions=positions, write=write, shapes=shapes)
    return onnx.parser.parse_model(text)


def growths(positions: str, inputs: str, write: str = SCATTER, outputs: str = "") -> list[tuple[str, str, str]]:
    found = growths_of(lb.compile(model(positions, inputs, write, outputs))).get("main", ())
    return [(each.positions, str(each.before), str(each.after)) for each in found]


@pytest.mark.parametrize(
    ("positions", "inputs"),
    [
        (COUNTED, "int64 q"),
        ("r = Range (zero, count, one) places = Add (q, r)", "int64[1] q"),
        ("r = Range (zero, count, one) f = Squeeze (q) places = Add (r, f)", "int64[1, 1] q"),
        ("i = Cast <to = 7> (q) r = Range (zero, count, one) places = Add (r, i)", "int32 q"),
    ],
)
def test_steps_that_count_from_an_input_of_one_element_continue_it(positions: str, inputs: str) -> None:
    assert growths(positions, inputs) == [("q", "0", "S")]


@pytest.mark.parametrize("write", [SCATTER, ELEMENTS], ids=["ScatterND", "ScatterElements"])
def test_each_form_of_a_write(write: str) -> None:
    assert growths(COUNTED, "int64 q", write) == [("q", "0", "S")]


def test_positions_that_are_compared_with_all_of_the_cache_continue_it() -> None:
    seen = "places = Identity (q) c = Unsqueeze (q, last) seen = LessOrEqual (every, c)"
    assert growths(seen, "int64[S] q", outputs=", bool[S, 8] seen") == [("q", "-S + 1", "1")]


FROM = "f = Squeeze (q) e = Add (f, count) places = Range (f, e, one)"


@pytest.mark.parametrize("write", [SCATTER, ELEMENTS], ids=["ScatterND", "ScatterElements"])
@pytest.mark.parametrize(
    ("positions", "inputs"),
    [
        (FROM, "int64[1] q"),
        ("e = Add (count, q) places = Range (q, e, one)", "int64 q"),
        ("i = Cast <to = 7> (q) e = Add (i, count) places = Range (i, e, one)", "int32 q"),
    ],
)
def test_a_range_from_an_input_of_one_element_continues_it(positions: str, inputs: str, write: str) -> None:
    """The number of its elements makes the input a size."""
    assert growths(positions, inputs, write) == [("", "q", "S + q")]


def test_a_state_of_a_range_gives_the_first_position() -> None:
    text = ROWS.format(
        head=HEAD, inputs="int64[1] q", outputs="", positions=FROM, write=SCATTER, shapes=SHAPES[SCATTER]
    )
    session = lb.Session(lb.compile(onnx.parser.parse_model(text)))
    state = session.bind_state()
    for rows in (2, 1, 3):
        session(np.full((rows, 3), rows, np.float32))
    assert state.length == 6
    assert np.asarray(state.tensors["past"])[:, 0].tolist() == [2, 2, 1, 3, 3, 3, 0, 0]
    with pytest.raises(lb.StateCapacityError, match="the run needs 9 steps"):
        session(np.ones((3, 3), np.float32))
    state.rewind(1)
    session(np.full((2, 3), 7, np.float32))
    assert state.length == 3 and np.asarray(state.tensors["past"])[:, 0].tolist() == [2, 7, 7, 3, 3, 3, 0, 0]


def test_a_run_past_the_capacity_is_refused_without_a_state() -> None:
    text = ROWS.format(
        head=HEAD, inputs="int64[1] q", outputs="", positions=FROM, write=SCATTER, shapes=SHAPES[SCATTER]
    )
    session = lb.Session(lb.compile(onnx.parser.parse_model(text)))
    past, x = np.zeros((8, 3), np.float32), np.ones((2, 3), np.float32)
    (found,) = session(np.array([6]), past, x)
    assert np.asarray(found)[:, 0].tolist() == [0] * 6 + [1, 1]
    with pytest.raises(lb.ShapeError, match=r"the steps so far with those of the run is 9"):
        session(np.array([7]), past, x)


@pytest.mark.parametrize("write", [SCATTER, ELEMENTS], ids=["ScatterND", "ScatterElements"])
@pytest.mark.parametrize(("positions", "inputs", "first"), [(COUNTED, "int64 q", "0"), (FROM, "int64[1] q", "q")])
def test_models_that_declare_no_shapes(positions: str, inputs: str, first: str, write: str) -> None:
    executable = lb.compile(model(positions, inputs, write, declares=False))
    (growth,) = growths_of(executable)["main"]
    assert str(growth.before) == first
    session = lb.Session(executable)
    state = session.bind_state()
    for at, rows in ((0, 2), (2, 1), (3, 3)):
        given = [] if not growth.positions else [np.array(at)]
        session(*given, np.full((rows, 3), rows, np.float32))
    assert state.length == 6
    assert np.asarray(state.tensors["past"])[:, 1].tolist() == [2, 2, 1, 3, 3, 3, 0, 0]


def test_a_write_between_transposes_that_declares_no_shapes() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18]>
    cache (float[1, 2, 8, 3] past, float[1, 2, S, 3] x, int64 q) => (float[1, 2, 8, 3] present)
    <int64 zero = {0}, int64 one = {1}, int64[1] last = {-1}>
    {
        size = Shape <start = 2, end = 3> (x)
        count = Squeeze (size)
        r = Range (zero, count, one)
        places = Add (r, q)
        at = Unsqueeze (places, last)
        front = Transpose <perm = [2, 1, 0, 3]> (past)
        new = Transpose <perm = [2, 1, 0, 3]> (x)
        rows = ScatterND (front, at, new)
        present = Transpose <perm = [2, 1, 0, 3]> (rows)
    }
    """
    (growth,) = growths_of(lb.compile(onnx.parser.parse_model(text)))["main"]
    assert (growth.axis, growth.positions, growth.before, str(growth.after)) == (2, "q", 0, "S")


def test_one_position_for_all_new_rows_is_a_slot() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18]>
    cache (int64 q, float[8, 3] past, float[S, 3] x) => (float[8, 3] present)
    <int64 zero = {0}, int64 one = {1}, int64[2] column = {-1, 1}>
    {
        r = Range (zero, one, one)
        place = Add (r, q)
        row = Reshape (place, column)
        sizes = Shape (x)
        at = Expand (row, sizes)
        present = ScatterElements <axis = 0> (past, at, x)
    }
    """
    executable = lb.compile(onnx.parser.parse_model(text))
    assert not growths_of(executable).get("main")
    (found,) = lb.Session(executable)(np.array(2), np.zeros((8, 3), np.float32), np.ones((2, 3), np.float32))
    assert np.asarray(found)[:, 0].tolist() == [0, 0, 1, 0, 0, 0, 0, 0]


def test_as_many_positions_as_new_steps() -> None:
    """They may be two dimensions, of which each run has one size."""
    text = """
    <ir_version: 10, opset_import: ["" : 18]>
    cache (int64[T] q, float[8, 3] past, float[S, 3] x) => (float[8, 3] present, bool[T, 8] seen)
    <int64[1] last = {1}, int64[8] every = {0, 1, 2, 3, 4, 5, 6, 7}>
    {
        at = Unsqueeze (q, last)
        seen = LessOrEqual (every, at)
        present = ScatterND (past, at, x)
    }
    """
    session = lb.Session(lb.compile(onnx.parser.parse_model(text)))
    past = np.zeros((8, 3), np.float32)
    found, _ = session(np.array([5, 6]), past, np.ones((2, 3), np.float32))
    assert np.asarray(found)[:, 0].tolist() == [0, 0, 0, 0, 0, 1, 1, 0]
    for rows in (1, 3):
        with pytest.raises(lb.ShapeError, match=f"the number of positions of the new steps is 2 .*; {rows} is legal"):
            session(np.array([5, 6]), past, np.ones((rows, 3), np.float32))


EIGHT, TWO = "eight = Constant <value_int = 8> ()", "two = Constant <value_int = 2> ()"


@pytest.mark.parametrize(
    ("positions", "inputs", "outputs"),
    [
        ("places = Identity (cache_position)", "int64[S] cache_position", ""),
        (f"r = Range (zero, count, one) s = Add (r, q) {EIGHT} places = Mod (s, eight)", "int64 q", ""),
        (f"{TWO} n = Mul (count, two) r = Range (zero, n, two) places = Add (r, q)", "int64 q", ""),
        ("r = Range (zero, count, one) places = Add (r, q)", "int64[S] q", ""),
        (f"{TWO} n = Mul (count, two) e = Add (n, q) places = Range (q, e, two)", "int64 q", ""),
        (
            "places = Identity (q) few = Neg (every) c = Unsqueeze (q, last) seen = Less (c, few)",
            "int64[S] q",
            ", bool[S, 8] seen",
        ),
    ],
    ids=["a name", "a ring", "every second", "each its own", "a range of every second", "compared with others"],
)
def test_other_positions_are_slots(positions: str, inputs: str, outputs: str) -> None:
    assert growths(positions, inputs, outputs=outputs) == []
