"""Copies by the device: between buffers, images, shared memory and memory that the host can address."""

from __future__ import annotations

from typing import Any

import pyopencl as cl

from landbridge.device.api import Region, Space
from landbridge.device.checks import host_address, host_reaches
from landbridge.devices.opencl.blocks import MEMORY_BLOCKS, BufferBlock, ImageBlock, MemoryBlock, host_bytes
from landbridge.devices.opencl.driver_errors import driver_call
from landbridge.devices.opencl.events import QueueEvent
from landbridge.devices.opencl.instance import Queue
from landbridge.devices.opencl.mapping import end_all
from landbridge.errors import InputError


def reaches(context: cl.Context, space: Space) -> bool:
    """Returns whether copies in ``context`` accept ``space``: a block of that context, or coherent memory of the
    host.
    """
    if isinstance(space.handle, MEMORY_BLOCKS):
        return space.handle.context == context
    return host_reaches(space)


def check_copy(queue: Queue, src: Region, dst: Region, nbytes: int) -> None:
    """Raises InputError for memory that copies on ``queue`` cannot access, and for bytes outside it."""
    for end in (src, dst):
        if not reaches(queue.instance.context, end.space):
            raise InputError(
                f"opencl:{queue.instance.index} cannot copy memory of scope {end.space.scope!r} of {end.space.device}; "
                "copy it to the host first"
            )
        if isinstance(end.space.handle, MEMORY_BLOCKS):
            end.space.handle.check(end.byte_offset, nbytes)


def copy(queue: Queue, src: Region, dst: Region, nbytes: int) -> QueueEvent | None:
    """Queue a copy that was checked; returns None where it is recorded instead."""
    if queue.recorder is not None:
        queue.recorder.add_copy(src, dst, nbytes)
        return None
    return enqueue(queue, src, dst, nbytes)


def enqueue(queue: Queue, src: Region, dst: Region, nbytes: int) -> QueueEvent:
    """Queue a copy that was checked, also while the queue is recorded."""
    source, target = src.space.handle, dst.space.handle
    blocks: list[MemoryBlock] = []
    host: Any = None
    for block in (source, target):
        if isinstance(block, BufferBlock) and block.mappings:
            end_all(queue.instance, block)
        if isinstance(block, MEMORY_BLOCKS):
            blocks.append(block)
    with driver_call(f"a copy of {nbytes} bytes"):
        if isinstance(source, BufferBlock) and isinstance(target, BufferBlock):
            start, stop = source.origin + src.byte_offset, target.origin + dst.byte_offset
            event = cl._cl._enqueue_copy_buffer(queue.cl, source.buffer, target.buffer, nbytes, start, stop)
        elif isinstance(source, MEMORY_BLOCKS) and isinstance(target, MEMORY_BLOCKS):
            event = _with_image(queue.cl, source, src.byte_offset, target, dst.byte_offset, nbytes)
        elif isinstance(target, MEMORY_BLOCKS):
            host = host_bytes(host_address(src), nbytes)
            event = _from_host(queue.cl, host, target, dst.byte_offset, nbytes)
        else:
            host = host_bytes(host_address(dst), nbytes)
            event = _to_host(queue.cl, source, src.byte_offset, host, nbytes)
    # It is kept until it is done, as pyopencl's event of such a copy waits for it, with the GIL, when it is dropped.
    return queue.submitted(event, tuple(blocks), host)


def _from_host(queue: cl.CommandQueue, host: Any, target: MemoryBlock, offset: int, nbytes: int) -> cl.Event:
    if isinstance(target, BufferBlock):
        start = target.origin + offset
        return cl._cl._enqueue_write_buffer(queue, target.buffer, host, start, is_blocking=False)
    return cl._cl._enqueue_write_image(queue, target.image, *target.extent(offset, nbytes), host, is_blocking=False)


def _to_host(queue: cl.CommandQueue, source: MemoryBlock, offset: int, host: Any, nbytes: int) -> cl.Event:
    if isinstance(source, BufferBlock):
        start = source.origin + offset
        return cl._cl._enqueue_read_buffer(queue, source.buffer, host, start, is_blocking=False)
    return cl._cl._enqueue_read_image(queue, source.image, *source.extent(offset, nbytes), host, is_blocking=False)


def _with_image(
    queue: cl.CommandQueue, source: MemoryBlock, from_offset: int, target: MemoryBlock, to_offset: int, nbytes: int
) -> cl.Event:
    if isinstance(source, BufferBlock) and isinstance(target, ImageBlock):
        start = source.origin + from_offset
        return cl._cl._enqueue_copy_buffer_to_image(
            queue, source.buffer, target.image, start, *target.extent(to_offset, nbytes)
        )
    if isinstance(source, ImageBlock) and isinstance(target, BufferBlock):
        start = target.origin + to_offset
        return cl._cl._enqueue_copy_image_to_buffer(
            queue, source.image, target.buffer, *source.extent(from_offset, nbytes), start
        )
    assert isinstance(source, ImageBlock) and isinstance(target, ImageBlock)
    origin, size = source.extent(from_offset, nbytes)
    to_origin, to_size = target.extent(to_offset, nbytes)
    if size != to_size or source.pixel_bytes != target.pixel_bytes:
        raise InputError(f"opencl: {size} pixels of one image cannot be copied to {to_size} of another; copy by rows")
    return cl._cl._enqueue_copy_image(queue, source.image, target.image, origin, to_origin, size)
