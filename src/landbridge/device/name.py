"""Device names: ``name[:index]``, a name that may hold a colon, and wrappers that nest.

``cpu`` is ``cpu:0``; ``sim:stale`` is index 0 of the device called ``sim:stale``, ``sim:stale:1`` its index 1,
because only a final decimal part is an index; ``sanitize(opencl:0)`` is the wrapper ``sanitize`` around ``opencl:0``.
"""

from __future__ import annotations

import re

from landbridge.errors import UnknownDeviceError
from landbridge.records import record

_PLAIN = re.compile(r"(?P<name>[A-Za-z_][\w.\-]*(?::[A-Za-z_][\w.\-]*)*)(?::(?P<index>[0-9]{1,9}))?")
_WRAPPED = re.compile(r"(?P<name>[A-Za-z_][\w.\-]*(?::[A-Za-z_][\w.\-]*)*)\((?P<inner>.*)\)")

_MOST_WRAPPERS = 8


@record(frozen=True)
class DeviceName:
    """A parsed device name; a wrapper has ``inner`` and takes its index from it."""

    name: str
    index: int = 0
    inner: DeviceName | None = None

    @property
    def innermost(self) -> str:
        """Returns the name of the device inside all wrappers."""
        return self.name if self.inner is None else self.inner.innermost

    def __str__(self) -> str:
        return f"{self.name}:{self.index}" if self.inner is None else f"{self.name}({self.inner})"


def parse_device_name(text: str) -> DeviceName:
    """Returns the DeviceName that ``text`` spells; raises UnknownDeviceError when it spells none."""
    stripped = text.strip()
    wrappers: list[str] = []
    while len(wrappers) < _MOST_WRAPPERS and (match := _WRAPPED.fullmatch(stripped)):
        wrappers.append(match["name"])
        stripped = match["inner"].strip()
    match = _PLAIN.fullmatch(stripped)
    if match is None:
        raise UnknownDeviceError(
            f"{text[:99]!r} is not a device name; legal: name[:index], as in cpu or opencl:1, "
            f"or at most {_MOST_WRAPPERS} wrappers around one, as in sanitize(opencl:0)"
        )
    name = DeviceName(match["name"], int(match["index"] or 0))
    for wrapper in reversed(wrappers):
        name = DeviceName(wrapper, name.index, name)
    return name
