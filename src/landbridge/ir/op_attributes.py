"""The attributes by which passes annotate single operations: every key, with functions that read and write it."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Operation

from landbridge.errors import VerifyError
from landbridge.ir.plain_attributes import int_attr, integer_at
from landbridge.ir.types import VDeviceAttr

#: On any operation: the model's name of the node that it is part of.
NODE = "node"
#: On a crossing: why it is a view or a copy.
WHY = "why"
#: On ``memref.alloc`` and ``lb.constant``: the vdevice that holds the bytes; on a call: the one that computes it; on a
#: view: the one that uses it from then on.
VDEVICE = "lb.vdevice"
#: On a storage: a lower bound of its bytes, and whether the plan is proved optimal.
LOWER_BOUND = "lb.lower_bound"
PROVED_OPTIMAL = "lb.proved_optimal"


def node_name(op: Operation) -> str:
    """Returns the model's name of the node that ``op`` is part of; empty if it has none."""
    node = op.attributes.get(NODE)
    return node.data if isinstance(node, StringAttr) else ""


def set_node_name(op: Operation, name: str) -> None:
    """Set the name of the node that ``op`` is part of."""
    op.attributes[NODE] = StringAttr(name)


def crossing_reason(op: Operation) -> str:
    """Returns why a crossing is a view or a copy, in words; empty for an operation that is no crossing of the model."""
    why = op.attributes.get(WHY)
    return why.data if isinstance(why, StringAttr) else ""


def set_crossing_reason(op: Operation, why: str) -> None:
    """Set why the crossing ``op`` is a view or a copy."""
    op.attributes[WHY] = StringAttr(why)


def declared_vdevice(op: Operation) -> VDeviceAttr | None:
    """Returns the vdevice that a memory-level operation declares; None if the text has none."""
    location = op.attributes.get(VDEVICE)
    return location if isinstance(location, VDeviceAttr) else None


def placed_on(op: Operation) -> VDeviceAttr:
    """Returns the vdevice of a memory-level operation, which bufferize has set; raises VerifyError if that has not
    run."""
    location = declared_vdevice(op)
    if location is None:
        raise VerifyError(f"{op.name} states no vdevice, which the pass bufferize gives it; run place,bufferize before")
    return location


def place_on(op: Operation, vdevice: VDeviceAttr) -> None:
    """Set the vdevice of a memory-level operation."""
    op.attributes[VDEVICE] = vdevice


def plan_quality(storage: Operation) -> tuple[int, bool]:
    """Returns a lower bound of the bytes of a storage, and whether its plan is proved optimal."""
    return integer_at(storage, LOWER_BOUND) or 0, bool(integer_at(storage, PROVED_OPTIMAL))


def set_plan_quality(storage: Operation, lower_bound: int, proved_optimal: bool) -> None:
    """Set the lower bound of the bytes of a storage, and whether its plan is proved optimal."""
    storage.attributes[LOWER_BOUND] = int_attr(lower_bound)
    storage.attributes[PROVED_OPTIMAL] = IntegerAttr.from_bool(proved_optimal)
