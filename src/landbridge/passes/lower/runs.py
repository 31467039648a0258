"""Runs of tiles: how the iterations of a dim are cut into tiles, one after the other or overlapping at the end."""

from __future__ import annotations

from landbridge.passes.lower.cost import EDGES
from landbridge.records import record
from landbridge.sizes.size import Extent, Size, ceildiv, same


@record(frozen=True)
class Run:
    """``count`` consecutive tiles of ``tile`` iterations from ``start``; ``mask`` > 0 is the number of active lanes of
    the last vector. Dims without lanes have ``mask`` 0.

    If ``last`` is not None, no tile begins after it. The last tile then ends with the dim, and computes some results of
    the tile before it again; it stores them again unless ``once``. If the dim is shorter than a tile, ``last`` is
    negative, and the run has no valid tile.

    ``end``: the elements of an open lane loop; the last tile may reach beyond them.
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
        """Returns whether the run has the full tiles of an open number of iterations, and not the iterations left
        over.
        """
        return self.last is not None or (isinstance(self.count, Size) and self.start == 0)


def dividing_tile(extent: Extent, tile: int) -> int:
    """Returns ``tile``; or for an open extent the largest tile that divides it and is at least half of ``tile``, if
    there is one.
    """
    if isinstance(extent, int):
        return tile
    return next((t for t in range(tile, tile // 2, -1) if extent % t == 0), tile)


def tile_runs(extent: Extent, tile: int, mask: int) -> tuple[Run, ...]:
    """Returns full tiles, then the iterations left over; a masked last vector is part of the last tile.

    Iterations left over of an open extent are cut into smaller and smaller tiles.
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
    """Returns ``runs``, with the last two tiles made equal if the last has at most half of the iterations of the
    others.

    Together they cost the same, and no short tile waits for the latency of its sums.
    """
    if len(runs) != 2:
        return runs
    whole, left = runs
    both = whole.tile + left.tile
    if whole.count < 2 or 2 * left.tile > whole.tile or both % 2 or left.mask:
        return runs
    return Run(0, whole.count - 1, whole.tile), Run(left.start - whole.tile, 2, both // 2)


def _smaller_runs(start: Extent, left: Extent, tile: int) -> tuple[Run, ...]:
    """Returns runs for the ``left`` iterations from ``start`` on, which are fewer than ``tile``."""
    smaller = smaller_tile(tile)
    full, rest = divmod(left, smaller)
    run = Run(start, full, smaller)
    if isinstance(rest, int) and not rest:
        return (run,)
    return (run, *_smaller_runs(start + full * smaller, rest, smaller))


def smaller_tile(tile: int) -> int:
    """Returns the tile that iterations left over of an open extent are cut into; it is smaller than ``tile``."""
    return max(1, tile // EDGES.shrink_of_last_tiles)


def masked_run(extent: Size, lanes: int, tile: int) -> Run:
    """Returns tiles of ``tile`` vectors over an open number of elements; the last vector is masked."""
    return Run(0, ceildiv(extent, tile * lanes), tile, end=extent)


def overlapping_run(extent: Extent, tile: int, *, once: bool = False) -> Run:
    """Returns tiles over all of ``extent``, the last of which ends with it; ``once``: each iteration is stored by one
    tile only.
    """
    return Run(0, ceildiv(extent, tile), tile, last=extent - tile, once=once)
