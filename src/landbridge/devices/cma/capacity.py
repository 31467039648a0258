"""What memory the machine has to give: a check for sources that would take the last ordinary pages, and the words for
an error of the contiguous areas."""

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
    facts = _facts(meminfo)
    if not facts.keys() >= {"MemAvailable", "MemTotal"}:  # unknown
        return
    available, total = facts["MemAvailable"], facts["MemTotal"]
    if nbytes > available - total // _LEFT:
        raise OutOfMemoryError(
            f"{subject} was asked for {nbytes} bytes, and this machine has {available} of its {total} bytes of memory "
            f"available, of which a {_LEFT}th of all is left to others"
        )


def contiguous_areas(meminfo: Path = MEMINFO) -> str | None:
    """Returns how many bytes the kernel's contiguous areas have and have free, and how one gets more, as part of a
    sentence; None where the kernel does not say.
    """
    facts = _facts(meminfo)
    if not facts.get("CmaTotal") or "CmaFree" not in facts:
        return None
    return (
        f"{facts['CmaFree']} of the {facts['CmaTotal']} bytes of the kernel's contiguous areas are free, in one piece "
        "or in several; free buffers, or start the kernel with a larger area (cma=SIZE)"
    )


def _facts(meminfo: Path) -> dict[str, int]:
    """Returns the numbers of bytes that ``meminfo`` states by name; none where it cannot be read."""
    try:
        found = re.findall(r"^(\w+): +(\d+) kB$", meminfo.read_text(), re.MULTILINE)
    except OSError:
        return {}
    return {name: int(kib) << 10 for name, kib in found}
