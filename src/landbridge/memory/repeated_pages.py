"""Memory that lies at two addresses, one after the other, so that a window may slide through it without an end.

Byte ``b`` of the first half is byte ``b`` of the second. A window of at most one half, which begins in the first, is in
one piece wherever it begins. What slides past the end of the first half continues at its begin.
"""

from __future__ import annotations

import mmap
import os
from typing import Any

import numpy as np

from landbridge.errors import OutOfMemoryError
from landbridge.memory.borrowed import borrow_array
from landbridge.memory.host_array import address_of
from landbridge.memory.repeated_addresses import register
from landbridge.memory.storage import Storage
from landbridge.process.fixed_pages import map_file, reserve


def repeated_pages(nbytes: int) -> Storage:
    """Returns new zeroed host memory of at least ``nbytes``, twice at consecutive addresses (``Storage.repeats``).

    Raises OutOfMemoryError where the system gives no memory, or no file for it.
    """
    half = -(-max(nbytes, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
    array = _mapped(half)
    storage = borrow_array(array, readonly=False)
    register(address_of(array), half, array)
    storage.repeats, storage.is_window = half, True
    return storage


def _mapped(half: int) -> np.ndarray[Any, Any]:
    try:
        reserved, base = reserve(2 * half)
        file = os.memfd_create("landbridge-state", os.MFD_CLOEXEC)
        try:
            os.ftruncate(file, half)
            for address in (base, base + half):
                map_file(address, half, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, file)
        finally:
            os.close(file)
    except OSError as error:
        raise OutOfMemoryError(
            f"the system gave no memory for {half:,} bytes of a state, twice in its addresses ({error.strerror}); end "
            "other programs, raise the limit of files or of addresses, or compile without alias="
        ) from error
    return np.frombuffer(reserved, np.uint8)
