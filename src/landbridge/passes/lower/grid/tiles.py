"""Recognizes nests that are contractions, and chooses the tiles that workgroups compute of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects import linalg, memref

from landbridge.ir.types import item_bytes
from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.grid.cost import CONTRACTIONS
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.serial import by_stride
from landbridge.records import record
from landbridge.sizes.size import expected_size, product
from landbridge.targets.grid import GridLimits


@record(frozen=True)
class Contraction:
    """The loops of a contraction by role, and the positions ``x`` (M) and ``y`` (N) of its two large operands among the
    reads of the reduction.

    The loops of each role are ordered from the outermost to the innermost.
    """

    batch: tuple[int, ...]
    m: tuple[int, ...]
    n: tuple[int, ...]
    k: tuple[int, ...]
    x: int
    y: int


@record(frozen=True)
class Tiles:
    """The tile of a workgroup: ``m_threads x n_threads`` work-items, each with a block of ``m_block x n_block``
    results.

    ``depth`` iterations are staged at once. ``splits`` workgroups share the iterations of a tile.
    """

    m_threads: int
    n_threads: int
    m_block: int
    n_block: int
    depth: int
    splits: int = 1

    @property
    def m(self) -> int:
        """Returns the rows of a workgroup's tile."""
        return self.m_threads * self.m_block

    @property
    def n(self) -> int:
        """Returns the columns of a workgroup's tile."""
        return self.n_threads * self.n_block

    @property
    def size(self) -> int:
        """Returns the number of work-items of a workgroup."""
        return self.m_threads * self.n_threads


def find_contraction(nest: Nest) -> Contraction | None:
    """Returns the loops and the two large reads of ``nest`` if it is a contraction; else None.

    The caller has simplified ``nest``. A contraction has one reduction with a constant initial value. Two of its
    operands depend on all reduction loops, each also on a parallel loop that the other does not depend on; no other
    operand depends on a reduction loop. M, N and K must each have at least ``CONTRACTIONS.extent`` iterations, at
    the expected sizes. M is the side with the shorter stride in the result, so that work-items that are adjacent
    along M write adjacent elements.
    """
    main = nest.reduction
    if main is None or nest.bounds or len(main.writes) != 1 or main.inits[0] is None:
        return None
    if any(isinstance(op, linalg.ops.IndexOp | memref.LoadOp) for op in main.body.ops):
        return None
    reductions = {d for d, dim in enumerate(nest.dims) if dim.reduction}
    used = {i: _used(r, len(nest.dims)) for i, r in enumerate(main.reads) if isinstance(r, ElementAccess)}
    large = [i for i in used if reductions <= used[i]]
    if len(large) != 2 or any(used[i] & reductions for i in used if i not in large):
        return None
    x, y = large
    parallel = [d for d in range(len(nest.dims)) if d not in reductions]
    m = [d for d in parallel if d in used[x] and d not in used[y]]
    n = [d for d in parallel if d in used[y] and d not in used[x]]
    batch = [d for d in parallel if d not in m and d not in n]
    write = nest.stages[-1].writes[0]
    if not m or not n:
        return None
    if finest(m, write) > finest(n, write):
        x, y, m, n = y, x, n, m  # work-items adjacent along m write adjacent elements
    read = main.reads[y]
    assert isinstance(read, ElementAccess)
    found = Contraction(
        by_stride(batch, write), by_stride(m, write), by_stride(n, write), by_stride(reductions, read), x, y
    )
    extents = [expected_size(product(nest.dims[d].extent for d in dims)) for dims in (found.m, found.n, found.k)]
    return found if min(extents) >= CONTRACTIONS.extent else None


def _used(a: ElementAccess, dims: int) -> set[int]:
    return {d for d in range(dims) if a.uses(d) or any(g.index.uses(d) for g in a.guards)}


def finest(dims: Sequence[int], access: ElementAccess) -> float:
    """Returns the shortest stride that loops ``dims`` take through ``access``."""
    return min(
        (abs(expected_size(access.index.coeff(d))) for d in dims if access.index.coeff(d) != 0), default=math.inf
    )


def choose_tiles(
    m: int, n: int, k: int, batch: int, element_bytes: int, limits: GridLimits, *, divisible: bool
) -> Tiles | None:
    """Returns tiles for a result of ``batch`` times ``m x n`` with sums of ``k``; None if the target's limits are too
    small.

    Takes the largest block that gives enough workgroups, as larger blocks need fewer loads per result; the block is no
    wider than the result. Where results are few and sums long, these are divided if ``divisible``.
    """
    scalars = limits.vector_registers * limits.vector_bits // 32  # scalars that a work-item holds in registers
    # A work-item for each result would leave the device idle.
    few = divisible and batch * m * n < CONTRACTIONS.items_of_a_core * limits.cores
    splits = [s for s in CONTRACTIONS.splits if s == 1 or (few and k >= s * CONTRACTIONS.iterations_of_a_part)]
    options = []
    for m_threads, n_threads in CONTRACTIONS.threads:
        for block in CONTRACTIONS.blocks:
            tiles = Tiles(m_threads, n_threads, *block, CONTRACTIONS.depth)
            fits = tiles.size <= limits.workgroup_size and _local_bytes(tiles, element_bytes) <= limits.local_bytes
            if fits and math.prod(block) <= scalars:
                options += [replace(tiles, splits=s) for s in splits]
    return min(options, key=lambda t: _cost(t, m, n, k, batch, limits.cores), default=None)


def _cost(t: Tiles, m: int, n: int, k: int, batch: int, cores: int) -> float:
    """Returns an estimate of the time: multiply-adds, also past the edge, times loads each, over the occupancy of the
    device.

    If sums are divided, the time to add up their parts is included.
    """
    groups = -(-m // t.m) * -(-n // t.n) * batch
    local, memory = CONTRACTIONS.local_load, CONTRACTIONS.global_load
    loads = 1 + local * (1 / t.m_block + 1 / t.n_block) + memory / t.m + memory / t.n
    busy = min(1.0, groups * t.splits * t.size / (CONTRACTIONS.items_of_a_core * cores))
    adding = CONTRACTIONS.launch * cores + 2 * m * n * batch * (t.splits + 1) if t.splits > 1 else 0
    return groups * t.m * t.n * k * loads / busy + adding


def _local_bytes(t: Tiles, element_bytes: int) -> int:
    return (t.m + 1 + t.n + 1) * t.depth * element_bytes


def element_width(nest: Nest, found: Contraction) -> int:
    """Returns the bytes of the wider element that is staged."""
    main = nest.reduction
    assert main is not None
    reads = (main.reads[found.x], main.reads[found.y])
    return max(item_bytes(r.buffer.type) for r in reads if isinstance(r, ElementAccess))
