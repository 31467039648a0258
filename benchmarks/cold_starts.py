"""What a program takes from nothing to its first result: processor time of a process that imports, loads and runs once.

chrt -f 50 taskset -c 1 python benchmarks/cold_starts.py [--rounds 9] [--write]

Each process is asked interleaved with onnxruntime's, on one thread; numpy, which both need, is imported before the
clock begins. Ours loads a compiled ``.lbx``, onnxruntime the ``.onnx``, and so does ``landbridge.onnxruntime``, whose
program is in the cache on disk. Our modules are byte code before, as an installer leaves them.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import write

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "ocr")]

from peers import MODELS  # noqa: E402

import landbridge as lb  # noqa: E402

NETWORKS = ("squeezenet", "ResNet-50", "PP-OCRv4 rec")
#: Steps of a start, each of which ends with ``step()``.
_CLOCK = """
import json, time
import numpy as np
spent, before = [], time.process_time()
def step():
    global before
    now = time.process_time()
    spent.append(now - before)
    before = now
"""
_OURS = """
import landbridge as lb
lb.Session, lb.load
step()
executable = lb.load({file!r})
step()
session = lb.Session(executable, num_threads=1)
step()
for name, shape in {shapes!r}.items():
    session.set_input(name, np.full(shape, 0.5, np.float32))
session.run()
step()
print(json.dumps(spent))
"""
_ONNXRUNTIME = """
import {package} as ort
step()
step()
options = ort.SessionOptions()
options.intra_op_num_threads, options.log_severity_level = 1, 3
session = ort.InferenceSession({file!r}, options, providers=["CPUExecutionProvider"])
step()
session.run(None, {{name: np.full(shape, 0.5, np.float32) for name, shape in {shapes!r}.items()}})
step()
print(json.dumps(spent))
"""
COLUMNS = ("model", "by", "import ms", "file ms", "session ms", "first run ms", "all ms", "onnxruntime / ours")


def started(code: str) -> list[float]:
    """Processor milliseconds of each step of one process."""
    unused = ("PYTHONDONTWRITEBYTECODE", "LANDBRIDGE_CACHE")  # the user's own cache
    retained = {name: value for name, value in os.environ.items() if name not in unused}
    done = subprocess.run(
        [sys.executable, "-c", _CLOCK + code], check=True, capture_output=True, text=True, env=retained
    )
    return [1e3 * seconds for seconds in json.loads(done.stdout)]


def rows(name: str, folder: str, rounds: int) -> list[list[object]]:
    """The rows of one network: medians of processes interleaved."""
    model, lbx = MODELS[name], f"{folder}/{name}.lbx"
    lb.compile(str(model.path()), shapes=model.shapes).save(lbx)
    codes = {
        "Landbridge": _OURS.format(file=lbx, shapes=model.shapes),
        **{
            by: _ONNXRUNTIME.format(file=str(model.path()), shapes=model.shapes, package=by)
            for by in ("landbridge.onnxruntime", "onnxruntime")
        },
    }
    spent: dict[str, list[list[float]]] = {by: [] for by in codes}
    for _ in range(rounds + 1):
        for by, code in codes.items():
            spent[by].append(started(code))
    medians = {by: [statistics.median(step) for step in zip(*times[1:], strict=True)] for by, times in spent.items()}
    whole = {by: statistics.median(map(sum, times[1:])) for by, times in spent.items()}
    theirs = whole["onnxruntime"]
    return [[name, by, *medians[by], whole[by], "" if by == "onnxruntime" else theirs / whole[by]] for by in codes]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    compileall.compile_dir(ROOT / "src", quiet=1)
    found: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in NETWORKS:
            found += rows(name, folder, options.rounds)
            for row in found[-3:]:
                print(*row, flush=True)
    if options.write:
        write("cold_starts", COLUMNS, found)


if __name__ == "__main__":
    main()
