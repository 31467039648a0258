"""Tests of launches whose operands lie in rows, or are images."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from unittest import SkipTest

from landbridge.device.api import NdSpace, Region
from landbridge.device.protocols import NdSpaces, Recording, RowTable
from landbridge.memory_kind import MemoryKind
from landbridge.testing.conformance.base import expect, pattern
from landbridge.testing.conformance.kernels import COUNT, NBYTES, SuiteKernel, float32_bytes, minus
from landbridge.testing.conformance.recordings import RecordingCase

_ROWS, _COLUMNS = 4, COUNT // 4
_ROW = 4 * _COLUMNS  # bytes
#: The last dimension of an image is a pixel's lanes.
_SHAPES = {2: ((_ROWS, _COLUMNS), (1,)), 3: ((_ROWS, _COLUMNS // 4, 4), (1, 2))}


class RowLaunchConformance(RecordingCase):
    """Tests ``launch`` with a ``RowTable``."""

    def test_launch_in_rows(self) -> None:
        """launch: an operand in rows is a RowTable of where each begins, in order, one that is an image its whole
        space; the kernel uses these rows, the last one too, and no other bytes."""
        for kind, kernel in self._row_kernels((2, 3)):
            whole = bool(kernel.sequence.images)  # other rows may be any that follow each other
            height, first, second = (_ROWS, 0, 0) if whole else (_ROWS + 3, 1, 3)
            for seed in range(3):
                a, y = self._rows(kind, height, _ROW), self._rows(kind, height, _ROW)
                for row in range(height):
                    self._put_row(y, row, pattern(_ROW, row))
                self._put_rows(a, first, float32_bytes(seed))
                b = self.operand(float32_bytes(seed + 7))
                x, z = (Region(a), Region(y)) if whole else (_table(a, first), _table(y, second))
                self.wait(self.launch(kernel, x, Region(b), z))
                self._expect_rows(y, second, minus(float32_bytes(seed), float32_bytes(seed + 7)))
                self._expect_rows(a, first, float32_bytes(seed))
                for row in range(height):
                    if not second <= row < second + _ROWS:
                        unchanged = self._get_row(y, row) == pattern(_ROW, row)
                        expect(unchanged, f"a launch in rows {second} to {second + _ROWS - 1} changed row {row}")

    def test_launch_within_rows(self) -> None:
        """Rows of a RowTable begin at the byte_offset of their Region, and may be parts of one space with others."""
        for kind, kernel in self._row_kernels((2,)):
            start = -(-_ROW // kind.row_alignment) * kind.row_alignment
            space = self._rows(kind, 2 * _ROWS, start + _ROW)
            for row in range(2 * _ROWS):
                self._put_row(space, row, pattern(start + _ROW, row))
            self._put_rows(space, 0, float32_bytes(1), start)
            b = self.operand(float32_bytes(2))
            x, z = _table(space, 0, start), _table(space, _ROWS, start)
            self.wait(self.launch(kernel, x, Region(b), z))
            self._expect_rows(space, _ROWS, minus(float32_bytes(1), float32_bytes(2)), start)
            self._expect_rows(space, 0, float32_bytes(1), start)
            for row in range(2 * _ROWS):
                unchanged = self._get_row(space, row)[:start] == pattern(start + _ROW, row)[:start]
                expect(unchanged, f"a launch on bytes {start} and on of each row changed row {row} before them")

    def test_recorded_launches_in_rows(self) -> None:
        """Positions number the regions of recorded work, and not those in a RowTable."""
        self.ability(Recording)
        for kind, kernel in self._row_kernels((2,)):
            a, y = self._rows(kind, _ROWS, _ROW), self._rows(kind, _ROWS, _ROW)
            b, other = self.operand(float32_bytes(2)), self.operand(float32_bytes(3))
            self._put_rows(a, 0, float32_bytes(1))
            self._put_rows(y, 0, float32_bytes(9))
            work = partial(self.launch, kernel, _table(a, 0), Region(b), _table(y, 0))
            recording = self.record_work(work)
            self._expect_rows(y, 0, float32_bytes(9))
            self.wait(self.replay_work(recording))
            self._expect_rows(y, 0, minus(float32_bytes(1), float32_bytes(2)))
            self.wait(self.replay_work(recording, {0: Region(other)}))
            self._expect_rows(y, 0, minus(float32_bytes(1), float32_bytes(3)))
            expect(self.read(b, NBYTES) == float32_bytes(2), "a replay in rows wrote what it was bound to before")

    def _row_kernels(self, ndims: Collection[int]) -> Iterator[tuple[MemoryKind, SuiteKernel]]:
        """Yields the kinds of ``ndims`` dimensions that there are kernels for, with these; skips the test where none
        is.
        """
        self.ability(NdSpaces)
        why, found = "has no scope of rows that kernels use", False
        for kind in self.device.memory_kinds.values():
            if kind.ndim in ndims:
                try:
                    kernel = self.kernel(kind.scope, *_SHAPES[kind.ndim])
                except SkipTest as error:
                    why = str(error).removeprefix(f"{self.device} ")
                    continue
                found = True
                yield kind, kernel
        if not found:
            self.skip(why)

    def _rows(self, kind: MemoryKind, rows: int, nbytes: int) -> NdSpace:
        """Allocates ``rows`` rows of ``nbytes`` bytes."""
        extents = (rows, nbytes // 16, 4) if kind.ndim == 3 else (rows, nbytes // 4)
        api = self.ability(NdSpaces)
        space = api.alloc_data_space_nd(self.device.index, extents, "float32", kind.scope, 1)
        self.keep(space)
        return space

    def _put_row(self, space: NdSpace, row: int, content: bytes, start: int = 0) -> None:
        region = space.row(row)
        self.write(region.space, content, region.byte_offset + start)

    def _put_rows(self, space: NdSpace, first: int, content: bytes, start: int = 0) -> None:
        """Writes ``content`` into ``_ROWS`` rows."""
        for row in range(_ROWS):
            self._put_row(space, first + row, content[row * _ROW : (row + 1) * _ROW], start)

    def _get_row(self, space: NdSpace, row: int) -> bytes:
        region = space.row(row)
        width = space.physical_shape[1] * (space.physical_shape[2] if len(space.physical_shape) == 3 else 1)
        return self.read(region.space, 4 * width, region.byte_offset)

    def _expect_rows(self, space: NdSpace, first: int, wanted: bytes, start: int = 0) -> None:
        for row in range(_ROWS):
            found = self._get_row(space, first + row)[start : start + _ROW]
            expect(
                found == wanted[row * _ROW : (row + 1) * _ROW],
                f"row {first + row} of scope {space.scope!r}, row {row} of an operand, is wrong after a launch",
            )


def _table(space: NdSpace, first: int, start: int = 0) -> RowTable:
    """Returns a table of ``_ROWS`` rows of ``space``, from byte ``start`` of each."""
    rows = (space.row(first + number) for number in range(_ROWS))
    return RowTable(tuple(Region(row.space, row.byte_offset + start) for row in rows))
