"""The registry of target kinds by name: entry points of ``landbridge.targets``, and kinds registered from Python.

An entry point names a TargetKind object.
"""

from __future__ import annotations

from contextlib import suppress

from landbridge.errors import TargetError
from landbridge.plugins import Plugins
from landbridge.targets.kind import TargetKind

_GROUP = "landbridge.targets"


def register(kind: TargetKind) -> TargetKind:
    """Register ``kind`` under its name and return it; raises TargetError when another kind has it."""
    _kinds.register(kind.name, kind, repr(kind.doc))
    return kind


def unregister(name: str) -> None:
    """Remove the kind that was registered from Python as ``name``; does nothing if there is none."""
    _kinds.unregister(name)


def names() -> list[str]:
    """Returns the name of every available kind, sorted; imports none."""
    return _kinds.names()


def is_built_in(name: str) -> bool:
    """Returns whether this package defines the kind called ``name``."""
    return _kinds.is_built_in(name)


def get_kind(name: str) -> TargetKind:
    """Returns the kind called ``name``; raises TargetError naming the closest ones, or the plugin that failed."""
    try:
        return _kinds.get(name)
    except TargetError as error:
        kinds = [] if name in names() else _for_device(name.partition(":")[0].strip())
        if not kinds:
            raise
        raise TargetError(
            f"{name!r} is a device, and no target; code for it is of target {' or '.join(map(repr, kinds))}"
        ) from error


def _for_device(device_name: str) -> list[str]:
    """Returns the kinds whose code runs on devices called ``device_name``, those that are its defaults first."""
    found: list[TargetKind] = []
    for name in names():
        with suppress(TargetError):
            found.append(get_kind(name))
    found = [kind for kind in found if device_name in kind.device_types]
    return [kind.name for kind in sorted(found, key=lambda kind: device_name not in kind.default_for)]


def kind_for_device(device_name: str) -> str:
    """Returns the kind whose code runs on devices called ``device_name``: the only one, or the only default.

    Raises TargetError when that is none or several.
    """
    kinds: list[TargetKind] = []
    for name in names():
        with suppress(TargetError):  # a plugin that does not load is not the requested kind
            if device_name in get_kind(name).device_types:
                kinds.append(get_kind(name))
    if len(kinds) > 1:
        kinds = [kind for kind in kinds if device_name in kind.default_for] or kinds
    if len(kinds) != 1:
        several = ", ".join(kind.name for kind in kinds)
        found = f"the kinds {several} compile" if kinds else f"no kind of {', '.join(names())} compiles"
        raise TargetError(f"{found} for the device {device_name!r}; name the kind to use")
    return kinds[0].name


def _kind(name: str, loaded: object, origin: str) -> TargetKind:
    if not isinstance(loaded, TargetKind) or loaded.name != name:
        raise TargetError(
            f"entry point {name!r} of group {_GROUP!r} must name a TargetKind called {name!r}; {origin} is {loaded!r}"
        )
    return loaded


_kinds = Plugins(
    _GROUP,
    "target kind",
    {
        "c": "landbridge.targets.c:C",
        "freestanding": "landbridge.targets.freestanding:FREESTANDING",
        "llvm": "landbridge.targets.llvm:LLVM",
        "opencl": "landbridge.targets.opencl:OPENCL",
        "vulkan": "landbridge.targets.vulkan:VULKAN",
        "wasm": "landbridge.targets.wasm:WASM",
    },
    _kind,
    TargetError,
)
