"""WholeObjectAllocator: objects such as images, each for exactly the extents and dtype it was made for."""

from __future__ import annotations

from collections.abc import Hashable

from landbridge.errors import InputError
from landbridge.memory.allocators.base import NdSize, Size
from landbridge.memory.allocators.whole_blocks import WholeBlockAllocator


class WholeObjectAllocator(WholeBlockAllocator):
    """Hands an object that came back out again for its own extents and dtype.

    A driver makes an image slowly, and no image can be cut out of another.
    """

    def key_of(self, size: Size) -> Hashable:
        """Returns the extents and the dtype; raises InputError for bytes."""
        if not isinstance(size, NdSize):
            raise InputError(
                f"{self.device} {self.scope} holds objects and was asked for {size} bytes; ask for extents and a dtype"
            )
        return size
