"""Transposes vectors in registers, for memory that is contiguous along one loop while lanes lie along another.

One vector for each lane is loaded along the contiguous loop. log2(lanes) steps of shuffles of two vectors transpose
them: within 128 bits by interleaving (``unpcklps``, ``zip1``), beyond that by separating even from odd pieces
(``shuff32x4``, ``vperm2f128``). Stores do the reverse. The method exchanges blocks of doubling size (Eklundh, "A fast
computer method for matrix transposing", 1972).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from xdsl.dialects import vector
from xdsl.dialects.builtin import DenseArrayBase, VectorType, i64
from xdsl.ir import SSAValue

from landbridge.passes.lower.code import Code, vector_type
from landbridge.targets.machine import SHUFFLE_BITS


def transposed_width(rows: int, lanes: int, element: Any) -> int:
    """Returns the length of the vectors along ``rows`` rows that ``transpose_in`` and ``transpose_out`` use for
    ``lanes`` lanes.

    At least two, as OpenCL C has no vectors of one.
    """
    return max(2, 1 << (rows - 1).bit_length()) if rows <= _piece(lanes, element) else lanes


def transpose_in(code: Code, loaded: Sequence[SSAValue]) -> list[SSAValue]:
    """Returns a vector along the lanes for each row, from a vector along the rows for each lane."""
    width = _lanes(loaded[0])
    return _transpose_blocks(code, [_concatenated(code, loaded[j::width]) for j in range(width)], width)


def transpose_out(code: Code, rows: Sequence[SSAValue], width: int) -> list[SSAValue]:
    """Returns a vector along the rows, of ``width``, for each lane, from a vector along the lanes for each row.

    Elements after the last row are undefined.
    """
    lanes = _lanes(rows[0])
    transposed = _transpose_blocks(code, [*rows, *[rows[-1]] * (width - len(rows))], width)
    if width == lanes:
        return transposed
    starts = [lane // width * width for lane in range(lanes)]
    return [_part(code, transposed[lane - start], range(start, start + width)) for lane, start in enumerate(starts)]


def parted(code: Code, loaded: Sequence[SSAValue]) -> list[SSAValue]:
    """Returns a vector along the lanes for each row, from as many vectors of interleaved rows (all rows of lane 0, then
    of lane 1).
    """
    rows, lanes = len(loaded), _lanes(loaded[0])
    return [gathered(code, loaded, [divmod(lane * rows + m, lanes) for lane in range(lanes)]) for m in range(rows)]


def interleaved(code: Code, rows: Sequence[SSAValue]) -> list[SSAValue]:
    """Returns vectors of interleaved rows; the inverse of ``parted``."""
    lanes = _lanes(rows[0])
    places = [divmod(at, len(rows))[::-1] for at in range(lanes * len(rows))]
    return [gathered(code, rows, places[k * lanes : (k + 1) * lanes]) for k in range(len(rows))]


def gathered(code: Code, sources: Sequence[SSAValue], places: Sequence[tuple[int, int]]) -> SSAValue:
    """Returns a vector of lanes of ``sources``, which have one length; ``places`` are pairs of a source and its
    lane.
    """
    first, *others = sorted({source for source, _ in places})
    if not others:
        return _part(code, sources[first], [lane for _, lane in places])
    found, done = sources[first], [lane if source == first else None for source, lane in places]
    for other in others:
        beyond = _lanes(found)
        mask = [beyond + at if source == other else done[i] for i, (source, at) in enumerate(places)]
        found = shuffled(code, found, sources[other], [-1 if lane is None else lane for lane in mask])
        done = [i if lane is not None else None for i, lane in enumerate(mask)]
    return found


def _piece(lanes: int, element: Any) -> int:
    return min(max(1, SHUFFLE_BITS // int(element.bitwidth)), lanes)


def _transpose_blocks(code: Code, rows: list[SSAValue], width: int) -> list[SSAValue]:
    """Returns ``width`` vectors, in which each run of ``width`` lanes is transposed."""
    lanes = _lanes(rows[0])
    piece = min(_piece(lanes, _vector(rows[0]).element_type), width)
    unit = 1
    while unit < piece:  # interleave lanes of vectors ``unit`` apart
        rows = _paired(code, rows, unit, *_interleaved(lanes, piece, unit))
        unit *= 2
    while unit < width:  # separate even from odd pieces
        order = [p * piece + i for half in (0, 1) for p in range(half, 2 * lanes // piece, 2) for i in range(piece)]
        rows = _paired(code, rows, unit, order[:lanes], order[lanes:])
        unit *= 2
    return [rows[i - i % piece + _reversed_bits(i % piece, piece)] for i in range(width)]


def _interleaved(lanes: int, piece: int, unit: int) -> tuple[list[int], list[int]]:
    """Returns the shuffle masks that interleave runs of ``unit`` lanes of two vectors: for the lower and the upper half
    of each piece.
    """
    low: list[int] = []
    high: list[int] = []
    for start in range(0, lanes, piece):
        runs = (
            range(start + at + more, start + at + more + unit) for at in range(0, piece, unit) for more in (0, lanes)
        )
        mixed = [lane for run in runs for lane in run]
        low += mixed[:piece]
        high += mixed[piece:]
    return low, high


def _paired(
    code: Code, rows: Sequence[SSAValue], distance: int, low: Sequence[int], high: Sequence[int]
) -> list[SSAValue]:
    """Returns vectors shuffled in pairs ``distance`` apart, the first of each pair by ``low`` and the second by
    ``high``.
    """
    result = list(rows)
    for i in range(len(rows)):
        if not i & distance:
            a, b = rows[i], rows[i + distance]
            result[i], result[i + distance] = shuffled(code, a, b, low), shuffled(code, a, b, high)
    return result


def _reversed_bits(number: int, count: int) -> int:
    """Returns the position of column ``number`` after ``count`` lanes are interleaved step by step: its bits are
    reversed.
    """
    return sum(count // 2 >> bit for bit in range(count.bit_length() - 1) if number >> bit & 1)


def _concatenated(code: Code, parts: Sequence[SSAValue]) -> SSAValue:
    """Returns the concatenation of vectors of one length, whose number is a power of two."""
    while len(parts) > 1:
        each = 2 * _lanes(parts[0])
        parts = [shuffled(code, a, b, range(each)) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _part(code: Code, source: SSAValue, lanes: Iterable[int]) -> SSAValue:
    return shuffled(code, source, source, lanes)


def shuffled(code: Code, a: SSAValue, b: SSAValue, mask: Iterable[int]) -> SSAValue:
    """Returns a vector of the lanes ``mask`` of ``a`` followed by ``b``; -1 is any lane."""
    lanes = DenseArrayBase.from_list(i64, list(mask))
    return code.add_op(vector.ShuffleOp(a, b, lanes, result_type=vector_type(_vector(a).element_type, len(lanes))))


def _lanes(value: SSAValue) -> int:
    return _vector(value).get_shape()[0]


def _vector(value: SSAValue) -> VectorType[Any]:
    assert isinstance(value.type, VectorType)
    return value.type
