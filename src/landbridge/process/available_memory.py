"""Checks whether memory that will be needed is available, on this machine and under its limits, before it is taken.

Linux gives pages when they are touched: what is not there ends some process later, in a run.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path, PurePosixPath

from landbridge.errors import OutOfMemoryError

_MEMORY, _PROCESS = Path("/proc/meminfo"), Path("/proc/self/statm")
_OVERCOMMIT = Path("/proc/sys/vm/overcommit_memory")
_GROUPS, _MOUNT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
#: Smaller requests are not compared with the available memory, because reading it takes a tenth of a millisecond.
NOTICED = 16 << 20

_limit: ContextVar[int | None] = ContextVar("limit", default=None)


@contextmanager
def limited_to(nbytes: int | None) -> Iterator[None]:
    """Makes ``check_available`` refuse what needs more than ``nbytes`` bytes within the block; None adds no limit to
    the machine's.
    """
    before = _limit.set(nbytes)
    try:
        yield
    finally:
        _limit.reset(before)


def check_available(needed: int, subject: str, way_out: str, *, mapped: bool = False) -> None:
    """Raises OutOfMemoryError unless ``needed`` bytes are available and allowed (``limited_to``).

    The message says ``subject`` needs them, and ``way_out`` what helps.

    ``mapped``: they are of a file, whose pages the system reads and drops, so that only the process's own limit counts.
    """
    check_limit(needed, subject, way_out)
    if needed < NOTICED:
        return
    for available, where in _of_process() if mapped else _available():
        if needed > available:
            raise OutOfMemoryError(
                f"{subject} needs {needed:,} bytes of memory, and {max(0, available):,} are available ({where}); "
                f"{way_out}"
            )


def check_limit(needed: int, subject: str, way_out: str) -> None:
    """Raises OutOfMemoryError where fewer than ``needed`` bytes are allowed (``limited_to``)."""
    allowed = _limit.get()
    if allowed is not None and needed > allowed:
        raise OutOfMemoryError(
            f"{subject} needs {needed:,} bytes of memory, and {allowed:,} are allowed (memory_limit= of the Session); "
            f"allow more, or {way_out}"
        )


def is_address_space_free() -> bool:
    """Returns whether mapping memory takes nothing from anybody until it is touched.

    It does where addresses have 64 bits, and neither the process nor the machine (``vm.overcommit_memory=2``) has a
    limit on what is mapped.
    """
    if sys.maxsize < 1 << 32 or resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        return False
    try:
        return _OVERCOMMIT.read_text().strip() != "2"
    except OSError:  # the system does not say
        return False


def _available() -> Iterator[tuple[int, str]]:
    """Yields the bytes that are still available, with the name of what limits them."""
    known = _fields(_MEMORY)
    if "MemAvailable" in known:
        yield known["MemAvailable"] + known.get("SwapFree", 0), f"MemAvailable and SwapFree of {_MEMORY}"
    yield from _of_process()
    yield from _of_groups()


def _of_process() -> Iterator[tuple[int, str]]:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        try:
            taken = int(_PROCESS.read_text().split()[0]) * resource.getpagesize()
        except (OSError, ValueError, IndexError):
            return  # the system does not say how much of the limit is left
        yield limit - taken, "RLIMIT_AS, as ulimit -v sets it"


def _fields(file: Path) -> dict[str, int]:
    """Returns the values of the lines ``NAME: NUMBER kB`` of ``file``, in bytes, by name."""
    try:
        lines = [line.split() for line in file.read_text().splitlines()]
    except OSError:
        return {}
    return {words[0].rstrip(":"): int(words[1]) << 10 for words in lines if len(words) > 1 and words[1].isdecimal()}


def _of_groups() -> Iterator[tuple[int, str]]:
    """Yields the bytes that the control groups around this process leave, with files that the kernel may drop.

    Linux, "Control Group v2", section "Memory Interface Files".
    """
    try:
        lines = _GROUPS.read_text().splitlines()
    except OSError:
        lines = ["0::/"]  # there is no /proc: use the root of the mount, which in a container is its own group
    for line in lines:
        if not line.startswith("0::"):
            continue
        inner = PurePosixPath(line[3:].lstrip("/"))
        # inside a container the path may be that of the host, and the mount's root the container's group
        for folder in (inner, *inner.parents):
            location = _MOUNT / folder
            try:
                most, taken = ((location / f"memory.{name}").read_text().strip() for name in ("max", "current"))
                dropped = [each.split() for each in (location / "memory.stat").read_text().splitlines()]
            except OSError:
                continue
            if most != "max":
                files = sum(int(n) for name, n in dropped if name in ("inactive_file", "active_file"))
                yield int(most) - int(taken) + files, f"memory.max of control group {folder}"
