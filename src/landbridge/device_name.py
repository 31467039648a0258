"""Device names: ``name[:index]``, a name that may hold a colon, and wrappers that nest.

``cpu`` is ``cpu:0``; ``sim:stale`` is index 0 of the device called ``sim:stale``, ``sim:stale:1`` its index 1,
because only a final decimal part is an index; ``sanitize(opencl:0)`` is the wrapper ``sanitize`` around ``opencl:0``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from landbridge.errors import UnknownDeviceError

_PLAIN = re.compile(r"(?P<name>[A-Za-z_][\w.\-]*(?::[A-Za-z_][\w.\-]*)*)(?::(?P<index>[0-9]+))?")
_WRAPPED = re.compile(r"(?P<name>[A-Za-z_][\w.\-]*(?::[A-Za-z_][\w.\-]*)*)\((?P<inner>.*)\)")


@dataclass(frozen=True)
class DeviceName:
    """A parsed device name. A wrapper has ``inner`` and takes its index from it."""

    name: str
    index: int = 0
    inner: DeviceName | None = None

    def __str__(self) -> str:
        return f"{self.name}:{self.index}" if self.inner is None else f"{self.name}({self.inner})"


def parse_device_name(text: str) -> DeviceName:
    """The DeviceName that ``text`` spells; raises UnknownDeviceError when it spells none."""
    stripped = text.strip()
    if match := _PLAIN.fullmatch(stripped):
        return DeviceName(match["name"], int(match["index"] or 0))
    if match := _WRAPPED.fullmatch(stripped):
        inner = parse_device_name(match["inner"])
        return DeviceName(match["name"], inner.index, inner)
    raise UnknownDeviceError(
        f"{text!r} is not a device name; legal: name[:index], as in cpu or opencl:1, "
        "or a wrapper around one, as in sanitize(opencl:0)"
    )
