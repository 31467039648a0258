"""Host access through the driver's own mappings, which are the barriers of memory that is not coherent.

On a device that shares the host's memory a mapping is the buffer itself, at an address that stays the same. A driver
that maps a buffer elsewhere the second time is refused, because views of the first mapping would be lost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl

from landbridge.device.protocols import AccessMode
from landbridge.devices.opencl.blocks import BufferBlock
from landbridge.devices.opencl.driver_errors import driver_call
from landbridge.devices.opencl.instance import OpenCLInstance
from landbridge.errors import HostViewError

_FLAGS = {
    "r": cl.map_flags.READ | cl.map_flags.WRITE,  # a lasting view of mode "rw" invalidates with "r", then writes
    "rw": cl.map_flags.READ | cl.map_flags.WRITE,
    "w": cl.map_flags.WRITE,  # not WRITE_INVALIDATE_REGION: the bytes of the rounded range must keep their content
}
_READ_ONLY = cl.map_flags.READ


def host_address(instance: OpenCLInstance, block: BufferBlock) -> int:
    """Returns the address of the first byte of ``block`` for the host, the same for as long as the block lives.

    The bytes may be used between ``begin`` and ``end``. Raises HostViewError for memory that the host cannot address.
    """
    if block.address is None:
        if instance.facts.kinds[block.scope].host_access == "none":
            raise HostViewError(
                f"the host cannot address scope {block.scope!r} of opencl:{instance.index}, which has memory of its "
                "own; copy the tensor to the host with t.to_device('cpu')"
            )
        block.address = mapped_address(instance, block.buffer) + block.origin
    return block.address


def mapped_address(instance: OpenCLInstance, buffer: cl.Buffer) -> int:
    """Returns the address at which the driver maps ``buffer`` for the host. The mapping that it was read from has
    ended.
    """
    with driver_call("a mapping"):
        array = _map(instance, buffer, _READ_ONLY, 0, 1)
        address = int(array.ctypes.data)
        array.base.release(instance.queue.cl)
    return address


def begin(instance: OpenCLInstance, block: BufferBlock, byte_offset: int, nbytes: int, mode: AccessMode) -> None:
    """Let the host use the bytes: waits for every command that uses the block, and maps them where memory is not
    coherent.

    Raises HostViewError where the driver maps them at another address than before.
    """
    block.check(byte_offset, 0)
    nbytes = min(nbytes, block.nbytes - byte_offset)
    if nbytes <= 0:
        return
    instance.wait(block)
    if instance.facts.kinds[block.scope].coherent:
        return
    with instance.mapping_lock:
        _begin(instance, block, (byte_offset, nbytes), mode)


def _begin(instance: OpenCLInstance, block: BufferBlock, key: tuple[int, int], mode: AccessMode) -> None:
    if _covering(block, *key) is not None:  # the content is undefined when bytes are mapped twice for writing
        return
    byte_offset, nbytes = key
    flags = _READ_ONLY if block.readonly else _FLAGS[mode]
    with driver_call("a mapping"):
        if block.svm is not None:
            part = block.part(byte_offset, 1)
            cl._cl._enqueue_svm_map(instance.queue.cl, True, flags, part, None, nbytes)
            block.mappings[key] = part
            return
        start = block.origin + byte_offset
        array = _map(instance, block.buffer, flags, start, nbytes)
    block.mappings[key] = array.base
    seen, wanted = int(array.ctypes.data), host_address(instance, block) + byte_offset
    if seen != wanted:
        _unmap(instance, block, key)
        raise HostViewError(
            f"opencl:{instance.index}: the driver maps this buffer at {seen - byte_offset:#x} now and had it at "
            f"{wanted - byte_offset:#x}, so that a host view cannot last; copy the tensor with t.to_device('cpu')"
        )


def end(instance: OpenCLInstance, block: BufferBlock, byte_offset: int, nbytes: int, mode: AccessMode) -> None:
    """End the host's use of the bytes, so that the device sees what it wrote. Nothing is done for coherent memory.

    Where they are not mapped, they are mapped and unmapped. A mapping of more bytes than these ends too when they were
    written, and stays when they were read.
    """
    nbytes = min(nbytes, block.nbytes - byte_offset)
    if nbytes <= 0 or instance.facts.kinds[block.scope].coherent:
        return
    key = (byte_offset, nbytes)
    with instance.mapping_lock:
        found = _covering(block, *key)
        if mode == "r" and found != key:
            return
        if found is None or not _unmap(instance, block, found):
            begin(instance, block, *key, mode)
            _unmap(instance, block, key)


def end_all(instance: OpenCLInstance, block: BufferBlock) -> None:
    """End all mappings of ``block``; called before a command uses it."""
    with instance.mapping_lock:
        for key in tuple(block.mappings):
            _unmap(instance, block, key)


def _covering(block: BufferBlock, byte_offset: int, nbytes: int) -> tuple[int, int] | None:
    """Returns the (offset, bytes) of a mapping that covers these bytes, one of exactly them if there is; None without
    one.
    """
    if (byte_offset, nbytes) in block.mappings:
        return byte_offset, nbytes
    stop = byte_offset + nbytes
    return next((key for key in tuple(block.mappings) if key[0] <= byte_offset and stop <= key[0] + key[1]), None)


def _map(instance: OpenCLInstance, buffer: cl.Buffer, flags: int, start: int, nbytes: int) -> Any:
    """Returns an array of uint8 over a new mapping, which is its ``base``. The host may use it at once."""
    mapped: Any = cl.enqueue_map_buffer  # its stub takes neither flags of several bits nor a dtype's class
    return mapped(instance.queue.cl, buffer, flags, start, (nbytes,), np.uint8)[0]


def _unmap(instance: OpenCLInstance, block: BufferBlock, key: tuple[int, int]) -> bool:
    """End the mapping ``key``; returns False where there is none. A command of another thread, on other bytes of the
    block, may have ended it.
    """
    mapping: Any = block.mappings.pop(key, None)
    if mapping is None:
        return False
    queue = instance.queue
    with driver_call("the end of a mapping"):
        event = mapping.release(queue.cl) if block.svm is None else cl._cl._enqueue_svm_unmap(queue.cl, mapping)
    queue.submitted(event, (block,), None)
    # Other queues are not ordered with this one.
    if len(instance.queues) > 1:
        event.wait()
    return True
