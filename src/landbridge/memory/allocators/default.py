"""The allocator each scope uses unless a caller brings another, and what happens when memory runs out."""

from __future__ import annotations

import os
from threading import Lock

from landbridge.device.device import Device
from landbridge.device.state import DeviceState
from landbridge.errors import OutOfMemoryError
from landbridge.memory.allocators.adaptor import Adaptor
from landbridge.memory.allocators.base import Allocator, Block, Trimmable
from landbridge.memory.allocators.naive import NaiveAllocator
from landbridge.memory.allocators.pooled import PooledAllocator
from landbridge.memory_kind import GLOBAL_SCOPE

_allocators: dict[tuple[DeviceState, str, bool], Allocator] = {}
_lock = Lock()


def _start_anew() -> None:
    """In a child process: pools are made again, because the pages of the old ones are shared with the parent."""
    global _lock
    _lock = Lock()
    _allocators.clear()


os.register_at_fork(after_in_child=_start_anew)


def default_allocator(device: Device, scope: str = "global", *, shared: bool = False) -> Allocator:
    """The process's allocator of ``scope``: pooled where the kind prefers that, else naive.

    ``shared``: of memory that other processes and devices can map.
    """
    key = (device.state, scope or GLOBAL_SCOPE, shared)
    found = _allocators.get(key)
    if found is None:
        kind = device.memory_kind(scope)
        made: Allocator = NaiveAllocator(device, scope, shared=shared)
        if kind.allocators[0] == "pooled" and kind.ndim == 1:
            made = PooledAllocator(made, granule=max(64, kind.alignment, kind.offset_alignment, kind.coherence_granule))
        with _lock:
            found = _allocators.setdefault(key, made)
    return found


def set_default_allocator(allocator: Allocator) -> Allocator:
    """Make ``allocator`` the process's one of its device and scope; returns the one before.

    Blocks go back to the allocator they came from. Around the one in use::

        set_default_allocator(StatisticsAllocator(default_allocator(device)))
    """
    before = default_allocator(allocator.device, allocator.scope)
    with _lock:
        _allocators[allocator.device.state, allocator.scope, False] = allocator
    return before


def trim(device: Device) -> int:
    """Give what the pools of ``device`` hold unused back to it; returns the bytes given back."""
    with _lock:
        pools = [pool for (state, *_), pool in _allocators.items() if state is device.state]
    return sum(pool.trim() for pool in pools if isinstance(pool, Trimmable))


def allocate_or_trim(allocator: Allocator, nbytes: int, alignment: int) -> Block:
    """A block of ``allocator``; when there is none, the device's pools are trimmed and it is asked once more."""
    try:
        return allocator.allocate(nbytes, alignment)
    except OutOfMemoryError:
        given_back = trim(allocator.device)
    try:
        return allocator.allocate(nbytes, alignment)
    except OutOfMemoryError as error:
        raise OutOfMemoryError(
            f"{allocator.device} {allocator.scope}: {nbytes} bytes asked, {_room(allocator)}. {given_back} unused "
            f"bytes of its pools were given back first, and still: {error}; free tensors or ask for less"
        ) from error


def _room(allocator: Allocator) -> str:
    """What a pool has, as far as it knows."""
    while isinstance(allocator, Adaptor):
        allocator = allocator.upstream
    if not isinstance(allocator, PooledAllocator):
        return "none of them kept in a pool"
    free = allocator.free_bytes
    return f"{allocator.reserved_bytes - free} used, {free} free, the largest hole {allocator.largest_hole}"
