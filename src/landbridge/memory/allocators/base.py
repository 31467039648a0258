"""The interface of allocators: requests, blocks, and the work that is pending on a block that comes back.

A request has a size, an alignment and the queue that will use the block first. The size is a number of bytes, or an
``NdSize`` for a scope of more dimensions, whose space the device lays out. A request is three arguments rather than an
object because a pool answers in less time than Python takes to make one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from landbridge.device.api import Device, Event, Region, Stream, wait_for_event
from landbridge.device.event import has_completed
from landbridge.errors import DeviceLostError, DeviceSuspendedError, ForkedDeviceError, InputError
from landbridge.records import record
from landbridge.shapes.strides import dense_bytes


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
        """Returns the bytes of the elements, without padding that a device adds to rows."""
        return dense_bytes(self.physical_shape, self.dtype)


#: The size of a request: bytes, or the extents of an n-D space.
Size = int | NdSize

#: A queue, which does work in order: a stream, or a Device for the one queue that it has besides its streams.
Queue = Stream | Device


def device_of(queue: Queue) -> Device:
    """Returns the device that does the work of ``queue``."""
    return queue.device if isinstance(queue, Stream) else queue


@record(frozen=True, slots=True, eq=False)
class QueuedUse:
    """Queued work on the bytes of a block, which is done when ``event`` completes.

    ``queue`` is where the work was submitted, None when no queue of a device orders it.
    """

    event: Event
    queue: Queue | None = None

    def wait(self, cause: object = "other work") -> None:
        """Wait until the work is done; raises DeviceLostError, and records the loss, when its device is gone.

        ``cause`` says why the work was queued, for the error of a time limit.
        """
        work = "work queued for", cause
        if self.queue is None:
            wait_for_event(self.event, work=work)
            return
        device = device_of(self.queue)
        if device.state.is_suspended:  # work is done before that
            return
        with device.state.watching():
            wait_for_event(self.event, device=device, work=work, queue=self.queue)

    def is_over(self, *, wait: bool = False) -> bool:
        """Returns whether the work is done, or never will be as its device is gone; with ``wait``, waits for it
        first.
        """
        try:
            if wait:
                self.wait()
                return True
            if self.queue is None:
                return has_completed(self.event)
            device = device_of(self.queue)
            with device.state.watching(method="Event.query"):
                return has_completed(self.event, device)
        except (DeviceLostError, DeviceSuspendedError, ForkedDeviceError):  # work is done before a suspension
            return True


@record(frozen=True, slots=True, eq=False)
class Block:
    """``nbytes`` usable bytes from ``region`` on, which belong to the caller who allocated them until deallocation.

    For an n-D space, ``nbytes`` is the part of the scope's capacity that it takes.

    ``uses`` is work of the last owner that the first use of the block must follow. It is empty unless the request named
    the queue that orders the two.
    """

    region: Region
    nbytes: int
    uses: tuple[QueuedUse, ...] = ()


class Allocator(Protocol):
    """A source of blocks in one scope of one device. Adaptors are allocators around another one."""

    @property
    def device(self) -> Device:
        """Returns the device whose memory the blocks are."""

    @property
    def scope(self) -> str:
        """Returns the memory scope of the blocks."""

    def allocate(self, size: Size, alignment: int, queue: Queue | None = None) -> Block:
        """Returns a block of at least ``size`` at a multiple of ``alignment`` bytes; raises OutOfMemoryError.

        ``queue``: where the block is used first. With None it may be used anywhere, so no work may be pending on it.
        Raises InputError for an ``NdSize`` where blocks are flat.
        """

    def deallocate(self, block: Block, uses: Sequence[QueuedUse] = ()) -> None:
        """Take ``block`` back, on which ``uses`` may still be pending. Any thread may call this, finalizers included.

        No other queue gets the bytes, and the device does not get them back, before those uses are done.
        """


def bytes_of(size: Size) -> int:
    """Returns ``size`` in bytes."""
    return size if isinstance(size, int) else size.nbytes


def flat_bytes(size: Size, allocator: Allocator) -> int:
    """Returns ``size``, of a flat block of ``allocator``, in bytes; raises InputError for an ``NdSize``."""
    if isinstance(size, NdSize):
        raise InputError(
            f"{type(allocator).__name__} of {allocator.device} {allocator.scope} hands out flat blocks and was asked "
            f"for {size.dtype}{list(size.physical_shape)}; ask for bytes, or take the scope's naive allocator"
        )
    return size


def round_up(value: int, multiple: int) -> int:
    """Returns the smallest multiple of ``multiple`` that is at least ``value``."""
    return -(-value // multiple) * multiple


def wait_for(uses: Iterable[QueuedUse]) -> None:
    """Wait until ``uses`` are done, or never will be because their device is gone."""
    for use in uses:
        use.is_over(wait=True)
