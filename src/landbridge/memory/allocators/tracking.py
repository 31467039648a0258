"""TrackingAllocator: records which blocks are out, and where in the program they were allocated."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from landbridge.errors import InputError
from landbridge.memory.allocators.adaptor import Adaptor
from landbridge.memory.allocators.base import Allocator, Block, Queue, QueuedUse, Size
from landbridge.records import record


@record(frozen=True, slots=True)
class Holding:
    """A block that is out: its bytes, its number in the order of allocation, and its stack where that is recorded."""

    nbytes: int
    serial: int
    stack: str


class TrackingAllocator(Adaptor):
    """Records each block until it comes back; with ``stacks`` also the Python stack of its request (slow)."""

    def __init__(self, upstream: Allocator, *, stacks: bool = False) -> None:
        super().__init__(upstream)
        self._stacks = stacks
        self._serials = count(1)
        self._out: dict[Block, Holding] = {}

    @property
    def holdings(self) -> list[Holding]:
        """Returns the blocks that are out, the largest first."""
        found = list(self._out.values())
        return sorted(found, key=lambda holding: (-holding.nbytes, holding.serial))

    def report(self) -> str:
        """Returns one line for each block that is out, the largest first, with its stack."""
        holdings = self.holdings
        head = f"{self.device} {self.scope}: {sum(h.nbytes for h in holdings)} bytes in {len(holdings)} blocks"
        return "\n".join([head, *(f"{h.nbytes} bytes, block {h.serial}\n{h.stack}".rstrip() for h in holdings)])

    def allocate(self, size: Size, alignment: int, queue: Queue | None = None) -> Block:
        """Returns a block of ``upstream``, and records it."""
        block = self.upstream.allocate(size, alignment, queue)
        stack = _stack() if self._stacks else ""
        self._out[block] = Holding(block.nbytes, next(self._serials), stack)
        return block

    def deallocate(self, block: Block, uses: Sequence[QueuedUse] = ()) -> None:
        """Give ``block`` back to ``upstream`` and remove its record; raises InputError for a block that is not out."""
        if self._out.pop(block, None) is None:
            raise InputError(
                f"{self.device} {self.scope}: {block} is not out; give a block back once, to the allocator it came from"
            )
        self.upstream.deallocate(block, uses)


def _stack() -> str:
    """Returns the Python stack of the request, as text."""
    import traceback

    return "".join(traceback.format_stack()[:-2])
