"""A check that the machine has ordinary pages to give, for sources that would take the last of them."""

from __future__ import annotations

import re
from pathlib import Path

from landbridge.errors import OutOfMemoryError

MEMINFO = Path("/proc/meminfo")

#: The part of the machine's memory that is left to others: without it the kernel ends processes, perhaps this one.
_LEFT = 64


def check_capacity(nbytes: int, subject: str, meminfo: Path = MEMINFO) -> None:
    """Raises OutOfMemoryError where ``nbytes`` bytes of ordinary pages for ``subject`` would leave the machine too few.

    Such pages are pinned as long as a buffer lives: the kernel can neither swap them out nor refuse them in time.
    """
    try:
        facts = dict(re.findall(r"^(\w+): +(\d+) kB$", meminfo.read_text(), re.MULTILINE))
        available, total = int(facts["MemAvailable"]) << 10, int(facts["MemTotal"]) << 10
    except (OSError, KeyError):  # unknown
        return
    if nbytes > available - total // _LEFT:
        raise OutOfMemoryError(
            f"{subject} was asked for {nbytes} bytes, and this machine has {available} of its {total} bytes of memory "
            f"available, of which a {_LEFT}th of all is left to others"
        )
