"""Devices by name, for what stands below the run side: the package says how they are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_find: list[Callable[[str], Any]] = []


def find_by(find: Callable[[str], Any]) -> None:
    """Let ``device_named`` ask ``find``."""
    _find[:] = [find]


def device_named(name: str) -> Any:
    """The Device called ``name``, as ``landbridge.device`` gives it, which says what is raised."""
    return _find[0](name)
