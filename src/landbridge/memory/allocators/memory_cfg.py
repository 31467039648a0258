"""Memory configurations: the allocator of each scope of each device, by name or as an object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from landbridge.device.api import Device
from landbridge.device.name import parse_device_name
from landbridge.errors import InputError
from landbridge.memory.allocators.base import Allocator
from landbridge.memory_kind import normalize_scope
from landbridge.text.did_you_mean import did_you_mean

#: The names of allocators that a scope may use.
ALLOCATOR_NAMES = ("pooled", "size_classes", "naive")

#: One name for all memory, or a map from a device (``"cpu:0"``) or (device, scope) to a name or an Allocator of that
#: scope.
MemoryCfg: TypeAlias = str | Mapping[str | tuple[str, str], str | Allocator]


def check_memory_cfg(cfg: MemoryCfg) -> MemoryCfg:
    """Returns ``cfg`` with device names and scopes spelled in full; raises InputError for what names no allocator or
    device.
    """
    if isinstance(cfg, str):
        return _check_name(cfg)
    if not isinstance(cfg, Mapping):
        raise InputError(f"memory_cfg is {cfg!r}; legal: {_LEGAL}")
    checked: dict[str | tuple[str, str], str | Allocator] = {}
    for key, value in cfg.items():
        name, scope = key if isinstance(key, tuple) and len(key) == 2 else (key, None)
        if not isinstance(name, str) or not isinstance(scope, str | None):
            raise InputError(f"memory_cfg has the key {key!r}; legal: {_LEGAL}")
        device = str(parse_device_name(name))
        if isinstance(value, str):
            _check_name(value)
        elif scope is None or (str(value.device), value.scope) != (device, normalize_scope(scope)):
            raise InputError(
                f"memory_cfg has an allocator of {value.device} {value.scope} for {key!r}; an Allocator serves the "
                "one (device, scope) it was made for"
            )
        checked[device if scope is None else (device, normalize_scope(scope))] = value
    return checked


def choice(cfg: MemoryCfg, device: Device, scope: str) -> str | Allocator | None:
    """Returns what a checked ``cfg`` says of ``scope`` of ``device``, by its most specific entry; None for no entry."""
    if isinstance(cfg, str):
        return cfg
    return cfg.get((str(device), normalize_scope(scope)), cfg.get(str(device)))


def check_used(cfg: MemoryCfg, places: Iterable[tuple[Device, str]]) -> None:
    """Raises InputError for an entry of a checked ``cfg`` that applies to none of ``places``, such as a misspelled
    scope.
    """
    if isinstance(cfg, str):
        return
    exact = {(str(device), normalize_scope(scope)) for device, scope in places}
    for key in cfg:
        if key not in exact and key not in {device for device, _ in exact}:
            used = ", ".join(f"({device!r}, {scope!r})" for device, scope in sorted(exact))
            raise InputError(f"memory_cfg is about {key!r}, which the program does not use; it uses {used}")


def parse_memory_cfg(texts: Sequence[str]) -> MemoryCfg | None:
    """Returns the configuration in ``texts``, as ``naive``, or ``cpu:0=naive`` and ``cpu:0/global=naive``; None for
    none. Raises InputError.
    """
    if not texts:
        return None
    if len(texts) == 1 and "=" not in texts[0]:
        return check_memory_cfg(texts[0])
    cfg: dict[str | tuple[str, str], str | Allocator] = {}
    for text in texts:
        location, equals, name = text.rpartition("=")
        if not equals:
            raise InputError(f"{text!r} is not DEVICE=NAME or DEVICE/SCOPE=NAME, as in cpu:0/global=naive")
        device, slash, scope = location.partition("/")
        cfg[(device, scope) if slash else device] = name
    return check_memory_cfg(cfg)


def _check_name(name: str) -> str:
    if name not in ALLOCATOR_NAMES:
        raise InputError(
            f"no allocator is called {name!r}{did_you_mean(name, ALLOCATOR_NAMES)}; legal: {', '.join(ALLOCATOR_NAMES)}"
        )
    return name


_LEGAL = (
    f"one of {', '.join(ALLOCATOR_NAMES)} for all memory, or a mapping from a device or a (device, scope) to one of "
    "them or to an Allocator, as in {('cpu:0', 'global'): 'naive'}"
)
