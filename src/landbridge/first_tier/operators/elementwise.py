"""Translations of operators that compute each element by itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from landbridge.first_tier.call_builder import ShapedValue
from landbridge.first_tier.not_taken import NotTakenError
from landbridge.first_tier.onnx_file import DTYPES
from landbridge.first_tier.operators.request import Request, translates

#: Operators of floats without attributes; the others of one operand have a translation of their own.
_OF_FLOATS = (
    *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Erf", "Exp", "HardSwish", "Log", "Mish"),
    *("Reciprocal", "Sigmoid", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh"),
)
#: Attributes of floats with their defaults.
_ATTRIBUTES = {
    "Celu": {"alpha": 1.0},
    "Elu": {"alpha": 1.0},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "LeakyRelu": {"alpha": 0.01},
    "Selu": {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
    "ThresholdedRelu": {"alpha": 1.0},
}
#: The kinds of element types, as numpy has them, of operators that do not take all numbers (kinds i, u and f).
_KINDS = {
    **dict.fromkeys(("Not", "And", "Or", "Xor"), "b"),
    **dict.fromkeys(("BitwiseNot", "BitwiseAnd", "BitwiseOr", "BitwiseXor"), "iu"),
    **dict.fromkeys(("Floor", "Ceil", "Round"), "f"),
    **dict.fromkeys(("Neg", "Relu"), "if"),
}
_COMPARISONS = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")


def broadcast(*values: ShapedValue) -> tuple[int, ...]:
    """Returns the shape that ``values`` have together; raises NotTakenError where they do not fit."""
    try:
        return np.broadcast_shapes(*(value.shape for value in values))
    except ValueError as error:
        raise NotTakenError(str(error)) from error


def _check_kind(r: Request, x: ShapedValue) -> None:
    """Raises NotTakenError unless ONNX's operator takes elements of the type of ``x``: the compiler says what is wrong
    with such a model, where numpy would fail in a run.
    """
    if np.dtype(x.dtype).kind not in _KINDS.get(r.node.op_type, "iuf"):
        raise NotTakenError(f"{r.node.op_type} of {x.dtype}")


@translates(*_OF_FLOATS, *_ATTRIBUTES)
def of_floats(r: Request) -> Sequence[ShapedValue]:
    """Translates functions of one float."""
    x = r.input(0)
    if r.floats(x) != "float32" and r.node.op_type == "Erf":
        raise NotTakenError("Erf of float64, which the kernel computes as exactly as float32")
    options = {name: r.attribute(name, value) for name, value in _ATTRIBUTES.get(r.node.op_type, {}).items()}
    return r.call(r.node.op_type, [x], [(x.shape, x.dtype)], options, overwrites=True)


@translates("Relu", "Neg", "Abs", "Sign", "Floor", "Ceil", "Round", "BitwiseNot", "Not")
def of_numbers(r: Request) -> Sequence[ShapedValue]:
    """Translates functions of one element of any type that keep it."""
    x = r.input(0)
    _check_kind(r, x)
    if x.dtype != "float16":
        return r.call(r.node.op_type, [x], [(x.shape, x.dtype)], overwrites=True)
    raise NotTakenError("float16")


@translates("Gelu")
def gelu(r: Request) -> Sequence[ShapedValue]:
    """Translates Gelu."""
    x = r.input(0)
    form = r.attribute("approximate", "none")
    if r.floats(x) != "float32" and form != "tanh":
        raise NotTakenError("Gelu of float64, by an error function of float32")
    return r.call("Gelu", [x], [(x.shape, x.dtype)], {"approximate": form}, overwrites=True)


@translates("Add", "Sub", "Mul", "Div", "Pow", "PRelu", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "And", "Or", "Xor")
def binary(r: Request) -> Sequence[ShapedValue]:
    """Translates operators of two operands whose result has the dtype of the first."""
    a, b = r.input(0), r.input(1)
    if a.dtype == "float16" or (a.dtype != b.dtype and r.node.op_type != "Pow"):
        raise NotTakenError(f"{r.node.op_type} of {a.dtype} and {b.dtype}")
    _check_kind(r, a)
    _check_kind(r, b)
    return r.call(r.node.op_type, [a, b], [(broadcast(a, b), a.dtype)], overwrites=True)


@translates("Mod")
def mod(r: Request) -> Sequence[ShapedValue]:
    """Translates Mod."""
    a, b = r.input(0), r.input(1)
    _check_kind(r, a)
    return r.call("Mod", [a, b], [(broadcast(a, b), a.dtype)], {"fmod": r.attribute("fmod", 0)}, overwrites=True)


@translates(*_COMPARISONS)
def comparison(r: Request) -> Sequence[ShapedValue]:
    """Translates comparisons."""
    a, b = r.input(0), r.input(1)
    return r.call(r.node.op_type, [a, b], [(broadcast(a, b), "bool")])


@translates("Sum", "Max", "Min", "Mean")
def variadic(r: Request) -> Sequence[ShapedValue]:
    """Translates operators of any number of operands as a chain of two each."""
    found, *operands = (r.input(number) for number in range(max(1, len(r.inputs))))
    kernel = r.node.op_type if r.node.op_type in ("Max", "Min") else "Add"
    for operand in operands:
        (found,) = r.call(kernel, [found, operand], [(broadcast(found, operand), found.dtype)], overwrites=True)
    if r.node.op_type == "Mean" and operands:
        count = r.builder.constant(np.asarray(len(operands) + 1, r.floats(found)))
        return r.call("Div", [found, count], [(found.shape, found.dtype)], overwrites=True)
    return (found,)


@translates("Where")
def where(r: Request) -> Sequence[ShapedValue]:
    """Translates Where."""
    condition, a, b = r.input(0), r.input(1), r.input(2)
    return r.call("Where", [condition, a, b], [(broadcast(condition, a, b), a.dtype)])


@translates("Clip")
def clip(r: Request) -> Sequence[ShapedValue]:
    """Translates Clip, whose limits are attributes before opset 11."""
    x = r.input(0)
    ends: list[ShapedValue | None] = [r.optional(1), r.optional(2)]
    for number, name in enumerate(("min", "max")):
        if r.given(name) is not None:
            ends[number] = r.builder.constant(np.asarray(r.attribute(name, 0.0), x.dtype))
    return r.call("Clip", [x, *ends], [(x.shape, x.dtype)], overwrites=True)


@translates("Cast")
def cast(r: Request) -> Sequence[ShapedValue]:
    """Translates Cast between types that numpy has."""
    x, to = r.input(0), DTYPES.get(r.attribute("to", 0))
    if to is None:
        raise NotTakenError("Cast to a type that numpy lacks")
    return (x,) if to == x.dtype else r.call("Cast", [x], [(x.shape, to)])


@translates("CastLike")
def cast_like(r: Request) -> Sequence[ShapedValue]:
    """Translates CastLike."""
    x, like = r.input(0), r.input(1)
    return (x,) if like.dtype == x.dtype else r.call("Cast", [x], [(x.shape, like.dtype)])


@translates("IsNaN")
def is_nan(r: Request) -> Sequence[ShapedValue]:
    """Translates IsNaN."""
    return r.call("IsNaN", [r.input(0)], [(r.input(0).shape, "bool")])


@translates("IsInf")
def is_inf(r: Request) -> Sequence[ShapedValue]:
    """Translates IsInf."""
    signs = {name: r.attribute(name, 1) for name in ("detect_negative", "detect_positive")}
    return r.call("IsInf", [r.input(0)], [(r.input(0).shape, "bool")], signs)
