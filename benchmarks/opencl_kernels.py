"""Convolution classes and models through target opencl and target llvm, interleaved in one process, one thread each.

POCL_MAX_PTHREAD_COUNT=1 python benchmarks/opencl_kernels.py [--rounds 15]

The limit comes first: multiply-adds that a kernel does on registers alone, through the same driver. Times of opencl
are the driver's own of each launch, summed; those of llvm are the processor's for a run. Both are the best of all
rounds: what a thread waits for on a busy machine is no property of the code.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np
import pyopencl as cl
from onnx import ModelProto, TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.targets import Target

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "ocr")]

from measure import write  # noqa: E402
from tests.codegen.opencl.launcher import context  # noqa: E402
from tests.codegen.opencl.machine import Machine  # noqa: E402
from tests.whole_models.random_weights import with_random_weights  # noqa: E402
from tests.whole_models.real_input import line_of_text, picture_for_detector  # noqa: E402
from wheel_models import CLASSIFY, DETECT, PP_OCR, wheel_model  # noqa: E402

#: Channels in and out, height and width of the input, window, stride: the layers of ResNet-50 by class.
CLASSES = [
    (3, 64, 224, 7, 2),
    (64, 64, 56, 3, 1),
    (128, 128, 28, 3, 1),
    (256, 256, 14, 3, 1),
    (512, 512, 7, 3, 1),
    (64, 256, 56, 1, 1),
    (512, 128, 28, 1, 1),
    (1024, 256, 14, 1, 1),
    (2048, 512, 7, 1, 1),
]

#: Accumulators of the limit: more than an addition's latency needs, and they fit the registers.
_CHAINS = 24
_PEAK = f"""
kernel void peak(global float *out, int iterations) {{
  const float16 x = vload16(0, out), y = vload16(1, out);
  {" ".join(f"float16 a{i} = {i};" for i in range(_CHAINS))}
  for (int t = 0; t < iterations; ++t) {{ {" ".join(f"a{i} = a{i} * x + y;" for i in range(_CHAINS))} }}
  vstore16({" + ".join(f"a{i}" for i in range(_CHAINS))}, 2, out);
}}"""


def peak() -> float:
    """GFLOP/s of one thread of the driver on registers alone, the best of ten."""
    queue = _profiled(context())
    kernel = cl.Kernel(cl.Program(context(), _PEAK).build(), "peak")
    memory = cl.Buffer(
        context(), cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=np.zeros(256, np.float32)
    )
    iterations = 200_000
    kernel.set_args(memory, np.int32(iterations))
    return _CHAINS * 16 * 2 * iterations / min(_seconds(queue, kernel, (1,), (1,)) for _ in range(10)) / 1e9


def _profiled(where: cl.Context) -> cl.CommandQueue:
    return cl.CommandQueue(where, properties=cl.command_queue_properties.PROFILING_ENABLE)


def _seconds(queue: cl.CommandQueue, kernel: cl.Kernel, size: tuple[int, ...], block: tuple[int, ...]) -> float:
    event = cl.enqueue_nd_range_kernel(queue, kernel, size, block)
    event.wait()
    return (event.profile.end - event.profile.start) * 1e-9


def convolution(channels: int, outputs: int, size: int, window: int, stride: int) -> tuple[ModelProto, float]:
    """A convolution with bias and relu, and its GFLOP."""
    rng, pad, result = np.random.default_rng(0), window // 2, size // stride
    weights = (rng.standard_normal((outputs, channels, window, window)) * 0.05).astype(np.float32)
    constants = {"w": weights, "b": rng.standard_normal(outputs).astype(np.float32)}
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["t"], pads=[pad] * 4, strides=[stride] * 2),
        helper.make_node("Relu", ["t"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, channels, size, size))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, outputs, result, result))
    tensors = [numpy_helper.from_array(a, name) for name, a in constants.items()]
    graph = helper.make_graph(nodes, "convolution", [x], [y], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model, 2 * channels * outputs * result**2 * window**2 / 1e9


class Kernels:
    """The launches of a program, bound, each of which can be timed by the driver."""

    def __init__(self, model: ModelProto | bytes, inputs: dict[str, np.ndarray], target: Target) -> None:
        shapes = {name: array.shape for name, array in inputs.items()}
        self._machine = Machine(lb.compile(model, target, shapes=shapes))
        (self.result, *_) = self._machine(*inputs.values())
        self._queue = _profiled(context())
        self._launches = []
        for sequence, buffers in self._machine.calls.values():
            for launch in sequence.launches:
                kernel = cl.Kernel(self._machine.program.program, launch.kernel)
                kernel.set_args(*(buffers[i] for i in launch.args))
                size = tuple(g * b for g, b in zip(launch.grid, launch.block, strict=True))
                self._launches.append((kernel, size, launch.block))

    def seconds(self, rounds: int) -> float:
        """The sum over launches of the best of ``rounds``."""
        return sum(min(_seconds(self._queue, *launch) for _ in range(rounds)) for launch in self._launches)


def compared(
    name: str, model: ModelProto | bytes, inputs: dict[str, np.ndarray], target: Target, rounds: int, work: float = 0
) -> list[object]:
    """A row of the table; raises where the targets' results differ."""
    shapes = {key: array.shape for key, array in inputs.items()}
    session = lb.Session(lb.compile(model, "llvm", shapes=shapes), num_threads=1)
    for key, array in inputs.items():
        session.set_input(key, array)
    session.run()
    kernels = Kernels(model, inputs, target)
    expected = np.asarray(session.get_output(0))
    assert np.abs(kernels.result - expected).max() <= 1e-3 * np.abs(expected).max(), "the targets disagree"
    llvm, opencl = float("inf"), float("inf")
    for _ in range(3):
        llvm = min(llvm, *(_run(session) for _ in range(rounds)))
        opencl = min(opencl, kernels.seconds(rounds))
    rates = [round(work / t, 1) if work else "" for t in (llvm, opencl)]
    return [name, round(llvm * 1e3, 3), round(opencl * 1e3, 3), *rates, round(opencl / llvm, 2)]


def _run(session: lb.Session) -> float:
    began = time.thread_time()
    session.run()
    return time.thread_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    if os.environ.get("POCL_MAX_PTHREAD_COUNT") != "1":
        sys.exit("set POCL_MAX_PTHREAD_COUNT=1: the driver reads its number of threads when it is loaded")
    target = Target.from_device(lb.device("opencl:0"))
    rows: list[list[object]] = [["limit: multiply-adds on registers", "", "", "", round(peak(), 1), ""]]
    for case in CLASSES:
        model, work = convolution(*case)
        channels, outputs, size, window, stride = case
        x = np.random.default_rng(1).standard_normal((1, channels, size, size)).astype(np.float32)
        name = f"{size}x{size}, {channels} to {outputs}, {window}x{window}" + (f" / {stride}" if stride > 1 else "")
        rows.append(compared(name, model, {"x": x}, target, rounds, work))
    photo = picture_for_detector(224, 224)
    models: dict[str, tuple[ModelProto | bytes, dict[str, np.ndarray]]] = {
        "squeezenet": (with_random_weights("squeezenet", {"data_0": photo}), {"data_0": photo}),
        "resnet50": (with_random_weights("resnet50", {"gpu_0/data_0": photo}), {"gpu_0/data_0": photo}),
        "PP-OCRv4 cls 48x192": (wheel_model(PP_OCR, CLASSIFY).read_bytes(), {"x": line_of_text(48, 192)}),
        "PP-OCRv4 det 320x320": (wheel_model(PP_OCR, DETECT).read_bytes(), {"x": picture_for_detector(320, 320)}),
    }
    for name, (source, inputs) in models.items():
        rows.append(compared(name, source, inputs, target, rounds))
    columns = ["what", "llvm ms", "opencl ms", "llvm GFLOP/s", "opencl GFLOP/s", "opencl / llvm"]
    write("opencl_kernels", columns, rows)


if __name__ == "__main__":
    main()
