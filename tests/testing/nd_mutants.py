"""Mutants of a device with rows: one sentence about n-D spaces broken in each, and the test that must notice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from landbridge.device.api import Event, NdSpace, Region, Space, Stream
from landbridge.device.protocols import RowTable
from landbridge.errors import DeviceError, InputError, OutOfMemoryError
from landbridge.testing import sim_scratch
from landbridge.testing.sim_scratch import SimScratchDeviceAPI
from landbridge.testing.sim_scratch_memory import Guarded, flat, table
from tests.testing.c_kernels import FORMAT, KIND, Library, loaded
from tests.testing.mutants import RuntimeMutant

Extents = tuple[int, int, int]


class CorrectRows(SimScratchDeviceAPI):
    """Nothing broken. Its kernels are those of ``c_kernels``, done on return."""

    name = "mutant"
    caught_by: ClassVar[str] = ""

    def target_properties(self, index: int) -> Mapping[str, Any]:
        return {"kind": KIND.name}

    def module_formats(self, index: int) -> Sequence[str]:
        return (FORMAT,)

    def load_module(self, index: int, binary: bytes, format: str, options: str = "") -> object:
        if format != FORMAT:
            raise InputError(f"mutant loads no modules of format {format!r}; legal: {FORMAT}")
        return loaded(binary)

    def launch(
        self, module: object, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        assert isinstance(module, Library)
        if not hasattr(module, function):
            raise DeviceError(f"mutant has no function {function!r}")
        module.run(function, grid, [self.operand(arg) for arg in args])
        return None

    def operand(self, arg: Region | RowTable) -> int | list[int]:
        """The address of flat bytes, or those of rows."""
        if isinstance(arg, RowTable):
            return [self._address(row, 0) for row in arg.rows]
        return self._address(arg, 0)


class NoMethodForRows(CorrectRows):
    """A kind of two dimensions, and no alloc_data_space_nd."""

    caught_by = "test_nd_kinds_have_the_method"
    alloc_data_space_nd = None  # type: ignore[assignment]


class PlainSpaces(CorrectRows):
    """alloc_data_space_nd returns a Space that does not say where its rows are."""

    caught_by = "test_nd_space"

    def alloc_data_space_nd(
        self, index: int, physical_shape: Sequence[int], dtype: str, scope: str, alignment: int
    ) -> NdSpace:
        space = super().alloc_data_space_nd(index, physical_shape, dtype, scope, alignment)
        return Space(space.device, space.scope, space.handle)  # type: ignore[return-value]


class ForgetsARow(CorrectRows):
    """A table has one row less than was asked."""

    caught_by = "test_nd_space"

    def alloc_data_space_nd(
        self, index: int, physical_shape: Sequence[int], dtype: str, scope: str, alignment: int
    ) -> NdSpace:
        space = super().alloc_data_space_nd(index, physical_shape, dtype, scope, alignment)
        return space if space.rows is None else replace(space, rows=space.rows[:-1])


class RowsShareBytes(CorrectRows):
    """The last row of a table lies where the first one does."""

    caught_by = "test_rows_are_disjoint"

    def alloc_data_space_nd(
        self, index: int, physical_shape: Sequence[int], dtype: str, scope: str, alignment: int
    ) -> NdSpace:
        space = super().alloc_data_space_nd(index, physical_shape, dtype, scope, alignment)
        if space.rows:
            space.rows[-1].block = space.rows[0].block
        return space


class RowsAreNotAligned(CorrectRows):
    """Rows of a table begin anywhere."""

    caught_by = "test_row_alignment"

    def alloc_data_space_nd(
        self, index: int, physical_shape: Sequence[int], dtype: str, scope: str, alignment: int
    ) -> NdSpace:
        def packed(scope: str, rows: int, row_bytes: int, charged: int, alignment: int, random):  # type: ignore[no-untyped-def]
            return table(scope, rows, row_bytes, charged, 1, random)

        with _patched("table", packed):
            return super().alloc_data_space_nd(index, physical_shape, dtype, scope, alignment)


class CopiesFromTheStartOfARow(CorrectRows):
    """A copy into a row begins at its first byte, whatever the region says."""

    caught_by = "test_part_of_a_row_is_copied"

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        in_a_row = dst.space.device.api is self and dst.space.handle.table is not None
        return super().copy_data_from_to(src, Region(dst.space) if in_a_row else dst, nbytes, stream, keep_alive)


class LeaksRows(CorrectRows):
    """The rows of a freed table stay counted as used."""

    caught_by = "test_rows_are_given_back"

    def free_data_space(self, space: Space) -> None:
        super().free_data_space(space)
        if space.handle.rows:
            self._used[space.handle.scope] += space.handle.charged


class RowsTakeMore(CorrectRows):
    """Each row takes more of the capacity than its bytes, rounded up."""

    caught_by = "test_what_a_row_takes"

    def alloc_data_space_nd(
        self, index: int, physical_shape: Sequence[int], dtype: str, scope: str, alignment: int
    ) -> NdSpace:
        wider = (*physical_shape[:-1], physical_shape[-1] * 64) if scope == "global.vtcm" else physical_shape
        return super().alloc_data_space_nd(index, wider, dtype, scope, alignment)


class AnyDimensions(CorrectRows):
    """Extents of another number of dimensions are taken as rows and what is in them."""

    caught_by = "test_nd_out_of_memory"

    def alloc_data_space_nd(
        self, index: int, physical_shape: Sequence[int], dtype: str, scope: str, alignment: int
    ) -> NdSpace:
        if scope == "global.vtcm" and len(physical_shape) > 2:
            physical_shape = physical_shape[-2:]
        return super().alloc_data_space_nd(index, physical_shape, dtype, scope, alignment)


class PlainMemoryErrorForRows(CorrectRows):
    """Rows that are not there are a MemoryError of Python's."""

    caught_by = "test_nd_out_of_memory"

    def alloc_data_space_nd(
        self, index: int, physical_shape: Sequence[int], dtype: str, scope: str, alignment: int
    ) -> NdSpace:
        try:
            return super().alloc_data_space_nd(index, physical_shape, dtype, scope, alignment)
        except OutOfMemoryError as error:
            raise MemoryError(str(error)) from error


class FlatBytesOfRows(CorrectRows):
    """A scope of rows hands out flat bytes, too."""

    caught_by = "test_flat_and_nd_scopes"

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        if scope == "global.vtcm":
            return Space(super().alloc_data_space(index, 1, 1, "global", None).device, scope, flat(scope, nbytes, 1))
        return super().alloc_data_space(index, nbytes, alignment, scope, type_hint)


class RowsAreSwapped(CorrectRows):
    """Bytes that go into a row arrive in reverse."""

    caught_by = "test_tensors_in_rows"

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        super().copy_data_from_to(src, dst, nbytes, stream, keep_alive)
        if dst.space.device.api is self and dst.space.handle.table is not None:
            block: Guarded = dst.space.handle.block
            block.data[:] = block.data[::-1].copy()
        return None


class _patched:  # noqa: N801  a context manager
    """``sim_scratch`` with another function of the name."""

    def __init__(self, name: str, value: object) -> None:
        self.name, self.value = name, value

    def __enter__(self) -> None:
        self.before = getattr(sim_scratch, self.name)
        setattr(sim_scratch, self.name, self.value)

    def __exit__(self, *error: object) -> None:
        setattr(sim_scratch, self.name, self.before)


ROWS_RUNTIME = (
    RuntimeMutant(
        "Copies into rows are counted as one element.",
        "test_tensors_in_rows",
        lambda patch: patch.setattr("landbridge.tensor.tensor.Tensor.nbytes", property(lambda self: self.itemsize)),
    ),
    RuntimeMutant(
        "Tables of rows are taken for memory with an address.",
        "test_views_of_rows",
        lambda patch: patch.setattr("landbridge.memory.storage.lies_in_a_table", lambda space: False),
    ),
)
