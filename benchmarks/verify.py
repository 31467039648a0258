"""What verifying the constants of an ``.lbx`` costs: load, a Session and one run, with ``verify`` interleaved.

python benchmarks/verify.py [ROUNDS]

Each model on one thread and on two. The least of all rounds counts, as whatever else the machine does only adds to it.
The first row is the limit: the constants of resnet50 read once by the checksum, and by numpy's sum of their words,
which does nothing but read.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from measure import write

import landbridge as lb
from landbridge.executable.file_watch import quick_checksum

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "ocr")]

VARIANTS = ("auto", "bind", "all")


def milliseconds(action: Callable[[], object]) -> float:
    """Of one call."""
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1e3


def least_of(file: Path, values: Sequence[np.ndarray], threads: int, rounds: int) -> dict[object, float]:
    """The least milliseconds of load, Session and one run for each ``verify``, interleaved."""

    def once(verify: lb.loader.Verify) -> None:
        session = lb.Session(lb.load(file, verify=verify), num_threads=threads)
        for number, value in enumerate(values):
            session.set_input_zero_copy(number, value)
        session.run()

    variants = (False, *VARIANTS)
    times: dict[object, list[float]] = {way: [] for way in variants}
    for number in range(rounds + 1):
        for number_of_round in range(len(variants)):
            way = variants[(number_of_round + number) % len(variants)]
            times[way].append(milliseconds(lambda way=way: once(way)))
    return {way: min(spent[1:]) for way, spent in times.items()}


def limits(file: Path) -> str:
    """How fast ``file`` is read by the checksum, and by a sum."""
    words = np.fromfile(file, np.uint64, file.stat().st_size // 8)
    by_checksum = min(milliseconds(lambda: quick_checksum([(0, words.view(np.uint8))])) for _ in range(20))
    by_sum = min(milliseconds(lambda: np.add.reduce(words)) for _ in range(20))
    checksum, reading = (f"{words.nbytes / ms / 1e6:.1f} GB/s" for ms in (by_checksum, by_sum))
    return f"checksum alone {checksum}, a sum of the words {reading}"


def main(rounds: int) -> None:
    import latency

    cases = latency.cases()
    rows: list[tuple[object, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in ("resnet50", "det 320x320", "cls 48x192"):
            source, inputs = next(case for title, case in cases.items() if name in title)
            file = Path(folder) / "model.lbx"
            lb.compile(source, shapes={key: array.shape for key, array in inputs.items()}).save(file)
            loaded = lb.load(file, verify=False)
            size = sum(array.nbytes for array in loaded.constants.values()) / 1e6
            if not rows:
                rows.append((limits(file), "", size, *[""] * 7))
            for threads in (1, 2):
                found = least_of(file, list(inputs.values()), threads, rounds)
                least = found[False]
                more = [found[way] - least for way in VARIANTS]
                costs = [cost for ms in more for cost in (ms, f"{ms / least * 100:.1f} %")]
                rows.append((name, threads, size, least, *costs))
                print(*rows[-1], file=sys.stderr, flush=True)
    titles = [title for way in VARIANTS for title in (f"{way!r}: ms more", "that is")]
    write("verify", ("model", "threads", "constants, MB", "verify=False, ms", *titles), rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
