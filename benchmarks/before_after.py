"""What a change of the code did to speed: two checkouts, each with its own ``.venv``, measured interleaved.

python benchmarks/before_after.py BEFORE AFTER

A round is a process of each: calls of an addition of 64 floats, then each model compiled once, loaded from its file and
bound, and run on one thread. On one processor (``taskset``) a compile's seconds are those of all of its processes.
The least of all rounds counts, because whatever else the machine does only adds to it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from measure import write

MODELS = ("det 320x320", "cls 48x192", "rec 48x320", "squeezenet", "shufflenet")


def least(action: Callable[[], object], calls: int, rounds: int) -> float:
    """The least seconds of one of ``calls`` calls, over ``rounds`` rounds."""
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        for _ in range(calls):
            action()
        found.append((time.perf_counter() - began) / calls)
    return min(found)


def measured() -> Iterator[tuple[str, float]]:
    """What one process of a checkout measures: (what it is, with its unit, and how much)."""
    import latency
    import numpy as np
    from onnx import TensorProto, helper

    import landbridge as lb

    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [64]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "add", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session, x = lb.Session(lb.compile(model), num_threads=1), np.ones(64, np.float32)
    session.set_input_zero_copy("x", x)
    session.set_output_zero_copy(0, np.empty(64, np.float32))
    yield "s.run(), us", least(session.run, 10_000, 20) * 1e6
    yield "s.set_input_zero_copy(), us", least(lambda: session.set_input_zero_copy("x", x), 10_000, 20) * 1e6
    yield "s(x), us", least(lambda: session(x), 10_000, 20) * 1e6
    cases = latency.cases()
    for name in MODELS:
        source, inputs = next(case for title, case in cases.items() if name in title)
        began = time.perf_counter()
        executable = lb.compile(source, shapes={key: array.shape for key, array in inputs.items()})
        yield f"compile {name}, s", time.perf_counter() - began
        with tempfile.TemporaryDirectory() as folder:
            executable.save(file := f"{folder}/model.lbx")
            loaded = least(lambda file=file: lb.Session(lb.load(file), num_threads=1), 1, 40)
        yield f"load {name} and make its Session, ms", loaded * 1e3
        session = lb.Session(executable, num_threads=1)
        for key, array in inputs.items():
            session.set_input(key, array)
        session.run()
        yield f"run {name}, ms", least(session.run, 1, 40) * 1e3


_CHILD = """
import json, sys
checkout, folder = sys.argv[1:]
sys.path[:0] = [folder, checkout, f"{checkout}/examples/ocr"]
from before_after import measured
print(json.dumps(dict(measured())))
"""


def child(checkout: Path) -> dict[str, float]:
    """What a process of ``checkout`` measures."""
    command = [checkout / ".venv/bin/python", "-c", _CHILD, checkout, Path(__file__).parent]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    sides: tuple[dict[str, float], dict[str, float]] = ({}, {})
    for _ in range(args.rounds):
        for side, checkout in zip(sides, (args.before, args.after), strict=True):
            for subject, much in child(checkout.resolve()).items():
                side[subject] = min(much, side.get(subject, much))
    before, after = sides
    rows = [[subject, much, after[subject], after[subject] / much] for subject, much in before.items()]
    write("before_after", ["what", "before", "after", "after / before"], rows)


if __name__ == "__main__":
    main()
