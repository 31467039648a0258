"""Seconds of processor time that compiling takes, by the nodes of a model.

python benchmarks/compile_time.py [NODES ...]

A line for each family of tests/whole_models/big_graphs.py, each compiled in a child process of its own; processor time
of the child and its helpers, so that other work of the machine counts little; as many children at a time as there are
processors. Then come the ratios when nodes double; the last column is that of the calls of functions, in Python and C,
for the least two counts: it has no noise.
"""

from __future__ import annotations

import cProfile
import json
import os
import pstats
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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

    def row(family: str) -> tuple[str, ...]:
        command = [sys.executable, __file__, "--child", family, *map(str, nodes)]
        seconds, calls = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)
        ratios = [f"{after / before:.2f}" for before, after in (*pairwise(seconds), *pairwise(calls))]
        found = (family, *(f"{s:.2f} s" for s in seconds), *ratios)
        print(*found, file=sys.stderr, flush=True)
        return found

    with ThreadPoolExecutor(os.cpu_count()) as children:
        rows = list(children.map(row, FAMILIES))
    doubled = [f"{b} / {a}" for a, b in pairwise(nodes)]
    write("compile_time", ("family", *map(str, nodes), *doubled, f"calls, {doubled[0]}"), rows)


def child(family: str, nodes: list[int]) -> tuple[list[float], list[int]]:
    """The seconds of each compile, and the calls of the first two."""
    from tests.whole_models import big_graphs

    import landbridge as lb

    lb.compile(big_graphs.FAMILIES[family](2), TARGET)  # what is imported and cached
    seconds = []
    for count in nodes:
        model = big_graphs.FAMILIES[family](count)
        before = _processor_seconds()
        lb.compile(model, TARGET)
        seconds.append(_processor_seconds() - before)
    return seconds, [
        _calls(lambda count=count: lb.compile(big_graphs.FAMILIES[family](count), TARGET)) for count in nodes[:2]
    ]


def _calls(action: Callable[[], object]) -> int:
    """How many functions ``action`` calls."""
    profile = cProfile.Profile()
    profile.runcall(action)
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


def _processor_seconds() -> float:
    helpers = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + helpers.ru_utime + helpers.ru_stime


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(child(sys.argv[2], list(map(int, sys.argv[3:])))))
    else:
        main()
