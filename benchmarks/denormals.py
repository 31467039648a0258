"""Denormal floats flushed against kept: a convolution by how many of its inputs are denormal, PP-OCR's detector on a
faint picture; and what a call of a tiny model costs either way.

python benchmarks/denormals.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

import numpy as np
import onnx
from onnx import TensorProto, helper

import landbridge as lb

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "ocr"))

from measure import interleaved, write
from wheel_models import DETECT, PP_OCR, wheel_model

CHANNELS, HEIGHT, WIDTH = 768, 20, 20

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


def activations(denormal: float, amplitude: float = 1.0) -> np.ndarray:
    """Numbers of ``amplitude``, but for a part ``denormal`` of them."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((1, CHANNELS, HEIGHT, WIDTH)).astype(np.float32)
    return np.where(rng.random(x.shape) < denormal, x * np.float32(1e-39), x * np.float32(amplitude))


def detector() -> onnx.ModelProto:
    """PP-OCR's detector of text, for pictures of 320 x 320."""
    model = onnx.load(wheel_model(PP_OCR, DETECT))
    extents = model.graph.input[0].type.tensor_type.shape.dim
    for extent, value in zip(extents, (1, 3, 320, 320), strict=True):
        extent.dim_value = value
    return model


def session(model: onnx.ModelProto, setting: str, threads: int, inputs: dict[str, np.ndarray]) -> lb.Session:
    """A Session with its inputs bound."""
    created = lb.Session(lb.compile(model, f"llvm -denormals={setting}"), num_threads=threads)
    for name, value in inputs.items():
        created.set_input(name, value)
    return created


def compared(
    subject: str, model: onnx.ModelProto, threads: int, inputs: dict[str, np.ndarray], rounds: int = 7, calls: int = 1
) -> Row:
    """Median microseconds of a run under each setting, taken interleaved, and kept over flushed.

    The middle one of three Sessions of each: a fifth of the time goes by where their memory lies.
    """
    order = ("flush", "keep", "keep", "flush", "flush", "keep")
    runs = {f"{setting} {n}": session(model, setting, threads, inputs).run for n, setting in enumerate(order)}
    spent = interleaved(runs, rounds=rounds, calls=calls)
    flush, keep = (1e6 * median(t for name, t in spent.items() if name.startswith(s)) for s in ("flush", "keep"))
    return subject, threads, flush, keep, keep / flush


def main() -> None:
    inputs = {f"{part:.0%} of inputs denormal": activations(part) for part in (0.0, 0.01, 0.1, 1.0)}
    inputs["inputs of 1e-37, products denormal"] = activations(0.0, 1e-37)
    rows = [
        compared(f"conv 1x1, {CHANNELS} channels, {subject}", one_by_one(), 1, {"x": x})
        for subject, x in inputs.items()
    ]
    subject = "10% of inputs denormal"
    rows.append(compared(f"conv 1x1, {CHANNELS} channels, {subject}", one_by_one(), 2, {"x": inputs[subject]}))
    picture = np.random.default_rng(2).standard_normal((1, 3, 320, 320)).astype(np.float32)
    rows += [
        compared(f"PP-OCR det, inputs of {amplitude:g}", detector(), 1, {"x": picture * np.float32(amplitude)})
        for amplitude in (1.0, 1e-38)
    ]
    ones = np.ones(64, np.float32)
    rows.append(compared("addition of 64 floats", addition(), 1, {"a": ones, "b": ones}, 20, 10_000))
    write("denormals", ("what", "threads", "flush, us", "keep, us", "keep / flush"), rows)


if __name__ == "__main__":
    main()
