"""A full-HD frame in and out: bytes the runtime copied, and the time, against one memcpy of the frame.

python benchmarks/zero_copy.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnxruntime
from onnx import ModelProto, TensorProto, helper, numpy_helper

import landbridge as lb

sys.path.insert(0, str(Path(__file__).parent))

from measure import interleaved, write

FRAME = (1, 3, 1080, 1920)  # float32, 24.9 MB


def few_bytes() -> ModelProto:
    """Takes the frame and reads one row of 8 pixels of it: all that is left is the cost of getting it in."""
    bounds = {
        "starts": np.array([0, 0], np.int64),
        "ends": np.array([1, 8], np.int64),
        "axes": np.array([2, 3], np.int64),
        "one": np.ones((), np.float32),
    }
    nodes = [
        helper.make_node("Slice", ["x", "starts", "ends", "axes"], ["part"], name="slice"),
        helper.make_node("Add", ["part", "one"], ["y"], name="add"),
    ]
    return _model(nodes, (1, 3, 1, 8), bounds)


def whole_frame() -> ModelProto:
    """``y = x * 0.5``, as large as the frame."""
    half = {"half": np.full((), 0.5, np.float32)}
    return _model([helper.make_node("Mul", ["x", "half"], ["y"], name="mul")], FRAME, half)


def _model(nodes: list[object], out: tuple[int, ...], constants: dict[str, np.ndarray]) -> ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, FRAME)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, out)
    initializers = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "frame", [x], [y], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main() -> None:
    rng = np.random.default_rng(0)
    frames = [rng.standard_normal(FRAME, np.float32) for _ in range(2)]
    target = np.empty_like(frames[0])
    rows = []
    for name, model in (("a few bytes of it", few_bytes()), ("all of it", whole_frame())):
        session = lb.Session(lb.compile(model), num_threads=1)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        other = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        out = np.empty(session.outputs[0].shape, np.float32)
        session.set_output_zero_copy(0, out)
        which = [0]

        def ours(session: lb.Session = session, which: list[int] = which) -> None:
            which[0] ^= 1
            session.set_input_zero_copy("x", frames[which[0]])
            session.run()

        def by_value(session: lb.Session = session) -> None:
            session.set_input("x", frames[0])
            session.run()

        def theirs(other: onnxruntime.InferenceSession = other) -> None:
            other.run(None, {"x": frames[0]})

        with lb.ledger() as moves:
            ours()
        actions = {"ours": ours, "theirs": theirs, "memcpy": lambda: np.copyto(target, frames[0])}
        spent = interleaved(actions, rounds=40)
        spent["by value"] = interleaved({"by value": by_value}, rounds=20)["by value"]
        rows.append((name, moves.total_bytes, *(spent[key] * 1e6 for key in ("ours", "theirs", "by value", "memcpy"))))
    columns = ("the network reads", "bytes copied", "us", "onnxruntime us", "us with set_input", "one memcpy us")
    write("zero_copy", columns, rows)


if __name__ == "__main__":
    main()
