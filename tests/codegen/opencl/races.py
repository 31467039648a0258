"""Kernels that share memory, run under oclgrind: prints the error of each. Started by ``test_races``."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from landbridge.codegen.opencl import generate
from landbridge.executable.device_image import DeviceImage
from landbridge.passes.lower import lowering_for
from landbridge.targets import Target
from tests.codegen.opencl.launcher import Program, cl
from tests.passes.lower.test_grid import centred, largest_sum, matmul, prim

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def run(build, inputs, expected) -> None:
    target = Target("opencl")
    function = prim(build, [a.shape for a in inputs], expected.shape)
    image = generate(ModuleOp([lowering_for(target)(function)]), target).image
    assert isinstance(image, DeviceImage)
    program, result = Program(image), np.zeros(expected.shape, np.float32)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffers = [cl.Buffer(program.context, flags, hostbuf=a) for a in [*inputs, result]]
    program.run("kernel", buffers)
    cl.enqueue_copy(program.queue, result, buffers[-1])
    print("error", float(np.abs(result - expected).max()), flush=True)


if __name__ == "__main__":
    for m, k, n in ((20, 24, 18), (40, 20, 50), (1, 300, 3)):
        a, b = normal(m, k), normal(k, n)
        run(matmul, [a, b], a @ b)
    for rows, columns in ((3, 100), (300, 3)):
        x = normal(rows, columns)
        run(centred, [x], x - x.sum(1, keepdims=True))
    x = normal(3, 4, 100)
    run(largest_sum, [x], x.sum(2).max(1))
