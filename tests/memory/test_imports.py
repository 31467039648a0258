"""Imports of memory that is gone: what lies at its address next, in an object of its identity, is imported anew."""

from __future__ import annotations

import mmap

import numpy as np

import landbridge as lb
from landbridge.device.api import Device, Space
from landbridge.device.import_source import ImportSource
from landbridge.device.protocols import AccessMode
from tests.memory.import_count import imported_ranges
from tests.testing.importing_device import ImportsBehindCaches


class CountedImports(ImportsBehindCaches):
    """Counts the imports and their releases."""

    def __init__(self) -> None:
        super().__init__(0)
        self.imported = self.released = 0

    def import_memory(self, index: int, source: ImportSource, access: AccessMode) -> Space:
        self.imported += 1
        return super().import_memory(index, source, access)

    def release_import(self, space: Space) -> None:
        self.released += 1
        super().release_import(space)


def test_memory_at_the_address_of_what_is_gone_is_imported_anew():
    api = CountedImports()
    device, places = Device(api, 0), set()
    rounds = 40
    for number in range(rounds):
        memory = mmap.mmap(-1, mmap.PAGESIZE)
        owner = np.frombuffer(memory, np.float32)
        owner[:] = number
        places.add((id(memory), owner.ctypes.data))
        tensor = lb.asarray(owner, device=device, copy=False)
        assert imported_ranges(device) == 1
        assert (np.asarray(tensor.to_device("cpu")) == number).all()
        del tensor, owner, memory
        assert imported_ranges(device) == 0
    assert len(places) < rounds  # else this has shown nothing
    assert (api.imported, api.released) == (rounds, rounds)
