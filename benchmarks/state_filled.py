"""One step over caches that are full, beside the time that it takes to read them, onnxruntime and torch.

python benchmarks/state_filled.py

Processor time of one thread, interleaved. The limit is the time in which numpy's ``maximum`` reduces as many bytes of
the same memory, the keys and values of all rows; it is a plain read loop over vectors.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np
import torch
from measure import interleaved, write
from state import CAPACITIES, HEADS, SHARED, SIZE, attention, ours, theirs


def compared(capacity: int) -> list[object]:
    """A row of the table: microseconds, and parts of the limit."""
    created, feeds, states = attention(capacity)
    rng = np.random.default_rng(1)
    past = {name: rng.standard_normal(feeds[name].shape).astype(np.float32) for name in ("pk", "pv")}
    last = {"ends": np.array([capacity - 1], np.int32), "total": np.array(capacity, np.int32)}
    full = feeds | past | last
    keys, values = (torch.from_numpy(past[name].copy()) for name in ("pk", "pv"))
    query = torch.from_numpy(feeds["q"].reshape(1, HEADS, 1, SIZE))
    read = np.stack([past["pk"], past["pv"]])

    def torch_step() -> object:
        return torch.nn.functional.scaled_dot_product_attention(query, keys, values, enable_gqa=True)

    session = ours(created, full, states)
    actions: dict[str, Callable[[], object]] = {
        "read": lambda: np.maximum.reduce(read, axis=None),
        "ours": session.run,
        "onnxruntime": theirs(created, full, states),
        "torch": torch_step,
    }
    calls = max(2, 200_000 // capacity)
    spent = interleaved(actions, rounds=15, calls=calls, warm=True, clock=time.process_time)
    microseconds = [1e6 * spent[each] for each in actions]
    nbytes = 2 * SHARED * capacity * SIZE * 4
    parts = [f"{100 * spent['read'] / spent[each]:.0f} %" for each in ("ours", "onnxruntime", "torch")]
    return [capacity, nbytes / 1e6, nbytes / spent["read"] / 1e9, *microseconds, *parts]


def main() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    rows = [compared(capacity) for capacity in CAPACITIES]
    columns = ("rows", "MB read", "read, GB/s", "read, us", "us", "onnxruntime, us", "torch, us")
    write("state_filled", (*columns, "of the limit", "onnxruntime, of it", "torch, of it"), rows)


if __name__ == "__main__":
    main()
