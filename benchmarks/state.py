"""One step of a state that stays where it is, at three capacities, against onnxruntime bound to one buffer.

Processor time of one thread, interleaved. "other memory": the same program with an output of its own, which is a copy.

python benchmarks/state.py
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

sys.path.insert(0, str(Path(__file__).parents[1]))

from measure import interleaved, write
from onnx import ModelProto, helper

import landbridge as lb

CAPACITIES = (512, 4096, 32768)
#: Rows that are filled before the step.
FILLED = 100
HEADS, SHARED, SIZE = 8, 2, 64
#: Heads and numbers of a row of the scattered states: 4 KiB.
ROW = (8, 128)

Array = np.ndarray[Any, Any]
Feeds = dict[str, Array]


def model(node: Any, inputs: dict[str, Any], outputs: dict[str, Any], opset: int) -> ModelProto:
    """One node; inputs and outputs by name, as arrays of their shape and dtype."""

    def info(name: str, array: Array) -> Any:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

    values = [[info(*each) for each in side.items()] for side in (inputs, outputs)]
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph([node], "step", *values), opset_imports=opsets, ir_version=10)


def scatter_nd(capacity: int) -> tuple[ModelProto, Feeds, dict[str, str]]:
    state, row = np.zeros((capacity, *ROW), np.float32), np.ones((1, *ROW), np.float32)
    feeds = {"past": state, "at": np.array([[FILLED]]), "row": row}
    created = model(helper.make_node("ScatterND", list(feeds), ["present"]), feeds, {"present": state}, 18)
    return created, feeds, {"present": "past"}


def tensor_scatter(capacity: int) -> tuple[ModelProto, Feeds, dict[str, str]]:
    state, row = np.zeros((1, ROW[0], capacity, ROW[1]), np.float32), np.ones((1, ROW[0], 1, ROW[1]), np.float32)
    feeds = {"past": state, "row": row, "at": np.array([FILLED])}
    created = model(helper.make_node("TensorScatter", list(feeds), ["present"], axis=2), feeds, {"present": state}, 24)
    return created, feeds, {"present": "past"}


def attention(
    capacity: int, heads: int = HEADS, shared: int = SHARED, size: int = SIZE
) -> tuple[ModelProto, Feeds, dict[str, str]]:
    """``heads`` of queries, on ``shared`` heads of keys and values, of ``size`` elements."""
    rng = np.random.default_rng(0)
    past = {name: np.zeros((1, shared, capacity, size), np.float32) for name in ("pk", "pv")}
    new = {
        name: rng.standard_normal((1, 1, n * size)).astype(np.float32)
        for name, n in zip("qkv", (heads, shared, shared), strict=True)
    }
    feeds = {**new, **past, "ends": np.array([FILLED], np.int32), "total": np.array(FILLED + 1, np.int32)}
    node = helper.make_node(
        "GroupQueryAttention",
        list(feeds),
        ["y", "nk", "nv"],
        domain="com.microsoft",
        num_heads=heads,
        kv_num_heads=shared,
    )
    outputs = {"y": new["q"], "nk": past["pk"], "nv": past["pv"]}
    return model(node, feeds, outputs, 21), feeds, {"nk": "pk", "nv": "pv"}


def grown(capacity: int) -> tuple[ModelProto, Feeds, dict[str, str]]:
    """As torch writes it: keys and values grow by Concat, which onnxruntime copies; here ``alias`` keeps their room."""
    rng = np.random.default_rng(0)
    new = {name: rng.standard_normal((1, HEADS, 1, SIZE)).astype(np.float32) for name in "qkv"}
    past = {name: np.zeros((1, HEADS, capacity, SIZE), np.float32) for name in ("pk", "pv")}
    axis = ["P" if extent == capacity else extent for extent in past["pk"].shape]
    total = ["T" if extent == capacity else extent for extent in past["pk"].shape]
    nodes = [
        helper.make_node("Concat", ["pk", "k"], ["nk"], axis=2),
        helper.make_node("Concat", ["pv", "v"], ["nv"], axis=2),
        helper.make_node("Transpose", ["nk"], ["turned"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "turned"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "nv"], ["y"]),
    ]

    def info(name: str, shape: Any) -> Any:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(np.float32)), shape)

    inputs = [*(info(name, value.shape) for name, value in new.items()), *(info(name, axis) for name in past)]
    outputs = [info("y", new["q"].shape), info("nk", total), info("nv", total)]
    graph = helper.make_graph(nodes, "step", inputs, outputs)
    created = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    return created, {**new, **past, "P": np.array([FILLED])}, {"nk": "pk", "nv": "pv"}


CASES: dict[str, Callable[[int], tuple[ModelProto, Feeds, dict[str, str]]]] = {
    "ScatterND, one row of 4 KiB": scatter_nd,
    "TensorScatter, one row of 4 KiB": tensor_scatter,
    f"GroupQueryAttention, {FILLED} rows filled": attention,
    f"attention with Concat, {FILLED} rows filled": grown,
}


def compiled(created: ModelProto, feeds: Feeds, states: dict[str, str]) -> lb.Executable:
    """The program for one buffer of the capacity of ``feeds``."""
    return lb.compile(created, alias=states, shapes={name: feeds[name].shape for name in states.values()})


def ours(created: ModelProto, feeds: Feeds, states: dict[str, str]) -> lb.Session:
    """A Session whose next run is the step."""
    session = lb.Session(compiled(created, feeds, states), num_threads=1)
    for output, input in states.items():
        session.bind_state(output, input)
    for name, value in feeds.items():
        session.set_input(name, value)
    session.run()
    return session


def theirs(created: ModelProto, feeds: Feeds, states: dict[str, str]) -> Callable[[], object]:
    """The step by onnxruntime, past and present bound to one buffer."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(created.SerializeToString(), options, ["CPUExecutionProvider"])
    binding = session.io_binding()
    if "P" in feeds:  # without a buffer that is filled in part: what it copies are the filled rows
        few = {name: value[:, :, : feeds["P"][0]] for name, value in feeds.items() if name != "P"}
        few = {name: np.ascontiguousarray(value) for name, value in few.items()}
        return partial(session.run, None, few)
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(value) for name, value in feeds.items()}
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    for output in session.get_outputs():
        if output.name in states:
            binding.bind_ortvalue_output(output.name, values[states[output.name]])
        else:
            empty = onnxruntime.OrtValue.ortvalue_from_shape_and_type(output.shape, np.float32)
            binding.bind_ortvalue_output(output.name, empty)
    return partial(session.run_with_iobinding, binding)


def next_steps(session: lb.Session, feeds: Feeds) -> Callable[[], object]:
    """Steps of a length that grows by one each, and begins anew after 100."""
    if "P" in feeds:
        filled = feeds["P"].copy()
        session.set_input_zero_copy("P", filled)

        def grow() -> None:
            filled[0] = filled[0] + 1 if filled[0] < 2 * FILLED else FILLED
            session.run()

        return grow
    ends, total = feeds["ends"].copy(), feeds["total"].copy()
    session.set_input_zero_copy("ends", ends)
    session.set_input_zero_copy("total", total)

    def step() -> None:
        ends[0] = ends[0] + 1 if ends[0] < 2 * FILLED else FILLED
        total[()] = ends[0] + 1
        session.run()

    return step


def compared(name: str, capacity: int) -> list[object]:
    """A row of the table, in microseconds."""
    created, feeds, states = CASES[name](capacity)
    session = ours(created, feeds, states)
    with lb.ledger() as moves:
        session.run()
    separate = lb.Session(compiled(created, feeds, states), num_threads=1)
    for each, value in feeds.items():
        separate.set_input(each, value)
    actions: dict[str, Callable[[], object]] = {"state": session.run}
    if "ends" in feeds or "P" in feeds:
        actions["growing"] = next_steps(ours(created, feeds, states), feeds)
    try:
        actions["onnxruntime"] = theirs(created, feeds, states)
    except Exception as error:  # it has no kernel of the operator
        print(f"onnxruntime: {name}: {str(error)[:200]}", file=sys.stderr)
    spent = interleaved(actions, rounds=15, calls=200, clock=time.process_time)
    spent |= interleaved({"separate": separate.run}, rounds=5, calls=2, clock=time.process_time)
    columns = [1e6 * spent[each] if each in spent else "-" for each in ("state", "growing", "onnxruntime", "separate")]
    return [name, capacity, *columns, moves.total_bytes, moves.kernel_bytes]


def main() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    columns = ("step", "capacity", "us", "us, each a row longer", "onnxruntime, us", "other memory, us")
    rows = [compared(name, capacity) for name in CASES for capacity in CAPACITIES]
    write("state", (*columns, "bytes copied", "bytes moved by kernels"), rows)


if __name__ == "__main__":
    main()
