"""Tests of scopes of more than one dimension: rows exist, are disjoint, aligned, copied one by one, and freed."""

from __future__ import annotations

from functools import partial

import numpy as np

import landbridge as lb
from landbridge.device.api import NdSpace, Region
from landbridge.device.protocols import HostMemory, NdSpaces
from landbridge.errors import HostViewError, InputError, LandbridgeError, OutOfMemoryError
from landbridge.memory_kind import MemoryKind
from landbridge.shapes.physical import nd_bytes, row_bytes
from landbridge.tensor import Tensor
from landbridge.testing.conformance.base import ConformanceCase, expect, expect_raises, pattern

_DTYPE = "float32"
#: Bytes that every device copies a multiple of in a row: a pixel of four lanes.
_PIXEL = 16
#: Axis separators that make the dimensions of a space of a tensor of four axes, the last one a pixel's lanes.
_SEPARATORS = {2: (2,), 3: (2, 3)}


class NdSpaceConformance(ConformanceCase):
    """Tests n-D spaces."""

    def test_nd_kinds_have_the_method(self) -> None:
        """Presence is the capability: a kind of more than one dimension has alloc_data_space_nd."""
        for kind in self.nd_kinds():
            expect(
                self.device.capability(NdSpaces) is not None, f"{kind.scope!r} has {kind.ndim} dimensions, no method"
            )

    def test_nd_space(self) -> None:
        """alloc_data_space_nd(index, physical_shape, dtype, scope, alignment) -> Space with row_pitch or a table of row
        handles."""
        for kind in self.nd_kinds():
            space = self.alloc_nd(kind)
            expect(isinstance(space, NdSpace), f"the space is a {type(space).__name__}, not an NdSpace")
            expect((space.device, space.scope) == (self.device, kind.scope), f"the space says {space}")
            shape = self.shape(kind)
            expect(tuple(space.physical_shape) == shape, f"the space has {space.physical_shape}, asked was {shape}")
            wanted = row_bytes(shape, _DTYPE)
            expect(space.row_bytes >= wanted, f"rows of {space.row_bytes} bytes hold no {wanted}")
            if space.rows is None:
                expect(
                    type(space.row_pitch) is int and space.row_pitch >= space.row_bytes and space.row_pitch % 4 == 0,
                    f"no table, and the pitch of rows of {space.row_bytes} bytes is {space.row_pitch!r}",
                )
            else:
                expect(space.row_pitch is None, "there is a table of rows and a pitch")
                expect(len(space.rows) == shape[0], f"the table has {len(space.rows)} rows, asked was {shape[0]}")

    def test_rows_are_disjoint(self) -> None:
        """Either row r begins r * row_pitch bytes into the space, or is a space of its own, of handle rows[r]: no two
        share bytes."""
        for kind in self.nd_kinds():
            spaces = [self.alloc_nd(kind), self.alloc_nd(kind)]
            contents = {}
            for number, space in enumerate(spaces):
                for row in range(space.physical_shape[0]):
                    contents[number, row] = pattern(self.used(kind), 17 * number + row + 1)
                    self.write_row(space, row, contents[number, row])
            for (number, row), content in contents.items():
                found = self.read_row(spaces[number], row, len(content))
                expect(found == content, f"row {row} of space {number} in {kind.scope!r} lost what was written there")

    def test_row_alignment(self) -> None:
        """alignment, a power of two, is that of each row, like the kind's."""
        host = self.ability(HostMemory)
        for kind in self.nd_kinds():
            if kind.host_access == "none":
                continue
            for requested in (1, 4 * kind.row_alignment):
                space = self.alloc_nd(kind, requested)
                if space.row_pitch is not None:
                    # the alignment that one pitch gives every row
                    requested = min(requested, space.row_pitch & -space.row_pitch)
                wanted = max(requested, kind.row_alignment)
                for row in range(space.physical_shape[0]):
                    region = space.row(row)
                    address = host.host_pointer(region.space) + region.byte_offset
                    expect(address % wanted == 0, f"row {row} of {kind.scope!r} at {address:#x} is not at {wanted}s")

    def test_part_of_a_row_is_copied(self) -> None:
        """copy_data_from_to takes regions of their rows as it does regions of flat memory."""
        for kind in self.nd_kinds():
            space, flat = self.alloc_nd(kind), self.alloc(4096)
            nbytes = self.used(kind)
            self.write_row(space, 2, pattern(nbytes, 1))
            self.write(flat, pattern(4096, 2))
            inside = space.row(2)
            self.wait(self.copy(Region(flat, 256), Region(inside.space, inside.byte_offset + _PIXEL), _PIXEL))
            wanted = pattern(nbytes, 1)[:_PIXEL] + pattern(4096, 2)[256 : 256 + _PIXEL]
            wanted += pattern(nbytes, 1)[2 * _PIXEL :]
            expect(self.read_row(space, 2, nbytes) == wanted, f"a copy into a row of {kind.scope!r} went elsewhere")

    def test_rows_are_given_back(self) -> None:
        """free_data_space is given the whole space, and all its rows can be had again."""
        for kind in self.nd_kinds():
            if kind.capacity is None or kind.capacity > 1 << 24:
                continue
            rows = max(1, kind.capacity // nd_bytes(kind, (1, *self.shape(kind)[1:]), _DTYPE) * 2 // 3)
            for _ in range(3):
                space = self.alloc_nd(kind, rows=rows)
                self.free(space)

    def test_what_a_row_takes(self) -> None:
        """A row takes its bytes, rounded up to row_alignment, of the capacity: so a compiler plans."""
        for kind in self.nd_kinds():
            if kind.capacity is None or kind.capacity > 1 << 24:
                continue
            all_but_some = kind.capacity // 8 * 7  # others may hold a few
            rows = all_but_some // nd_bytes(kind, (1, *self.shape(kind)[1:]), _DTYPE)
            space = self.alloc_nd(kind, rows=rows)
            expect(space.physical_shape[0] == rows, f"the space has {space.physical_shape[0]} rows of {rows}")
            self.free(space)

    def test_nd_out_of_memory(self) -> None:
        """alloc_data_space_nd raises InputError for extents the scope cannot have, OutOfMemoryError when the memory is
        not there."""
        for kind in self.nd_kinds():
            shape = self.shape(kind)
            for wrong in (shape[1:], (*shape, 2), (-1, *shape[1:])):
                subject = f"a space of {wrong} in {kind.scope!r}, of {kind.ndim} dimensions"
                expect_raises(InputError, partial(self.alloc_nd, kind, shape=wrong), subject)
            try:
                self.alloc_nd(kind, rows=1 << 46)
            except (InputError, OutOfMemoryError):
                continue
            except Exception as error:
                raise AssertionError(f"2**46 rows of {kind.scope!r} raised {type(error).__name__}: {error}") from error
            raise AssertionError(f"2**46 rows of {kind.scope!r} were had")

    def test_flat_and_nd_scopes(self) -> None:
        """A scope is allocated by the method of its dimensions, and by no other."""
        api = self.ability(NdSpaces)
        flat = self.device.memory_kind()
        if flat.ndim == 1:
            nd_call = partial(api.alloc_data_space_nd, self.device.index, (4, 4), _DTYPE, flat.scope, 1)
            expect_raises(LandbridgeError, nd_call, "alloc_data_space_nd of a flat scope")
        for kind in self.nd_kinds():
            flat_call = partial(self.api.alloc_data_space, self.device.index, 64, 1, kind.scope, None)
            expect_raises(LandbridgeError, flat_call, f"alloc_data_space of {kind.scope!r}")

    def test_tensors_in_rows(self) -> None:
        """axis_separators (which physical axes make each dimension of the space): every element comes back as it went,
        and the ledger counts every byte."""
        for kind in self.nd_kinds():
            values = np.arange(2 * 3 * 5 * 4, dtype=_DTYPE).reshape(2, 3, 5, 4)
            with lb.ledger() as moves:
                there = lb.asarray(values).to_device(
                    self.device, scope=kind.scope, axis_separators=_SEPARATORS[kind.ndim]
                )
                back = np.asarray(there.to_device("cpu"))
            expect((back == values).all(), f"what came back from {kind.scope!r} is not what went there")
            expect(
                moves.total_bytes == 2 * values.nbytes, f"{moves.total_bytes} bytes of twice {values.nbytes} counted"
            )

    def test_views_of_rows(self) -> None:
        """host views of n-D spaces: HostViewError with the way out, unless rows have a pitch and the host sees them."""
        for kind in self.nd_kinds():
            tensor = lb.empty(self.shape(kind), dtype=_DTYPE, device=self.device, scope=kind.scope)
            space = tensor.storage.live_region.space
            if kind.host_access == "read_write" and isinstance(space, NdSpace) and space.rows is None:
                with tensor.host_view("rw") as view:
                    view[...] = 5
                expect((np.asarray(tensor.to_device("cpu")) == 5).all(), "the view is not over the tensor's own bytes")
            else:
                error = expect_raises(HostViewError, partial(_look, tensor), "a view of rows")
                expect("to_device" in str(error), f"the message shows no way out: {error}")

    def nd_kinds(self) -> list[MemoryKind]:
        """Returns the kinds of more than one dimension; skips the test where there is none."""
        found = [kind for kind in self.device.memory_kinds.values() if kind.ndim > 1]
        if not found:
            self.skip("has no scope of more than one dimension")
        return found

    def shape(self, kind: MemoryKind) -> tuple[int, ...]:
        """Returns extents that a space of ``kind`` can have."""
        return {2: (6, 20), 3: (6, 5, 4)}.get(kind.ndim, (2,) * kind.ndim)

    def used(self, kind: MemoryKind) -> int:
        """Returns the bytes that a row of that shape uses."""
        return row_bytes(self.shape(kind), _DTYPE)

    def alloc_nd(
        self, kind: MemoryKind, alignment: int = 1, rows: int | None = None, shape: tuple[int, ...] | None = None
    ) -> NdSpace:
        """Allocates a space of the device, which is freed at the end of the test."""
        extents = shape if shape is not None else self.shape(kind)
        if rows is not None:
            extents = (rows, *extents[1:])
        space = self.ability(NdSpaces).alloc_data_space_nd(self.device.index, extents, _DTYPE, kind.scope, alignment)
        self.keep(space)
        return space

    def write_row(self, space: NdSpace, row: int, content: bytes) -> None:
        """Puts ``content`` into a row."""
        region = space.row(row)
        self.write(region.space, content, region.byte_offset)

    def read_row(self, space: NdSpace, row: int, nbytes: int) -> bytes:
        """Returns the first bytes of a row."""
        region = space.row(row)
        return self.read(region.space, nbytes, region.byte_offset)


def _look(tensor: Tensor) -> None:
    with tensor.host_view("r"):
        pass
