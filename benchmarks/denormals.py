"""Denormal floats flushed against kept: a convolution whose activations are low, by how many products are denormal; and
what a call of a tiny model costs either way.

python benchmarks/denormals.py
"""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx
from measure import in_turns, write
from onnx import TensorProto, helper

import landbridge as lb

CHANNELS, HEIGHT, WIDTH = 768, 20, 20
SETTINGS = ("flush", "keep")

Row = tuple[str, int, float, float, float]


def one_by_one() -> onnx.ModelProto:
    """A 1x1 convolution of 768 channels."""
    weights = np.random.default_rng(0).standard_normal((CHANNELS, CHANNELS, 1, 1)).astype(np.float32) * 0.05
    shape = (1, CHANNELS, HEIGHT, WIDTH)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"])],
        "conv",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [helper.make_tensor("w", TensorProto.FLOAT, weights.shape, weights.tobytes(), raw=True)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def addition() -> onnx.ModelProto:
    """An addition of 64 floats."""
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (64,)) for name in "aby"]
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["y"])], "add", infos[:2], infos[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def activations(denormal: float) -> np.ndarray:
    """Normal numbers, but for a part ``denormal`` of them."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((1, CHANNELS, HEIGHT, WIDTH)).astype(np.float32)
    return np.where(rng.random(x.shape) < denormal, x * np.float32(1e-39), x)


def sessions(model: onnx.ModelProto, threads: int, inputs: dict[str, np.ndarray]) -> dict[str, lb.Session]:
    """A Session for each setting, its inputs bound."""
    made = {}
    for setting in SETTINGS:
        made[setting] = lb.Session(lb.compile(model, f"llvm -denormals={setting}"), num_threads=threads)
        for name, value in inputs.items():
            made[setting].set_input(name, value)
    return made


def compared(what: str, model: onnx.ModelProto, threads: int, inputs: dict[str, np.ndarray], calls: int) -> Row:
    """Median microseconds of a run under each setting, taken in turns, and kept over flushed."""
    runs = {name: partial(session.run) for name, session in sessions(model, threads, inputs).items()}
    spent = in_turns(runs, rounds=30, calls=calls, settle_seconds=0.001)
    flush, keep = (spent[setting] * 1e6 for setting in SETTINGS)
    return what, threads, flush, keep, keep / flush


def main() -> None:
    rows = [
        compared(f"conv 1x1, {CHANNELS} channels, {part:.0%} of inputs denormal", one_by_one(), threads, {"x": x}, 3)
        for part in (0.0, 0.01, 0.1, 1.0)
        for x in [activations(part)]
        for threads in (1, 2)
    ]
    ones = np.ones(64, np.float32)
    rows.append(compared("addition of 64 floats", addition(), 1, {"a": ones, "b": ones}, 20_000))
    write("denormals", ("what", "threads", "flush, us", "keep, us", "keep / flush"), rows)


if __name__ == "__main__":
    main()
