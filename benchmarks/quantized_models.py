"""Quantized forms of models, in QDQ form as onnxruntime's ``quantize_static`` makes them with its defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def quantized(file: Path, shape: tuple[int, ...], saved: Path) -> Path:
    """Write the model at ``file``, which has one f32 input of ``shape``, quantized to ``saved``; returns ``saved``.

    The ranges of activations are those of two inputs of normally distributed elements.
    """
    import onnx
    from onnxruntime.quantization import CalibrationDataReader, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Samples(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self, name: str) -> None:
            rng = np.random.default_rng(0)
            self._left: list[dict[str, Any]] = [{name: rng.standard_normal(shape).astype(np.float32)} for _ in "ab"]

        def get_next(self) -> dict[str, Any] | None:
            return self._left.pop() if self._left else None

    prepared = saved.with_suffix(".prepared.onnx")
    model = onnx.load(file)
    held = {each.name for each in model.graph.initializer}
    (name,) = (each.name for each in model.graph.input if each.name not in held)
    quant_pre_process(str(file), str(prepared), skip_symbolic_shape=True)
    quantize_static(str(prepared), str(saved), Samples(name))
    prepared.unlink()
    return saved
