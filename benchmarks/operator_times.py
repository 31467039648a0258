"""Every operator at three sizes compared with onnxruntime: median processor time of a call, interleaved.

    python benchmarks/operator_times.py --write [--only NAME]...

A case whose results differ from onnxruntime's is an error, but for operators that draw random numbers. The table has a
column of ratios for each size, ours over onnxruntime's, so that 2 means twice its time. ``--missing`` lists operators
of the table of operators that have no case here.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

sys.path.insert(0, str(Path(__file__).parents[1]))

from measure import RESULTS, write
from operator_cases import CASES, Const, Node
from tests.docs.operator_table import PAGE

import landbridge as lb

SIZES = ("small", "medium", "large")
#: Processor seconds that one round of a runtime takes, about.
SECONDS_PER_ROUND = 0.005
ROUNDS = 7
RANDOM = {"RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout"}


def model_of(node: Node) -> tuple[onnx.ModelProto, dict[str, np.ndarray[Any, Any]]]:
    """The model of one node and values of its inputs; its outputs have the types that onnxruntime finds."""
    names, feeds, initializers = [], {}, []
    for number, operand in enumerate(node.operands):
        name = "" if operand is None else f"x{number}"
        names.append(name)
        if isinstance(operand, Const):
            initializers.append(numpy_helper.from_array(operand.array, name))
        elif operand is not None:
            feeds[name] = operand
    outputs = [f"y{number}" for number in range(node.outputs)]
    created = helper.make_node(node.op_type, names, outputs, domain=node.domain, name="node", **node.attributes)
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in feeds.items()
    ]
    graph = helper.make_graph(
        [created], "one", inputs, [onnx.ValueInfoProto(name=name) for name in outputs], initializers
    )
    opsets = [helper.make_opsetid("", node.opset if not node.domain else 18)]
    if node.domain:
        opsets.append(helper.make_opsetid(node.domain, 1 if node.domain == "com.microsoft" else max(node.opset, 1)))
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    results = peer_of(model).run(None, feeds)
    for output, result in zip(graph.output, results, strict=True):
        if isinstance(result, list):  # a sequence of maps: its type is onnxruntime's own
            continue
        kind = helper.np_dtype_to_tensor_dtype(result.dtype)
        output.CopyFrom(helper.make_tensor_value_info(output.name, kind, result.shape))
    del model.graph.output[:]
    model.graph.output.extend(graph.output)
    return model, feeds


def peer_of(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])


def processor_times(actions: dict[str, Any]) -> dict[str, float]:
    """Medians of processor seconds of one call each; rounds interleave the actions."""
    calls = {}
    for name, action in actions.items():
        action()
        began = time.process_time()
        action()
        calls[name] = max(1, min(2000, int(SECONDS_PER_ROUND / max(time.process_time() - began, 1e-6))))
    spent: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(ROUNDS):
        for name, action in actions.items():
            action()
            began = time.process_time()
            for _ in range(calls[name]):
                action()
            spent[name].append((time.process_time() - began) / calls[name])
    return {name: statistics.median(times) for name, times in spent.items()}


def compared(name: str, size: int) -> dict[str, float]:
    """Microseconds of a call, ours and onnxruntime's, and seconds of the compile."""
    node = CASES[name](size)
    model, feeds = model_of(node)
    peer = peer_of(model)
    wanted = peer.run(None, feeds)
    began = time.process_time()
    program = lb.compile(model)
    compiled = time.process_time() - began
    session = lb.Session(program, num_threads=1)
    arguments = [feeds[tensor.name] for tensor in program.main.inputs]
    if node.op_type not in RANDOM:
        for found, expected in zip(session(*arguments), wanted, strict=True):
            check(name, np.asarray(found), np.asarray(expected))
    spent = processor_times({"ours": lambda: session(*arguments), "theirs": lambda: peer.run(None, feeds)})
    return {"ours": 1e6 * spent["ours"], "theirs": 1e6 * spent["theirs"], "compile": compiled}


def check(name: str, found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    """Raise where results differ by more than sums in another order do (1e-3 of the largest), or one step of a byte."""
    if found.shape != expected.shape:
        raise ValueError(f"{name}: shape {found.shape}, onnxruntime {expected.shape}")
    if found.dtype in (np.uint8, np.int8):
        worst, allowed = np.abs(found.astype(int) - expected.astype(int)).max(initial=0), 1
    elif found.dtype.kind == "f":
        far = np.abs(found.astype(np.float64) - expected.astype(np.float64))
        worst, allowed = np.nanmax(far, initial=0), 1e-3 * max(1.0, np.nanmax(np.abs(expected), initial=0))
    else:
        worst, allowed = int((found != expected).sum()), 0
    if worst > allowed:
        raise ValueError(f"{name}: differs by {worst}, more than {allowed}")


def missing() -> list[str]:
    """Operators of the table of operators without a case."""
    timed = {(node.domain, node.op_type) for node in (case(0) for case in CASES.values())}
    found, domain = [], ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            domain = line[3:].replace("ai.onnx.ml", "ML").replace("ai.onnx", "").replace("ML", "ai.onnx.ml")
        elif line.startswith("| ") and line.split()[1] not in ("operator", "---"):
            name = line.split()[1]
            if (domain, name) not in timed:
                found.append(f"{domain}.{name}" if domain else name)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="a case, or the beginning of its name; may be repeated")
    parser.add_argument("--write", action="store_true", help="write results/operator_times.md and .json")
    parser.add_argument("--missing", action="store_true", help="list operators without a case")
    given = parser.parse_args()
    if given.missing:
        print("\n".join(missing()))
        return
    retained = RESULTS / "operator_times.json"
    known = {row["case"]: row for row in json.loads(retained.read_text())["rows"]} if retained.exists() else {}
    chosen = [name for name in CASES if not given.only or any(name.startswith(part) for part in given.only)]
    columns = (
        "case",
        *(f"{size}, {subject}" for size in SIZES for subject in ("us", "onnxruntime, us", "ratio")),
        "note",
    )
    for name in chosen:
        row: dict[str, Any] = dict.fromkeys(columns, "")
        row["case"] = name
        for size, label in enumerate(SIZES):
            try:
                times = compared(name, size)
            except Exception as error:  # the table says which case has no figure, and why
                row["note"] = f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
                continue
            row[f"{label}, us"], row[f"{label}, onnxruntime, us"] = times["ours"], times["theirs"]
            row[f"{label}, ratio"] = times["ours"] / times["theirs"]
        known[name] = row
        ratios = [row[f"{label}, ratio"] for label in SIZES]
        print(name, *(f"{r:.2f}" if r != "" else "-" for r in ratios), row["note"], flush=True)
    if given.write:
        rows = [[known[name][column] for column in columns] for name in CASES if name in known]
        write("operator_times", columns, rows)


if __name__ == "__main__":
    main()
