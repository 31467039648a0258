"""Mutants of launches whose operands lie in rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from landbridge.device.api import Event, Region, Stream
from landbridge.device.protocols import RowTable
from tests.testing.nd_mutants import CorrectRows, Extents


class RowsFollowEachOther(CorrectRows):
    """Rows are taken to follow the first one, each where the one before ends."""

    caught_by = "test_launch_in_rows"

    def operand(self, arg: Region | RowTable) -> int | list[int]:
        found = super().operand(arg)
        return found if isinstance(found, int) else [found[0] + 96 * number for number in range(len(found))]


class OnePitch(CorrectRows):
    """The first two rows of a table say how far all are apart."""

    caught_by = "test_launch_in_rows"

    def operand(self, arg: Region | RowTable) -> int | list[int]:
        found = super().operand(arg)
        if isinstance(found, int):
            return found
        return [found[0] + (found[1] - found[0]) * number for number in range(len(found))]


class LastRowIsTheOneBefore(CorrectRows):
    """A table has one entry too few, and its last row is read at the one before."""

    caught_by = "test_launch_in_rows"

    def operand(self, arg: Region | RowTable) -> int | list[int]:
        found = super().operand(arg)
        return found if isinstance(found, int) else [*found[:-1], found[-2]]


class TheLastRowsOfASpace(CorrectRows):
    """Rows are counted from the end of a table, as index -1 is."""

    caught_by = "test_launch_in_rows"

    def operand(self, arg: Region | RowTable) -> int | list[int]:
        found = super().operand(arg)
        return found if isinstance(found, int) else [found[number - 1] for number in range(len(found))]


class RowsFromTheFirst(CorrectRows):
    """Whatever rows are named, those of a space are taken from the first one on."""

    caught_by = "test_launch_in_rows"

    def operand(self, arg: Region | RowTable) -> int | list[int]:
        if isinstance(arg, RowTable) and arg.rows[0].space.handle.table is not None:
            rows = arg.rows[0].space.handle.table.rows
            return [row.block.address + one.byte_offset for row, one in zip(rows, arg.rows, strict=False)]
        return super().operand(arg)


class TablesInReverse(CorrectRows):
    """The tables of a launch are bound in reverse, flat operands in order."""

    caught_by = "test_launch_in_rows"

    def launch(
        self, module: object, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        tables = [arg for arg in args if isinstance(arg, RowTable)]
        bound = [tables.pop() if isinstance(arg, RowTable) else arg for arg in args]
        return super().launch(module, function, grid, block, bound, stream)


class RowsFromTheirStart(CorrectRows):
    """In a row of a table a kernel begins at the first byte, whatever its Region says."""

    caught_by = "test_launch_within_rows"

    def operand(self, arg: Region | RowTable) -> int | list[int]:
        if isinstance(arg, RowTable) and arg.rows[0].space.handle.table is not None:
            return [row.space.handle.block.address for row in arg.rows]
        return super().operand(arg)


class OneTableForEachSpace(CorrectRows):
    """The table of a space is made once, for the first operand that lies there."""

    caught_by = "test_launch_within_rows"

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[int, Any] = {}

    def operand(self, arg: Region | RowTable) -> int | list[int]:
        if not isinstance(arg, RowTable):
            return super().operand(arg)
        handle = arg.rows[0].space.handle
        return self.tables.setdefault(id(handle.table or handle), super().operand(arg))


class Records(CorrectRows):
    """Nothing broken. Work is recorded on stream None."""

    noted: list[tuple[Any, ...]] | None = None

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        if self.noted is None:
            return super().copy_data_from_to(src, dst, nbytes, stream, keep_alive)
        self.noted.append((None, [src, dst], nbytes))
        return None

    def launch(
        self, module: object, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        if self.noted is None:
            return super().launch(module, function, grid, block, args, stream)
        self.noted.append((module, list(args), function, grid, block))
        return None

    def begin_record(self, index: int, stream: Stream | None) -> None:
        self.noted = []

    def end_record(self, index: int, stream: Stream | None) -> object:
        noted, self.noted = self.noted, None
        return [noted, {}]

    def replay(self, recording: Any, args: Mapping[int, Region], stream: Stream | None) -> Event | None:
        noted, bound = recording
        bound |= args
        order = list(dict.fromkeys(region for _, regions, *_ in noted for region in self.counted(regions)))
        now = {region: bound.get(number, region) for number, region in enumerate(order)}
        for module, regions, *rest in noted:
            given = [now.get(arg, arg) for arg in regions]
            if module is None:
                super().copy_data_from_to(given[0], given[1], rest[0], stream, None)
            else:
                super().launch(module, *rest, given, stream)
        return None

    def counted(self, args: Sequence[Region | RowTable]) -> Sequence[Region]:
        """What has a position."""
        return [arg for arg in args if isinstance(arg, Region)]


class RowsHavePositions(Records):
    """The regions of a table are numbered, too."""

    caught_by = "test_recorded_launches_in_rows"

    def counted(self, args: Sequence[Region | RowTable]) -> Sequence[Region]:
        return [region for arg in args for region in (arg.rows if isinstance(arg, RowTable) else (arg,))]
