"""OwnedMemory: memory of a program's own, flat or in rows."""

from __future__ import annotations

from math import prod

from landbridge.device.api import NdSpace, Region
from landbridge.dtypes import dtype as dtype_facts
from landbridge.errors import BindError, InputError
from landbridge.memory.extents import limits_addresses, unreachable
from landbridge.process.locks import cached_property
from landbridge.records import record
from landbridge.shapes.physical import physical_shape, row_bytes, row_strides
from landbridge.tensor import Tensor
from landbridge.tensor.in_rows import row_table, tensor_in_rows


@record(frozen=True, eq=False)
class FlatMemory:
    """``nbytes`` bytes of a program's own memory.

    They have a host address, None where code of the host cannot use them in place, and a Tensor of bytes, None where no
    device is involved.
    """

    address: int | None
    nbytes: int
    tensor: Tensor | None

    @cached_property
    def _has_limits(self) -> bool:
        return self.tensor is not None and limits_addresses(self.tensor.storage.kind)

    def check(self, offset: int, nbytes: int, name: str) -> None:
        """Raises BindError where the device does not accept ``nbytes`` bytes from ``offset`` on, for tensor
        ``name``."""
        if not self._has_limits or self.tensor is None:
            return
        start = int(self.tensor.byte_offset + offset)  # a plain number, which devices are given
        if (problem := unreachable(self.tensor.storage, start, start + nbytes)) is not None:
            raise BindError(
                f"tensor {name!r} of {nbytes} bytes from byte {offset} of its storage on: {problem}; bind a device "
                "without the limit, or state it in the Target and place the tensor elsewhere"
            )


@record(frozen=True, eq=False)
class RowMemory:
    """Memory of a program's own in ``rows`` of ``row_bytes`` each, as its instructions count them.

    ``tensor`` is all of it: in rows that a device made, or in flat memory that replaces them, where rows are
    consecutive. ``is_direct``: whether code of the host can use it in place.
    """

    tensor: Tensor
    rows: int
    row_bytes: int
    is_direct: bool

    @property
    def nbytes(self) -> int:
        """Returns the bytes of all rows."""
        return self.rows * self.row_bytes

    def table(
        self, offset: int, shape: tuple[int, ...], dtype: str, axis_separators: tuple[int, ...]
    ) -> tuple[int, ...]:
        """Returns the host addresses of the rows of a tensor from byte ``offset`` on; empty where it has no
        elements.
        """
        if isinstance(self.tensor.storage.live_region.space, NdSpace):
            return row_table(self.part(offset, shape, dtype, axis_separators))
        start = self.tensor.data_address + offset
        rows = physical_shape(shape, axis_separators)[0] if prod(shape) else 0
        return tuple(start + row * self.row_bytes for row in range(rows))

    def regions(
        self, offset: int, shape: tuple[int, ...], dtype: str, axis_separators: tuple[int, ...]
    ) -> tuple[Region, ...]:
        """Returns the device's regions of the rows of a tensor from byte ``offset`` on; empty where it has no
        elements.
        """
        rows = physical_shape(shape, axis_separators)[0] if prod(shape) else 0
        base = self.tensor.storage.live_region
        if isinstance(base.space, NdSpace):
            self.part(offset, shape, dtype, axis_separators)  # raises where it does not fit
            first, byte = divmod(offset, self.row_bytes or 1)
            found = [base.space.row(first + row) for row in range(rows)]
            return tuple(Region(row.space, row.byte_offset + byte) for row in found)
        start = base.byte_offset + self.tensor.byte_offset + offset
        return tuple(Region(base.space, start + row * self.row_bytes) for row in range(rows))

    def part(self, offset: int, shape: tuple[int, ...], dtype: str, axis_separators: tuple[int, ...]) -> Tensor:
        """Returns the Tensor from byte ``offset`` on; raises BindError where rows cannot hold it."""
        row, byte = divmod(offset, self.row_bytes or 1)
        storage, itemsize = self.tensor.storage, dtype_facts(dtype).itemsize
        if isinstance(storage.live_region.space, NdSpace):
            try:
                return tensor_in_rows(storage, dtype, shape, axis_separators, row, byte)
            except InputError as error:
                raise BindError(f"the program does not fit its rows: {error}; compile the model again") from error
        if self.row_bytes % itemsize:
            raise BindError(
                f"rows of {self.row_bytes} bytes hold no {dtype} of {itemsize} bytes; compile the model again"
            )
        strides = row_strides(shape, axis_separators, self.row_bytes // itemsize)
        return Tensor(storage, dtype, shape, strides, self.tensor.byte_offset + offset, readonly=self.tensor.readonly)

    def check(self, offset: int, shape: tuple[int, ...], dtype: str, axis_separators: tuple[int, ...]) -> None:
        """Raises BindError unless a tensor from byte ``offset`` on lies in these rows."""
        row, byte = divmod(offset, self.row_bytes or 1)
        physical = physical_shape(shape, axis_separators)
        last, reach = row + physical[0], byte + row_bytes(physical, dtype)
        if last > self.rows or reach > self.row_bytes:
            raise BindError(
                f"a tensor of {physical[0]} rows of {reach - byte} bytes from byte {byte} of row {row} on lies outside "
                f"its storage of {self.rows} rows of {self.row_bytes} bytes; compile the model again"
            )


OwnedMemory = FlatMemory | RowMemory
