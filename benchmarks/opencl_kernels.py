"""Convolution classes and models through target opencl and target llvm, in turns in one process, one thread each.

POCL_MAX_PTHREAD_COUNT=1 python benchmarks/opencl_kernels.py [--rounds 30]

The limit comes first: multiply-adds that a kernel does on registers alone, through the same driver.
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
from landbridge.target import Target

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "ocr")]

from measure import in_turns, write  # noqa: E402
from tests.random_weights import with_random_weights  # noqa: E402
from tests.real_input import line_of_text, picture_for_detector  # noqa: E402
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

_PEAK = """
kernel void peak(global float16 *out, int turns) {
  float16 a[24]; const float16 x = (float16)(out[0].s0), y = (float16)(out[0].s1);
  for (int i = 0; i < 24; ++i) a[i] = (float16)(i);
  for (int t = 0; t < turns; ++t)
    for (int i = 0; i < 24; ++i) a[i] = a[i] * x + y;
  float16 s = 0;
  for (int i = 0; i < 24; ++i) s += a[i];
  out[get_global_id(0) + 1] = s;
}"""


def peak() -> float:
    """GFLOP/s of one thread of the driver on registers alone, the best of ten."""
    context = cl.Context(cl.get_platforms()[0].get_devices()[:1])
    queue = cl.CommandQueue(context)
    kernel = cl.Kernel(cl.Program(context, _PEAK).build(), "peak")
    memory = cl.Buffer(context, cl.mem_flags.READ_WRITE, 1024)
    turns, best = 1_000_000, float("inf")
    kernel.set_args(memory, np.int32(turns))
    for _ in range(10):
        began = time.perf_counter()
        cl.enqueue_nd_range_kernel(queue, kernel, (1,), (1,))
        queue.finish()
        best = min(best, time.perf_counter() - began)
    return 24 * 16 * 2 * turns / best / 1e9


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


def sessions(model: ModelProto | bytes, inputs: dict[str, np.ndarray], target: Target) -> dict[str, lb.Session]:
    """The model on both targets, its inputs set, with equal results."""
    shapes = {name: array.shape for name, array in inputs.items()}
    made = {
        "llvm": lb.Session(lb.compile(model, "llvm", shapes=shapes), num_threads=1),
        "opencl": lb.Session(lb.compile(model, target, shapes=shapes), device="opencl:0"),
    }
    found = []
    for session in made.values():
        for name, array in inputs.items():
            session.set_input(name, array)
        session.run()
        found.append(np.asarray(session.get_output(0).to_device("cpu")).copy())
    assert np.abs(found[0] - found[1]).max() <= 1e-3 * np.abs(found[0]).max(), "the targets disagree"
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    if os.environ.get("POCL_MAX_PTHREAD_COUNT") != "1":
        sys.exit("set POCL_MAX_PTHREAD_COUNT=1: the driver reads its number of threads when it is loaded")
    target = Target.from_device(lb.device("opencl:0"))
    rows: list[list[object]] = [["limit: multiply-adds on registers", "", "", "", round(peak(), 1), ""]]
    for case in CLASSES:
        model, work = convolution(*case)
        x = np.random.default_rng(1).standard_normal((1, case[0], case[2], case[2])).astype(np.float32)
        made = sessions(model, {"x": x}, target)
        spent = in_turns({name: s.run for name, s in made.items()}, rounds)
        channels, outputs, size, window, stride = case
        name = f"{size}x{size}, {channels} to {outputs}, {window}x{window}" + (f" / {stride}" if stride > 1 else "")
        rows.append(_row(name, spent, work))
    photo = picture_for_detector(224, 224)
    models: dict[str, tuple[ModelProto | bytes, dict[str, np.ndarray]]] = {
        "squeezenet": (with_random_weights("squeezenet", {"data_0": photo}), {"data_0": photo}),
        "resnet50": (with_random_weights("resnet50", {"gpu_0/data_0": photo}), {"gpu_0/data_0": photo}),
        "PP-OCRv4 cls 48x192": (wheel_model(PP_OCR, CLASSIFY).read_bytes(), {"x": line_of_text(48, 192)}),
        "PP-OCRv4 det 320x320": (wheel_model(PP_OCR, DETECT).read_bytes(), {"x": picture_for_detector(320, 320)}),
    }
    for name, (source, inputs) in models.items():
        rows.append(_row(name, in_turns({k: s.run for k, s in sessions(source, inputs, target).items()}, rounds), 0))
    columns = ["what", "llvm ms", "opencl ms", "llvm GFLOP/s", "opencl GFLOP/s", "opencl / llvm"]
    write("opencl_kernels", columns, rows)


def _row(name: str, spent: dict[str, float], work: float) -> list[object]:
    llvm, opencl = spent["llvm"], spent["opencl"]
    rates = [round(work / t, 1) if work else "" for t in (llvm, opencl)]
    return [name, round(llvm * 1e3, 3), round(opencl * 1e3, 3), *rates, round(opencl / llvm, 2)]


if __name__ == "__main__":
    main()
