"""LoggingAllocator: writes a line to the log for each request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from landbridge.errors import OutOfMemoryError
from landbridge.memory.allocators.adaptor import Adaptor
from landbridge.memory.allocators.base import Allocator, Block, Queue, QueuedUse, Size

if TYPE_CHECKING:
    import logging


class LoggingAllocator(Adaptor):
    """Logs requests to ``logger`` (None: ``landbridge.memory``) at DEBUG, and failures at WARNING."""

    def __init__(self, upstream: Allocator, logger: logging.Logger | None = None) -> None:
        super().__init__(upstream)
        if logger is None:
            import logging  # the import takes 2 ms of every start, and few programs use this allocator

            logger = logging.getLogger("landbridge.memory")
        self._log = logger

    def allocate(self, size: Size, alignment: int, queue: Queue | None = None) -> Block:
        """Returns a block of ``upstream``, and logs the request; raises OutOfMemoryError as ``upstream`` does, logged
        as a warning.
        """
        try:
            block = self.upstream.allocate(size, alignment, queue)
        except OutOfMemoryError as error:
            self._log.warning("%s %s: allocate %s failed: %s", self.device, self.scope, size, error)
            raise
        self._log.debug("%s %s: allocate %s align %d: %s", self.device, self.scope, size, alignment, _location(block))
        return block

    def deallocate(self, block: Block, uses: Sequence[QueuedUse] = ()) -> None:
        """Give ``block`` back to ``upstream``, and log it."""
        self._log.debug("%s %s: deallocate %d: %s", self.device, self.scope, block.nbytes, _location(block))
        self.upstream.deallocate(block, uses)


def _location(block: Block) -> str:
    return f"space {block.region.space.handle!r} from byte {block.region.byte_offset}"
