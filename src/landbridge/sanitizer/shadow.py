"""Shadow: the host's copy of memory that is not coherent, so that a missing barrier gives old bytes on any machine."""

from __future__ import annotations

import ctypes
import mmap

#: The byte that fills memory that nobody wrote yet.
POISON = 0xCD

_MOST_ALIGNED = 2 << 20


class Shadow:
    """``nbytes`` bytes for the host in place of the device's own, which this process maps at ``address``.

    Only barriers make the two equal. ``known`` is the content of the shadow after the last one.
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
        """Returns the first of these bytes that the host wrote since the last barrier on it; None where there is
        none.
        """
        ours = self._get(start, nbytes)
        known = self._known[start : start + nbytes]
        if ours == known:
            return None
        return start + next(i for i, (a, b) in enumerate(zip(ours, known, strict=True)) if a != b)

    def bring(self, start: int, nbytes: int) -> None:
        """Copies what the device wrote to the shadow."""
        ctypes.memmove(self.address + start, self._theirs + start, nbytes)
        self._note(start, nbytes)

    def discard(self, start: int, nbytes: int) -> None:
        """Poisons bytes that the host will write, and whose content it may not use."""
        self._put(start, bytes([POISON]) * nbytes)
        self._note(start, nbytes)

    def send(self, start: int, nbytes: int) -> None:
        """Copies what the host wrote to the device."""
        ctypes.memmove(self._theirs + start, self.address + start, nbytes)
        self._note(start, nbytes)

    def _note(self, start: int, nbytes: int) -> None:
        self._known[start : start + nbytes] = self._get(start, nbytes)

    def _get(self, start: int, nbytes: int) -> bytes:
        return self._map[self._skipped + start : self._skipped + start + nbytes]

    def _put(self, start: int, content: bytes) -> None:
        self._map[self._skipped + start : self._skipped + start + len(content)] = content
