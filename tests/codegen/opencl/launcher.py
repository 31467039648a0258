"""Runs device images of OpenCL C on the first driver there is, with pyopencl alone: what tests compare with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from landbridge.executable.device_image import DeviceImage, LaunchSequence
from tests.selection.installed import missing, package

cl = package("pyopencl", "test")

Array = np.ndarray[Any, Any]
#: Bytes around every buffer that no kernel may change.
GUARD = 4096


@cache
def context() -> Any:
    """A context of the first device of the first platform."""
    try:
        platforms = cl.get_platforms()
    except cl.LogicError:
        platforms = []
    devices = [d for p in platforms for d in p.get_devices()]
    if not devices:
        missing("an OpenCL driver", "debian")
    return cl.Context(devices[:1])


class Program:
    """A built image."""

    def __init__(self, image: DeviceImage) -> None:
        assert image.format == "opencl-c"
        self.context = context()
        self.queue = cl.CommandQueue(self.context)
        source = image.code.decode()
        if os.environ.get("LANDBRIDGE_SHOW_SOURCE"):
            print(source)
        self.image = image
        self.program = cl.Program(self.context, source).build(image.options.split())
        self.kernels = {
            launch.kernel: cl.Kernel(self.program, launch.kernel)
            for sequence in image.functions.values()
            for launch in sequence.launches
        }

    def run(self, name: str, operands: Sequence[Any]) -> None:
        """Run function ``name`` on ``operands`` (cl.Buffer) and wait."""
        sequence = self.image.functions[name]
        assert len(operands) == sequence.operands
        scratch = self.scratch(sequence)  # kernels do not keep their buffers alive
        self.enqueue(sequence, [*operands, *scratch])
        self.queue.finish()

    def scratch(self, sequence: LaunchSequence) -> list[Any]:
        """Scratch buffers of a sequence."""
        return [cl.Buffer(self.context, cl.mem_flags.READ_WRITE, max(size, 1)) for size in sequence.scratch]

    def enqueue(self, sequence: LaunchSequence, buffers: Sequence[Any]) -> None:
        """Queue the launches of ``sequence``."""
        for launch in sequence.launches:
            kernel = self.kernels[launch.kernel]
            kernel.set_args(*(buffers[i] for i in launch.args))
            size = tuple(g * b for g, b in zip(launch.grid, launch.block, strict=True))
            cl.enqueue_nd_range_kernel(self.queue, kernel, size, launch.block)

    def on_arrays(self, name: str, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Run function ``name`` on copies of ``inputs``; its results come back in ``outputs``.

        The bytes around each output must stay.
        """
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        sources = [np.frombuffer(a.tobytes() or b"\0", np.uint8) for a in inputs]
        guarded = [np.full(a.nbytes + 2 * GUARD, 0xA5, np.uint8) for a in outputs]
        held = [cl.Buffer(self.context, flags, hostbuf=g) for g in guarded]
        operands = [cl.Buffer(self.context, flags, hostbuf=s) for s in sources]
        operands += [h[GUARD : GUARD + max(a.nbytes, 1)] for h, a in zip(held, outputs, strict=True)]
        self.run(name, operands)
        for h, g, a in zip(held, guarded, outputs, strict=True):
            cl.enqueue_copy(self.queue, g, h)
            end = GUARD + a.nbytes
            assert (g[:GUARD] == 0xA5).all() and (g[end:] == 0xA5).all(), f"{name} wrote outside its output"
            a[...] = g[GUARD:end].view(a.dtype).reshape(a.shape)
