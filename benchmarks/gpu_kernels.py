"""Kernels that fill a GPU, and the kernels of a model by time, compared with the peak of the device.

python benchmarks/gpu_kernels.py --device opencl:0 [--only REGEX] [--json FILE]

The limits come first and are measured through OpenCL: multiply-adds on registers alone, and a copy of 1 GiB counting
what is read and written. Each operator is one model of its own; FLOP and bytes are those it cannot do without. Times of
OpenCL are the driver's own of each launch, the best of all rounds; of Vulkan those of a run, with its start and wait.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.device.attr import DeviceAttr
from landbridge.targets import Target

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "ocr")]

Array = np.ndarray[Any, Any]
#: Seconds of work before the clocks of a GPU that had none are trusted to be up: a sixth of their most, an H100's were.
WARM_SECONDS = 0.4
_CHAINS = 16
_PEAK = f"""
kernel void peak(global float *out, int iterations) {{
  float x = out[0], y = out[1];
  {" ".join(f"float a{i} = {i} + get_global_id(0);" for i in range(_CHAINS))}
  for (int t = 0; t < iterations; ++t) {{ {" ".join(f"a{i} = fma(a{i}, x, y);" for i in range(_CHAINS))} }}
  float sum = {" + ".join(f"a{i}" for i in range(_CHAINS))};
  if (sum == 12345.678f) out[2] = sum;
}}"""


def model(node: tuple[str, dict[str, Any]], shapes: dict[str, tuple[int, ...]], y: tuple[int, ...], **w: Array) -> Any:
    """A model of one node whose inputs are ``shapes``, then the weights ``w``."""
    op, attributes = node
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, y)
    created = helper.make_node(op, [*shapes, *w], ["y"], **attributes)
    weights = [numpy_helper.from_array(array, name) for name, array in w.items()]
    graph = helper.make_graph([created], op, inputs, [output], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _random(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def product(m: int, k: int, n: int) -> tuple[ModelProto, float, float]:
    return model(("MatMul", {}), {"x": (m, k)}, (m, n), w=_random(k, n)), 2.0 * m * k * n, 4.0 * (m * k + k * n + m * n)


def convolution(batch: int, c: int, o: int, size: int, window: int, stride: int = 1) -> tuple[ModelProto, float, float]:
    pad, out = window // 2, size // stride
    attributes = {"pads": [pad] * 4, "strides": [stride] * 2}
    created = model(
        ("Conv", attributes), {"x": (batch, c, size, size)}, (batch, o, out, out), w=_random(o, c, window, window)
    )
    values = batch * c * size**2 + o * c * window**2 + batch * o * out**2
    return created, 2.0 * batch * c * o * out**2 * window**2, 4.0 * values


def simple(
    op: str, x: tuple[int, ...], y: tuple[int, ...], inputs: int = 1, **a: Any
) -> tuple[ModelProto, float, float]:
    shapes = {f"x{i}": x for i in range(inputs)}
    values = inputs * float(np.prod(x)) + float(np.prod(y))
    return model((op, a), shapes, y), 0.0, 4.0 * values


def normalized(rows: int, width: int) -> tuple[ModelProto, float, float]:
    created = model(("LayerNormalization", {}), {"x": (rows, width)}, (rows, width), s=_random(width), b=_random(width))
    return created, 0.0, 8.0 * rows * width


CASES: dict[str, Callable[[], tuple[ModelProto, float, float]]] = {
    "MatMul 4096x4096x4096": lambda: product(4096, 4096, 4096),
    "MatMul 1024x1024x1024": lambda: product(1024, 1024, 1024),
    "MatMul 1x4096x4096": lambda: product(1, 4096, 4096),
    "MatMul 8x4096x4096": lambda: product(8, 4096, 4096),
    "MatMul 128x768x3072": lambda: product(128, 768, 3072),
    "Conv 32, 56x56, 64 to 64, 3x3": lambda: convolution(32, 64, 64, 56, 3),
    "Conv 32, 14x14, 256 to 256, 3x3": lambda: convolution(32, 256, 256, 14, 3),
    "Conv 32, 28x28, 512 to 128, 1x1": lambda: convolution(32, 512, 128, 28, 1),
    "Conv 32, 224x224, 3 to 64, 7x7 / 2": lambda: convolution(32, 3, 64, 224, 7, 2),
    "Conv 1, 56x56, 64 to 64, 3x3": lambda: convolution(1, 64, 64, 56, 3),
    "Conv 1, 14x14, 256 to 256, 3x3": lambda: convolution(1, 256, 256, 14, 3),
    "Conv 1, 7x7, 512 to 512, 3x3": lambda: convolution(1, 512, 512, 7, 3),
    "Conv 1, 7x7, 2048 to 512, 1x1": lambda: convolution(1, 2048, 512, 7, 1),
    "Add of 256 MB": lambda: simple("Add", (64, 1024, 1024), (64, 1024, 1024), 2),
    "Exp of 256 MB": lambda: simple("Exp", (64, 1024, 1024), (64, 1024, 1024)),
    "Transpose 8192x8192": lambda: simple("Transpose", (8192, 8192), (8192, 8192), perm=[1, 0]),
    "Transpose NCHW to NHWC 32x64x224x224": lambda: simple(
        "Transpose", (32, 64, 224, 224), (32, 224, 224, 64), perm=[0, 2, 3, 1]
    ),
    "Softmax 16384x4096": lambda: simple("Softmax", (16384, 4096), (16384, 4096)),
    "LayerNormalization 65536x1024": lambda: normalized(65536, 1024),
    "ReduceSum rows of 65536x1024": lambda: simple("ReduceMean", (65536, 1024), (65536, 1), axes=[1]),
    "ReduceSum columns of 65536x1024": lambda: simple("ReduceMean", (65536, 1024), (1, 1024), axes=[0]),
    "ReduceSum all of 256 MB": lambda: simple("ReduceMean", (64, 1024, 1024), (1, 1, 1)),
    "MaxPool 32x64x112x112, 3x3 / 2": lambda: simple(
        "MaxPool", (32, 64, 112, 112), (32, 64, 56, 56), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]
    ),
    "GlobalAveragePool 32x2048x7x7": lambda: simple("GlobalAveragePool", (32, 2048, 7, 7), (32, 2048, 1, 1)),
}


def limits() -> tuple[float, float]:
    """TFLOP/s of multiply-adds on registers, and GB/s of a copy, through OpenCL in a process of its own."""
    done = subprocess.run([sys.executable, __file__, "--limits"], stdout=subprocess.PIPE, text=True, check=True)
    flops, bandwidth = map(float, done.stdout.split()[-2:])
    return flops, bandwidth


def measure_limits() -> None:
    """Print them: the best of ten."""
    import pyopencl as cl

    where = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    queue = cl.CommandQueue(where, properties=cl.command_queue_properties.PROFILING_ENABLE)
    kernel = cl.Kernel(cl.Program(where, _PEAK).build(), "peak")
    memory = cl.Buffer(where, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=np.zeros(64, np.float32))
    iterations, items = 4096, where.devices[0].max_compute_units * 2048 * 4
    kernel.set_args(memory, np.int32(iterations))

    def seconds(event: Any) -> float:
        event.wait()
        return float(event.profile.end - event.profile.start) * 1e-9

    best = min(seconds(cl.enqueue_nd_range_kernel(queue, kernel, (items,), (256,))) for _ in range(10))
    size = 1 << 30
    source, target = (cl.Buffer(where, cl.mem_flags.READ_WRITE, size) for _ in range(2))
    copied = min(seconds(cl.enqueue_copy(queue, target, source, byte_count=size)) for _ in range(10))
    print(_CHAINS * 2.0 * iterations * items / best / 1e12, 2 * size / copied / 1e9)


Launched = tuple[str, tuple[int, ...], tuple[int, ...], float]


def launches(executable: lb.Executable, inputs: dict[str, Array], device: lb.Device, rounds: int) -> list[Launched]:
    """Kernel, grid, block and seconds, by the driver's clock, of each launch of a run; the best of ``rounds``."""
    from landbridge.devices.opencl import modules, recording

    queued: list[tuple[str, Any, Any, Any]] = []
    enqueue = modules.enqueue

    def noted(queue: Any, kernel: Any, name: str, grid: Any, block: Any) -> Any:
        event = enqueue(queue, kernel, name, grid, block)
        queued.append((name, grid, block, event))
        return event

    session = lb.Session(executable, device=device)
    for name, array in inputs.items():
        session.set_input(name, array)
    recording.CommandBuffers.of = lambda instance: None  # in which launches have no events of their own
    modules.enqueue = noted
    try:
        session.run()
        best: list[Launched] = []
        for _ in range(rounds):
            queued.clear()
            session.run()
            now = [(n, g, b, (e.profile.end - e.profile.start) * 1e-9) for n, g, b, e in queued]
            best = [min(x, y, key=lambda each: each[3]) for x, y in zip(best, now, strict=True)] if best else now
        return best
    finally:
        modules.enqueue = enqueue


def run_seconds(executable: lb.Executable, inputs: dict[str, Array], device: lb.Device, rounds: int) -> float:
    """The best run with its inputs in place, once the clocks of an idle GPU are up."""
    session = lb.Session(executable, device=device)
    for name, array in inputs.items():
        session.set_input(name, array)
    best, until = float("inf"), time.perf_counter() + WARM_SECONDS
    while rounds > 0:
        began = time.perf_counter()
        session.run()
        best = min(best, time.perf_counter() - began)
        rounds -= time.perf_counter() > until
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="opencl:0")
    parser.add_argument("--limits", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", nargs=2, help="TFLOP/s and GB/s that were measured before")
    parser.add_argument("--check", action="store_true", help="compile alone")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if arguments.limits:
        measure_limits()
        return
    # In a process of its own, started before this one has a driver open, which not every driver outlives.
    flops, bandwidth = map(float, arguments.limit) if arguments.limit else (1.0, 1.0) if arguments.check else limits()
    device = lb.device(arguments.device)
    if arguments.device.startswith("opencl") and not arguments.check:
        device.api.open(device.index, profiling=True)
    target = Target.from_device(device)
    rows: list[dict[str, Any]] = []
    if not arguments.check:
        rows.append({"what": "limits", "TFLOP/s": flops, "GB/s": bandwidth})
        print(device, device.attr(DeviceAttr.PRODUCT_NAME), f"{flops:.1f} TFLOP/s, {bandwidth:.0f} GB/s")
    for name, make in CASES.items():
        if not re.search(arguments.only, name):
            continue
        try:
            created, work, moved = make()
            executable = lb.compile(created, target)
            if arguments.check:
                continue
            inputs = {s.name: _random(*s.shape) for s in executable.main.inputs}
            shape: Any = ""
            if arguments.device.startswith("opencl"):
                parts = launches(executable, inputs, device, arguments.rounds)
                spent = sum(seconds for *_, seconds in parts)
                shape = [(round(s * 1e6, 1), grid[:2], block[0]) for _, grid, block, s in parts]
            else:
                spent = run_seconds(executable, inputs, device, arguments.rounds)
            least = max(work / flops / 1e12, moved / bandwidth / 1e9)
            row = {"what": name, "us": spent * 1e6, "limit us": least * 1e6, "% of limit": 100 * least / spent}
            rows.append(row | {"launches": shape})
            print(f"{name}: {spent * 1e6:.1f} us, {100 * least / spent:.1f} % of the limit; {shape}", flush=True)
        except Exception as error:  # the others are to be measured all the same
            rows.append({"what": name, "failed": f"{type(error).__name__}: {error}"})
            print(name, "FAILED", f"{type(error).__name__}: {str(error)[:300]}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
