"""Kernels that move more than they compute, one by one, against onnxruntime and OpenVINO, interleaved on one thread.

python benchmarks/moving_kernels.py [--rounds 41] [--write]      (needs openvino)

The limit of each is a copy of its larger side, which is measured in the same run: its bytes, read and written once.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.cli.bench import interleaved
from landbridge.cli.peers import largest_difference, peers_named

sys.path[:0] = [str(Path(__file__).parents[1])]

from measure import write  # noqa: E402

os.environ["LANDBRIDGE_CACHE"] = "0"

PEERS = ("onnxruntime", "openvino")
HALF_PIXEL = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
POOL_3 = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
NEAREST = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
GRID = np.random.default_rng(1).uniform(-1, 1, (1, 64, 64, 2))
WEIGHTS = np.random.default_rng(2).standard_normal((64, 3, 6, 6))
SMALL_WEIGHTS = WEIGHTS[:32, :, :3, :3]
#: Name: operator, shape of its first input, the others by name (none has an empty one), attributes.
CASES: dict[str, tuple[str, list[int], dict[str, object], dict[str, object]]] = {
    "Transpose 64x1024": ("Transpose", [64, 1024], {}, {"perm": [1, 0]}),
    "Transpose 1040x1040": ("Transpose", [1040, 1040], {}, {"perm": [1, 0]}),
    "Transpose 64x56x56 to channels last": ("Transpose", [1, 64, 56, 56], {}, {"perm": [0, 2, 3, 1]}),
    "Transpose 224x224x3 to planes": ("Transpose", [1, 224, 224, 3], {}, {"perm": [0, 3, 1, 2]}),
    "MaxPool 2x2 of 64x112x112": ("MaxPool", [1, 64, 112, 112], {}, {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "MaxPool 3x3 by 2 of 64x112x112": ("MaxPool", [1, 64, 112, 112], {}, {**POOL_3, "strides": [2, 2]}),
    "MaxPool 3x3 of 64x56x56": ("MaxPool", [1, 64, 56, 56], {}, POOL_3),
    "AveragePool 3x3 of 64x56x56": ("AveragePool", [1, 64, 56, 56], {}, POOL_3),
    "MaxPool 3 by 2 of 64x4000": ("MaxPool", [1, 64, 4000], {}, {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
    "GlobalAveragePool of 64x56x56": ("GlobalAveragePool", [1, 64, 56, 56], {}, {}),
    "Resize 40x40 by 1.7, linear": ("Resize", [1, 64, 40, 40], {"": None, "scales": [1, 1, 1.7, 1.7]}, HALF_PIXEL),
    "Resize 480x640 by 0.5, linear": ("Resize", [1, 3, 480, 640], {"": None, "scales": [1, 1, 0.5, 0.5]}, HALF_PIXEL),
    "Resize 1000 by 2, linear": ("Resize", [1, 64, 1000], {"": None, "scales": [1, 1, 2.0]}, HALF_PIXEL),
    "CumSum of 64x1000": ("CumSum", [64, 1000], {"axis": 1}, {}),
    "CumSum of 64x1000 down": ("CumSum", [64, 1000], {"axis": 0}, {}),
    "CumSum of 1x1000000": ("CumSum", [1, 1_000_000], {"axis": 1}, {}),
    "CumSum of 8x512x96": ("CumSum", [8, 512, 96], {"axis": 1}, {}),
    "Pad 64x56x56 by 1, reflect": ("Pad", [1, 64, 56, 56], {"pads": [0, 0, 1, 1, 0, 0, 1, 1]}, {"mode": "reflect"}),
    "Pad 224x224 by 3, edge": ("Pad", [1, 3, 224, 224], {"pads": [0, 0, 3, 3, 0, 0, 3, 3]}, {"mode": "edge"}),
    "Pad 80000 by 256, reflect": ("Pad", [1, 80_000], {"pads": [0, 256, 0, 256]}, {"mode": "reflect"}),
    "TopK 5 of 64x1000": ("TopK", [64, 1000], {"k": [5]}, {}),
    "TopK 100 of 8400": ("TopK", [1, 8400], {"k": [100]}, {}),
    "TopK 300 of 672000": ("TopK", [1, 672_000], {"k": [300]}, {}),
    "TopK 300 of 8400": ("TopK", [1, 8400], {"k": [300]}, {}),
    "TopK 1000 of 4000": ("TopK", [1, 4000], {"k": [1000]}, {}),
    "TopK 8400 of 8400": ("TopK", [1, 8400], {"k": [8400]}, {}),
    "TopK 3 of 64, before 80x80": ("TopK", [1, 64, 80, 80], {"k": [3]}, {"axis": 1}),
    "ArgMax of 21, before 128x128": ("ArgMax", [1, 21, 128, 128], {}, {"axis": 1}),
    "ArgMax of 8400x80": ("ArgMax", [8400, 80], {}, {"axis": 1}),
    "Hardmax of 64x1000": ("Hardmax", [64, 1000], {}, {}),
    "Softmax of 8x512x512": ("Softmax", [8, 512, 512], {}, {}),
    "Softmax of 64x56x56": ("Softmax", [1, 64, 56, 56], {}, {}),
    "Tile 64x56x56 by 2x2": ("Tile", [1, 64, 56, 56], {"repeats": [1, 1, 2, 2]}, {}),
    "GridSample of 32x64x64": ("GridSample", [1, 32, 64, 64], {"grid": GRID}, {}),
    "Resize 64x80x80 by 0.5, nearest": ("Resize", [1, 64, 80, 80], {"": None, "scales": [1, 1, 0.5, 0.5]}, NEAREST),
    "Pad 64x56x56 by -2": ("Pad", [1, 64, 56, 56], {"pads": [0, 0, -2, -2, 0, 0, -2, -2]}, {}),
    "ConvTranspose 64 to 3, 6x6 by 4": (
        "ConvTranspose",
        [1, 64, 32, 32],
        {"w": WEIGHTS[:, :, :6, :6]},
        {"strides": [4, 4]},
    ),
    "ConvTranspose 32 to 3, 3x3 by 2": (
        "ConvTranspose",
        [1, 32, 64, 64],
        {"w": WEIGHTS[:32, :, :3, :3]},
        {"strides": [2, 2]},
    ),
    "Atan of 64x56x56": ("Atan", [1, 64, 56, 56], {}, {}),
    "SpaceToDepth of 16x112x112": ("SpaceToDepth", [1, 16, 112, 112], {}, {"blocksize": 2}),
}


def _model(name: str) -> onnx.ModelProto:
    operator, shape, constants, attributes = CASES[name]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    kind = TensorProto.INT64 if operator == "ArgMax" else TensorProto.FLOAT
    y = helper.make_tensor_value_info("y", kind, [None] * len(shape))
    arrays = {k: np.array(v) for k, v in constants.items() if k}
    narrow = {k: a.astype(np.float32) if a.dtype.kind == "f" else a for k, a in arrays.items()}
    values = [numpy_helper.from_array(a, k) for k, a in narrow.items()]
    outputs = ["y", "positions"] if operator == "TopK" else ["y"]
    node = helper.make_node(operator, ["x", *constants], outputs, **attributes)
    graph = helper.make_graph([node], "one", [x], [y], values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def measured(name: str, rounds: int) -> list[object]:
    """A row: microseconds of each, the copy's, how far ahead of the faster peer, and the largest difference."""
    model = _model(name)
    inputs = {"x": np.random.default_rng(0).standard_normal(CASES[name][1]).astype(np.float32)}
    session = lb.Session(lb.compile(model), num_threads=1)
    session.set_input_zero_copy("x", inputs["x"])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "one.onnx"
        onnx.save(model, file)
        created = {peer: make(file, inputs, 1) for peer, make in peers_named(PEERS).items()}
    session.run()
    ours = [np.array(np.from_dlpack(session.get_output(0)))]
    larger = max((inputs["x"], ours[0]), key=lambda a: a.size)
    copy = np.empty_like(larger)
    actions: dict[str, Callable[[], object]] = {"ours": session.run, "copy": lambda: np.copyto(copy, larger)}
    actions |= {peer: each.run for peer, each in created.items()}
    spent = {k: 1e3 * statistics.median(v) for k, v in interleaved(actions, rounds, 0.0).items()}
    best = min(spent[p] for p in created)
    worst = max(largest_difference(ours, each.outputs()) for each in created.values())
    return [name, *(round(spent[k], 1) for k in ("ours", "copy", *PEERS)), best / spent["ours"], f"{worst:.1e}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--write", action="store_true", help="write the table to benchmarks/results")
    options = parser.parse_args()
    rows = []
    for name in CASES:
        rows.append(measured(name, options.rounds))
        print(*rows[-1], flush=True)
    if options.write:
        columns = ["kernel", "us", "a copy", "onnxruntime", "OpenVINO", "faster peer / ours", "largest difference"]
        write("moving_kernels", columns, rows)


if __name__ == "__main__":
    main()
