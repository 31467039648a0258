"""Reads the sizes of this host's caches from Linux or the C library."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

#: The format of this folder: Linux, Documentation/ABI/testing/sysfs-devices-system-cpu.
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
#: Names of sysconf for hosts where Linux's folder is not mounted: the C library queries the processor.
_NAMES: Mapping[int, str] = {1: "SC_LEVEL1_DCACHE_SIZE", 2: "SC_LEVEL2_CACHE_SIZE", 3: "SC_LEVEL3_CACHE_SIZE"}
_UNITS: Mapping[str, int] = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def cache_bytes(level: int) -> int | None:
    """Returns the bytes of this host's data (or unified) cache of ``level``, 1 to 3; None if not known."""
    for index in sorted(_CACHES.glob("index*")):
        try:
            if int((index / "level").read_text()) != level:
                continue
            if (index / "type").read_text().strip() == "Instruction":
                continue
            return _size((index / "size").read_text().strip())
        except (OSError, ValueError):
            continue
    name = _NAMES[level]
    found = os.sysconf(name) if name in getattr(os, "sysconf_names", {}) else 0
    return found if found > 0 else None


def _size(text: str) -> int:
    return int(text[:-1]) * _UNITS[text[-1]] if text[-1:] in _UNITS else int(text)
