"""Operators of ``com.microsoft`` on quantized tensors: float operators between DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from landbridge.frontend.onnx.bodies.node_facts import NodeFacts, integer_list, number
from landbridge.operators import definition

_MS = "com.microsoft"
_ONE = "X, X_scale, X_zero_point, Y_scale, Y_zero_point"
_TWO = "A, A_scale, A_zero_point, B, B_scale, B_zero_point, C_scale, C_zero_point"


@definition(_MS, "QuantizeLinear", inputs="x, y_scale, y_zero_point", outputs="y")
def quantize_linear(n: NodeFacts) -> str:
    return f"y = QuantizeLinear <axis = {n.attribute('axis', 1)}> (x, y_scale{_zero(n, 'y_zero_point')})"


@definition(_MS, "DequantizeLinear", inputs="x, x_scale, x_zero_point", outputs="y")
def dequantize_linear(n: NodeFacts) -> str:
    return f"y = DequantizeLinear <axis = {n.attribute('axis', 1)}> (x, x_scale{_zero(n, 'x_zero_point')})"


@definition(_MS, "QLinearAdd", inputs=_TWO, outputs="C")
def qlinear_add(n: NodeFacts) -> str:
    return _of_two(n, "Add")


@definition(_MS, "QLinearMul", inputs=_TWO, outputs="C")
def qlinear_mul(n: NodeFacts) -> str:
    return _of_two(n, "Mul")


@definition(_MS, "QLinearSigmoid", inputs=_ONE, outputs="Y")
def qlinear_sigmoid(n: NodeFacts) -> str:
    return _of_one(n, "Sigmoid")


@definition(_MS, "QLinearLeakyRelu", inputs=_ONE, outputs="Y")
def qlinear_leaky_relu(n: NodeFacts) -> str:
    return _of_one(n, f"LeakyRelu <alpha = {number(n.attribute('alpha', 0.01))}>")


@definition(_MS, "QLinearSoftmax", inputs=_ONE, outputs="Y")
def qlinear_softmax(n: NodeFacts) -> str:
    if n.attribute("opset", 13) < 13 and n.attribute("axis", -1) not in (-1, len(n.shape("X")) - 1):
        raise n.unsupported("a Softmax of opset 12 over several axes; legal: the last axis, or opset 13")
    return _of_one(n, f"Softmax <axis = {n.attribute('axis', -1)}>")


@definition(_MS, "QLinearGlobalAveragePool", inputs="X, X_scale, X_zero_point, Y_scale, Y_zero_point", outputs="Y")
def qlinear_global_average_pool(n: NodeFacts) -> str:
    return _of_image(n, "GlobalAveragePool")


@definition(_MS, "QLinearAveragePool", inputs=_ONE, outputs="Y")
def qlinear_average_pool(n: NodeFacts) -> str:
    how = [
        f"{k} = {integer_list(n.attribute(k, []))}" for k in ("kernel_shape", "pads", "strides") if n.attribute(k, [])
    ]
    how += [f"{k} = {n.attribute(k, 0)}" for k in ("ceil_mode", "count_include_pad")]
    how.append(f'auto_pad = "{n.attribute("auto_pad", "NOTSET")}"')
    return _of_image(n, f"AveragePool <{', '.join(how)}>")


@definition(
    _MS,
    "QLinearReduceMean",
    inputs="data, data_scale, data_zero_point, reduced_scale, reduced_zero_point",
    outputs="reduced",
)
def qlinear_reduce_mean(n: NodeFacts) -> str:
    axes = (
        f"axes = Constant <value_ints = {integer_list(n.attribute('axes', []))}> ()" if n.attribute("axes", []) else ""
    )
    mean = f"ReduceMean <keepdims = {n.attribute('keepdims', 1)}> (d{', axes' if axes else ''})"
    return f"""d = DequantizeLinear (data, data_scale{_zero(n, "data_zero_point")}) {axes} m = {mean}
        reduced = QuantizeLinear (m, reduced_scale{_zero(n, "reduced_zero_point")})"""


@definition(_MS, "QLinearConcat", inputs="Y_scale, Y_zero_point, *X", outputs="Y")
def qlinear_concat(n: NodeFacts) -> str:
    """Returns the Concat of parts; those that have another scale or zero point than the result are quantized again."""
    names = n.variadic("X")
    parts = list(zip(names[::3], names[1::3], names[2::3], strict=True))
    result = ("Y_scale", "Y_zero_point")
    lines = [
        f"q{i} = Identity ({part})"
        if _same_constants(n, zip(how, result, strict=True))
        else f"d{i} = DequantizeLinear ({', '.join((part, *how))}) q{i} = QuantizeLinear (d{i}, {', '.join(result)})"
        for i, (part, *how) in enumerate(parts)
    ]
    joined = ", ".join(f"q{i}" for i in range(len(parts)))
    return f"{' '.join(lines)} Y = Concat <axis = {n.attribute('axis', 0)}> ({joined})"


def _same_constants(n: NodeFacts, pairs: Iterable[tuple[str, str]]) -> bool:
    """Returns whether the inputs of each pair are equal constants."""
    return all(
        not (n.is_computed(a) or n.is_computed(b)) and np.array_equal(n.constant(a), n.constant(b)) for a, b in pairs
    )


@definition(
    _MS, "QLinearWhere", inputs="condition, X, x_scale, x_zero, Y, y_scale, y_zero, z_scale, z_zero", outputs="Z"
)
def qlinear_where(n: NodeFacts) -> str:
    return """a = DequantizeLinear (X, x_scale, x_zero) b = DequantizeLinear (Y, y_scale, y_zero)
        c = Where (condition, a, b) Z = QuantizeLinear (c, z_scale, z_zero)"""


@definition(_MS, "QGemm", inputs="A, a_scale, a_zero, B, b_scale, b_zero, C, y_scale, y_zero", outputs="Y")
def qgemm(n: NodeFacts) -> str:
    transposes = [f"{x}_t = {'Transpose' if n.attribute(f'trans{x}', 0) else 'Identity'} ({x})" for x in "AB"]
    added = "s = Add (total, C)" if n.has("C") else "s = Identity (total)"
    last = "Y = Identity (y)"
    if n.has("y_scale"):
        last = f"Y = QuantizeLinear (y, y_scale{_zero(n, 'y_zero')})"
    return f"""{" ".join(transposes)} total = MatMulInteger (A_t, B_t, a_zero, b_zero) {added} f = Cast <to = 1> (s)
        ab = Mul (a_scale, b_scale) alpha = Constant <value_float = {number(n.attribute("alpha", 1.0))}> ()
        scale = Mul (alpha, ab) y = Mul (f, scale) {last}"""


@definition(_MS, "QLinearConv", inputs="x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, B", outputs="y")
def qlinear_conv(n: NodeFacts) -> str:
    lists = ("dilations", "kernel_shape", "pads", "strides")
    how = [f"{k} = {integer_list(n.attribute(k, []))}" for k in lists if n.attribute(k, [])]
    how += [f"group = {n.attribute('group', 1)}", f'auto_pad = "{n.attribute("auto_pad", "NOTSET")}"']
    bias = ", B" if n.has("B") else ""
    inputs = f"x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero{bias}"
    first, last = _channels(n, "x", "t", "p", "y")
    return f"{first} p = QLinearConv <{', '.join(how)}> (t, {inputs}) {last}"


@definition(_MS, "MulInteger", inputs="A, A_zero_point, B, B_zero_point", outputs="C")
def mul_integer(n: NodeFacts) -> str:
    lines = [f"{x}_w = Cast <to = 6> ({x})" for x in "AB"]
    for x in "AB":
        zero = f"{x}_zero_point"
        centered = f"{x}_z = Cast <to = 6> ({zero}) {x}_c = Sub ({x}_w, {x}_z)"
        lines.append(centered if n.has(zero) else f"{x}_c = Identity ({x}_w)")
    return f"{' '.join(lines)} C = Mul (A_c, B_c)"


def _zero(n: NodeFacts, name: str) -> str:
    return f", {name}" if n.has(name) else ""


def _of_two(n: NodeFacts, op: str) -> str:
    return f"""a = DequantizeLinear (A, A_scale{_zero(n, "A_zero_point")})
        b = DequantizeLinear (B, B_scale{_zero(n, "B_zero_point")}) c = {op} (a, b)
        C = QuantizeLinear (c, C_scale{_zero(n, "C_zero_point")})"""


def _of_one(n: NodeFacts, op: str) -> str:
    return f"""d = DequantizeLinear (X, X_scale{_zero(n, "X_zero_point")}) r = {op} (d)
        Y = QuantizeLinear (r, Y_scale{_zero(n, "Y_zero_point")})"""


def _of_image(n: NodeFacts, op: str) -> str:
    first, last = _channels(n, "X", "t", "q", "Y")
    return f"""{first} d = DequantizeLinear (t, X_scale{_zero(n, "X_zero_point")}) r = {op} (d)
        q = QuantizeLinear (r, Y_scale{_zero(n, "Y_zero_point")}) {last}"""


def _channels(n: NodeFacts, x: str, inner: str, created: str, y: str) -> tuple[str, str]:
    """Returns the statements that move the channels of ``x`` to the second axis, and those of ``y`` back, if they are
    last.
    """
    if not n.attribute("channels_last", 0):
        return f"{inner} = Identity ({x})", f"{y} = Identity ({created})"
    rank = len(n.shape(x))
    there, back = [0, rank - 1, *range(1, rank - 1)], [0, *range(2, rank), 1]
    return (
        f"{inner} = Transpose <perm = {integer_list(there)}> ({x})",
        f"{y} = Transpose <perm = {integer_list(back)}> ({created})",
    )
