"""Convolutional networks compared with the machine's limits: the share of its roof that each reaches, and why.

chrt -f 50 taskset -c 1 python benchmarks/rooflines.py [--only OCR] [--runs 20] [--times 3] [--write]

``landbridge explain`` measures the limits and each kernel in one process, on one thread; of ``--times`` such processes
the one whose kernels took least counts, as other work only takes time. It can be done in pieces: what each has measured
stays in the folder of fetched models, and ``--write`` makes the table of all.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from measure import write

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "ocr")]

from peers import MODELS, Model  # noqa: E402
from wheel_models import cache_folder  # noqa: E402

RETAINED = cache_folder() / "rooflines"
#: The networks of ``peers.py`` whose time is in convolutions.
NETWORKS = (
    "PP-OCRv4 det",
    "PP-OCRv4 cls",
    "PP-OCRv4 rec",
    "squeezenet",
    "ResNet-50",
    "shufflenet",
    "AlexNet",
    "ZFNet-512",
    "Inception v1",
    "Inception v2",
    "DenseNet-121",
    "PP-OCRv6 det small",
    "PP-OCRv6 rec small",
    "rapid orientation",
    "NudeNet, YOLOv8n 320",
    "ddddocr, detector",
    "captcha CRNN",
    "basic pitch",
    "EEG seizures",
    "EEG spindles",
    "wake word, embedding",
)
COLUMNS = ("model", "ms", "% roof", "peak GFLOP/s", "ms above the roof", "most of it: kernel, ms above, % roof")
#: Kernels that are named in a row.
_NAMED = 3


def explained(model: Model, runs: int) -> dict[str, Any]:
    """What ``landbridge explain --json`` says of ``model``."""
    shapes = [f"--shape={name}={'x'.join(map(str, shape))}" for name, shape in model.shapes.items()]
    command = ["landbridge", "explain", str(model.path()), *shapes, "--json"]
    done = subprocess.run([*command, f"--runs={runs}", "--threads=1"], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def row(name: str, found: dict[str, Any]) -> list[object]:
    """The row of one network."""
    above = sorted(found["kernels"], key=_above, reverse=True)
    named = "; ".join(f"{k['name']} {1e3 * _above(k):.3g} {100 * k['of_roof']:.0f}" for k in above[:_NAMED])
    seconds, share = found["seconds"], found["of_roof"]
    peak = found["limits"]["flops"] / 1e9
    return [name, 1e3 * seconds, round(100 * share), peak, 1e3 * seconds * (1 - share), named]


def _above(kernel: dict[str, Any]) -> float:
    return float(kernel["seconds"] * (1 - kernel["of_roof"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a part of the names of the networks to measure")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--times", type=int, default=1, help="processes that measure a network, of which one counts")
    parser.add_argument(
        "--write", action="store_true", help="measure nothing, and write the table of what was measured"
    )
    options = parser.parse_args()
    RETAINED.mkdir(parents=True, exist_ok=True)
    for name in NETWORKS:
        if options.write or options.only not in name:
            continue
        tried = [explained(MODELS[name], options.runs) for _ in range(options.times)]
        found = min(tried, key=lambda each: float(each["seconds"]))
        (RETAINED / f"{name}.json").write_text(json.dumps(found))
        print(*row(name, found), flush=True)
    if options.write:
        retained = {name: RETAINED / f"{name}.json" for name in NETWORKS}
        write("rooflines", COLUMNS, [row(n, json.loads(p.read_text())) for n, p in retained.items() if p.exists()])


if __name__ == "__main__":
    main()
