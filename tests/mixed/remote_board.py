"""A board whose time is another process's: it computes there, on memory that this process sees through a cache."""

from __future__ import annotations

import ctypes
import mmap
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from threading import Lock

from landbridge.device.api import DEVICE_API_VERSION, Device, DeviceAPI, Event, Region, Space, Stream
from landbridge.device.attr import DeviceAttr
from landbridge.device.checks import host_address, host_reaches, kind_of
from landbridge.device.protocols import AccessMode, RowTable
from landbridge.executable.device_image import DeviceImage, Launch, LaunchSequence
from landbridge.memory_kind import MemoryKind

LINE = 64
N = 16
_CAPACITY = 1 << 24

#: What runs on the board. ``held`` begins when a byte comes through the gate. Fences come as descriptors of their own.
_FIRMWARE = """
import array, mmap, os, select, socket, sys
memory, gate, fences = mmap.mmap(int(sys.argv[1]), 0), int(sys.argv[2]), socket.socket(fileno=int(sys.argv[3]))
for line in sys.stdin:
    kernel, source, target, count = line.split()
    source, target, count = int(source), int(target), int(count)
    if kernel in ("wait", "signal"):
        fence = socket.recv_fds(fences, 1, 1)[1][0]
        select.select([fence], [], []) if kernel == "wait" else os.eventfd_write(fence, 1)
        os.close(fence)
    if kernel == "held":
        os.read(gate, 1)
    values = array.array("f", memory[source:source + 4 * count])
    memory[target:target + 4 * count] = array.array("f", [2 * value for value in values]).tobytes()
    print("done", flush=True)
"""

FORMAT = "remote board, 1"
#: ``double`` and ``held``, which doubles too; each of x and its destination.
IMAGE = DeviceImage(
    FORMAT,
    b"",
    {name: LaunchSequence(2, (), (Launch(name, (0, 1), (N, 1, 1), (1, 1, 1)),)) for name in ("double", "held")},
)
MEMORY = MemoryKind(
    scope="global",
    host_access="read_write",
    coherent=False,
    coherence_granule=LINE,
    pinned=True,
    alignment=LINE,
    offset_alignment=LINE,
    size_multiple=LINE,
    capacity=_CAPACITY,
)


class _Done:
    """Is complete when the board has reported ``number`` kernels."""

    def __init__(self, board: RemoteBoard, number: int) -> None:
        self._board, self._number = board, number

    def query(self) -> bool:
        return self._board.reported(0) >= self._number

    def synchronize(self, timeout: float | None = None) -> bool:
        end = None if timeout is None else time.monotonic() + timeout
        while not self.query():
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return False
            self._board.reported(1.0 if left is None else min(left, 1.0))
        return True


class RemoteBoard(DeviceAPI):
    """One instance with one queue; its barrier waits for all that is queued, as it knows no better."""

    name = "remote"
    api_version = DEVICE_API_VERSION

    def __init__(self) -> None:
        file = os.memfd_create("remote board")
        os.ftruncate(file, _CAPACITY)
        self._board, self._cache = mmap.mmap(file, _CAPACITY), mmap.mmap(-1, _CAPACITY)
        here, self._gate = os.pipe()
        self._fences, there = socket.socketpair()
        files = (file, here, there.fileno())
        command = [sys.executable, "-I", "-S", "-c", _FIRMWARE, *map(str, files)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=files, bufsize=0
        )
        self.memory_file = file
        there.close()
        os.close(here)
        self._lock = Lock()
        self._free = 0
        self._submitted = self._reported = 0

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        os.close(self._gate)
        os.close(self.memory_file)
        self._fences.close()
        self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def release(self, kernels: int = 1) -> None:
        """Lets ``kernels`` launches of ``held`` begin."""
        os.write(self._gate, b"g" * kernels)

    def reported(self, timeout: float) -> int:
        """The kernels that have ended, after waiting at most ``timeout`` seconds for another one."""
        assert self.process.stdout is not None
        file = self.process.stdout.fileno()
        if select.select([file], [], [], timeout)[0]:
            with self._lock:
                if select.select([file], [], [], 0)[0]:
                    found = os.read(file, 4096)
                    assert found, "the process of the board has ended"
                    self._reported += found.count(b"\n")
        return self._reported

    def count(self) -> int:
        return 1

    def get_attr(self, index: int, attr: DeviceAttr) -> object | None:
        return None

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        return {"global": MEMORY}

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        kind = kind_of(self.memory_kinds(index), scope, "remote:0")
        start, self._free = self._free, self._free + max(nbytes, 1) + -nbytes % LINE
        assert self._free <= _CAPACITY
        return Space(Device(self, index), kind.scope, start)

    def free_data_space(self, space: Space) -> None:
        """Leaves the bytes, of which tests need few, to the process."""

    def host_pointer(self, space: Space) -> int:
        return _address(self._cache) + int(space.handle)

    def begin_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        self._finish()
        self._bring(region, nbytes, mode)

    def end_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        if mode != "r":
            start = self._start(region)
            self._board[start : start + nbytes] = self._cache[start : start + nbytes]

    def can_copy(self, src: Space, dst: Space) -> bool:
        return all(space.device.api is self or host_reaches(space) for space in (src, dst))

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        self._finish()
        source, target = (
            _address(self._board) + self._start(end) if end.space.device.api is self else host_address(end)
            for end in (src, dst)
        )
        ctypes.memmove(target, source, nbytes)
        return None

    def load_module(self, index: int, binary: bytes, format: str, options: str = "") -> object:
        return format

    def module_formats(self, index: int) -> Sequence[str]:
        return (FORMAT,)

    def launch(
        self,
        module: object,
        function: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: Sequence[Region | RowTable | int | float],
        stream: Stream | None,
    ) -> Event | None:
        source, target = (self._start(arg) for arg in args if isinstance(arg, Region))
        self._write(f"{function} {source} {target} {grid[0]}\n")
        return self._queued()

    def _queued(self) -> Event:
        """Returns the event of the last job that was submitted."""
        return _Done(self, self._submitted)

    def _write(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode())
        self._submitted += 1

    def _start(self, region: Region) -> int:
        return int(region.space.handle) + region.byte_offset

    def _bring(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        if mode != "w":
            start = self._start(region)
            self._cache[start : start + nbytes] = self._board[start : start + nbytes]

    def _finish(self) -> None:
        _Done(self, self._submitted).synchronize()


class RemoteBoardWithEvents(RemoteBoard):
    """Its barrier waits for what it is told to."""

    def begin_host_access_after(self, region: Region, nbytes: int, mode: AccessMode, events: Sequence[Event]) -> None:
        for event in events:
            event.synchronize()
        self._bring(region, nbytes, mode)


class RemoteBoardWithFences(RemoteBoardWithEvents):
    """Its queue waits for files that others signal, and signals files."""

    def wait_fence(self, index: int, stream: Stream | None, fence: int) -> None:
        self._send("wait", fence)

    def signal_fence(self, index: int, stream: Stream | None) -> int:
        file = os.eventfd(0, os.EFD_CLOEXEC)
        self._send("signal", file)
        return file

    def _send(self, command: str, file: int) -> None:
        socket.send_fds(self._fences, [b"f"], [file])
        self._write(f"{command} 0 0 0\n")


def _address(memory: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))
