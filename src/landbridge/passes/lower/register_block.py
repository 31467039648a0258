"""The cost of a register block, and the block that costs least."""

from __future__ import annotations


def register_block(rows: int, columns: int, registers: int, margin: int | None = None) -> tuple[int, int]:
    """The block with the fewest estimated cycles over the whole extents.

    A step of a block costs its multiply-adds, or the latency chain when there are too few of them (8: four
    cycles deep, two pipes), plus a share of its loads. ``margin``: all blocks have as many rows, the last one overlaps
    the one before it, and there are that many rows more than a block has.
    """
    best, best_cost = (1, 1), float("inf")
    for c in range(1, min(columns, 6 if rows > 1 else 12) + 1):
        for r in range(1, max(min(rows - (margin or 0), 14), 1) + 1):
            if r * c + c + (1 if c > 1 else 0) > registers:
                break
            cost = 0.0
            for rr, rn in _pieces(rows, r) if margin is None else [(r, -(-rows // r))]:
                for cc, cn in _pieces(columns, c):
                    cost += rn * cn * (max(rr * cc, 8) + 0.3 * (rr + cc) + 1.0)
            if cost < best_cost:
                best, best_cost = (r, c), cost
    return best


def _pieces(extent: int, tile: int) -> list[tuple[int, int]]:
    pieces = [(tile, extent // tile)] if extent >= tile else []
    if extent % tile:
        pieces.append((extent % tile, 1))
    return pieces
