"""The facts that a device reports of itself, as plain values for a report."""

from __future__ import annotations

import inspect
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from landbridge.device import protocols
from landbridge.device.api import Events, Lifecycle, Streams
from landbridge.device.attr import DeviceAttr
from landbridge.device.registry import device as find_device


def device_facts(device_name: str) -> dict[str, Any]:
    """Returns ``device``, ``attributes`` that are not None, ``abilities`` by the names of their Protocols, and
    ``scopes``.

    Facts whose query raises are left out, as tests report that. Raises what ``lb.device`` raises.
    """
    device = find_device(device_name)
    attributes: dict[str, object] = {}
    scopes: dict[str, Any] = {}
    for attr in DeviceAttr:
        with suppress(Exception):
            attributes[attr.value] = device.attr(attr)
    with suppress(Exception):
        scopes = {scope: asdict(kind) for scope, kind in device.memory_kinds.items()}
    return {
        "device": str(device),
        "attributes": {name: value for name, value in attributes.items() if value is not None},
        "abilities": [name for name, protocol in _abilities().items() if device.capability(protocol) is not None],
        "scopes": scopes,
    }


def _abilities() -> dict[str, Any]:
    owned = {
        name: value
        for name, value in vars(protocols).items()
        if inspect.isclass(value) and value.__module__ == protocols.__name__ and getattr(value, "_is_protocol", False)
    }
    return {"Lifecycle": Lifecycle, "Streams": Streams, "Events": Events} | owned
