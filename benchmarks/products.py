"""Products of two inputs, and of an input and weights, compared with onnxruntime and the peak, on one thread.

chrt -f 50 taskset -c 1 python benchmarks/products.py [--seconds 3] [--write]

All run interleaved for some seconds, after the peak was measured as ``landbridge explain`` does. Shares of the peak are
of the fastest run of each, ratios of medians.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
from measure import write
from onnx import TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.cli.machine_limits import measured_limits

#: Batches, rows, terms and columns.
SHAPES = (
    (1, 1024, 1024, 1024),
    (1, 1000, 1000, 1000),
    (1, 512, 512, 512),
    (1, 384, 768, 768),
    (1, 384, 768, 3072),
    (1, 384, 3072, 768),
    (1, 384, 384, 1024),
    (1, 128, 2048, 512),
    (1, 112, 1024, 1024),
    (1, 1024, 4096, 1024),
    (12, 384, 64, 384),
    (12, 384, 384, 64),
)
COLUMNS = ("product", "two inputs, % peak", "weights, % peak", "onnxruntime, % peak", "onnxruntime / two inputs")


def _model(shape: tuple[int, ...], weights: np.ndarray | None) -> onnx.ModelProto:
    batches, rows, terms, columns = shape
    extents = {"x": (batches, rows, terms), "w": (batches, terms, columns), "y": (batches, rows, columns)}
    x, w, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, e) for n, e in extents.items())
    constants = [] if weights is None else [numpy_helper.from_array(weights, "w")]
    inputs = [x, w] if weights is None else [x]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "product", inputs, [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _ours(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> Callable[[], object]:
    session = lb.Session(lb.compile(model), num_threads=1)
    for spec in model.graph.input:
        session.set_input(spec.name, inputs[spec.name])
    return session.run


def measured(shape: tuple[int, ...], seconds: float) -> list[object]:
    """A row."""
    batches, rows, terms, columns = shape
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batches, rows, terms), dtype=np.float32)
    w = rng.standard_normal((batches, terms, columns), dtype=np.float32)
    inputs, model = {"x": x, "w": w}, _model(shape, None)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    peer = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    actions = {"inputs": _ours(model, inputs), "onnxruntime": lambda: peer.run(None, inputs)}
    if batches == 1:
        actions["weights"] = _ours(_model(shape, w), inputs)
    peak = measured_limits(lb.Target("llvm"), 1).flops
    spent: dict[str, list[float]] = {name: [] for name in actions}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, run in actions.items():
            began = time.perf_counter()
            run()
            spent[name].append(time.perf_counter() - began)
    shares = {name: round(200 * batches * rows * terms * columns / min(each) / peak) for name, each in spent.items()}
    ratio = statistics.median(spent["onnxruntime"]) / statistics.median(spent["inputs"])
    named = "x".join(map(str, shape if batches > 1 else shape[1:]))
    return [named, shares["inputs"], shares.get("weights", ""), shares["onnxruntime"], ratio]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--write", action="store_true", help="write the table to benchmarks/results")
    options = parser.parse_args()
    rows = []
    for shape in SHAPES:
        rows.append(measured(shape, options.seconds))
        print(*rows[-1], flush=True)
    if options.write:
        write("products", COLUMNS, rows)


if __name__ == "__main__":
    main()
