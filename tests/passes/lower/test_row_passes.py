"""Products of far columns, block by block for all rows: the same sums to the bit, whatever tasks run together, and near
columns are left alone."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.codegen.native import kernel_of
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import ModuleOp

from landbridge.analysis.verify_accesses import verify_accesses
from landbridge.codegen.registry import codegen_for
from landbridge.ir.kernel_attributes import task_count
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.prim_ops import PrefetchOp
from landbridge.ir.types import tensor_type
from landbridge.passes.lower.prims import lower_prim, vector_unit_of
from landbridge.passes.lower.schedule import VectorUnit
from landbridge.targets import Target
from landbridge.vm.code_image import load_image

from .kernels import Array

HERE = Target("llvm")
#: Columns of any size are far, or near.
STREAMED = replace(vector_unit_of(HERE), l2_bytes=1, l1_bytes=1 << 15, prefetches=True)
CACHED = replace(STREAMED, l2_bytes=1 << 30, l1_bytes=1 << 30)
#: Columns that L1 does not keep, and the next one does.
NEXT = replace(CACHED, l1_bytes=1 << 15)


@dataclass(frozen=True)
class Blocked:
    """A convolution of blocked layouts, ``groups`` times: ``halves``, apart in memory, of ``blocks`` of 16 channels,
    windows of ``kernel``, an image of ``height`` by ``width``, padded to keep its size, ``panes`` of 16 results; then a
    bias and a maximum."""

    blocks: int
    kernel: int
    height: int
    width: int
    panes: int
    groups: int = 1
    halves: int = 1

    def shapes(self) -> list[tuple[int, ...]]:
        """Data, weights, bias and results."""
        pixels = self.height, self.width
        return [
            (self.groups, self.halves, self.blocks + (self.halves > 1), *pixels, 16),
            (self.groups, self.panes, self.halves, self.blocks, self.kernel, self.kernel, 16, 16),
            (self.groups, self.panes, 16),
            (self.groups, self.panes, *pixels, 16),
        ]

    def build(self, p: PrimBuilder) -> None:
        """The stages."""
        pad, k = self.kernel // 2, self.kernel
        source = p.pad(p.inputs[0], [0, 0, 0, pad, pad, 0], [0, 0, 0, pad, pad, 0], 0.0) if pad else p.inputs[0]
        extents = [self.groups, self.panes, self.height, self.width, 16]
        sums = p.temp(self.shapes()[3], "float32")
        p.generic(
            "ppppprrrrr",
            [*extents, self.halves, self.blocks, k, k, 16],
            [
                (source, lambda g, o, y, x, c, h, i, v, u, r: (g, h, i, y + v, x + u, r)),
                (p.inputs[1], lambda g, o, y, x, c, h, i, v, u, r: (g, o, h, i, v, u, r, c)),
            ],
            [(sums, lambda g, o, y, x, c, h, i, v, u, r: (g, o, y, x, c))],
            lambda s, acc, a, b: acc + a * b,
            init=0.0,
        )
        p.generic(
            "ppppp",
            extents,
            [(sums, lambda *d: d), (p.inputs[2], lambda g, o, y, x, c: (g, o, c))],
            [(p.outputs[0], lambda *d: d)],
            lambda s, a, b: s.maximum(a + b, 0),
        )

    def lowered(self, machine: VectorUnit) -> func.FuncOp:
        """The kernel for ``machine``, every access of which is proved."""
        types = [tensor_type(shape, "float32") for shape in self.shapes()]
        prim = PrimBuilder("kernel", types[:3], types[3:])
        self.build(prim)
        lowered = lower_prim(prim.finish(), machine)
        verify_accesses(lowered)
        return lowered

    def wanted(self, x: Array, w: Array, b: Array) -> Array:
        """The results, in float64."""
        pad = self.kernel // 2
        x = np.pad(x[:, :, : self.blocks].astype(np.float64), [(0, 0), (0, 0), (0, 0), (pad, pad), (pad, pad), (0, 0)])
        windows = np.lib.stride_tricks.sliding_window_view(x, (self.kernel, self.kernel), (3, 4))
        sums = np.einsum("ghiyxrvu,gohivurc->goyxc", windows, w.astype(np.float64))
        return np.maximum(sums + b[:, :, None, None].astype(np.float64), 0)


def goes_by_blocks(lowered: func.FuncOp) -> bool:
    return any(isinstance(op, memref.AllocaOp) for op in lowered.walk())


def ran(lowered: func.FuncOp, inputs: Sequence[Array], shape: tuple[int, ...], together: int) -> Array:
    """The result, by calls of ``together`` tasks, the last first."""
    tasks = task_count(lowered)
    assert isinstance(tasks, int)
    image = load_image(codegen_for("llvm")(ModuleOp([lowered]), HERE).image)
    kernel = kernel_of(image, "kernel")
    result = np.full(shape, np.nan, np.float32)
    arguments = (ctypes.c_void_p * 4)(*(a.ctypes.data for a in [*inputs, result]))
    for first in reversed(range(0, tasks, together)):
        kernel(ctypes.addressof(arguments), first, min(first + together, tasks))
    return result


CASES = [
    Blocked(blocks=8, kernel=3, height=7, width=7, panes=5),
    Blocked(blocks=40, kernel=1, height=7, width=7, panes=32),
    Blocked(blocks=37, kernel=1, height=5, width=13, panes=9, groups=6),
    Blocked(blocks=5, kernel=3, height=9, width=31, panes=2, groups=2),
    Blocked(blocks=4, kernel=3, height=40, width=24, panes=6),
    Blocked(blocks=8, kernel=3, height=1, width=60, panes=3, halves=2),
    Blocked(blocks=13, kernel=1, height=1, width=90, panes=64, halves=3),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("vector_bytes", [64, 32])
@pytest.mark.parametrize("case", CASES, ids=repr)
def test_sums_are_the_same_to_the_bit_and_right(case: Blocked, vector_bytes: int) -> None:
    """Vectors that the machine has not become several of its own."""
    rng = np.random.default_rng(5)
    x, w, b = (rng.standard_normal(shape, dtype=np.float32) for shape in case.shapes()[:3])
    shape = case.shapes()[3]
    unit = {"vector_bytes": vector_bytes, "registers": vector_bytes // 2}
    streamed = case.lowered(replace(STREAMED, **unit))
    assert goes_by_blocks(streamed)
    found = [ran(streamed.clone(), [x, w, b], shape, together) for together in (1, 3, 1000)]
    if case.kernel > 1 and case.height > 1:
        beyond = case.lowered(replace(NEXT, **unit))
        assert goes_by_blocks(beyond)
        found.append(ran(beyond, [x, w, b], shape, 1))
    cached = ran(case.lowered(replace(CACHED, **unit)), [x, w, b], shape, 1)
    assert all(np.array_equal(each, cached) for each in found)
    wanted = case.wanted(x, w, b)
    # whose rounding errors add up as in a walk, of 512 steps at most
    terms = case.halves * case.blocks * 16 * case.kernel**2
    np.testing.assert_allclose(cached, wanted, rtol=0, atol=2.0**-23 * min(terms, 512) ** 0.5 * np.abs(wanted).max())


def test_cached_columns_short_sums_long_windows_and_few_rows_go_tile_by_tile() -> None:
    case = CASES[0]
    assert not goes_by_blocks(case.lowered(CACHED))
    assert not goes_by_blocks(case.lowered(replace(STREAMED, prefetches=False)))
    assert not goes_by_blocks(replace(case, blocks=1).lowered(STREAMED))
    assert not goes_by_blocks(replace(case, kernel=5, blocks=4).lowered(STREAMED))
    assert not goes_by_blocks(replace(case, kernel=1, blocks=40, height=1, width=9).lowered(STREAMED))


def test_columns_of_the_next_cache_go_block_by_block_where_an_image_has_lines() -> None:
    assert goes_by_blocks(CASES[0].lowered(NEXT))
    assert not goes_by_blocks(CASES[1].lowered(NEXT))
    lines, streamed = (task_count(CASES[4].lowered(machine)) for machine in (NEXT, STREAMED))
    assert isinstance(lines, int) and isinstance(streamed, int) and lines > streamed


def test_too_few_columns_for_tasks_go_tile_by_tile() -> None:
    assert not goes_by_blocks(replace(CASES[1], panes=3).lowered(STREAMED))


def test_few_columns_go_block_by_block_where_padded_rows_are_no_tasks() -> None:
    assert goes_by_blocks(replace(CASES[0], height=1, width=60, panes=3).lowered(STREAMED))


def test_totals_that_fit_no_scratch_go_tile_by_tile() -> None:
    assert not goes_by_blocks(replace(CASES[0], width=2000, height=4).lowered(STREAMED))


def most_requested(case: Blocked, machine: VectorUnit) -> int:
    """The most vectors that one block of code asks for."""
    loops = [op for op in case.lowered(machine).walk() if isinstance(op, scf.ForOp)]
    return max(sum(isinstance(op, PrefetchOp) for op in loop.body.block.ops) for loop in loops)


def test_each_tile_asks_for_its_share_of_the_next_block() -> None:
    """An iteration of a window reads 3 columns of 16 vectors, for the 7 tiles of an image: each asks for 7 of the next.
    As all tiles have padding, the 3 iterations across are one after the other in one block of code."""
    machine = replace(STREAMED, vector_bytes=64, registers=32)
    assert most_requested(CASES[0], machine) == 7 * 3
    assert most_requested(CASES[0], replace(machine, l2_bytes=1 << 30, l1_bytes=1 << 30)) < 7
