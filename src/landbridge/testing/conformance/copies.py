"""Tests of copies: they move the right bytes, in order, and are complete when the device says so."""

from __future__ import annotations

import ctypes
import gc
import time
import weakref
from itertools import pairwise
from threading import Thread

from landbridge.device.api import Region, Space
from landbridge.errors import LandbridgeError
from landbridge.testing.conformance.base import ConformanceCase, expect, expect_raises, pattern

_BYTES = 1024


class _Owner:
    """An object whose release can be observed."""


class CopyConformance(ConformanceCase):
    """Tests ``copy_data_from_to``."""

    def test_copy_moves_the_bytes_requested(self) -> None:
        """copy_data_from_to(src: Region, dst: Region, nbytes, stream, keep_alive) -> Event | None; Region = (space,
        byte_offset)."""
        source, target = self.alloc(_BYTES), self.alloc(_BYTES)
        self.write(source, pattern(_BYTES, 1))
        self.write(target, pattern(_BYTES, 2))
        self.wait(self.copy(Region(source, 256), Region(target, 512), 128))
        wanted = bytearray(pattern(_BYTES, 2))
        wanted[512:640] = pattern(_BYTES, 1)[256:384]
        expect(self.read(target, _BYTES) == bytes(wanted), "a copy of 128 bytes from 256 to 512 changed other bytes")
        expect(self.read(source, _BYTES) == pattern(_BYTES, 1), "a copy changed its source")

    def test_done_when_the_event_says_so(self) -> None:
        """The runtime holds keep_alive (owners of both ends) until the Event completes; None means complete on return
        for both ends."""
        source, target = self._host_source(), self.alloc(_BYTES)
        self.wait(self.copy(Region(source), Region(target), _BYTES))
        ctypes.memset(self.host_address(source), 0, _BYTES)
        expect(self.read(target, _BYTES) == pattern(_BYTES, 3), "the copy read its source after its event completed")

    def test_query_is_true_only_when_done(self) -> None:
        """Events: query says whether everything before this point has completed."""
        source, target = self._host_source(), self.alloc(_BYTES)
        event = self.copy(Region(source), Region(target), _BYTES)
        deadline = time.monotonic() + 10
        while event is not None and not event.query():
            expect(time.monotonic() < deadline, "query() is still False after ten seconds")
        ctypes.memset(self.host_address(source), 0, _BYTES)
        expect(self.read(target, _BYTES) == pattern(_BYTES, 3), "the copy read its source after query() was True")

    def test_keep_alive_is_released(self) -> None:
        """keep_alive is held until the Event completes, and no longer."""
        source, target = self.alloc(_BYTES), self.alloc(_BYTES)
        owner = _Owner()
        seen = weakref.ref(owner)
        event = self.copy(Region(source), Region(target), _BYTES, keep_alive=owner)
        self.wait(event)
        del owner
        gc.collect()
        expect(seen() is None, "the device still holds keep_alive after the event completed")

    def test_one_in_order_queue(self) -> None:
        """Stream None is the device's one in-order queue."""
        spaces = [self.alloc(_BYTES) for _ in range(6)]
        self.write(spaces[0], pattern(_BYTES, 5))
        event = None
        for source, target in pairwise(spaces):
            event = self.copy(Region(source), Region(target), _BYTES)
        self.wait(event)
        expect(self.read(spaces[-1], _BYTES) == pattern(_BYTES, 5), "copies on stream None ran out of order")

    def test_one_queue_for_all_threads(self) -> None:
        """Stream None is shared by all threads."""
        first, second, third = (self.alloc(_BYTES) for _ in range(3))
        self.write(first, pattern(_BYTES, 6))
        thread = Thread(target=lambda: self.copy(Region(first), Region(second), _BYTES), daemon=True)
        thread.start()
        thread.join()
        self.wait(self.copy(Region(second), Region(third), _BYTES))
        expect(self.read(third, _BYTES) == pattern(_BYTES, 6), "a copy ran before one that another thread queued first")

    def test_overlap(self) -> None:
        """Overlap inside one Space raises unless identical."""
        space = self.alloc(_BYTES)
        self.write(space, pattern(_BYTES, 7))
        call = lambda: self.wait(self.copy(Region(space), Region(space, 64), 128))  # noqa: E731
        expect_raises(LandbridgeError, call, "a copy of overlapping bytes of one space")
        expect(self.read(space, _BYTES) == pattern(_BYTES, 7), "a copy that was refused moved bytes all the same")
        self.wait(self.copy(Region(space, 64), Region(space, 64), 128))
        expect(self.read(space, _BYTES) == pattern(_BYTES, 7), "a copy of bytes to themselves changed them")
        self.wait(self.copy(Region(space), Region(space, 128), 128))
        expect(
            self.read(space, 128, 128) == pattern(_BYTES, 7)[:128], "a copy between two ranges of one space is wrong"
        )

    def _host_source(self) -> Space:
        """Returns host memory with pattern 3 that the device can copy from."""
        source = self.host(pattern(_BYTES, 3))
        if not self.can_copy_host(self.alloc(_BYTES)):
            self.skip("copies neither from nor to host memory")
        return source
