"""First programs beside onnxruntime: seconds from process start to the first result, and how far results differ.

python benchmarks/first_tier.py [--rounds 7] [--only OCR] [--write]

Each process imports numpy and its package, reads the ``.onnx``, runs once and ends; ours and onnxruntime's are started
in turns. ``first_program`` is called as ``compile`` calls it: no cache, no compiler. Both may use all cores; kernels of
first programs multiply on one thread. Our modules are byte code before, as an installer leaves them.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import write
from peers import MODELS, ROOT, Model

import landbridge as lb
from landbridge.first_tier.program import first_program

NETWORKS = (
    *("squeezenet", "ResNet-50", "shufflenet", "AlexNet", "Inception v1", "Inception v2", "DenseNet-121"),
    *("PP-OCRv4 det", "PP-OCRv4 cls", "PP-OCRv4 rec", "PP-OCRv6 det small", "PP-OCRv6 rec small"),
    *("rapid orientation", "NudeNet, YOLOv8n 320", "captcha CRNN", "basic pitch", "EEG seizures"),
    *("rxnmap, transformer", "magika", "name romanizer, encoder", "wake word, embedding", "SwiftF0"),
)
_OURS = """
import numpy as np
from pathlib import Path
import landbridge as lb
from landbridge.first_tier.program import first_program
inputs = dict(np.load({inputs!r}))
target = lb.Target("llvm")
session = lb.Session(first_program(Path({file!r}), target, {shapes!r}))
np.savez({outputs!r}, *map(np.asarray, session(*(inputs[spec.name] for spec in session.inputs))))
"""
_ONNXRUNTIME = """
import numpy as np
import onnxruntime
inputs = dict(np.load({inputs!r}))
options = onnxruntime.SessionOptions()
options.log_severity_level = 3
session = onnxruntime.InferenceSession({file!r}, options, providers=["CPUExecutionProvider"])
np.savez({outputs!r}, *session.run(None, inputs))
"""
COLUMNS = (
    "model",
    "kernel calls",
    "processor s",
    "onnxruntime processor s",
    "times onnxruntime",
    "wall s",
    "onnxruntime wall s",
    "times onnxruntime, wall",
    "largest difference / largest element",
)


def started(code: str) -> tuple[float, float]:
    """Processor and wall seconds of one process."""
    unused = ("PYTHONDONTWRITEBYTECODE", "LANDBRIDGE_CACHE")
    environment = {name: value for name, value in os.environ.items() if name not in unused}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def inputs_of(executable: lb.Executable, model: Model) -> dict[str, np.ndarray]:
    """Values for each input: as declared, else drawn from 0 to 1, integers from 0 to below ``model.below``."""
    rng, found = np.random.default_rng(0), {}
    for spec in executable.main.inputs:
        if spec.name in model.values:
            found[spec.name] = np.full(spec.shape, model.values[spec.name], spec.dtype)
        elif "float" in spec.dtype:
            found[spec.name] = rng.random(spec.shape).astype(spec.dtype)
        else:
            found[spec.name] = rng.integers(0, 2 if spec.dtype == "bool" else model.below, spec.shape).astype(
                spec.dtype
            )
    return found


def row(name: str, rounds: int, folder: Path) -> list[object] | None:
    """The row of one network: medians of processes in turns; None where the first tier leaves it to the compiler."""
    model = MODELS[name]
    executable = first_program(model.path(), lb.Target("llvm"), model.shapes)
    if executable is None:
        return None
    inputs, outputs = folder / "inputs.npz", {by: folder / f"{by}.npz" for by in ("ours", "onnxruntime")}
    np.savez(inputs, **inputs_of(executable, model))  # type: ignore[arg-type]
    facts = {"inputs": str(inputs), "file": str(model.path()), "shapes": model.shapes}
    codes = {
        by: code.format(outputs=str(outputs[by]), **facts)
        for by, code in (("ours", _OURS), ("onnxruntime", _ONNXRUNTIME))
    }
    spent: dict[str, list[tuple[float, float]]] = {by: [] for by in codes}
    for _ in range(rounds + 1):
        for by, code in codes.items():
            spent[by].append(started(code))
    (ours, ours_wall), (theirs, theirs_wall) = (
        [statistics.median(each) for each in zip(*spent[by][1:], strict=True)] for by in codes
    )
    found, wanted = (list(np.load(path).values()) for path in outputs.values())
    error = max(
        float(np.max(np.abs(a.astype(np.float64) - b), initial=0)) / max(float(np.max(np.abs(b), initial=0)), 1e-30)
        for a, b in zip(found, wanted, strict=True)
    )
    calls = sum(type(each).__name__ == "HostCall" for each in executable.main.instructions)
    return [name, calls, ours, theirs, ours / theirs, ours_wall, theirs_wall, ours_wall / theirs_wall, error]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    compileall.compile_dir(ROOT / "src", quiet=1)
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in NETWORKS:
            if options.only in name:
                found = row(name, options.rounds, Path(folder))
                print(*(found or (name, "is left to the compiler")), flush=True)
                rows += [found] if found else []
    means = [statistics.geometric_mean([float(str(each[column])) for each in rows]) for column in (4, 7)]
    rows.append(["geometric mean", "", "", "", means[0], "", "", means[1], ""])
    print(json.dumps(rows[-1]))
    if options.write:
        write("first_tier", COLUMNS, rows)


if __name__ == "__main__":
    main()
