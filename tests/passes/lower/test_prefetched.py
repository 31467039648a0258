"""What is asked for before it is read: columns that L1 does not keep, by enough rows, in one stream."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.prim_ops import PrefetchOp
from landbridge.ir.stages import view_prim
from landbridge.ir.types import tensor_type
from landbridge.passes.lower.candidates import schedule
from landbridge.passes.lower.nest import build_nests
from landbridge.passes.lower.prefetched import prefetched_rows
from landbridge.passes.lower.prims import lower_prim, vector_unit_of
from landbridge.passes.lower.schedule import VectorUnit
from landbridge.targets import Target

from .kernels import run_prim

#: Vectors of 16, and an L1 cache of 32 KiB: 512 vectors of a column.
WIDE = VectorUnit(64, 32, l1_bytes=1 << 15, prefetches=True)
HERE = "llvm"


def panels(p: PrimBuilder, m: int, panes: int, k: int) -> None:
    """``x @ w``, whose ``w`` is panels of 16 columns."""
    p.generic(
        "pppr",
        [m, panes, 16, k],
        [(p.inputs[0], lambda i, j, c, r: (i, r)), (p.inputs[1], lambda i, j, c, r: (j, r, c))],
        [(p.outputs[0], lambda i, j, c, r: (i, j, c))],
        lambda s, acc, a, b: acc + a * b,
        init=0.0,
    )


def prefetched(m: int, panes: int, k: int, machine: VectorUnit) -> int:
    types = [tensor_type(shape, "float32") for shape in ((m, k), (panes, k, 16), (m, panes, 16))]
    prim = PrimBuilder("kernel", types[:2], types[2:])
    panels(prim, m, panes, k)
    return sum(isinstance(op, PrefetchOp) for op in lower_prim(prim.finish(), machine).walk())


def test_columns_beyond_l1_are_prefetched_and_others_are_not() -> None:
    assert prefetched(28, 4, 600, WIDE)
    assert not prefetched(28, 4, 100, WIDE)
    assert not prefetched(2, 4, 600, WIDE)
    assert not prefetched(28, 4, 600, replace(WIDE, prefetches=False))


def test_only_where_it_was_measured() -> None:
    assert vector_unit_of(Target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3")).prefetches
    assert not vector_unit_of(Target("raspberry-pi-4")).prefetches
    assert not vector_unit_of(Target("c")).prefetches


@pytest.mark.parametrize(("m", "panes", "k"), [(28, 4, 600), (5, 1, 3001), (17, 3, 1100)])
def test_asking_past_the_end_changes_nothing(m: int, panes: int, k: int) -> None:
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((panes, k, 16), dtype=np.float32)
    (y,) = run_prim(lambda p: panels(p, m, panes, k), [x, w], [((m, panes, 16), "float32")], HERE)
    wanted = np.einsum("ik,jkc->ijc", x.astype(np.float64), w)
    np.testing.assert_allclose(y, wanted, rtol=0, atol=2.0**-22 * k**0.5 * np.abs(wanted).max())


def sums_of_rows(p: PrimBuilder, m: int, rows: int, columns: int) -> None:
    """``weights @ values``, the values in rows of ``columns``."""
    p.generic(
        "ppr",
        [m, columns, rows],
        [(p.inputs[0], lambda i, c, r: (i, r)), (p.inputs[1], lambda i, c, r: (r, c))],
        [(p.outputs[0], lambda i, c, r: (i, c))],
        lambda s, acc, a, b: acc + a * b,
        init=0.0,
    )


def streamed(m: int, rows: int, columns: int, machine: VectorUnit) -> int:
    """How many lines the code of sums of rows prefetches into L2."""
    types = [tensor_type(shape, "float32") for shape in ((m, rows), (rows, columns), (m, columns))]
    prim = PrimBuilder("kernel", types[:2], types[2:])
    sums_of_rows(prim, m, rows, columns)
    ops = lower_prim(prim.finish(), machine).walk()
    return sum(isinstance(op, PrefetchOp) and op.beyond_l1 is not None for op in ops)


def test_pieces_of_columns_that_few_rows_read_once_are_prefetched_into_l2() -> None:
    large = replace(WIDE, l1_bytes=1 << 24)
    assert streamed(4, 8192, 128, large)
    assert not streamed(4, 8192, 64, large)  # all columns in one tile
    assert not streamed(4, 8192, 128, replace(large, prefetches=False))
    assert not streamed(4, 1024, 128, large)  # L2 holds 512 KiB
    assert not streamed(2, 8192, 128, large)
    assert not streamed(28, 8192, 128, large)  # more than one tile of rows
    assert not streamed(4, 8192, 128, WIDE)  # into L1


def rows_of(p: PrimBuilder, rows: int, pitch: int, k: int, pixels: int) -> None:
    """``w @ x``, of which ``pixels`` are the lanes and the ``rows`` of ``w`` lie ``pitch`` numbers apart."""
    p.generic(
        "ppr",
        [rows, pixels, k],
        [(p.inputs[0], lambda i, j, r: (i, r)), (p.inputs[1], lambda i, j, r: (r, j))],
        [(p.outputs[0], lambda i, j, r: (i, j))],
        lambda s, acc, a, b: acc + a * b,
        init=0.0,
    )


@pytest.mark.parametrize(
    ("rows", "pitch", "k", "pixels", "asks"),
    [
        (136, 136, 136, 49, True),
        (136, 136, 136, 160, True),
        (136, 136, 136, 1024, False),  # most of its tiles of columns read what another has read
        (136, 1024, 136, 49, False),  # 6 rows of 4 KiB and 6 more have no room in one set
        (3, 136, 136, 49, False),
        (136, 136, 20, 49, False),
    ],
)
def test_a_tile_asks_for_the_numbers_of_the_next_one(rows: int, pitch: int, k: int, pixels: int, *, asks: bool) -> None:
    types = [tensor_type(shape, "float32") for shape in ((rows, pitch), (k, pixels), (rows, pixels))]
    prim = PrimBuilder("kernel", types[:2], types[2:])
    rows_of(prim, rows, pitch, k, pixels)
    (nest,) = build_nests(view_prim(prim.finish()))
    machine = replace(WIDE, unrolls=True)
    assert bool(prefetched_rows(nest, schedule(nest, machine))) is asks
    assert not prefetched_rows(nest, schedule(nest, replace(machine, prefetches=False)))


@pytest.mark.parametrize(("rows", "k", "pixels"), [(136, 136, 49), (29, 70, 33)])
def test_asking_for_rows_past_the_last_changes_nothing(rows: int, k: int, pixels: int) -> None:
    rng = np.random.default_rng(4)
    w, x = rng.standard_normal((rows, k), dtype=np.float32), rng.standard_normal((k, pixels), dtype=np.float32)
    (y,) = run_prim(lambda p: rows_of(p, rows, k, k, pixels), [w, x], [((rows, pixels), "float32")], HERE)
    wanted = w.astype(np.float64) @ x
    np.testing.assert_allclose(y, wanted, rtol=0, atol=2.0**-22 * k**0.5 * np.abs(wanted).max())
