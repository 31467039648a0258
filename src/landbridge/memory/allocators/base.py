"""The interface of allocators: what is asked, what is handed out, and what is known when it comes back.

A request is a size, an alignment and the queue that will use the block first. The size is a number of bytes, or an
``NdSize`` for a scope of more dimensions, whose space is the device's own. It is three arguments rather than an
object because a pool answers in less time than Python takes to make one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from landbridge.device.api import Device, Event, Region, Stream, wait_for_event
from landbridge.device.event import has_completed
from landbridge.errors import DeviceLostError, ForkedDeviceError, InputError
from landbridge.records import record
from landbridge.shape import dense_bytes


@record(frozen=True, slots=True)
class NdSize:
    """The size of an n-D block: the extents of its space, outermost first, in elements of ``dtype`` (its name).

    Raises InputError for negative extents and for more bytes than a device could address.
    """

    physical_shape: tuple[int, ...]
    dtype: str

    def __post_init__(self) -> None:
        dense_bytes(self.physical_shape, self.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, without what a device adds to its rows."""
        return dense_bytes(self.physical_shape, self.dtype)


#: What is asked of an allocator: bytes, or the extents of an n-D space.
Size = int | NdSize

#: Where work is done in order: a stream, or a Device for the one queue that it has besides its streams.
Queue = Stream | Device


def device_of(queue: Queue) -> Device:
    """The device that does the work of ``queue``."""
    return queue.device if isinstance(queue, Stream) else queue


@record(frozen=True, slots=True, eq=False)
class QueuedUse:
    """Queued work on the bytes of a block, done when ``event`` completes.

    ``queue`` is where it was submitted, None when no queue of a device orders it.
    """

    event: Event
    queue: Queue | None = None

    def wait(self, cause: object = "other work") -> None:
        """Return once the work is done; raises DeviceLostError, and notes the loss, when its device is gone.

        ``cause`` says why it was queued, for the error of a time limit.
        """
        work = "work queued for", cause
        if self.queue is None:
            wait_for_event(self.event, work=work)
            return
        device = device_of(self.queue)
        with device.state.watching():
            wait_for_event(self.event, device=device, work=work, queue=self.queue)

    def is_over(self, *, wait: bool = False) -> bool:
        """Whether the work is done, after waiting for it if asked to, or never will be as its device is gone."""
        try:
            if wait:
                self.wait()
                return True
            if self.queue is None:
                return has_completed(self.event)
            device = device_of(self.queue)
            with device.state.watching(method="Event.query"):
                return has_completed(self.event, device)
        except (DeviceLostError, ForkedDeviceError):
            return True


@record(frozen=True, slots=True, eq=False)
class Block:
    """``nbytes`` usable bytes from ``region`` on; owned by whoever allocated it until it is deallocated.

    Of an n-D space, ``nbytes`` is what it takes of its scope's capacity.

    ``uses`` is work of the last owner that the block's first use must come after; it is empty unless the request
    named the queue that orders the two.
    """

    region: Region
    nbytes: int
    uses: tuple[QueuedUse, ...] = ()


class Allocator(Protocol):
    """A source of blocks of one scope of one device. Adaptors are allocators around another one."""

    @property
    def device(self) -> Device:
        """Where the blocks lie."""

    @property
    def scope(self) -> str:
        """The memory scope of the blocks."""

    def allocate(self, size: Size, alignment: int, queue: Queue | None = None) -> Block:
        """A block of at least ``size`` whose start is a multiple of ``alignment``; raises OutOfMemoryError.

        ``queue``: where the block is used first. None: anywhere, so nothing may be pending on it. Raises
        InputError for an ``NdSize`` where blocks are flat.
        """

    def deallocate(self, block: Block, uses: Sequence[QueuedUse] = ()) -> None:
        """Take ``block`` back, on which ``uses`` may still be pending; callable from any thread, finalizers included.

        No other queue gets the bytes, and the device does not get them back, before those are done.
        """


def bytes_of(size: Size) -> int:
    """``size`` in bytes."""
    return size if isinstance(size, int) else size.nbytes


def flat_bytes(size: Size, allocator: Allocator) -> int:
    """``size`` of a flat block of ``allocator``; raises InputError for an ``NdSize``."""
    if isinstance(size, NdSize):
        raise InputError(
            f"{type(allocator).__name__} of {allocator.device} {allocator.scope} hands out flat blocks and was asked "
            f"for {size.dtype}{list(size.physical_shape)}; ask for bytes, or take the scope's naive allocator"
        )
    return size


def round_up(value: int, multiple: int) -> int:
    """The smallest multiple of ``multiple`` that is at least ``value``."""
    return -(-value // multiple) * multiple


def wait_for(uses: Iterable[QueuedUse]) -> None:
    """Return once ``uses`` are done, or will never be because their device is gone."""
    for use in uses:
        use.is_over(wait=True)
