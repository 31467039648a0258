"""What is written of operations is read back."""

from __future__ import annotations

from landbridge.ir import op_attributes
from landbridge.ir.types import VDeviceAttr
from tests.ir.modules import copying_main


def test_facts_of_operations() -> None:
    op = copying_main()
    assert op_attributes.node_name(op) == "" and op_attributes.declared_vdevice(op) is None
    op_attributes.set_node_name(op, "add")
    op_attributes.place_on(op, VDeviceAttr.of(1))
    op_attributes.set_plan_quality(op, 128, True)
    assert op_attributes.node_name(op) == "add"
    assert op_attributes.placed_on(op) == VDeviceAttr.of(1)
    assert op_attributes.plan_quality(op) == (128, True)
