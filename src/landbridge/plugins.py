"""Plugins by name: entry points of a group, loaded on first use, and those that Python code registers.

A plugin that does not import, or whose name two packages claim, breaks requests for its own name and nothing else; one
that claims a name of this package's own is passed over. ``LANDBRIDGE_PLUGINS=0`` leaves out all that is installed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from landbridge.errors import LandbridgeError
from landbridge.process.locks import new_lock
from landbridge.text.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_T = TypeVar("_T")


def import_modules(package: str) -> None:
    """Imports every module of ``package``, so that what they contain is registered.

    Raises OSError where the folder cannot be listed, as when memory is exhausted: none would be registered then.
    """
    from pkgutil import iter_modules  # imported here, as a run does not need it

    folders = import_module(package).__path__
    names = [info.name for info in iter_modules(folders)]
    for folder in folders if not names else ():
        next(Path(folder).iterdir())  # raises the reason: iter_modules treats an unreadable folder as an empty one
    for name in names:
        import_module(f"{package}.{name}")


#: The environment variable that, at ``0``, leaves out what other packages bring.
SWITCH = "LANDBRIDGE_PLUGINS"


class Plugins(Generic[_T]):
    """The plugins of the entry point group ``group``, each of which messages call a ``noun``.

    ``built_in`` are those of this package as ``module:attribute``. They are found without reading the installed
    packages, which takes longer than a run; a source tree that is not installed has no entry points of its own.
    ``make`` is given a plugin's name, what its entry point names and where it comes from; it returns the plugin or
    raises what is wrong. ``error`` is raised for one that does not import; ``unknown`` and ``taken``, or it too, for a
    name with none or two. ``lock`` is held while a plugin is made: who keeps tables of the same names guards them with
    it.
    """

    def __init__(
        self,
        group: str,
        noun: str,
        built_in: Mapping[str, str],
        make: Callable[[str, object, str], _T],
        error: type[LandbridgeError],
        *,
        unknown: type[LandbridgeError] | None = None,
        taken: type[LandbridgeError] | None = None,
    ) -> None:
        self._group = group
        self._noun = noun
        self._built_in = built_in
        self._make = make
        self._error, self._unknown, self._taken = error, unknown or error, taken or error
        self.lock = new_lock()
        self._known: dict[str, _T] = {}
        self._registered: dict[str, str] = {}
        self._installed: dict[str, list[EntryPoint]] | None = None

    def names(self) -> list[str]:
        """Returns every available name, sorted; imports nothing."""
        return sorted({*self._built_in, *self._registered, *self._points()})

    def is_built_in(self, name: str) -> bool:
        """Returns whether ``name`` is of this package."""
        return name in self._built_in

    def get(self, name: str) -> _T:
        """Returns the plugin called ``name``, the same object at each call."""
        try:
            return self._known[name]
        except KeyError:
            with self.lock:
                if name not in self._known:
                    self._known[name] = self._make(name, *self._load(name))
                return self._known[name]

    def register(self, name: str, plugin: _T, origin: str) -> None:
        """Registers ``plugin``, which ``origin`` describes, as ``name``; registering the same object again is no
        conflict.
        """
        with self.lock:
            if name in self.names() and self._known.get(name) is not plugin:
                raise self._taken(
                    f"{self._noun} {name!r} of {origin} is taken by {self.origin(name)}; choose another name"
                )
            self._known[name] = plugin
            self._registered[name] = origin

    def unregister(self, name: str) -> _T | None:
        """Removes the plugin called ``name`` and returns it, if there is one; an installed one is loaded again on its
        next use.
        """
        with self.lock:
            self._registered.pop(name, None)
            return self._known.pop(name, None)

    def origin(self, name: str) -> str:
        """Returns where ``name`` comes from: module and attribute, and the distribution of an installed one."""
        owned = [self._registered.get(name) or self._built_in.get(name)]
        return " and ".join([*filter(None, owned), *map(_location, self._points().get(name, []))]) or repr(name)

    def passed_over(self) -> dict[str, str]:
        """Returns the origins of plugins that claim names of this package's own, by name."""
        return {
            name: " and ".join(map(_location, self._points()[name]))
            for name in self._built_in
            if name in self._points()
        }

    def _load(self, name: str) -> tuple[object, str]:
        """Returns the object that the entry point called ``name`` refers to, and its origin."""
        if name in self._built_in:
            origin = self._built_in[name]
            module, _, attribute = origin.partition(":")
            return getattr(import_module(module), attribute), origin
        points = self._points().get(name, [])
        if not points:
            known = self.names()
            raise self._unknown(
                f"unknown {self._noun} {name!r}{did_you_mean(name, known)}; known: {', '.join(known)}. "
                f"A package adds one through the entry point group {self._group!r}{_off()}"
            )
        if len(points) > 1:
            raise self._taken(
                f"{self._noun} {name!r} is claimed by {' and by '.join(map(_location, points))}; uninstall one of them"
            )
        origin = _location(points[0])
        try:
            return points[0].load(), origin
        except (Exception, SystemExit) as error:  # a script without a main guard ends the process when it is imported
            raise self._error(
                f"the plugin of {self._noun} {name!r}, {origin}, does not import: {type(error).__name__}: {error}; "
                "install what it needs, or uninstall it"
            ) from error

    def _points(self) -> Mapping[str, list[EntryPoint]]:
        """Returns the entry points of other packages by name, read once."""
        if self._installed is None:
            from importlib.metadata import entry_points

            found: dict[str, list[EntryPoint]] = {}
            for point in () if _off() else entry_points(group=self._group):
                if point.value != self._built_in.get(point.name) and point not in found.setdefault(point.name, []):
                    found[point.name].append(point)
            self._installed = found
        return self._installed


def _off() -> str:
    return f"; {SWITCH}=0 leaves out what is installed" if os.environ.get(SWITCH) == "0" else ""


def _location(point: EntryPoint) -> str:
    return f"{point.value} of {point.dist.name}" if point.dist is not None else point.value
