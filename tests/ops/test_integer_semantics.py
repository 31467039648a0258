"""What C and ONNX leave open has one value on every kind of target, for constants too: docs/numbers.md."""

from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import landbridge as lb
from tests.ops.elementwise_models import KINDS, Array, OneOperator, model_of, target_of

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
_CAST_FROM = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64}


def number_cases(dtype: str) -> Array:
    """Both ends of a dtype and small numbers of both signs."""
    info = np.iinfo(dtype)
    few = {info.min, info.min + 1, info.max - 1, info.max, info.max // 2, 0, 1, 2, 3, 5, 7, 10, 100}
    few |= {-1, -2, -3, -7, -100} if info.min else set()
    return np.array(sorted(few), dtype)


def wrapped(value: int, dtype: str) -> int:
    """``value`` modulo 2 to the width."""
    info = np.iinfo(dtype)
    value &= (1 << info.bits) - 1
    return value - (1 << info.bits) if value > info.max else value


def quotient(a: int, b: int) -> int:
    """Towards zero; by 0 the dividend."""
    return a if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def powered(a: int, b: int, dtype: str) -> int:
    if b >= 0:
        return wrapped(pow(a, b, 1 << 64), dtype)
    return {0: int(np.iinfo(dtype).max), 1: 1, -1: 1 if b % 2 == 0 else -1}.get(a, 0)


def meaning(op: str, a: int, b: int, dtype: str) -> int:
    bits = np.iinfo(dtype).bits
    match op:
        case "Div":
            return wrapped(quotient(a, b), dtype)
        case "Mod":
            return 0 if b == 0 else a % b
        case "Fmod":
            return 0 if b == 0 else a - b * quotient(a, b)
        case "Left":
            return wrapped(a << b, dtype) if b < bits else 0
        case "Right":
            return a >> b if b < bits else 0
        case _:
            return powered(a, b, dtype)


_NODES: dict[str, tuple[str, dict[str, Any]]] = {
    "Div": ("Div", {}),
    "Mod": ("Mod", {}),
    "Fmod": ("Mod", {"fmod": 1}),
    "Left": ("BitShift", {"direction": "LEFT"}),
    "Right": ("BitShift", {"direction": "RIGHT"}),
    "Pow": ("Pow", {}),
}
_LEGAL = [
    (name, dtype)
    for name, dtype in product(_NODES, INTEGERS)
    if (name not in ("Left", "Right") or dtype[0] == "u") and (name != "Pow" or dtype in ("int32", "int64"))
]


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("case", "kind"), list(product(_LEGAL, KINDS)), ids=lambda v: "-".join(v) if len(v) == 2 else v
)
def test_integers(case: tuple[str, str], kind: str) -> None:
    name, dtype = case
    values = number_cases(dtype)
    a, b = (np.ascontiguousarray(v) for v in np.array(list(product(values, values)), dtype).T)
    op, attributes = _NODES[name]
    want = np.array([meaning(name, int(x), int(y), dtype) for x, y in zip(a, b, strict=True)], dtype)
    np.testing.assert_array_equal(OneOperator(kind, op, [a, b], a.dtype, attributes)(a, b), want)


_FLOATS = [0.0, -0.0, 0.99, -0.99, 1.5, -2.5, 127.9, 128, -128.9, -129, -130, 255.9, 256, 32768, -32769, 65536, 2.0**31]
_FLOATS += [-(2.0**31), -(2.0**32), 2.0**32, 2.0**63, -(2.0**63), 2.0**64, 1e20, -1e20, -1e38, np.inf, -np.inf, np.nan]


def clamped(x: Array, dtype: str) -> Array:
    info = np.iinfo(dtype)
    exact = [0 if np.isnan(v) else info.max if v == np.inf else info.min if v == -np.inf else int(v) for v in x]
    return np.array([min(max(v, info.min), info.max) for v in exact], dtype)


def to(dtype: str) -> dict[str, int]:
    return {"to": int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))}


@pytest.mark.sample(5)
@pytest.mark.parametrize(("source", "dtype", "kind"), list(product(_CAST_FROM, INTEGERS, KINDS)))
def test_casts_of_floats_clamp(source: str, dtype: str, kind: str) -> None:
    with np.errstate(over="ignore"):
        x = np.array(_FLOATS).astype(_CAST_FROM[source])
    got = OneOperator(kind, "Cast", [x], dtype, to(dtype))(x)
    np.testing.assert_array_equal(got, clamped(x.astype(float), dtype))


@pytest.mark.parametrize("bound", [0.0, 3.0])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_nan_becomes_0_also_after_a_bound_that_no_number_of_the_integer_is_below(dtype: str, bound: float) -> None:
    """LLVM takes a maximum with 0 for the test by 0 of a conversion to unsigned integers, and NaN passed both."""
    nodes = [helper.make_node("Max", ["x", "low"], ["y"]), helper.make_node("Cast", ["y"], ["z"], **to(dtype))]
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [64])]
    results = [helper.make_tensor_value_info("z", to(dtype)["to"], [64])]
    low = numpy_helper.from_array(np.array(bound, np.float32), "low")
    model = helper.make_model(helper.make_graph(nodes, "bounded", values, results, [low]))
    x = np.where(np.arange(64) % 3, 5, np.nan).astype(np.float32)
    (got,) = lb.Session(lb.compile(model, "llvm"))(x)
    np.testing.assert_array_equal(np.array(got), np.where(np.isnan(x), 0, 5))


def folded(op: str, *inputs: Array, output: Any, **attributes: Any) -> Array:
    """What a model of constants alone gives."""
    model = model_of(op, inputs, output, attributes)
    model.graph.initializer.extend(numpy_helper.from_array(a, f"x{i}") for i, a in enumerate(inputs))
    del model.graph.input[:]
    session = lb.Session(lb.compile(model, "llvm"))
    session.run()
    return np.array(session.get_output(0))


def test_constants_give_what_kernels_give() -> None:
    x = np.array(_FLOATS, np.float32)
    for dtype in INTEGERS:
        np.testing.assert_array_equal(folded("Cast", x, output=dtype, **to(dtype)), clamped(x.astype(float), dtype))
    a, b = np.array([7, -7, 5, -(2**31)], np.int32), np.array([0, 2, 0, -1], np.int32)
    np.testing.assert_array_equal(folded("Div", a, b, output=np.int32), [7, -3, 5, -(2**31)])
    np.testing.assert_array_equal(folded("Mod", a, b, output=np.int32), [0, 1, 0, 0])
    np.testing.assert_array_equal(folded("Pow", a, np.int32([-1, 2, 3, 1]), output=np.int32), [0, 49, 125, -(2**31)])


@pytest.mark.parametrize("kind", KINDS)
def test_roots_by_power_are_those_of_c(kind: str) -> None:
    x = np.resize(np.array([-np.inf, -0.0, 0, 4, np.inf, np.nan, -1], np.float32), 23)
    model = model_of("Pow", [x, x], np.float32)
    model.graph.initializer.append(numpy_helper.from_array(np.array(0.5, np.float32), "x1"))
    del model.graph.input[1]
    target, device = target_of(kind)
    executable = lb.compile(model, target)
    session = lb.Session(executable) if device is None else lb.Session(executable, device=device)
    session.set_input("x0", x)
    session.run()
    got = np.array(session.get_output(0).to_device("cpu"))
    np.testing.assert_array_equal(got[:7], [np.inf, 0, 0, 2, np.inf, np.nan, np.nan])
    assert not np.signbit(got[1])
