"""Inputs that say sizes, axes and the like, of models that are compiled as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb
from landbridge.errors import ShapeError
from landbridge.executable.instructions import Call

Array = np.ndarray[Any, Any]
LAST = np.iinfo(np.int64).max

#: Inputs beside ``x``, shape of ``x``, body, rank of ``y``, and values of the inputs, one list a run.
SIZES: dict[str, tuple[str, tuple[int, ...], str, int, list[list[Any]]]] = {
    "Expand": ("int64[3] v", (3, 1), "y = Expand(x, v)", 3, [[[2, 3, 4]], [[1, 1, 7]], [[5, 3, 1]]]),
    "Reshape": ("int64[2] v", (4, 6), "y = Reshape(x, v)", 2, [[[8, 3]], [[-1, 2]], [[0, -1]], [[1, 24]]]),
    "Reshape to one axis": ("int64[1] v", (4, 6), "y = Reshape(x, v)", 1, [[[24]], [[-1]]]),
    "Tile": ("int64[2] v", (3, 4), "y = Tile(x, v)", 2, [[[1, 2]], [[5, 1]], [[0, 3]]]),
    "TopK": ("int64[1] v", (6, 20), "y, i = TopK(x, v)", 2, [[[1]], [[20]], [[7]], [[0]]]),
    "Trilu": ("int64 v", (5, 7), "y = Trilu(x, v)", 2, [[0], [-2], [3], [-100], [100]]),
    "Split": (
        "int64[3] v",
        (2, 9),
        "a, b, c = Split<axis = 1>(x, v) y = Concat<axis = 1>(c, a, b)",
        2,
        [[[1, 3, 5]], [[7, 1, 1]], [[0, 9, 0]]],
    ),
    "Pad": (
        "int64[4] v",
        (4, 5),
        "y = Pad(x, v)",
        2,
        [[[0, 0, 0, 0]], [[1, 2, 3, 4]], [[-1, 0, 2, -3]], [[-3, 5, 0, -4]], [[-4, 0, 0, 0]]],
    ),
    "Pad, reflected": ("int64[4] v", (4, 5), 'y = Pad<mode = "reflect">(x, v)', 2, [[[1, 2, 3, 4]], [[0, 0, 2, 0]]]),
    "Slice": (
        "int64[2] s, int64[2] e",
        (9, 7),
        "y = Slice(x, s, e)",
        2,
        [[[0, 0], [9, 7]], [[2, -3], [-1, LAST]], [[-100, 6], [1, 100]], [[5, 0], [2, 7]]],
    ),
    "Slice in steps": (
        "int64[2] s, int64[2] e, int64[2] a, int64[2] t",
        (9, 7),
        "y = Slice(x, s, e, a, t)",
        2,
        [
            [[0, 0], [9, 7], [0, 1], [1, 2]],
            [[-2, 1], [-1, LAST], [1, 0], [1, 3]],
            [[0, 0], [9, 9], [-1, -2], [9, 1]],
            [[8, 0], [0, 7], [0, 1], [-2, 3]],
            [[-1, 8], [-100, 1], [1, 0], [-1, -3]],
        ],
    ),
    "Slice backwards": (
        "int64[2] s, int64[2] e, int64[2] t",
        (9, 7),
        "a = Constant<value_ints = [1, 0]>() y = Slice(x, s, e, a, t)",
        2,
        [
            [[0, 0], [7, 9], [1, 2]],
            [[6, 8], [0, 0], [-1, -2]],
            [[-1, 0], [-99, 9], [-3, 4]],
            [[1, -1], [5, 1], [1, -1]],
            [[2, 0], [5, 9], [-1, 1]],
        ],
    ),
    "ConstantOfShape": ("int64[2] v", (1,), "z = ConstantOfShape(v) y = Add(z, x)", 2, [[[1, 1]], [[3, 40]], [[3, 0]]]),
    "Resize": (
        "int64[2] v",
        (5, 7),
        'y = Resize<mode = "linear">(x, , , v)',
        2,
        [[[5, 7]], [[1, 20]], [[9, 3]]],
    ),
}
#: How many programs there are of some: one for each order of the axes, for each direction of both steps.
PROGRAMS = {"Slice in steps": 32, "Slice backwards": 4}
#: As above, of inputs that say what is done.
CHOICES: dict[str, tuple[str, tuple[int, ...], str, int, list[list[Any]]]] = {
    "ReduceSum": ("int64[2] v", (2, 3, 4), "y = ReduceSum(x, v)", 3, [[[0, 1]], [[-1, 0]], [[2, 1]]]),
    "ReduceMax, without the axis": (
        "int64[1] v",
        (2, 3, 4),
        "y = ReduceMax<keepdims = 0>(x, v)",
        2,
        [[[0]], [[-1]], [[1]]],
    ),
    "CumSum": ("int32 v", (2, 3, 4), "y = CumSum(x, v)", 3, [[0], [-1], [1]]),
    "Unsqueeze": ("int64[2] v", (2, 3), "y = Unsqueeze(x, v)", 4, [[[0, 1]], [[-1, 1]], [[3, 2]]]),
    "Squeeze": ("int64[1] v", (1, 3, 1), "y = Squeeze(x, v)", 2, [[[0]], [[-1]], [[2]]]),
    "two": (
        "int64[1] v, int64 w",
        (2, 3),
        "a = ReduceMean(x, v) y = CumSum(a, w)",
        2,
        [[[0], 1], [[1], 0], [[-1], -1]],
    ),
}


def model(name: str) -> onnx.ModelProto:
    others, shape, body, rank, _ = (SIZES | CHOICES)[name]
    result = ", ".join(f"y{i}" for i in range(rank))
    extents = ", ".join(map(str, shape))
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g (float[{extents}] x, {others}) => (float[{result}] y) {{ {body} }}'
    )


def runs(name: str) -> list[dict[str, Array]]:
    _, shape, _, _, values = (SIZES | CHOICES)[name]
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    inputs = model(name).graph.input[1:]
    dtypes = [onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type) for i in inputs]
    return [
        {"x": x, **{i.name: np.array(v, dtype) for i, v, dtype in zip(inputs, each, dtypes, strict=True)}}
        for each in values
    ]


def expect_as_onnxruntime(session: lb.Session, name: str) -> None:
    peer = onnxruntime.InferenceSession(model(name).SerializeToString())
    for given in runs(name):
        (expected,) = peer.run(None, given)
        (found,) = session(*given.values())
        np.testing.assert_allclose(np.asarray(found), expected, 1e-5, 1e-6)


@pytest.mark.sample(5)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_read_by_runs(name: str, target: str) -> None:
    executable = lb.compile(model(name), target)
    assert len(executable.programs) == PROGRAMS.get(name, 1)
    expect_as_onnxruntime(lb.Session(executable, num_threads=1), name)


@pytest.mark.sample(4)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("name", CHOICES)
def test_an_axis_chooses_the_program(name: str, target: str) -> None:
    expect_as_onnxruntime(lb.Session(lb.compile(model(name), target), num_threads=1), name)


def test_programs_share_kernels_and_files_keep_them(tmp_path: Path) -> None:
    executable = lb.compile(model("ReduceSum"))
    kernels = {s.function for each in executable.programs.values() for s in each.instructions if isinstance(s, Call)}
    assert (len(executable.programs), len(kernels)) == (36, 6)  # three pairs of axes, and three single ones named twice
    executable.save(tmp_path / "a.lbx")
    loaded = lb.load(tmp_path / "a.lbx")
    assert {n: f.inputs for n, f in loaded.programs.items()} == {n: f.inputs for n, f in executable.programs.items()}
    expect_as_onnxruntime(lb.Session(loaded, num_threads=1), "ReduceSum")


def test_files_keep_what_a_run_must_hold_to(tmp_path: Path) -> None:
    executable = lb.compile(model("Split"))
    executable.save(tmp_path / "a.lbx")
    loaded = lb.load(tmp_path / "a.lbx")
    assert loaded.main.guards == executable.main.guards != ()
    expect_as_onnxruntime(lb.Session(loaded, num_threads=1), "Split")


def test_what_is_bound_is_read_again_by_each_run() -> None:
    session = lb.Session(lb.compile(model("ReduceMax, without the axis")), num_threads=1)
    x = np.random.default_rng(1).standard_normal((2, 3, 4)).astype(np.float32)
    axis = np.array([0])
    session.set_input_zero_copy("x", x)
    session.set_input_zero_copy("v", axis)
    for axis[0] in (0, 1, -1, 0):
        x += 1
        session.run()
        np.testing.assert_array_equal(np.asarray(session.get_output(0)), x.max(axis[0]))


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("Split", [[1, 3, 6]], r"the size of the last part is 6 with .*; 5 is legal"),
        ("Reshape", [[5, 5]], "the number of elements is 25 with v_0=5, v_1=5; 24 is legal"),
        ("Reshape to one axis", [[25]], "the number of elements is 25 with v=25; 24 is legal"),
        ("Pad", [[-5, 0, 0, 0]], "a padded extent is -1 with v_0=-5, v_2=0; 0 is legal"),
        ("Expand", [[2, 2, 4]], r"axis 1 of the shape is 2 with v_1=2; 1 is legal"),
        ("TopK", [[21]], r"element 0 of input 'v' is 21; legal: v, with v in 0\.\.20"),
        ("CumSum", [3], r"input 'v' is \[3\]; legal: \[-3\]; \[-2\]; \[-1\]; \[0\]; \[1\]; \[2\]"),
        ("Squeeze", [[1]], r"input 'v' is \[1\]; legal: \[-3\]; \[-1\]; \[0\]; \[2\]"),
    ],
)
def test_a_value_that_is_not_legal_is_refused(name: str, value: list[Any], message: str) -> None:
    session = lb.Session(lb.compile(model(name)), num_threads=1)
    good, *_ = runs(name)
    bad = dict(good)
    for (key, array), each in zip(list(good.items())[1:], value, strict=True):
        bad[key] = np.array(each, array.dtype)
    with pytest.raises(ShapeError, match=message):
        session(*bad.values())
    session(*good.values())


@pytest.mark.filterwarnings("ignore::landbridge.errors.FallbackWarning")
def test_of_too_many_programs_there_is_one_with_the_node_on_the_host() -> None:
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[2, 3, 4, 5, 6] x, int64[4] v) => (float[a, b, c, d, e] y) '
        "{ y = ReduceSum(x, v) }"
    )
    session = lb.Session(lb.compile(made), num_threads=1)
    x = np.random.default_rng(1).standard_normal((2, 3, 4, 5, 6)).astype(np.float32)
    for axes in ([0, 1, 2, 3], [-1, 2, 0, 3]):
        (y,) = session(x, np.array(axes))
        np.testing.assert_allclose(np.asarray(y), x.sum(tuple(axes), keepdims=True), 1e-4, 1e-5)


def test_an_input_without_elements_is_known() -> None:
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[2, 3] x, int64[0] v) => (float[1, 1] y) '
        "{ y = ReduceSum(x, v) }"
    )
    executable = lb.compile(made)
    assert not executable.is_open
    (y,) = lb.Session(executable, num_threads=1)(np.ones((2, 3), np.float32), np.zeros(0, np.int64))
    assert np.asarray(y) == 6


def test_what_the_model_computes_is_read_when_it_is_there() -> None:
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[5] x) => (float[n] y) '
        "{ i = Cast<to = 7>(x) k = ReduceMax(i) y, j = TopK(x, k) }"
    )
    session = lb.Session(lb.compile(made), num_threads=1)
    for most in (3.5, 5.0, 1.25):
        x = np.array([0.5, most, -2, 1, 0.75], np.float32)
        (y,) = session(x)
        np.testing.assert_array_equal(np.asarray(y), np.sort(x)[::-1][: int(most)])


def test_axes_may_be_inputs_on_targets_of_known_shapes() -> None:
    executable = lb.compile(model("CumSum"), "opencl")
    assert len(executable.programs) == 6


def test_their_ranges_may_be_declared() -> None:
    executable = lb.compile(model("TopK"), dims={"v": "2..5"})
    assert executable.dimensions == {"v": lb.Dim(2, 5)}
    session = lb.Session(executable, num_threads=1)
    with pytest.raises(ShapeError, match=r"element 0 of input 'v' is 1; legal: v, with v in 2\.\.5"):
        session(np.ones((6, 20), np.float32), np.array([1]))


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["Reshape", "Pad", "TopK", "Trilu"])
def test_data_say_what_an_input_may(name: str) -> None:
    """The same values, computed from floats: open extents of ``x`` stay as wide as they are."""
    others, shape, body, rank, values = SIZES[name]
    count = others.removesuffix(" v").removeprefix("int64")
    result = ", ".join(f"y{i}" for i in range(rank))
    text = f"(float[a, b] x, float{count} f) => (float[{result}] y) {{ g = Add(f, f) v = Cast<to = 7>(g) {body} }}"
    made = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {text}')
    session = lb.Session(lb.compile(made), num_threads=1)
    peer = onnxruntime.InferenceSession(made.SerializeToString())
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    for (value,) in values:
        given = {"x": x, "f": np.asarray(np.array(value) / 2, np.float32)}
        np.testing.assert_array_equal(np.asarray(session(*given.values())[0]), peer.run(None, given)[0])


@pytest.mark.parametrize("k", [0, 1, 4])
def test_open_extents_beside_none_make_a_tensor_without_elements(k: int) -> None:
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[a, b] x) => (float[n, m] y) '
        f"{{ k = Constant<value_ints = [{k}]>() y, i = TopK(x, k) }}"
    )
    session = lb.Session(lb.compile(made), num_threads=1)
    x = np.random.default_rng(3).standard_normal((3, 5)).astype(np.float32)
    np.testing.assert_array_equal(np.asarray(session(x)[0]), np.sort(x)[:, ::-1][:, :k])
