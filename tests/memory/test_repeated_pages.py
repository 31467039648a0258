"""Memory that lies at two addresses, one after the other."""

from __future__ import annotations

import gc
import mmap
import resource
from pathlib import Path

import numpy as np
import pytest

from landbridge.errors import InputError, OutOfMemoryError
from landbridge.memory.host_array import address_of
from landbridge.memory.ledger import copy_array, ledger
from landbridge.memory.repeated_addresses import shifts
from landbridge.memory.repeated_pages import repeated_pages
from landbridge.tensor import Tensor


@pytest.mark.parametrize("nbytes", [0, 1, mmap.PAGESIZE, mmap.PAGESIZE + 1])
def test_what_is_written_to_one_half_is_in_the_other(nbytes: int) -> None:
    storage = repeated_pages(nbytes)
    half = storage.repeats
    assert half % mmap.PAGESIZE == 0 and nbytes <= half < nbytes + 2 * mmap.PAGESIZE
    assert storage.nbytes == 2 * half
    array = np.asarray(Tensor(storage, "uint8", (2 * half,)))
    assert not array.any()
    array[half - 2 : half + 2] = [1, 2, 3, 4]
    assert array[:2].tolist() == [3, 4]
    assert array[-2:].tolist() == [1, 2]


def test_it_is_unmapped_with_its_last_user() -> None:
    def mappings() -> int:
        gc.collect()
        return Path("/proc/self/maps").read_text().count("landbridge-state")

    def files() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before, opened = mappings(), files()
    view = np.asarray(Tensor(repeated_pages(8192), "uint8", (16384,)))[100:200]
    assert mappings() == before + 2
    assert files() == opened
    view[:] = 1
    del view
    assert mappings() == before


def test_a_system_without_memory_or_files_is_an_error_with_a_way_out() -> None:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limit[1]))
    try:
        with pytest.raises(OutOfMemoryError, match=r"4,096 bytes of a state.*without alias="):
            repeated_pages(100)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    with pytest.raises(OutOfMemoryError):
        repeated_pages(1 << 60)


def test_addresses_of_the_same_bytes_are_found_while_the_memory_lives() -> None:
    storage = repeated_pages(8192)
    array = np.asarray(Tensor(storage, "uint8", (storage.nbytes,)))
    base, half = address_of(array), storage.repeats
    assert shifts(base, base + 2 * half - 1) == (0, half, -half)
    assert shifts(base, base + 2 * half) == shifts(base - 1, base) == (0,)
    del storage
    assert shifts(base, base + half) == (0, half, -half), "the array has the memory still"
    del array
    gc.collect()
    assert shifts(base, base + half) == (0,)


def test_a_copy_between_two_addresses_of_the_same_bytes_is_refused() -> None:
    storage = repeated_pages(8192)
    half = storage.repeats
    array = np.asarray(Tensor(storage, "uint8", (2 * half,)))
    array[:100] = range(100)
    facts = {"cause": "test", "tensor": "t", "source": "cpu", "destination": "cpu"}
    with pytest.raises(InputError, match="overlaps its destination"):
        copy_array(array[half + 10 : half + 60], array[:50], **facts)
    with pytest.raises(InputError, match="overlaps its destination"):
        copy_array(array[10:60], array[half : half + 50], **facts)
    with ledger() as moves:
        copy_array(array[half : half + 50], array[:50], **facts)  # which is there
    assert not moves
    copy_array(array[half + 50 : half + 100], array[:50], **facts)
    assert array[50:100].tolist() == list(range(50))
