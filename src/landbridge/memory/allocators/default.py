"""The allocators of the process: the default one of each scope, and those that have a name."""

from __future__ import annotations

import os

from landbridge.device.api import Device
from landbridge.device.state import DeviceState
from landbridge.errors import InputError
from landbridge.memory.allocators.base import Allocator
from landbridge.memory.allocators.memory_cfg import MemoryCfg, check_memory_cfg, choice
from landbridge.memory.allocators.naive import NaiveAllocator
from landbridge.memory.allocators.pooled import PooledAllocator
from landbridge.memory_kind import MemoryKind, normalize_scope
from landbridge.process.locks import new_lock

_named: dict[tuple[DeviceState, str, bool, str], Allocator] = {}
_chosen: dict[tuple[DeviceState, str], Allocator] = {}
_cfg: MemoryCfg = {}
_in_use: dict[tuple[DeviceState, str, bool], Allocator] = {}  # results of default_allocator
_lock = new_lock()


def _start_anew() -> None:
    """Make pools anew in a child process, because it shares the pages of the old ones with the parent."""
    _named.clear()
    _chosen.clear()
    _in_use.clear()


os.register_at_fork(after_in_child=_start_anew)


def default_allocator(device: Device, scope: str = "global", *, shared: bool = False) -> Allocator:
    """Returns the process's allocator of ``scope``: the one that was set, else the one that the memory kind prefers.

    ``shared``: an allocator of memory that other processes and devices can map; never one that was set.
    """
    key = (device.state, scope or "global", shared)
    found = _in_use.get(key)
    if found is None:
        chosen = None if shared else _chosen.get((device.state, normalize_scope(scope)))
        if chosen is None:
            chosen = configured_allocator(_cfg, device, scope, shared=shared)
        found = chosen or named_allocator(device, scope, preferred_allocator(device.memory_kind(scope)), shared=shared)
        with _lock:
            _in_use[key] = found
    return found


def configured_allocator(cfg: MemoryCfg, device: Device, scope: str, *, shared: bool = False) -> Allocator | None:
    """Returns the allocator that a checked ``cfg`` gives ``scope``, None where it names none.

    A name for a whole device, or for all memory, does not apply to scopes that do not allow it. A name for one scope
    that does not allow it raises InputError.
    """
    found = choice(cfg, device, scope)
    if not isinstance(found, str):
        if found is not None and found.device != device:
            raise InputError(
                f"memory_cfg has an allocator of another life of {device}, which was lost; make one of the reopened "
                "device"
            )
        return None if shared else found
    exact = not isinstance(cfg, str) and (str(device), normalize_scope(scope)) in cfg
    if not exact and found not in _legal_names(device.memory_kind(scope)):
        return None
    return named_allocator(device, scope, found, shared=shared)


def named_allocator(device: Device, scope: str, name: str, *, shared: bool = False) -> Allocator:
    """Returns the process's allocator of ``scope`` that is called ``name``; raises InputError where that is not
    allowed.
    """
    key = (device.state, normalize_scope(scope), shared, name)
    found = _named.get(key)
    if found is None:
        kind = device.memory_kind(scope)
        if name not in _legal_names(kind):
            raise InputError(
                f"allocator {name!r} was requested for scope {kind.scope!r} of {device}; legal: "
                f"{', '.join(_legal_names(kind))}, or an Allocator of that scope"
            )
        created: Allocator = NaiveAllocator(device, scope, shared=shared)
        if name == "pooled" and kind.ndim == 1:
            created = PooledAllocator(created, granule=kind.block_granule)
        elif name == "pooled":
            from landbridge.memory.allocators.whole_objects import WholeObjectAllocator

            created = WholeObjectAllocator(created)
        elif name == "size_classes":
            from landbridge.memory.allocators.size_classes import SizeClassAllocator

            created = SizeClassAllocator(created)
        with _lock:
            found = _named.setdefault(key, created)
    return found


def preferred_allocator(kind: MemoryKind) -> str:
    """Returns the name of the allocator that ``kind`` uses by default."""
    return _legal_names(kind)[0]


def _legal_names(kind: MemoryKind) -> tuple[str, ...]:
    return ("naive",) if kind.ndim == 2 else kind.allocators  # the device lays out rows; images are kept whole


def set_default_allocator(allocator: Allocator) -> Allocator:
    """Make ``allocator`` the process's default for its device and scope; returns the one before.

    Blocks go back to the allocator they came from. To wrap the one in use::

    set_default_allocator(StatisticsAllocator(default_allocator(device)))
    """
    before = default_allocator(allocator.device, allocator.scope)
    with _lock:
        _chosen[allocator.device.state, allocator.scope] = allocator
        _in_use.clear()
    return before


def set_memory_cfg(cfg: MemoryCfg) -> MemoryCfg:
    """Make ``cfg`` the process's configuration for allocations from now on; returns the one before.

    ``set_default_allocator`` has precedence over it, and a Session's ``memory_cfg`` over both. Raises InputError for
    what names no allocator or device. A scope that a device does not have, or where the allocator is not legal, raises
    when it is used.
    """
    global _cfg
    checked = check_memory_cfg(cfg)
    with _lock:
        before, _cfg = _cfg, checked
        _in_use.clear()
    return before
