"""Shadow: what the host sees of memory that is not coherent, so that a missing barrier gives old bytes anywhere."""

from __future__ import annotations

import ctypes
import mmap

from landbridge.sanitizer.fills import POISON

_MOST_ALIGNED = 2 << 20


class Shadow:
    """``nbytes`` bytes for the host in place of the device's own, which this process maps at ``address``.

    The two are made equal by the barriers alone. ``known`` is what the shadow held after the last one.
    """

    def __init__(self, address: int, nbytes: int) -> None:
        self._theirs = address
        alignment = min(address & -address, _MOST_ALIGNED)  # as aligned as the device's own
        self._map = mmap.mmap(-1, max(nbytes, 1) + alignment)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self.address = -(-start // alignment) * alignment
        self._skipped = self.address - start
        self._known = bytearray([POISON]) * nbytes
        self._put(0, bytes(self._known))

    def changed(self, start: int, nbytes: int) -> int | None:
        """The first of these bytes that the host wrote since the last barrier on it."""
        ours = self._get(start, nbytes)
        known = self._known[start : start + nbytes]
        if ours == known:
            return None
        return start + next(i for i, (a, b) in enumerate(zip(ours, known, strict=True)) if a != b)

    def bring(self, start: int, nbytes: int) -> None:
        """Show the host what the device wrote."""
        ctypes.memmove(self.address + start, self._theirs + start, nbytes)
        self._note(start, nbytes)

    def discard(self, start: int, nbytes: int) -> None:
        """The host will write these bytes, and may not count on what they hold."""
        self._put(start, bytes([POISON]) * nbytes)
        self._note(start, nbytes)

    def send(self, start: int, nbytes: int) -> None:
        """Show the device what the host wrote."""
        ctypes.memmove(self._theirs + start, self.address + start, nbytes)
        self._note(start, nbytes)

    def _note(self, start: int, nbytes: int) -> None:
        self._known[start : start + nbytes] = self._get(start, nbytes)

    def _get(self, start: int, nbytes: int) -> bytes:
        return self._map[self._skipped + start : self._skipped + start + nbytes]

    def _put(self, start: int, content: bytes) -> None:
        self._map[self._skipped + start : self._skipped + start + len(content)] = content
