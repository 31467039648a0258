"""What stays in memory of a program that steps a state: weights, cache, plan, and how much more.

python benchmarks/state_memory.py

A child process imports numpy, notes the bytes that it has, and then loads a compiled decoder layer, makes a state and
runs a step for each of its rows. What it has more after them is compared with the bytes that weights, cache and plan
take. Two counts: the resident set (VmRSS), in which pages of the file of the program and of shared libraries count, and
its maximum (VmHWM). The interpreter and numpy are not counted; Landbridge, its code and what it imports are.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from onnx import ModelProto

HEADS, SHARED, SIZE, WIDTH = 32, 8, 64, 2048
CAPACITIES = (512, 4096, 32768)
#: The steps that are made: pages of a cache that no step has reached need not be resident.
STEPS = 512


def decoder(layers: int) -> ModelProto:
    """Layers of attention and a projection, with random weights; each has its own keys and values."""
    from onnx import helper, numpy_helper

    rng = np.random.default_rng(0)
    nodes, weights, states = [], [], []
    value = "x"
    for layer in range(layers):
        for name, columns in (("q", HEADS * SIZE), ("k", SHARED * SIZE), ("v", SHARED * SIZE), ("o", WIDTH)):
            rows = HEADS * SIZE if name == "o" else WIDTH
            weight = rng.standard_normal((rows, columns)).astype(np.float32) / 45
            weights.append(numpy_helper.from_array(weight, f"w{name}{layer}"))
        nodes += [helper.make_node("MatMul", [value, f"w{each}{layer}"], [f"{each}{layer}"]) for each in "qkv"]
        past, present = ([f"{when}.{layer}.{what}" for what in ("key", "value")] for when in ("past", "present"))
        nodes.append(
            helper.make_node(
                "GroupQueryAttention",
                [*(f"{each}{layer}" for each in "qkv"), *past, "ends", "total"],
                [f"a{layer}", *present],
                domain="com.microsoft",
                num_heads=HEADS,
                kv_num_heads=SHARED,
            )
        )
        nodes.append(helper.make_node("MatMul", [f"a{layer}", f"wo{layer}"], [f"y{layer}"]))
        value = f"y{layer}"
        states += list(zip(past, present, strict=True))

    def info(name: str, shape: Any, dtype: Any = np.float32) -> Any:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)

    state = [1, SHARED, "C", SIZE]
    inputs = [info("x", [1, 1, WIDTH]), info("ends", [1], np.int32), info("total", [], np.int32)]
    inputs += [info(past, state) for past, _ in states]
    outputs = [info(value, [1, 1, WIDTH]), *(info(present, state) for _, present in states)]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def status() -> dict[str, int]:
    """VmRSS and VmHWM of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    found = (line.split() for line in lines if line.startswith(("VmRSS", "VmHWM")))
    return {name.rstrip(":"): 1024 * int(size) for name, size, _ in found}


def child(file: str, capacity: int) -> None:
    """Steps a state in this process, which has imported numpy alone, and prints what it has more."""
    before = status()
    import landbridge as lb

    session = lb.Session(lb.load(file), num_threads=1)
    state = session.bind_state(capacity=capacity)
    x, ends, total = np.zeros((1, 1, WIDTH), np.float32), np.zeros(1, np.int32), np.zeros((), np.int32)
    for step in range(STEPS):
        ends[0], total[()] = step, step + 1
        session(x, ends, total)
    after = status()
    cache = sum(np.asarray(tensor).nbytes for tensor in state.tensors.values())
    plan = sum(each.planned_bytes for each in session.planned_memory)
    more = {name: after[name] - before[name] for name in before}
    print(json.dumps({"cache": cache, "plan": plan, "compiler": "llvmlite" in sys.modules, **more}))


def main() -> None:
    from measure import write
    from onnx import numpy_helper

    import landbridge as lb

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for layers in (1, 4):
            file = Path(folder) / f"{layers}.lbx"
            created = decoder(layers)
            weights = sum(numpy_helper.to_array(each).nbytes for each in created.graph.initializer)
            pasts = [each.name for each in created.graph.input if each.name.startswith("past.")]
            for capacity in CAPACITIES:
                shapes = dict.fromkeys(pasts, (1, SHARED, capacity, SIZE))
                lb.compile(created, alias="auto", shapes=shapes).save(file)
                command = [sys.executable, __file__, "--child", str(file), str(capacity)]
                found = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
                if found["compiler"]:
                    raise RuntimeError("the process that runs the program has imported the compiler")
                found["plan"] = max(found["plan"] - found["cache"], 0)  # which counts outputs, that are the cache
                limit = weights + found["cache"] + found["plan"]
                bytes_of = (weights, found["cache"], found["plan"], found["VmRSS"], found["VmHWM"])
                rows.append([layers, capacity, *(each / 1e6 for each in bytes_of), (found["VmHWM"] - limit) / 1e6])
    columns = ("layers", "capacity", "weights, MB", "cache, MB", "plan, MB", "resident, MB", "most resident, MB")
    write("state_memory", (*columns, "beyond weights, cache and plan, MB"), rows)


if __name__ == "__main__":
    if "--child" in sys.argv:
        child(sys.argv[2], int(sys.argv[3]))
    else:
        main()
