"""How much a process grows that runs one open program, and nothing else, at 200 sizes.

python benchmarks/growth.py FILE.lbx W 32 2560 8

Prints a JSON object, in bytes: by how much its memory has grown since two runs at the smallest sizes (``grown``), what
the plan of the largest size needs with its results (``plan``), and ``weights``. These are mapped: pages of the file,
which the system has once and gives as rows of a table are looked up, are no memory of the process's own.
"""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path

import numpy as np

import landbridge as lb
from landbridge.dtypes import numpy_dtype
from landbridge.executable.instance import dimensions, instance
from landbridge.sizes.size import Size, expected_size, of_symbol

SIZES = 200


def owned_bytes() -> int:
    """Bytes of the process in memory that are no file's."""
    _, resident, of_files, *_ = map(int, Path("/proc/self/statm").read_text().split())
    return (resident - of_files) * 4096


def main() -> None:
    file, name, *elements = sys.argv[1:]
    low, high, step = map(int, elements)
    executable = lb.load(file)
    others = {each: expected_size(of_symbol(symbol)) for each, symbol in dimensions(executable.main).items()}
    session = lb.Session(executable, num_threads=1)
    rng = np.random.default_rng(0)
    inputs = executable.main.inputs

    def shapes(size: int) -> list[tuple[int, ...]]:
        values = {**others, name: size}
        return [tuple(e.at(values) if isinstance(e, Size) else e for e in spec.shape) for spec in inputs]

    # what the application has, in memory that it had before
    given = [
        (np.arange(np.prod(s)) % 8).astype(numpy_dtype(i.dtype)) for i, s in zip(inputs, shapes(high), strict=True)
    ]

    def run(size: int) -> None:
        session(*(a[: int(np.prod(s))].reshape(s) for a, s in zip(given, shapes(size), strict=True)))

    sizes = rng.choice(np.arange(low, high + 1, step), SIZES)
    for size in (low, low + step):
        run(size)
    gc.collect()
    before = owned_bytes()
    for size in sizes:
        run(int(size))
    gc.collect()
    grown = owned_bytes() - before
    largest = instance(executable, {**others, name: int(sizes.max())})
    plan = sum(report.planned_bytes for report in largest.memory) + sum(spec.nbytes for spec in largest.main.outputs)
    weights = sum(array.nbytes for array in executable.constants.values())
    print(json.dumps({"grown": grown, "plan": plan, "weights": weights}))


if __name__ == "__main__":
    main()
