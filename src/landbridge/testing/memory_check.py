"""Checks a device's memory: in each scope that the host sees, it allocates, accesses and frees some."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator

import numpy as np

from landbridge.device.api import Device
from landbridge.device.memory_provider import Caching
from landbridge.devices.cma.pagemap import is_contiguous
from landbridge.errors import LandbridgeError
from landbridge.records import record
from landbridge.tensor import Tensor, empty, export_fd, from_dma_buf

_BYTES = 1 << 20
_ALIGNMENT = mmap.PAGESIZE


@record(frozen=True)
class MemoryFinding:
    """The ``outcome`` of checking ``subject`` in ``scope``; ``failed``: it violates the contract."""

    scope: str
    subject: str
    outcome: str
    failed: bool = False


def check_memory(device: Device, nbytes: int = _BYTES) -> Iterator[MemoryFinding]:
    """Yields the checks of ``nbytes`` bytes of each flat scope, in order; an error of one scope becomes a
    MemoryFinding.
    """
    for scope, kind in device.memory_kinds.items():
        if kind.ndim > 1:
            continue
        size = min([nbytes, *(most for most in (kind.max_bytes, kind.capacity) if most is not None)])
        access = kind.host_access if kind.exportable else None  # shared memory is allocated only on request
        try:
            tensor = empty(
                size,
                dtype="uint8",
                device=device,
                scope=scope,
                alignment=_ALIGNMENT,
                host_access=access,
                contiguous=False,  # a finding says what is known
            )
        except LandbridgeError as error:
            yield MemoryFinding(scope, "allocated", str(error), failed=True)
            continue
        yield MemoryFinding(scope, "allocated", f"{size:,} bytes")
        yield from _addresses(tensor, scope)
        yield from _exported(tensor, scope)
        del tensor  # other scopes may be the same memory


def _addresses(tensor: Tensor, scope: str) -> Iterator[MemoryFinding]:
    storage = tensor.storage
    pieces = tensor.extents()
    if pieces:
        yield MemoryFinding(scope, "device's address", f"{pieces[0][0]:#x}, in {len(pieces)} pieces")
    else:
        yield MemoryFinding(scope, "device's address", "unknown")
    if not storage.kind.host_readable or storage.caching is Caching.DEVICE:
        yield MemoryFinding(scope, "host's address", "none")
        return
    address = tensor.data_address
    aligned = address % _ALIGNMENT == 0
    yield MemoryFinding(
        scope, "host's address", f"{'' if aligned else 'not '}at a multiple of {_ALIGNMENT}", not aligned
    )
    proof = is_contiguous(address, tensor.nbytes)
    is_declared_contiguous = storage.kind.physically_contiguous
    outcome = {True: "yes, by pagemap now", False: "no, by pagemap", None: "pagemap does not say"}[proof]
    declaration = {True: "stated", False: "stated not to be", None: "not stated"}[is_declared_contiguous]
    yield MemoryFinding(
        scope, "contiguous", f"{outcome}; {declaration}", failed=is_declared_contiguous is True and proof is False
    )


def _exported(tensor: Tensor, scope: str) -> Iterator[MemoryFinding]:
    if not (tensor.storage.kind.exportable and tensor.storage.kind.host_writable):
        yield MemoryFinding(scope, "exported", "no file of its own")
        return
    try:
        fd, offset = export_fd(tensor)
    except LandbridgeError as error:
        yield MemoryFinding(scope, "exported", str(error), failed=True)
        return
    try:
        again = from_dma_buf(fd, tensor.shape, "uint8", device="cpu", offset=offset)
        pattern = np.arange(tensor.nbytes, dtype=np.uint32).astype(np.uint8)
        with tensor.host_view("w") as view:
            view[...] = pattern
        with again.host_view("r") as view:
            same = np.array_equal(view, pattern)
        yield MemoryFinding(scope, "mapped twice", "the same bytes" if same else "other bytes", failed=not same)
    except LandbridgeError as error:
        yield MemoryFinding(scope, "mapped twice", str(error), failed=True)
    finally:
        os.close(fd)
