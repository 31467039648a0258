"""Copies by devices that copy whole granules alone: what is not aligned to them goes through host memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from landbridge.array_type import Array
from landbridge.device.answers import truth
from landbridge.device.api import Device, Stream
from landbridge.device.event import event_of, wait_for_event
from landbridge.device.protocols import PeerCopy
from landbridge.errors import InputError
from landbridge.memory import ledger
from landbridge.memory.allocation import allocate
from landbridge.memory.allocators.in_flight import hold
from landbridge.memory.borrowed import host_device
from landbridge.memory.export import exported_bytes
from landbridge.memory.row_space import region_at
from landbridge.memory.storage import Storage

_Bytes = Array


class CopyPiece(NamedTuple):
    """``nbytes`` bytes of a copy, from byte ``start`` of it on; ``is_whole``: they are whole granules at both ends."""

    start: int
    nbytes: int
    is_whole: bool


def granule_of(source: Storage, target: Storage) -> int:
    """Returns the bytes of the granule in which copies between two storages are made; 1 where any bytes are legal."""
    return max(source.kind.copy_granule, target.kind.copy_granule)


def pieces(source: Storage, target: Storage, src: int, dst: int, nbytes: int) -> Iterator[CopyPiece]:
    """Yields the pieces of a copy of ``nbytes`` from byte ``src`` of ``source`` to byte ``dst`` of ``target``."""
    granule = granule_of(source, target)
    ends = ((source, src), (target, dst))
    starts = {
        (storage.live_region.byte_offset + offset) % granule
        for storage, offset in ends
        if storage.kind.copy_granule > 1
    }
    if len(starts) != 1:
        yield CopyPiece(0, nbytes, False)
        return
    head = min(nbytes, -starts.pop() % granule)
    whole = (nbytes - head) // granule * granule
    for start, size, is_whole in ((0, head, False), (head, whole, True), (head + whole, nbytes - head - whole, False)):
        if size:
            yield CopyPiece(start, size, is_whole)


class GranuleCopier:
    """Copies bytes of less than a granule by ``device``, through host memory, and waits for them; ``cause`` is for the
    ledger, where what is read or written beside the bytes counts too.
    """

    def __init__(self, device: Device, stream: Stream | None, granule: int, cause: str) -> None:
        self._device, self._stream, self._granule, self._cause = device, stream, granule, cause

    def copy(self, source: Storage, src: int, target: Storage, dst: int, nbytes: int) -> None:
        """Copy ``nbytes`` bytes; raises InputError where the device copies neither from nor to host memory."""
        self._write(target, dst, self._read(source, src, nbytes))

    def _read(self, storage: Storage, start: int, nbytes: int) -> _Bytes:
        if storage.device == host_device():
            return exported_bytes(storage, readonly=True, subject=self._cause)[start : start + nbytes]
        first, last = self._window(storage, start, nbytes)
        whole = self._host_memory(last - first)
        self._move(storage, first, whole, 0, last - first)
        return exported_bytes(whole, readonly=False, subject=self._cause)[start - first : start - first + nbytes]

    def _write(self, storage: Storage, start: int, content: _Bytes) -> None:
        stop = start + len(content)
        if storage.device == host_device():
            exported_bytes(storage, readonly=False, subject=self._cause)[start:stop] = content
            return
        first, last = self._window(storage, start, len(content))
        whole = self._host_memory(last - first)
        if start > first or stop < min(last, storage.nbytes):
            self._move(storage, first, whole, 0, last - first)
        exported_bytes(whole, readonly=False, subject=self._cause)[start - first : stop - first] = content
        self._move(whole, 0, storage, first, last - first)

    def _window(self, storage: Storage, start: int, nbytes: int) -> tuple[int, int]:
        """Returns the range of whole granules around bytes of ``storage``, which has what is beyond its last byte."""
        base, granule = storage.live_region.byte_offset, self._granule
        first = (base + start) // granule * granule - base
        last = -(-(base + start + nbytes) // granule) * granule - base
        if first < 0 or (last > storage.nbytes and storage.owner is not None):
            raise InputError(
                f"{self._cause}: {self._device} copies whole granules of {granule} bytes, and {nbytes} bytes at "
                f"{start} of {storage} share one with bytes of others; give memory that begins and ends at multiples "
                f"of {granule}"
            )
        return first, last

    def _host_memory(self, nbytes: int) -> Storage:
        return allocate(host_device(), nbytes)

    def _move(self, source: Storage, src: int, target: Storage, dst: int, nbytes: int) -> None:
        device, peer = self._device, self._device.capability(PeerCopy)
        ends = region_at(source.live_region, src), region_at(target.live_region, dst)
        can = False
        if peer is not None:
            with device.state.watching(self._cause, "can_copy"):
                can = truth(peer.can_copy(ends[0].space, ends[1].space), device, "can_copy")
        if not can:
            raise InputError(
                f"{self._cause}: {device} copies whole granules of {self._granule} bytes, and not between "
                f"{source.device} and {target.device}; give tensors of a multiple of {self._granule} bytes"
            )
        ledger.announce(
            nbytes, cause=f"{self._cause}:granule", tensor="", source=source.device, destination=target.device
        )
        with device.state.submitting(self._cause, "copy_data_from_to"):
            found = device.api.copy_data_from_to(*ends, nbytes, self._stream, (source, target))
            event = event_of(found, device, "copy_data_from_to")
        if event is not None:
            try:
                with device.state.watching(self._cause):
                    wait_for_event(event, None, device)
            except BaseException:  # it goes on after an interrupt
                hold(event, self._stream or device, (device, source.device, target.device), (source, target))
                raise
