"""``landbridge devices``: lists the devices of this machine, whether they work, and their memory."""

from __future__ import annotations

from dataclasses import asdict
from textwrap import TextWrapper
from typing import Annotated, Any

from landbridge.cli import arguments as args
from landbridge.cli.options import CliOption
from landbridge.cli.output import emit, line, lines, message, table

#: The exit code where something of a memory that is checked is not as it should be.
EXIT_FAILED = 3
_LINES = TextWrapper(79, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False, break_long_words=False)


#: Columns of the table of memory, and the facts in them: together no wider than a terminal of 80.
_COLUMNS = {"scope": "scope", "host": "host_access", "coherent": "coherent", "alignment": "alignment",
            "capacity": "capacity", "import": "importable", "export": "exportable"}  # fmt: skip


def devices(
    json: args.Json = False,
    verbose: Annotated[bool, CliOption("--verbose", "-v", help="Print also what discovery tried.")] = False,
    check: Annotated[
        str | None,
        CliOption(
            metavar="DEVICE",
            help="Take some of each memory of DEVICE, and say what holds of it.",
            completer=args.complete_devices,
        ),
    ] = None,
) -> None:
    """List the devices of this machine: a self-test of each, what is known of it, and each scope of its memory."""
    if check is not None:
        _check(check, json=json)
        return
    found, broken, tried = described_devices()
    if json:
        absent = {e["name"]: e["looked_for"] for e in tried if not e["instances"] and e["name"] not in broken}
        emit({"devices": found, "absent": absent, "broken": broken, **({"tried": tried} if verbose else {})})
        return
    for entry in found:
        reason = entry["self_test"]
        line(f"{entry['name']}: {'PASS' if reason is None else f'FAIL: {reason}'}")
        attrs = {name: value for name, value in entry["attrs"].items() if name != "features"}
        table("", ("fact", "value"), [(name, str(value)) for name, value in attrs.items()])
        table("", list(_COLUMNS), [[kind[field] for field in _COLUMNS.values()] for kind in entry["memory"]])
    if verbose:
        for entry in tried:
            line(f"{entry['name']} of {entry['plugin']}: {entry['found']}")
            for text in entry["looked_for"]:
                lines(_LINES.fill(text))
    else:
        for entry in tried:
            if not entry["instances"] and entry["name"] not in broken:
                lines(_LINES.fill(f"{entry['name']}: none; {_why_none(entry['looked_for'])}").lstrip())
    for name, reason in broken.items():
        message(f"{name}: {reason}")


def _why_none(looked_for: list[str]) -> str:
    """Returns the one thing that was looked for, or where such things are listed."""
    return looked_for[0] if len(looked_for) == 1 else "landbridge devices --verbose says what was looked for"


def _check(name: str, *, json: bool) -> None:
    from landbridge.device import registry
    from landbridge.testing.memory_check import check_memory

    device = registry.device(name)
    found = list(check_memory(device))
    if json:
        emit({"device": str(device), "findings": [asdict(finding) for finding in found]})
    else:
        for scope in dict.fromkeys(finding.scope for finding in found):
            line(f"{device} {scope}")
            for finding in found:
                if finding.scope == scope:
                    lines(_LINES.fill(f"{'FAIL ' if finding.failed else ''}{finding.subject}: {finding.outcome}"))
    if any(finding.failed for finding in found):
        raise SystemExit(EXIT_FAILED)


def described_devices() -> tuple[list[dict[str, Any]], dict[str, str], list[dict[str, Any]]]:
    """Returns a description of every instance of every device that loads; why each other does not; and every name
    tried.
    """
    from landbridge.device import registry
    from landbridge.errors import LandbridgeError

    found: list[dict[str, Any]] = []
    broken: dict[str, str] = {}
    tried: list[dict[str, Any]] = []
    for name in registry.names():
        try:
            instances = [_describe(device) for device in registry.devices(name)]
            outcome, looked_for = (
                f"{len(instances)} instance{'s' * (len(instances) != 1)}",
                list(registry.discovery(name)),
            )
            found += instances
        except Exception as error:  # whatever a plugin raises, the other devices are listed
            reason = str(error) if isinstance(error, LandbridgeError) else f"{type(error).__name__}: {error}"
            origin = registry.origin(name)
            broken[name] = reason if origin in reason else f"{reason} (from {origin})"
            outcome, looked_for, instances = f"broken: {type(error).__name__}", [], []
        tried.append(
            {
                "name": name,
                "plugin": registry.origin(name),
                "found": outcome,
                "instances": len(instances),
                "looked_for": looked_for,
            }
        )
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
