"""One program for all sizes against programs of one size each, and onnxruntime, on one thread.

python benchmarks/open_dimensions.py [--rounds 15]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime

import landbridge as lb

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "ocr")]

from measure import in_turns, write  # noqa: E402
from wheel_models import CLASSIFY, PP_OCR, RECOGNIZE, wheel_model  # noqa: E402

#: Models whose width is open, widths that are compared, and 64 that come one after another.
MODELS = {
    "PP-OCRv4 rec": (RECOGNIZE, "32..2560:8@320", (32, 136, 320, 640, 1280)),
    "PP-OCRv4 cls": (CLASSIFY, "32..640:8@192", (32, 136, 192, 640)),
}
WIDTHS = [8 * units for units in np.random.default_rng(0).integers(4, 81, 64)]


def line(width: int) -> np.ndarray:
    return np.random.default_rng(width).standard_normal((1, 3, 48, width)).astype(np.float32)


def seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def measured(name: str, rounds: int) -> list[tuple[str, str, str]]:
    file, stated, widths = MODELS[name]
    model = wheel_model(PP_OCR, file)
    rows: list[tuple[str, str, str]] = []

    def row(what: str, value: float | str) -> None:
        rows.append((name, what, value if isinstance(value, str) else f"{value:.4g}"))

    shapes = {"x": (1, 3, 48, "W")}
    lb.compile(model, shapes={"x": (1, 3, 48, widths[0])})  # what the first compile of a process imports and caches
    began = time.process_time()
    executable = lb.compile(model, shapes=shapes, dims={"W": stated})
    spent = time.process_time() - began
    began = time.process_time()
    lb.compile(model, shapes={"x": (1, 3, 48, widths[len(widths) // 2])})
    row("compile, open over one width (s of processors)", f"{spent:.2f} / {time.process_time() - began:.2f}")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    peer = onnxruntime.InferenceSession(str(model), options)
    session = lb.Session(executable, num_threads=1)
    for width in widths:
        x = line(width)
        known = lb.Session(lb.compile(model, shapes={"x": x.shape}), num_threads=1)
        found, one, other = session(x)[0], known(x)[0], peer.run(None, {"x": x})[0]
        error = max(np.abs(np.from_dlpack(found) - each).max() for each in (np.from_dlpack(one), other))
        times = in_turns(
            {
                "open": lambda x=x: session(x),
                "one width": lambda x=x, known=known: known(x),
                "onnxruntime": lambda x=x: peer.run(None, {"x": x}),
            },
            rounds,
        )
        here = times["open"]
        row(
            f"width {width}: ms open / of one width / onnxruntime; open over one width; error",
            f"{here * 1e3:.2f} / {times['one width'] * 1e3:.2f} / {times['onnxruntime'] * 1e3:.2f}; "
            f"{here / times['one width']:.2f}; {error:.1e}",
        )
    fresh = lb.Session(executable, num_threads=1)
    lines = [line(width) for width in WIDTHS]
    before = resident_bytes()
    ours, theirs = (sum(seconds(lambda x=x, run=run: run(x)) for x in lines) for run in (fresh, _peer(peer)))
    row(f"{len(WIDTHS)} widths, first visits included: s ours / onnxruntime", f"{ours:.2f} / {theirs:.2f}")
    again = [sum(seconds(lambda x=x, run=run: run(x)) for x in lines) for run in (fresh, _peer(peer))]
    row(f"{len(WIDTHS)} widths again: s ours / onnxruntime", f"{again[0]:.2f} / {again[1]:.2f}")
    row("the process has grown by, MB", (resident_bytes() - before) / 1e6)
    sizes = iter(range(40, 640, 8))
    new = sorted(seconds(lambda: fresh.prepare(W=next(sizes))) for _ in range(40))
    row("an instance for a new width, ms (median)", new[len(new) // 2] * 1e3)
    a, b = line(320), line(160)

    def turn() -> None:
        for x in (a, b):
            fresh.set_input_zero_copy("x", x)

    fresh.set_input_zero_copy("x", a)
    fresh.run()
    runs = in_turns({"bind": turn}, rounds, calls=1000)
    row("binding another width, us", runs["bind"] / 2 * 1e6)
    return rows


def _peer(peer: onnxruntime.InferenceSession) -> Callable[[np.ndarray], object]:
    return lambda x: peer.run(None, {"x": x})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    rows = [row for name in MODELS for row in measured(name, rounds)]
    write("open_dimensions", ("model", "what", "value"), rows)


if __name__ == "__main__":
    main()
