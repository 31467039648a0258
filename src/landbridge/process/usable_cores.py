"""Counts the cores that this process may use at a time, by its affinity and the quotas of its control groups.

A container with a quota of two processors sees all of the machine's. Threads beyond the quota use it up early in each
period, and then all of them wait for the next one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import ceil
from pathlib import Path

_GROUPS = "/proc/self/cgroup"
_MOUNT = "/sys/fs/cgroup"


def usable_cores() -> int:
    """Returns the number of cores that this process may use, at least 1; a fraction of a quota counts as one."""
    quota = _quota(_GROUPS, _MOUNT)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if quota is None else max(1, min(cores, ceil(quota)))


def _quota(groups: str, mount: str) -> float | None:
    """Returns the smallest quota of the process's groups and those around them, in processors; None where there is
    none.

    Linux, "Control Group v2", section "CPU Interface Files", and "CFS Bandwidth Control" for version 1.
    """
    try:
        lines = _read(groups).splitlines()
    except (OSError, ValueError):
        # there is no /proc: use the roots of the mounts, which are a container's own groups
        lines = ["0::/", "1:cpu:/"]
    found = [quota for line in lines for quota in _quotas_of(line, mount)]
    return min(found, default=None)


def _quotas_of(line: str, mount: str) -> Iterator[float]:
    number, _, rest = line.partition(":")
    controllers, _, path = rest.partition(":")
    if number == "0" and not controllers:
        root, read = mount, _version_2
    elif "cpu" in controllers.split(","):
        root, read = f"{mount}/{controllers}", _version_1
        root = root if Path(root).is_dir() else f"{mount}/cpu"
    else:
        return
    inner = [part for part in path.split("/") if part]
    # inside a container the path may be that of the host, and the mount's root the container's group
    for length in range(len(inner), -1, -1):
        quota = read("/".join((root, *inner[:length])))
        if quota is not None:
            yield quota


def _version_2(folder: str) -> float | None:
    try:
        most, period = _read(f"{folder}/cpu.max").split()
        return None if most == "max" else int(most) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _version_1(folder: str) -> float | None:
    try:
        most = int(_read(f"{folder}/cpu.cfs_quota_us"))
        return most / int(_read(f"{folder}/cpu.cfs_period_us")) if most > 0 else None
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _read(file: str) -> str:
    """Returns the content of a small file, in a third of the time of a text file object: each Session calls it."""
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        return os.read(descriptor, 1 << 16).decode()
    finally:
        os.close(descriptor)
