"""LoggingAllocator: a line in the log for each request."""

from __future__ import annotations

import logging

from landbridge.errors import OutOfMemoryError
from landbridge.memory.allocators.adaptor import Adaptor
from landbridge.memory.allocators.base import Allocator, Block

_log = logging.getLogger("landbridge.memory")


class LoggingAllocator(Adaptor):
    """Logs to ``logger`` (None: ``landbridge.memory``), requests at DEBUG and failures at WARNING."""

    def __init__(self, upstream: Allocator, logger: logging.Logger | None = None) -> None:
        super().__init__(upstream)
        self._log = logger or _log

    def allocate(self, nbytes: int, alignment: int) -> Block:
        """A block of ``upstream``, logged."""
        try:
            block = self.upstream.allocate(nbytes, alignment)
        except OutOfMemoryError as error:
            self._log.warning("%s %s: allocate %d failed: %s", self.device, self.scope, nbytes, error)
            raise
        self._log.debug("%s %s: allocate %d align %d: %s", self.device, self.scope, nbytes, alignment, _place(block))
        return block

    def deallocate(self, block: Block) -> None:
        """Give ``block`` back to ``upstream``, logged."""
        self._log.debug("%s %s: deallocate %d: %s", self.device, self.scope, block.nbytes, _place(block))
        self.upstream.deallocate(block)


def _place(block: Block) -> str:
    return f"space {block.region.space.handle!r} from byte {block.region.byte_offset}"
