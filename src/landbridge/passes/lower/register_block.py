"""The cost of register blocks, and the block that costs least."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from landbridge.passes.lower.number_window import NumberWindow
from landbridge.passes.lower.vector_window import VectorWindow
from landbridge.targets.machine import FMA_LATENCY, FMA_PIPES

#: Most rows of a block.
MOST_ROWS = 14
#: What a load costs beside a multiply-add. Fitted to products of 840x512x192, 840x128x192 and 128x768x768 and to the
#: convolutions of ResNet-50, with AVX-512 and columns that begin where a cache line does. Less where a row's numbers of
#: several steps are lanes of one vector.
_LOAD, _LANE_LOAD = 0.6, 0.3
#: Multiply-adds that begin while a vector of 64 bytes comes from a cache that cores share: 8 MB of weights that are
#: read once take 0.8 ms, 17 cycles a vector.
_BEYOND_L2_LOAD = 35
#: What a row's number costs beside that where L1 does not keep its line (`retained_rows.py`): blocks of 14x2
#: take 1.5 times as long with Zen 4.
_LOST_LINE = 1.0
#: A share of the estimate that it is not exact to.
_AS_GOOD = 0.01


def register_block(
    rows: Callable[[int], Iterable[tuple[int, int]]],
    most_rows: int,
    columns: int,
    registers: int,
    iterations: int = 1,
    beyond_l2: float = 0.0,
    window: NumberWindow | VectorWindow | None = None,
    retained: int = MOST_ROWS,
) -> tuple[int, int]:
    """The block with the fewest estimated cycles over the whole extents; see ``weighed_blocks``.

    Of those that are as good by estimate, the one that takes the least code: tiles of fewest kinds.
    """
    weighed = weighed_blocks(rows, most_rows, columns, registers, iterations, beyond_l2, window, retained)
    if not weighed:
        return 1, 1
    enough = min(weighed)[0] * (1 + _AS_GOOD)

    def kinds(block: tuple[int, int]) -> int:
        return sum(count > 0 for _, count in rows(block[0])) * len(_known_pieces(columns, block[1]))

    return min((kinds(block), cost, block) for cost, block in weighed if cost <= enough)[2]


def weighed_blocks(
    rows: Callable[[int], Iterable[tuple[int, int]]],
    most_rows: int,
    columns: int,
    registers: int,
    iterations: int = 1,
    beyond_l2: float = 0.0,
    window: NumberWindow | VectorWindow | None = None,
    retained: int = MOST_ROWS,
) -> list[tuple[float, tuple[int, int]]]:
    """Each block of at most ``most_rows`` that fits ``registers``, with its estimated cycles over the whole extents.

    A step of a block costs its multiply-adds, or the latency chain when there are too few of them, plus a share of its
    loads. ``beyond_l2``: the share of passes over all rows in which columns come from beyond L2; the first tile of rows
    waits for them, and does the more meanwhile the more rows it has. ``rows`` says of a number of rows what all are
    then cut into: the rows of a tile, and how many such tiles there are. ``iterations``: the steps for which a row's
    numbers are loaded as one vector, which stays in a register. Of a ``window`` those of the rows overlap, or the
    columns' vectors of the rows do. ``retained``: rows whose lines L1 keeps.
    """
    weighed, load = [], _LOAD if iterations == 1 else _LANE_LOAD
    most_rows = max(1, min(MOST_ROWS, most_rows))
    tiles = {r: list(rows(r)) for r in range(1, most_rows + 1)}
    for c in range(1, min(columns, 6 if most_rows > 1 else 12) + 1):
        for r in range(1, most_rows + 1):
            # With several iterations LLVM loads the vectors of two at a time.
            extra_registers = r + 2 * c if iterations > 1 else c + (1 if c > 1 else 0)
            if window is not None:
                extra_registers = window.extra_registers(r, c)
            if r * c + extra_registers > registers:
                break
            cost = beyond_l2 * columns * max(0, _BEYOND_L2_LOAD - r)
            for rr, rn in tiles[r]:
                scalars = rr if window is None else window.vectors(rr)
                for cc, cn in _known_pieces(columns, c):
                    each = scalars / iterations + cc if window is None else window.loads(rr, cc)
                    loads = load * each + 1.0 / iterations
                    loads += _LOST_LINE * scalars / iterations if rr > retained else 0.0
                    cost += rn * cn * (max(rr * cc, FMA_PIPES * FMA_LATENCY) + loads)
            weighed.append((cost, (r, c)))
    return weighed


def _known_pieces(extent: int, tile: int) -> list[tuple[int, int]]:
    """Full tiles, then one of what is left."""
    pieces = [(tile, extent // tile)] if extent >= tile else []
    if extent % tile:
        pieces.append((extent % tile, 1))
    return pieces
