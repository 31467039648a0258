"""Timing interleaved, and where results go."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

# What is timed is a compile, not the reading of an earlier one.
os.environ["LANDBRIDGE_CACHE"] = "0"

RESULTS = Path(__file__).parent / "results"

#: Processes that were running before we were: results say so, since a busy machine is no fair judge.
_LOAD_BEFORE = os.getloadavg()[0]


def interleaved(
    actions: Mapping[str, Callable[[], object]],
    rounds: int,
    calls: int = 1,
    settle_seconds: float = 0.0,
    *,
    warm: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Median seconds of one call of each action; each round times ``calls`` calls of every action in turn.

    ``settle_seconds``: slept before each action, so that no action finds a processor taken by the threads of the one
    before, which may spin for a while when their work is done. ``warm``: one call of each action comes before those
    that are timed, so that what is measured does not depend on whose weights the action before left in the caches.
    ``clock``: what seconds are read from; ``time.process_time`` counts those of all threads of this process alone.
    """
    for action in actions.values():
        action()
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(rounds):
        for name, action in actions.items():
            repeat = range(calls)
            if settle_seconds:
                time.sleep(settle_seconds)
            if warm:
                action()
            began = clock()
            for _ in repeat:
                action()
            times[name].append((clock() - began) / calls)
    return {name: statistics.median(spent) for name, spent in times.items()}


def machine() -> dict[str, str]:
    """The processor and the versions of what was measured."""
    model = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    packages = {name: version(name) for name in ("landbridge", "onnxruntime", "numpy", "llvmlite")}
    processors = str(len(os.sched_getaffinity(0)))
    load = f"{_LOAD_BEFORE:.1f}"
    return {
        "processor": model,
        "processors": processors,
        "load before": load,
        "python": platform.python_version(),
        **packages,
    }


def write(name: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print the table and write it as ``results/<name>.md`` and ``.json``."""
    facts = machine()
    lines = [
        "| " + " | ".join(columns) + " |",
        "|" + " --- |" * len(columns),
        *("| " + " | ".join(_text(value) for value in row) + " |" for row in rows),
    ]
    table = "\n".join(lines)
    print(table)
    RESULTS.mkdir(exist_ok=True)
    described = ", ".join(f"{key} {value}" for key, value in facts.items())
    header = f"# {name}\n\n`python benchmarks/{name}.py` on {described}\n\n"
    (RESULTS / f"{name}.md").write_text(header + table + "\n")
    data = {"machine": facts, "rows": [dict(zip(columns, row, strict=True)) for row in rows]}
    (RESULTS / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n")


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
