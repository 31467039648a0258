"""Tests of what a process and a device have after many rounds of the same work: nothing is left behind."""

from __future__ import annotations

import ctypes
import gc
import mmap
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from landbridge.device.api import Region
from landbridge.device.protocols import Events, Streams
from landbridge.testing.conformance.base import expect
from landbridge.testing.conformance.kernels import NBYTES, KernelCase, float32_bytes

_ROUNDS, _WARM_UP = 1500, 300
#: What a process may have more after so many rounds: 4 KiB left behind by each are 6 MiB.
_MOST = {
    "bytes of pages": 4 << 20,
    "bytes of malloc": 1 << 20,
    "objects of Python": _ROUNDS // 2,
    "open files": 16,
    "threads": 16,
}


class LeakConformance(KernelCase):
    """Tests that what is given back, or done, takes no memory, files or threads any more."""

    def test_no_small_leaks(self) -> None:
        """What is given back is gone: allocations, copies and their events leave nothing behind."""
        source = self.alloc(4096)

        def once() -> None:
            space = self.alloc(4096)
            self.wait(self.copy(Region(source), Region(space), 4096))
            self.free(space)

        self._expect_no_growth(once, "an allocation, a copy and a free")

    def test_no_leaks_of_streams_and_events(self) -> None:
        """free_stream gives a stream back; an event that nobody holds is gone."""
        events = self.device.capability(Events)
        streams = self.device.capability(Streams)
        if events is None and streams is None:
            self.skip("has neither streams nor events")
        index = self.device.index

        def once() -> None:
            stream = streams.create_stream(index) if streams is not None else None
            if events is not None:
                events.record_event(index, stream).synchronize(None)
            if streams is not None and stream is not None:
                streams.stream_sync(index, stream)
                streams.free_stream(stream)

        self._expect_no_growth(once, "a stream and an event on it")

    def test_no_leaks_of_launches(self) -> None:
        """A launch that is done leaves nothing behind: neither its arguments nor its event."""
        kernel = self.kernel()
        if kernel.sequence.scratch:
            self.skip("has a code generator that needs scratch for a difference")
        a, b, y = (Region(self.operand(content)) for content in (float32_bytes(1), float32_bytes(2), bytes(NBYTES)))
        self._expect_no_growth(lambda: self.wait(self.launch(kernel, a, b, y)), "a launch")

    def _expect_no_growth(self, once: Callable[[], None], subject: str) -> None:
        for _ in range(_WARM_UP):
            once()
        gc.collect()
        before, available = _process(), self.available()
        for _ in range(_ROUNDS):
            once()
        gc.collect()
        after = _process()
        for name, most in _MOST.items():
            grown = after.get(name, 0) - before.get(name, 0)
            expect(grown <= most, f"{_ROUNDS} times {subject} took {grown} {name} that were not given back")
        left = self.available()
        if available is not None and left is not None and not self.is_host():
            expect(left >= available, f"{_ROUNDS} times {subject} took {available - left} bytes of the device's memory")


def _process() -> dict[str, int]:
    """Returns the resources that this process has, where the kernel reports them."""
    owned = Path("/proc/self")
    found = {"objects of Python": sys.getallocatedblocks()}
    with suppress(AttributeError):  # another C library than glibc, or an old one
        count = ctypes.CDLL(None).mallinfo2
        count.restype = _MallInfo
        info = count()
        found["bytes of malloc"] = info.uordblks + info.hblkhd
    if (owned / "statm").is_file():
        found |= {
            "bytes of pages": int((owned / "statm").read_text().split()[1]) * mmap.PAGESIZE,
            "open files": len(list((owned / "fd").iterdir())),
            "threads": len(list((owned / "task").iterdir())),
        }
    return found


_LAST_FIELDS = ("uordblks", "fordblks", "keepcost")


class _MallInfo(ctypes.Structure):
    """The result of ``mallinfo2``."""

    _fields_: ClassVar = [
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", *_LAST_FIELDS)
    ]
