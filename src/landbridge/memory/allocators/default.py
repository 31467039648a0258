"""The allocators of the process: by name for each scope, the one a scope uses unless a caller brings another, and what
happens when memory runs out."""

from __future__ import annotations

import os
from threading import Lock

from landbridge.device.device import Device
from landbridge.device.state import DeviceState
from landbridge.errors import InputError, OutOfMemoryError
from landbridge.memory.allocators.adaptor import Adaptor
from landbridge.memory.allocators.base import Allocator, Block, Queue, Size, bytes_of
from landbridge.memory.allocators.keepers import trim
from landbridge.memory.allocators.naive import NaiveAllocator
from landbridge.memory.allocators.pooled import PooledAllocator
from landbridge.memory_kind import MemoryKind, normalize_scope

#: What a scope may be asked to use by name.
ALLOCATOR_NAMES = ("pooled", "naive")

_named: dict[tuple[DeviceState, str, bool, str], Allocator] = {}
_chosen: dict[tuple[DeviceState, str], Allocator] = {}
_lock = Lock()


def _start_anew() -> None:
    """In a child process: pools are made again, because the pages of the old ones are shared with the parent."""
    global _lock
    _lock = Lock()
    _named.clear()
    _chosen.clear()


os.register_at_fork(after_in_child=_start_anew)


def default_allocator(device: Device, scope: str = "global", *, shared: bool = False) -> Allocator:
    """The process's allocator of ``scope``: the one that was set, else pooled where the kind prefers that.

    ``shared``: of memory that other processes and devices can map.
    """
    if not shared and (chosen := _chosen.get((device.state, normalize_scope(scope)))) is not None:
        return chosen
    kind = device.memory_kind(scope)
    return named_allocator(device, scope, kind.allocators[0] if kind.ndim == 1 else "naive", shared=shared)


def named_allocator(device: Device, scope: str, name: str, *, shared: bool = False) -> Allocator:
    """The process's ``"pooled"`` or ``"naive"`` allocator of ``scope``; raises InputError for one it does not allow."""
    key = (device.state, normalize_scope(scope), shared, name)
    found = _named.get(key)
    if found is None:
        kind = device.memory_kind(scope)
        legal = kind.allocators if kind.ndim == 1 else ("naive",)
        if name not in legal:
            raise InputError(
                f"allocator {name!r} asked for scope {kind.scope!r} of {device}; legal: {', '.join(legal)}, or an "
                "Allocator of that scope"
            )
        made: Allocator = NaiveAllocator(device, scope, shared=shared)
        if name == "pooled":
            made = PooledAllocator(made, granule=block_granule(kind))
        with _lock:
            found = _named.setdefault(key, made)
    return found


def block_granule(kind: MemoryKind) -> int:
    """The bytes that blocks of ``kind`` must not share: what it aligns to and what a barrier covers."""
    return max(64, kind.alignment, kind.offset_alignment, kind.coherence_granule)


def set_default_allocator(allocator: Allocator) -> Allocator:
    """Make ``allocator`` the process's one of its device and scope; returns the one before.

    Blocks go back to the allocator they came from. Around the one in use::

        set_default_allocator(StatisticsAllocator(default_allocator(device)))
    """
    before = default_allocator(allocator.device, allocator.scope)
    with _lock:
        _chosen[allocator.device.state, allocator.scope] = allocator
    return before


def allocate_or_trim(allocator: Allocator, size: Size, alignment: int, queue: Queue | None = None) -> Block:
    """A block of ``allocator``; when there is none, the device's pools are trimmed and it is asked once more."""
    try:
        return allocator.allocate(size, alignment, queue)
    except OutOfMemoryError:
        given_back = trim(allocator.device)
    try:
        return allocator.allocate(size, alignment, queue)
    except OutOfMemoryError as error:
        raise OutOfMemoryError(
            f"{allocator.device} {allocator.scope}: {bytes_of(size)} bytes asked, {_room(allocator)}. {given_back} "
            f"unused bytes of its pools were given back first, and still: {error}; free tensors or ask for less"
        ) from error


def _room(allocator: Allocator) -> str:
    """What a scope has, as far as its pool or its kind knows."""
    while isinstance(allocator, Adaptor):
        allocator = allocator.upstream
    if not isinstance(allocator, PooledAllocator):
        capacity = allocator.device.memory_kind(allocator.scope).capacity
        return f"no pool, capacity {'unknown' if capacity is None else capacity}"
    state = allocator.state
    return f"{state.used_bytes} used, {state.free_bytes} free, the largest hole {state.largest_hole}"
