"""The buffers of @main by scope, and what the memory of each scope can do."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace

from xdsl.dialects import memref
from xdsl.ir import Attribute, Block

from landbridge import planner
from landbridge.analysis.lifetimes import Lifetime, lifetimes
from landbridge.analysis.offsets import offset_alignment
from landbridge.ir.attributes import node_name, placed_on
from landbridge.ir.graph_ops import ConstantOp
from landbridge.ir.module import IRModule
from landbridge.ir.types import VDeviceAttr, dtype_of, nbytes_of, separators_of, shape_of
from landbridge.locks import cached_property
from landbridge.memory_kind import GLOBAL_SCOPE, MemoryKind
from landbridge.physical_shape import nd_bytes, physical_shape

#: What is assumed of a scope that its Target does not describe.
_ORDINARY = MemoryKind(scope=GLOBAL_SCOPE, host_access="read_write", coherent=True)


@dataclass(frozen=True)
class Alloc:
    """A buffer of @main and the steps at which it is in use."""

    op: memref.AllocOp
    place: VDeviceAttr
    life: Lifetime

    @property
    def name(self) -> str:
        return node_name(self.op)

    @property
    def nbytes(self) -> int:
        return nbytes_of(self.op.memref.type)

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents of the buffer in its space, in elements."""
        return physical_shape(shape_of(self.op.memref.type), self.place.axis_separators)

    def buffer(self, name: str, size: int, alignment: int) -> planner.Buffer:
        return planner.Buffer(name, size, alignment, self.life.first, self.life.last + 1)


@dataclass
class Scope:
    """The buffers of one scope of one vdevice, and what its memory can do. ``free``: bytes not taken by constants."""

    index: int
    vdevice: str
    kind: MemoryKind
    free: int | None
    allocs: list[Alloc] = field(default_factory=list)

    @cached_property
    def names(self) -> list[str]:
        """A name for each buffer that no other one has."""
        taken = Counter(alloc.name for alloc in self.allocs)
        return [
            alloc.name if alloc.name and taken[alloc.name] == 1 else f"{alloc.name}#{number}"
            for number, alloc in enumerate(self.allocs)
        ]


def scopes_of(module: IRModule) -> list[Scope]:
    """The scopes that buffers of @main are in."""
    block = module.main.body.block
    scopes: dict[tuple[int, str], Scope] = {}
    for alloc in _allocations(block):
        index, name = alloc.place.index.data, alloc.place.scope.data
        if (index, name) not in scopes:
            kind = _memory_kind(module, index, name)
            scopes[index, name] = Scope(index, module.vdevices[index].name, kind, _free(block, index, name, kind))
        scopes[index, name].allocs.append(alloc)
    return list(scopes.values())


def _allocations(block: Block) -> list[Alloc]:
    """The allocations of @main that are used."""
    lives = lifetimes(block)
    return [
        Alloc(op, placed_on(op), lives.get(op.memref, Lifetime(0, 0)))
        for op in block.ops
        if isinstance(op, memref.AllocOp) and op.memref.first_use is not None
    ]


def _memory_kind(module: IRModule, index: int, scope: str) -> MemoryKind:
    """The memory of ``scope``, its offsets such that targets that share it can be given its tensors too."""
    target = module.target_of(index)
    kind = target.memory_kind(scope) if target.memory else replace(_ORDINARY, scope=scope)
    return replace(kind, offset_alignment=offset_alignment(module, index, scope, shared=True))


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
        return round_up(nbytes_of(ty), kind.size_multiple)
    return nd_bytes(kind, physical_shape(shape_of(ty), separators_of(ty)), dtype_of(ty))


def round_up(value: int, multiple: int) -> int:
    """The least multiple that is not below ``value``."""
    return math.ceil(value / multiple) * multiple
