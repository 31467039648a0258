"""What new sizes of open programs cost on a CPU, first visits included, beside onnxruntime, in processes of their own.

chrt -f 30 taskset -c 1 python benchmarks/open_sizes.py [--rounds 7] [--before FOLDER]

Processes of each runtime alternate; each loads one model and runs it on one thread, at sizes that are new, then known.
Times are those of the processor; memory is what the process grows by between the load and the end of the first visits,
mapped weights included. ``--before`` names a folder with another version of the package, such as ``src`` of another
checkout, which compiles its own files. Our modules are byte code before, as an installer leaves them.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "ocr")]

Array = np.ndarray[Any, Any]
Feeds = dict[str, Array]
#: Widths of text lines, in an order of no pattern and from the narrowest to the widest.
WIDTHS = {
    "in any order": np.random.default_rng(0).permutation(np.linspace(64, 2000, 24).astype(int) // 8 * 8).tolist(),
    "ascending": (np.linspace(64, 2000, 24).astype(int) // 8 * 8).tolist(),
}
LAYERS, HEADS, SIZE = 8, 2, 16
#: Lengths of what a decoder has seen, none of which follows from those before it.
PASTS = np.random.default_rng(0).permutation(np.arange(2, 200))[:60].tolist()
COLUMNS = ("what", "before", "now", "onnxruntime", "onnxruntime / now")


def image(width: int) -> Feeds:
    """The input of a text recognizer."""
    return {"x": np.full((1, 3, 48, width), 0.5, np.float32)}


def step(past: int) -> Feeds:
    """The inputs of a decoder after ``past`` words, of one to three new ones."""
    words = 1 + past % 3
    feeds: Feeds = {
        "input_ids": np.ones((1, words), np.int64),
        "attention_mask": np.ones((1, past + words), np.int64),
        "position_ids": np.arange(past, past + words)[None],
    }
    caches = (f"past_key_values.{layer}.{kind}" for layer in range(LAYERS) for kind in ("key", "value"))
    return feeds | {name: np.zeros((1, HEADS, past, SIZE), np.float32) for name in caches}


def resident() -> int:
    """Bytes of this process that are in memory."""
    found = re.search(r"^Rss:\s+(\d+) kB", Path("/proc/self/smaps_rollup").read_text(), re.MULTILINE)
    assert found is not None
    return 1024 * int(found[1])


def runner(runtime: str, file: str) -> Callable[[Feeds], object]:
    """Loads ``file``; returns what runs it on one thread."""
    if runtime == "onnxruntime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 3
        peer = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        return lambda feeds: peer.run(None, feeds)
    import landbridge as lb

    session = lb.Session(lb.load(file), num_threads=1)
    names = [spec.name for spec in session.inputs]
    return lambda feeds: session(*(feeds[name] for name in names))


def child(runtime: str, file: str, kind: str) -> None:
    """Prints what one process measures."""
    if runtime == "onnxruntime":
        import onnxruntime  # noqa: F401 - the import is no part of the load
    else:
        import landbridge as lb

        _ = lb.Session, lb.load
    feeds = [step(past) for past in PASTS] if kind == "decoder" else [image(width) for width in WIDTHS[kind]]
    clock = time.process_time
    began = clock()
    run = runner(runtime, file)
    loaded = clock() - began
    before = resident()
    visits = []
    for each in feeds:
        times = []
        for _ in range(4):
            began = clock()
            run(each)
            times.append(clock() - began)
            if kind != "decoder":
                break
        visits.append(times)
    grown = resident() - before
    again = [min(times[1:]) for times in visits if times[1:]]
    if not again:
        for each in feeds:
            began = clock()
            run(each)
            again.append(clock() - began)
    print(json.dumps({"load": loaded, "new": [times[0] for times in visits], "again": again, "grown": grown}))


def rows_of(kind: str, found: list[dict[str, Any]]) -> dict[str, float]:
    """The figures of ``found``, what the processes of one runtime measured."""

    def middle(value: Callable[[dict[str, Any]], float]) -> float:
        return median(map(value, found))

    load = {"load, ms": 1e3 * middle(lambda f: f["load"])}
    first = {"first call beyond a later one, ms": 1e3 * middle(lambda f: f["new"][0] - f["again"][0])}
    if kind == "decoder":
        return (
            load
            | first
            | {
                "a new size beyond a known one, median, us": 1e6
                * middle(lambda f: median(a - b for a, b in zip(f["new"][1:], f["again"][1:], strict=True))),
                "the same, largest, us": 1e6
                * middle(lambda f: max(a - b for a, b in zip(f["new"][1:], f["again"][1:], strict=True))),
            }
        )
    return (
        load
        | first
        | {
            "first visits, s": middle(lambda f: sum(f["new"])),
            "again, s": middle(lambda f: sum(f["again"])),
            "grown, MB": middle(lambda f: f["grown"]) / 1e6,
        }
    )


def compiled_by(package: str, model: Path, file: Path) -> None:
    """Writes the program of ``model`` to ``file``, as the ``package`` compiles it."""
    code = "import sys, landbridge as lb; lb.compile(sys.argv[1]).save(sys.argv[2])"
    subprocess.run([sys.executable, "-c", code, model, file], check=True, env=os.environ | {"PYTHONPATH": package})


def measured(kind: str, folder: Path, model: Path, before: str | None, rounds: int) -> list[Sequence[object]]:
    """Rows of the table; programs are in ``folder``."""
    package = str(ROOT / "src")
    sides = [("now", "landbridge", folder / "now.lbx", package), ("onnxruntime", "onnxruntime", model, package)]
    if before is not None:
        sides.insert(0, ("before", "landbridge", folder / "before.lbx", before))
    found: dict[str, list[dict[str, Any]]] = {}
    for _ in range(rounds):
        for side, runtime, file, path in sides:
            command = [sys.executable, __file__, "--child", runtime, str(file), kind]
            environment = os.environ | {"PYTHONPATH": path}
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
            found.setdefault(side, []).append(json.loads(done.stdout))
    figures = {side: rows_of(kind, each) for side, each in found.items()}
    subject = "decoder of 8 layers, 60 lengths" if kind == "decoder" else f"PP-OCRv4 rec, 24 widths {kind}"
    rows: list[Sequence[object]] = []
    for what, now in figures["now"].items():
        peer = figures["onnxruntime"][what]
        of_before = figures["before"][what] if before is not None else ""
        rows.append((f"{subject}: {what}", of_before, now, peer, peer / now))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--before", help="a folder with another version of the package")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(*arguments.child)
        return
    import onnx
    from measure import write
    from tests.session import exported_decoders
    from wheel_models import PP_OCR, RECOGNIZE, wheel_model

    for folder in (ROOT / "src", *([Path(arguments.before)] if arguments.before else [])):
        compileall.compile_dir(folder, quiet=1)
    recognizer = wheel_model(PP_OCR, RECOGNIZE)
    rows: list[Sequence[object]] = []
    with TemporaryDirectory() as folder:
        decoder, exported_decoders.LAYERS = Path(folder) / "decoder.onnx", LAYERS
        onnx.save(exported_decoders.optimum(), decoder)
        for model, kinds in ((recognizer, list(WIDTHS)), (decoder, ["decoder"])):
            compiled_by(str(ROOT / "src"), model, Path(folder) / "now.lbx")
            if arguments.before:
                compiled_by(arguments.before, model, Path(folder) / "before.lbx")
            for kind in kinds:
                rows += measured(kind, Path(folder), model, arguments.before, arguments.rounds)
    write("open_sizes", COLUMNS, rows)


if __name__ == "__main__":
    main()
