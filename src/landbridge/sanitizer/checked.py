"""The methods of Protocols that the sanitizer does more in than to translate their arguments; found by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from landbridge.device.api import Event, NdSpace, Region, Space, Stream
from landbridge.device.import_source import ImportSource
from landbridge.device.lifecycle import open_once
from landbridge.device.protocols import AccessMode, RowTable
from landbridge.errors import InputError
from landbridge.sanitizer.block import TrackedBlock
from landbridge.sanitizer.findings import call_site, fail
from landbridge.sanitizer.order import TrackedEvent
from landbridge.sanitizer.recorded import RecordedWork
from landbridge.sanitizer.sanitized import SanitizedDevice, regions_of
from landbridge.sanitizer.shadow import Shadow

# --- memory ----------------------------------------------------------------------------------------------------


def alloc_workspace(self: SanitizedDevice, index: int, nbytes: int, stream: Stream | None) -> Space:
    """Between redzones, poisoned."""
    block = self.spaces.allocate(
        self.inner_device(index),
        nbytes,
        1,
        "global",
        lambda total, _: self.inner.alloc_workspace(index, total, self.within(stream)),  # type: ignore[attr-defined]
    )
    return self.handed_out(block)


def free_workspace(self: SanitizedDevice, space: Space) -> None:
    """Checked; the memory is short-lived, and not kept back."""
    block = self.block_of(space, "free_workspace")
    self.spaces.free(block, self.inner.free_workspace, keep=False)  # type: ignore[attr-defined]


def alloc_shared_space(self: SanitizedDevice, index: int, nbytes: int, alignment: int, scope: str) -> Space:
    """As the inner device's: others map it from its first byte on, so that it has no redzones."""
    inner: Any = self.inner
    block = TrackedBlock(inner.alloc_shared_space(index, nbytes, alignment, scope), nbytes, call_site())
    block.written.add(0, nbytes)
    block.is_shared = True
    return self.handed_out(block)


def alloc_data_space_nd(
    self: SanitizedDevice, index: int, physical_shape: Sequence[int], dtype: str, scope: str, alignment: int
) -> Space:
    """As the inner device's, whose rows are where they are."""
    inner: Any = self.inner
    space: NdSpace = inner.alloc_data_space_nd(index, physical_shape, dtype, scope, alignment)
    extent = space.row_pitch or space.row_bytes
    block = TrackedBlock(space, extent * (physical_shape[0] if physical_shape else 1), call_site())
    block.written.add(0, block.nbytes)
    return self.handed_out(block)


def import_memory(self: SanitizedDevice, index: int, source: ImportSource, access: AccessMode) -> Space:
    """In place; the bytes are their owner's."""
    inner: Any = self.inner
    block = TrackedBlock(inner.import_memory(index, source, access), source.nbytes, call_site())
    block.written.add(0, block.nbytes)
    return self.handed_out(block)


def release_import(self: SanitizedDevice, space: Space) -> None:
    """Checked as a free is."""
    block = self.block_of(space, "release_import")
    self.spaces.free(block, self.inner.release_import, keep=False)  # type: ignore[attr-defined]


def host_pointer(self: SanitizedDevice, space: Space) -> int:
    """The address of the first byte handed out, or of its shadow; from now on anybody may write there."""
    inner: Any = self.inner
    block = self.block_of(space, "host_pointer")
    if block.nbytes < 1 << 62:
        block.written.add(0, block.nbytes)
    shadow = _shadow(self, block)
    return shadow.address if shadow is not None else int(inner.host_pointer(self.within(space))) + block.front


def begin_host_access(self: SanitizedDevice, region: Region, nbytes: int, mode: AccessMode) -> None:
    """Ordered after the work on these bytes, as the device waits for it; from here on the shadow has them."""
    inner: Any = self.inner
    block = self.block_of(region.space, "begin_host_access")
    inner.begin_host_access(self.within(region), nbytes, mode)
    start = region.byte_offset
    for touched, subject in self.order.host_waited(block, start, start + nbytes, mode != "r"):
        self.spaces.check_redzones(touched, subject)
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
    """As the inner device's; from here on the device has what the shadow has."""
    inner: Any = self.inner
    block = self.block_of(region.space, "end_host_access")
    shadow = _shadow(self, block)
    if shadow is not None and mode != "r":
        shadow.send(region.byte_offset, min(nbytes, block.nbytes - region.byte_offset))
    inner.end_host_access(self.within(region), nbytes, mode)


def _shadow(self: SanitizedDevice, block: TrackedBlock) -> Shadow | None:
    """What the host sees in place of ``block``; None where it sees the memory itself."""
    if block.has_shadow and block.shadow is None:
        inner: Any = self.inner
        block.shadow = Shadow(int(inner.host_pointer(block.inner)) + block.front, block.nbytes)
    return block.shadow


# --- time ------------------------------------------------------------------------------------------------------


def stream_sync(self: SanitizedDevice, index: int, stream: Stream | None) -> None:
    """The host has seen all of ``stream`` done."""
    inner: Any = self.inner
    point = self.order.now(self.queue(index, stream))
    inner.stream_sync(index, self.within(stream))
    self.done(point)


def sync_stream_from_to(self: SanitizedDevice, index: int, source: Stream | None, target: Stream | None) -> None:
    """An order between two queues."""
    inner: Any = self.inner
    inner.sync_stream_from_to(index, self.within(source), self.within(target))
    self.order.after(self.queue(index, target), self.order.now(self.queue(index, source)))


def record_event(self: SanitizedDevice, index: int, stream: Stream | None) -> TrackedEvent:
    """A point of a queue."""
    inner: Any = self.inner
    event: Event = inner.record_event(index, self.within(stream))
    return TrackedEvent(event, self.order.now(self.queue(index, stream)), self.done)


def wait_event(self: SanitizedDevice, index: int, stream: Stream | None, event: Event) -> None:
    """An order between two queues."""
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
    """Ordered by the first byte of each region: how much of it a kernel uses, and how, is not known here."""
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
    """Work on ``stream`` is noted from now on, and not done."""
    inner: Any = self.inner
    inner.begin_record(index, self.within(stream))
    self.order.start_recording(self.queue(index, stream))


def end_record(self: SanitizedDevice, index: int, stream: Stream | None) -> RecordedWork:
    """The recording, and the regions that it uses."""
    inner: Any = self.inner
    noted = self.order.stop_recording(self.queue(index, stream))
    positions = list(dict.fromkeys(arg for arg in noted if isinstance(arg, Region)))
    rows = regions_of([arg for arg in noted if isinstance(arg, RowTable)])
    return RecordedWork(inner.end_record(index, self.within(stream)), index, positions, rows)


def replay(
    self: SanitizedDevice, recording: RecordedWork, args: Mapping[int, Region], stream: Stream | None
) -> Event | None:
    """Ordered as the launches that it repeats."""
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
    """The inner device's, unless it is open already."""
    open_once(self.inner, self.inner_device(index).state, index, options)


def close(self: SanitizedDevice, index: int) -> None:
    """The memory is gone."""
    inner: Any = self.inner
    self.spaces.forget(index)
    self.order.forget(inner, index)
    inner.close(index)
    self.inner_device(index).state.is_open = False


def reset(self: SanitizedDevice, index: int) -> None:
    """The memory is gone, and what was queued dropped."""
    inner: Any = self.inner
    self.spaces.forget(index)
    self.order.forget(inner, index)
    inner.reset(index)
