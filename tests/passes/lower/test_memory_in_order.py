"""Sums that read large memory in order: columns stay in registers, and tiles go through sums block by block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp

import landbridge as lb
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.prim_ops import OrderLoadsOp, PrefetchOp
from landbridge.ir.types import tensor_type
from landbridge.passes.lower.prims import lower_prim
from landbridge.passes.lower.schedule import VectorUnit

from .kernels import run_prim
from .test_prefetched import HERE, sums_of_rows
from .test_rows_as_lanes import scores

#: Vectors of 16, an L1 cache of 32 KiB, and an L2 cache of 1 MiB.
WIDE = VectorUnit(64, 32, l1_bytes=1 << 15, l2_bytes=1 << 20, prefetches=True, unrolls=True)


def lowered(build: Callable[[PrimBuilder], None], shapes: list[tuple[int, ...]], machine: VectorUnit) -> FuncOp:
    """The lowered function of a kernel whose last operand is its result."""
    types = [tensor_type(shape, "float32") for shape in shapes]
    prim = PrimBuilder("kernel", types[:-1], types[-1:])
    build(prim)
    return lower_prim(prim.finish(), machine)


def schedule_of(function: FuncOp) -> str:
    schedule = function.attributes["lb.schedule"]
    assert isinstance(schedule, StringAttr)
    return schedule.data


def scored(queries: int, rows: int, terms: int, machine: VectorUnit = WIDE) -> FuncOp:
    shapes = [(queries, terms), (rows, terms), (rows,), (queries, rows)]
    return lowered(lambda p: scores(p, rows, terms, queries=queries), shapes, machine)


def summed(m: int, rows: int, columns: int, machine: VectorUnit = WIDE) -> FuncOp:
    return lowered(lambda p: sums_of_rows(p, m, rows, columns), [(m, rows), (rows, columns), (m, columns)], machine)


@pytest.mark.parametrize(
    ("queries", "rows", "terms", "block"),
    [
        (4, 4096, 128, "8x2"),
        (6, 8192, 80, "8x3"),
        (4, 4096, 64, "4x4"),  # fits anyway
        (4, 2048, 128, "4x4"),  # L2 holds the rows
        (5, 4096, 128, "4x5"),  # no tile of several columns divides 5
        (5, 16384, 128, "8x1"),
        (4, 8192, 256, "8x1"),  # 16 registers hold one column
        (4, 8192, 512, "4x4"),  # and none of these
        (32, 4096, 128, "4x6"),  # multiply-adds take longer than memory
    ],
)
def test_tiles_have_the_columns_that_stay_in_registers(queries: int, rows: int, terms: int, block: str) -> None:
    assert schedule_of(scored(queries, rows, terms)).startswith(f"{block} block of 16 lanes along the sum")


def test_only_where_it_was_measured() -> None:
    assert schedule_of(scored(4, 4096, 128, replace(WIDE, unrolls=False))).startswith("4x4")
    assert schedule_of(summed(4, 4096, 128, replace(WIDE, unrolls=False))).startswith("4x4")


def loops_around(function: FuncOp, kind: type) -> list[scf.ForOp]:
    """The loops around the first operation of ``kind``, the innermost first."""
    op = next(op for op in function.walk() if isinstance(op, kind)).parent_op()
    found = []
    while op is not None:
        if isinstance(op, scf.ForOp):
            found.append(op)
        op = op.parent_op()
    return found


def test_all_columns_of_a_block_of_rows_come_before_the_next_rows() -> None:
    function = scored(4, 4096, 128)
    assert not any(isinstance(op, PrefetchOp) for op in function.walk())
    # tiles of rows in a block, tiles of columns, blocks of rows, tasks
    _, columns, _, _ = loops_around(function, OrderLoadsOp)
    (two,) = (op for op in [columns.ub.owner] if hasattr(op, "value"))
    assert two.value.value.data == 2


@pytest.mark.parametrize(
    ("m", "columns", "block"), [(3, 256, "1x16"), (1, 256, "1x16"), (8, 96, "4x6"), (5, 128, "2x8")]
)
def test_tiles_have_whole_rows_of_memory(m: int, columns: int, block: str) -> None:
    assert schedule_of(summed(m, 16384, columns)).startswith(f"{block} block of 16 lanes")


def test_sums_of_whole_rows_go_block_by_block_through_the_scratch() -> None:
    function = summed(4, 4096, 128)
    assert schedule_of(function).startswith("2x8 block of 16 lanes")
    assert sum(isinstance(op, memref.AllocaOp) for op in function.walk()) == 2  # blocks, and their totals
    assert not any(isinstance(op, PrefetchOp) for op in function.walk())


@pytest.mark.parametrize(
    ("m", "rows", "columns"),
    [
        (4, 4096, 64),  # one tile has them all
        (2, 4096, 128),
        (4, 1024, 128),  # L2 holds the columns
        (4, 4096, 512),  # a row takes more registers than there are
        (2, 2048, 256),  # 2 MiB, for tiles of one row
        (4, 16384, 50),  # the last vector of a row is not whole
        (1, 16384, 128),
        (64, 4096, 128),  # multiply-adds take longer than memory
    ],
)
def test_other_sums_have_no_scratch(m: int, rows: int, columns: int) -> None:
    assert not any(isinstance(op, memref.AllocaOp) for op in summed(m, rows, columns).walk())


@pytest.mark.parametrize(
    ("queries", "rows", "terms"), [(4, 8193, 128), (2, 8200, 128), (6, 8198, 80), (3, 16387, 128), (8, 20001, 64)]
)
def test_scores_are_right(queries: int, rows: int, terms: int) -> None:
    rng = np.random.default_rng(5)
    q, k, bias = (rng.standard_normal(shape, dtype=np.float32) for shape in ((queries, terms), (rows, terms), (rows,)))
    (y,) = run_prim(
        lambda p: scores(p, rows, terms, queries=queries), [q, k, bias], [((queries, rows), "float32")], HERE
    )
    wanted = q.astype(np.float64) @ k.astype(np.float64).T + bias
    scale = np.abs(q).astype(np.float64) @ np.abs(k).astype(np.float64).T + np.abs(bias)
    assert (np.abs(y - wanted) <= 16 * 2.0**-24 * scale).all()  # chains of at most 16 terms in each lane


@pytest.mark.parametrize(
    ("m", "rows", "columns"), [(4, 4097, 128), (3, 8191, 128), (8, 20000, 64), (7, 6001, 96), (2, 3001, 256)]
)
def test_sums_are_right(m: int, rows: int, columns: int) -> None:
    rng = np.random.default_rng(6)
    w, v = (rng.standard_normal(shape, dtype=np.float32) for shape in ((m, rows), (rows, columns)))
    (y,) = run_prim(lambda p: sums_of_rows(p, m, rows, columns), [w, v], [((m, columns), "float32")], HERE)
    wanted = w.astype(np.float64) @ v.astype(np.float64)
    scale = np.abs(w).astype(np.float64) @ np.abs(v).astype(np.float64)
    # Random signs: errors of chains of 16 terms, 12 blocks and 105 totals add up like their square root.
    assert (np.abs(y - wanted) <= 4 * 133**0.5 * 2.0**-24 * scale / rows**0.5).all()


def test_of_a_number_of_rows_that_the_run_decides() -> None:
    names: tuple[list[int | str], ...] = ([2, 4, "T"], [2, "T", 128], [2, 4, 128])
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in zip("wvy", names, strict=True)]
    graph = helper.make_graph([helper.make_node("MatMul", ["w", "v"], ["y"])], "g", values[:2], values[2:])
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session, rng = lb.Session(lb.compile(model)), np.random.default_rng(7)
    for length in (1, 2, 15, 16, 17, 191, 192, 193, 400, 4096, 5001):
        w, v = (rng.standard_normal(shape, dtype=np.float32) for shape in ((2, 4, length), (2, length, 128)))
        wanted = w.astype(np.float64) @ v.astype(np.float64)
        scale = np.abs(w).astype(np.float64) @ np.abs(v).astype(np.float64)
        assert (np.abs(np.asarray(session(w, v)[0]) - wanted) <= 16 * 2.0**-24 * scale).all(), length


def test_weights_of_an_open_number_are_in_tiles_of_their_own() -> None:
    names: tuple[list[int | str], ...] = (["M", 4096], [4096, 64], ["M", 64])
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in zip("wvy", names, strict=True)]
    graph = helper.make_graph([helper.make_node("MatMul", ["w", "v"], ["y"])], "g", values[:2], values[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session, rng = lb.Session(lb.compile(model, dims={"M": "2..300"})), np.random.default_rng(8)
    for rows in (2, 3, 17, 300):
        w, v = (rng.standard_normal(shape, dtype=np.float32) for shape in ((rows, 4096), (4096, 64)))
        wanted = w.astype(np.float64) @ v.astype(np.float64)
        scale = np.abs(w).astype(np.float64) @ np.abs(v).astype(np.float64)
        assert (np.abs(np.asarray(session(w, v)[0]) - wanted) <= 16 * 2.0**-24 * scale).all(), rows
