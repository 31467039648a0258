"""Mutants of addresses and imports."""

from __future__ import annotations

import ctypes
from dataclasses import replace

from landbridge.device.api import Region, Space
from landbridge.device.import_source import DmaBuf, ImportSource
from landbridge.device.protocols import AccessMode
from landbridge.errors import ZeroCopyError
from tests.testing.mutants import Correct


class AddressesOfSpaces(Correct):
    """device_address leaves the offset out."""

    caught_by = "test_device_addresses"

    def device_address(self, region: Region) -> int:
        return super().device_address(Region(region.space))


class AddressesTooWide(Correct):
    """device_address has bits that the device does not."""

    caught_by = "test_device_addresses"

    def device_address(self, region: Region) -> int:
        return super().device_address(region) | 1 << 60


class AddressesAsideOfTheHosts(Correct):
    """The device's addresses are a few lines beside the host's, which alone are aligned."""

    caught_by = "test_alignment_of_device_addresses"

    def device_address(self, region: Region) -> int:
        return super().device_address(region) + 2048


class OneAddressForAll(Correct):
    """device_address counts from the begin of each space."""

    caught_by = "test_device_addresses"

    def device_address(self, region: Region) -> int:
        return region.byte_offset


class AddressesOfTwoPages(Correct):
    """From its second page on a space has addresses a page further."""

    caught_by = "test_device_addresses"

    def device_address(self, region: Region) -> int:
        return super().device_address(region) + (4096 if region.byte_offset >= 4096 else 0)


class AddressesOfSixteenBits(Correct):
    """device_address takes an offset's low 16 bits."""

    caught_by = "test_device_addresses"

    def device_address(self, region: Region) -> int:
        return super().device_address(Region(region.space, region.byte_offset & 0xFFFF))


class AcceptsAnyFile(Correct):
    """A file descriptor of others is accepted, and memory of its own made instead."""

    caught_by = "test_foreign_file_descriptors"

    def import_memory(self, index: int, source: ImportSource, access: AccessMode) -> Space:
        if isinstance(source, DmaBuf):
            return self.alloc_data_space(index, source.nbytes, 1, "shared", None)
        return super().import_memory(index, source, access)


class RefusesInItsOwnWords(Correct):
    """An import that cannot be is a ValueError."""

    caught_by = "test_foreign_file_descriptors"

    def import_memory(self, index: int, source: ImportSource, access: AccessMode) -> Space:
        try:
            return super().import_memory(index, source, access)
        except ZeroCopyError as error:
            raise ValueError(str(error)) from None


class SeparateImports(Correct):
    """A second import of the same bytes has bytes of its own."""

    caught_by = "test_the_same_bytes_imported_twice"
    imports = 0

    def import_memory(self, index: int, source: ImportSource, access: AccessMode) -> Space:
        space = super().import_memory(index, source, access)
        self.imports += 1
        if self.imports % 2:
            return space
        made = self.alloc_data_space(index, source.nbytes, 1, "shared", None)
        ctypes.memmove(made.handle.address, space.handle.address, source.nbytes)
        return replace(made)


class ImportsForReadingAreCopies(Correct):
    """An import for reading is a copy of what was there."""

    caught_by = "test_imports_for_reading"

    def import_memory(self, index: int, source: ImportSource, access: AccessMode) -> Space:
        space = super().import_memory(index, source, access)
        if access != "r":
            return space
        copy = self.alloc_data_space(index, space.handle.data.nbytes, 1, space.scope, None)
        copy.handle.data[:] = space.handle.data
        return copy
