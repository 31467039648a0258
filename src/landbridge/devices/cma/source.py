"""MemorySource: the interface of sources of memory with file descriptors, and the properties of that memory."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from landbridge.device.memory_provider import MemoryProvider
from landbridge.records import record


@record(frozen=True)
class Piece:
    """Memory from byte ``offset`` of the file ``fd`` on; whoever gets it closes the file.

    ``provider`` makes its provider, given the address at which this process maps it; None where the file's own barriers
    are used, as those of a dma-buf, and no bus address is known. ``give_back`` is called once it is unmapped.
    """

    fd: int
    offset: int = 0
    provider: Callable[[int], MemoryProvider] | None = None
    give_back: Callable[[], None] | None = None


class MemorySource(Protocol):
    """A source of memory. Methods may be called from any thread.

    ``name`` is that of its scope, ``global.NAME``. ``page_bytes``: of the pages that a buffer is made of, each of which
    is contiguous. ``physically_contiguous`` is True only where the source promises it for every buffer, ``pinned`` only
    where the pages stay in place while a buffer lives; ``cached`` says whether the host reaches it through its caches.
    ``unit``: sizes are multiples of it, in bytes, and buffers begin at one. ``max_bytes``: of one buffer, None is no
    known limit. ``capacity``: of all of them where they are parts of one memory, else None: each is a file of its own.
    ``by_name``: scope ``global`` never uses it, as its users must know how.
    """

    @property
    def name(self) -> str: ...

    @property
    def unit(self) -> int: ...

    @property
    def page_bytes(self) -> int: ...

    @property
    def cached(self) -> bool: ...

    @property
    def physically_contiguous(self) -> bool | None: ...

    @property
    def pinned(self) -> bool: ...

    @property
    def max_bytes(self) -> int | None: ...

    @property
    def capacity(self) -> int | None: ...

    @property
    def by_name(self) -> bool: ...

    def missing(self) -> str | None:
        """Returns what was looked for and why it cannot be used; None where it can."""

    def allocate(self, nbytes: int, alignment: int) -> Piece:
        """Returns a piece of ``nbytes`` bytes, zeroed where it is a file of its own.

        Where its bus address is known, that is a multiple of ``alignment``. Raises OutOfMemoryError with the kernel's
        reason and the limit that was met.
        """


def unusable(node: Path) -> str | None:
    """Returns why this process cannot open the device file ``node`` for reading and writing; None where it can."""
    try:
        facts = node.stat()
    except OSError as error:
        return f"{node}: {error.strerror}"
    if not stat.S_ISCHR(facts.st_mode):
        return f"{node} is not a device file"
    if not os.access(node, os.R_OK | os.W_OK):
        mode = stat.filemode(facts.st_mode)
        return f"{node} is {mode}, of user {facts.st_uid} and group {facts.st_gid}: join that group, or change its mode"
    return None
