"""PinnedPages: pages pinned by registering them with a ring of io_uring, else locked by mlock.

A registered buffer is a long-term pin (``FOLL_LONGTERM``): its pages neither leave memory nor move in it. ``mlock``
promises the first alone: the kernel may still migrate what is locked, for example to make huge pages.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
from functools import cache
from pathlib import Path

from landbridge.errors import OutOfMemoryError

# These are the same on every architecture; include/uapi/linux/io_uring.h
_IO_URING_SETUP = 425
_IO_URING_REGISTER = 427
_REGISTER_BUFFERS = 0
_UNREGISTER_BUFFERS = 1
_PARAMS_BYTES = 120
_LARGEST_BUFFER = 1 << 30  # of one that is registered


class PinnedPages:
    """The pages from ``address`` (of a page) on, kept in memory until ``close``.

    They are pinned where ``kernel_pins()``, else only resident. Raises OutOfMemoryError with the limit.
    """

    def __init__(self, address: int, nbytes: int) -> None:
        self._ring: int | None = None
        if kernel_pins():
            self._ring = _ring()
            starts = range(address, address + nbytes, _LARGEST_BUFFER)
            vectors = [word for at in starts for word in (at, min(address + nbytes - at, _LARGEST_BUFFER))]
            table = (ctypes.c_size_t * len(vectors))(*vectors)
            if _call(_IO_URING_REGISTER, self._ring, _REGISTER_BUFFERS, table, len(starts)) < 0:
                reason = os.strerror(ctypes.get_errno())
                os.close(self._ring)
                raise _refusal("pin", nbytes, reason)
        elif _libc().mlock(ctypes.c_void_p(address), ctypes.c_size_t(nbytes)):
            raise _refusal("lock", nbytes, os.strerror(ctypes.get_errno()))
        self._process = os.getpid()

    def close(self) -> None:
        """Unpin the pages; locked ones are unlocked when they are unmapped."""
        if self._ring is not None:
            if self._process == os.getpid():  # not after a fork, where the ring belongs to the parent too
                _call(_IO_URING_REGISTER, self._ring, _UNREGISTER_BUFFERS, None, 0)
            os.close(self._ring)


@cache
def kernel_pins() -> bool:
    """Returns whether this process may pin pages: on Linux 5.1 or newer, where it may use io_uring."""
    try:
        os.close(_ring())
    except OutOfMemoryError:
        return False
    return True


def _ring() -> int:
    found = _call(_IO_URING_SETUP, 1, ctypes.create_string_buffer(_PARAMS_BYTES))
    if found < 0:
        raise OutOfMemoryError(f"the kernel made no ring of io_uring: {os.strerror(ctypes.get_errno())}")
    return found


def _refusal(verb: str, nbytes: int, reason: str) -> OutOfMemoryError:
    soft, hard = ("no limit" if n == resource.RLIM_INFINITY else f"{n} bytes" for n in _limits())
    return OutOfMemoryError(
        f"the kernel refused to {verb} {nbytes} bytes: {reason}. RLIMIT_MEMLOCK is {soft} (soft) and {hard} (hard); "
        f"this process has {_in_use('VmLck')} bytes locked and {_in_use('VmPin')} pinned, and pins of all processes of "
        "a user count together. Raise the limit ('ulimit -l', LimitMEMLOCK= of a service, --ulimit memlock= of a "
        "container), ask for less, or take scope 'global'"
    )


def _limits() -> tuple[int, int]:
    return resource.getrlimit(resource.RLIMIT_MEMLOCK)


def _in_use(key: str) -> int:
    """Returns ``key`` of this process in bytes; 0 where the kernel has no such table."""
    try:
        match = re.search(rf"^{key}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(match[1]) << 10 if match else 0


def _call(*args: object) -> int:
    libc = _libc()
    return int(libc.syscall(*args)) if os.uname().sysname == "Linux" else -1


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc
