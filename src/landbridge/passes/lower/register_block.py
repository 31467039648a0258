"""The cost of a register block, and the block that costs least."""

from __future__ import annotations

from collections.abc import Callable, Iterable

#: Most rows of a block.
MOST_ROWS = 14


def register_block(
    rows: Callable[[int], Iterable[tuple[int, int]]], most_rows: int, columns: int, registers: int
) -> tuple[int, int]:
    """The block with the fewest estimated cycles over the whole extents, of at most ``most_rows``.

    A step of a block costs its multiply-adds, or the latency chain when there are too few of them (8: four
    cycles deep, two pipes), plus a share of its loads. ``rows`` says of a number of rows what all are then cut into:
    the rows of a tile, and how many such tiles there are.
    """
    best, best_cost = (1, 1), float("inf")
    most_rows = max(1, min(MOST_ROWS, most_rows))
    tiles = {r: list(rows(r)) for r in range(1, most_rows + 1)}
    for c in range(1, min(columns, 6 if most_rows > 1 else 12) + 1):
        for r in range(1, most_rows + 1):
            if r * c + c + (1 if c > 1 else 0) > registers:
                break
            cost = 0.0
            for rr, rn in tiles[r]:
                for cc, cn in known_pieces(columns, c):
                    cost += rn * cn * (max(rr * cc, 8) + 0.3 * (rr + cc) + 1.0)
            if cost < best_cost:
                best, best_cost = (r, c), cost
    return best


def known_pieces(extent: int, tile: int) -> list[tuple[int, int]]:
    """Full tiles, then one of what is left."""
    pieces = [(tile, extent // tile)] if extent >= tile else []
    if extent % tile:
        pieces.append((extent % tile, 1))
    return pieces
