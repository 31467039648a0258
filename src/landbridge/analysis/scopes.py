"""The buffers of @main by scope, and the properties of each scope's memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import field, replace
from itertools import chain
from typing import cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, StringAttr
from xdsl.ir import Attribute, Block, SSAValue

from landbridge import planner
from landbridge.analysis.lifetimes import Lifetime, lifetimes
from landbridge.analysis.offsets import offset_alignment
from landbridge.dtypes import dtype as dtype_facts
from landbridge.ir.graph_ops import ConstantOp
from landbridge.ir.main_attributes import io_names
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import node_name, placed_on
from landbridge.ir.traversal import operations
from landbridge.ir.types import SpaceAttr, VDeviceAttr, dtype_of, nbytes_of, separators_of, shape_of
from landbridge.memory_kind import GLOBAL_SCOPE, MemoryKind
from landbridge.process.locks import cached_property
from landbridge.records import record
from landbridge.shapes.physical import nd_bytes, physical_shape
from landbridge.sizes.size import Extent, Size, ceildiv, largest, product

#: The most weights that an error names.
_SHOWN = 4

#: The memory kind assumed for a scope that its Target does not describe.
_ORDINARY = MemoryKind(scope=GLOBAL_SCOPE, host_access="read_write", coherent=True)


@record(frozen=True)
class Alloc:
    """A buffer of @main and the steps at which it is in use."""

    op: memref.AllocOp
    placement: VDeviceAttr
    life: Lifetime

    @property
    def name(self) -> str:
        return node_name(self.op)

    @property
    def nbytes(self) -> int:
        return nbytes_of(self.op.memref.type)

    @property
    def extents(self) -> tuple[int, ...]:
        """Returns the extents of the buffer in its space, in elements."""
        return physical_shape(shape_of(self.op.memref.type), self.placement.axis_separators)

    def buffer(self, name: str, size: int, alignment: int) -> planner.Buffer:
        return planner.Buffer(name, size, alignment, self.life.first, self.life.last + 1)


@record(frozen=True)
class Resident:
    """A constant, input or output that lies in a scope as long as the program is bound. ``ops`` load the constant,
    which counts once; an input or output has none.
    """

    nbytes: int
    ops: list[ConstantOp]
    name: str


@record
class Scope:
    """A scope of a vdevice: its buffers, the constants, inputs and outputs placed there, and its memory kind."""

    index: int
    vdevice: str
    kind: MemoryKind
    residents: list[Resident] = field(default_factory=list)
    allocs: list[Alloc] = field(default_factory=list)

    @property
    def resident_bytes(self) -> int:
        """Returns the bytes of the capacity that the residents take."""
        return sum(resident.nbytes for resident in self.residents)

    @property
    def free(self) -> int | None:
        """Returns the capacity less the bytes of the residents, negative if they do not fit; None without a known
        limit."""
        return None if self.kind.capacity is None else self.kind.capacity - self.resident_bytes

    def taken(self) -> str:
        """Returns a clause for an error that says which residents take how many bytes of the capacity; empty without
        any.
        """
        if not self.residents:
            return ""
        names = ", ".join(f"{each.name!r} {each.nbytes}" for each in self.residents[:_SHOWN])
        more = ", ..." if len(self.residents) > _SHOWN else ""
        capacity, taken = self.kind.capacity, self.resident_bytes
        return f"; of its {capacity} bytes the weights, inputs and outputs placed there take {taken} ({names}{more})"

    @cached_property
    def names(self) -> list[str]:
        """Returns a unique name for each of ``allocs``, in their order: the node's name, with the number of the buffer
        after ``#`` if several have it or it is empty.
        """
        taken = Counter(alloc.name for alloc in self.allocs)
        return [
            alloc.name if alloc.name and taken[alloc.name] == 1 else f"{alloc.name}#{number}"
            for number, alloc in enumerate(self.allocs)
        ]


def scopes_of(module: IRModule) -> list[Scope]:
    """Returns the scopes that hold buffers of @main, or constants, inputs or outputs that were placed there."""
    block = module.main.body.block
    scopes: dict[tuple[int, str], Scope] = {}

    def scope_of(vdevice: VDeviceAttr) -> Scope:
        index, name = vdevice.index.data, vdevice.scope.data
        if (index, name) not in scopes:
            kind = _memory_kind(module, index, name)
            scopes[index, name] = Scope(index, module.vdevices[index].name, kind)
        return scopes[index, name]

    for alloc in _allocations(block):
        scope_of(alloc.placement).allocs.append(alloc)
    for argument, name in zip(block.args, chain(*io_names(module.main)), strict=False):
        if (named := _scope_of_argument(argument)) is not None:
            scope = scope_of(VDeviceAttr.of(0, named))
            scope.residents.append(Resident(_constant_bytes(argument.type, scope.kind), [], name))
    known: dict[tuple[VDeviceAttr, Attribute, Attribute], Resident] = {}
    for op in operations(block):
        # In ordinary memory they are used in place, in the program's file.
        if isinstance(op, ConstantOp) and (vdevice := placed_on(op)).scope.data != GLOBAL_SCOPE:
            key = vdevice, op.symbol, op.result.type
            if key not in known:
                scope = scope_of(vdevice)
                known[key] = Resident(_constant_bytes(op.result.type, scope.kind), [], op.symbol_name)
                scope.residents.append(known[key])
            known[key].ops.append(op)
    return list(scopes.values())


def _allocations(block: Block) -> list[Alloc]:
    """Returns the allocations of @main that are used."""
    lives = lifetimes(block)
    return [
        Alloc(op, placed_on(op), lives.get(op.memref, Lifetime(0, 0)))
        for op in operations(block)
        if isinstance(op, memref.AllocOp) and op.memref.first_use is not None
    ]


def _memory_kind(module: IRModule, index: int, scope: str) -> MemoryKind:
    """Returns the memory kind of ``scope``, with offsets that also suit targets that share it."""
    target = module.target_of(index)
    kind = target.memory_kind(scope) if target.memory else replace(_ORDINARY, scope=scope)
    return replace(kind, offset_alignment=offset_alignment(module, index, scope, shared=True))


def _scope_of_argument(argument: SSAValue) -> str | None:
    """Returns the requested scope of an argument of @main; None if there is none."""
    space = argument.type.memory_space if isinstance(argument.type, MemRefType) else None
    space = space.scope if isinstance(space, SpaceAttr) else space
    return space.data if isinstance(space, StringAttr) and space.data != GLOBAL_SCOPE else None


def _constant_bytes(ty: Attribute, kind: MemoryKind) -> int:
    if kind.ndim == 1:
        return kind.block_bytes(nbytes_of(ty))
    return _nd_bytes(kind, physical_shape(shape_of(ty), separators_of(ty)), dtype_of(ty))


def _nd_bytes(kind: MemoryKind, physical: tuple[int, ...], dtype: str) -> int:
    """Returns what ``nd_bytes`` does; a Size where a run decides extents."""
    if not any(isinstance(extent, Size) for extent in physical):
        return nd_bytes(kind, physical, dtype)
    lines = largest(1, ceildiv(product(physical[1:]) * dtype_facts(dtype).itemsize, kind.row_alignment))
    return cast(int, physical[0] * lines * kind.row_alignment)


def round_up(value: Extent, multiple: int) -> int:
    """Returns the least multiple of ``multiple`` that is not below ``value``."""
    return cast(int, ceildiv(value, multiple) * multiple)
