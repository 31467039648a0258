"""The planner on MiniMalloc's challenging instances: within capacity, and down to the lower bound.

git clone https://github.com/google/minimalloc
python benchmarks/minimalloc.py minimalloc/benchmarks/challenging [--seconds 60]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from measure import RESULTS, write

from landbridge import planner
from landbridge.planner.csv_reader import read_csv

CAPACITY = 1048576

#: Milliseconds to a plan within the capacity: "Challenging Suite" in the slides of Moffitt, "MiniMalloc", ASPLOS
#: 2023 (img/minimalloc.slides.pdf of the repository). The paper's ILP and TelaMalloc took over an hour on each.
PUBLISHED_MS = {
    "A": 4910, "B": 3661, "C": 637, "D": 2674, "E": 3717, "F": 5358,
    "G": 1181, "H": 1808, "I": 3908, "J": 883, "K": 628,
}  # fmt: skip

_NOTES = """
The argument is the folder `benchmarks/challenging` of https://github.com/google/minimalloc. *Published* are the times
of its author's machine (slides of the ASPLOS 2023 paper) to any plan within the capacity of 1048576 bytes; an ILP
solver and TelaMalloc took more than an hour for each, as told there. *Within capacity* is the same task here, *of
which processor* the time of both threads together, less where other work held the machine. The rest is `plan(buffers,
1048576, 60)`: down to the lower bound, or 60 seconds. *Proved* says that the peak is the largest sum of bytes alive
at one step, summed anew here. Machine code was made before; that takes about five seconds of processor time, once per
installation.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="holds A.1048576.csv to K.1048576.csv")
    parser.add_argument("--seconds", type=float, default=60, help="budget of one instance")
    arguments = parser.parse_args()
    planner.plan(_hard(), budget_seconds=arguments.seconds)  # machine code is made, or loaded, before the clock runs
    rows = [
        _row(name, read_csv(arguments.folder / f"{name}.{CAPACITY}.csv"), arguments.seconds) for name in PUBLISHED_MS
    ]
    columns = (
        "instance", "buffers", "MiniMalloc published, s", "within capacity, s", "of which processor, s",
        "peak", "peak / capacity", "lower bound", "proved optimal", "seconds to that",
        "peak / capacity in 0.5 s, interpreted",
    )  # fmt: skip
    write("minimalloc", columns, rows)
    with (RESULTS / "minimalloc.md").open("a") as page:
        page.write(_NOTES)


def _row(name: str, buffers: list[planner.Buffer], seconds: float) -> tuple[object, ...]:
    began, busy = time.perf_counter(), time.process_time()
    planner.plan(buffers, CAPACITY, seconds, goal=CAPACITY)
    fits, busy = time.perf_counter() - began, time.process_time() - busy
    best = planner.plan(buffers, CAPACITY, seconds)
    quick = planner.plan(buffers)
    live = max(sum(b.size for b in buffers if b.start <= t < b.end) for t in {b.start for b in buffers})
    proved = best.proved_optimal and best.peak == live
    return (
        name, len(buffers), PUBLISHED_MS[name] / 1000, fits, busy, best.peak, best.peak / CAPACITY,
        best.lower_bound, proved, best.seconds, quick.peak / CAPACITY,
    )  # fmt: skip


def _hard() -> list[planner.Buffer]:
    """Three buffers that no plan can place at their largest sum: the search runs, and ends at once."""
    return [planner.Buffer(i, size, align, 0, 1) for i, (size, align) in enumerate([(3, 1), (2, 4), (2, 4)])]


if __name__ == "__main__":
    main()
