"""Models that wheels carry, compiled as they are: error against onnxruntime, time compared with it, memory.

python benchmarks/real_models.py [--only REGEX] [--write]

``real_models.toml`` lists them. Each is compiled without a word about its sizes, in a process of its own that may take
LIMIT seconds, and run on seeded numbers of the shapes that the list has. The error is the largest difference of an
element, over the largest element of that output in onnxruntime; its own is that between its optimized program and the
one as it is, which tells how far orders of sums alone move a model on such numbers. Times are medians of rounds with
onnxruntime, both on all processors. Memory is what a process grows by from before a Session (the file being read and
compiled before) until after its runs, of memory that no file backs, and likewise for onnxruntime.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

#: Seconds that a process may take.
LIMIT = 300
#: The error that results of other orders of sums may have, of float32; those of integers and booleans have none.
CLOSE = 1e-3
#: What rounding to a half changes a number by, of itself: a model may be as far off as it has such tensors in a row.
HALF = 2**-11
#: What it may be of onnxruntime's own where that is more: two programs are each so far from a third.
OF_ITS_OWN = 2
ROUNDS = 7
RUNS = 10


def models() -> dict[str, dict[str, Any]]:
    """What is said of each, by the wheel's name and the file's."""
    listed = tomllib.loads((ROOT / "benchmarks" / "real_models.toml").read_text())
    return {
        f"{wheel['requirement'].partition('==')[0]}: {_short(model['file'], wheel['models'])}": {**wheel, **model}
        for wheel in listed["wheel"]
        for model in wheel["models"]
    }


def _short(file: str, models: list[dict[str, Any]]) -> str:
    """The name of ``file``, with its folder's where that is no word for models in general, and with as many more as
    tell it from the wheel's other ``models``."""
    path = Path(file)
    parts = 1 if path.parent.name in ("model", "models", "weights", "assets", "data") else 2
    others = [Path(model["file"]).parts for model in models if model["file"] != file]
    while any(each[-parts:] == path.parts[-parts:] for each in others):
        parts += 1
    return "/".join(path.parts[-parts:])


def bars(shape: list[int]) -> Any:
    """White pages of ``shape``, each with a block of bars of seeded widths in its middle."""
    import numpy as np

    height, width = shape[-2:]
    page, generator, at = np.ones((height, width), np.float32), np.random.default_rng(1), width * 3 // 16
    while at < width * 13 // 16:
        bar, gap = generator.integers(1, 5, 2)
        page[height * 3 // 8 : height * 5 // 8, at : at + bar] = 0
        at += int(bar + gap)
    return np.ascontiguousarray(np.broadcast_to(page, shape))


def sure(value: Any, model_facts: dict[str, Any]) -> Any:
    """``value``; of a detector's rows, in the order of their scores, those that ``model_facts`` names certain enough.
    Others are of the background, in an order that roundings decide."""
    import numpy as np

    least = model_facts.get("least_score")
    if least is None:
        return value
    rows = np.asarray(value).reshape(-1, np.shape(value)[-1])
    return rows[rows[:, model_facts["score_column"]] >= least]


def feeds(session: Any, model_facts: dict[str, Any]) -> dict[str, Any]:
    """An array for each input of an onnxruntime session: numbers of a normal distribution, of words, or as said."""
    import numpy as np

    generator = np.random.default_rng(0)
    kinds = {"float": np.float32, "double": np.float64, "float16": np.float16, "bool": np.bool_}
    created: dict[str, Any] = {}
    for each in session.get_inputs():
        name = each.type.removeprefix("tensor(").removesuffix(")")
        dtype = np.dtype(kinds.get(name, name))
        shape = model_facts.get("shapes", {}).get(each.name) or [
            e if isinstance(e, int) and e > 0 else 1 for e in each.shape
        ]
        if each.name in model_facts.get("values", {}):
            created[each.name] = np.full(shape, model_facts["values"][each.name], dtype)
        elif model_facts.get("picture") == each.name:
            created[each.name] = bars(shape).astype(dtype)
        elif dtype.kind == "f":
            created[each.name] = generator.standard_normal(shape).astype(dtype)
        elif dtype.kind == "b":
            created[each.name] = np.ones(shape, dtype)
        else:
            created[each.name] = generator.integers(1, model_facts.get("highest", 8), shape).astype(dtype)
    return created


def peer(file: str, *, optimized: bool = True) -> Any:
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    options = onnxruntime.SessionOptions()
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def values_of(output: Any) -> Any:
    """An output of onnxruntime as an array: of a list of maps by class a row each, as our programs give them."""
    import numpy as np

    if isinstance(output, list) and output and isinstance(output[0], dict):
        return np.array([list(row.values()) for row in output], np.float32)
    return output


def error_of(found: Any, wanted: Any) -> float:
    """The largest difference over the largest element; infinite where shapes, dtypes or integers differ."""
    import numpy as np

    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return float("inf")
    if found.dtype.kind not in "f":
        return 0.0 if np.array_equal(found, wanted) else float("inf")
    if not found.size:
        return 0.0
    gap = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    return float(np.where(same, 0, gap).max() / max(1e-30, float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0))))


def compiled(file: str, lbx: str, model_facts: dict[str, Any]) -> dict[str, Any]:
    """Seconds of a compile, the error, and milliseconds of a run compared with onnxruntime's."""
    import time
    import warnings

    from measure import interleaved

    import landbridge as lb

    warnings.simplefilter("ignore")
    began = time.perf_counter()
    try:
        executable = lb.compile(file)
        seconds = time.perf_counter() - began
        other = peer(file)
        given = feeds(other, model_facts)
        session = lb.Session(executable)
        outputs = session(given)
        wanted = [sure(values_of(each), model_facts) for each in other.run(None, given)]
        found = [sure(outputs[each.name], model_facts) for each in other.get_outputs()]
        errors = [error_of(one, value) for one, value in zip(found, wanted, strict=True)]
        executable.save(lbx)
    except lb.LandbridgeError as error:
        return {"outcome": "refused", "why": f"{type(error).__name__}: {error}".replace(file, Path(file).name)}
    worst = max(errors)
    plain = [sure(values_of(each), model_facts) for each in peer(file, optimized=False).run(None, given)]
    owned = max(error_of(one, value) for one, value in zip(plain, wanted, strict=True))
    if not worst <= max(CLOSE, OF_ITS_OWN * owned, HALF * model_facts.get("halves", 0)):
        return {"outcome": "wrong", "why": f"errors of outputs {errors}", "error": worst, "own": owned}
    times = interleaved(
        {"ours": lambda: session(given), "theirs": lambda: other.run(None, given)},
        ROUNDS,
        settle_seconds=0.05,
        warm=True,
    )
    return {"outcome": "passed", "why": "", "compile": seconds, "error": worst, "own": owned} | times


def grown(which: str, file: str, lbx: str, model_facts: dict[str, Any]) -> dict[str, float]:
    """Bytes that a Session of ``which`` and its runs take."""
    import gc

    import landbridge as lb

    given = feeds(peer(file), model_facts)
    gc.collect()
    if which == "ours":
        executable = lb.load(lbx)
        before = _anonymous()
        session = lb.Session(executable)
        for _ in range(RUNS):
            session(given)
    else:
        before = _anonymous()
        other = peer(file)
        for _ in range(RUNS):
            other.run(None, given)
    return {"grown": _anonymous() - before}


def _anonymous() -> int:
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) * 1024
    raise LookupError("smaps_rollup has no line Anonymous")


def child(*arguments: str) -> dict[str, Any]:
    """What a process of its own says; why it said nothing."""
    try:
        uncached = os.environ | {"LANDBRIDGE_CACHE": "0"}
        done = subprocess.run(
            [sys.executable, __file__, *arguments], capture_output=True, text=True, timeout=LIMIT, env=uncached
        )
    except subprocess.TimeoutExpired:
        return {"outcome": "failed", "why": f"more than {LIMIT} s"}
    if done.returncode:
        return {"outcome": "failed", "why": (done.stderr.strip().splitlines() or [f"ended by {done.returncode}"])[-1]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measured(model_facts: dict[str, Any], memory: bool) -> dict[str, Any]:
    from wheel_files import wheel_file

    file, facts = str(wheel_file(model_facts["requirement"], model_facts["file"])), json.dumps(model_facts)
    with tempfile.TemporaryDirectory() as folder:
        lbx = f"{folder}/model.lbx"
        found = child("--child", "compiled", file, lbx, facts) | {"size": Path(file).stat().st_size}
        if found["outcome"] == "passed" and memory:
            for which in ("ours", "theirs"):
                found[f"grown {which}"] = child("--child", which, file, lbx, facts).get("grown")
    return found


def row(name: str, found: dict[str, Any]) -> tuple[object, ...]:
    def scaled(key: str, by: float) -> object:
        return found[key] * by if found.get(key) is not None else "-"

    return (
        name,
        scaled("size", 1e-6),
        found["outcome"],
        found.get("error", "-"),
        found.get("own", "-"),
        scaled("compile", 1),
        scaled("ours", 1e3),
        scaled("theirs", 1e3),
        scaled("grown ours", 1e-6),
        scaled("grown theirs", 1e-6),
        re.sub(r"\s+", " ", found["why"])[:160].replace("|", "/"),
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--child", nargs=4)
    options = parser.parse_args()
    if options.child:
        which, file, lbx, facts = options.child
        model_facts = json.loads(facts)
        print(
            json.dumps(
                compiled(file, lbx, model_facts) if which == "compiled" else grown(which, file, lbx, model_facts)
            )
        )
        return
    rows = []
    for name, model_facts in models().items():
        if re.search(options.only, name):
            rows.append(row(name, measured(model_facts, not options.no_memory)))
            print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    passed = sum(each[2] == "passed" for each in rows)
    print(f"{passed} of {len(rows)} passed")
    if options.write:
        from measure import write

        columns = (
            "model",
            "MB",
            "outcome",
            "error",
            "onnxruntime's own",
            "compile s",
            "ms",
            "onnxruntime ms",
            "grown MB",
            "onnxruntime grown MB",
            "why",
        )
        write("real_models", columns, rows)


if __name__ == "__main__":
    main()
