"""Operands that say sizes, axes and the like, by where they come from: constants, inputs, extents of inputs, data.

Each node of the table runs with each of them, for open extents of its other inputs, beside onnxruntime.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb

Array = np.ndarray[Any, Any]

#: Where operand ``v`` comes from. The first element of a mixed one is an extent, the others are an input.
VARIANTS = ("constant", "input", "extent", "mixed", "data")
_NUMPY = {"int64": np.int64, "int32": np.int32, "float": np.float32}
_ONNX = {"int64": 7, "int32": 6, "float": 1}


@dataclass(frozen=True)
class Case:
    """``body`` reads ``inputs`` and ``v``, and makes ``y``; ``runs`` are values of ``v`` and extents by name."""

    body: str
    runs: list[tuple[Any, dict[str, int]]]
    inputs: tuple[str, ...] = ("float[a,b] x",)
    dtype: str = "int64"
    opset: int = 21
    result: str = "float"
    #: Ways that are not for it.
    without: tuple[str, ...] = ()
    #: Whether the elements of an input are sizes, from 1 on, and not indices.
    sizes: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        return np.shape(self.runs[0][0])


def two(a: int, b: int) -> dict[str, int]:
    return {"a": a, "b": b}


_INDICES = ("int64[a,b] x",)
_IMAGE = ("float[1,1,a,b] x",)
_SIGNAL = ("float[a,64,1] x",)
_ENDS = "far = Constant<value_ints = [100, 100]>()"
_ZERO, _ONE = "zero = Constant<value_int = 0>()", "one = Constant<value_int = 1>()"
_WINDOW = "w = Constant<value_floats = [1.0, 2.0, 3.0, 4.0, 4.0, 3.0, 2.0, 1.0]>()"
_VALUES = "o = Constant<value_floats = [0.25, 1.0]>()"
CASES: dict[str, Case] = {
    "Reshape": Case("y = Reshape(x, v)", [([6, 4], two(4, 6)), ([1, 1], two(1, 1)), ([-1, 2], two(4, 3))]),
    "Reshape to three": Case("y = Reshape(x, v)", [([2, 2, 6], two(4, 6)), ([3, 1, 5], two(3, 5))]),
    "Reshape, a product": Case(
        "t = Reshape(x, v) q = Transpose(t) y = MatMul(t, q)", [([6, 4], two(4, 6)), ([1, 15], two(3, 5))]
    ),
    "Expand": Case(
        "y = Expand(x, v)",
        [([2, 3, 4], {"a": 3}), ([5, 1, 1], {"a": 1}), ([1, 1, 7], {"a": 5})],
        ("float[a,1] x",),
        without=("constant", "extent"),  # an extent of an input is not stretched to that of another
    ),
    "Tile": Case("y = Tile(x, v)", [([2, 3], two(3, 4)), ([1, 1], two(5, 1)), ([2, 0], two(2, 3))]),
    "Pad": Case(
        "y = Pad(x, v)", [([1, 2, 3, 4], two(5, 1)), ([1, 1, 1, 1], two(1, 1)), ([1, -1, 2, 0], two(3, 3))], sizes=False
    ),
    "Pad, axes": Case(
        "p = Constant<value_ints = [1, 2]>() y = Pad(x, p, , v)",
        [([1], two(5, 1)), ([-1], two(1, 2)), ([0], two(2, 2))],
        sizes=False,
    ),
    "Slice, starts": Case(
        f"{_ENDS} y = Slice(x, v, far)", [([1, 2], two(5, 4)), ([1, 1], two(2, 2)), ([0, -1], two(3, 3))], sizes=False
    ),
    "Slice, ends": Case(
        "s = Constant<value_ints = [0, 0]>() y = Slice(x, s, v)", [([1, 2], two(5, 4)), ([9, 1], two(1, 2))]
    ),
    "Slice, axes": Case(
        "s = Constant<value_ints = [1]>() e = Constant<value_ints = [3]>() y = Slice(x, s, e, v)",
        [([1], two(5, 4)), ([-1], two(3, 5)), ([0], two(3, 4))],
        sizes=False,
    ),
    "Slice, steps": Case(
        f"s = Constant<value_ints = [0, 0]>() {_ENDS} c = Constant<value_ints = [0, 1]>() y = Slice(x, s, far, c, v)",
        [([2, 3], two(5, 4)), ([9, 1], two(3, 5))],
        without=("constant",),  # whether there are elements is asked of a product that no range settles
    ),
    "Resize": Case(
        'y = Resize<mode = "linear">(x, , , v)', [([1, 1, 7, 5], two(3, 4)), ([1, 1, 2, 1], two(1, 1))], _IMAGE
    ),
    "Resize, not larger": Case(
        'y = Resize<mode = "linear", keep_aspect_ratio_policy = "not_larger", axes = [2, 3]>(x, , , v)',
        [([6, 9], two(3, 4)), ([2, 2], two(5, 3))],
        _IMAGE,
    ),
    "Resize, antialias": Case(
        'y = Resize<mode = "linear", antialias = 1, axes = [2, 3]>(x, , , v)',
        [([6, 9], two(3, 4)), ([2, 3], two(7, 9))],
        _IMAGE,
    ),
    "ReduceSum": Case("y = ReduceSum(x, v)", [([1], two(1, 1)), ([-1], two(3, 5)), ([0], two(3, 4))], sizes=False),
    "ReduceMax, without the axis": Case(
        "y = ReduceMax<keepdims = 0>(x, v)", [([1], two(1, 3)), ([-1], two(3, 5))], sizes=False
    ),
    "ReduceLogSumExp": Case("y = ReduceLogSumExp(x, v)", [([1], two(1, 3)), ([0], two(3, 5))], sizes=False),
    "CumSum": Case("y = CumSum(x, v)", [(1, two(4, 3)), (-1, two(1, 1)), (0, two(3, 2))], sizes=False),
    "TopK": Case("y, i = TopK(x, v)", [([1], two(3, 4)), ([4], two(5, 4)), ([0], two(3, 2))]),
    "TopK of the fewer": Case(
        "t = Constant<value_ints = [2]>() k = Min(v, t) y, i = TopK(x, k)", [([1], two(3, 4)), ([4], two(5, 4))]
    ),
    "OneHot": Case(f"{_VALUES} y = OneHot(x, v, o)", [(3, two(3, 4)), (1, two(5, 1)), (7, two(1, 1))], _INDICES),
    "OneHot, first": Case(
        f"{_VALUES} y = OneHot<axis = 0>(x, v, o)", [([3], two(3, 4)), ([1], two(5, 1))], _INDICES, "int32"
    ),
    "OneHot, a float": Case(f"{_VALUES} y = OneHot(x, v, o)", [([3], two(3, 4)), ([1], two(5, 1))], _INDICES, "float"),
    "Range": Case(
        f"{_ZERO} {_ONE} r = Range(zero, v, one) y = Gather(x, r)", [(3, two(3, 2)), (1, two(1, 3)), (0, two(2, 2))]
    ),
    "Range, start": Case(
        f"n = Constant<value_int = 9>() {_ONE} y = Range(v, n, one)",
        [(3, {}), (8, {})],
        ("float[2] x",),
        result="int64",
    ),
    "Range, delta": Case(
        f"{_ZERO} n = Constant<value_int = 9>() y = Range(zero, n, v)",
        [(3, {}), (1, {}), (12, {})],
        ("float[2] x",),
        result="int64",
    ),
    "Range of int32": Case(
        f"{_ZERO} {_ONE} s = Cast<to = 6>(zero) d = Cast<to = 6>(one) y = Range(s, v, d)",
        [(3, {}), (1, {})],
        ("float[2] x",),
        "int32",
        result="int32",
    ),
    "Split": Case(
        "p, q = Split<axis = 1>(x, v) y = Concat<axis = 1>(q, p)",
        [([1, 3], two(3, 4)), ([1, 1], two(1, 2)), ([0, 2], two(1, 2))],
    ),
    "Split into three": Case("y, z, q = Split(x, v)", [([1, 3, 2], two(6, 4)), ([2, 1, 1], two(4, 1))]),
    "Squeeze": Case(
        "y = Squeeze(x, v)", [([2], {"a": 4}), ([-1], {"a": 1}), ([0], {"a": 3})], ("float[1,a,1] x",), sizes=False
    ),
    "Squeeze, two": Case(
        "y = Squeeze(x, v)", [([2, 0], {"a": 4}), ([-1, 0], {"a": 1})], ("float[1,a,1] x",), sizes=False
    ),
    "Unsqueeze": Case("y = Unsqueeze(x, v)", [([2], two(4, 3)), ([-1], two(1, 1)), ([0], two(3, 2))], sizes=False),
    "Unsqueeze, three": Case("y = Unsqueeze(x, v)", [([2, 1, 4], two(4, 3)), ([-1, 1, 2], two(1, 1))], sizes=False),
    "ConstantOfShape": Case("y = ConstantOfShape(v)", [([2, 3], {}), ([1, 1], {}), ([5, 0], {})], ("float[2] x",)),
    "Trilu": Case("y = Trilu(x, v)", [(1, two(4, 3)), (100, two(4, 4)), (-1, two(1, 1))], sizes=False),
    "STFT, step": Case(
        f"{_WINDOW} y = STFT(x, v, w)", [(8, {"a": 1}), (1, {"a": 2}), (56, {"a": 1})], _SIGNAL, opset=17
    ),
    "STFT, length": Case(
        "n = Constant<value_int = 8>() y = STFT(x, n, , v)", [(4, {"a": 2}), (64, {"a": 1})], _SIGNAL, opset=17
    ),
    "DFT, length": Case("y = DFT(x, v)", [(16, {"a": 1}), (4, {"a": 3}), (20, {"a": 1})], ("float[a,16,1] x",)),
    "DFT, axis": Case(
        "y = DFT(x, , v)", [(1, {"a": 3}), (0, {"a": 2}), (-2, {"a": 1})], ("float[a,8,1] x",), sizes=False
    ),
    "HannWindow": Case("y = HannWindow(v)", [(16, {}), (1, {})], ("float[2] x",)),
    "GRU, lengths": Case(
        "y, h = GRU<hidden_size = 4>(x, w, r, , v)",
        [([4, 2], {"a": 4}), ([1, 1], {"a": 1}), ([0, 2], {"a": 3})],
        ("float[a,2,3] x", "float[1,12,3] w", "float[1,12,4] r"),
        "int32",
        sizes=False,
    ),
    "LSTM, steps": Case(
        "c = Constant<value_ints = [1]>() n = Concat<axis = 0>(v, c, c) t = Tile(x, n) "
        "y, h, k = LSTM<hidden_size = 4>(t, w, r)",
        [([4], {"a": 2}), ([1], {"a": 1})],
        ("float[1,a,3] x", "float[1,16,3] w", "float[1,16,4] r"),
    ),
    "AffineGrid": Case(
        "y = AffineGrid(x, v)",
        [([2, 1, 4, 6], {"a": 2}), ([1, 3, 1, 4], {"a": 1})],
        ("float[a,2,3] x",),
    ),
    "CenterCropPad": Case("y = CenterCropPad(x, v)", [([4, 6], two(4, 6)), ([2, 4], two(5, 3)), ([1, 1], two(1, 2))]),
    "Expand, then a sum": Case(
        "e = Expand(x, v) y = Add(e, z)",
        [([3, 4], {"a": 3, "c": 4}), ([5, 1], {"a": 5, "c": 1})],
        ("float[a,1] x", "float[a,c] z"),
    ),
    "Slice, then a sum": Case(
        f"{_ENDS} t = Slice(x, v, far) q = ReduceSum(t) y = Mul(q, t)",
        [([1, 2], two(5, 4)), ([1, 1], two(2, 2))],
        without=("constant",),  # that the sum stays inside of what is left is not proved
    ),
}


def model(case: Case, way: str, value: Any) -> onnx.ModelProto:
    """``case`` with ``v`` by ``way``: ``value`` where that is a constant."""
    kind, shape, inputs, made = case.dtype, case.shape, list(case.inputs), ""
    count = int(np.prod(shape))
    of = f"[{count}]" if shape else ""
    if way == "input":
        inputs.append(f"{kind}{of} v")
    elif way == "extent":
        inputs.append(f"float[{','.join(f's{i}' for i in range(count))}] sized")
        one = "" if shape else "at = Constant<value_int = 0>() "
        made = f"shape = Shape(sized) {one}number = {'Identity(shape)' if shape else 'Gather(shape, at)'} "
        made += f"v = Cast<to = {_ONNX[kind]}>(number) "
    elif way == "mixed":
        inputs += ["float[s] sized", f"int64[{count - 1}] others"]
        made = f"shape = Shape(sized) joined = Concat<axis = 0>(shape, others) v = Cast<to = {_ONNX[kind]}>(joined) "
    elif way == "data":
        inputs.append(f"float{of} given")
        made = "twice = Add(given, given) half = Constant<value_float = 0.5>() once = Mul(twice, half) "
        made += f"v = Cast<to = {_ONNX[kind]}>(once) "
    text = f"g ({', '.join(inputs)}) => ({case.result} y) {{ {made}{case.body} }}"
    created_model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {case.opset}]> {text}')
    if way == "constant":
        array = np.array(value, _NUMPY[kind]).reshape(shape)
        created_model.graph.initializer.append(onnx.numpy_helper.from_array(array, "v"))
    return created_model


def feeds(case: Case, way: str, run: tuple[Any, dict[str, int]], inputs: Any) -> dict[str, Array] | None:
    """What a run gives; None where ``v`` cannot be by this ``way``, as no extent of an input is below 1."""
    value, extents = run
    values = [int(e) for e in np.ravel(value)]
    by_extents = values if way == "extent" else values[:1] if way == "mixed" else []
    elements = values if way == "input" else values[1:] if way == "mixed" else []
    if any(e < 1 for e in by_extents) or ((case.sizes or way == "mixed") and any(e == 0 for e in elements)):
        return None
    if way == "mixed" and any(e < 0 for e in elements):
        return None
    random = np.random.default_rng(5)
    given: dict[str, Array] = {
        "v": np.array(value, _NUMPY[case.dtype]),
        "sized": np.zeros(by_extents, np.float32),
        "others": np.array(values[1:], np.int64),
        "given": np.array(value, np.float32),
    }
    made = {}
    for each in inputs:
        dims = each.type.tensor_type.shape.dim
        shape = [d.dim_value if d.HasField("dim_value") else extents.get(d.dim_param, 0) for d in dims]
        is_index = each.type.tensor_type.elem_type == onnx.TensorProto.INT64
        drawn = random.integers(-2, 5, shape) if is_index else random.standard_normal(shape).astype(np.float32)
        made[each.name] = given.get(each.name, drawn)
    return made


def expected(made: onnx.ModelProto, given: dict[str, Array]) -> Array:
    peer = onnx.ModelProto()
    peer.CopyFrom(made)
    peer.graph.output[0].type.tensor_type.ClearField("shape")
    (result,) = onnxruntime.InferenceSession(peer.SerializeToString()).run(None, given)
    return np.asarray(result)


@pytest.mark.sample(5)
@pytest.mark.filterwarnings("ignore::landbridge.errors.FallbackWarning")
@pytest.mark.parametrize("way", VARIANTS)
@pytest.mark.parametrize("name", CASES)
def test_what_an_operand_says_is_read_wherever_it_is_from(name: str, way: str) -> None:
    case = CASES[name]
    if way in case.without or (way == "mixed" and np.size(case.runs[0][0]) < 2):
        pytest.skip("no way for this operand")
    session = None
    for run in case.runs:
        made = model(case, way, run[0])
        given = feeds(case, way, run, made.graph.input)
        if given is None:
            continue
        if session is None or way == "constant":
            session = lb.Session(lb.compile(made), num_threads=1)
        (found,) = (np.asarray(y) for y in session(given).values())
        wanted = expected(made, given)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), run
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-5, err_msg=str(run))
