"""BindOptions: the options of a Session, checked when it is created.

Programs with open dimensions are bound once sizes are known. Their options are checked in advance, and stay those of
the thread that made the Session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from landbridge.device.api import Device
from landbridge.device.protocols import AccessMode
from landbridge.device.stream import current_device
from landbridge.errors import InputError
from landbridge.executable.executable import Executable
from landbridge.memory.allocators.memory_cfg import MemoryCfg
from landbridge.memory_kind import HostAccess, normalize_host_access
from landbridge.records import record
from landbridge.vm.device_binding import bind_devices

#: The least ``memory_limit``, in bytes.
_LEAST_LIMIT = 1 << 20


@record(frozen=True, slots=True, eq=False)
class BindOptions:
    """The options of a Session, as its constructor takes them. ``device`` is the current one of the thread where none
    was given; ``memory_limit`` is in bytes.
    """

    device: Device | str
    devices: Mapping[str, Device | str] | None = None
    num_threads: int | None = None
    memory_cfg: MemoryCfg | None = None
    host_access: HostAccess | None = None
    memory_limit: int | None = None


def checked_options(
    device: Device | str | None,
    devices: Mapping[str, Device | str] | None,
    num_threads: object,
    memory_cfg: MemoryCfg | None,
    host_access: HostAccess | AccessMode | None,
    memory_limit: object,
) -> BindOptions:
    """Returns the options of a Session, with the thread's current device for None.

    Raises InputError for one that is not legal for any program and any devices.
    """
    return BindOptions(
        current_device() if device is None else device,
        devices,
        _checked_threads(num_threads),
        memory_cfg,
        None if host_access is None else normalize_host_access(host_access),
        _checked_limit(memory_limit),
    )


def check_devices(executable: Executable, options: BindOptions) -> None:
    """Raises BindError or UnknownDeviceError where ``executable``, whose sizes are not known yet, does not fit the
    devices.

    What depends on sizes is not checked, such as how many bytes are needed.
    """
    functions = {"main": replace(executable.main, instructions=())}
    bind_devices(replace(executable, functions=functions), options.device, options.devices, options.memory_cfg)


def check_no_time_limit(limit: object) -> None:
    """Raises InputError where ``limit`` is set: only ``landbridge.Session`` itself makes Sessions that watch the
    time.
    """
    if limit is not None:
        raise InputError(f"time_limit is {limit!r} here; make a landbridge.Session, by its name")


def _checked_threads(number: object) -> int | None:
    if number is not None and ((count := _whole(number)) is None or count < 1):
        raise InputError(f"num_threads is {number!r}; legal: None, or a number from 1")
    return _whole(number)


def _checked_limit(limit: object) -> int | None:
    if limit is not None and ((nbytes := _whole(limit)) is None or nbytes < _LEAST_LIMIT):
        raise InputError(f"memory_limit is {limit!r}; legal: None, or bytes from {_LEAST_LIMIT:,}")
    return _whole(limit)


def _whole(number: object) -> int | None:
    """Returns ``number`` where it is an integer of Python or numpy, else None."""
    return int(number) if isinstance(number, int | np.integer) and not isinstance(number, bool) else None
