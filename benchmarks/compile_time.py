"""Seconds of processor time that compiling takes, by the nodes of a model.

python benchmarks/compile_time.py [NODES ...]

A line for each family of tests/whole_models/big_graphs.py, each compiled in a child process of its own; processor time
of the child and its helpers, so that other work of the machine counts little. The last columns are the ratios when
nodes double.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

NODES = (1000, 2000, 4000, 8000, 16000)
FAMILIES = (
    "elementwise",
    "softmaxes",
    "biases",
    "products",
    "residuals",
    "reshapes",
    "fan_out",
    "fan_in",
    "readers",
    "branches",
    "concats",
    "slices",
    "loop",
)
TARGET = "llvm -mcpu=x86-64-v3"


def main() -> None:
    from measure import write

    nodes = tuple(map(int, sys.argv[1:])) or NODES
    rows = []
    for family in FAMILIES:
        child = [sys.executable, __file__, "--child", family, *map(str, nodes)]
        seconds = json.loads(subprocess.run(child, capture_output=True, check=True, text=True).stdout)
        ratios = [f"{after / before:.2f}" for before, after in pairwise(seconds)]
        rows.append((family, *(f"{s:.2f} s" for s in seconds), *ratios))
        print(*rows[-1], file=sys.stderr, flush=True)
    doubled = [f"{b} / {a}" for a, b in pairwise(nodes)]
    write("compile_time", ("family", *map(str, nodes), *doubled), rows)


def child(family: str, nodes: list[int]) -> list[float]:
    """The seconds of each compile."""
    from tests.whole_models import big_graphs

    import landbridge as lb

    lb.compile(big_graphs.FAMILIES[family](2), TARGET)  # what is imported and cached
    seconds = []
    for count in nodes:
        model = big_graphs.FAMILIES[family](count)
        before = _processor_seconds()
        lb.compile(model, TARGET)
        seconds.append(_processor_seconds() - before)
    return seconds


def _processor_seconds() -> float:
    helpers = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + helpers.ru_utime + helpers.ru_stime


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(child(sys.argv[2], list(map(int, sys.argv[3:])))))
    else:
        main()
