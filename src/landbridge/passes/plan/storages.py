"""Storages: the location of each buffer of a scope, by the number of dimensions of its memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from landbridge import planner
from landbridge.analysis.scopes import Alloc, Scope, round_up
from landbridge.errors import CompileError, PlanError
from landbridge.executable.abi import STORAGE_ALIGNMENT
from landbridge.ir.memory_ops import PreparedOp
from landbridge.ir.types import item_bytes
from landbridge.passes.plan.objects import has_open_extents, in_objects, in_open_objects, in_spaces
from landbridge.passes.plan.solution import Solution, Storage
from landbridge.passes.rewrites import rewrite
from landbridge.sizes.size import Size, at_least, expected_size, least


def solve(scope: Scope) -> Iterator[Storage]:
    """Yields the storages of a scope, each with the buffers that it holds; raises PlanError if they do not fit."""
    _check_each(scope)
    if scope.free is not None and at_least(scope.free, 0) is False:
        raise PlanError(
            "the weights, inputs and outputs placed there do not fit; place fewer of them there, or name a scope for "
            "weights in spill="
        )
    if not scope.allocs:
        return
    for strategy in STRATEGIES:
        storages = strategy(scope)
        if storages is not None:
            yield from storages
            return
    raise CompileError(
        f"scope {scope.kind.scope!r} of vdevice {scope.vdevice!r}: no rule plans its memory of {scope.kind.ndim} "
        "dimensions; enable the rewrites of the pass 'plan'"
    )


@rewrite("plan.bytes", "buffers of flat memory get byte offsets in one storage")
def in_bytes(scope: Scope) -> list[Storage] | None:
    """Returns one storage for a flat scope, with every buffer at a byte offset; None for memory of more dimensions."""
    kind = scope.kind
    if kind.ndim != 1:
        return None
    # Tensors share no granule of barriers or copies: those for one would affect the other.
    granule = max(kind.coherence_granule, kind.copy_granule)
    alignment = max(STORAGE_ALIGNMENT, kind.offset_alignment, granule)
    sizes = [round_up(alloc.nbytes, granule) for alloc in scope.allocs]
    is_open = any(isinstance(size, Size) for size in sizes)
    buffers = [
        # A buffer that is empty for the expected sizes is not empty for all sizes: it shares its memory with no other.
        alloc.buffer(name, max(expected_size(size), 1) if isinstance(size, Size) else size, alignment)
        for name, size, alloc in zip(scope.names, sizes, scope.allocs, strict=True)
    ]
    if is_open:
        buffers = _prepared_first(buffers, [_is_prepared(alloc) for alloc in scope.allocs]) or buffers
    found = planner.plan(buffers, _least(scope.free, kind.max_bytes))
    chosen = [found.offsets[name] for name in scope.names]
    offsets, end = planner.supported(buffers, chosen, sizes) if is_open else (chosen, found.peak)
    nbytes = round_up(end, kind.size_multiple)
    return [(scope.allocs, Solution(nbytes, tuple(offsets), found.lower_bound, found.proved_optimal))]


def _is_prepared(alloc: Alloc) -> bool:
    return any(isinstance(use.operation, PreparedOp) for use in alloc.op.memref.uses)


@rewrite("plan.prepared_first", "what is prepared once begins a storage of open size")
def _prepared_first(buffers: Sequence[planner.Buffer], prepared: Sequence[bool]) -> list[planner.Buffer]:
    """Returns ``buffers`` with the ``prepared`` ones pinned from offset 0 on, one after the other.

    What is prepared once serves runs of all sizes, so that these buffers need the same location for all of them.
    """
    end, placed = 0, list(buffers)
    for number, buffer in enumerate(buffers):
        if prepared[number]:
            offset = round_up(end, buffer.alignment)
            placed[number], end = replace(buffer, offset=offset), offset + buffer.size
    return placed


def _check_each(scope: Scope) -> None:
    """Raises PlanError for a tensor that no kernel takes; of one whose size a run decides, the smallest counts."""
    limit = scope.kind.max_binding_bytes
    for alloc in scope.allocs:
        nbytes = alloc.nbytes
        if limit is not None and least(nbytes) > limit:
            raise PlanError(
                f"tensor {alloc.name!r} has {nbytes} bytes, and a kernel's argument there at most {limit}; place it in "
                "another scope, or compile for smaller shapes"
            )


@rewrite("plan.rows", "buffers of memory of rows get whole rows of one storage")
def in_rows(scope: Scope) -> list[Storage] | None:
    """Returns storages of whole rows for a memory of two dimensions and known extents, else None; raises PlanError if
    they do not fit.

    Takes the smaller of two choices in bytes: one storage whose rows are as wide as the widest buffer, or one storage
    for each row width.
    """
    if scope.kind.ndim != 2 or has_open_extents(scope):
        return None
    of_width: dict[int, list[int]] = {}
    for number, alloc in enumerate(scope.allocs):
        width = alloc.extents[-1] * item_bytes(alloc.op.memref.type)
        of_width.setdefault(round_up(width, scope.kind.row_alignment), []).append(number)
    together = [_rows(scope, list(range(len(scope.allocs))), max(of_width))]
    best = min(together, _by_width(scope, of_width) or together, key=_nbytes)
    free = _least(scope.free, None if len(best) > 1 else scope.kind.max_bytes)
    if free is not None and _nbytes(best) > free:
        rows = ", ".join(f"{found.shape[0]} rows of {found.shape[1]} bytes" for _, found in best)
        raise PlanError(
            f"{rows} are needed at once, {_nbytes(best)} bytes, and {free} are free; place fewer tensors there, or "
            "compile for smaller shapes"
        )
    return best


@rewrite("plan.row_widths", "buffers of rows get a storage for each width where that is smaller")
def _by_width(scope: Scope, of_width: Mapping[int, Sequence[int]]) -> list[Storage]:
    """Returns one storage for each width of rows; ``of_width`` has the numbers of the buffers of each."""
    return [_rows(scope, members, width) for width, members in of_width.items()]


def _nbytes(storages: Sequence[Storage]) -> int:
    return sum(cast(int, found.nbytes) for _, found in storages)


def _rows(scope: Scope, members: Sequence[int], width: int) -> Storage:
    """Returns a storage of rows of ``width`` bytes for the buffers numbered ``members``; its offsets are in bytes."""
    allocs = [scope.allocs[number] for number in members]
    names = [scope.names[number] for number in members]
    buffers = [
        planner.RowBuffer(name, math.prod(alloc.extents[:-1]), width, alloc.life.first, alloc.life.last + 1)
        for name, alloc in zip(names, allocs, strict=True)
    ]
    found = planner.plan_rows(buffers, None, width, contiguous=True)
    first = [min(found.rows[name], default=0) for name in names]
    return allocs, Solution(
        nbytes=found.peak * width,
        offsets=tuple(row * width for row in first),
        lower_bound=found.lower_bound * width,
        proved_optimal=found.peak == found.lower_bound,
        shape=(found.peak, width),
    )


#: The rules that plan a scope: the first that returns storages does.
STRATEGIES = (in_spaces, in_bytes, in_open_objects, in_rows, in_objects)


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)
