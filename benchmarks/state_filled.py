"""One step over caches that are full, compared with its limit on one thread, onnxruntime and torch.

python benchmarks/state_filled.py

Processor time, interleaved. The limit is the larger of two times: that in which numpy's ``maximum`` reduces as many
bytes of the same memory, the keys and values of all rows, a plain read loop over vectors, from the cache that holds
them; and that of the arithmetic at the peak of this processor, as ``landbridge explain`` measures it. Where several
heads of queries share keys and values, each vector that is read takes as many multiply-adds. Arithmetic is the
multiply-adds of both products, and those of one exponential for each score (``EXPONENTIAL``); sums of lanes, maxima and
quotients run on other pipes and are not counted. Which of the two times is the limit stands in each row.

torch: scaled_dot_product_attention over keys and values that are there already. StaticCache: what a decoder of
transformers does in a layer, which also writes the step into its cache (``static_cache.py``). Columns of packages that
are not installed are empty, and a line before the table names them.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
from measure import interleaved, write
from state import CAPACITIES, HEADS, SHARED, SIZE, attention, grown, ours, theirs
from static_cache import Array, static_cache_step

import landbridge as lb
from landbridge.cli.machine_limits import measured_limits

#: Steps: heads of queries, heads of keys and values, and elements of a head.
STEPS = {
    "GroupQueryAttention": [(HEADS, SHARED, SIZE), (HEADS, HEADS, SIZE), (32, 8, 128)],
    "attention with Concat": [(HEADS, HEADS, SIZE)],
}
#: Multiply-adds of an exponential: one for the power of 2, two for the rest, and six for a polynomial that is exact to
#: the last bits of an f32.
EXPONENTIAL = 9
#: Repetitions of all measurements, each of so many rounds.
REPEATS, ROUNDS = 3, 7
#: Those we are compared with, in the order of the columns.
PEERS = ("onnxruntime", "torch", "StaticCache")


def torch_step(query: Array, past: tuple[Array, Array]) -> Callable[[], object] | None:
    """Returns attention from ``query`` to keys and values ``past``; None where torch is not installed."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    queries, keys, values = (torch.from_numpy(each.copy()) for each in (query, *past))
    shares = past[0].shape[1] < query.shape[1]
    return lambda: torch.nn.functional.scaled_dot_product_attention(queries, keys, values, enable_gqa=shares)


def compared(step: str, heads: int, shared: int, size: int, capacity: int, flops: float) -> list[object]:
    """A row of the table: microseconds, and parts of the limit."""
    if step == "GroupQueryAttention":
        created, feeds, states = attention(capacity, heads, shared, size)
    else:
        created, feeds, states = grown(capacity)
    rng = np.random.default_rng(1)
    past = {name: rng.standard_normal(feeds[name].shape).astype(np.float32) for name in ("pk", "pv")}
    if "P" in feeds:
        last = {"P": np.array([capacity - 1])}
    else:
        last = {"ends": np.array([capacity - 1], np.int32), "total": np.array(capacity, np.int32)}
    full = feeds | past | last
    query, both = feeds["q"].reshape(1, heads, 1, size), (past["pk"], past["pv"])
    new = feeds["k"].reshape(1, shared, 1, size), feeds["v"].reshape(1, shared, 1, size)
    read = np.stack(both)
    session = ours(created, full, states)
    actions: dict[str, Callable[[], object]] = {
        "read": lambda: np.maximum.reduce(read, axis=None),
        "ours": session.run,
        "onnxruntime": theirs(created, full, states),
    }
    for name, found in (("torch", torch_step(query, both)), ("StaticCache", static_cache_step(query, new, both))):
        if found is not None:
            actions[name] = found
    calls = max(2, 200_000 * SHARED * SIZE // (capacity * shared * size))
    repeats = [
        interleaved(actions, rounds=ROUNDS, calls=calls, warm=True, clock=time.process_time) for _ in range(REPEATS)
    ]
    spent = {name: statistics.median(each[name] for each in repeats) for name in actions}
    nbytes = 2 * shared * capacity * size * 4
    arithmetic = 2 * heads * capacity * (2 * size + EXPONENTIAL) / flops
    limits = [max(each["read"], arithmetic) / each["ours"] for each in repeats]
    limit = max(spent["read"], arithmetic)
    bound = "bytes" if limit == spent["read"] else "arithmetic"
    times = [1e6 * spent[each] if each in spent else "-" for each in ("ours", *PEERS)]
    parts = [f"{100 * limit / spent[each]:.0f} %" if each in spent else "-" for each in ("ours", *PEERS)]
    spread = f"{100 * min(limits):.0f} to {100 * max(limits):.0f} %"
    of_read = f"{100 * spent['read'] / spent['ours']:.0f} %"
    shape = f"{heads}/{shared}/{size}"
    facts = [step, shape, capacity, nbytes / 1e6, nbytes / spent["read"] / 1e9]
    return [*facts, 1e6 * spent["read"], 1e6 * arithmetic, bound, *times, of_read, parts[0], spread, *parts[1:]]


def main() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    missing = [name for name in ("torch", "transformers") if find_spec(name) is None]
    if missing:
        print(f"not installed, so that their columns are empty: {', '.join(missing)}")
    flops = measured_limits(lb.Target("llvm"), 1).flops
    rows = [
        compared(step, *shape, capacity, flops)
        for step, shapes in STEPS.items()
        for shape in shapes
        for capacity in CAPACITIES
    ]
    columns = ("step", "heads/shared/size", "rows", "MB read", "read, GB/s", "read, us", "arithmetic, us", "limit by")
    times = ("us", *(f"{name}, us" for name in PEERS), "of the read time", "of the limit", "of it, each repeat")
    write("state_filled", (*columns, *times, *(f"{name}, of it" for name in PEERS)), rows)


if __name__ == "__main__":
    main()
