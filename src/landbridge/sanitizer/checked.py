"""Methods of Protocols for which the sanitizer does more than translate arguments; they are found by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from landbridge.device.api import Event, NdSpace, Region, Space, Stream
from landbridge.device.import_source import ImportSource
from landbridge.device.lifecycle import open_once
from landbridge.device.protocols import AccessMode, RowTable
from landbridge.errors import InputError
from landbridge.records import record
from landbridge.sanitizer.block import TrackedBlock
from landbridge.sanitizer.findings import call_site, fail
from landbridge.sanitizer.order import TrackedEvent
from landbridge.sanitizer.sanitized import SanitizedDevice, regions_of
from landbridge.sanitizer.shadow import Shadow


@record(slots=True)
class RecordedWork:
    """Work recorded on instance ``index``; replays change ``regions``, while ``rows`` of tables stay."""

    inner: object
    index: int
    regions: list[Region]
    rows: list[Region]


# --- memory ----------------------------------------------------------------------------------------------------


def alloc_workspace(self: SanitizedDevice, index: int, nbytes: int, stream: Stream | None) -> Space:
    """Allocates poisoned memory between redzones."""
    block = self.spaces.allocate(
        self.inner_device(index),
        nbytes,
        1,
        "global",
        lambda total, _: self.inner.alloc_workspace(index, total, self.within(stream)),  # type: ignore[attr-defined]
    )
    return self.handed_out(block)


def free_workspace(self: SanitizedDevice, space: Space) -> None:
    """Checks the memory and frees it at once, without quarantine."""
    block = self.block_of(space, "free_workspace")
    self.spaces.free(block, self.inner.free_workspace, keep=False)  # type: ignore[attr-defined]


def alloc_shared_space(self: SanitizedDevice, index: int, nbytes: int, alignment: int, scope: str) -> Space:
    """Allocates as the inner device does, without redzones: others map it from its first byte on."""
    inner: Any = self.inner
    block = TrackedBlock(inner.alloc_shared_space(index, nbytes, alignment, scope), nbytes, call_site())
    block.written.add(0, nbytes)
    block.is_shared = True
    return self.handed_out(block)


def alloc_data_space_nd(
    self: SanitizedDevice, index: int, physical_shape: Sequence[int], dtype: str, scope: str, alignment: int
) -> Space:
    """Allocates as the inner device does, which places the rows."""
    inner: Any = self.inner
    space: NdSpace = inner.alloc_data_space_nd(index, physical_shape, dtype, scope, alignment)
    extent = space.row_pitch or space.row_bytes
    block = TrackedBlock(space, extent * (physical_shape[0] if physical_shape else 1), call_site())
    block.written.add(0, block.nbytes)
    return self.handed_out(block)


def import_memory(self: SanitizedDevice, index: int, source: ImportSource, access: AccessMode) -> Space:
    """Imports in place; the owner keeps the bytes."""
    inner: Any = self.inner
    block = TrackedBlock(inner.import_memory(index, source, access), source.nbytes, call_site())
    block.written.add(0, block.nbytes)
    return self.handed_out(block)


def release_import(self: SanitizedDevice, space: Space) -> None:
    """Checks the release as a free."""
    block = self.block_of(space, "release_import")
    self.spaces.free(block, self.inner.release_import, keep=False)  # type: ignore[attr-defined]


def host_pointer(self: SanitizedDevice, space: Space) -> int:
    """Returns the address of the first byte of the block, or of its shadow, which callers may write to from now on."""
    inner: Any = self.inner
    block = self.block_of(space, "host_pointer")
    if block.nbytes < 1 << 62:
        block.written.add(0, block.nbytes)
    shadow = _shadow(self, block)
    return shadow.address if shadow is not None else int(inner.host_pointer(self.within(space))) + block.front


def begin_host_access(self: SanitizedDevice, region: Region, nbytes: int, mode: AccessMode) -> None:
    """Waits for earlier work on these bytes, as the device does; then updates the shadow from the device."""
    inner: Any = self.inner
    block = self.block_of(region.space, "begin_host_access")
    inner.begin_host_access(self.within(region), nbytes, mode)
    start = region.byte_offset
    for touched, subject in self.order.host_waited(block, start, start + nbytes, mode != "r"):
        self.spaces.check_redzones(touched, subject)
    _begin(self, block, start, nbytes, mode)


def begin_host_access_after(
    self: SanitizedDevice, region: Region, nbytes: int, mode: AccessMode, events: Sequence[Event]
) -> None:
    """As ``begin_host_access``; work on these bytes that ``events`` do not name, and nobody waited for, is a race."""
    inner: Any = self.inner
    block = self.block_of(region.space, "begin_host_access_after")
    inner.begin_host_access_after(self.within(region), nbytes, mode, self.within(events))
    for event in events:
        if isinstance(event, TrackedEvent):
            self.done(event.stamp)
    start = region.byte_offset
    for pending in self.order.unfinished(block, start, start + nbytes, mode != "r"):
        if mode == "r" and pending.writes is None:  # a kernel, which may only read, as the host does
            continue
        fail(
            "race",
            f"{self.described(f'begin_host_access_after {mode!r}')} is for bytes {start} to {start + nbytes} of "
            f"{block}, and no event that it names, or that was waited for, comes after {pending.subject}; name its "
            "event, or wait for it",
        )
    _begin(self, block, start, nbytes, mode)


def _begin(self: SanitizedDevice, block: TrackedBlock, start: int, nbytes: int, mode: AccessMode) -> None:
    """Updates the shadow of ``block`` from the device."""
    if mode != "r" and block.nbytes < 1 << 62:
        block.written.add(start, start + nbytes)
    shadow = _shadow(self, block)
    if shadow is None:
        return
    seen = min(nbytes, block.nbytes - start)
    lost = shadow.changed(start, seen)
    if mode == "w":
        shadow.discard(start, seen)
    else:
        shadow.bring(start, seen)
    if lost is not None:
        fail(
            "missing barrier",
            f"the host wrote byte {lost} of {block} after the last end_host_access, and "
            f"{self.described(f'begin_host_access {mode!r}')} loses it; write while a view is open, or flush() it",
        )


def end_host_access(self: SanitizedDevice, region: Region, nbytes: int, mode: AccessMode) -> None:
    """Ends the access as the inner device does; then updates the device from the shadow."""
    inner: Any = self.inner
    block = self.block_of(region.space, "end_host_access")
    shadow = _shadow(self, block)
    if shadow is not None and mode != "r":
        shadow.send(region.byte_offset, min(nbytes, block.nbytes - region.byte_offset))
    inner.end_host_access(self.within(region), nbytes, mode)


def _shadow(self: SanitizedDevice, block: TrackedBlock) -> Shadow | None:
    """Returns what the host sees in place of ``block``; None where it sees the memory itself."""
    if block.has_shadow and block.shadow is None:
        inner: Any = self.inner
        block.shadow = Shadow(int(inner.host_pointer(block.inner)) + block.front, block.nbytes)
    return block.shadow


# --- time ------------------------------------------------------------------------------------------------------


def free_stream(self: SanitizedDevice, stream: Stream) -> None:
    """Frees the stream; work that is queued on it is still checked."""
    inner: Any = self.inner
    inner.free_stream(self.within(stream))
    self.forget_stream(stream)


def stream_sync(self: SanitizedDevice, index: int, stream: Stream | None) -> None:
    """Waits for all of ``stream``, and notes that the host saw it done."""
    inner: Any = self.inner
    point = self.order.now(self.queue(index, stream))
    inner.stream_sync(index, self.within(stream))
    self.done(point)


def sync_stream_from_to(self: SanitizedDevice, index: int, source: Stream | None, target: Stream | None) -> None:
    """Orders two queues."""
    inner: Any = self.inner
    inner.sync_stream_from_to(index, self.within(source), self.within(target))
    self.order.after(self.queue(index, target), self.order.now(self.queue(index, source)))


def record_event(self: SanitizedDevice, index: int, stream: Stream | None) -> TrackedEvent:
    """Returns an event of a queue."""
    inner: Any = self.inner
    event: Event = inner.record_event(index, self.within(stream))
    return TrackedEvent(event, self.order.now(self.queue(index, stream)), self.done)


def wait_event(self: SanitizedDevice, index: int, stream: Stream | None, event: Event) -> None:
    """Orders two queues."""
    inner: Any = self.inner
    inner.wait_event(index, self.within(stream), self.within(event))
    if isinstance(event, TrackedEvent):
        self.order.after(self.queue(index, stream), event.stamp)


# --- kernels ---------------------------------------------------------------------------------------------------


def launch(
    self: SanitizedDevice,
    module: object,
    function: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    args: Sequence[Region | RowTable | int | float],
    stream: Stream | None,
) -> Event | None:
    """Launches a kernel; each region is ordered by its first byte, as the bytes that a kernel uses are not known."""
    inner: Any = self.inner
    subject = self.described(f"launch of {function}")
    regions = regions_of(args)
    index = next((r.space.device.index for r in regions if r.space.device.api is self), 0)
    queue = self.queue(index if stream is None else stream.device.index, stream)
    recorded = self.order.recording(queue)
    used = [(self.used(region, 0, subject), region.byte_offset) for region in regions]
    if recorded is not None:
        recorded += [arg for arg in args if isinstance(arg, Region | RowTable)]
        return inner.launch(module, function, grid, block, self.within(args), self.within(stream))  # type: ignore[no-any-return]
    work = self.order.begin(queue, subject, [(b, at, at + 1, None) for b, at in used if b is not None])
    event = inner.launch(module, function, grid, block, self.within(args), self.within(stream))
    for known, at in used:
        if known is not None and known.nbytes < 1 << 62:
            known.written.add(at, known.nbytes)
    return self.queued(event, work)


def begin_record(self: SanitizedDevice, index: int, stream: Stream | None) -> None:
    """Starts to record work on ``stream`` instead of running it."""
    inner: Any = self.inner
    inner.begin_record(index, self.within(stream))
    self.order.start_recording(self.queue(index, stream))


def end_record(self: SanitizedDevice, index: int, stream: Stream | None) -> RecordedWork:
    """Returns the recording, and the regions that it uses."""
    inner: Any = self.inner
    noted = self.order.stop_recording(self.queue(index, stream))
    positions = list(dict.fromkeys(arg for arg in noted if isinstance(arg, Region)))
    rows = regions_of([arg for arg in noted if isinstance(arg, RowTable)])
    return RecordedWork(inner.end_record(index, self.within(stream)), index, positions, rows)


def replay(
    self: SanitizedDevice, recording: RecordedWork, args: Mapping[int, Region], stream: Stream | None
) -> Event | None:
    """Replays, ordered as the launches that it repeats."""
    inner: Any = self.inner
    subject = self.described(f"replay of work on {len(recording.regions)} regions")
    for position, region in args.items():
        if not 0 <= position < len(recording.regions):
            raise InputError(f"a recording of {len(recording.regions)} regions has no position {position}")
        recording.regions[position] = region
    used = [(self.used(region, 0, subject), region.byte_offset) for region in (*recording.regions, *recording.rows)]
    work = self.order.begin(
        self.queue(recording.index, stream), subject, [(b, at, at + 1, None) for b, at in used if b is not None]
    )
    event = inner.replay(recording.inner, self.within(dict(args)), self.within(stream))
    for known, at in used:
        if known is not None and known.nbytes < 1 << 62:
            known.written.add(at, known.nbytes)
    return self.queued(event, work)


# --- lifecycle -------------------------------------------------------------------------------------------------


def open(self: SanitizedDevice, index: int, **options: object) -> None:
    """Opens the inner device, unless it is open already."""
    open_once(self.inner, self.inner_device(index).state, index, options)


def close(self: SanitizedDevice, index: int) -> None:
    """Closes the inner device and forgets its memory."""
    inner: Any = self.inner
    self.spaces.forget(index)
    self.order.forget(inner, index)
    inner.close(index)
    self.inner_device(index).state.is_open = False


def reset(self: SanitizedDevice, index: int) -> None:
    """Resets the inner device; forgets its memory and drops queued work."""
    inner: Any = self.inner
    self.spaces.forget(index)
    self.order.forget(inner, index)
    inner.reset(index)
