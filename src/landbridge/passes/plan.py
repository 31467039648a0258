"""Plan storage: every buffer of @main gets an offset in one allocation for each (vdevice, scope)."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects import memref
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.rewriter import Rewriter

from landbridge import planner
from landbridge.errors import PlacementError, PlanError
from landbridge.executable.abi import STORAGE_ALIGNMENT
from landbridge.ir.memory_ops import AllocStorageOp, AllocTensorOp
from landbridge.ir.module import IRModule
from landbridge.ir.types import VDeviceAttr, nbytes_of
from landbridge.memory_kind import MemoryKind
from landbridge.passes.bufferize import placed_on
from landbridge.passes.lifetimes import lifetimes
from landbridge.passes.registry import register_pass

#: Attributes of ``lb.alloc_storage`` that say how good its plan is.
LOWER_BOUND = "lb.lower_bound"
PROVED_OPTIMAL = "lb.proved_optimal"


@dataclass
class _Arena:
    """The buffers of one (vdevice, scope)."""

    allocs: list[memref.AllocOp] = field(default_factory=list)
    buffers: list[planner.Buffer] = field(default_factory=list)


@register_pass("plan")
def plan(module: IRModule) -> None:
    """Replace allocations by offsets in one storage for each vdevice and scope."""
    block = module.main.body.block
    lives = lifetimes(block)
    arenas: dict[VDeviceAttr, _Arena] = {}
    for op in list(block.ops):
        if not isinstance(op, memref.AllocOp):
            continue
        life = lives.get(op.memref)
        if life is None and not op.memref.uses:
            Rewriter.erase_op(op)
            continue
        place = placed_on(op)
        arena = arenas.setdefault(place, _Arena())
        first, last = (life.first, life.last) if life is not None else (0, 0)
        arena.buffers.append(
            planner.Buffer(len(arena.allocs), nbytes_of(op.memref.type), STORAGE_ALIGNMENT, first, last + 1)
        )
        arena.allocs.append(op)
    for place, arena in arenas.items():
        _rewrite(arena, place, _solve(module, place, arena))


def _solve(module: IRModule, place: VDeviceAttr, arena: _Arena) -> planner.Plan:
    kind = _memory_kind(module, place)
    try:
        return planner.plan(arena.buffers, kind.capacity if kind else None)
    except PlanError as error:
        vdevice = module.vdevices[place.index.data].name
        raise PlacementError(f"scope {place.scope.data!r} of vdevice {vdevice!r} is too small: {error}") from error


def _memory_kind(module: IRModule, place: VDeviceAttr) -> MemoryKind | None:
    target = module.target_of(place.index.data)
    if target is None or not target.memory:
        return None
    return target.memory_kind(place.scope.data)


def _rewrite(arena: _Arena, place: VDeviceAttr, solution: planner.Plan) -> None:
    block = arena.allocs[0].parent
    if block is None or block.first_op is None:
        return
    storage = AllocStorageOp(solution.peak, STORAGE_ALIGNMENT, place)
    storage.attributes[LOWER_BOUND] = IntegerAttr(solution.lower_bound, i64)
    storage.attributes[PROVED_OPTIMAL] = IntegerAttr.from_bool(solution.proved_optimal)
    block.insert_op_before(storage, block.first_op)
    for number, alloc in enumerate(arena.allocs):
        node = alloc.attributes.get("node")
        name = node.data if isinstance(node, StringAttr) else ""
        tensor = AllocTensorOp(storage.result, solution.offsets[number], alloc.memref.type, name)
        block.insert_op_before(tensor, alloc)
        alloc.memref.replace_all_uses_with(tensor.result)
        Rewriter.erase_op(alloc)
