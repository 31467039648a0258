"""A probe that builds and runs a kernel on a device, and finds the alignment at which host memory is used in place.

Some drivers list devices that build no kernel; others keep a copy of imported memory that only a mapping updates. Both
show in a kernel over imported bytes: the host reads them without any mapping.
"""

from __future__ import annotations

import mmap

import numpy as np
import pyopencl as cl

from landbridge.array_type import Array
from landbridge.devices.opencl.programs import Place, build

_SOURCE = "kernel void landbridge_probe(global uchar *x) { size_t i = get_global_id(0); x[i] = x[i] * 3 + 1; }"
_ITEMS = 16

Bytes = Array


def usable(context: cl.Context, device: cl.Device) -> int:
    """Build and run a kernel on ``device``; returns the alignment host memory needs to be imported, 0 if none is
    enough.

    Raises KernelBuildError or pyopencl's error when no kernel runs, ArithmeticError when one computes something else.
    """
    built = build(Place(device.name.strip(), device, context), _SOURCE.encode(), _SOURCE, "")
    kernel = cl.Kernel(built.program, "landbridge_probe")
    built.note_launch()
    queue = cl.CommandQueue(context, device)
    _check_results(context, queue, kernel)
    if not device.host_unified_memory:
        return 0
    # What drivers document: any address, a cache line (Intel's GPUs also a size of whole ones), a page.
    memory = np.frombuffer(mmap.mmap(-1, 2 * mmap.PAGESIZE), np.uint8)
    for alignment in (1, 64, mmap.PAGESIZE):
        size = max(_ITEMS, alignment)
        if all(_in_place(context, queue, kernel, memory[start:][:size]) for start in {alignment, 0}):
            return alignment
    return 0


def _check_results(context: cl.Context, queue: cl.CommandQueue, kernel: cl.Kernel) -> None:
    values = np.arange(_ITEMS, dtype=np.uint8)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffer = cl.Buffer(context, flags, hostbuf=values)
    seen = np.empty_like(values)
    kernel.set_args(buffer)
    cl.enqueue_nd_range_kernel(queue, kernel, (_ITEMS,), None)
    cl.enqueue_copy(queue, seen, buffer)
    if not np.array_equal(seen, values * 3 + 1):
        raise ArithmeticError("a kernel of one line computed wrong numbers")


def _in_place(context: cl.Context, queue: cl.CommandQueue, kernel: cl.Kernel, memory: Bytes) -> bool:
    """Returns whether a kernel sees what the host wrote to ``memory`` after the import, and the host what the kernel
    wrote.
    """
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR, hostbuf=memory)
    values = memory[:_ITEMS]
    values[:] = range(_ITEMS)
    kernel.set_args(buffer)
    cl.enqueue_nd_range_kernel(queue, kernel, (_ITEMS,), None)
    queue.finish()
    seen: list[int] = values.tolist()
    buffer.release()
    return seen == [3 * i + 1 for i in range(_ITEMS)]
