"""TrackedBlock: the state of one allocation that the sanitizer made."""

from __future__ import annotations

from collections.abc import Iterator

from landbridge.device.api import Region, Space
from landbridge.memory.byte_ranges import ByteRanges
from landbridge.records import record
from landbridge.sanitizer.clocks import Stamp
from landbridge.sanitizer.shadow import Shadow


@record(frozen=True, slots=True)
class StampedAccess:
    """A use of the bytes ``start <= b < stop`` of a block by the work of ``stamp``; ``subject`` names call and work.

    ``writes`` is None where a kernel may write, and nobody here knows.
    """

    start: int
    stop: int
    writes: bool | None
    stamp: Stamp
    subject: str

    def conflicts(self, other: StampedAccess) -> bool:
        """Returns whether the two must not happen at the same time; False for two that may write but need not."""
        return bool(self.writes or other.writes) and self.start < other.stop and other.start < self.stop


class TrackedBlock:
    """``nbytes`` bytes that begin ``front`` bytes into the ``inner`` space, which ends ``back`` bytes after them.

    Handles of the wrapper's Spaces refer to it. ``written``: initialized bytes; ``accesses``: those that the host has
    not seen done. ``has_shadow``: the host gets a Shadow, made at its first access. ``is_shared``: others may map it,
    and keep it when it is freed. Changed under the lock of the device.
    """

    __slots__ = (
        "accesses",
        "back",
        "born",
        "checked",
        "died",
        "front",
        "has_shadow",
        "inner",
        "is_shared",
        "nbytes",
        "parent",
        "shadow",
        "written",
    )

    def __init__(self, inner: Space, nbytes: int, born: str, front: int = 0, back: int = 0) -> None:
        self.inner = inner
        self.nbytes = nbytes
        self.front, self.back = front, back
        self.born = born
        self.died: str | None = None
        self.parent: TrackedBlock | None = None
        self.checked = True
        self.has_shadow = False
        self.is_shared = False
        self.shadow: Shadow | None = None
        self.written = ByteRanges()
        self.accesses: list[StampedAccess] = []

    def region(self, byte_offset: int = 0) -> Region:
        """Returns the location of byte ``byte_offset`` in the device's own space."""
        return Region(self.inner, self.front + byte_offset)

    @property
    def death(self) -> str | None:
        """Returns where it was freed, or what it is a part of; None while it lives."""
        return self.died or (self.parent.died if self.parent is not None else None)

    @property
    def total(self) -> int:
        """Returns the bytes of the inner space, redzones included."""
        return self.front + self.nbytes + self.back

    def redzones(self) -> Iterator[tuple[int, int]]:
        """Yields offset and bytes of each redzone, relative to the first byte of the block."""
        if self.front:
            yield -self.front, self.front
        if self.back:
            yield self.nbytes, self.back

    def __str__(self) -> str:
        return f"{self.nbytes} bytes of scope {self.inner.scope!r} of {self.inner.device}, allocated at {self.born}"


class SpaceHandle:
    """The handle of the wrapper's Spaces: one for each block, so that its end is the end of all its Spaces."""

    __slots__ = ("__weakref__", "block")

    def __init__(self, block: TrackedBlock) -> None:
        self.block = block
