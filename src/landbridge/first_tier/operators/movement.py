"""Translations of operators that move elements, and of those whose results are shapes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.first_tier.call_builder import ShapedValue
from landbridge.first_tier.not_taken import NotTakenError
from landbridge.first_tier.operators.elementwise import broadcast
from landbridge.first_tier.operators.request import Request, translates


@translates("Identity", "Dropout")
def identity(r: Request) -> Sequence[ShapedValue]:
    """Translates operators that return their operand; of Dropout, only without training and mask."""
    r.ignore("ratio", "seed", 1)
    if len(r.used) > 1 and r.used[1]:
        raise NotTakenError("the mask of Dropout")
    if r.node.op_type == "Dropout" and r.optional(2) is not None and bool(r.known(2).reshape(())):
        raise NotTakenError("Dropout in training")
    return (r.input(0),)


@translates("Constant")
def constant(r: Request) -> Sequence[ShapedValue]:
    """Translates Constant."""
    for name, dtype in (
        ("value", None),
        ("value_float", "float32"),
        ("value_floats", "float32"),
        ("value_int", "int64"),
        ("value_ints", "int64"),
    ):
        given = r.given(name)
        if given is not None:
            return (r.builder.constant(np.asarray(given, dtype)),)
    raise NotTakenError("a Constant without a value that numpy has")


@translates("ConstantOfShape")
def constant_of_shape(r: Request) -> Sequence[ShapedValue]:
    """Translates ConstantOfShape: one element, expanded."""
    value = r.given("value")
    element = np.zeros(1, np.float32) if value is None else np.asarray(value)
    shape = tuple(int(extent) for extent in r.known(0))
    one = r.builder.constant(element.reshape(()))
    return r.call("Expand", [one], [(shape, one.dtype)])


@translates("Shape")
def shape_of(r: Request) -> Sequence[ShapedValue]:
    """Translates Shape."""
    shape = r.input(0).shape
    end = r.attribute("end", len(shape))
    return (r.builder.constant(np.asarray(shape[r.attribute("start", 0) : end], np.int64)),)


@translates("Size")
def size_of(r: Request) -> Sequence[ShapedValue]:
    """Translates Size."""
    return (r.builder.constant(np.asarray(prod(r.input(0).shape), np.int64)),)


@translates("Range")
def range_of(r: Request) -> Sequence[ShapedValue]:
    """Translates Range of constants."""
    start, limit, delta = (r.known(number).reshape(())[()] for number in range(3))
    if not delta:
        raise NotTakenError("Range by 0")
    count = max(0, int(np.ceil((limit - start) / delta)))
    if count > 1 << 24:
        raise NotTakenError("a long Range")
    return (r.builder.constant((start + np.arange(count) * delta).astype(r.input(0).dtype)),)


@translates("Reshape")
def reshape(r: Request) -> Sequence[ShapedValue]:
    """Translates Reshape to a view."""
    x = r.input(0)
    wanted = r.integers("shape", 1)
    if wanted is None:
        raise NotTakenError("Reshape without a shape")
    if not r.attribute("allowzero", 0):
        if any(extent == 0 and axis >= len(x.shape) for axis, extent in enumerate(wanted)):
            raise NotTakenError("Reshape that keeps an axis that there is not")
        wanted = [x.shape[axis] if extent == 0 else extent for axis, extent in enumerate(wanted)]
    if wanted.count(-1) == 1:
        rest = -prod(wanted)
        wanted[wanted.index(-1)] = prod(x.shape) // rest if rest else 0
    return (r.builder.view(x, wanted),)


@translates("Flatten")
def flatten(r: Request) -> Sequence[ShapedValue]:
    """Translates Flatten to a view."""
    x = r.input(0)
    axis = r.attribute("axis", 1)
    axis += len(x.shape) if axis < 0 else 0
    return (r.builder.view(x, (prod(x.shape[:axis]), prod(x.shape[axis:]))),)


@translates("Squeeze")
def squeeze(r: Request) -> Sequence[ShapedValue]:
    """Translates Squeeze to a view."""
    x = r.input(0)
    axes = r.integers("axes", 1)
    left_out = {i for i, e in enumerate(x.shape) if e == 1} if axes is None else {r.axis(a, len(x.shape)) for a in axes}
    return (r.builder.view(x, [e for i, e in enumerate(x.shape) if i not in left_out]),)


@translates("Unsqueeze")
def unsqueeze(r: Request) -> Sequence[ShapedValue]:
    """Translates Unsqueeze to a view."""
    x = r.input(0)
    axes = r.integers("axes", 1, ())
    assert axes is not None
    rank = len(x.shape) + len(axes)
    added = {r.axis(axis, rank) for axis in axes}
    if len(added) != len(axes):
        raise NotTakenError(f"Unsqueeze of axes {axes}, one of them twice")
    rest = iter(x.shape)
    return (r.builder.view(x, [1 if axis in added else next(rest) for axis in range(rank)]),)


@translates("Transpose")
def transpose(r: Request) -> Sequence[ShapedValue]:
    """Translates Transpose; a view where only axes of one element move."""
    x = r.input(0)
    perm = r.integers("perm", None, range(len(x.shape))[::-1])
    assert perm is not None
    if sorted(perm) != list(range(len(x.shape))):
        raise NotTakenError(f"Transpose by {perm}")
    shape = tuple(x.shape[axis] for axis in perm)
    moved = [axis for axis in perm if x.shape[axis] != 1]
    if moved == sorted(moved):
        return (r.builder.view(x, shape),)
    return r.call("Transpose", [x], [(shape, x.dtype)], {"perm": perm})


@translates("Concat")
def concat(r: Request) -> Sequence[ShapedValue]:
    """Translates Concat."""
    operands = [r.input(number) for number in range(len(r.inputs))]
    first = operands[0]
    axis = r.axis(r.attribute("axis", 1), len(first.shape))
    rest = (*first.shape[:axis], *first.shape[axis + 1 :])
    for operand in operands:
        others = (*operand.shape[:axis], *operand.shape[axis + 1 :])
        if (len(operand.shape), others, operand.dtype) != (len(first.shape), rest, first.dtype) or not first.shape:
            raise NotTakenError("Concat of shapes that do not fit")
    extent = sum(operand.shape[axis] for operand in operands)
    shape = (*first.shape[:axis], extent, *first.shape[axis + 1 :])
    return r.call("Concat", operands, [(shape, first.dtype)], {"axis": axis})


@translates("Slice")
def slices(r: Request) -> Sequence[ShapedValue]:
    """Translates Slice."""
    x = r.input(0)
    starts, ends = r.integers("starts", 1), r.integers("ends", 2)
    if starts is None or ends is None:
        raise NotTakenError("Slice without starts or ends")
    axes = r.integers("axes", 3, range(len(starts)))
    steps = r.integers(" no attribute has the steps ", 4, [1] * len(starts))
    assert axes is not None
    assert steps is not None
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise NotTakenError("Slice of other numbers of axes, starts and ends")
    begins, strides, shape = [0] * len(x.shape), [1] * len(x.shape), list(x.shape)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        at = r.axis(axis, len(x.shape))
        if not step:
            raise NotTakenError("Slice by 0")
        first = max(start, -x.shape[at]) if step < 0 else start  # else Python takes none, and ONNX the first element
        chosen = range(x.shape[at])[first:end:step]
        begins[at], strides[at], shape[at] = chosen.start, step, len(chosen)
    if tuple(shape) == x.shape and min(strides, default=1) > 0:
        return (x,)
    return r.call("Slice", [x], [(tuple(shape), x.dtype)], {"starts": begins, "steps": strides})


@translates("Split")
def split(r: Request) -> Sequence[ShapedValue]:
    """Translates Split."""
    x = r.input(0)
    axis = r.axis(r.attribute("axis", 0), len(x.shape))
    extent, count = x.shape[axis], len(r.node.outputs)
    sizes = r.integers("split", 1)
    if sizes is None:
        if r.attribute("num_outputs", count) != count:
            raise NotTakenError("Split into other numbers of parts")
        part = -(-extent // count)
        sizes = [min(part, extent - part * number) for number in range(count)]
    if len(sizes) != count or sum(sizes) != extent or min(sizes) < 0:
        raise NotTakenError("Split into parts that do not fit")
    types = [((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype) for size in sizes]
    return r.call("Split", [x], types, {"axis": axis})


@translates("Expand")
def expand(r: Request) -> Sequence[ShapedValue]:
    """Translates Expand."""
    x = r.input(0)
    wanted = [int(extent) for extent in r.known(1).reshape(-1)]
    shape = broadcast(x, ShapedValue(tuple(wanted), x.dtype))
    return (r.builder.view(x, shape),) if prod(shape) == prod(x.shape) else r.call("Expand", [x], [(shape, x.dtype)])


@translates("Tile")
def tile(r: Request) -> Sequence[ShapedValue]:
    """Translates Tile."""
    x = r.input(0)
    repeats = [int(each) for each in r.known(1)]
    if len(repeats) != len(x.shape):
        raise NotTakenError("Tile before opset 6")
    shape = tuple(e * n for e, n in zip(x.shape, repeats, strict=True))
    return r.call("Tile", [x], [(shape, x.dtype)], {"repeats": repeats})


@translates("Pad")
def pad(r: Request) -> Sequence[ShapedValue]:
    """Translates Pad."""
    x = r.input(0)
    pads = r.integers("pads", 1)
    rank = len(x.shape)
    axes = [r.axis(axis, rank) for axis in r.integers("axes", 3, range(rank)) or ()]
    if pads is None or len(pads) != 2 * len(axes):
        raise NotTakenError("Pad of other axes")
    before, after = [0] * rank, [0] * rank
    for number, axis in enumerate(axes):
        before[axis], after[axis] = pads[number], pads[len(axes) + number]
    sides = list(zip(before, x.shape, after, strict=True))
    shape = tuple(b + e + a for b, e, a in sides)
    if any(e + min(b, 0) + min(a, 0) < 1 for b, e, a in sides):
        raise NotTakenError("Pad that leaves out all elements")
    value = r.optional(2)
    if r.given("value") is not None:
        value = r.builder.constant(np.asarray(r.attribute("value", 0.0), numpy_dtype(x.dtype)))
    mode = r.attribute("mode", "constant")
    if mode not in ("constant", "reflect", "edge", "wrap"):
        raise NotTakenError(f"Pad by {mode!r}")
    return r.call("Pad", [x, value], [(shape, x.dtype)], {"before": before, "after": after, "mode": mode})


@translates("Gather")
def gather(r: Request) -> Sequence[ShapedValue]:
    """Translates Gather."""
    x, indices = r.input(0), r.input(1)
    axis = r.axis(r.attribute("axis", 0), len(x.shape))
    _check_indices(r, indices, x.shape[axis])
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    return r.call("Gather", [x, indices], [(shape, x.dtype)], {"axis": axis})


@translates("GatherElements")
def gather_elements(r: Request) -> Sequence[ShapedValue]:
    """Translates GatherElements."""
    x, indices = r.input(0), r.input(1)
    axis = r.axis(r.attribute("axis", 0), len(x.shape))
    _check_indices(r, indices, x.shape[axis])
    return r.call("GatherElements", [x, indices], [(indices.shape, x.dtype)], {"axis": axis})


@translates("GatherND")
def gather_nd(r: Request) -> Sequence[ShapedValue]:
    """Translates GatherND without batches."""
    x, indices = r.input(0), r.input(1)
    if r.attribute("batch_dims", 0) or not indices.shape or 0 in x.shape or indices.constant is not None:
        raise NotTakenError("GatherND of batches, or at constants")
    if indices.dtype != "int64":
        raise NotTakenError(f"GatherND at indices of {indices.dtype}")
    shape = (*indices.shape[:-1], *x.shape[indices.shape[-1] :])
    return r.call("GatherND", [x, indices], [(shape, x.dtype)])


@translates("ScatterND")
def scatter_nd(r: Request) -> Sequence[ShapedValue]:
    """Translates ScatterND that replaces."""
    x, indices, updates = r.input(0), r.input(1), r.input(2)
    if r.attribute("reduction", "none") != "none" or indices.constant is not None:
        raise NotTakenError("ScatterND that reduces, or at constants")
    depth = indices.shape[-1] if indices.shape else 0
    if indices.dtype != "int64" or not 0 < depth <= len(x.shape) or updates.dtype != x.dtype:
        raise NotTakenError(f"ScatterND at indices of {indices.dtype} and shape {indices.shape}")
    if updates.shape != (*indices.shape[:-1], *x.shape[depth:]):
        raise NotTakenError(f"ScatterND of updates of shape {updates.shape}")
    return r.call("ScatterND", [x, indices, updates], [(x.shape, x.dtype)])


@translates("ScatterElements", "Scatter")
def scatter_elements(r: Request) -> Sequence[ShapedValue]:
    """Translates ScatterElements that replaces or adds, and Scatter, its name before opset 11."""
    x, indices, updates = r.input(0), r.input(1), r.input(2)
    axis = r.axis(r.attribute("axis", 0), len(x.shape))
    reduction = r.attribute("reduction", "none")
    others = [e for i, e in enumerate(zip(indices.shape, x.shape, strict=True)) if i != axis]
    if (
        reduction not in ("none", "add")
        or (reduction == "add" and x.dtype == "bool")
        or indices.shape != updates.shape
        or updates.dtype != x.dtype
        or any(count > extent for count, extent in others)
    ):
        raise NotTakenError("ScatterElements of another form")
    _check_indices(r, indices, x.shape[axis])
    options = {"axis": axis, "adds": reduction == "add"}
    return r.call("ScatterElements", [x, indices, updates], [(x.shape, x.dtype)], options, overwrites=True)


@translates("Trilu")
def triangle(r: Request) -> Sequence[ShapedValue]:
    """Translates Trilu."""
    x = r.input(0)
    if len(x.shape) < 2:
        raise NotTakenError(f"Trilu of shape {x.shape}")
    diagonal = 0 if r.optional(1) is None else int(r.known(1).reshape(()))
    return r.call("Trilu", [x], [(x.shape, x.dtype)], {"diagonal": diagonal, "upper": r.attribute("upper", 1)})


@translates("OneHot")
def one_hot(r: Request) -> Sequence[ShapedValue]:
    """Translates OneHot."""
    indices, values = r.input(0), r.input(2)
    depth = int(r.known(1).reshape(()))
    axis = r.axis(r.attribute("axis", -1), len(indices.shape) + 1)
    shape = (*indices.shape[:axis], depth, *indices.shape[axis:])
    return r.call("OneHot", [indices, values], [(shape, values.dtype)], {"axis": axis, "depth": depth})


@translates("DepthToSpace")
def depth_to_space(r: Request) -> Sequence[ShapedValue]:
    """Translates DepthToSpace to a transposition between views."""
    x, block = r.input(0), r.attribute("blocksize", 0)
    if len(x.shape) != 4 or block < 1 or x.shape[1] % (block * block):
        raise NotTakenError("DepthToSpace of other shapes")
    n, c, h, w = x.shape
    inner = c // (block * block)
    if r.attribute("mode", "DCR") == "DCR":
        split_shape, perm = (n, block, block, inner, h, w), (0, 3, 4, 1, 5, 2)
    else:
        split_shape, perm = (n, inner, block, block, h, w), (0, 1, 4, 2, 5, 3)
    moved = _transposed(r, r.builder.view(x, split_shape), perm)
    return (r.builder.view(moved, (n, inner, h * block, w * block)),)


@translates("SpaceToDepth")
def space_to_depth(r: Request) -> Sequence[ShapedValue]:
    """Translates SpaceToDepth to a transposition between views."""
    x, block = r.input(0), r.attribute("blocksize", 0)
    if len(x.shape) != 4 or block < 1 or x.shape[2] % block or x.shape[3] % block:
        raise NotTakenError("SpaceToDepth of other shapes")
    n, c, h, w = x.shape
    moved = _transposed(r, r.builder.view(x, (n, c, h // block, block, w // block, block)), (0, 3, 5, 1, 2, 4))
    return (r.builder.view(moved, (n, c * block * block, h // block, w // block)),)


def _transposed(r: Request, x: ShapedValue, perm: Sequence[int]) -> ShapedValue:
    (moved,) = r.call("Transpose", [x], [(tuple(x.shape[axis] for axis in perm), x.dtype)], {"perm": list(perm)})
    return moved


def _check_indices(r: Request, indices: ShapedValue, extent: int) -> None:
    """Raises NotTakenError for an axis without elements, for constants out of range and for other types of indices
    than ONNX has, which are errors.
    """
    known = indices.constant
    if indices.dtype not in ("int32", "int64"):
        raise NotTakenError(f"{r.node.op_type} at indices of {indices.dtype}")
    if not extent or (known is not None and ((known < -extent) | (known >= extent)).any()):
        raise NotTakenError(f"{r.node.op_type} at indices out of range")
