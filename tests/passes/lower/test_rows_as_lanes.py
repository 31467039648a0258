"""Stages after sums over lanes: vectors of rows where memory is contiguous along them, and scalars elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from xdsl.dialects import arith, memref, scf, vector

from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.prim_ops import OrderLoadsOp, PrefetchOp
from landbridge.ir.types import tensor_type
from landbridge.passes.lower.prims import lower_prim
from landbridge.passes.lower.rows_as_lanes import powers_of_two
from landbridge.passes.lower.schedule import VectorUnit

from .kernels import run_prim
from .test_prefetched import HERE

MACHINE = VectorUnit(64, 32)
QUERIES = 3


def scores(p: PrimBuilder, rows: int, terms: int, bias_stride: int = 1, queries: int = QUERIES) -> None:
    """The products of queries with rows of keys, each plus an element of a bias; rows of the result are contiguous."""
    sums = p.temp((queries, rows), "float32")
    p.generic(
        "ppr",
        [queries, rows, terms],
        [(p.inputs[0], lambda q, row, k: (q, k)), (p.inputs[1], lambda q, row, k: (row, k))],
        [(sums, lambda q, row, k: (q, row))],
        lambda s, acc, a, b: acc + a * b,
        init=0.0,
    )
    p.generic(
        "pp",
        [queries, rows],
        [(sums, lambda q, row: (q, row)), (p.inputs[2], lambda q, row: (row * bias_stride,))],
        [(p.outputs[0], lambda q, row: (q, row))],
        lambda s, a, b: a + b,
    )


def stores(rows: int, terms: int, bias_stride: int = 1, machine: VectorUnit = MACHINE) -> tuple[int, int, int]:
    """How many stores of vectors and of scalars the code has, and how often it orders loads."""
    shapes = (QUERIES, terms), (rows, terms), (rows * bias_stride,), (QUERIES, rows)
    types = [tensor_type(shape, "float32") for shape in shapes]
    prim = PrimBuilder("kernel", types[:3], types[3:])
    scores(prim, rows, terms, bias_stride)
    ops = list(lower_prim(prim.finish(), machine).walk())
    kinds = vector.StoreOp, memref.StoreOp, OrderLoadsOp
    return tuple(sum(isinstance(op, kind) for op in ops) for kind in kinds)  # type: ignore[return-value]


def test_rows_are_stored_as_vectors_where_all_memory_is_contiguous_along_them() -> None:
    vectors, scalars, _ = stores(64, 64)
    assert vectors and not scalars


@pytest.mark.parametrize(("terms", "bias_stride"), [(65, 1), (64, 2)])
def test_else_they_are_stored_one_by_one(terms: int, bias_stride: int) -> None:
    vectors, scalars, _ = stores(64, terms, bias_stride)
    assert scalars and not vectors


def test_each_row_is_read_before_the_next_where_it_was_measured() -> None:
    assert stores(64, 64)[2] == 0
    assert stores(64, 64, machine=replace(MACHINE, unrolls=True))[2] > 0


def additions(rows: int, init: float) -> int:
    """How many additions the code of sums of 64 products has whose tiles have one column and read whole rows."""
    types = [tensor_type(shape, "float32") for shape in ((64,), (rows, 64), (rows,))]
    prim = PrimBuilder("kernel", types[:2], types[2:])
    prim.generic(
        "pr",
        [rows, 64],
        [(prim.inputs[0], lambda row, k: (k,)), (prim.inputs[1], lambda row, k: (row, k))],
        [(prim.outputs[0], lambda row, k: (row,))],
        lambda s, acc, a, b: acc + a * b,
        init=init,
    )
    ops = list(lower_prim(prim.finish(), replace(MACHINE, unrolls=True)).walk())
    return sum(isinstance(op, arith.AddfOp) for op in ops)


def test_the_value_that_sums_begin_with_is_added_once_unless_it_is_neutral() -> None:
    assert additions(64, 1.0) == additions(64, 0.0) + 1  # a vector along the rows


def prefetches(queries: int, rows: int, machine: VectorUnit, terms: int = 128) -> int:
    """How many lines the code of scores prefetches into L2."""
    shapes = (queries, terms), (rows, terms), (rows,), (queries, rows)
    types = [tensor_type(shape, "float32") for shape in shapes]
    prim = PrimBuilder("kernel", types[:3], types[3:])
    scores(prim, rows, terms, queries=queries)
    ops = lower_prim(prim.finish(), machine).walk()
    return sum(isinstance(op, PrefetchOp) and op.beyond_l1 is not None for op in ops)


def test_pieces_of_long_rows_for_many_queries_are_prefetched_once_a_line() -> None:
    unrolling = replace(MACHINE, unrolls=True)
    assert prefetches(4, 8192, unrolling) == 4 * 2  # a loop over pieces of two vectors, for the four rows of a tile
    narrow = replace(unrolling, vector_bytes=32)
    assert prefetches(4, 8192, narrow, 64) == 4  # a loop over pieces of two vectors, which are a line
    assert not prefetches(4, 8192, unrolling, 64)  # whole rows, one after the other
    assert not prefetches(2, 8192, unrolling)
    assert not prefetches(4, 1024, unrolling)
    assert not prefetches(4, 8192, MACHINE)


def loads_in_loops(queries: int, rows: int, terms: int, machine: VectorUnit) -> int:
    """How many vectors of queries the loops over tiles of rows load."""
    shapes = (queries, terms), (rows, terms), (rows,), (queries, rows)
    types = [tensor_type(shape, "float32") for shape in shapes]
    prim = PrimBuilder("kernel", types[:3], types[3:])
    scores(prim, rows, terms, queries=queries)
    lowered = lower_prim(prim.finish(), machine)
    (tiles,) = [op for op in lowered.walk() if isinstance(op, scf.ForOp) and is_innermost(op)]
    return sum(isinstance(op, vector.LoadOp) and op.base is lowered.body.block.args[0] for op in tiles.walk())


def is_innermost(loop: scf.ForOp) -> bool:
    return not any(isinstance(op, scf.ForOp) for op in loop.body.walk())


def test_columns_stay_in_registers_between_tiles_where_half_of_the_registers_hold_them() -> None:
    unrolling = replace(MACHINE, unrolls=True)
    assert loads_in_loops(4, 512, 64, unrolling) == 0  # 4 queries of 4 vectors each
    assert loads_in_loops(4, 512, 128, unrolling) > 0
    assert loads_in_loops(4, 512, 64, replace(unrolling, registers=16)) > 0


def test_prefetches_past_the_end_change_nothing() -> None:
    rng = np.random.default_rng(9)
    q, keys, bias = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((4, 128), (4098, 128), (4098,)))
    (y,) = run_prim(lambda p: scores(p, 4098, 128, queries=4), [q, keys, bias], [((4, 4098), "float32")], HERE)
    np.testing.assert_array_equal(y, q @ keys.T + bias)


@pytest.mark.parametrize("target", [HERE, "llvm -mcpu=generic", "c"])
@pytest.mark.parametrize(
    ("rows", "terms", "bias_stride"), [(64, 64, 1), (37, 64, 1), (5, 48, 1), (21, 67, 1), (8, 64, 3)]
)
def test_against_numpy(rows: int, terms: int, bias_stride: int, target: str) -> None:
    rng = np.random.default_rng(7)
    shapes = (QUERIES, terms), (rows, terms), (rows * bias_stride,)
    q, keys, bias = (rng.integers(-9, 9, shape).astype(np.float32) for shape in shapes)
    (y,) = run_prim(
        lambda p: scores(p, rows, terms, bias_stride), [q, keys, bias], [((QUERIES, rows), "float32")], target
    )
    np.testing.assert_array_equal(y, q @ keys.T + bias[::bias_stride])  # sums of integers, which are exact


def test_equal_rows_have_equal_sums_in_tiles_and_alone() -> None:
    rng = np.random.default_rng(8)
    q, keys = rng.standard_normal((QUERIES, 64), np.float32), rng.standard_normal((1, 64), np.float32)
    inputs = [q, keys.repeat(29, 0), np.zeros(29, np.float32)]
    (y,) = run_prim(lambda p: scores(p, 29, 64), inputs, [((QUERIES, 29), "float32")], HERE)
    assert (y == y[:, :1]).all()


def test_powers_of_two() -> None:
    assert powers_of_two(16) == (1, 2, 4, 8, 16)
    assert powers_of_two(15) == (1, 2, 4, 8)
