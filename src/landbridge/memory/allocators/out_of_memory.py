"""Allocation when memory runs out: trims the device's pools, retries once, and then raises an error that says what
there is.
"""

from __future__ import annotations

from landbridge.device.attr import DeviceAttr
from landbridge.errors import OutOfMemoryError, ScatteredMemoryError
from landbridge.memory.allocators.adaptor import Adaptor
from landbridge.memory.allocators.base import Allocator, Block, Queue, Size, bytes_of
from landbridge.memory.allocators.keepers import trim
from landbridge.memory.allocators.pooled import PooledAllocator


def allocate_or_trim(allocator: Allocator, size: Size, alignment: int, queue: Queue | None = None) -> Block:
    """Returns a block of ``allocator``; when it has none, trims the device's pools and tries once more."""
    try:
        return allocator.allocate(size, alignment, queue)
    except ScatteredMemoryError:  # a trim makes no memory contiguous that the device gives
        raise
    except OutOfMemoryError:
        given_back = trim(allocator.device)
    try:
        return allocator.allocate(size, alignment, queue)
    except OutOfMemoryError as error:
        raise OutOfMemoryError(
            f"{allocator.device} {allocator.scope}: {bytes_of(size)} bytes requested, {_capacity(allocator)}. "
            f"{given_back} unused bytes of its pools were given back first, and still: {error}; free tensors or ask "
            "for less"
        ) from error


def _capacity(allocator: Allocator) -> str:
    """Returns a text of how much memory there is, as far as the pool knows."""
    while isinstance(allocator, Adaptor):
        allocator = allocator.upstream
    if not isinstance(allocator, PooledAllocator):
        free = allocator.device.attr(DeviceAttr.AVAILABLE_MEMORY)
        return f"{'unknown' if free is None else free} free on the device by its own count, none of them in a pool"
    state = allocator.state
    return f"{state.used_bytes} used, {state.free_bytes} free, the largest hole {state.largest_hole}"
