"""From the start of a process to its first result, for 20 models: wall and processor seconds, with an empty cache and
with one that has the program, compared with onnxruntime.

python benchmarks/first_result.py [--rounds 5] [--cold-rounds 1] [--only REGEX]     then --write

Processes are interleaved: ``lb.compile`` with a Session for the shapes of the input, ``landbridge.onnxruntime``'s
InferenceSession, which is told no shapes, and onnxruntime's. Each imports, reads the ``.onnx``, makes its session and
runs once, on all processors. Wall seconds begin when the process is started and end when it has its result; processor
seconds are those of the process and of its children by then. Results of each model stay in the folder of fetched
models, and ``--write`` makes the table of all.
"""

from __future__ import annotations

import argparse
import compileall
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import write

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "ocr")]

from peers import MODELS, Model  # noqa: E402
from wheel_models import cache_folder  # noqa: E402

NETWORKS = (
    "PP-OCRv4 det", "PP-OCRv4 cls", "PP-OCRv4 rec", "squeezenet", "ResNet-50", "shufflenet", "silero VAD step",
    "magika", "rxnmap, transformer", "AlexNet", "Inception v1", "Inception v2", "PP-OCRv6 det small",
    "PP-OCRv6 rec small", "NudeNet, YOLOv8n 320", "ddddocr, old", "captcha CRNN", "basic pitch", "SwiftF0",
    "name romanizer, decoder",
)  # fmt: skip
RESULTS = cache_folder() / "first_result"

_FEEDS = "import numpy as np; feeds = dict(np.load({feeds!r}));\n"
_SPENT = """
import json, resource, sys
spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps(sum(each.ru_utime + each.ru_stime for each in spent)), flush=True)
sys.stdin.readline()
"""
_COMPILE = """
import landbridge as lb
session = lb.Session(lb.compile({file!r}, shapes={shapes!r}, optimize={optimize!r}))
session(feeds)
"""
_ONNXRUNTIME = """
import {package} as ort
options = ort.SessionOptions()
options.log_severity_level = 3
{entry}session = ort.InferenceSession({file!r}, options, providers=["CPUExecutionProvider"])
session.run(None, feeds)
"""
PACKAGES = ("landbridge.onnxruntime", "onnxruntime")
#: Who gives the first result, and whether the cache has the program by then.
WAYS = {f"{by}, {cache}": (by, cache) for by in ("lb.compile", PACKAGES[0]) for cache in ("empty", "warm")}
#: With ``optimize="fast"``; the process in the background takes what ``lb.compile`` takes, after the first result.
FAST = "lb.compile, fast"
SESSION_FAST = f"{PACKAGES[0]}, fast"
_ENTRY = 'options.add_session_config_entry("landbridge.optimize", "fast")\n'
WAYS |= {f"{by}, empty": (by, "empty") for by in (FAST, SESSION_FAST)}
COLUMNS = (
    "model", "by", "cache", "wall s", "processor s", "wall, over onnxruntime's", "processor, over onnxruntime's",
)  # fmt: skip


def started(code: str, cache: Path) -> tuple[float, float]:
    """Wall and processor seconds of one process until its result."""
    unused = ("PYTHONDONTWRITEBYTECODE",)
    variables = {name: value for name, value in os.environ.items() if name not in unused}
    variables["LANDBRIDGE_CACHE"] = str(cache)
    pipe, began = subprocess.PIPE, time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", code + _SPENT], stdin=pipe, stdout=pipe, stderr=subprocess.PIPE, env=variables, text=True
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    wall = time.perf_counter() - began
    _, errors = process.communicate("\n")
    if not line:
        raise SystemExit(f"{code}\n{errors}")
    return wall, json.loads(line)


def feeds_of(model: Model) -> dict[str, np.ndarray]:
    """An array for each input of onnxruntime's session."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model.path()), options, providers=["CPUExecutionProvider"])
    rng, found = np.random.default_rng(0), {}
    kinds = {"float": "float32", "double": "float64"}
    for each in session.get_inputs():
        name = each.type.removeprefix("tensor(").removesuffix(")")
        dtype = np.dtype(kinds.get(name, name))
        shape = model.shapes.get(each.name) or [e if isinstance(e, int) else 1 for e in each.shape]
        if each.name in model.values:
            found[each.name] = np.full(model.shapes.get(each.name, ()), model.values[each.name], dtype)
        elif dtype.kind == "f":
            found[each.name] = rng.random(shape).astype(dtype)
        elif dtype.kind == "b":
            found[each.name] = np.ones(shape, dtype)
        else:
            found[each.name] = rng.integers(0, model.below, shape).astype(dtype)
    return found


def measured(model: Model, rounds: int, cold_rounds: int) -> dict[str, list[float]]:
    """Medians of wall and processor seconds by way."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        np.savez(place / "feeds.npz", **feeds_of(model))
        prelude = _FEEDS.format(feeds=str(place / "feeds.npz"))
        codes = {
            **{
                by: prelude + _COMPILE.format(file=str(model.path()), shapes=model.shapes, optimize=optimize)
                for by, optimize in (("lb.compile", "full"), (FAST, "fast"))
            },
            **{
                by: prelude + _ONNXRUNTIME.format(file=str(model.path()), package=by.partition(",")[0], entry=entry)
                for by, entry in (*((each, "") for each in PACKAGES), (SESSION_FAST, _ENTRY))
            },
        }
        spent: dict[str, list[tuple[float, float]]] = {}
        for count in range(cold_rounds):
            for by in ("lb.compile", FAST, PACKAGES[0], SESSION_FAST):
                spent.setdefault(f"{by}, empty", []).append(started(codes[by], _made(place / f"{by} {count}")))
            spent.setdefault("onnxruntime", []).append(started(codes["onnxruntime"], _made(place / "unused")))
        for _ in range(rounds):
            for by in ("lb.compile", *PACKAGES):
                key = by if by == "onnxruntime" else f"{by}, warm"
                cache = "unused" if by == "onnxruntime" else f"{by} 0"
                spent.setdefault(key, []).append(started(codes[by], _made(place / cache)))
    return {key: [statistics.median(each) for each in zip(*times, strict=True)] for key, times in spent.items()}


def _made(folder: Path) -> Path:
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def table() -> list[list[object]]:
    """The rows of all models that were measured, and geometric means."""
    rows: list[list[object]] = []
    ratios: dict[str, list[tuple[float, float]]] = {}
    for name in NETWORKS:
        file = RESULTS / f"{_slug(name)}.json"
        if not file.exists():
            continue
        found = json.loads(file.read_text())
        theirs = found["onnxruntime"]
        for key, (by, cache) in WAYS.items():
            if key in found:
                ours = found[key]
                ratios.setdefault(key, []).append((ours[0] / theirs[0], ours[1] / theirs[1]))
                rows.append([name, by, cache, *ours, *ratios[key][-1]])
        rows.append([name, "onnxruntime", "", *theirs, "", ""])
    for key, pairs in ratios.items():
        means = [math.exp(statistics.fmean(map(math.log, each))) for each in zip(*pairs, strict=True)]
        rows.append([f"geometric mean of {len(pairs)}", *WAYS[key], "", "", *means])
    return rows


def _slug(name: str) -> str:
    return re.sub(r"\W+", "_", name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold-rounds", type=int, default=1, help="the first fills the cache of the warm ones")
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.write:
        write("first_result", COLUMNS, table())
        return
    compileall.compile_dir(ROOT / "src", quiet=1)
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in NETWORKS:
        if re.search(options.only, name):
            found = measured(MODELS[name], options.rounds, options.cold_rounds)
            (RESULTS / f"{_slug(name)}.json").write_text(json.dumps(found))
            theirs = found["onnxruntime"]
            for key, (wall, processor) in found.items():
                ratios = f"{wall / theirs[0]:.2f} {processor / theirs[1]:.2f}"
                print(
                    f"{name}: {key}: {wall:.3f} s, processor {processor:.3f} s, over onnxruntime's {ratios}", flush=True
                )


if __name__ == "__main__":
    main()
