"""The partial last tile of packed weights is masked, or a nest of its own: results have exact bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import linalg
from xdsl.ir import Block

from landbridge.ir.kernel_attributes import set_tile_bounds
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.stages import view_prim
from landbridge.ir.types import tensor_type
from landbridge.passes.lower.guards import full_ranges, index_range
from landbridge.passes.lower.nest import Nest, build_nests
from landbridge.passes.lower.peeled_tiles import peeled

from .kernels import run_prim

TILE, TERMS = 16, 5
Array = np.ndarray[Any, Any]


def product(p: PrimBuilder, n: int, number: int = 0, blocked: bool = False) -> None:
    """Row ``number`` of the first input by weights in whole tiles, into ``n`` elements, or into whole tiles too."""
    tiles = -(-n // TILE)
    out: Any = (lambda o, i, k: (o, i)) if blocked else (lambda o, i, k: (o * TILE + i,))
    p.generic(
        "ppr",
        [tiles, TILE, TERMS],
        [(p.inputs[0], lambda o, i, k: (number, k)), (p.inputs[1], lambda o, i, k: (o, k, i))],
        [(p.outputs[number], out)],
        lambda s, acc, a, b: acc + a * b,
        init=0.0,
    )
    block = p.outputs[0].owner
    assert isinstance(block, Block)
    *_, last = (op for op in block.ops if isinstance(op, linalg.ops.GenericOp))
    if n % TILE:
        set_tile_bounds(last, [(0, 1, TILE, n)])


def nest_of(n: int, blocked: bool = False) -> Nest:
    tiles = -(-n // TILE)
    result = (tiles, TILE) if blocked else (n,)
    shapes = [(1, TERMS), (tiles, TERMS, TILE), result]
    types = [tensor_type(shape, "float32") for shape in shapes]
    p = PrimBuilder("kernel", types[:2], types[2:])
    product(p, n, blocked=blocked)
    (nest,) = build_nests(view_prim(p.finish()))
    return nest


def operands(n: int, rows: int) -> tuple[Array, Array, Array]:
    """Rows, weights in whole tiles, and the rows times the weights."""
    rng = np.random.default_rng(n)
    x = rng.integers(-4, 5, (rows, TERMS)).astype(np.float32)
    w = rng.integers(-4, 5, (-(-n // TILE), TERMS, TILE)).astype(np.float32)
    return x, w, np.einsum("rk,oki->roi", x, w).reshape(rows, -1)[:, :n]


def test_a_result_in_whole_tiles_has_memory_for_all_of_them() -> None:
    assert not nest_of(17, blocked=True).partial_tiles
    assert not nest_of(32).partial_tiles
    (bound,) = nest_of(17).partial_tiles
    assert (bound.tile, bound.extent) == (TILE, 17)


@pytest.mark.parametrize("n", [1, 7, 15, 17, 31, 33, 100])
def test_whole_tiles_and_the_elements_left_are_all_there_is(n: int) -> None:
    nest = nest_of(n)
    parts = peeled(nest, nest.partial_tiles[0])
    ranges = [index_range(part.stages[0].writes[0].index, full_ranges(part.dims)) for part in parts]
    whole = n - n % TILE
    assert ranges == [*([(0, whole - 1)] if whole else []), (whole, n - 1)]
    assert not any(part.bounds for part in parts)


@pytest.mark.sample(9)
@pytest.mark.parametrize("target", ["llvm", "llvm -vector-bits=32 -vector-registers=16", "c"])
@pytest.mark.parametrize("n", [1, 7, 17, 25, 36])
def test_it_is_computed_to_the_last_element_alone(n: int, target: str) -> None:
    x, w, expected = operands(n, 1)
    (found,) = run_prim(lambda p: product(p, n), [x, w], [((n,), "float32")], target)
    np.testing.assert_array_equal(found, expected[0])


@pytest.mark.sample(5)
@pytest.mark.parametrize("target", ["llvm", "llvm -vector-bits=32 -vector-registers=16", "c"])
@pytest.mark.parametrize("n", [17, 25, 36])
def test_nests_with_equal_tiles_do_not_share_the_loop_over_them(n: int, target: str) -> None:
    """Loops that nests share are bound around them, where no last tile can be another nest."""
    x, w, expected = operands(n, 2)

    def both(p: PrimBuilder) -> None:
        product(p, n, 0)
        product(p, n, 1)

    found = run_prim(both, [x, w], [((n,), "float32"), ((n,), "float32")], target)
    np.testing.assert_array_equal(np.stack(found), expected)
