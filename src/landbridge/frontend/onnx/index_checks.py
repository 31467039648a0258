"""Checks of indices on the host before a kernel uses them, in programs compiled with ``check_indices``."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute

from landbridge.executable.instructions import INDEX_CHECK
from landbridge.identity_map import IdentityMap
from landbridge.ir.plain_attributes import int_array
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.rule_check import Checked


def checked_indices(c: OpContext, checked: Checked, inputs: Sequence[Operand | None]) -> list[Operand | None]:
    """Returns the operands, with those that are indices passed through a check at run time."""
    seen: IdentityMap[Operand, Operand] = IdentityMap()
    for name, (x, low, high) in checked.indices.items():
        parameters: dict[str, Attribute] = {
            "what": StringAttr(f"{c.op_type} node {c.g.node!r}: {name}"),
            "low": int_array(low),
            "high": int_array(high),
        }
        value = c.value(x)
        (seen[x],) = c.g.host_call(INDEX_CHECK, [value], [(c.shape(value), c.dtype(value))], parameters)
    return [seen.get(x, x) for x in inputs]
