"""Register blocks: columns that the nearest cache does not keep are read by more rows at once."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.one_node import one_node

import landbridge as lb
from landbridge.executable.kernel_facts import facts_of
from landbridge.passes.lower.register_block import register_block


def pieces(extent: int, tile: int) -> list[tuple[int, int]]:
    return [(tile, extent // tile), *([(extent % tile, 1)] if extent % tile else [])]


@pytest.mark.parametrize("extent", [64, 128, 3136])
def test_far_columns_make_blocks_of_more_rows(extent: int) -> None:
    near = register_block(lambda tile: pieces(extent, tile), extent, 48, 32, near=48)
    far = register_block(lambda tile: pieces(extent, tile), extent, 48, 32, near=1)
    assert far[0] > near[0]
    assert far[1] < near[1]


def test_deep_products_take_fewer_columns_than_shallow_ones() -> None:
    target = "llvm -mcpu=x86-64-v4 -vector-bits=512 -vector-registers=32 -l1-bytes=49152"
    tiles = {}
    for depth in (16, 768):
        model = one_node("MatMul", [np.zeros((128, depth), np.float32), np.zeros((depth, 768), np.float32)], {1})
        (facts,) = facts_of(lb.compile(model, target)).values()
        tiles[depth] = int(facts.schedule.split()[0].split("x")[1])
    assert tiles[768] < tiles[16]
