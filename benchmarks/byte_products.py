"""Products and convolutions of bytes against onnxruntime, interleaved on one thread.

python benchmarks/byte_products.py [NAME ...] [--rounds 15] [--write]

The limit of each is its multiplications at 128 a cycle: two ``vpdpbusd`` of 64 bytes. The cycle is 1 / GHZ ns.
``integers`` are MatMulInteger and ConvInteger, ``layers`` QLinearMatMul and QLinearConv, with data of uint8, weights of
int8 that are as many scales as outputs, and zero points that are not 0. ``of the run`` are ``integers`` whose zero
points come with the run, and of products the weights too.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.cli.bench import interleaved
from landbridge.cli.peers import peers_named

sys.path[:0] = [str(Path(__file__).parents[1])]

from measure import write  # noqa: E402

os.environ["LANDBRIDGE_CACHE"] = "0"

#: Of the machine that the results are of.
GHZ = 3.0
PER_CYCLE = 128


@dataclass(frozen=True)
class Case:
    """Shapes of data and weights, the attributes of a convolution, and multiplications."""

    data: tuple[int, ...]
    weights: tuple[int, ...]
    products: int
    attributes: tuple[tuple[str, object], ...] = ()


def _square(channels: int, kernel: int, group: int = 1) -> Case:
    pads = (("kernel_shape", [kernel] * 2), ("pads", [kernel // 2] * 4), ("group", group))
    inner = channels // group
    return Case((1, channels, 56, 56), (channels, inner, kernel, kernel), channels * inner * kernel**2 * 56 * 56, pads)


CASES = {
    "1x768x768": Case((1, 768), (768, 768), 768 * 768),
    "128x768x768": Case((128, 768), (768, 768), 128 * 768 * 768),
    "1x1 64 to 64 of 56x56": _square(64, 1),
    "3x3 64 to 64 of 56x56": _square(64, 3),
    "3x3 by channel, 64 of 56x56": _square(64, 3, 64),
}


KINDS = ("integers", "layer", "of the run")


def _created(case: Case, kind: str) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model, and values for its inputs."""
    layer = kind == "layer"
    values = np.random.default_rng(0)
    convolution = len(case.data) == 4
    outputs = case.weights[0 if convolution else 1]
    depth = case.products // (outputs * (56 * 56 if convolution else case.data[0]))
    weights = values.integers(-127, 128, case.weights).astype(np.int8)
    scale = 40 / (127 * 127 / 3 * depth**0.5 * 2)
    constants = {
        "x_scale": np.float32(0.02),
        "x_zero": np.uint8(120),
        "w": weights,
        "w_scale": values.uniform(0.5, 1.5, outputs).astype(np.float32) * np.float32(0.01),
        "w_zero": np.zeros(outputs if layer else (), np.int8),
        "y_scale": np.float32(0.02 * 0.01 / scale),
        "y_zero": np.uint8(128),
    }
    if layer:
        operator = "QLinearConv" if convolution else "QLinearMatMul"
        inputs = ["x", "x_scale", "x_zero", "w", "w_scale", "w_zero", "y_scale", "y_zero"]
    else:
        operator, inputs = "ConvInteger" if convolution else "MatMulInteger", ["x", "w", "x_zero", "w_zero"]
    node = helper.make_node(operator, inputs, ["y"], **dict(case.attributes))
    given = {"x": np.random.default_rng(1).integers(0, 256, case.data).astype(np.uint8)}
    if kind == "of the run":
        given |= {name: np.asarray(constants[name]) for name in ("x_zero", *(() if convolution else ("w", "w_zero")))}
    taken = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for name, a in given.items()
    ]
    y = helper.make_tensor_value_info("y", TensorProto.UINT8 if layer else TensorProto.INT32, [None] * len(case.data))
    retained = [numpy_helper.from_array(np.asarray(constants[name]), name) for name in inputs if name not in given]
    graph = helper.make_graph([node], "one", taken, [y], retained)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), given


def measured(name: str, kind: str, rounds: int) -> list[object]:
    """A row: microseconds of ours and of onnxruntime, how far we are ahead, the limit, and how many results differ,
    by how much at most."""
    case = CASES[name]
    model, inputs = _created(case, kind)
    session = lb.Session(lb.compile(model), num_threads=1)
    for key, value in inputs.items():
        session.set_input_zero_copy(key, value)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "one.onnx"
        onnx.save(model, file)
        peer = peers_named(["onnxruntime"])["onnxruntime"](file, inputs, 1)
    session.run()
    ours, theirs = np.array(np.from_dlpack(session.get_output(0))).astype(np.int64), peer.outputs()[0].astype(np.int64)
    times = interleaved({"ours": session.run, "peer": peer.run}, rounds, 0.0)
    spent = {k: 1e3 * statistics.median(v) for k, v in times.items()}
    limit = case.products / PER_CYCLE / GHZ / 1e3
    difference = np.abs(ours - theirs)
    differ = f"{np.count_nonzero(difference)} of {difference.size}, by {difference.max()}"
    return [
        f"{name}, {kind}", round(spent["ours"], 1), round(spent["peer"], 1), spent["peer"] / spent["ours"],
        round(limit, 1), differ,
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="cases whose names contain one of these")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", action="store_true", help="write the table to benchmarks/results")
    options = parser.parse_args()
    rows = []
    for name in CASES:
        for kind in KINDS:
            if not options.names or any(part in name for part in options.names):
                rows.append(measured(name, kind, options.rounds))
                print(*rows[-1], flush=True)
    if options.write:
        columns = ["kernel", "us", "onnxruntime", "onnxruntime / ours", "limit", "results that differ"]
        write("byte_products", columns, rows)


if __name__ == "__main__":
    main()
