"""``landbridge devices``: the devices there are, whether they work, and their memory."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from landbridge.cli import arguments as args
from landbridge.cli.output import emit, message, table


def devices(
    json: args.Json = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print also what discovery tried.")] = False,
) -> None:
    """List the devices of this machine: a self-test of each, what is known of it, and each scope of its memory."""
    found, broken, tried = _devices()
    if json:
        emit({"devices": found, "broken": broken, **({"tried": tried} if verbose else {})})
        return
    for entry in found:
        reason = entry["self_test"]
        typer.echo(f"{entry['name']}: {'PASS' if reason is None else f'FAIL: {reason}'}")
        attrs = {name: value for name, value in entry["attrs"].items() if name != "features"}
        table("", ("fact", "value"), [(name, str(value)) for name, value in attrs.items()])
        columns = ("scope", "host_access", "coherent", "alignment", "capacity", "importable", "exportable")
        table("", columns, [[kind[c] for c in columns] for kind in entry["memory"]])
    if verbose:
        table("tried", ("name", "plugin", "found"), [(t["name"], t["plugin"], t["found"]) for t in tried])
    for name, reason in broken.items():
        message(f"{name}: {reason}")


def _devices() -> tuple[list[dict[str, Any]], dict[str, str], list[dict[str, str]]]:
    """Every instance of every device that loads, described; why each other does not; and every name tried."""
    from landbridge.device import registry
    from landbridge.errors import LandbridgeError

    found: list[dict[str, Any]] = []
    broken: dict[str, str] = {}
    tried: list[dict[str, str]] = []
    for name in registry.names():
        try:
            instances = [_describe(device) for device in registry.devices(name)]
            outcome = "; ".join([f"{len(instances)} instances", *registry.discovery(name)])
            found += instances
        except Exception as error:  # whatever a plugin raises, the others are listed
            reason = str(error) if isinstance(error, LandbridgeError) else f"{type(error).__name__}: {error}"
            origin = registry.origin(name)
            broken[name] = reason if origin in reason else f"{reason} (from {origin})"
            outcome = f"broken: {type(error).__name__}"
        tried.append({"name": name, "plugin": registry.origin(name), "found": outcome})
    for name, origin in registry.passed_over().items():
        broken[f"{name}, again"] = f"{origin} claims the name of a device of Landbridge's own, and is passed over"
    return found, broken, tried


def _describe(device: Any) -> dict[str, Any]:
    from landbridge.device.attr import DeviceAttr
    from landbridge.testing.self_test import self_test

    attrs = {attr.value: device.attr(attr) for attr in DeviceAttr}
    return {
        "name": str(device),
        "self_test": self_test(device),
        "attrs": {key: value for key, value in attrs.items() if value is not None},
        "memory": [asdict(kind) for kind in device.memory_kinds.values()],
    }
