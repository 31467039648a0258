"""One step of a state that stays where it is, on OpenCL and Vulkan devices, at three capacities.

It is the time from the call of a run to its end, of kernels compiled for what the device is. The limit is the larger
of two times: that of the bytes which the step has to read and write, at the rate at which numpy copies as many, and
that of a run whose kernel adds two vectors of 16 elements. Both are those of a device that is the CPU. "other memory":
the same program with an output of its own, which is a copy. It is measured after the others: a copy of 16 to 128 MiB
takes the caches, and the next run, of whatever, took 20 % longer.

python benchmarks/state_devices.py [DEVICE ...]
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from measure import interleaved, write
from onnx import ModelProto, helper
from state import CAPACITIES, CASES, FILLED, HEADS, ROW, SHARED, SIZE, Feeds, attention, grown, model

import landbridge as lb

#: Bytes that a step reads and writes at least: a row, or the keys and values that are filled.
ROW_BYTES = 2 * 4 * ROW[0] * ROW[1]
FILLED_BYTES = 2 * 4 * FILLED * SHARED * SIZE


def filled_attention(capacity: int) -> tuple[ModelProto, Feeds, dict[str, str]]:
    """As ONNX 24 has it: TensorScatter writes the rows, and Attention is given how many are filled."""
    rng = np.random.default_rng(0)
    past = {name: np.zeros((1, SHARED, capacity, SIZE), np.float32) for name in ("pk", "pv")}
    heads = zip("qkv", (HEADS, SHARED, SHARED), strict=True)
    new = {name: rng.standard_normal((1, n, 1, SIZE)).astype(np.float32) for name, n in heads}
    feeds = {**new, **past, "at": np.array([FILLED]), "filled": np.array([FILLED + 1])}
    attend = helper.make_node("Attention", ["q", "nk", "nv", "", "", "", "filled"], ["y"])
    created = model(attend, feeds, {"y": new["q"], "nk": past["pk"], "nv": past["pv"]}, 24)
    for old, row, to in (("pk", "k", "nk"), ("pv", "v", "nv")):
        created.graph.node.insert(0, helper.make_node("TensorScatter", [old, row, "at"], [to], axis=2))
    return created, feeds, {"nk": "pk", "nv": "pv"}


#: The steps: those of ``state``, without the one whose length is an open dimension.
STEPS = {name: case for name, case in CASES.items() if case is not grown}
STEPS[f"Attention with nonpad_kv_seqlen, {FILLED} rows filled"] = filled_attention


def session_on(device: str, name: str, capacity: int) -> lb.Session:
    """A Session of the step, with its inputs in memory of its own."""
    created, feeds, states = STEPS[name](capacity)
    shapes = {each: feeds[each].shape for each in states.values()}
    session = lb.Session(lb.compile(created, lb.Target.from_device(device), shapes=shapes), device=device)
    for each, value in feeds.items():
        session.set_input(each, value)
    return session


def smallest_run(device: str) -> Callable[[], object]:
    """A run of one kernel that does next to nothing."""
    given = {name: np.ones(16, np.float32) for name in "ab"}
    created = model(helper.make_node("Add", list(given), ["y"]), given, {"y": given["a"]}, 18)
    session = lb.Session(lb.compile(created, lb.Target.from_device(device)), device=device)
    for name, value in given.items():
        session.set_input(name, value)
    return session.run


def compared(device: str, name: str, capacity: int) -> list[object]:
    """A row of the table, in microseconds."""
    state, separate = (session_on(device, name, capacity) for _ in range(2))
    for output, input in STEPS[name](capacity)[2].items():
        state.bind_state(output, input)
    state.run()
    with lb.ledger() as moves:
        state.run()
    nbytes = FILLED_BYTES if STEPS[name] in (attention, filled_attention) else ROW_BYTES
    source, target = np.ones(nbytes // 2, np.uint8), np.empty(nbytes // 2, np.uint8)
    actions: dict[str, Callable[[], object]] = {
        "state": state.run,
        "smallest": smallest_run(device),
        "copy": lambda: np.copyto(target, source),
    }
    spent = interleaved(actions, rounds=9, calls=5, warm=True)
    spent |= interleaved({"separate": separate.run}, rounds=9, calls=5, warm=True)
    limit = max(spent["smallest"], spent["copy"])
    part = f"{100 * limit / spent['state']:.0f} %"
    times = [1e6 * each for each in (spent["copy"], spent["smallest"], spent["state"], spent["separate"])]
    return [device, name, capacity, nbytes, *times, part, moves.total_bytes, moves.kernel_bytes]


def main() -> None:
    devices = sys.argv[1:] or ["opencl", "vulkan"]
    rows = [compared(device, name, capacity) for device in devices for name in STEPS for capacity in CAPACITIES]
    columns = ("device", "step", "capacity", "bytes", "copied by numpy, us", "smallest run, us", "us")
    write(
        "state_devices", (*columns, "other memory, us", "of the limit", "bytes copied", "bytes moved by kernels"), rows
    )


if __name__ == "__main__":
    main()
