"""LoggingAllocator: a line in the log for each request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from landbridge.errors import OutOfMemoryError
from landbridge.memory.allocators.adaptor import Adaptor
from landbridge.memory.allocators.base import Allocator, Block, Queue, QueuedUse, Size

if TYPE_CHECKING:
    import logging


class LoggingAllocator(Adaptor):
    """Logs to ``logger`` (None: ``landbridge.memory``), requests at DEBUG and failures at WARNING."""

    def __init__(self, upstream: Allocator, logger: logging.Logger | None = None) -> None:
        super().__init__(upstream)
        if logger is None:
            import logging  # two milliseconds of every start, for an allocator that few ask for

            logger = logging.getLogger("landbridge.memory")
        self._log = logger

    def allocate(self, size: Size, alignment: int, queue: Queue | None = None) -> Block:
        """A block of ``upstream``, logged."""
        try:
            block = self.upstream.allocate(size, alignment, queue)
        except OutOfMemoryError as error:
            self._log.warning("%s %s: allocate %s failed: %s", self.device, self.scope, size, error)
            raise
        self._log.debug("%s %s: allocate %s align %d: %s", self.device, self.scope, size, alignment, _location(block))
        return block

    def deallocate(self, block: Block, uses: Sequence[QueuedUse] = ()) -> None:
        """Give ``block`` back to ``upstream``, logged."""
        self._log.debug("%s %s: deallocate %d: %s", self.device, self.scope, block.nbytes, _location(block))
        self.upstream.deallocate(block, uses)


def _location(block: Block) -> str:
    return f"space {block.region.space.handle!r} from byte {block.region.byte_offset}"
