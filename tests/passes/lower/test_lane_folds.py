"""The shuffle tree that combines the lanes of several vectors, executed with numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import f32
from xdsl.ir import Block, SSAValue

from landbridge.passes.lower.code import Code, vector_type
from landbridge.passes.lower.lane_folds import LaneFolds, vector_lanes

Array = np.ndarray[Any, Any]


def folded(values: list[Array]) -> tuple[list[SSAValue], list[Array], int]:
    """The vectors of sums, their values, and the number of operations."""
    block = Block(arg_types=[vector_type(f32, len(value)) for value in values])
    code = Code(block)
    folds = LaneFolds(code, len(values), len(values[0]), lambda a, b: code.emit(arith.AddfOp, [a, b], a.type))
    for number, value in enumerate(block.args):
        folds.put(number, value)
    results = folds.results()
    known: dict[SSAValue, Array] = dict(zip(block.args, values, strict=True))
    for op in block.ops:
        operands = [known[operand] for operand in op.operands]
        if isinstance(op, vector.ShuffleOp):
            known[op.results[0]] = np.concatenate(operands)[list(op.mask.get_values())]
        elif isinstance(op, vector.ExtractOp):
            known[op.results[0]] = operands[0][op.static_position.get_values()[0]]
        else:
            assert isinstance(op, arith.AddfOp)
            known[op.results[0]] = operands[0] + operands[1]
    return results, [known[result] for result in results], len(list(block.ops))


@pytest.mark.parametrize("lanes", [2, 4, 8, 16, 32])
def test_each_lane_of_the_result_is_the_sum_of_its_vector(lanes: int) -> None:
    rng = np.random.default_rng(0)
    for count in range(1, 2 * lanes + 2):
        values = [rng.standard_normal(lanes, dtype=np.float32) for _ in range(count)]
        results, sums, _ = folded(values)
        alone = [folded([value])[1][0] for value in values]
        for first, result, lane_sums in zip(range(0, count, lanes), results, sums, strict=True):
            left = min(count - first, lanes)
            assert vector_lanes(result) == 1 << (left - 1).bit_length()
            # equal to the last bit: lanes are added in the same order in each
            assert np.atleast_1d(lane_sums)[:left].tolist() == [float(x) for x in alone[first : first + left]]


def test_sixteen_vectors_take_three_operations_for_each_pair() -> None:
    assert folded([np.ones(16, np.float32)] * 16)[2] == 45
