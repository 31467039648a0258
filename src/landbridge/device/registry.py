"""The registry of devices by name: entry points of the group ``landbridge.devices``, and devices registered in Python.

An entry point names a subclass of DeviceAPI, or a DeviceWrapper. A plugin that breaks the contract makes requests for
its own device fail, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from landbridge.device.answers import answering, count_of, texts
from landbridge.device.api import DEVICE_API_VERSION, Device, DeviceAPI
from landbridge.device.lifecycle import open_once
from landbridge.device.name import DeviceName, parse_device_name
from landbridge.device.protocols import Discovery
from landbridge.errors import (
    DeviceError,
    DeviceIndexError,
    DeviceNameTakenError,
    DeviceTypeTakenError,
    DeviceVersionError,
    UnknownDeviceError,
)
from landbridge.plugins import Plugins
from landbridge.process.sanitizing import sanitize_requested

#: Codes of ``DLDeviceType`` in dlpack.h 1.1; a device with one of these names has that code.
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
_FIRST_OWN_TYPE = 4096  # far above kDLExtDev and whatever DLPack may add


@runtime_checkable
class DeviceWrapper(Protocol):
    """A plugin that is requested as ``name(inner)``: its class has a method that makes a DeviceAPI around another
    device.
    """

    def wrap(self, inner: Device) -> DeviceAPI: ...


_types: dict[int, str] = {}
_devices: dict[str, Device] = {}


def device(name: str | Device, index: int | None = None, **options: object) -> Device:
    """Returns the device called ``name`` (``"cpu"``, ``"opencl:1"``, ``"sanitize(opencl:0)"``), opened; a Device is
    returned as it is.

    ``index`` may be given with a name that has none. ``options`` are passed to the device's ``open``: it is opened at
    the first request, and a later request with other options raises InputError. Raises UnknownDeviceError with the most
    similar names, DeviceIndexError, DeviceNameTakenError, DeviceTypeTakenError or DeviceVersionError, and DeviceError
    when the plugin itself fails.
    """
    if not isinstance(name, str | Device):
        raise UnknownDeviceError(f"a device is named by text, as in 'cpu' or 'opencl:1', not {type(name).__name__}")
    found = name if isinstance(name, Device) else _known(name if index is None else f"{name}:{index}")
    if options or not (found.state.is_open or found.state.is_over):
        open_once(found.api, found.state, found.index, options)
    return found


def _known(key: str) -> Device:
    """Returns a handle of the present life of the device called ``key``, which may not be open."""
    found = _devices.get(key)
    if found is None or found.state.is_over:
        parsed = parse_device_name(key)
        with _plugins.lock:
            found = _devices.get(key)
            if found is None or found.state.is_over:
                found = _devices[key] = _find(parsed)
    return found


def names() -> list[str]:
    """Returns the names of all devices, sorted; no plugin is imported."""
    return [name for name in _plugins.names() if name != "sanitize"]


def origin(name: str) -> str:
    """Returns the origin of the device called ``name``: module and class, and the distribution if it is installed."""
    return _plugins.origin(name)


def passed_over() -> dict[str, str]:
    """Returns the origins of plugins that claim a name of Landbridge's own devices, by name; they are not used."""
    return _plugins.passed_over()


def devices(name: str) -> list[Device]:
    """Returns every instance of the device called ``name``, possibly none; each is opened at its first use."""
    return [_known(f"{name}:{index}") for index in range(count_of(_api(name)))]


def discovery(name: str) -> Sequence[str]:
    """Returns what the device called ``name`` reports of its search for instances, one line for each finding."""
    return _diagnostics(_api(name))


def register(api: DeviceAPI) -> DeviceAPI:
    """Register ``api`` under ``api.name``; raises as ``device`` does for a plugin."""
    _check(api, type(api).__qualname__, api.name)
    with _plugins.lock:
        _plugins.register(api.name, api, _spelled(api))
        try:
            _claim_type(api)
        except DeviceTypeTakenError:
            _plugins.unregister(api.name)
            raise
    return api


def unregister(name: str) -> None:
    """Remove the device that was registered as ``name``, if there is one. Its handles stay usable."""
    with _plugins.lock:
        api = _plugins.unregister(name)
        for code in [code for code, holder in _types.items() if holder == name]:
            del _types[code]
        for key in [key for key, known in _devices.items() if known.api is api or known.name == name]:
            del _devices[key]


def device_type(api: DeviceAPI) -> int:
    """Returns the DLPack code of ``api``: its own, or the one that this process assigned."""
    for code, name in _types.items():
        if name == api.name:
            return code
    raise UnknownDeviceError(f"{_spelled(api)} is not registered; call landbridge.device.registry.register(api)")


def device_of_type(code: int, index: int) -> Device:
    """Returns the device with the DLPack pair ``(code, index)``; raises UnknownDeviceError when there is none."""
    with _plugins.lock:
        name = _types.get(code) or next((n for n, c in DLPACK_DEVICE_TYPES.items() if c == code), None)
    if name is None:
        raise UnknownDeviceError(f"no device has the DLPack type {code}; known: {sorted(_types)}")
    return device(name, index)


def _find(parsed: DeviceName) -> Device:
    if parsed.inner is not None:
        inner = _find(parsed.inner)
        wrapper = _plugins.get(parsed.name)
        if not isinstance(wrapper, DeviceWrapper):
            raise UnknownDeviceError(f"device {parsed.name!r} wraps no other device; ask for {parsed.name!r} alone")
        api = wrapper.wrap(inner)
        _check(api, origin(parsed.name), None)
    else:
        api = _api(parsed.name)
    count = count_of(api)
    if parsed.index >= count:
        legal = f"0 to {count - 1}" if count else f"none: {'; '.join(_diagnostics(api)) or _NOTHING_FOUND}"
        raise DeviceIndexError(f"device {parsed} does not exist; legal indices of {parsed.name!r}: {legal}")
    if parsed.inner is None and sanitize_requested():
        wrapper = _plugins.get("sanitize")
        assert isinstance(wrapper, DeviceWrapper)
        api = wrapper.wrap(Device(api, parsed.index))
    return Device(api, parsed.index)


def _diagnostics(api: DeviceAPI) -> Sequence[str]:
    with answering(api.name, "discovery()"):
        found = api.discovery() if isinstance(api, Discovery) else ()
    return texts(found, api.name, "discovery", "lines")


def _api(name: str) -> DeviceAPI:
    plugin = _plugins.get(name)
    if not isinstance(plugin, DeviceAPI):
        raise DeviceError(f"device {name!r} ({origin(name)}) wraps another device; ask for {name}(cpu), or another")
    return plugin


def _started(name: str, loaded: object, origin: str) -> DeviceAPI | DeviceWrapper:
    """Returns the plugin that an entry point names, instantiated where it is a class of devices."""
    if isinstance(loaded, type) and issubclass(loaded, DeviceAPI):
        _check(loaded, origin, name)
        try:
            api = loaded()
        except Exception as error:
            raise DeviceError(f"device {name!r} ({origin}) failed to start: {type(error).__name__}: {error}") from error
        _claim_type(api)
        return api
    if isinstance(loaded, DeviceWrapper):
        return loaded
    raise DeviceError(f"{origin}, the plugin of device {name!r}, is not a subclass of DeviceAPI: {loaded!r}")


def _check(api: type[DeviceAPI] | DeviceAPI, holder: str, name: str | None) -> None:
    """Raises for a plugin of another version of the contract, or one whose name is another."""
    declared = getattr(api, "api_version", None)
    if declared != DEVICE_API_VERSION:
        raise DeviceVersionError(
            f"{holder} was written for DEVICE_API_VERSION {declared}; this Landbridge has {DEVICE_API_VERSION}: "
            "install a version of the plugin that matches"
        )
    if name is not None and getattr(api, "name", None) != name:
        raise DeviceError(f"{holder} calls itself {getattr(api, 'name', None)!r}; its entry point says {name!r}")


def _claim_type(api: DeviceAPI) -> None:
    """Assign ``api`` its DLPack code; raises DeviceTypeTakenError when another device has it."""
    code = api.device_type if api.device_type is not None else DLPACK_DEVICE_TYPES.get(api.name)
    if code is None:
        code = max(_FIRST_OWN_TYPE, *(known + 1 for known in _types)) if _types else _FIRST_OWN_TYPE
    owner = _types.get(code) or next((n for n, c in DLPACK_DEVICE_TYPES.items() if c == code), api.name)
    if owner != api.name:
        raise DeviceTypeTakenError(
            f"device {api.name!r} ({_spelled(api)}) claims the DLPack type {code}, which device {owner!r} has; "
            "state device_type = None to get a free one"
        )
    _types[code] = api.name


def _spelled(api: DeviceAPI) -> str:
    return f"{type(api).__module__}:{type(api).__qualname__}"


_plugins: Plugins[DeviceAPI | DeviceWrapper] = Plugins(
    "landbridge.devices",
    "device",
    {
        "cma": "landbridge.devices.cma:CmaDeviceAPI",
        "cpu": "landbridge.devices.cpu:CpuDeviceAPI",
        "opencl": "landbridge.devices.opencl:OpenCLDeviceAPI",
        "sanitize": "landbridge.sanitizer:Sanitize",
        "sim:board": "landbridge.testing.sim_board:SimBoardDeviceAPI",
        "sim:lazy": "landbridge.testing.sim_lazy:SimLazyDeviceAPI",
        "sim:scratch": "landbridge.testing.sim_scratch:SimScratchDeviceAPI",
        "vulkan": "landbridge.devices.vulkan:VulkanDeviceAPI",
        "wasm": "landbridge.devices.wasm:WasmDeviceAPI",
    },
    _started,
    DeviceError,
    unknown=UnknownDeviceError,
    taken=DeviceNameTakenError,
)
