"""Models of a schedule, an epilogue and an extent that no tile divides, with what numpy computes of them in float64.

All numbers are small integers, of which every sum is exact in float32 and in any order: results are those of float64,
to the bit, but for the exponentials of Softmax and for Erf.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import erf
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]


@dataclass
class Draft:
    """A model being written: ``live`` says that an operand is an input rather than a constant."""

    live: bool
    rng: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    inputs: dict[str, Array] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)

    def values(self, *shape: int, low: int = -4, high: int = 5) -> Array:
        """Random integers as float32."""
        return self.rng.integers(low, high, shape).astype(np.float32)

    def given(self, name: str, array: Array) -> Array:
        """An input; its values in float64, where they are floats."""
        self.inputs[name] = array
        return array.astype(np.float64) if array.dtype.kind == "f" else array

    def constant(self, name: str, array: Array) -> Array:
        """A constant, likewise."""
        self.constants[name] = array
        return array.astype(np.float64) if array.dtype.kind == "f" else array

    def operand(self, name: str, array: Array) -> Array:
        """An input or a constant, likewise."""
        return (self.given if self.live else self.constant)(name, array)

    def node(self, op: str, inputs: str, output: str, **attributes: Any) -> None:
        """A node whose inputs are the words of ``inputs``."""
        self.nodes.append(helper.make_node(op, inputs.split(), [output], name=output, **attributes))

    def model(self, result: Array) -> onnx.ModelProto:
        """The finished model, whose output ``y`` is like ``result``."""
        kinds = {n: helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in self.inputs.items()}
        kind = TensorProto.FLOAT if result.dtype.kind == "f" else helper.np_dtype_to_tensor_dtype(result.dtype)
        graph = helper.make_graph(
            self.nodes,
            "remainders",
            [helper.make_tensor_value_info(n, kinds[n], a.shape) for n, a in self.inputs.items()],
            [helper.make_tensor_value_info("y", kind, result.shape)],
            [numpy_helper.from_array(a, n) for n, a in self.constants.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _product(d: Draft, n: int) -> Array:
    x, w = d.given("x", d.values(3, 5)), d.operand("w", d.values(5, n))
    d.node("MatMul", "x w", "r")
    return x @ w


def _long_product(d: Draft, n: int) -> Array:
    x, w = d.given("x", d.values(n, 70)), d.operand("w", d.values(70, n))
    d.node("MatMul", "x w", "r")
    return x @ w


def _sums_along_memory(d: Draft, n: int) -> Array:
    x, w = d.given("x", d.values(2, 40)), d.operand("w", d.values(n, 40))
    d.node("Gemm", "x w", "r", transB=1)
    return x @ w.T


def _row_dots(d: Draft, n: int) -> Array:
    x, w = d.given("x", d.values(n, 4)), d.operand("w", d.values(n, 4))
    d.node("Einsum", "x w", "r", equation="ab,ab->a")
    return np.einsum("ab,ab->a", x, w)


def _rows_times_sums(d: Draft, n: int) -> Array:
    x, w = d.given("x", d.values(n, 19)), d.operand("w", d.values(n, 3))
    d.node("Einsum", "x w", "r", equation="ab,ac->a")
    return np.einsum("ab,ac->a", x, w)


def _head_dots(d: Draft, n: int) -> Array:
    x, w = d.given("x", d.values(2, n, 8)), d.operand("w", d.values(n, 8))
    d.node("Einsum", "x w", "r", equation="bhd,hd->bh")
    return np.einsum("bhd,hd->bh", x, w)


def _windows(x: Array, height: int, width: int) -> Array:
    return np.lib.stride_tricks.sliding_window_view(x, (height, width), axis=(2, 3))


def _conv(channels: int, pixels: int) -> Callable[[Draft, int], Array]:
    def schedule(d: Draft, n: int) -> Array:
        """``n`` output channels where ``channels``, else ``n`` pixels of a line."""
        outputs, line = (n, pixels) if pixels else (6, n)
        x = d.given("x", d.values(1, channels, 3, line))
        w = d.operand("w", d.values(outputs, channels, 3, 3, low=-2, high=3))
        d.node("Conv", "x w", "r", pads=[1, 1, 1, 1])
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        return np.einsum("bchwij,ocij->bohw", _windows(padded, 3, 3), w)

    return schedule


def _blocked_convs(d: Draft, n: int) -> Array:
    x = d.given("x", d.values(1, 3, 4, 5))
    first = d.constant("first", d.values(n, 3, 1, 1, low=-2, high=3))
    w = d.operand("w", d.values(n, n, 1, 1, low=-1, high=2))
    d.node("Conv", "x first", "f")
    d.node("Conv", "f w", "r")
    return np.einsum("po,bohw->bphw", w[..., 0, 0], np.einsum("oc,bchw->bohw", first[..., 0, 0], x))


def _depthwise(d: Draft, n: int) -> Array:
    x, w = d.given("x", d.values(1, n, 4, 5)), d.operand("w", d.values(n, 1, 3, 3))
    d.node("Conv", "x w", "r", group=n, pads=[1, 1, 1, 1])
    return np.einsum("bchwij,cij->bchw", _windows(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), 3, 3), w[:, 0])


def _grouped(d: Draft, n: int) -> Array:
    x, w = d.given("x", d.values(1, 6, 2, 3)), d.operand("w", d.values(2 * n, 3, 1, 1))
    d.node("Conv", "x w", "r", group=2)
    halves = [np.einsum("oc,bchw->bohw", w[g * n : g * n + n, :, 0, 0], x[:, 3 * g : 3 * g + 3]) for g in range(2)]
    return np.concatenate(halves, 1)


def _transposed(d: Draft, n: int) -> Array:
    x, w = d.given("x", d.values(1, 3, 2, 3)), d.operand("w", d.values(3, n, 2, 2))
    d.node("ConvTranspose", "x w", "r", strides=[2, 2])
    return np.einsum("bchw,coij->bohiwj", x, w).reshape(1, n, 4, 6)


def _max_pool(d: Draft, n: int) -> Array:
    x = d.given("x", d.values(1, 2, 4, n))
    d.node("MaxPool", "x", "r", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    found: Array = _windows(padded, 3, 3).max((4, 5))
    return found


def _average_pool(d: Draft, n: int) -> Array:
    x = d.given("x", 4 * d.values(1, n, 4, 3))
    d.node("AveragePool", "x", "r", kernel_shape=[2, 2])
    found: Array = _windows(x, 2, 2).mean((4, 5))
    return found


def _sum_of_rows(d: Draft, n: int) -> Array:
    x = d.given("x", d.values(n, 37))
    d.constant("axes", np.array([1]))
    d.node("ReduceSum", "x axes", "r", keepdims=0)
    found: Array = x.sum(1)
    return found


def _max_of_columns(d: Draft, n: int) -> Array:
    x = d.given("x", d.values(6, n))
    d.node("ReduceMax", "x", "r", axes=[0], keepdims=1)
    found: Array = x.max(0, keepdims=True)
    return found


def _softmax(d: Draft, n: int) -> Array:
    x = d.given("x", d.values(3, n))
    d.node("Softmax", "x", "shares", axis=-1)
    scale = d.operand("scale", np.array(100, np.float32))
    d.node("Mul", "shares scale", "r")
    e = np.exp(x - x.max(1, keepdims=True))
    found: Array = e / e.sum(1, keepdims=True) * scale
    return found


def _elementwise(d: Draft, n: int) -> Array:
    x, w = d.given("x", d.values(3, n)), d.operand("w", d.values(n))
    d.node("Mul", "x w", "r")
    return x * w


def _across(d: Draft, n: int) -> Array:
    x, w = d.given("x", d.values(n, 6)), d.operand("w", d.values(6, n))
    d.node("Transpose", "x", "t", perm=[1, 0])
    d.node("Mul", "t w", "r")
    return x.T * w


SCHEDULES: dict[str, Callable[[Draft, int], Array]] = {
    "product": _product,
    "long product": _long_product,
    "sums along memory": _sums_along_memory,
    "row dots": _row_dots,
    "rows times sums": _rows_times_sums,
    "head dots": _head_dots,
    "convolution, few channels": _conv(3, 5),
    "convolution, many channels": _conv(32, 4),
    "convolution, a line of pixels": _conv(3, 0),
    "blocked convolutions": _blocked_convs,
    "depthwise": _depthwise,
    "grouped": _grouped,
    "transposed": _transposed,
    "max pool": _max_pool,
    "average pool": _average_pool,
    "sum of rows": _sum_of_rows,
    "max of columns": _max_of_columns,
    "softmax": _softmax,
    "elementwise": _elementwise,
    "across memory": _across,
}


def _none(d: Draft, r: Array) -> Array:
    d.node("Identity", "r", "y")
    return r


def _relu(d: Draft, r: Array) -> Array:
    d.node("Relu", "r", "y")
    return np.maximum(r, 0)


def _add(d: Draft, r: Array) -> Array:
    k = d.operand("k", d.values(*r.shape[-1:]))
    d.node("Add", "r k", "y")
    return r + k


def _residual(d: Draft, r: Array) -> Array:
    k = d.given("k", d.values(*r.shape))
    d.node("Add", "r k", "s")
    d.node("Relu", "s", "y")
    return np.maximum(r + k, 0)


def _integer(d: Draft, r: Array) -> tuple[Array, Array]:
    k = d.operand("k", d.rng.choice(np.array([-3, 2, 3, 7], np.int32), r.shape[-1:]))
    d.node("Cast", "r", "i", to=TensorProto.INT32)
    return np.trunc(r).astype(np.int64), k.astype(np.int64)


def _div(d: Draft, r: Array) -> Array:
    i, k = _integer(d, r)
    d.node("Div", "i k", "y")
    return (np.sign(i) * np.sign(k) * (abs(i) // abs(k))).astype(np.int32)


def _mod(d: Draft, r: Array) -> Array:
    i, k = _integer(d, r)
    d.node("Mod", "i k", "y")
    return np.mod(i, k).astype(np.int32)


def _where(d: Draft, r: Array) -> Array:
    k = d.operand("k", d.values(*r.shape[-1:]))
    d.node("Greater", "r k", "c")
    d.node("Where", "c r k", "y")
    return np.where(r > k, r, k)


def _erf(d: Draft, r: Array) -> Array:
    d.constant("k", np.array(1 / 16, np.float32))
    d.node("Mul", "r k", "s")
    d.node("Erf", "s", "y")
    return np.array([erf(v / 16) for v in r.flat]).reshape(r.shape)


def _clip(d: Draft, r: Array) -> Array:
    low, high = d.operand("low", np.array(-3, np.float32)), d.operand("high", np.array(9, np.float32))
    d.node("Clip", "r low high", "y")
    return np.clip(r, low, high)


def _quantize(d: Draft, r: Array) -> Array:
    scale = d.operand("scale_of_y", np.array(2, np.float32))
    zero = d.constant("zero", np.array(100, np.uint8))
    d.node("QuantizeLinear", "r scale_of_y zero", "y")
    return np.clip(np.rint(r / scale) + zero, 0, 255).astype(np.uint8)


EPILOGUES: dict[str, Callable[[Draft, Array], Array]] = {
    "none": _none,
    "relu": _relu,
    "add": _add,
    "residual": _residual,
    "integer div": _div,
    "integer mod": _mod,
    "where": _where,
    "erf": _erf,
    "clip": _clip,
    "quantize": _quantize,
}


def case(schedule: str, epilogue: str, live: bool, n: int) -> tuple[onnx.ModelProto, list[Array], Array]:
    """A model, values of its inputs in order, and what it computes: in float64 where that is a float."""
    d = Draft(live, np.random.default_rng(n))
    result = EPILOGUES[epilogue](d, SCHEDULES[schedule](d, n))
    return d.model(result), list(d.inputs.values()), result


def is_exact(schedule: str, epilogue: str) -> bool:
    """Whether nothing but integers that float32 holds is computed."""
    return schedule != "softmax" and epilogue != "erf"
