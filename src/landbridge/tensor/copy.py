"""Copies between Tensors of any two devices: by a device that can, by the host, or staged through host memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple, TypeVar

from landbridge.device.answers import truth
from landbridge.device.api import Device, Event, NdSpace, Space, Stream
from landbridge.device.event import event_of
from landbridge.device.memory_provider import Caching
from landbridge.device.protocols import AccessMode, HostMemory, PeerCopy
from landbridge.device.stream import current_stream
from landbridge.dtypes import dtype, stored_dtype
from landbridge.errors import InputError
from landbridge.memory import ledger
from landbridge.memory.accesses import Access, any_view_open
from landbridge.memory.allocation import allocate
from landbridge.memory.allocators.base import QueuedUse
from landbridge.memory.allocators.in_flight import hold
from landbridge.memory.borrowed import host_device
from landbridge.memory.coherence import before_device_access, is_borrowed, lend, take_back
from landbridge.memory.export import exported_bytes
from landbridge.memory.row_space import lies_in_a_table, region_at
from landbridge.memory_kind import GLOBAL_SCOPE
from landbridge.shapes.physical import separators_for
from landbridge.tensor.granules import GranuleCopier, granule_of, pieces
from landbridge.tensor.host_view import HostView
from landbridge.tensor.layout import dense_size
from landbridge.tensor.typed_view import TypedView, ViewText, text_of

_View = TypeVar("_View", bound=TypedView)


def copy_tensor(dst: _View, src: _View, *, cause: str, stream: Stream | None = None, wait: bool = True) -> None:
    """Copy the elements of ``src`` to ``dst``, of the same shape and dtype.

    Where the host may change the source, or read the target, the copy is done on return. With ``wait=False`` it may be
    queued on both storages, and the caller leaves both alone until ``Storage.wait``.

    A device that can copy does, except between coherent memory of two devices, which the host copies. Without such a
    device the host copies through its views, or the bytes are staged in host memory, which the ledger shows as two
    moves. A strided copy becomes one for each dense run, one in rows becomes one for each row; between an image and
    memory with gaps it is staged.
    """
    if dst.shape != src.shape or dst.dtype != src.dtype:
        raise InputError(f"{cause}: {src!r} cannot be copied to {dst!r}; give a destination of its shape and dtype")
    if dst.readonly:
        raise InputError(f"{cause}: {dst!r} is read-only; give a destination that may be written")
    if src.nbytes == 0:
        return
    source, target = src.storage, dst.storage
    source.check_device()
    target.check_device()
    _check_views(dst, src, cause)
    copier, by_host = _copiers(dst, src)
    if by_host:
        with HostView(src, "r") as read, HostView(dst, _writing_mode(dst)) as written:
            ledger.copy_array(
                written,
                read,
                cause=cause,
                tensor=repr(src),
                source=str(source.device),
                destination=str(target.device),
            )
        return
    in_pieces = _in_pieces_of_images(dst, src)
    if copier is not None and not in_pieces:
        _copy_by(copier, dst, src, cause, stream, wait)
        return
    here, there = source.device, target.device
    if host_device() in (here, there) and not in_pieces:
        raise InputError(
            f"{cause}: neither {here} nor {there} can copy between them and the host cannot view the "
            "memory; the device needs can_copy or host_pointer"
        )
    staged = allocate(host_device(), src.nbytes)
    array = exported_bytes(staged, readonly=False, subject="a staged copy").view(stored_dtype(src.dtype))
    staging = type(src).from_numpy_view(array.reshape(src.shape))
    copy_tensor(staging, src, cause=f"{cause}:staged", stream=stream)
    copy_tensor(dst, staging, cause=f"{cause}:staged", stream=stream)


def copying_device(dst: TypedView, src: TypedView) -> Device | None:
    """Returns the device that ``copy_tensor`` lets copy ``src`` to ``dst``, the host's own where the host copies by
    its views; None where the bytes are staged.
    """
    copier, by_host = _copiers(dst, src)
    if by_host:
        return host_device()
    return None if _in_pieces_of_images(dst, src) else copier


def copy_to(
    tensor: _View,
    device: Device,
    cause: str,
    stream: Stream | None = None,
    scope: str = GLOBAL_SCOPE,
    axis_separators: Sequence[int] | None = None,
) -> _View:
    """Returns a new dense Tensor in ``scope`` of ``device`` with the elements of ``tensor``; ``cause`` is for the
    ledger.
    """
    kind = device.memory_kind(scope)
    separators = separators_for(tensor.shape, axis_separators, kind)
    storage = allocate(device, dense_size(tensor.shape, tensor.dtype, separators), scope=kind.scope)
    created = type(tensor)(storage, tensor.dtype, tensor.shape, axis_separators=separators)
    copy_tensor(created, tensor, cause=cause, stream=stream)
    return created


def _copy_by(by: Device, dst: TypedView, src: TypedView, cause: str, stream: Stream | None, wait: bool = True) -> None:
    source, target = src.storage, dst.storage
    source_region, target_region = source.live_region, target.live_region
    work = _CopyText(cause, src.nbytes, text_of(src), text_of(dst))
    ledger.announce(
        src.nbytes,
        cause=cause,
        tensor=work.source,
        source=source_region.space.device,
        destination=target_region.space.device,
    )
    _check_overlap(dst, src, cause)
    (src_start, src_stop), (dst_start, dst_stop) = src.byte_range, dst.byte_range
    if stream is None:
        stream = current_stream(by)
    queue = stream or by
    granule = granule_of(source, target)
    source.wait(src_start - granule + 1, src_stop + granule - 1, writes=False, queue=queue)
    target.wait(dst_start - granule + 1, dst_stop + granule - 1, writes=True, queue=queue)
    for end, start, stop, writes in ((source, src_start, src_stop, False), (target, dst_start, dst_stop, True)):
        (lend if is_borrowed(end) else before_device_access)(end, start, stop, writes=writes)
    last: Event | None = None  # all of one stream, so that the earlier ones come first

    def note() -> None:
        if last is not None:
            use = hold(last, queue, (by, source.device, target.device), (source, target))
            source.queue(Access(src_start, src_stop, False, cause), use)
            target.queue(Access(dst_start, dst_stop, True, cause), use)

    try:
        runs = _runs(src, dst) if granule == 1 else _granules(src, dst, GranuleCopier(by, stream, granule, cause))
        with by.state.submitting(work, "copy_data_from_to"):
            for src_offset, dst_offset, nbytes in runs:
                ends = region_at(source_region, src_offset), region_at(target_region, dst_offset)
                found = by.api.copy_data_from_to(*ends, nbytes, stream, (source, target))
                event = event_of(found, by, "copy_data_from_to")
                last = last if event is None else event
    except BaseException:
        note()  # work that was queued before is done all the same
        raise
    by_host = source.kind.host_writable or source.owner is not None or target.owner is not None
    if last is not None and ((wait and by_host) or is_borrowed(target)):
        # The host may overwrite the source, and the owner of a borrowed target read it, once this returns.
        try:
            QueuedUse(last, queue).wait(cause)
        except BaseException:
            note()  # it goes on after an interrupt, and the caller may let both ends go
            raise
    else:
        note()
    if is_borrowed(target):
        take_back(target, dst_start, dst_stop)


class _CopyText(NamedTuple):
    """A copy as messages name it."""

    cause: str
    nbytes: int
    source: ViewText
    target: ViewText

    def __str__(self) -> str:
        return f"{self.cause} of {self.nbytes} bytes of {self.source} to {self.target}"


def _dense(src: TypedView, dst: TypedView) -> tuple[int, int]:
    """Returns the bytes of a run that is dense at both ends, and the number of axes that count the runs."""
    itemsize = dtype(src.dtype).itemsize
    run, outer = itemsize, len(src.shape)
    while outer:
        axis = outer - 1
        if src.shape[axis] != 1 and not (src.strides[axis] * itemsize == run == dst.strides[axis] * itemsize):
            break
        run *= src.shape[axis]
        outer = axis
    return run, outer


def _runs(src: TypedView, dst: TypedView) -> Iterator[tuple[int, int, int]]:
    """Yields (source offset, destination offset, bytes) of each run that is dense at both ends."""
    itemsize = dtype(src.dtype).itemsize
    run, outer = _dense(src, dst)
    for index in product(*(range(extent) for extent in src.shape[:outer])):
        yield (
            src.byte_offset + sum(i * s for i, s in zip(index, src.strides, strict=False)) * itemsize,
            dst.byte_offset + sum(i * s for i, s in zip(index, dst.strides, strict=False)) * itemsize,
            run,
        )


def _granules(src: TypedView, dst: TypedView, copier: GranuleCopier) -> Iterator[tuple[int, int, int]]:
    """Yields the parts of ``_runs`` that are whole granules; ``copier`` copies the others."""
    source, target = src.storage, dst.storage
    for src_offset, dst_offset, nbytes in _runs(src, dst):
        for start, size, is_whole in pieces(source, target, src_offset, dst_offset, nbytes):
            if is_whole:
                yield src_offset + start, dst_offset + start, size
            else:
                copier.copy(source, src_offset + start, target, dst_offset + start, size)


def _check_overlap(dst: TypedView, src: TypedView, cause: str) -> None:
    a, b = src.storage.live_region, dst.storage.live_region
    if a.space != b.space:
        return
    (src_start, src_stop), (dst_start, dst_stop) = src.byte_range, dst.byte_range
    shift = a.byte_offset - b.byte_offset
    if src_start + shift < dst_stop and dst_start < src_stop + shift:
        raise InputError(f"{cause}: {src!r} and {dst!r} overlap; give memory disjoint from the source")


def _check_views(dst: TypedView, src: TypedView, cause: str) -> None:
    if any_view_open():
        src.storage.check_access(*src.byte_range, writes=False, subject=cause)
        dst.storage.check_access(*dst.byte_range, writes=True, subject=cause)


def _copier(src: Space, dst: Space) -> Device | None:
    """Returns the device that copies from ``src`` to ``dst``: the one they share, or one that can access both."""
    if src.device == dst.device:
        return src.device
    for device in (dst.device, src.device):
        if (peer := device.capability(PeerCopy)) is not None:
            with device.state.watching(f"a copy from {src.device} to {dst.device}", "can_copy"):
                can = peer.can_copy(src, dst)
            if truth(can, device, "can_copy"):
                return device
    return None


def _copiers(dst: TypedView, src: TypedView) -> tuple[Device | None, bool]:
    """Returns the device that can copy ``src`` to ``dst``, None without one, and whether the host copies them."""
    copier = _copier(src.storage.live_region.space, dst.storage.live_region.space)
    by_host = host_sees(src, "r") and host_sees(dst, "w") and (copier is None or _host_is_nearer(src, dst))
    return copier, by_host


def _in_pieces_of_images(dst: TypedView, src: TypedView) -> bool:
    """Returns whether one end is an image, which is copied by whole pixels, and the other is dense in smaller runs."""
    spaces = [end.storage.live_region.space for end in (dst, src) if end.storage.kind.ndim > 2]
    pixels = [space.physical_shape[-1] for space in spaces if isinstance(space, NdSpace)]
    if not pixels:
        return False
    run, _ = _dense(src, dst)
    return any(run % (pixel * dtype(src.dtype).itemsize) for pixel in pixels)


def _host_is_nearer(src: TypedView, dst: TypedView) -> bool:
    """Returns whether the host copies although a device can: within its own memory, and between coherent memory
    of two.
    """
    if src.storage.device == dst.storage.device:
        return src.storage.device == host_device()
    # A device reads uncached memory faster than the host does.
    return src.storage.kind.coherent and src.storage.kind.cached and dst.storage.kind.coherent


def host_sees(tensor: TypedView, mode: AccessMode) -> bool:
    """Returns whether the host can read ("r") or write ("w") ``tensor`` in place."""
    storage = tensor.storage
    kind = storage.kind
    readable = kind.host_readable if mode == "r" else kind.host_writable
    return (
        readable
        and storage.caching is not Caching.DEVICE
        and storage.device.capability(HostMemory) is not None
        and not lies_in_a_table(storage.live_region.space)
    )


def _writing_mode(tensor: TypedView) -> AccessMode:
    start, stop = tensor.byte_range
    return "w" if stop - start == tensor.nbytes else "rw"
