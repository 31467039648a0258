"""Divides a blocked layout into pieces, in each of which both forms of a tensor have affine indices.

The pieces are the full tiles, the partial last tile of an axis and the padding after that. A test or a division for
each element would prevent a vectorized copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

from xdsl.ir.affine import AffineExpr, AffineMap

from landbridge.records import record
from landbridge.sizes.size import Extent


@record(frozen=True)
class PackedPiece:
    """A loop nest over ``extents``, with the locations of its elements in the plain tensor and in the packed one."""

    extents: tuple[Extent, ...]
    plain: AffineMap
    packed: AffineMap


@record(frozen=True)
class _Run:
    """Tiles of an axis: how many there are, their number of elements, and the index expressions of loops over both."""

    tiles: int
    elements: int
    plain: Callable[[AffineExpr, AffineExpr], AffineExpr]
    tile: Callable[[AffineExpr], AffineExpr]
    element: Callable[[AffineExpr], AffineExpr]


def pieces(
    shape: Sequence[Extent], axes: Sequence[int], tiles: Sequence[int], *, padding: bool
) -> Iterator[PackedPiece]:
    """Yields the pieces of ``shape`` with ``axes`` cut into ``tiles``; with ``padding`` the padding too, as copies of
    the last element.

    The first loops go over axes that are not cut, all but the last of these: all pieces share them and so their tasks.
    """
    whole = [a for a in range(len(shape)) if a not in axes]
    order = [*whole[:-1], *axes, *whole[-1:], *(len(shape) + n for n in range(len(axes)))]
    loop = {number: AffineExpr.dimension(i) for i, number in enumerate(order)}
    for runs in product(*(_runs(int(shape[a]), tile, padding) for a, tile in zip(axes, tiles, strict=True))):
        extents: dict[int, Extent] = dict(enumerate(shape))
        plain, outer, inner = dict(loop), dict(loop), list[AffineExpr]()
        for n, (axis, run) in enumerate(zip(axes, runs, strict=True)):
            tile, element = loop[axis], loop[len(shape) + n]
            extents[axis], extents[len(shape) + n] = run.tiles, run.elements
            plain[axis], outer[axis] = run.plain(tile, element), run.tile(tile)
            inner.append(run.element(element))
        yield PackedPiece(
            tuple(extents[number] for number in order),
            AffineMap(len(order), 0, tuple(plain[a] for a in range(len(shape)))),
            AffineMap(len(order), 0, (*(outer[a] for a in range(len(shape))), *inner)),
        )


def _runs(extent: int, tile: int, padding: bool) -> Iterator[_Run]:
    full, left = divmod(extent, tile)
    if full:
        yield _Run(full, tile, lambda o, i: o * tile + i, lambda o: o, lambda i: i)
    if left:
        yield _Run(1, left, lambda o, i: o * tile + i + full * tile, lambda o: o + full, lambda i: i)
    if left and padding:
        last = AffineExpr.constant(extent - 1)
        yield _Run(1, tile - left, lambda o, i: last, lambda o: o + full, lambda i: i + left)
