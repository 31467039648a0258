"""Translations of convolutions, pools and products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from landbridge.first_tier.call_builder import ShapedValue
from landbridge.first_tier.not_taken import NotTakenError
from landbridge.first_tier.operators.elementwise import broadcast
from landbridge.first_tier.operators.quantization import check_bytes
from landbridge.first_tier.operators.request import Request, translates
from landbridge.records import record


@record(frozen=True)
class _Window:
    """Strides, dilations, pads (all before, then all after) and outputs of windows, a number for each axis."""

    strides: list[int]
    dilations: list[int]
    pads: list[int]
    outputs: tuple[int, ...]


def _window(r: Request, inputs: Sequence[int], extents: Sequence[int]) -> _Window:
    """Returns the windows of ``extents`` on an image of ``inputs``; raises NotTakenError where none fits."""
    rank = len(inputs)
    ones = [1] * rank
    strides, dilations = r.integers("strides", None, ones), r.integers("dilations", None, ones)
    pads = r.integers("pads", None, [0] * (2 * rank))
    assert strides is not None
    assert dilations is not None
    assert pads is not None
    if (len(strides), len(dilations), len(pads)) != (rank, rank, 2 * rank) or min(*strides, *dilations, *extents) < 1:
        raise NotTakenError(f"windows of {list(extents)} on {list(inputs)}")
    auto = r.attribute("auto_pad", "NOTSET")
    ceil = r.attribute("ceil_mode", 0)
    reach = [(k - 1) * d + 1 for k, d in zip(extents, dilations, strict=True)]
    outputs = []
    if auto == "VALID":
        pads = [0] * (2 * rank)
    for axis, (e, k, s) in enumerate(zip(inputs, reach, strides, strict=True)):
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            total = max(0, (-(-e // s) - 1) * s + k - e)
            less, more = total // 2, total - total // 2
            pads[axis], pads[rank + axis] = (less, more) if auto == "SAME_UPPER" else (more, less)
        elif auto not in ("NOTSET", "VALID"):
            raise NotTakenError(f"auto_pad {auto!r}")
        free = e + pads[axis] + pads[rank + axis] - k
        if free < 0:
            raise NotTakenError(f"windows of {list(extents)} on {list(inputs)}")
        count = (-(-free // s) if ceil else free // s) + 1
        if ceil and (count - 1) * s >= e + pads[axis]:  # a window that begins after the image is left out
            count -= 1
        outputs.append(count)
    if min(pads) < 0:
        raise NotTakenError("pads below 0")
    return _Window(strides, dilations, pads, tuple(outputs))


@translates("Conv")
def conv(r: Request) -> Sequence[ShapedValue]:
    """Translates Conv of floats."""
    x, weight, bias = r.input(0), r.input(1), r.optional(2)
    return _convolved(r, "Conv", [x, weight, bias], r.floats(x, weight, bias))


@translates("ConvInteger")
def conv_integer(r: Request) -> Sequence[ShapedValue]:
    """Translates ConvInteger, whose weights may have a zero point for each filter."""
    x, weight, x_zero, weight_zero = r.input(0), r.input(1), r.optional(2), r.optional(3)
    check_bytes(r, (x, x_zero), (weight, weight_zero), prod(weight.shape[1:]))
    if weight_zero is not None and prod(weight_zero.shape) not in (1, weight.shape[0]):
        raise NotTakenError("ConvInteger with zero points of another shape")
    return _convolved(r, "ConvInteger", [x, weight, x_zero, weight_zero], "int32")


def _convolved(r: Request, kernel: str, operands: Sequence[ShapedValue | None], dtype: str) -> Sequence[ShapedValue]:
    """Returns the result of the convolution ``kernel``, whose first operands are an image and weights."""
    x, weight = operands[:2]
    assert x is not None
    assert weight is not None
    group = r.attribute("group", 1)
    if len(x.shape) < 3 or len(weight.shape) != len(x.shape) or group < 1 or x.shape[1] != weight.shape[1] * group:
        raise NotTakenError(f"{kernel} of shapes that do not fit")
    w = _window(r, x.shape[2:], weight.shape[2:])
    if r.integers("kernel_shape", None, weight.shape[2:]) != list(weight.shape[2:]):
        raise NotTakenError(f"{kernel} of another kernel_shape")
    if weight.shape[0] % group or not prod(x.shape):
        raise NotTakenError(f"{kernel} of shapes that do not fit")
    options = {"group": group, "strides": w.strides, "dilations": w.dilations, "pads": w.pads}
    return r.call(kernel, operands, [((x.shape[0], weight.shape[0], *w.outputs), dtype)], options)


@translates("ConvTranspose")
def conv_transpose(r: Request) -> Sequence[ShapedValue]:
    """Translates ConvTranspose of floats with stated pads."""
    x, weight, bias = r.input(0), r.input(1), r.optional(2)
    dtype = r.floats(x, weight, bias)
    group, rank = r.attribute("group", 1), len(x.shape) - 2
    ones = [1] * rank
    strides, dilations = r.integers("strides", None, ones), r.integers("dilations", None, ones)
    pads, added = r.integers("pads", None, [0] * (2 * rank)), r.integers("output_padding", None, [0] * rank)
    if (
        r.attribute("auto_pad", "NOTSET") != "NOTSET"
        or r.integers("kernel_shape", None, weight.shape[2:]) != list(weight.shape[2:])
        or len(x.shape) != len(weight.shape)
        or rank < 1
        or group < 1
        or x.shape[1] != weight.shape[0]
        or x.shape[1] % group
        or strides is None
        or dilations is None
        or pads is None
        or added is None
        or (len(strides), len(dilations), len(pads), len(added)) != (rank, rank, 2 * rank, rank)
        or min(*strides, *dilations, *weight.shape) < 1
        or min(pads) < 0
        or not prod(x.shape)
    ):
        raise NotTakenError("ConvTranspose of other forms")
    outputs = [
        (e - 1) * s + (k - 1) * d + 1 + a - pads[axis] - pads[rank + axis]
        for axis, (e, s, k, d, a) in enumerate(
            zip(x.shape[2:], strides, weight.shape[2:], dilations, added, strict=True)
        )
    ]
    shape = (x.shape[0], weight.shape[1] * group, *outputs)
    options = {"group": group, "strides": strides, "dilations": dilations, "pads": pads}
    return r.call("ConvTranspose", [x, weight, bias], [(shape, dtype)], options)


@translates("MaxPool", "AveragePool")
def pool(r: Request) -> Sequence[ShapedValue]:
    """Translates pools of windows; MaxPool without positions."""
    x, extents = r.input(0), r.integers("kernel_shape", None)
    r.ignore("storage_order")
    if extents is None or len(x.shape) < 3 or len(extents) != len(x.shape) - 2 or (len(r.used) > 1 and r.used[1]):
        raise NotTakenError(f"{r.node.op_type} of other forms")
    if r.node.op_type == "AveragePool" or x.dtype not in ("int8", "uint8"):
        r.floats(x)
    w = _window(r, x.shape[2:], extents)
    options: dict[str, object] = {
        "extents": extents,
        "strides": w.strides,
        "dilations": w.dilations,
        "pads": w.pads,
    }
    if r.node.op_type == "AveragePool":
        options["count_include_pad"] = r.attribute("count_include_pad", 0)
    return r.call(r.node.op_type, [x], [((*x.shape[:2], *w.outputs), x.dtype)], options)


@translates("GlobalAveragePool", "GlobalMaxPool")
def global_pool(r: Request) -> Sequence[ShapedValue]:
    """Translates pools of whole images."""
    x = r.input(0)
    shape = (*x.shape[:2], *(1 for _ in x.shape[2:]))
    if 0 in x.shape:
        raise NotTakenError("an image without elements")
    return r.call(r.node.op_type, [x], [(shape, r.floats(x))])


@translates("MatMul")
def matmul(r: Request) -> Sequence[ShapedValue]:
    """Translates MatMul of floats."""
    a, b = r.input(0), r.input(1)
    return _multiplied(r, "MatMul", [a, b], r.floats(a, b))


@translates("MatMulInteger")
def matmul_integer(r: Request) -> Sequence[ShapedValue]:
    """Translates MatMulInteger, whose second matrix may have a zero point for each column."""
    a, b, a_zero, b_zero = r.input(0), r.input(1), r.optional(2), r.optional(3)
    check_bytes(r, (a, a_zero), (b, b_zero), a.shape[-1] if a.shape else 1)
    columns = b.shape[-1:] if len(b.shape) == 2 else ()
    if b_zero is not None and b_zero.shape not in ((), (1,), columns):
        raise NotTakenError("MatMulInteger with zero points of another shape")
    return _multiplied(r, "MatMulInteger", [a, b, a_zero, b_zero], "int32")


def _multiplied(r: Request, kernel: str, operands: Sequence[ShapedValue | None], dtype: str) -> Sequence[ShapedValue]:
    """Returns the result of the product ``kernel``, whose first operands are two tensors."""
    a, b = operands[:2]
    assert a is not None
    assert b is not None
    if not a.shape or not b.shape:
        raise NotTakenError(f"{kernel} of scalars")
    left = a.shape if len(a.shape) > 1 else (1, *a.shape)
    right = b.shape if len(b.shape) > 1 else (*b.shape, 1)
    if left[-1] != right[-2]:
        raise NotTakenError(f"{kernel} of shapes that do not fit")
    batch = broadcast(ShapedValue(left[:-2], dtype), ShapedValue(right[:-2], dtype))
    rows = left[-2:-1] if len(a.shape) > 1 else ()
    columns = right[-1:] if len(b.shape) > 1 else ()
    return r.call(kernel, operands, [((*batch, *rows, *columns), dtype)])


@translates("Gemm")
def gemm(r: Request) -> Sequence[ShapedValue]:
    """Translates Gemm of floats."""
    a, b, c = r.input(0), r.input(1), r.optional(2)
    dtype = r.floats(a, b, c)
    if len(a.shape) != 2 or len(b.shape) != 2:
        raise NotTakenError("Gemm of shapes that do not fit")
    options = {
        "alpha": r.attribute("alpha", 1.0),
        "beta": r.attribute("beta", 1.0),
        "transpose_a": r.attribute("transA", 0),
        "transpose_b": r.attribute("transB", 0),
    }
    rows, inner = a.shape[::-1] if options["transpose_a"] else a.shape
    depth, columns = b.shape[::-1] if options["transpose_b"] else b.shape
    result = ShapedValue((rows, columns), dtype)
    if inner != depth or (c is not None and broadcast(c, result) != result.shape):
        raise NotTakenError("Gemm of shapes that do not fit")
    return r.call("Gemm", [a, b, c], [(result.shape, dtype)], options)


@translates("Einsum")
def einsum(r: Request) -> Sequence[ShapedValue]:
    """Translates Einsum whose equation states the result, without an ellipsis."""
    operands = [r.input(number) for number in range(len(r.inputs))]
    dtype = r.floats(*operands)
    equation = r.attribute("equation", "").replace(" ", "")
    terms, arrow, result = equation.partition("->")
    labels = terms.split(",")
    if not arrow or "." in equation or len(labels) != len(operands):
        raise NotTakenError(f"Einsum {equation!r}")
    extents: dict[str, int] = {}
    for label, operand in zip(labels, operands, strict=True):
        if len(label) != len(operand.shape):
            raise NotTakenError(f"Einsum {equation!r}")
        for letter, extent in zip(label, operand.shape, strict=True):
            if extents.setdefault(letter, extent) != extent:
                raise NotTakenError(f"Einsum {equation!r}")
    if not set(result) <= extents.keys():
        raise NotTakenError(f"Einsum {equation!r}")
    return r.call("Einsum", operands, [(tuple(extents[letter] for letter in result), dtype)], {"equation": equation})
