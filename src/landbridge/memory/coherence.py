"""Coherence: who wrote each granule last, where host and device do not see each other's writes.

A granule is clean, host-dirty (the host wrote, the device does not see it yet) or device-dirty (the reverse). Both
at once would lose one side's writes and is an error. Barriers are rounded outwards to whole granules, a host-dirty
one is flushed before any access of the device. Coherent memory has no such state, and its barriers are no-ops.
"""

from __future__ import annotations

from landbridge.device.protocols import AccessMode, HostBarriers
from landbridge.errors import HostAccessError
from landbridge.memory.byte_ranges import Range
from landbridge.memory.row_space import region_at
from landbridge.memory.storage import Storage


def begin_host_access(storage: Storage, start: int, stop: int, mode: AccessMode) -> None:
    """Make ``start <= b < stop`` ready for the host, which then reads or writes them as ``mode`` says.

    Waits for what is queued on their granules. "w" discards what the range held, but not what else those hold.
    """
    low, high = _granules(storage, start, stop)
    storage.wait(low, high, writes=mode != "r")
    dirty = storage.dirty
    if dirty is None:
        _begin(storage, low, high, mode)
        return
    for written in dirty.by_host.within(low, high):
        _end(storage, *written, "w")  # another view has its granules here: the barrier must not bring old bytes back
    shares_granules = low < start or stop < min(high, storage.nbytes)
    _begin(storage, low, high, "rw" if mode == "w" and shares_granules else mode)
    dirty.by_device.remove(low, high)
    if mode != "r":
        dirty.by_host.add(low, high)


def end_host_access(storage: Storage, start: int, stop: int, mode: AccessMode) -> None:
    """Make what the host wrote of ``start <= b < stop`` visible to the device, when ``mode`` writes.

    Raises HostAccessError when the device wrote to the same granules meanwhile; no barrier is called then.
    """
    low, high = _granules(storage, start, stop)
    dirty = storage.dirty
    if dirty is None or mode == "r":
        _end(storage, low, high, mode)
        return
    if lost := dirty.by_device.within(low, high):
        dirty.by_host.remove(low, high)
        raise HostAccessError(
            f"host and device both wrote bytes {lost[0][0]} to {lost[0][1]} of a storage on {storage.device}, whose "
            f"granules are {storage.kind.coherence_granule} bytes: what the host wrote there is not flushed; call "
            "invalidate() before writing, and leave the view before the device writes"
        )
    _end(storage, low, high, mode)
    dirty.by_host.remove(low, high)


def before_device_access(storage: Storage, start: int, stop: int, *, writes: bool) -> None:
    """Flush what the host wrote of ``start <= b < stop``; call it before the device is given work on them."""
    dirty = storage.dirty
    if dirty is None:
        return
    low, high = _granules(storage, start, stop)
    if dirty.by_host:
        for written in dirty.by_host.within(low, high):
            _end(storage, *written, "w")
        dirty.by_host.remove(low, high)
    if writes:
        dirty.by_device.add(low, high)


def _granules(storage: Storage, start: int, stop: int) -> Range:
    """The range rounded outwards to whole granules, which are counted from the start of the Space."""
    offset = storage.live_region.byte_offset
    granule = storage.kind.coherence_granule
    return (offset + start) // granule * granule - offset, -(-(offset + stop) // granule) * granule - offset


def _begin(storage: Storage, start: int, stop: int, mode: AccessMode) -> None:
    if (api := storage.device.capability(HostBarriers)) is not None:
        with storage.device.state.watching():
            api.begin_host_access(region_at(storage.live_region, start), stop - start, mode)


def _end(storage: Storage, start: int, stop: int, mode: AccessMode) -> None:
    if (api := storage.device.capability(HostBarriers)) is not None:
        with storage.device.state.watching():
            api.end_host_access(region_at(storage.live_region, start), stop - start, mode)
