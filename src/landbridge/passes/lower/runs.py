"""How a dim is cut into tiles: runs of equal ones, one after the other, or over each other at the end."""

from __future__ import annotations

from landbridge.records import record
from landbridge.sizes.size import Extent, Size, ceildiv, same


@record(frozen=True)
class Run:
    """``count`` consecutive tiles of ``tile`` iterations from ``start``; ``mask`` > 0 keeps that many lanes of
    the last vector. Dims without lanes have ``mask`` 0.

    No tile begins past ``last``, where that is stated: the last one then ends where the dim does, and computes again
    what the tile before it has, and stores it again unless it is to be stored ``once``. Of a dim shorter than a tile
    ``last`` is negative, and there is no such tile.

    ``end``: of an open lane, its elements; the last tile may reach beyond them.
    """

    start: Extent
    count: Extent
    tile: int
    mask: int = 0
    last: Extent | None = None
    once: bool = False
    end: Size | None = None

    @property
    def leads(self) -> bool:
        """Whether these are the tiles of an open number of iterations, and not what is left over."""
        return self.last is not None or (isinstance(self.count, Size) and self.start == 0)


def dividing_tile(extent: Extent, tile: int) -> int:
    """``tile``, or of an open extent the largest that is at least half of it and leaves nothing over."""
    if isinstance(extent, int):
        return tile
    return next((t for t in range(tile, tile // 2, -1) if extent % t == 0), tile)


def tile_runs(extent: Extent, tile: int, mask: int) -> tuple[Run, ...]:
    """Full tiles, then what is left; a masked last vector is part of the last tile.

    Of an open extent what is left goes by smaller and smaller tiles.
    """
    runs = []
    full, left = divmod(extent, tile)
    if isinstance(left, Size):
        return (Run(0, full, tile), *_smaller_runs(full * tile, left, tile))
    if mask and not left:
        full, left = full - 1, tile
    if same(full, 0) is not True:
        runs.append(Run(0, full, tile))
    if left:
        runs.append(Run(full * tile, 1, left, mask))
    return tuple(runs)


def even_runs(runs: tuple[Run, ...]) -> tuple[Run, ...]:
    """``runs``, or where the last tile has half of the others' iterations or less, it and the one before it with as
    many each: they cost as much together, and the short one waits for its sums no more."""
    if len(runs) != 2:
        return runs
    whole, left = runs
    both = whole.tile + left.tile
    if whole.count < 2 or 2 * left.tile > whole.tile or both % 2 or left.mask:
        return runs
    return Run(0, whole.count - 1, whole.tile), Run(left.start - whole.tile, 2, both // 2)


def _smaller_runs(start: Extent, left: Extent, tile: int) -> tuple[Run, ...]:
    """The ``left`` iterations from ``start`` on, fewer than ``tile``."""
    smaller = smaller_tile(tile)
    full, rest = divmod(left, smaller)
    run = Run(start, full, smaller)
    if isinstance(rest, int) and not rest:
        return (run,)
    return (run, *_smaller_runs(start + full * smaller, rest, smaller))


def smaller_tile(tile: int) -> int:
    """The tiles that what is left of an open extent is cut into, which is less than ``tile``."""
    return max(1, tile // 3)


def masked_run(extent: Size, lanes: int, tile: int) -> Run:
    """Tiles of ``tile`` vectors over an open number of elements, the last of which keeps what is left."""
    return Run(0, ceildiv(extent, tile * lanes), tile, end=extent)


def overlapping_run(extent: Extent, tile: int, *, once: bool = False) -> Run:
    """Tiles over all of ``extent``, the last of which ends where that does; ``once``: each is stored by one."""
    return Run(0, ceildiv(extent, tile), tile, last=extent - tile, once=once)
