"""Fence: a file descriptor that says when work of somebody else is done, as drivers of cameras and displays have them.

A sync file of the kernel (of V4L2, DRM, Vulkan or OpenCL), an eventfd and a pidfd all poll as readable once they are
signalled, and stay so.
"""

from __future__ import annotations

import fcntl
import os
import select
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import ClassVar
from weakref import finalize

from landbridge.device.waits import waits_of_thread
from landbridge.errors import DeviceError, InputError
from landbridge.process.exhaustion import raise_exhaustion
from landbridge.process.process_bound import ProcessBound

#: Longest sleep of a wait in milliseconds, so that Ctrl-C is answered where signals do not end poll.
_SLICE_MS = 200
#: Descriptors are C's int.
_LARGEST_FILE = (1 << 31) - 1


class Fence(ProcessBound):
    """Work of somebody else that ends when ``file`` polls as readable: a descriptor, or an object with ``fileno()``.

    The descriptor is duplicated, so that the caller may close its own; ``close``, or the end of a ``with``, closes the
    duplicate. A fence is signalled once and for all. Raises InputError for what is no open descriptor that can be
    polled.
    """

    __slots__ = ("__weakref__", "_close", "_file")

    _instead: ClassVar[str] = "send its fileno() to the other process, as socket.send_fds does"

    def __init__(self, file: object) -> None:
        number = _descriptor(file)
        try:
            if stat.S_IFMT(os.fstat(number).st_mode) in (stat.S_IFREG, stat.S_IFDIR):
                raise InputError(
                    f"{file!r} is no fence, but a file or folder on a disk, which always polls as readable; give an "
                    "open sync file or eventfd"
                )
            self._file = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 0)
        except OSError as error:
            raise_exhaustion(error, "a Fence was made")
            raise InputError(
                f"{file!r} is no fence: {error.strerror or error}; give an open sync file or eventfd"
            ) from None
        self._close: Callable[[], object] = finalize(self, os.close, self._file)

    @classmethod
    def owning(cls, file: int) -> Fence:
        """Returns a fence of the open descriptor ``file``, which it closes, also where this raises."""
        try:
            return cls(file)
        finally:
            with suppress(OSError):
                os.close(file)

    def fileno(self) -> int:
        """Returns the descriptor, which is the fence's: DRM's IN_FENCE_FD and ``poll`` take it as it is."""
        if not self._is_open:
            raise InputError("this fence is closed; make another one of its file")
        return self._file

    @property
    def _is_open(self) -> bool:
        return bool(getattr(self._close, "alive", False))

    def is_signalled(self) -> bool:
        """Returns whether the work is done; raises DeviceError where the file reports an error."""
        return self._poll(0)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait at most ``timeout`` seconds (None: for ever), interruptibly; returns whether the work is done.

        Raises DeviceError where the file reports an error.
        """
        waits = waits_of_thread()
        if waits is None:
            return self._wait(timeout)
        with waits.inside("a fence", f"(file descriptor {self._file})"):
            return self._wait(timeout)

    def _wait(self, timeout: float | None) -> bool:
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _SLICE_MS if end is None else min(_SLICE_MS, max(0.0, end - time.monotonic()) * 1e3)
            if self._poll(left):
                return True
            if end is not None and time.monotonic() >= end:
                return False

    def _poll(self, milliseconds: float) -> bool:
        files = select.poll()
        files.register(self.fileno(), select.POLLIN)
        found = 0
        for _, found in files.poll(milliseconds):
            if found & (select.POLLERR | select.POLLNVAL):
                self.fileno()  # raises where another thread closed it
                raise DeviceError(f"fence of file descriptor {self._file} failed: the work before it had an error")
        return bool(found & (select.POLLIN | select.POLLHUP))

    def close(self) -> None:
        """Close the descriptor; later uses raise InputError."""
        self._close()

    def __enter__(self) -> Fence:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Fence(file descriptor {self._file})" if self._is_open else "Fence(closed)"


def as_fence(fence: object) -> Fence:
    """Returns ``fence``, or one of the descriptor that it is or has; raises InputError for anything else."""
    return fence if isinstance(fence, Fence) else Fence(fence)


def _descriptor(file: object) -> int:
    fileno = getattr(file, "fileno", None)
    try:
        number = fileno() if callable(fileno) else file
    except (OSError, ValueError) as error:
        raise InputError(f"{file!r} is no fence: {error}; give an open sync file or eventfd") from None
    if type(number) is not int or not 0 <= number <= _LARGEST_FILE:
        raise InputError(f"{file!r} is no fence; legal: a Fence, a file descriptor, or an object with fileno()")
    return number
