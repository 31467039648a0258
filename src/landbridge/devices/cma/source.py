"""MemorySource: where file descriptors of memory come from, and what is known of that memory."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Protocol


class MemorySource(Protocol):
    """One place to get memory from. Methods may be called from any thread.

    ``name`` is that of its scope, ``global.NAME``. ``physically_contiguous`` is True only where the source promises
    it for every buffer, ``cached`` whether the host reaches it through its caches. ``unit``: sizes are multiples of it,
    in bytes, and buffers begin at one. ``max_bytes``: of one buffer, None is no known limit.
    """

    @property
    def name(self) -> str: ...

    @property
    def unit(self) -> int: ...

    @property
    def cached(self) -> bool: ...

    @property
    def physically_contiguous(self) -> bool | None: ...

    @property
    def max_bytes(self) -> int | None: ...

    def missing(self) -> str | None:
        """What was looked for and why it cannot be used; None where it can."""

    def allocate(self, nbytes: int) -> int:
        """A file descriptor of ``nbytes`` bytes of zeros, the caller's to close, which maps from offset 0 on.

        Raises OutOfMemoryError with the kernel's reason and the limit that was met.
        """


def unusable(node: Path) -> str | None:
    """Why this process cannot open the device file ``node`` for reading and writing; None where it can."""
    try:
        facts = node.stat()
    except OSError as error:
        return f"{node}: {error.strerror}"
    if not stat.S_ISCHR(facts.st_mode):
        return f"{node} is no device file"
    if not os.access(node, os.R_OK | os.W_OK):
        mode = stat.filemode(facts.st_mode)
        return f"{node} is {mode}, of user {facts.st_uid} and group {facts.st_gid}: join that group, or change its mode"
    return None
