"""The table of docs/device-contract.md that says who calls each method of a device, and when."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import landbridge
from landbridge.device import api, protocols
from landbridge.device.lifecycle import Lifecycle
from landbridge.device.memory_provider import ProvidedMemory

ROOT = Path(landbridge.__file__).parent
#: The runtime is the rest: devices and what devices share, tests of devices, the device around a device.
_NO_RUNTIME = ("devices/", "testing/", "sanitizer/", "cli/device_template/", "device/checks.py")
#: What the runtime calls a device, or what a device made.
_DEVICES = {
    "api",
    "providers",
    "sources",
    "_api",
    "able",
    "_owned",
    "_shared",
    "event",
    "streams",
    "events",
    "recorder",
    "by_events",
    "peer",
    "host",
    "names",
}

PROTOCOLS: tuple[type, ...] = (
    api.DeviceAPI,
    Lifecycle,
    api.Suspension,
    api.Streams,
    api.Events,
    api.Event,
    api.EventFile,
    *(
        value
        for value in vars(protocols).values()
        if getattr(value, "_is_protocol", False) and value.__module__ == protocols.__name__
    ),
    ProvidedMemory,
)

#: When the runtime calls a method; empty: never, it is there for applications.
WHEN = {
    "DeviceAPI.count": "devices are asked for or listed",
    "DeviceAPI.get_attr": "`device.attr(...)`, `landbridge devices`",
    "DeviceAPI.memory_kinds": "once for each handle",
    "DeviceAPI.alloc_data_space": "an allocator needs memory: a Tensor, planned memory of a Session, a pool's chunk",
    "DeviceAPI.free_data_space": "the last use of it is done, or a pool is trimmed",
    "DeviceAPI.copy_data_from_to": "a copy has an end on the device; in rows, for each row",
    "Lifecycle.open": "somebody asks for the instance first, and in `reopen()`",
    "Lifecycle.close": "in `reopen()`, and at exit",
    "Lifecycle.reset": "`device.reset()`",
    "Suspension.suspend": "`device.suspend()`, after all work is done",
    "Suspension.resume": "`device.resume()`",
    "Streams.create_stream": "`device.create_stream()`; a recording needs a stream of its own",
    "Streams.free_stream": "nobody refers to the stream any more; a recording is made",
    "Streams.set_stream": "a `with lb.set_stream(...)` begins and ends",
    "Streams.stream_sync": "`synchronize()` without a timeout",
    "Streams.sync_stream_from_to": "`stream.wait_for(other)`",
    "Events.record_event": "`stream.record()`; `synchronize(timeout)`, and without one where there are no streams",
    "Events.wait_event": "`stream.wait_for(event)`",
    "Events.elapsed_ms": "`device.elapsed_ms(start, end)`",
    "Event.query": "memory is wanted that the work may still use; before an event's file is polled",
    "Event.synchronize": "the work must be done: at the end of a run, before a host view, before memory is given back",
    "EventFile.fileno": "an Event is waited for",
    "Discovery.discovery": "`landbridge devices`, and for the error where an instance is not there",
    "WorkspaceMemory.alloc_workspace": "a Session is made whose kernels need scratch",
    "WorkspaceMemory.free_workspace": "such a Session is gone, or the workspace is trimmed",
    "HostMemory.host_pointer": "the host needs an address: of a view, an export, an operand of a kernel on the CPU",
    "SharedMemory.alloc_shared_space": "memory is asked for that is to be exported",
    "HostBarriers.begin_host_access": "the host is about to look at what the device wrote",
    "EventBarriers.begin_host_access_after": "as `begin_host_access`, in place of it",
    "HostBarriers.end_host_access": "the device is about to use what the host wrote",
    "MemoryImport.import_memory": "memory of others is bound or made a Tensor without a copy, once for each range",
    "MemoryImport.release_import": "the owner of the memory is gone, or nobody uses the import",
    "MemoryExport.export_fd": "`lb.export_fd`",
    "ImportSources.import_source": "memory is allocated",
    "ProvidedMemory.memory_provider": "memory is allocated",
    "PeerCopy.can_copy": "the ends of a copy lie on two devices",
    "Addresses.device_address": "addresses are asked for, or checked when memory is bound",
    "AcquiredScopes.acquired_scopes": "a Session is made",
    "AcquiredScopes.acquire_scope": "a run begins that uses the scope, or `session.hold_scopes()`",
    "AcquiredScopes.release_scope": "such a run or its `with` ends, however it does",
    "NdSpaces.alloc_data_space_nd": "a Tensor or planned memory lies in a scope of rows",
    "DeviceModules.load_module": "a Session or Module with kernels of the device is made, once for each image",
    "DeviceModules.launch": "a run reaches a kernel of the device, or a recording is made",
    "ModuleFormats.module_formats": "before `load_module`, and in `Target.from_device`",
    "Recording.begin_record": "a step of several launches is run for the first time",
    "Recording.end_record": "after these launches",
    "Recording.replay": "later runs of the step",
    "ExternalFences.wait_fence": "`session.wait_for(fence)`, `landbridge.device.fences.wait_for_fence`",
    "ExternalFences.signal_fence": "`landbridge.device.fences.fence_of`",
    "TargetFacts.target_properties": "`Target.from_device`",
}


def caller_table() -> str:
    """One row for each method of DeviceAPI and of each Protocol."""
    found = callers()
    rows = ["| method | caller, in `landbridge/` | when |", "| --- | --- | --- |"]
    for protocol in PROTOCOLS:
        for method in methods(protocol):
            key = f"{protocol.__name__}.{method}"
            where = ", ".join(f"`{path}`" for path in found.get(method, ())) or "the application alone"
            when = WHEN[key] or f"`device.capability({protocol.__name__})` is asked for it"
            rows.append(f"| `{key}` | {where} | {when} |")
    return "\n".join(rows) + "\n"


def methods(protocol: type) -> list[str]:
    """The names of its methods, in order."""
    if protocol is api.DeviceAPI:
        return [name for name in vars(protocol) if name in protocol.__abstractmethods__]  # type: ignore[attr-defined]
    return [name for name, value in vars(protocol).items() if callable(value) and not name.startswith("_")]


def callers() -> dict[str, list[str]]:
    """The modules of the runtime that call a method of a device, by its name."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for file in ROOT.rglob("*.py"):
        path = file.relative_to(ROOT).as_posix()
        if not path.startswith(_NO_RUNTIME):
            for name in _called(ast.parse(file.read_text(encoding="utf-8"))):
                found[name].add(path)
    return {name: sorted(paths) for name, paths in found.items()}


def _called(tree: ast.AST) -> Iterator[str]:
    """Names of attributes that are taken of a device, ``api.method`` or ``getattr(api, "method", None)``."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=value, attr=name) if _is_device(value):
                yield name
            case ast.Call(func=ast.Name("getattr"), args=[value, ast.Constant(value=str(name)), *_]) if _is_device(
                value
            ):
                yield name


def _is_device(value: ast.expr) -> bool:
    match value:
        case ast.Name(name) | ast.Attribute(attr=name) | ast.Call(func=ast.Name(name)):
            return name in _DEVICES
    return False
