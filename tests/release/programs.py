"""Compiled programs, with inputs and the outputs that they have here, for installations without a compiler."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import parser

import landbridge as lb
from tests.whole_models.small_models import edges

#: Inputs of each program, one for each thread.
CASES = 8
#: Sizes vary from case to case.
OPEN = '<ir_version: 8, opset_import: ["": 18]> g (float[n, w] x) => (float[n, w] y) { y = Softmax (x) }'
#: For any x86-64 that tests run on, as files travel.
TARGET = "llvm -mcpu=x86-64-v2"


def write(folder: Path) -> Path:
    """Writes ``NAME.lbx`` and ``NAME.npz``, arrays ``x0`` and ``y0`` onwards, of ``fixed`` and ``open``; returns
    ``folder``.
    """
    rng = np.random.default_rng(0)
    shapes = {
        "fixed": [(1, 3, 24, 32)] * CASES,
        "open": [(2 + case % 3, 5 + case) for case in range(CASES)],
    }
    models = {"fixed": edges(24, 32), "open": parser.parse_model(OPEN)}
    for name, model in models.items():
        executable = lb.compile(model, TARGET)
        executable.save(folder / f"{name}.lbx")
        session = lb.Session(executable, num_threads=1)
        arrays = {}
        for case, shape in enumerate(shapes[name]):
            arrays[f"x{case}"] = rng.standard_normal(shape).astype(np.float32)
            arrays[f"y{case}"] = np.array(session(arrays[f"x{case}"])[0])
        np.savez(folder / f"{name}.npz", **arrays)
    return folder
