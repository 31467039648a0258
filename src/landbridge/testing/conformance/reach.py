"""Tests of access to memory other than by its Space: addresses, and imports of file descriptors and own memory."""

from __future__ import annotations

import ctypes
import mmap
import os

from landbridge.device.api import Region
from landbridge.device.import_source import DmaBuf, HostPointer
from landbridge.device.protocols import Addresses, MemoryImport
from landbridge.errors import ZeroCopyError
from landbridge.testing.conformance.base import ConformanceCase, expect, expect_raises, pattern

_BYTES = 4096
_LONG = 3 << 16


class ReachConformance(ConformanceCase):
    """Tests ``device_address`` and ``import_memory``."""

    def test_device_addresses(self) -> None:
        """device_address(region): an address for each byte, which no other space has and the device can reach."""
        addresses = self.ability(Addresses)
        for scope in self.flat_scopes():
            kind = self.device.memory_kind(scope)
            spaces = [self.alloc(_BYTES, scope) for _ in range(3)]
            begins = [addresses.device_address(Region(space)) for space in spaces]
            again = [addresses.device_address(Region(space)) for space in spaces]
            expect(begins == again, f"the addresses of {scope!r} were {begins}, and are {again}")
            for begin, space in zip(begins, spaces, strict=True):
                inside = addresses.device_address(Region(space, 64))
                expect(inside != begin, f"byte 64 of a space of {scope!r} has the address of byte 0, {begin:#x}")
                if kind.physically_contiguous:
                    expect(
                        inside == begin + 64, f"{scope!r} is contiguous, and byte 64 of {begin:#x} is at {inside:#x}"
                    )
                fits = 0 <= begin < 1 << (kind.dma_address_bits or 64)
                expect(fits, f"{begin:#x} has more bits than the {kind.dma_address_bits} that the device reaches")
                expect(begin % kind.alignment == 0, f"{begin:#x} of {scope!r} is not a multiple of {kind.alignment}")
            if kind.physically_contiguous and self.capacity(scope) > 16 * _LONG:
                long = self.alloc(_LONG, scope)
                begin, end = (addresses.device_address(Region(long, at)) for at in (0, _LONG - 64))
                expect(end == begin + _LONG - 64, f"byte {_LONG - 64} of {begin:#x} of {scope!r} is at {end:#x}")
            disjoint = all(abs(a - b) >= _BYTES for i, a in enumerate(begins) for b in begins[:i])
            expect(disjoint or not kind.physically_contiguous, f"spaces of {scope!r} overlap at {begins}")

    def test_alignment_of_device_addresses(self) -> None:
        """An alignment that is asked for is that of the device's address, as it is of the host's."""
        addresses = self.ability(Addresses)
        for scope in self.flat_scopes():
            for requested in (4 * self.device.memory_kind(scope).alignment, 4096):
                self.alloc(requested // 4 + 1, scope)
                begin = addresses.device_address(Region(self.alloc(_BYTES, scope, requested)))
                expect(begin % requested == 0, f"{begin:#x} of {scope!r} was asked aligned to {requested}")

    def test_foreign_file_descriptors(self) -> None:
        """import_memory of a file descriptor is in place, or raises ZeroCopyError; one of no memory always raises."""
        importer = self.ability(MemoryImport)
        reading, writing = os.pipe()
        try:
            call = lambda: importer.import_memory(self.device.index, DmaBuf(reading, 0, _BYTES), "rw")  # noqa: E731
            expect_raises(ZeroCopyError, call, "an import of a pipe")
        finally:
            os.close(reading)
            os.close(writing)
        for offset in (0, mmap.PAGESIZE):
            file = os.memfd_create("foreign")
            os.ftruncate(file, offset + _BYTES)
            with mmap.mmap(file, offset + _BYTES) as owner:
                try:
                    space = importer.import_memory(self.device.index, DmaBuf(file, offset, _BYTES), "rw")
                except ZeroCopyError:
                    return
                finally:
                    os.close(file)
                with self.owner_writes(space, _BYTES):
                    owner[offset:] = pattern(_BYTES, 3)
                target = self.alloc(_BYTES)
                self.wait(self.copy(Region(space), Region(target), _BYTES))
                importer.release_import(space)
                seen = self.read(target, _BYTES) == pattern(_BYTES, 3)
                expect(seen, f"an import from byte {offset} on does not see what its owner wrote")

    def test_imports_for_reading(self) -> None:
        """import_memory with access "r" is in place, too: the device sees what the owner writes afterwards."""
        importer, source, target = self.ability(MemoryImport), self._importable(), self.alloc(_BYTES)
        ctypes.memmove(source.address, pattern(_BYTES, 1), _BYTES)
        space = importer.import_memory(self.device.index, source, "r")
        for seed in (2, 3):
            with self.owner_writes(space, _BYTES):
                ctypes.memmove(source.address, pattern(_BYTES, seed), _BYTES)
            self.wait(self.copy(Region(space), Region(target), _BYTES))
            found = self.read(target, _BYTES)
            expect(found == pattern(_BYTES, seed), "an import for reading has not what the owner wrote since")
        importer.release_import(space)
        retained = ctypes.string_at(source.address, _BYTES) == pattern(_BYTES, 3)
        expect(retained, "releasing an import for reading changed the owner's bytes")

    def test_the_same_bytes_imported_twice(self) -> None:
        """Imports of the same bytes are the same memory, each valid until its own release."""
        importer, source = self.ability(MemoryImport), self._importable()
        first, second = (importer.import_memory(self.device.index, source, "rw") for _ in range(2))
        with self.owner_writes(first, _BYTES):
            ctypes.memmove(source.address, pattern(_BYTES, 1), _BYTES)
        target, content = self.alloc(_BYTES), self.alloc(_BYTES)
        self.write(content, pattern(_BYTES, 2))
        self.wait(self.copy(Region(content), Region(first), _BYTES))
        self.wait(self.copy(Region(second), Region(target), _BYTES))
        expect(self.read(target, _BYTES) == pattern(_BYTES, 2), "one import does not see what went into the other")
        importer.release_import(first)
        self.write(target, pattern(_BYTES, 4))
        self.wait(self.copy(Region(second), Region(target), _BYTES))
        expect(self.read(target, _BYTES) == pattern(_BYTES, 2), "releasing one import took the other")
        importer.release_import(second)

    def _importable(self) -> HostPointer:
        """Returns memory that the device imports by its address, the host's or its own; skips the test where there is
        none.
        """
        importer = self.ability(MemoryImport)
        source = HostPointer(self.host_address(self.host(pattern(_BYTES, 1))), _BYTES)
        try:
            importer.release_import(importer.import_memory(self.device.index, source, "rw"))
        except ZeroCopyError:
            kind = next((k for k in self.host_kinds() if k.importable and k.coherent), None)
            if kind is None:
                self.skip("imports no memory that the host sees")
            source = HostPointer(self.host_address(self.alloc(_BYTES, kind.scope)), _BYTES)
            try:
                importer.release_import(importer.import_memory(self.device.index, source, "rw"))
            except ZeroCopyError:
                self.skip("imports no memory by its address")
        return source
