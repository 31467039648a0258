"""Memory for data that the nests of a task pass to each other: the stack of its thread, or scratch.

Scratch is planned memory, one operand for each temporary. It has as many parts as tasks may run at once. Every task
uses a part of its own, so that threads need not be distinguished and runs allocate nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from landbridge.errors import CodegenError
from landbridge.ir.prim_ops import ForallOp
from landbridge.ir.stages import PrimView
from landbridge.ir.types import AnyMemRef, element_count, extents_attr, item_bytes, shape_of
from landbridge.passes.lower.access import ElementAccess, Linear, add
from landbridge.passes.lower.cost import TASKS
from landbridge.passes.lower.nest import LoopDim, Nest, build_nests, used_buffers
from landbridge.passes.lower.prefix import shrink, task_prefix
from landbridge.passes.lower.simplify import renumbered
from landbridge.sizes.size import Extent, at_least, product, smallest


def used_temporaries(prim: PrimView, nests: list[Nest]) -> list[SSAValue]:
    """Returns the temporaries that are read or written in memory, in order."""
    used = used_buffers(nests)
    return [t for t in prim.temporaries if t in used]


def elements_in_a_task(temporary: SSAValue, length: int) -> int:
    """Returns the elements of ``temporary`` that one iteration of the ``length`` shared loops uses."""
    return element_count(shape_of(temporary.type)[length:])


def task_bytes(prim: PrimView, nests: list[Nest], length: int) -> Extent:
    """Returns the bytes of temporaries that one iteration of the ``length`` shared loops uses."""
    return sum(elements_in_a_task(t, length) * item_bytes(t.type) for t in used_temporaries(prim, nests))


def fits_stack(prim: PrimView, nests: list[Nest], length: int) -> bool:
    """Returns whether the temporaries of one iteration of ``length`` shared loops fit the stack of a thread, for all
    sizes.
    """
    return at_least(TASKS.stack_bytes, task_bytes(prim, nests, length)) is True


def part_count(iterations: Extent) -> Extent:
    """Returns the number of parts of scratch for so many iterations of the shared loops: the most tasks that may run at
    once.
    """
    return smallest(iterations, TASKS.enough)


def scratch_types(prim: PrimView) -> list[AnyMemRef]:
    """Returns the types of the operands that a PrimFunc needs for its temporaries; none if these fit the stack."""
    if prim.is_iterated:
        return []  # iterated stages have no temporaries
    if prim.forall is not None:
        return forall_scratch(prim, prim.forall)
    nests = [nest for nest in build_nests(prim) if not nest.is_empty]
    length, types = task_prefix(nests), []
    if len(nests) < 2 or fits_stack(prim, nests, length):
        return []
    parts = part_count(product(dim.extent for dim in nests[0].dims[:length]))
    for temporary in used_temporaries(prim, nests):
        kind = temporary.type
        assert isinstance(kind, MemRefType)
        elements = parts * elements_in_a_task(temporary, length)
        types.append(MemRefType(kind.element_type, extents_attr([elements]), memory_space=kind.memory_space))
    return types


def forall_scratch(prim: PrimView, stage: ForallOp) -> list[AnyMemRef]:
    """Returns the types of the operands for the temporaries of ``stage``, the only one of ``prim``: a part of each for
    every task.
    """
    parts, types = part_count(stage.iterations), []
    for temporary in prim.temporaries:
        kind = temporary.type
        assert isinstance(kind, MemRefType)
        elements = parts * element_count(shape_of(kind))
        types.append(MemRefType(kind.element_type, extents_attr([elements]), memory_space=kind.memory_space))
    return types


def in_parts(nest: Nest, temporaries: set[SSAValue], length: int, parts: Extent) -> Nest:
    """Returns ``nest`` with temporaries addressed in scratch: a new loop after the ``length`` shared ones is the number
    of the part.
    """
    dims = [*nest.dims[:length], LoopDim(cast(int, parts), False), *nest.dims[length:]]
    moved = renumbered(shrink(nest, temporaries, length), dims, [i + (i >= length) for i in range(len(nest.dims))])

    def placed(a: ElementAccess) -> ElementAccess:
        if a.buffer not in temporaries:
            return a
        return replace(a, index=add(a.index, Linear(0, {length: elements_in_a_task(a.buffer, length)})))

    stages = [
        replace(
            s,
            reads=tuple(placed(r) if isinstance(r, ElementAccess) else r for r in s.reads),
            writes=tuple(map(placed, s.writes)),
        )
        for s in moved.stages
    ]
    return replace(moved, stages=stages)


def stack_refusal(prim: PrimView, nests: list[Nest], length: int) -> CodegenError:
    """Returns the error for temporaries that do not fit the stack and have no scratch."""
    return CodegenError(
        f"@{prim.function.sym_name.data} keeps {task_bytes(prim, nests, length)} bytes between its stages; at most "
        f"{TASKS.stack_bytes} fit a task's stack, and it has no operands for scratch: run the pass scratch"
    )
