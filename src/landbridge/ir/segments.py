"""Operands of operations that have several groups of them: how many are in each.

xdsl reads the attribute that says so each time it is asked for a group, and looks at every operand to make one; there
are tens of thousands of such questions in a compile. Here the attribute is made once for all alike, and read once.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Attribute

#: Among the attributes or properties of an operation.
OPERAND_SEGMENTS = "operandSegmentSizes"


@cache
def segments(*counts: int) -> DenseArrayBase[Any]:
    """The attribute that says how many operands each group has."""
    return DenseArrayBase.from_list(i32, counts)


def first_segment(sizes: Attribute) -> int:
    """How many operands the first group has."""
    assert isinstance(sizes, DenseArrayBase)
    return int.from_bytes(sizes.data.data[:4], "little")
