"""Checks of the options of a Session, made when it is created.

The Session of a program with open dimensions, or of one that is cut, makes further Sessions once sizes are known. It
checks the options in advance, and keeps the device of the thread that made it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from landbridge.device.api import Device
from landbridge.device.protocols import AccessMode
from landbridge.device.stream import current_device
from landbridge.errors import InputError
from landbridge.executable.executable import Executable
from landbridge.memory.allocators.memory_cfg import MemoryCfg
from landbridge.memory_kind import HostAccess, normalize_host_access
from landbridge.vm.arena import ProgramArena
from landbridge.vm.device_binding import bind_devices

#: The least ``memory_limit``, in bytes.
_LEAST_LIMIT = 1 << 20


def checked_options(
    executable: Executable,
    device: Device | str | None = None,
    *,
    devices: Mapping[str, Device | str] | None = None,
    num_threads: int | None = None,
    memory_cfg: MemoryCfg | None = None,
    host_access: HostAccess | AccessMode | None = None,
    memory_limit: int | None = None,
    time_limit: float | None = None,
    arena: ProgramArena | None = None,
) -> dict[str, Any]:
    """Returns the checked options of a Session of ``executable`` by name, with the thread's current device for None.

    Raises InputError for an option that is not legal, including a ``time_limit``, which only ``landbridge.Session``
    takes, and BindError or UnknownDeviceError where ``executable`` does not fit the devices. What depends on sizes is
    not checked, such as how many bytes are needed.
    """
    check_no_time_limit(time_limit)
    checked_threads(num_threads)
    if host_access is not None:
        normalize_host_access(host_access)
    chosen = current_device() if device is None else device
    functions = {"main": replace(executable.main, instructions=())}
    bind_devices(replace(executable, functions=functions), chosen, devices, memory_cfg)
    found = {
        "device": chosen, "devices": devices, "num_threads": num_threads, "memory_cfg": memory_cfg,
        "host_access": host_access, "memory_limit": checked_limit(memory_limit),
    }  # fmt: skip
    return found if arena is None else {**found, "arena": arena}


def check_no_time_limit(limit: object) -> None:
    """Raises InputError where ``limit`` is set: the Sessions behind a limited one do not watch the time."""
    if limit is not None:
        raise InputError(f"time_limit is {limit!r} here; make a landbridge.Session, by its name")


def checked_threads(number: object) -> int | None:
    """Returns ``number``, a ``num_threads``; raises InputError unless it is None or an integer from 1."""
    if number is not None and ((count := _whole(number)) is None or count < 1):
        raise InputError(f"num_threads is {number!r}; legal: None, or a number from 1")
    return _whole(number)


def checked_limit(limit: object) -> int | None:
    """Returns ``limit``, a ``memory_limit``; raises InputError unless it is None or an integer from 1 MiB."""
    if limit is not None and ((nbytes := _whole(limit)) is None or nbytes < _LEAST_LIMIT):
        raise InputError(f"memory_limit is {limit!r}; legal: None, or bytes from {_LEAST_LIMIT:,}")
    return _whole(limit)


def _whole(number: object) -> int | None:
    """Returns ``number`` where it is an integer of Python or numpy, else None."""
    return int(number) if isinstance(number, int | np.integer) and not isinstance(number, bool) else None
