"""Models of real_models.toml that peers.py does not have, compared with onnxruntime and OpenVINO, on one thread.

python benchmarks/listed_peers.py [--rounds 5] [--only REGEX] [--compile] [--write]      (needs openvino)

Each is compiled for the one size that the list has, 1 where it has none, in a process of its own. As peers.py it can be
done in pieces; ``--compile`` fetches and compiles only. Those with quantized numbers are told by a ``q``: peers may
compute these otherwise.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
from measure import write
from peers import MODELS, PEERS, RESULTS, Model, measured
from real_models import models

import landbridge as lb

#: Seconds that one may take.
LIMIT = 300
SEEN = {(model.requirement, Path(model.file).name) for model in MODELS.values()}
Found = Mapping[str, Any]


def model_of(facts: Mapping[str, Any]) -> Model:
    """A model of the list, with the shape of each of its inputs."""
    values = {name: value for name, value in facts.get("values", {}).items() if isinstance(value, int | float)}
    unknown = Model(facts["requirement"], facts["file"], {}, facts.get("highest", 20), values)
    graph = onnx.load(unknown.path(), load_external_data=False).graph
    weights = {weight.name for weight in graph.initializer}
    shapes = {
        value.name: tuple(
            facts.get("shapes", {}).get(value.name) or [d.dim_value or 1 for d in value.type.tensor_type.shape.dim]
        )
        for value in graph.input
        if value.name not in weights
    }
    return Model(facts["requirement"], facts["file"], shapes, facts.get("highest", 20), values)


def child(facts: Mapping[str, Any], rounds: int) -> Found:
    """The times of one, or nothing where it is only to be compiled."""
    model = model_of(facts)
    if not rounds:
        lb.compile(model.path(), shapes=model.shapes)
        return {}
    operators = {node.op_type for node in onnx.load(model.path(), load_external_data=False).graph.node}
    quantized = any("Quantize" in name or "Integer" in name or name.startswith("QLinear") for name in operators)
    return {**measured(model, rounds, 1), "quantized": quantized}


def row(name: str, found: Found) -> list[object]:
    ours, peers = found["landbridge"][0], [found[p][0] if p in found else None for p in PEERS]
    best = min((p for p in peers if p is not None), default=None)
    ratio = "" if best is None else best / ours
    named = f"{name} q" if found["quantized"] else name
    worst = max(found["differences"].values(), default=0.0)
    return [named, ours, *("" if p is None else p for p in peers), ratio, f"{worst:.1e}"]


def mean_row(subject: str, rows: Sequence[list[object]]) -> list[object]:
    """The row of the geometric mean of ``rows``."""
    ratios = [r[4] for r in rows if isinstance(r[4], float)]
    mean = math.exp(sum(map(math.log, ratios)) / max(len(ratios), 1))
    ahead = f"ahead on {sum(r >= 1 for r in ratios)} of {len(ratios)}"
    return [f"geometric mean, {subject}, {ahead}, none under {min(ratios, default=0):.2f}", "", "", "", mean, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--compile", action="store_true", help="fetch and compile, and measure nothing")
    parser.add_argument(
        "--write", action="store_true", help="measure nothing, and write the table of what was measured"
    )
    options = parser.parse_args()
    folder = RESULTS / "listed"
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Found] = {}
    for name, facts in models().items():
        retained = folder / (re.sub(r"[^\w.-]", "_", name) + ".json")
        if (facts["requirement"], Path(facts["file"]).name) in SEEN:
            continue
        if options.write:
            found.update({name: json.loads(retained.read_text())} if retained.exists() else {})
        elif re.search(options.only, name):
            command = [
                sys.executable,
                __file__,
                "--child",
                json.dumps(facts),
                "0" if options.compile else str(options.rounds),
            ]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True)
            except (subprocess.SubprocessError, OSError) as failure:
                last = (getattr(failure, "stderr", "") or str(failure)).strip().splitlines()[-1:]
                print(f"{name}: {''.join(map(str, last))[:150]}", flush=True)
                continue
            if not options.compile:
                retained.write_text(done.stdout)
                print(*row(name, json.loads(done.stdout)), flush=True)
    if options.write:
        rows = [row(name, each) for name, each in found.items()]
        long = [r for r in rows if isinstance(r[1], float) and r[1] >= 1 and not str(r[0]).endswith(" q")]
        rows += [mean_row("all", rows), mean_row("of floats, 1 ms and more", long)]
        columns = ("model", "ms", "onnxruntime ms", "OpenVINO ms", "faster peer / ours", "largest difference")
        write("listed_peers", columns, rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(child(json.loads(sys.argv[2]), int(sys.argv[3]))))
    else:
        main()
