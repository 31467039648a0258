"""Whether the machine has memory to give, for sources that take ordinary pages until there are none."""

from __future__ import annotations

import re
from pathlib import Path

from landbridge.errors import OutOfMemoryError

MEMINFO = Path("/proc/meminfo")

#: Of the machine's memory, what is left to others: without it the kernel ends processes, this one perhaps.
_LEFT = 64


def check_capacity(nbytes: int, subject: str, meminfo: Path = MEMINFO) -> None:
    """Raise OutOfMemoryError where ``nbytes`` bytes of ordinary pages for ``subject`` would leave the machine none.

    Such pages are the kernel's own as long as a buffer lives: it can neither write them out nor refuse them in time.
    """
    try:
        facts = dict(re.findall(r"^(\w+): +(\d+) kB$", meminfo.read_text(), re.MULTILINE))
        available, total = int(facts["MemAvailable"]) << 10, int(facts["MemTotal"]) << 10
    except (OSError, KeyError):  # nobody knows
        return
    if nbytes > available - total // _LEFT:
        raise OutOfMemoryError(
            f"{subject} was asked for {nbytes} bytes, and this machine has {available} of its {total} bytes of memory "
            f"available, of which a {_LEFT}th of all is left to others"
        )
