"""Operand segments: how many operands are in each group of an operation with several groups.

xdsl reads that attribute on each access to a group, and inspects every operand to make one; a compile has tens of
thousands of such accesses. Here equal attributes are made once, and read once.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Attribute

#: The key of the attribute, among the attributes or properties of an operation.
OPERAND_SEGMENTS = "operandSegmentSizes"


@cache
def segments(*counts: int) -> DenseArrayBase[Any]:
    """Returns the attribute that says how many operands each group has."""
    return DenseArrayBase.from_list(i32, counts)


def first_segment(sizes: Attribute) -> int:
    """Returns how many operands the first group has."""
    assert isinstance(sizes, DenseArrayBase)
    return int.from_bytes(sizes.data.data[:4], "little")
