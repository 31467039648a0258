"""Verifies placements: encodings against the Targets' memory, tensors inside their storages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn, TypeAlias, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, StringAttr, TensorType
from xdsl.ir import Attribute, Operation

from landbridge.dtypes import dtype
from landbridge.errors import InputError, PlacementError, TargetError
from landbridge.ir.memory_ops import AllocStorageOp, AllocTensorOp, StorageType
from landbridge.ir.module import IRModule
from landbridge.ir.plain_attributes import ints
from landbridge.ir.traversal import all_operations
from landbridge.ir.types import (
    SpaceAttr,
    VDeviceAttr,
    element_count,
    item_bytes,
    nbytes_of,
    separators_of,
    shape_of,
    vdevice_of,
)
from landbridge.memory_kind import MemoryKind, normalize_scope
from landbridge.shapes.physical import check_axis_separators, physical_shape
from landbridge.sizes.size import Size, never_at_least
from landbridge.text.did_you_mean import did_you_mean

#: Raises VerifyError from: an operation, what was found, what would be legal.
Fail: TypeAlias = Callable[[Operation, str, str], NoReturn]


def place_in(ty: Attribute) -> Attribute:
    """Returns the memory space of a memref, or the encoding of a tensor."""
    if isinstance(ty, MemRefType):
        space: Attribute = ty.memory_space
        return space
    return vdevice_of(ty)


def is_nd(ty: Attribute) -> bool:
    """Returns whether a tensor or memref is in a scope of more than one dimension."""
    space = place_in(ty)
    return isinstance(space, SpaceAttr) or (isinstance(space, VDeviceAttr) and bool(space.axis_separators))


def check_place(module: IRModule, op: Operation, ty: Attribute, fail: Fail) -> None:
    """Call ``fail`` unless ``ty``, the type of a value of ``op``, has a placement in memory that its Target
    describes."""
    if isinstance(ty, TensorType):
        if not isinstance(ty.encoding, VDeviceAttr):
            fail(op, f"{ty} has no placement", 'an encoding such as #lb.vdevice<0, "global">')
        _check_vdevice(module, op, ty, ty.encoding, fail)
    elif isinstance(ty, MemRefType):
        if not isinstance(ty.memory_space, StringAttr | SpaceAttr):
            fail(op, f"{ty} has no scope", 'a memory space such as "global"')
    elif not isinstance(ty, StorageType):
        fail(op, f"{ty} is not a type of a graph value", "a tensor or a memref")


def _check_vdevice(module: IRModule, op: Operation, ty: Attribute, location: VDeviceAttr, fail: Fail) -> None:
    index, known = location.index.data, module.vdevices
    if not 0 <= index < len(known):
        fail(op, f"{location} names vdevice {index}", f"0 to {len(known) - 1}")
    separators = location.axis_separators
    try:
        check_axis_separators(separators, len(shape_of(ty)))
    except InputError as error:
        fail(op, f"{ty}", str(error))
    target = module.target_of(index)
    if target is not None and target.memory:
        try:
            kind = target.memory_kind(location.scope.data)
        except TargetError as error:
            fail(op, f"scope {location.scope.data!r} of vdevice {index}", str(error))
        if separators and len(separators) != kind.ndim - 1:  # none: the pass "rows" chooses them
            fail(op, f"{len(separators)} axis separators in {location}", f"{kind.ndim - 1}: ndim is {kind.ndim}")


def check_scopes(module: IRModule) -> None:
    """Raises PlacementError, which lists the legal ones, where a value of ``module`` is in a scope that its target does
    not have.

    A memref names no vdevice: its scope is legal if any target has it.
    """
    known = {vdevice.name: module.targets[vdevice.target].memory for vdevice in module.vdevices}
    if not all(known.values()):  # a target that describes no memory
        return
    for function in module.functions():
        for op in all_operations(function):
            arguments = [a for region in op.regions for block in region.blocks for a in block.args]
            places = [_scope_of(value.type) for value in (*arguments, *op.results)]
            if isinstance(op, AllocStorageOp):
                places.append(op.vdevice)
            for place in places:
                if isinstance(place, StringAttr):
                    _check_scope(function, op, place.data, known)
                elif isinstance(place, VDeviceAttr) and place.index.data < len(module.vdevices):
                    name = module.vdevices[place.index.data].name
                    _check_scope(function, op, place.scope.data, {name: known[name]})


def _check_scope(function: func.FuncOp, op: Operation, scope: str, known: Mapping[str, Sequence[MemoryKind]]) -> None:
    legal = sorted({kind.scope for memory in known.values() for kind in memory})
    if normalize_scope(scope) in legal:
        return
    shown = "; ".join(f"{name} has {', '.join(kind.scope for kind in memory)}" for name, memory in known.items())
    meant = did_you_mean(scope, legal)
    raise PlacementError(
        f"@{function.sym_name.data}: the IR places a value of {op.name} in scope {scope!r}{meant}, which its target "
        f"does not have; legal: {shown}; state the memory in the target (memory=[...]), or change the IR"
    )


def _scope_of(ty: Attribute) -> Attribute | None:
    if isinstance(ty, TensorType):
        return cast("Attribute | None", ty.encoding)
    if isinstance(ty, MemRefType):
        space: Attribute = ty.memory_space
        return space.scope if isinstance(space, SpaceAttr) else space
    return None


def check_alloc_tensor(op: AllocTensorOp, fail: Fail) -> None:
    """Call ``fail`` unless the tensor lies inside its storage: its bytes, or its rows if the storage has a shape."""
    storage = op.storage.owner
    if not isinstance(storage, AllocStorageOp):
        fail(op, "its storage is not one of lb.alloc_storage", "lb.alloc_storage")
    if storage.shape is not None:
        _check_rows(op, storage, fail)
        return
    end = op.first + nbytes_of(op.result.type)
    # For open programs, what is not decided here is checked when an instance is bound.
    if never_at_least(op.first, 0) or never_at_least(storage.size, end):
        fail(op, f"it ends at byte {end}", f"at most {storage.size}, the storage's size")


def _check_rows(op: AllocTensorOp, storage: AllocStorageOp, fail: Fail) -> None:
    if not is_nd(op.result.type) or storage.shape is None or storage.dtype is None:
        fail(op, f"{op.result.type} in a storage that has a shape", "a memref in an n-D scope")
    extents = physical_shape(shape_of(op.result.type), separators_of(op.result.type))
    have = ints(storage.shape)
    if any(isinstance(extent, Size) for extent in (*extents, *have)):  # a space that only such tensors have
        if op.first != 0 or extents != have:
            fail(op, f"extents {list(map(str, extents))}", f"all of {list(map(str, have))}")
        return
    row = have[-1] * dtype(storage.dtype.data).itemsize
    first, remainder = divmod(op.first, max(1, row))
    end = first + element_count(extents[:-1])
    width = extents[-1] * item_bytes(op.result.type)
    if remainder or first < 0 or end > element_count(have[:-1]) or width > row:
        fail(op, f"rows {first} to {end} of {width} bytes", f"whole rows of {list(have)}, {row} bytes each")
