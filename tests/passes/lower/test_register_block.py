"""Register blocks: as few loads as can be, and many rows at once where columns come from beyond L2."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.one_node import one_node

import landbridge as lb
from landbridge.executable.kernel_facts import facts_of
from landbridge.passes.lower.register_block import TileSpace, register_block

TARGET = "llvm -mcpu=x86-64-v4 -vector-bits=512 -vector-registers=32 -l2-bytes=1310720"


def pieces(extent: int, tile: int) -> list[tuple[int, int]]:
    return [(tile, extent // tile), *([(extent % tile, 1)] if extent % tile else [])]


@pytest.mark.parametrize("rows", [56, 196, 784, 3136])
@pytest.mark.parametrize("columns", [4, 8, 16, 32])
def test_many_rows_take_the_block_with_the_fewest_loads(rows: int, columns: int) -> None:
    assert register_block(TileSpace(lambda tile: pieces(rows, tile), rows, columns, 32)) == (6, 4)


@pytest.mark.parametrize("rows", [28, 49, 64])
def test_few_rows_take_more_at_once_where_columns_come_from_beyond_l2(rows: int) -> None:
    cached = register_block(TileSpace(lambda tile: pieces(rows, tile), rows, 32, 32))
    beyond_l2 = register_block(TileSpace(lambda tile: pieces(rows, tile), rows, 32, 32, beyond_l2=1.0))
    assert beyond_l2[0] > cached[0]
    assert beyond_l2[0] * beyond_l2[1] + beyond_l2[1] + 1 <= 32


def test_what_is_waited_for_once_in_many_passes_changes_no_block() -> None:
    cached = register_block(TileSpace(lambda tile: pieces(28, tile), 28, 32, 32))
    assert register_block(TileSpace(lambda tile: pieces(28, tile), 28, 32, 32, beyond_l2=1 / 1000)) == cached


@pytest.mark.parametrize(("width", "more_rows"), [(256, False), (1024, True)])
def test_weights_that_l2_keeps_are_cached(width: int, *, more_rows: bool) -> None:
    model = one_node("MatMul", [np.zeros((48, 1040), np.float32), np.zeros((1040, width), np.float32)], {1})
    (facts,) = facts_of(lb.compile(model, TARGET)).values()
    assert (int(facts.schedule.split("x")[0]) > 6) is more_rows
