"""Plan storage: every buffer of @main gets a place in a storage of its vdevice and scope.

Flat scopes get one storage each, with buffers at byte offsets. Scopes of rows get one storage too, whose whole rows
buffers take. In scopes of more dimensions an object is reused as a whole, by buffers of one type.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

from xdsl.dialects import memref
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Block
from xdsl.rewriter import Rewriter

from landbridge import planner
from landbridge.errors import PlacementError, PlanError
from landbridge.executable.abi import STORAGE_ALIGNMENT
from landbridge.ir.graph_ops import ConstantOp
from landbridge.ir.memory_ops import AllocStorageOp, AllocTensorOp
from landbridge.ir.module import IRModule
from landbridge.ir.types import VDeviceAttr, dtype_of, item_bytes, nbytes_of, separators_of, shape_of
from landbridge.memory_kind import GLOBAL_SCOPE, MemoryKind
from landbridge.passes.bufferize import placed_on
from landbridge.passes.lifetimes import Lifetime, lifetimes
from landbridge.passes.registry import register_pass
from landbridge.physical_shape import nd_bytes, physical_shape

#: Attributes of ``lb.alloc_storage`` that say how good its plan is.
LOWER_BOUND = "lb.lower_bound"
PROVED_OPTIMAL = "lb.proved_optimal"

#: What is assumed of a scope that its Target does not describe.
_ORDINARY = MemoryKind(scope=GLOBAL_SCOPE, host_access="read_write", coherent=True)


@dataclass(frozen=True)
class _Alloc:
    """A buffer of @main and the steps at which it is in use."""

    op: memref.AllocOp
    place: VDeviceAttr
    life: Lifetime

    @property
    def name(self) -> str:
        node = self.op.attributes.get("node")
        return node.data if isinstance(node, StringAttr) else ""

    def buffer(self, name: str, size: int, alignment: int) -> planner.Buffer:
        return planner.Buffer(name, size, alignment, self.life.first, self.life.last + 1)


@dataclass(frozen=True)
class _Solution:
    """A storage of ``nbytes`` (with extents ``shape`` unless it is flat) and the byte offset of each buffer in it."""

    nbytes: int
    offsets: tuple[int, ...]
    lower_bound: int
    proved_optimal: bool
    shape: tuple[int, ...] = ()
    dtype: str = "uint8"


@dataclass
class _Scope:
    """The buffers of one scope of one vdevice, and what its memory can do. ``free``: bytes not taken by constants."""

    vdevice: str
    kind: MemoryKind
    free: int | None
    allocs: list[_Alloc] = field(default_factory=list)

    @cached_property
    def names(self) -> list[str]:
        """A name for each buffer that no other one has."""
        taken = Counter(alloc.name for alloc in self.allocs)
        return [
            alloc.name if alloc.name and taken[alloc.name] == 1 else f"{alloc.name}#{number}"
            for number, alloc in enumerate(self.allocs)
        ]


#: The buffers of one storage, and their places in it.
_Storage: TypeAlias = tuple[Sequence[_Alloc], _Solution]


@register_pass("plan")
def plan(module: IRModule) -> None:
    """Replace allocations by places in storages, which belong to one vdevice and one scope each.

    Raises PlacementError where a scope cannot hold what was placed in it.
    """
    block = module.main.body.block
    scopes: dict[tuple[int, str], _Scope] = {}
    for alloc in _allocations(block):
        index, name = alloc.place.index.data, alloc.place.scope.data
        if (index, name) not in scopes:
            kind = _memory_kind(module, index, name)
            scopes[index, name] = _Scope(module.vdevices[index].name, kind, _free(block, index, name, kind))
        scopes[index, name].allocs.append(alloc)
    for scope in scopes.values():
        try:
            _check_each(scope)
            solved = list(_solve(scope))
        except PlanError as error:
            raise PlacementError(
                f"scope {scope.kind.scope!r} of vdevice {scope.vdevice!r} is too small: {error}"
            ) from error
        for allocs, solution in solved:
            _rewrite(block, scope.kind, allocs, solution)


def _allocations(block: Block) -> list[_Alloc]:
    """The allocations of @main that are used; the others are erased."""
    lives = lifetimes(block)
    found = []
    for op in list(block.ops):
        if not isinstance(op, memref.AllocOp):
            continue
        life = lives.get(op.memref)
        if life is None and not op.memref.uses:
            Rewriter.erase_op(op)
            continue
        found.append(_Alloc(op, placed_on(op), life or Lifetime(0, 0)))
    return found


def _memory_kind(module: IRModule, index: int, scope: str) -> MemoryKind:
    target = module.target_of(index)
    return target.memory_kind(scope) if target.memory else replace(_ORDINARY, scope=scope)


def _free(block: Block, index: int, scope: str, kind: MemoryKind) -> int | None:
    """The capacity of a scope less the constants placed there. Those in ordinary memory are used where they are."""
    if kind.capacity is None or scope == GLOBAL_SCOPE:
        return kind.capacity
    taken = {
        (op.symbol, op.result.type): _constant_bytes(op.result.type, kind)
        for op in block.ops
        if isinstance(op, ConstantOp) and (placed_on(op).index.data, placed_on(op).scope.data) == (index, scope)
    }
    return kind.capacity - sum(taken.values())


def _constant_bytes(ty: Attribute, kind: MemoryKind) -> int:
    if kind.ndim == 1:
        return _round_up(nbytes_of(ty), kind.size_multiple)
    return nd_bytes(kind, physical_shape(shape_of(ty), separators_of(ty)), dtype_of(ty))


def _check_each(scope: _Scope) -> None:
    limit = scope.kind.max_binding_bytes
    for alloc in scope.allocs:
        nbytes = nbytes_of(alloc.op.memref.type)
        if limit is not None and nbytes > limit:
            raise PlanError(
                f"tensor {alloc.name!r} has {nbytes} bytes, and a kernel's argument there at most {limit}; place it in "
                "another scope, or compile for smaller shapes"
            )


def _solve(scope: _Scope) -> Iterator[_Storage]:
    """The storages of a scope, each with the buffers that it holds."""
    if scope.kind.ndim == 1:
        yield scope.allocs, _in_bytes(scope)
    elif scope.kind.ndim == 2:
        yield from _in_rows(scope)
    else:
        yield from _in_objects(scope)


def _in_bytes(scope: _Scope) -> _Solution:
    kind = scope.kind
    # Tensors of a kind that is not coherent do not share a granule: a barrier for one would touch the other.
    granule = kind.coherence_granule
    alignment = max(STORAGE_ALIGNMENT, kind.offset_alignment, granule)
    buffers = [
        alloc.buffer(name, _round_up(nbytes_of(alloc.op.memref.type), granule), alignment)
        for name, alloc in zip(scope.names, scope.allocs, strict=True)
    ]
    found = planner.plan(buffers, _least(scope.free, kind.max_bytes))
    offsets = tuple(found.offsets[name] for name in scope.names)
    return _Solution(_round_up(found.peak, kind.size_multiple), offsets, found.lower_bound, found.proved_optimal)


def _in_rows(scope: _Scope) -> list[_Storage]:
    """Buffers take whole rows: of one storage with rows for the widest, or of one for each width if that is less."""
    of_width: dict[int, list[int]] = {}
    for number, alloc in enumerate(scope.allocs):
        width = _extents(alloc)[-1] * item_bytes(alloc.op.memref.type)
        of_width.setdefault(_round_up(width, scope.kind.row_alignment), []).append(number)
    apart = [_rows(scope, members, width) for width, members in of_width.items()]
    together = [_rows(scope, list(range(len(scope.allocs))), max(of_width))]
    best = min(together, apart, key=_nbytes)
    free = _least(scope.free, None if len(best) > 1 else scope.kind.max_bytes)
    if free is not None and _nbytes(best) > free:
        rows = ", ".join(f"{found.shape[0]} rows of {found.shape[1]} bytes" for _, found in best)
        raise PlanError(
            f"{rows} are needed at once, {_nbytes(best)} bytes, and {free} are free; place fewer tensors there, or "
            "compile for smaller shapes"
        )
    return best


def _nbytes(storages: Sequence[_Storage]) -> int:
    return sum(found.nbytes for _, found in storages)


def _rows(scope: _Scope, members: Sequence[int], width: int) -> _Storage:
    """The buffers of these numbers in one storage of rows of ``width`` bytes."""
    allocs = [scope.allocs[number] for number in members]
    names = [scope.names[number] for number in members]
    buffers = [
        alloc.buffer(name, math.prod(_extents(alloc)[:-1]), 1) for name, alloc in zip(names, allocs, strict=True)
    ]
    found = planner.plan(buffers)
    return allocs, _Solution(
        nbytes=found.peak * width,
        offsets=tuple(found.offsets[name] * width for name in names),
        lower_bound=found.lower_bound * width,
        proved_optimal=found.proved_optimal,
        shape=(found.peak, width),
    )


def _in_objects(scope: _Scope) -> Iterator[_Storage]:
    """One storage for buffers of one type that are never in use together."""
    objects: list[list[_Alloc]] = []
    for alloc in sorted(scope.allocs, key=lambda a: a.life.first):
        for users in objects:
            if users[0].op.memref.type == alloc.op.memref.type and users[-1].life.last < alloc.life.first:
                users.append(alloc)
                break
        else:
            objects.append([alloc])
    sizes = [nd_bytes(scope.kind, _extents(users[0]), dtype_of(users[0].op.memref.type)) for users in objects]
    if scope.free is not None and sum(sizes) > scope.free:
        raise PlanError(
            f"{len(objects)} objects of {sum(sizes)} bytes in all are placed there, and {scope.free} bytes are free; "
            "place fewer tensors there, or compile for smaller shapes"
        )
    for users, nbytes in zip(objects, sizes, strict=True):
        shape, dtype = _extents(users[0]), dtype_of(users[0].op.memref.type)
        yield users, _Solution(nbytes, (0,) * len(users), nbytes, True, shape, dtype)


def _extents(alloc: _Alloc) -> tuple[int, ...]:
    """The extents of a buffer in its space, in elements."""
    return physical_shape(shape_of(alloc.op.memref.type), alloc.place.axis_separators)


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _round_up(value: int, multiple: int) -> int:
    return math.ceil(value / multiple) * multiple


def _rewrite(block: Block, kind: MemoryKind, allocs: Sequence[_Alloc], solution: _Solution) -> None:
    first = block.first_op
    if first is None:
        return
    place = VDeviceAttr.of(allocs[0].place.index.data, kind.scope)
    alignment = max(STORAGE_ALIGNMENT, kind.alignment)
    storage = AllocStorageOp(solution.nbytes, alignment, place, solution.shape, solution.dtype)
    storage.attributes[LOWER_BOUND] = IntegerAttr(solution.lower_bound, i64)
    storage.attributes[PROVED_OPTIMAL] = IntegerAttr.from_bool(solution.proved_optimal)
    block.insert_op_before(storage, first)
    for alloc, offset in zip(allocs, solution.offsets, strict=True):
        ty: Attribute = alloc.op.memref.type
        tensor = AllocTensorOp(storage.result, offset, ty, alloc.name)
        block.insert_op_before(tensor, alloc.op)
        alloc.op.memref.replace_all_uses_with(tensor.result)
        Rewriter.erase_op(alloc.op)
