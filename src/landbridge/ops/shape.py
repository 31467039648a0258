"""Shapes: operators that only rename elements, and those whose result is known from shapes alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.errors import ShapeError, UndecidedSizeError
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.types import element_count
from landbridge.operators import kernel
from landbridge.ops.accuracy import EXACT, accuracy
from landbridge.ops.context import Array, BodyBuffer, OpContext, Operand
from landbridge.ops.extent_arrays import extents_array
from landbridge.ops.legal import at_least, axis_of, between, distinct_axes, holds, one_of
from landbridge.ops.rules import rules
from landbridge.ops.slicing import index_within
from landbridge.sizes.broadcast import broadcast_shapes
from landbridge.sizes.size import LARGEST_EXTENT, Extent, Size, agree, clamped, largest, product, same, smallest
from landbridge.sizes.size import at_least as never_below


@rules()
@kernel("", "Constant")
@accuracy(EXACT)
def constant(c: OpContext) -> Array:
    """Computes the value of whichever attribute is given."""
    if c.attribute("value") is not None:
        return np.asarray(c.attribute("value"))
    kinds = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
    for name, kind in kinds.items():
        if c.attribute(name) is not None:
            return np.asarray(c.attribute(name), kind)
    raise c.unsupported("its value is a string or a sparse tensor; numbers and booleans can be compiled")


@rules("data: ...")
@kernel("", "Shape")
@accuracy(EXACT)
def shape_of_value(c: OpContext, x: Operand) -> Array:
    """Computes the shape, which is static, from ``start`` to ``end``."""
    return extents_array(c.shape(x)[c.attribute("start", 0) : c.attribute("end")])


@rules("data: ...")
@kernel("", "Size")
@accuracy(EXACT)
def size(c: OpContext, x: Operand) -> Array:
    """Computes the number of elements."""
    return extents_array(element_count(c.shape(x)))


@rules("input: ...")
@kernel("", "Identity")
@accuracy(EXACT)
def identity(c: OpContext, x: Operand) -> Operand:
    """Computes the same value."""
    return x


@rules("data: ...", "ratio?: () | 1", "training_mode?: () | 1")
@kernel("", "Dropout")
@accuracy(EXACT)
def dropout(
    c: OpContext, x: Operand, ratio: Operand | None = None, training: Operand | None = None
) -> Sequence[Operand]:
    """Returns the same value for inference; the mask is all true."""
    if training is not None and bool(c.constant(training, "training_mode").reshape(-1)[0]):
        raise c.unsupported("training_mode is true; export the model for inference")
    one = np.ones((), numpy_dtype("bool" if c.opset >= 10 else c.dtype(x)))
    shape = c.shape(x) if c.outputs > 1 else ()
    if any(isinstance(e, Size) for e in shape):
        return [x, broadcast(c, one, shape)]
    return [x, np.broadcast_to(one, shape).copy()]


@rules("data: ...", "shape: _", attributes={"shape": at_least(-1)})
@kernel("", "Reshape")
@accuracy(EXACT)
def reshape(c: OpContext, x: Operand, shape: Operand) -> Operand:
    """Reshapes; 0 keeps an extent (unless ``allowzero``), one -1 takes the rest."""
    old, new = c.shape(x), c.ints("shape", shape) or []
    if c.g.is_read(*new):
        return _read_shape(c, x, new)
    try:
        return _known_shape(c, x, new)
    except UndecidedSizeError:
        if not c.g.is_read(*old):
            raise
        return _read_shape(c, x, new)


def _known_shape(c: OpContext, x: Operand, new: list[int]) -> Operand:
    """Returns ``x`` in a shape that provably fits: a view."""
    old, wanted = c.shape(x), list(new)
    if not c.attribute("allowzero", 0):
        if any(e == 0 for e in new[len(old) :]):
            raise ShapeError(f"{c.g.node}: Reshape of {old} to {wanted}; 0 keeps an extent, and there is none")
        new = [old[i] if e == 0 else e for i, e in enumerate(new)]
    if -1 in new:
        rest = element_count([e for e in new if e != -1])
        new[new.index(-1)] = element_count(old) // rest if rest else -1
    if not agree(element_count(new), element_count(old)) or any(e < 0 for e in new):
        raise ShapeError(
            f"{c.g.node}: Reshape of {old} to {wanted}; the number of elements must stay, and give what -1 is"
        )
    return c.reshape(x, new)


def _read_shape(c: OpContext, x: Operand, wanted: Sequence[Extent]) -> Operand:
    """Returns ``x`` in a shape read at run time, perhaps with 0 and -1: elements are copied, as no rule proves that it
    fits.
    """
    old, total = c.shape(x), element_count(c.shape(x))
    keeps = not c.attribute("allowzero", 0)
    declared, rests = [], []
    for i, extent in enumerate(wanted):
        number = largest(extent, 0)
        rests.append(number - extent)  # 1 where it is -1, else 0
        zero = 1 - smallest(number, 1) - rests[-1]
        declared.append(number + zero * old[i] if keeps and i < len(old) else number)
    given: list[Extent] = []
    for i, (extent, rest) in enumerate(zip(declared, rests, strict=True)):
        others = product(e + r for j, (e, r) in enumerate(zip(declared, rests, strict=True)) if j != i)
        given.append(extent + rest * (total // clamped(others, 1)))
    c.g.held("the number of elements", product(given), total)
    # Beside an extent that is 0 another may be more than there are elements.
    most = total if never_below(total, 1) else largest(total, LARGEST_EXTENT)
    result = [c.limited(extent, c.fewest(total), most) for extent in given]
    if total == 0:
        return broadcast(c, np.zeros((), numpy_dtype(c.dtype(x))), result)
    flat = c.reshape(x, [total])

    def body(s: ScalarBuilder, buffers: Sequence[BodyBuffer], at: Sequence[Value]) -> Value:
        location: Value = s.cast(at[0], "int64") if at else s.const(0, "int64")
        for index, extent in zip(at[1:], result[1:], strict=True):
            location = location * s.const(extent, "int64") + s.cast(index, "int64")
        return buffers[0].load(s, [index_within(s, location, total)])

    return c.compute("reshape", [flat], result, body, c.dtype(x))


@rules("input: ...", attributes={"axis": between("-len(input)", "len(input)", default=1)})
@kernel("", "Flatten")
@accuracy(EXACT)
def flatten(c: OpContext, x: Operand) -> Operand:
    """Computes a matrix: the axes before ``axis``, and the others."""
    shape = c.shape(x)
    axis = c.attribute("axis", 1)
    axis += len(shape) if axis < 0 else 0
    return c.reshape(x, (element_count(shape[:axis]), element_count(shape[axis:])))


@rules("data: ...", "axes?: _ | ()", attributes={"axes": axis_of("len(data)")})
@kernel("", "Squeeze")
@accuracy(EXACT)
def squeeze(c: OpContext, x: Operand, axes: Operand | None = None) -> Operand:
    """Removes the given axes, or all axes of extent 1."""
    shape = c.shape(x)
    given = c.ints("axes", axes)
    chosen = (
        {a for a, e in enumerate(shape) if agree(e, 1)} if given is None else {c.axis(a, len(shape)) for a in given}
    )
    for a in chosen:
        if not agree(shape[a], 1):
            raise ShapeError(f"{c.g.node}: Squeeze of axis {a} of {shape}, whose extent is {shape[a]} and not 1")
    return c.reshape(x, [e for a, e in enumerate(shape) if a not in chosen])


@rules(
    "data: ...",
    "axes?: _ | ()",
    attributes={"axes": between("-(len(data) + len(axes))", "len(data) + len(axes) - 1")},
    where=(distinct_axes("len(data) + len(axes)"),),
)
@kernel("", "Unsqueeze")
@accuracy(EXACT)
def unsqueeze(c: OpContext, x: Operand, axes: Operand | None = None) -> Operand:
    """Inserts axes of extent 1."""
    given = c.ints("axes", axes) or []
    rank = c.rank(x) + len(given)
    chosen = {c.axis(a, rank) for a in given}
    rest = iter(c.shape(x))
    return c.reshape(x, [1 if a in chosen else next(rest) for a in range(rank)])


@rules("data: ...", attributes={"perm": holds("sorted(it) == list(range(len(data)))")})
@kernel("", "Transpose")
@accuracy(EXACT)
def transpose(c: OpContext, x: Operand) -> Operand:
    """Returns axes in the order ``perm``, reversed by default."""
    return c.transpose(x, c.ints("perm") or list(reversed(range(c.rank(x)))))


@rules("input: ...", "shape: _ | ()", attributes={"shape": at_least(0)})
@kernel("", "Expand")
@accuracy(EXACT)
def expand(c: OpContext, x: Operand, shape: Operand) -> Operand:
    """Broadcasts ``x`` and ``shape`` with each other."""
    wanted: list[Extent] = [*(c.ints("shape", shape) or [])]
    for i, extent in enumerate(wanted):
        a = i - len(wanted) + c.rank(x)
        if a >= 0 and c.g.is_read(extent) and not same(c.shape(x)[a], 1):
            # Only 1 and the extent itself are legal; an axis that may be 1 is not stretched.
            more = c.shape(x)[a] - 1
            c.g.held(f"axis {i} of the shape", extent, 1 + clamped((extent - 1) // clamped(more, 1), 0, 1) * more)
            wanted[i] = 1
        else:
            wanted[i] = c.within(f"axis {i} of the shape", extent, c.fewest(extent))
    try:
        result = broadcast_shapes(c.shape(x), tuple(wanted))
    except ValueError as error:
        raise ShapeError(f"{c.g.node}: Expand of {c.shape(x)} to {wanted} does not broadcast") from error
    return broadcast(c, x, result)


def broadcast(c: OpContext, x: Operand, shape: Sequence[Extent]) -> Operand:
    """Computes ``x`` broadcast to ``shape``; a view when only axes of extent 1 appear."""
    old = c.shape(x)
    if element_count(old) == element_count(shape):
        return c.reshape(x, shape)
    lead = len(shape) - len(old)
    return c.gather(
        "expand", x, shape, lambda *d: [d[lead + a] if e == shape[lead + a] else 0 for a, e in enumerate(old)], ()
    )


#: Elements of a last axis, less than vectors have, that are repeated one by one.
_SHORT_AXIS = 8


@rules("input: *S", "repeats: _", attributes={"repeats": at_least(0, count="len(S)")})
@kernel("", "Tile")
@accuracy(EXACT)
def tile(c: OpContext, x: Operand, repeats: Operand) -> Operand:
    """Computes the tensor repeated along each axis."""
    counts, shape = c.ints("repeats", repeats) or [], c.shape(x)
    result = [e * r for e, r in zip(shape, counts, strict=True)]
    if all(same(e, r) for e, r in zip(shape, result, strict=True)):
        return x
    # A loop over the repeats around one over the axis divides nothing; a short last axis has no vectors of its own.
    loops: list[Extent] = []
    places: list[Callable[..., Any]] = []
    for a, (extent, count) in enumerate(zip(shape, counts, strict=True)):
        if same(extent, 1):
            loops.append(count)
            places.append(lambda *d: 0)
        elif same(count, 1):
            places.append(_loop(len(loops)))
            loops.append(extent)
        elif a == len(shape) - 1 and isinstance(extent, int) and extent < _SHORT_AXIS:
            places.append(_loop(len(loops), extent))
            loops.append(extent * count)
        else:
            loops += [count, extent]
            places.append(_loop(len(loops) - 1))
    return c.reshape(c.gather("tile", x, loops, lambda *d: [location(*d) for location in places]), result)


def _loop(number: int, modulo: int | None = None) -> Callable[..., Any]:
    """Returns a function that selects loop ``number`` of its arguments, or its remainder."""
    return (lambda *d: d[number]) if modulo is None else (lambda *d: d[number] % modulo)


@rules(
    "input: N C H W",
    attributes={"blocksize": at_least(1), "mode": one_of("DCR", "CRD")},
    where=("C % (blocksize * blocksize) == 0",),
)
@kernel("", "DepthToSpace")
@accuracy(EXACT)
def depth_to_space(c: OpContext, x: Operand) -> Operand:
    """Moves blocks of channels to blocks of pixels."""
    b = c.attribute("blocksize")
    n, channels, h, w = c.shape(x)
    inner = channels // (b * b)
    if c.attribute("mode", "DCR") == "DCR":
        split = c.transpose(c.reshape(x, (n, b, b, inner, h, w)), (0, 3, 4, 1, 5, 2))
    else:
        split = c.transpose(c.reshape(x, (n, inner, b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return c.reshape(split, (n, inner, h * b, w * b))


@rules(
    "input: N C H W",
    attributes={"blocksize": at_least(1), "mode": one_of("DCR", "CRD")},
    where=("H % blocksize == 0 and W % blocksize == 0",),
)
@kernel("", "SpaceToDepth")
@accuracy(EXACT)
def space_to_depth(c: OpContext, x: Operand) -> Operand:
    """Moves blocks of pixels to blocks of channels."""
    b = c.attribute("blocksize")
    n, channels, h, w = c.shape(x)
    order = (0, 3, 5, 1, 2, 4) if c.attribute("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    split = c.transpose(c.reshape(x, (n, channels, h // b, b, w // b, b)), order)
    return c.reshape(split, (n, channels * b * b, h // b, w // b))
