"""``landbridge devices``: the devices there are, with their memory."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from landbridge.cli import arguments as args
from landbridge.cli.output import emit, message, table


def devices(json: args.Json = False) -> None:
    """List the devices of this machine, what is known of each, and each scope of its memory."""
    found, broken = _devices()
    if json:
        emit({"devices": found, "broken": broken})
    else:
        for entry in found:
            attrs = {name: value for name, value in entry["attrs"].items() if name != "features"}
            table(entry["name"], ("fact", "value"), [(name, str(value)) for name, value in attrs.items()])
            columns = ("scope", "host_access", "coherent", "alignment", "capacity", "importable", "exportable")
            table("", columns, [[kind[c] for c in columns] for kind in entry["memory"]])
    for name, reason in broken.items():
        message(f"{name}: {reason}")


def _devices() -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Every instance of every device that loads, described; and the reason for every one that does not."""
    from landbridge.device import registry
    from landbridge.device.attr import DeviceAttr
    from landbridge.errors import LandbridgeError

    found: list[dict[str, Any]] = []
    broken = {}
    for name in registry.names():
        try:
            for device in registry.devices(name):
                attrs = {attr.value: device.attr(attr) for attr in DeviceAttr}
                found.append(
                    {
                        "name": str(device),
                        "attrs": {key: value for key, value in attrs.items() if value is not None},
                        "memory": [asdict(kind) for kind in device.memory_kinds.values()],
                    }
                )
        except LandbridgeError as error:
            broken[name] = str(error)
    return found, broken
