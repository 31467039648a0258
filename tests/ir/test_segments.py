"""How many operands each group of an operation has, beside what xdsl finds."""

from __future__ import annotations

import pytest
from xdsl.dialects.bufferization import AllocTensorOp
from xdsl.dialects.builtin import DenseArrayBase, TensorType, f32, i32

from landbridge.ir.graph_ops import CallOp
from landbridge.ir.segments import OPERAND_SEGMENTS, first_segment, segments


@pytest.mark.parametrize("counts", [(0, 0), (3, 1), (70_000, 2, 5)])
def test_segments_are_those_of_xdsl(counts: tuple[int, ...]) -> None:
    assert segments(*counts) == DenseArrayBase.from_list(i32, counts)
    assert first_segment(segments(*counts)) == counts[0]


@pytest.mark.parametrize(("inputs", "destinations"), [(0, 1), (2, 1), (1, 3)])
def test_a_call_has_the_groups_that_it_was_made_of(inputs: int, destinations: int) -> None:
    kind = TensorType(f32, [2])
    values = [AllocTensorOp(kind).tensor for _ in range(inputs + destinations)]
    call = CallOp("f", values[:inputs], values[inputs:], [kind] * destinations)
    assert list(call.inputs) == values[:inputs]
    assert list(call.destinations) == values[inputs:]
    assert call.input_count == inputs
    assert first_segment(call.attributes[OPERAND_SEGMENTS]) == inputs
    call.verify()
