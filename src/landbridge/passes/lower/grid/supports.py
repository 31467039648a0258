"""Tests what a grid target cannot run before anything is lowered: placement leaves such kernels to a CPU."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float64Type,
    IntegerType,
    MemRefType,
    TensorType,
    VectorType,
    i1,
    i8,
)
from xdsl.ir import Attribute, SSAValue

from landbridge.ir.prim_ops import RemFOp
from landbridge.ir.stages import view_prim
from landbridge.ir.types import nbytes_of
from landbridge.passes.lower.extents_operand import open_extents
from landbridge.passes.lower.grid.loop_limits import exceeds
from landbridge.passes.lower.image_memory import is_image
from landbridge.sizes.size import least
from landbridge.targets import Target
from landbridge.targets.grid import GridLimits, grid_limits, most_binding_bytes


def supports(prim: func.FuncOp, target: Target) -> str | None:
    """Returns why ``target`` cannot run the PrimFunc ``prim``; None if it can, or has no grid and runs every kernel."""
    limits = grid_limits(target)
    if limits is None:
        return None
    view = view_prim(prim)
    if view.forall is not None:
        return f"it is scalar code with loops of its own; a kernel of target {target.kind!r} is a grid of work-items"
    if view.is_iterated and any(is_image(ty) for ty in prim.function_type.inputs):
        return f"it is a recurrence on images; a kernel of target {target.kind!r} reads no image that it writes"
    taken = len(prim.function_type.inputs.data)
    is_open = bool(open_extents(prim))
    taken += is_open
    if taken > limits.buffers:
        return f"it takes {taken} buffers; a kernel of target {target.kind!r} takes at most {limits.buffers}"
    most = most_binding_bytes(target)
    largest = max((least(nbytes_of(ty)) for ty in prim.function_type.inputs if isinstance(ty, MemRefType)), default=0)
    if most is not None and largest > most:
        return f"it takes {largest} bytes in one buffer; a kernel of target {target.kind!r} takes at most {most}"
    if not limits.double_math and (name := _double_function(prim)) is not None:
        return f"it uses {name} of f64; target {target.kind!r} has exp, log and pow of f64 alone"
    for element in _elements(prim):
        if (missing := _missing(element, limits)) is not None:
            return f"it uses {element}; target {target.kind!r} states {missing}"
    return exceeds(prim, limits)


#: The functions of f64 that every target with f64 has: rounding, roots and what follows from arithmetic.
_EVERYWHERE = frozenset(
    f"math.{name}"
    for name in (
        "absf",
        "ceil",
        "copysign",
        "exp",
        "expm1",
        "floor",
        "fma",
        "log",
        "powf",
        "round",
        "roundeven",
        "rsqrt",
        "sqrt",
    )
) | {"math.trunc"}


def _double_function(prim: func.FuncOp) -> str | None:
    """Returns a function of f64 in ``prim`` that not every target has; None if there is none."""
    for op in prim.body.walk():
        if (
            (op.name.startswith("math.") or isinstance(op, RemFOp))
            and op.name not in _EVERYWHERE
            and isinstance(op.results[0].type, Float64Type)
        ):
            return op.name
    return None


def _elements(prim: func.FuncOp) -> Iterator[Attribute]:
    """Yields the element types of all values of ``prim``, each once."""
    seen: set[Attribute] = set()
    values: list[SSAValue] = list(prim.body.block.args)
    for op in prim.body.walk():
        values += op.results
        values += [a for region in op.regions for block in region.blocks for a in block.args]
    for value in values:
        ty = value.type
        element = ty.element_type if isinstance(ty, MemRefType | TensorType | VectorType) else ty
        if isinstance(ty, MemRefType) and element == i1:
            element = i8  # a bool in memory is a byte
        if element not in seen:
            seen.add(element)
            yield element


def _missing(element: Attribute, limits: GridLimits) -> str | None:
    """Returns the option of the target that excludes ``element``; None if there is none."""
    if isinstance(element, Float64Type) and not limits.fp64:
        return "fp64=0"
    small = isinstance(element, Float16Type | BFloat16Type)
    if isinstance(element, IntegerType):
        if element.width.data == 64 and not limits.int64:
            return "int64=0"
        small = element.width.data in (8, 16)
    return "small-elements=0" if small and not limits.small_elements else None
