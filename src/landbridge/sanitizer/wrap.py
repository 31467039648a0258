"""Sanitize: the wrapper that ``sanitize(...)`` names, and the class of its device, which has exactly the abilities of
the inner device.
"""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

from landbridge.device import api as device_api
from landbridge.device import protocols
from landbridge.device.api import Device, DeviceAPI
from landbridge.device.registry import device
from landbridge.process.locks import new_lock
from landbridge.sanitizer import checked
from landbridge.sanitizer.findings import untold
from landbridge.sanitizer.order import Order
from landbridge.sanitizer.sanitized import SanitizedDevice

_wrapped: WeakKeyDictionary[DeviceAPI, SanitizedDevice] = WeakKeyDictionary()
_lock = new_lock()
_order = Order()


class Sanitize:
    """The plugin ``sanitize``."""

    @classmethod
    def wrap(cls, inner: Device) -> DeviceAPI:
        """Returns all instances of the device of ``inner``, sanitized; the same object for each, and itself if it is
        sanitized.
        """
        with _lock:
            if isinstance(inner.api, SanitizedDevice):
                return inner.api
            found = _wrapped.get(inner.api)
            if found is None:
                found = _wrapped[inner.api] = _class_for(inner.api)(inner.api, _host(inner), _order)
            return found


def check_all() -> None:
    """Checks every redzone and all freed memory of all sanitized devices; also done when the process ends."""
    gc.collect()
    for wrapped in list(_wrapped.values()):
        wrapped.spaces.check_all()


def _at_exit() -> None:
    check_all()
    for found in untold():
        print(found, file=sys.stderr)


def _host(inner: Device) -> Device:
    """Returns the CPU without a sanitizer."""
    if inner.name == "cpu":
        return inner
    host = device("cpu")
    return host.api.inner_device(host.index) if isinstance(host.api, SanitizedDevice) else host


def _class_for(api: DeviceAPI) -> type[SanitizedDevice]:
    """Returns SanitizedDevice with the methods of each Protocol that ``api`` has: checked ones, else translating
    ones.
    """
    methods: dict[str, object] = {
        name: getattr(checked, name, None) or _translated(name)
        for protocol in _protocols()
        if isinstance(api, protocol)
        for name in vars(protocol)
        if not name.startswith("_") and callable(getattr(protocol, name))
    }
    names = "name", "device_type", "api_version", "survives_fork", "contiguous_by_default"
    declared = {name: getattr(api, name) for name in names}
    return type("Sanitized" + type(api).__name__, (SanitizedDevice,), methods | declared)


def _protocols() -> Iterator[Any]:
    for module in (protocols, device_api):
        for value in vars(module).values():
            if isinstance(value, type) and getattr(value, "_is_runtime_protocol", False):
                yield value


def _translated(name: str) -> Callable[..., object]:
    def call(self: SanitizedDevice, *args: Any, **options: Any) -> object:
        return self.outer(getattr(self.inner, name)(*self.within(args), **self.within(options)))

    call.__name__ = name
    call.__doc__ = "As the inner device's."
    return call


atexit.register(_at_exit)
