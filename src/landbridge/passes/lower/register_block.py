"""The cost model of register tiles, and the tile with the least cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from landbridge.passes.lower.windows import Window
from landbridge.targets.machine import FMA_LATENCY, FMA_PIPES

#: The most rows of a tile.
MOST_ROWS = 14
#: The cost of a load relative to a multiply-add; the second if the scalars of several iterations are lanes of one
#: vector. Fitted to products of 840x512x192, 840x128x192 and 128x768x768 and to the convolutions of ResNet-50, with
#: AVX-512 and columns aligned to cache lines.
_LOAD, _LANE_LOAD = 0.6, 0.3
#: Multiply-adds that begin while a vector of 64 bytes comes from beyond L2: reading 8 MB of weights once takes 0.8 ms,
#: 17 cycles a vector.
_BEYOND_L2_LOAD = 35
#: The additional cost of a row's scalar whose cache line L1 does not retain (`l1_rows.py`): tiles of 14x2 take
#: 1.5 times as long on Zen 4.
_LOST_LINE = 1.0
#: The relative error of the estimate: costs closer than this count as equal.
_AS_GOOD = 0.01


def register_block(
    m_pieces: Callable[[int], Iterable[tuple[int, int]]],
    most_m: int,
    n_extent: int,
    registers: int,
    iterations: int = 1,
    beyond_l2: float = 0.0,
    window: Window | None = None,
    l1_rows: int = MOST_ROWS,
    rows: Sequence[int] = (),
) -> tuple[int, int]:
    """Returns the rows and columns of the tile with the fewest estimated cycles over the whole extents; see
    ``weighed_blocks``.

    Of tiles with equal estimates, takes the one that needs the fewest kinds of tiles, and therefore the least code.
    """
    weighed = weighed_blocks(m_pieces, most_m, n_extent, registers, iterations, beyond_l2, window, l1_rows, rows)
    if not weighed:
        return 1, 1
    enough = min(weighed)[0] * (1 + _AS_GOOD)

    def kinds(block: tuple[int, int]) -> int:
        return sum(count > 0 for _, count in m_pieces(block[0])) * len(_known_pieces(n_extent, block[1]))

    return min((kinds(block), cost, block) for cost, block in weighed if cost <= enough)[2]


def weighed_blocks(
    m_pieces: Callable[[int], Iterable[tuple[int, int]]],
    most_m: int,
    n_extent: int,
    registers: int,
    iterations: int = 1,
    beyond_l2: float = 0.0,
    window: Window | None = None,
    l1_rows: int = MOST_ROWS,
    rows: Sequence[int] = (),
) -> list[tuple[float, tuple[int, int]]]:
    """Returns each tile of at most ``most_m`` rows that fits ``registers``, with its estimated cycles over the whole
    extents.

    One iteration of a tile costs its multiply-adds, or the latency of a chain if there are too few of them, plus a
    share of its loads. ``m_pieces`` returns, for a number of rows per tile, the rows of each kind of tile
    and their count. ``iterations``: one vector holds the row's scalars of so many iterations, and stays in a register.
    ``beyond_l2``: the share of passes over all rows in which columns come from beyond L2; the first tile of rows waits
    for them, and overlaps more work with it the more rows it has. ``window``: the scalars or vectors that rows share.
    ``l1_rows``: the number of rows whose cache lines L1 retains. ``rows``: the legal numbers of rows, unless empty.
    """
    weighed, load = [], _LOAD if iterations == 1 else _LANE_LOAD
    most_m = max(1, min(MOST_ROWS, most_m))
    tiles = {r: list(m_pieces(r)) for r in range(1, most_m + 1) if not rows or r in rows}
    for c in range(1, min(n_extent, 6 if most_m > 1 else 12) + 1):
        for r in tiles:
            # With several iterations LLVM loads the vectors of two iterations at a time.
            extra_registers = r + 2 * c if iterations > 1 else c + (1 if c > 1 else 0)
            if window is not None:
                extra_registers = window.extra_registers(r, c)
            if r * c + extra_registers > registers:
                break
            cost = beyond_l2 * n_extent * max(0, _BEYOND_L2_LOAD - r)
            for rr, rn in tiles[r]:
                scalars = rr if window is None else window.vectors(rr)
                for cc, cn in _known_pieces(n_extent, c):
                    each = scalars / iterations + cc if window is None else window.loads(rr, cc)
                    loads = load * each + 1.0 / iterations
                    loads += _LOST_LINE * scalars / iterations if rr > l1_rows else 0.0
                    cost += rn * cn * (max(rr * cc, FMA_PIPES * FMA_LATENCY) + loads)
            weighed.append((cost, (r, c)))
    return weighed


def _known_pieces(extent: int, tile: int) -> list[tuple[int, int]]:
    """Returns the full tiles and the one left over, as pairs of extent and count."""
    pieces = [(tile, extent // tile)] if extent >= tile else []
    if extent % tile:
        pieces.append((extent % tile, 1))
    return pieces
