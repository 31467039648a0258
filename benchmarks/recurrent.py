"""LSTM, GRU and RNN against onnxruntime on one thread: one program for any number of steps and rows, and one of these.

python benchmarks/recurrent.py
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime

sys.path.insert(0, str(Path(__file__).parents[1]))

from measure import interleaved, write
from tests.ops.recurrent_models import feeds_of, network

import landbridge as lb

#: Kind, direction, units, rows of the batch, steps.
CASES = (
    ("LSTM", "forward", 64, 1, 20),
    ("LSTM", "forward", 64, 8, 20),
    ("LSTM", "forward", 128, 1, 200),
    ("LSTM", "forward", 128, 1, 1200),
    ("LSTM", "bidirectional", 256, 1, 100),
    ("LSTM", "forward", 256, 8, 20),
    ("LSTM", "forward", 512, 1, 100),
    ("LSTM", "forward", 512, 8, 50),
    ("GRU", "forward", 64, 1, 20),
    ("GRU", "bidirectional", 128, 1, 200),
    ("GRU", "forward", 256, 8, 20),
    ("GRU", "forward", 512, 1, 100),
    ("RNN", "forward", 128, 1, 200),
    ("RNN", "forward", 256, 8, 20),
)
#: Seconds that the calls of a round take together, about.
SECONDS_PER_ROUND = 0.03


def compared(kind: str, direction: str, hidden: int, batch: int, steps: int) -> tuple[object, ...]:
    """A row of the table: medians of microseconds interleaved, and seconds of the compile."""
    model = network(kind, "T", "N", hidden, hidden, direction)
    feeds = feeds_of(model, steps, batch)
    began = time.perf_counter()
    known = lb.compile(model, shapes={"x": feeds["x"].shape})
    compiled = time.perf_counter() - began
    sessions = {
        "open": lb.Session(lb.compile(model), num_threads=1),
        "known": lb.Session(known, num_threads=1),
    }
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    peer = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    expected = peer.run(None, feeds)
    for session in sessions.values():
        session.set_input("x", feeds["x"])
        for found, wanted in zip(session(feeds["x"]), expected, strict=True):
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=0, atol=1e-5)
        session.set_input("x", feeds["x"])
    actions = {name: session.run for name, session in sessions.items()}
    began = time.perf_counter()
    peer.run(None, feeds)
    calls = max(1, int(SECONDS_PER_ROUND / (time.perf_counter() - began)))
    spent = interleaved({**actions, "onnxruntime": lambda: peer.run(None, feeds)}, rounds=11, calls=calls)
    mine, fixed, theirs = (1e6 * spent[name] for name in ("open", "known", "onnxruntime"))
    return kind, direction, hidden, batch, steps, mine, fixed, theirs, theirs / mine, theirs / fixed, compiled


def main() -> None:
    columns = ("kind", "direction", "units", "rows", "steps", "any steps, us", "these steps, us", "onnxruntime, us")
    ratios = ("onnxruntime / any", "onnxruntime / these", "compile of these, s")
    write("recurrent", (*columns, *ratios), [compared(*case) for case in CASES])


if __name__ == "__main__":
    main()
