"""Devices by name, for modules below the run side; the package registers the function that finds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_find: list[Callable[[str], Any]] = []


def find_by(find: Callable[[str], Any]) -> None:
    """Makes ``device_named`` call ``find``."""
    _find[:] = [find]


def device_named(name: str) -> Any:
    """Returns the Device called ``name``; raises what ``landbridge.device`` raises."""
    return _find[0](name)
