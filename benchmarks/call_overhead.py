"""What a call costs: an addition of 64 floats on one thread, ``import landbridge``, loading an ``.lbx``.

python benchmarks/call_overhead.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import landbridge as lb

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "ocr")]

from measure import interleaved, write  # noqa: E402
from tests.whole_models.random_weights import with_random_weights  # noqa: E402
from tests.whole_models.real_input import picture_for_detector  # noqa: E402
from tests.whole_models.small_models import add  # noqa: E402

Row = tuple[str, float, str, float]


def calls() -> list[Row]:
    """Microseconds of a run, of binding an input, of a call as a function."""
    session = lb.Session(lb.compile(add()), num_threads=1)
    x, y = np.ones(64, np.float32), np.empty(64, np.float32)
    session.set_input_zero_copy("x", x)
    session.set_output_zero_copy(0, y)
    spent = interleaved(
        {
            "s.run()": session.run,
            "s.set_input_zero_copy(name, x)": lambda: session.set_input_zero_copy("x", x),
            "s(x)": lambda: session(x),
        },
        rounds=50,
        calls=2000,
    )
    limits = (1.0, 1.0, 3.0)
    return [(name, value * 1e6, "us", limit) for (name, value), limit in zip(spent.items(), limits, strict=True)]


def import_cost(subject: str, rounds: int = 15) -> Row:
    """Milliseconds of the statement ``subject`` in a process that has imported numpy."""
    program = f"import time, numpy; t = time.perf_counter(); {subject}; print(time.perf_counter() - t)"
    times = [
        float(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout)
        for _ in range(rounds)
    ]
    return (f"{subject}, after numpy", statistics.median(times) * 1e3, "ms", 80.0)


def load_cost(rounds: int = 15) -> Row:
    """Milliseconds from the path of resnet50's ``.lbx`` to a bound Session, less reading the file's bytes."""
    x = picture_for_detector(224, 224)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "resnet50.lbx"
        lb.compile(with_random_weights("resnet50", {"gpu_0/data_0": x})).save(file)
        lb.Session(lb.load(file), num_threads=1)  # imports
        both, reads = [], []
        for _ in range(rounds):
            began = time.perf_counter()
            session = lb.Session(lb.load(file), num_threads=1)
            both.append(time.perf_counter() - began)
            del session
            began = time.perf_counter()
            file.read_bytes()
            reads.append(time.perf_counter() - began)
    print(f"reading {statistics.median(reads) * 1e3:.2f} ms")
    return ("load of resnet50.lbx and its Session, without reading", statistics.median(both) * 1e3, "ms", 5.0)


def main() -> None:
    imports = ("import landbridge", "from landbridge import Session, Tensor, ledger, load")
    rows = [*calls(), *map(import_cost, imports), load_cost()]
    write("call_overhead", ("what", "median", "unit", "goal"), rows)


if __name__ == "__main__":
    main()
