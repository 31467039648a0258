"""The cost model of register tiles, and the tile with the least cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from landbridge.passes.lower.cost import REGISTER_TILE
from landbridge.passes.lower.windows import SharedWindow
from landbridge.records import record
from landbridge.targets.machine import CpuCore


@record(frozen=True)
class TileSpace:
    """The register tiles that a nest may have, and what their cycles depend on.

    ``m_pieces`` returns, for a number of rows per tile, the rows of each kind of tile and their count. A tile has at
    most ``most_m`` rows, and columns of ``n_extent``, and fits ``registers``. ``rows``: the legal numbers of rows,
    unless empty. ``iterations``: one vector holds a row's scalars of so many iterations, and stays in a register.
    ``beyond_l2``: the share of passes over all rows in which columns come from beyond L2. ``window``: the scalars or
    vectors that rows share. ``l1_rows``: the number of rows whose cache lines L1 retains. ``core`` says how many
    multiply-adds run at a time.
    """

    m_pieces: Callable[[int], Iterable[tuple[int, int]]]
    most_m: int
    n_extent: int
    registers: int
    iterations: int = 1
    beyond_l2: float = 0.0
    window: SharedWindow | None = None
    l1_rows: int = REGISTER_TILE.rows
    rows: Sequence[int] = ()
    core: CpuCore = CpuCore()

    def fits(self, m: int, n: int) -> bool:
        """Returns whether a tile of ``m`` rows and ``n`` columns fits the registers."""
        if self.window is not None:
            extra = self.window.extra_registers(m, n)
        elif self.iterations > 1:
            extra = m + 2 * n  # LLVM loads the vectors of two iterations at a time
        else:
            extra = n + (1 if n > 1 else 0)
        return m * n + extra <= self.registers

    def iteration_cycles(self, m: int, n: int) -> float:
        """Returns the estimated cycles of an iteration of a tile of ``m`` rows and ``n`` columns, in multiply-adds.

        They are its multiply-adds, or the latency of a chain if there are too few of them, plus a share of its loads.
        """
        scalars = m if self.window is None else self.window.vectors(m)
        vectors = scalars / self.iterations + n if self.window is None else self.window.loads(m, n)
        load = REGISTER_TILE.load if self.iterations == 1 else REGISTER_TILE.lane_load
        loads = load * vectors + 1.0 / self.iterations
        loads += REGISTER_TILE.lost_line * scalars / self.iterations if m > self.l1_rows else 0.0
        return max(m * n, self.core.multiply_adds_in_flight) + loads

    def cycles(self, m: int, n: int) -> float:
        """Returns the estimated cycles over the whole extents, for an iteration of the sums, in tiles of ``m x n``."""
        return _cycles(self, m, self.m_pieces(m), _known_pieces(self.n_extent, n), self.iteration_cycles)


def register_block(space: TileSpace) -> tuple[int, int]:
    """Returns the rows and columns of the tile of ``space`` with the fewest estimated cycles over the whole extents;
    see ``best_block``.
    """
    return best_block(space, weighed_blocks(space))


def best_block(space: TileSpace, weighed: Sequence[tuple[float, tuple[int, int]]]) -> tuple[int, int]:
    """Returns the tile of ``weighed``, which is ``weighed_blocks(space)``, with the least cycles; 1 x 1 if it is empty.

    Of tiles with equal estimates, takes the one that needs the fewest kinds of tiles, and therefore the least code.
    """
    if not weighed:
        return 1, 1
    enough = min(weighed)[0] * (1 + REGISTER_TILE.equal_within)

    def kinds(block: tuple[int, int]) -> int:
        return sum(count > 0 for _, count in space.m_pieces(block[0])) * len(_known_pieces(space.n_extent, block[1]))

    return min((kinds(block), cost, block) for cost, block in weighed if cost <= enough)[2]


def weighed_blocks(space: TileSpace) -> list[tuple[float, tuple[int, int]]]:
    """Returns each tile of ``space`` with its estimated cycles over the whole extents, for an iteration of its sums."""
    weighed = []
    most_m = max(1, min(REGISTER_TILE.rows, space.most_m))
    most_n = REGISTER_TILE.columns if most_m > 1 else REGISTER_TILE.columns_of_one_row
    tiles = {m: list(space.m_pieces(m)) for m in range(1, most_m + 1) if not space.rows or m in space.rows}
    iteration_cycles = cache(space.iteration_cycles)
    for n in range(1, min(space.n_extent, most_n) + 1):
        n_pieces = _known_pieces(space.n_extent, n)
        for m, m_pieces in tiles.items():
            if not space.fits(m, n):
                break
            weighed.append((_cycles(space, m, m_pieces, n_pieces, iteration_cycles), (m, n)))
    return weighed


def _cycles(
    space: TileSpace,
    m: int,
    m_pieces: Iterable[tuple[int, int]],
    n_pieces: Sequence[tuple[int, int]],
    iteration_cycles: Callable[[int, int], float],
) -> float:
    """Returns the estimated cycles of tiles of ``m`` rows, which leave ``m_pieces`` and ``n_pieces``.

    The first tile of rows waits for columns from beyond L2, and overlaps more work with it the more rows it has.
    """
    total = space.beyond_l2 * space.n_extent * max(0, REGISTER_TILE.beyond_l2_load - m)
    for m_size, m_count in m_pieces:
        for n_size, n_count in n_pieces:
            total += m_count * n_count * iteration_cycles(m_size, n_size)
    return total


def _known_pieces(extent: int, tile: int) -> list[tuple[int, int]]:
    """Returns the full tiles and the one left over, as pairs of extent and count."""
    pieces = [(tile, extent // tile)] if extent >= tile else []
    if extent % tile:
        pieces.append((extent % tile, 1))
    return pieces
