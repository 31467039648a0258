"""Target kinds by name: entry points of the group ``landbridge.targets``, and kinds registered from Python.

An entry point names a TargetKind object. It is imported when its kind is first asked for, so a plugin that
does not import breaks its own kind and no other.
"""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import EntryPoint, entry_points

from landbridge.errors import TargetError
from landbridge.locks import new_lock
from landbridge.target.kind import TargetKind, did_you_mean

GROUP = "landbridge.targets"

# The kinds of this package, again: a source tree that is not installed has no entry points.
_BUILT_IN = {
    "c": "landbridge.target.c:C",
    "llvm": "landbridge.target.llvm:LLVM",
    "opencl": "landbridge.target.opencl:OPENCL",
    "vulkan": "landbridge.target.vulkan:VULKAN",
}

_kinds: dict[str, TargetKind] = {}
_lock = new_lock()


def register(kind: TargetKind) -> TargetKind:
    """Make ``kind`` known under its name; raises TargetError when another kind has it."""
    plugin = _entry_points().get(kind.name)
    if plugin is not None:
        raise TargetError(f"target kind {kind.name!r} belongs to the plugin {plugin.value!r}; choose another name")
    with _lock:
        known = _kinds.setdefault(kind.name, kind)
    if known is not kind:
        raise TargetError(f"target kind {kind.name!r} is registered already: {known.doc!r}; choose another name")
    return kind


def unregister(name: str) -> None:
    """Forget the kind that was registered from Python as ``name``; nothing happens if there is none."""
    with _lock:
        if name not in _entry_points():
            _kinds.pop(name, None)


def names() -> list[str]:
    """Every kind that can be asked for, sorted; none is imported."""
    with _lock:
        return sorted({*_kinds, *_entry_points()})


def get_kind(name: str) -> TargetKind:
    """The kind called ``name``; raises TargetError naming the nearest ones, or the plugin that failed."""
    with _lock:
        kind = _kinds.get(name)
    if kind is not None:
        return kind
    points = _entry_points()
    if name not in points:
        known = names()
        raise TargetError(
            f"unknown target kind {name!r}{did_you_mean(name, known)}; known: {', '.join(known)}. "
            f"A plugin adds one through the entry point group {GROUP!r}"
        )
    kind = _load(points[name])
    with _lock:
        return _kinds.setdefault(name, kind)


def kind_for_device(device_name: str) -> str:
    """The kind whose code runs on devices called ``device_name``: the only one, or the only default for them.

    Raises TargetError when that is none or several.
    """
    kinds: list[TargetKind] = []
    for name in names():
        with suppress(TargetError):  # a plugin that does not load is not the one meant
            if device_name in get_kind(name).device_types:
                kinds.append(get_kind(name))
    if len(kinds) > 1:
        kinds = [kind for kind in kinds if device_name in kind.default_for] or kinds
    if len(kinds) != 1:
        several = ", ".join(kind.name for kind in kinds)
        found = f"the kinds {several} compile" if kinds else f"no kind of {', '.join(names())} compiles"
        raise TargetError(f"{found} for the device {device_name!r}; name the kind to use")
    return kinds[0].name


def _load(point: EntryPoint) -> TargetKind:
    try:
        kind = point.load()
    except Exception as error:
        raise TargetError(
            f"the plugin {point.value!r} of target kind {point.name!r} does not load: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(kind, TargetKind) or kind.name != point.name:
        raise TargetError(
            f"entry point {point.name!r} of group {GROUP!r} must name a TargetKind called {point.name!r}; "
            f"{point.value!r} is {kind!r}"
        )
    return kind


def _entry_points() -> dict[str, EntryPoint]:
    """Entry points by kind; raises TargetError when two plugins claim one name."""
    points = {name: EntryPoint(name, value, GROUP) for name, value in _BUILT_IN.items()}
    for point in entry_points(group=GROUP):
        known = points.setdefault(point.name, point)
        if known.value != point.value:
            raise TargetError(
                f"target kind {point.name!r} is claimed by two plugins, {known.value!r} and {point.value!r}; "
                "uninstall one of them"
            )
    return points
