"""The device contract, the registry of plugins, and streams. ``landbridge.device("cpu:0")`` returns a Device."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from landbridge.device.api import Device


class _Package(ModuleType):
    """The type of this package, which makes it callable: ``landbridge.device`` is both the package and a function."""

    def __call__(self, name: str | Device, index: int | None = None, **options: object) -> Device:
        """Returns the device called ``name``; see ``landbridge.device.registry.device``."""
        from landbridge.device.registry import device

        return device(name, index, **options)


sys.modules[__name__].__class__ = _Package
