"""One step of a streaming convolution whose state is a window that slides, against onnxruntime with bound memory.

Processor time of one thread, interleaved. The limit comes first: what has to be written of the state are the new
samples, and a step is to take no longer than onnxruntime's, which has two buffers that the caller swaps. "two buffers"
is the same model without an alias. Moved are bytes that kernels or the runtime move into the state and to the input of
the convolution, the mean of 64 runs: on a device, a window is moved in every eighth run. "1..160" are programs for any
number of new samples up to 160, of which the runs have 16.

Devices are those that there are, by the processor time of their driver; onnxruntime has none of them.

chrt -f 30 python benchmarks/state_streams.py
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime

sys.path.insert(0, str(Path(__file__).parents[1]))

from measure import interleaved, write
from onnx import ModelProto, TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.device import registry

#: Channels, samples of the state, dilation (None: each channel by itself, all samples), new samples.
CASES = [
    (64, 3, 1, 1),
    (64, 3, 1, 16),
    (64, 3, 1, 160),
    (128, 30, None, 1),
    (128, 30, None, 16),
    (128, 30, None, 160),
    (384, 30, 10, 16),
    (64, 128, 64, 1),
    (64, 128, 64, 16),
    (64, 128, 64, 160),
    (64, 1024, 512, 1),
    (64, 1024, 512, 16),
    (64, 1024, 512, 160),
]


#: Those of them that run on devices, and that are compiled for any number of new samples.
ON_DEVICES = [
    (64, 3, 1, 1),
    (64, 3, 1, 16),
    (128, 30, None, 16),
    (64, 128, 64, 16),
    (64, 1024, 512, 1),
    (64, 1024, 512, 16),
]
OF_ANY_NUMBER = [case for case in CASES if case[3] == 16]
MOST = 160


def model(channels: int, before: int, dilation: int | None, new: int | str) -> ModelProto:
    groups, step = (channels, 1) if dilation is None else (1, dilation)
    taps = before // step + 1
    shape, rng = (channels, channels // groups, taps), np.random.default_rng(0)
    weights = (rng.standard_normal(shape) / np.sqrt(shape[1] * taps)).astype(np.float32)
    constants = {"w": weights, "first": np.array([-before]), "last": np.array([1 << 62]), "axis": np.array([2])}
    nodes = [
        helper.make_node("Concat", ["cache_in", "x"], ["joined"], axis=2),
        helper.make_node("Conv", ["joined", "w"], ["y"], dilations=[step], group=groups),
        helper.make_node("Slice", ["joined", "first", "last", "axis"], ["cache_out"]),
    ]
    samples = {"cache_in": before, "x": new, "y": new, "cache_out": before}
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, channels, s]) for n, s in samples.items()]
    stored = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "step", values[:2], values[2:], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def ours(created: ModelProto, x: np.ndarray, alias: str | None, device: str) -> tuple[Callable[[], object], int]:
    """The step by a Session on ``device``, and the bytes that one moves of the state."""
    is_open = created.graph.input[1].type.tensor_type.shape.dim[2].HasField("dim_param")
    ranges = {"S": lb.Dim(1, MOST)} if is_open else None
    program = lb.compile(created, target="llvm" if device == "cpu" else device, alias=alias, dims=ranges)
    session = lb.Session(program, num_threads=1, device=device)
    session.bind_state()
    session.set_input("x", x)
    session.run()
    with lb.ledger() as moves:
        for _ in range(64):
            session.run()
    moved = sum(move.nbytes for move in moves if move.tensor != "unpack") // 64
    return (session.run if device == "cpu" else lambda: step_on_device(session)), moved


def step_on_device(session: lb.Session) -> None:
    """A run, until the device is done."""
    session.run()
    result = session.get_output("y")
    result.storage.wait(*result.byte_range, writes=False)


def theirs(created: ModelProto, x: np.ndarray) -> Callable[[], object]:
    """The step by onnxruntime with everything bound; the caller's swap of two buffers is not counted."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(created.SerializeToString(), options, ["CPUExecutionProvider"])
    binding = session.io_binding()
    for value in session.get_inputs():
        array = x if value.name == "x" else np.zeros(value.shape, np.float32)
        binding.bind_ortvalue_input(value.name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
    for value in session.get_outputs():
        empty = onnxruntime.OrtValue.ortvalue_from_shape_and_type(value.shape, np.float32)
        binding.bind_ortvalue_output(value.name, empty)
    return lambda: session.run_with_iobinding(binding)


def compared(
    channels: int, before: int, dilation: int | None, new: int, device: str = "cpu", *, is_open: bool = False
) -> list[object]:
    """A row of the table, in microseconds and bytes."""
    created = model(channels, before, dilation, new)
    compiled = model(channels, before, dilation, "S") if is_open else created
    x = np.random.default_rng(1).standard_normal((1, channels, new)).astype(np.float32)
    actions: dict[str, Callable[[], object]] = {}
    actions["window"], moved = ours(compiled, x, "auto", device)
    actions["two"], moved_by_two = ours(compiled, x, None, device)
    if device == "cpu":
        actions["onnxruntime"] = theirs(created, x)
    calls = 100 if device == "cpu" else 16
    spent = interleaved(actions, rounds=21, calls=calls, clock=time.process_time)
    times = [1e6 * spent[name] if name in spent else "-" for name in ("window", "two", "onnxruntime")]
    layer = f"{channels} channels" + (", each by itself" if dilation is None else f", dilation {dilation}")
    ratio = round(spent["window"] / spent["onnxruntime"], 2) if "onnxruntime" in spent else "-"
    number = f"{new} of 1..{MOST}" if is_open else new
    return [device, layer, before, number, 4 * channels * new, moved, moved_by_two, *times, ratio]


def main() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    columns = (
        "device",
        "layer",
        "samples of the state",
        "new samples",
        "limit: bytes that are new",
        "bytes moved besides",
        "by two buffers",
        "us",
        "us, two buffers",
        "onnxruntime, us",
        "of onnxruntime",
    )
    rows = [compared(*case) for case in CASES]
    rows += [compared(*case, is_open=True) for case in OF_ANY_NUMBER]
    for device in ("opencl", "vulkan"):
        if registry.devices(device):
            rows += [compared(*case, device) for case in ON_DEVICES]
    write("state_streams", columns, rows)


if __name__ == "__main__":
    main()
