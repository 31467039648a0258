"""SanitizedDevice: a DeviceAPI around another one that checks every space, copy, launch and barrier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from landbridge.device.api import Device, DeviceAPI, Event, NdSpace, Region, Space, Stream
from landbridge.device.attr import DeviceAttr
from landbridge.device.protocols import HostMemory, RowTable
from landbridge.device.state import state_of
from landbridge.memory_kind import MemoryKind
from landbridge.sanitizer.block import SpaceHandle, TrackedBlock
from landbridge.sanitizer.borrowed import BorrowedSnapshot
from landbridge.sanitizer.clocks import Stamp
from landbridge.sanitizer.findings import call_site, fail
from landbridge.sanitizer.order import Order, TrackedEvent, Work
from landbridge.sanitizer.spaces import Spaces

#: Allocators that give each Tensor a space of its own, where that is legal, in place of what a kind prefers.
_OWN_SPACES: dict[tuple[str, ...], tuple[str, ...]] = {
    ("pooled", "naive"): ("naive", "pooled"),
    ("size_classes", "naive"): ("naive",),
}


class SanitizedDevice(DeviceAPI):
    """The instances of ``inner``; ``host`` is the CPU as it is, without a sanitizer; ``order`` that of the process.

    Spaces that it returns are its own: the inner device sees the spaces that they stand for. ``wrap`` adds the methods
    of the Protocols that ``inner`` has.
    """

    def __init__(self, inner: DeviceAPI, host: Device, order: Order) -> None:
        self.inner = inner
        self.host = host
        self.order = order
        self._devices: dict[int, Device] = {}
        #: A number for each stream of ``inner`` that is not freed. Streams get the identity, and some the handle, of
        #: streams that were freed, whose work may still be queued.
        self._streams: dict[Stream, int] = {}
        self._numbers = count(1)
        self.spaces = Spaces(self.order, host)

    # --- required ----------------------------------------------------------------------------------------------

    def count(self) -> int:
        """Returns the number of instances of the inner device."""
        return self.inner.count()

    def get_attr(self, index: int, attr: DeviceAttr) -> object | None:
        """Returns the attribute of the inner device, with quarantined memory counted as available."""
        value = self.inner.get_attr(index, attr)
        if attr is DeviceAttr.AVAILABLE_MEMORY and type(value) is int:
            return value + self.spaces.held_back(index)
        return value

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        """Returns the kinds of the inner device, changed so that each Tensor gets its own space where legal."""
        return {
            scope: replace(kind, allocators=_OWN_SPACES.get(kind.allocators, kind.allocators))
            for scope, kind in self.inner.memory_kinds(index).items()
        }

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        """Allocates as the inner device does, poisoned and between redzones."""
        inner = self.inner_device(index)
        block = self.spaces.allocate(
            inner,
            nbytes,
            alignment,
            scope,
            lambda total, aligned: self.inner.alloc_data_space(index, total, aligned, scope, type_hint),
        )
        return self.handed_out(block)

    def inner_pointer(self, space: Space) -> int | None:
        """Returns the host address of ``space`` without counting as a use of it; None where the device gives none."""
        memory = self.inner_device(space.device.index).capability(HostMemory)
        if memory is None:
            return None
        return memory.host_pointer(self.within(space)) + self.block_of(space, "inner_pointer").front

    def free_data_space(self, space: Space) -> None:
        """Checks the memory and keeps it in quarantine, so that a use after free is found; shared memory is freed at
        once, as others may still use it.
        """
        block = self.block_of(space, "free_data_space")
        self.spaces.free(block, self.inner.free_data_space, keep=not block.is_shared)

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        """Copies as the inner device does, ordered with all other work on the bytes."""
        subject = self.described(f"copy_data_from_to of {nbytes} bytes")
        owner = next((end.space.device for end in (dst, src) if end.space.device.api is self), None)
        index = owner.index if owner is not None else stream.device.index if stream is not None else 0
        source, target = self.used(src, nbytes, subject), self.used(dst, nbytes, subject)
        queue = self.queue(index, stream)
        recorded = self.order.recording(queue)
        if recorded is not None:
            recorded += (src, dst)
            return self.inner.copy_data_from_to(
                self.within(src), self.within(dst), nbytes, self.within(stream), keep_alive
            )
        ends = ((source, src.byte_offset, False), (target, dst.byte_offset, True))
        uses = [(block, start, start + nbytes, writes) for block, start, writes in ends if block is not None]
        self.spaces.note_copy(source, src.byte_offset, target, dst.byte_offset, nbytes, subject)
        inner_src, inner_dst = self.within(src), self.within(dst)
        work = self.order.begin(queue, subject, uses)
        borrowed = BorrowedSnapshot.of(inner_src, nbytes, self.host, subject)
        event = self.inner.copy_data_from_to(inner_src, inner_dst, nbytes, self.within(stream), keep_alive)
        return self.queued(event, work, (borrowed, keep_alive) if event is not None and borrowed is not None else None)

    # --- for the methods of Protocols --------------------------------------------------------------------------

    def inner_device(self, index: int) -> Device:
        """Returns instance ``index`` of the inner device."""
        known = self._devices.get(index)
        if known is None or known.state.is_over:
            known = self._devices[index] = Device(self.inner, index)
        return known

    def described(self, call: str) -> str:
        """Returns ``call``, and the work that it is part of, as messages name it."""
        works = {str(state.last_work) for state in (state_of(self, i) for i in range(self.count()))} - {"nothing"}
        part = f" (last submitted: {'; '.join(sorted(works))})" if works else ""
        return f"{call}{part} from {call_site()}"

    def queue(self, index: int, stream: Stream | None) -> tuple[SanitizedDevice, int, int | None]:
        """Returns the key of ``stream`` of instance ``index`` in the clocks."""
        if stream is None:
            return self, index, None
        return self, index, self._streams.setdefault(self.within(stream), next(self._numbers))

    def forget_stream(self, stream: Stream) -> None:
        """Ends the queue of ``stream``, which was freed: the next stream that is equal to it is another queue."""
        number = self._streams.pop(self.within(stream), None)
        if number is not None:
            self.order.end((self, stream.device.index, number))

    def queued(self, event: Event | None, work: Work, borrowed: Any = None) -> Event | None:
        """Returns the Event of work that ``order`` has begun, which updates the clocks when it is done."""
        stamp, accesses = work
        self.order.submit(stamp, accesses, borrowed)
        if event is None:
            self.done(stamp)
            return None
        return TrackedEvent(event, stamp, self.done)

    def done(self, stamp: Stamp) -> None:
        """Notes that the host saw the work of ``stamp`` done, and checks what it wrote."""
        for block, subject in self.order.observe(stamp):
            self.spaces.check_redzones(block, subject)

    def handed_out(self, block: TrackedBlock, *, owned: bool = True) -> Space:
        """Returns a Space over ``block``; one that is ``owned`` and collected without being freed is a leak."""
        handle, inner = SpaceHandle(block), block.inner
        if owned:
            self.spaces.watch(handle, block, state_of(self, inner.device.index))
        device = Device(self, inner.device.index)
        if isinstance(inner, NdSpace):
            rows = None if inner.rows is None else tuple(self._row(block, row) for row in inner.rows)
            return NdSpace(device, inner.scope, handle, inner.physical_shape, inner.row_bytes, inner.row_pitch, rows)
        return Space(device, inner.scope, handle, kind=inner.kind)

    def _row(self, parent: TrackedBlock, handle: object) -> SpaceHandle:
        inner = parent.inner
        assert isinstance(inner, NdSpace)
        row = TrackedBlock(Space(inner.device, inner.scope, handle), inner.row_bytes, parent.born)
        row.parent = parent
        row.written.add(0, row.nbytes)
        return SpaceHandle(row)

    def block_of(self, space: Space, call: str) -> TrackedBlock:
        """Returns the TrackedBlock of one of this device's own spaces; raises a finding when it was freed."""
        handle = space.handle
        if not isinstance(handle, SpaceHandle):  # foreign memory, identified by its address
            return TrackedBlock(self.within(space), 1 << 62, "others")
        if handle.block.death is not None:
            fail("use after free", f"{self.described(call)} uses {handle.block}, freed at {handle.block.death}")
        return handle.block

    def used(self, region: Region, nbytes: int, subject: str) -> TrackedBlock | None:
        """Checks ``region`` of any sanitized device and returns its TrackedBlock; None for foreign memory."""
        handle = region.space.handle
        if not isinstance(handle, SpaceHandle):
            return None
        block = handle.block
        if block.death is not None:
            fail("use after free", f"{subject} uses {block}, freed at {block.death}")
        self.spaces.check_inside(block, region, nbytes, subject)
        return block

    def within(self, value: Any) -> Any:
        """Returns ``value`` as the inner device knows it: spaces, regions, streams, events, and what holds them."""
        match value:
            case Region(space=Space(handle=SpaceHandle(block=block))) as region:
                return block.region(region.byte_offset)
            case Region() as region:
                return Region(self.within(region.space), region.byte_offset)
            case Space(handle=SpaceHandle(block=block)):
                return block.inner
            case Space(device=Device(api=SanitizedDevice() as api)) as space:
                return Space(api.inner_device(space.device.index), space.scope, space.handle)
            case Stream(device=Device(api=SanitizedDevice())):
                return value.handle
            case Device(api=SanitizedDevice() as api):
                return api.inner_device(value.index)
            case TrackedEvent():
                return value.inner
            case RowTable(rows=rows):
                return RowTable(tuple(map(self.within, rows)))
            case tuple() | list():
                return type(value)(map(self.within, value)) if type(value) in (tuple, list) else value
            case dict():
                return {key: self.within(item) for key, item in value.items()}
        return value

    def outer(self, value: Any) -> Any:
        """Returns what the inner device returned, as callers of this one know it."""
        match value:
            case Space():
                block = TrackedBlock(value, 1 << 62, call_site())
                block.written.add(0, block.nbytes)
                return self.handed_out(block, owned=False)
            case Stream():
                return Stream(Device(self, value.device.index), value)
            case Device() if value.api is self.inner:
                return Device(self, value.index)
        return value


def regions_of(args: Sequence[object]) -> list[Region]:
    """Returns the Regions among the arguments of a launch, also those of rows."""
    found: list[Region] = []
    for arg in args:
        if isinstance(arg, Region):
            found.append(arg)
        elif isinstance(arg, RowTable):
            found += arg.rows
    return found
