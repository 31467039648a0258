"""Inputs whose elements say what open dimensions are: one program for every value, read at each run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb
from landbridge.errors import InputError, ShapeError
from landbridge.executable.executable import Executable
from landbridge.session import open_instances

#: Operator: graph, constants=, dims=, and values of the input ``v`` that one program runs with.
CASES = {
    "Expand": ("float[3, 4] x, int64[3] v", "y = Expand(x, v)", ["N", 3, 4], {"N": "1..9"}, ([1, 3, 4], [7, 3, 4])),
    "Reshape": ("float[n, 6] x, int64[2] v", "y = Reshape(x, v)", ["3 * n", 2], {"n": "1..48"}, ([24, 2],)),
    "Tile": ("float[3, 4] x, int64[2] v", "y = Tile(x, v)", ["A", 2], {"A": "1..5"}, ([1, 2], [5, 2], [3, 2])),
    "Slice": (
        "float[9, 4] x, int64[1] v",
        "s = Constant<value_ints: ints = [0]>() y = Slice(x, s, v)",
        ["E"],
        {"E": "1..9"},
        ([1], [9], [4]),
    ),
    "TopK": ("float[6, 20] x, int64[1] v", "y, i = TopK(x, v)", ["K"], {"K": "1..20"}, ([1], [20], [7])),
    "Range": (
        "float[1] x, int64 v",
        "a = Constant<value_int = 0>() b = Constant<value_int = 1>() "
        "r = Range(a, v, b) f = Cast<to = 1>(r) y = Add(f, x)",
        "N",
        {"N": "1..99"},
        (1, 99, 40),
    ),
    "ConstantOfShape": (
        "float[1] x, int64[2] v",
        "z = ConstantOfShape(v) y = Add(z, x)",
        ["A", "B"],
        {},
        ([1, 1], [3, 40], [17, 5]),
    ),
    "OneHot": (
        "int64[5] x, int64 v",
        "o = Constant<value_floats: floats = [0.0, 1.0]>() y = OneHot(x, v, o)",
        "D",
        {"D": "5..30"},
        (5, 30, 11),
    ),
}


#: Of the output, where it is not that of the first input.
RANKS = {"Expand": 3, "ConstantOfShape": 2, "OneHot": 2}


def model(operator: str) -> onnx.ModelProto:
    inputs, body, *_ = CASES[operator]
    rank = RANKS.get(operator, inputs.split("]")[0].count(",") + 1)
    shape = ", ".join(f"y{i}" for i in range(rank))
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g ({inputs}) => (float[{shape}] y) {{ {body} }}'
    )


def feed(operator: str) -> np.ndarray:
    if operator == "OneHot":
        return np.array([0, 4, -2, 1, 3])
    shape = [d.dim_value or 8 for d in model(operator).graph.input[0].type.tensor_type.shape.dim]
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


@pytest.mark.sample(5)
@pytest.mark.parametrize("operator", CASES)
def test_one_program_runs_for_every_value(operator: str) -> None:
    _, _, constants, dims, values = CASES[operator]
    session = lb.Session(lb.compile(model(operator), constants={"v": constants}, dims=dims), num_threads=1)
    peer = onnxruntime.InferenceSession(model(operator).SerializeToString())
    x = feed(operator)
    for value in values:
        given = np.array(value, np.int64)
        (found,) = session(x, given)
        (expected,) = peer.run(None, {"x": x, "v": given})
        np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.fixture(scope="module")
def expand() -> Executable:
    return lb.compile(model("Expand"), constants={"v": ("N", 3, 4)}, dims={"N": "1..9"})


def test_what_is_bound_is_read_at_each_run(expand: Executable) -> None:
    session, x, v = lb.Session(expand, num_threads=1), feed("Expand"), np.array([2, 3, 4])
    session.set_input_zero_copy("x", x)
    session.set_input_zero_copy("v", v)
    for v[0] in (2, 7, 7, 1):
        x += 1
        session.run()
        np.testing.assert_array_equal(np.asarray(session.get_output(0)), np.broadcast_to(x, v))


def test_calls_with_values_that_came_before_do_not_look_for_sizes(
    expand: Executable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One array, with other values from call to call; fewer sizes are remembered than there are values."""
    monkeypatch.setattr(open_instances, "_MOST_SHAPES", 2)
    session, x, v = lb.Session(expand, num_threads=1), feed("Expand"), np.array([2, 3, 4])
    looked = []
    instances = session._executor.instances  # type: ignore[attr-defined]
    sizes = instances._sizes
    monkeypatch.setattr(instances, "_sizes", lambda given: looked.append(v[0]) or sizes(given))
    for v[0] in (2, 7, 7, 2, 1, 1, 2, 9):
        (found,) = session(x, v)
        np.testing.assert_array_equal(np.asarray(found), np.broadcast_to(x, v))
    assert looked == [2, 7, 1, 2, 9]
    v[0] = 10
    with pytest.raises(ShapeError, match="element 0 of input 'v' is 10; legal"):
        session(x, v)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([0, 3, 4], r"element 0 of input 'v' is 0; legal: N, with N in 1\.\.9"),
        ([10, 3, 4], r"element 0 of input 'v' is 10; legal"),
        ([2, 4, 4], r"element 1 of input 'v' is 4; the program was compiled for 3"),
        ([2, 3], r"input 'v' has shape \(2,\)"),
    ],
)
def test_a_value_out_of_range_is_named(expand: Executable, value: list[int], message: str) -> None:
    session, x = lb.Session(expand, num_threads=1), feed("Expand")
    with pytest.raises(ShapeError, match=message):
        session(x, np.array(value))
    (after,) = session(x, np.array([3, 3, 4]))
    assert np.asarray(after).shape == (3, 3, 4)


def test_elements_and_shapes_say_the_same() -> None:
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[n, 1] x, int64[2] v) => (float[n, m] y) { y = Expand(x, v) }'
    )
    session = lb.Session(lb.compile(made, constants={"v": ["n", "m"]}, dims={}), num_threads=1)
    (y,) = session(np.ones((3, 1), np.float32), np.array([3, 5]))
    assert np.asarray(y).shape == (3, 5)
    with pytest.raises(ShapeError, match="dimension 'n' is 3 by axis 0 of input 'x' and 4 by element 0 of input 'v'"):
        session(np.ones((3, 1), np.float32), np.array([4, 5]))


def test_files_keep_them(expand: Executable, tmp_path: Path) -> None:
    expand.save(tmp_path / "a.lbx")
    loaded = lb.load(tmp_path / "a.lbx")
    assert loaded.main.inputs == expand.main.inputs
    (y,) = lb.Session(loaded, num_threads=1)(feed("Expand"), np.array([6, 3, 4]))
    assert np.asarray(y).shape == (6, 3, 4)


def test_dumped_ir_keeps_them(expand: Executable, tmp_path: Path) -> None:
    lb.compile(model("Expand"), constants={"v": ("N", 3, 4)}, dims={"N": "1..9"}, dump=tmp_path)
    again = lb.compile(min(tmp_path.glob("*.mlir")))
    assert [str(e) for e in again.main.inputs[1].elements] == ["N", "3", "4"]
    assert again.main.inputs == expand.main.inputs


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        ({"w": ["N"]}, "no input 'w'; its inputs: x, v"),
        ({"x": ["N"]}, "'x' has open elements and is float32; int64 is legal"),
        ({"v": ["N", -1, 4]}, "numbers from 0 are legal"),
    ],
)
def test_what_cannot_be_open(constants: dict[str, list[object]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        lb.compile(model("Expand"), constants=constants)
