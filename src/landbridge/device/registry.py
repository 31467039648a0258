"""Devices by name: entry points of the group ``landbridge.devices``, loaded when first asked for.

A plugin that cannot be imported, or does not keep the contract, breaks the request for its own device and
nothing else. The host's own device is found without reading the installed plugins, which takes longer than a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from landbridge.device.api import DEVICE_API_VERSION, DeviceAPI
from landbridge.device.device import Device
from landbridge.device_name import DeviceName, parse_device_name
from landbridge.errors import (
    DeviceError,
    DeviceIndexError,
    DeviceNameTakenError,
    DeviceTypeTakenError,
    DeviceVersionError,
    UnknownDeviceError,
)
from landbridge.locks import new_lock

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "landbridge.devices"

# Also in this package's own entry points; here because a source tree that is not installed has none.
_BUILT_IN = {
    "cpu": "landbridge.devices.cpu:CpuDeviceAPI",
    "opencl": "landbridge.devices.opencl:OpenCLDeviceAPI",
    "sim:lazy": "landbridge.testing.sim_lazy:SimLazyDeviceAPI",
    "sim:scratch": "landbridge.testing.sim_scratch:SimScratchDeviceAPI",
    "vulkan": "landbridge.devices.vulkan:VulkanDeviceAPI",
}

#: Codes of ``DLDeviceType`` in dlpack.h 1.1; a device with one of these names keeps the code.
DLPACK_DEVICE_TYPES = {
    "cpu": 1,
    "cuda": 2,
    "cuda_host": 3,
    "opencl": 4,
    "vulkan": 7,
    "metal": 8,
    "vpi": 9,
    "rocm": 10,
    "rocm_host": 11,
    "ext_dev": 12,
    "cuda_managed": 13,
    "oneapi": 14,
    "webgpu": 15,
    "hexagon": 16,
    "maia": 17,
    "trn": 18,
}
_NOTHING_FOUND = "no such hardware or driver was found"
_FIRST_OWN_TYPE = 4096  # far above kDLExtDev and whatever DLPack adds next


@runtime_checkable
class DeviceWrapper(Protocol):
    """A plugin that is asked for as ``name(inner)``: a class with this method makes the API around a device."""

    def wrap(self, inner: Device) -> DeviceAPI: ...


_lock = new_lock()
_apis: dict[str, DeviceAPI] = {}
_types: dict[int, str] = {}
_devices: dict[str, Device] = {}
_scanned: dict[str, list[EntryPoint]] | None = None


def device(name: str | Device, index: int | None = None) -> Device:
    """The device called ``name`` (``"cpu"``, ``"opencl:1"``, ``"sanitize(opencl:0)"``); a Device is returned as it is.

    ``index`` may be given beside a name that has none. Raises UnknownDeviceError with the nearest names,
    DeviceIndexError, DeviceNameTakenError, DeviceTypeTakenError or DeviceVersionError, and DeviceError when the
    plugin itself fails.
    """
    if isinstance(name, Device):
        return name
    key = name if index is None else f"{name}:{index}"
    found = _devices.get(key)
    if found is None:
        parsed = parse_device_name(key)
        with _lock:
            found = _devices.setdefault(key, _find(parsed))
    return found


def forget(lost: Device) -> None:
    """Have the next request for the instance make a new handle."""
    with _lock:
        for key in [key for key, known in _devices.items() if known == lost]:
            del _devices[key]


def names() -> list[str]:
    """Every device that can be asked for, sorted; no plugin is imported."""
    with _lock:
        return sorted({*_BUILT_IN, *_apis, *_plugins()})


def origin(name: str) -> str:
    """Where the device called ``name`` comes from: module and class, and the distribution when it is installed."""
    with _lock:
        return " and ".join(map(_place, _plugins().get(name, []))) or _holder(name)


def devices(name: str) -> list[Device]:
    """Every instance of the device called ``name``, which may be none."""
    with _lock:
        api = _api(name)
    return [device(name, index) for index in range(api.count())]


def discovery(name: str) -> Sequence[str]:
    """What the device called ``name`` has to tell of looking for its instances, a line for each thing."""
    with _lock:
        return _diagnostics(_api(name))


def register(api: DeviceAPI) -> DeviceAPI:
    """Make ``api`` known from Python, under ``api.name``; raises as ``device`` does for a plugin."""
    _check(api, type(api).__qualname__, api.name)
    with _lock:
        if api.name in {*_apis, *_BUILT_IN, *_plugins()}:
            raise DeviceNameTakenError(
                f"device name {api.name!r} of {_spelled(api)} is taken by {_holder(api.name)}; choose another name"
            )
        return _admit(api)


def unregister(name: str) -> None:
    """Forget the device that was registered as ``name``; nothing happens if there is none. Handles stay usable."""
    with _lock:
        api = _apis.pop(name, None)
        for code in [code for code, holder in _types.items() if holder == name]:
            del _types[code]
        for key in [key for key, known in _devices.items() if known.api is api]:
            del _devices[key]


def device_type(api: DeviceAPI) -> int:
    """The DLPack code of ``api``: its own, or the one this process gave it."""
    for code, name in _types.items():
        if name == api.name:
            return code
    raise UnknownDeviceError(f"{_spelled(api)} is not registered; call landbridge.device.registry.register(api)")


def device_of_type(code: int, index: int) -> Device:
    """The device with the DLPack pair ``(code, index)``; raises UnknownDeviceError when there is none."""
    with _lock:
        name = _types.get(code) or next((n for n, c in DLPACK_DEVICE_TYPES.items() if c == code), None)
    if name is None:
        raise UnknownDeviceError(f"no device has the DLPack type {code}; known: {sorted(_types)}")
    return device(name, index)


def _find(parsed: DeviceName) -> Device:
    if parsed.inner is not None:
        inner = _find(parsed.inner)
        wrapper = _load(parsed.name)
        if not isinstance(wrapper, DeviceWrapper):
            raise UnknownDeviceError(f"device {parsed.name!r} wraps no other device; ask for {parsed.name!r} alone")
        api = wrapper.wrap(inner)
        _check(api, _holder(parsed.name), None)
    else:
        api = _api(parsed.name)
    count = api.count()
    if parsed.index >= count:
        legal = f"0 to {count - 1}" if count else f"none: {'; '.join(_diagnostics(api)) or _NOTHING_FOUND}"
        raise DeviceIndexError(f"device {parsed} does not exist; legal indices of {parsed.name!r}: {legal}")
    return Device(api, parsed.index)


def _diagnostics(api: DeviceAPI) -> Sequence[str]:
    from landbridge.device.protocols import Discovery

    return api.discovery() if isinstance(api, Discovery) else ()


def _api(name: str) -> DeviceAPI:
    if (known := _apis.get(name)) is not None:
        return known
    plugin = _load(name)
    if not (isinstance(plugin, type) and issubclass(plugin, DeviceAPI)):
        raise DeviceError(f"{_holder(name)}, the plugin of device {name!r}, is no subclass of DeviceAPI: {plugin!r}")
    _check(plugin, _holder(name), name)
    try:
        api = plugin()
    except Exception as error:
        raise DeviceError(f"device {name!r} ({_holder(name)}) failed to start: {error}") from error
    return _admit(api)


def _load(name: str) -> object:
    """The object that the plugin called ``name`` names."""
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        return getattr(import_module(module), attribute)
    points = _plugins().get(name)
    if not points:
        from difflib import get_close_matches

        near = get_close_matches(name, names(), n=3, cutoff=0.5)
        hint = f"; did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
        raise UnknownDeviceError(f"no device is called {name!r}{hint} Known: {', '.join(names())}")
    if len(points) > 1:
        raise DeviceNameTakenError(
            f"device name {name!r} is claimed by {' and by '.join(_place(p) for p in points)}; uninstall one of them"
        )
    try:
        return points[0].load()
    except Exception as error:
        raise DeviceError(f"the plugin of device {name!r}, {_place(points[0])}, does not import: {error}") from error


def _plugins() -> dict[str, list[EntryPoint]]:
    """The installed plugins by name, read once; this package's own are left out."""
    global _scanned
    if _scanned is None:
        from importlib.metadata import entry_points

        _scanned = {}
        for point in entry_points(group=GROUP):
            known = _scanned.setdefault(point.name, [])
            if _BUILT_IN.get(point.name) != point.value and point not in known:
                known.append(point)
        _scanned = {name: points for name, points in _scanned.items() if points}
    return _scanned


def _check(api: type[DeviceAPI] | DeviceAPI, holder: str, name: str | None) -> None:
    """Reject a plugin of another version of the contract, or one that calls itself something else."""
    stated = getattr(api, "api_version", None)
    if stated != DEVICE_API_VERSION:
        raise DeviceVersionError(
            f"{holder} was written for DEVICE_API_VERSION {stated}; this Landbridge has {DEVICE_API_VERSION}: "
            "install a version of the plugin that matches"
        )
    if name is not None and getattr(api, "name", None) != name:
        raise DeviceError(f"{holder} calls itself {getattr(api, 'name', None)!r}; its entry point says {name!r}")


def _admit(api: DeviceAPI) -> DeviceAPI:
    code = api.device_type if api.device_type is not None else DLPACK_DEVICE_TYPES.get(api.name)
    if code is None:
        code = max(_FIRST_OWN_TYPE, *(known + 1 for known in _types)) if _types else _FIRST_OWN_TYPE
    owner = _types.get(code) or next((n for n, c in DLPACK_DEVICE_TYPES.items() if c == code), api.name)
    if owner != api.name:
        raise DeviceTypeTakenError(
            f"device {api.name!r} ({_spelled(api)}) claims the DLPack type {code}, which is {owner!r}'s; "
            "state device_type = None to get a free one"
        )
    _types[code] = api.name
    _apis[api.name] = api
    return api


def _holder(name: str) -> str:
    if name in _apis:
        return _spelled(_apis[name])
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    return " and ".join(_place(point) for point in _plugins().get(name, [])) or repr(name)


def _place(point: EntryPoint) -> str:
    return f"{point.value} of {point.dist.name}" if point.dist is not None else point.value


def _spelled(api: DeviceAPI) -> str:
    return f"{type(api).__module__}:{type(api).__qualname__}"
