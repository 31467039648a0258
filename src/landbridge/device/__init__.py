"""Devices: the contract, the registry of plugins, streams. Callable: ``landbridge.device("cpu:0")`` is a Device."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from landbridge.device.api import Device


class _Package(ModuleType):
    """This package: importing any part of it puts it where the public function ``device`` is looked up."""

    def __call__(self, name: str | Device, index: int | None = None, **options: object) -> Device:
        """The device called ``name``; see ``landbridge.device.registry.device``."""
        from landbridge.device.registry import device

        return device(name, index, **options)


sys.modules[__name__].__class__ = _Package
