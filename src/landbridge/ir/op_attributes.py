"""The attributes that passes leave each other on single operations: every key, and how it is read and written."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Operation

from landbridge.errors import VerifyError
from landbridge.ir.plain_attributes import int_attr, integer_at
from landbridge.ir.types import VDeviceAttr

#: Any operation: the name that the model gave the node which it is part of.
NODE = "node"
#: Of a crossing: why it is a view or a copy.
WHY = "why"
#: The vdevice that the bytes of ``memref.alloc`` and ``lb.constant`` are on, that computes a call, and that sees a
#: view from then on.
VDEVICE = "lb.vdevice"
#: Of a storage: the bytes that it has at least, and whether no plan has fewer than this one.
LOWER_BOUND = "lb.lower_bound"
PROVED_OPTIMAL = "lb.proved_optimal"


def node_name(op: Operation) -> str:
    """The name that the model gave the node which ``op`` is part of; empty when it has none."""
    node = op.attributes.get(NODE)
    return node.data if isinstance(node, StringAttr) else ""


def set_node_name(op: Operation, name: str) -> None:
    """State the node that ``op`` is part of."""
    op.attributes[NODE] = StringAttr(name)


def crossing_reason(op: Operation) -> str:
    """Why a crossing is a view or a copy, in words; empty for what is no crossing of the model."""
    why = op.attributes.get(WHY)
    return why.data if isinstance(why, StringAttr) else ""


def set_crossing_reason(op: Operation, why: str) -> None:
    """State why the crossing ``op`` is a view or a copy."""
    op.attributes[WHY] = StringAttr(why)


def declared_vdevice(op: Operation) -> VDeviceAttr | None:
    """The vdevice that a memory-level operation states; None where the text has none."""
    location = op.attributes.get(VDEVICE)
    return location if isinstance(location, VDeviceAttr) else None


def placed_on(op: Operation) -> VDeviceAttr:
    """The vdevice of a memory-level operation, which bufferize has stated; raises VerifyError where it was not run."""
    location = declared_vdevice(op)
    if location is None:
        raise VerifyError(f"{op.name} states no vdevice, which the pass bufferize gives it; run place,bufferize before")
    return location


def place_on(op: Operation, vdevice: VDeviceAttr) -> None:
    """State the vdevice of a memory-level operation."""
    op.attributes[VDEVICE] = vdevice


def plan_quality(storage: Operation) -> tuple[int, bool]:
    """The bytes that a storage has at least, and whether its plan is proved to be the smallest."""
    return integer_at(storage, LOWER_BOUND) or 0, bool(integer_at(storage, PROVED_OPTIMAL))


def set_plan_quality(storage: Operation, lower_bound: int, proved_optimal: bool) -> None:
    """State the bytes that a storage has at least, and whether its plan is proved to be the smallest."""
    storage.attributes[LOWER_BOUND] = int_attr(lower_bound)
    storage.attributes[PROVED_OPTIMAL] = IntegerAttr.from_bool(proved_optimal)
