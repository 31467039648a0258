"""How much of ONNX's own test suite passes as it is, through ``landbridge.testing.onnx_backend``.

python benchmarks/onnx_suite.py [--only REGEX] [--write] [--workers N] [--device NAME]

Each test of ``onnx.backend.test`` for the CPU, with its own tolerances, in processes that a crash or a hang ends
without ending the count. The core are the models of operators of ai.onnx up to opset 26, whose inputs and outputs are
tensors of numpy's own numbers and booleans. What a test ended in: passed; wrong (other values, shapes or dtypes);
refused (an error of Landbridge); failed (any other error, a crash, more than the limit); random (a model that draws
random numbers gave others than ONNX's generator drew when the suite was made, of the same shapes and dtypes, which no
test can tell from wrong ones). `--write` writes the counts and every cause to results. `--device` compiles for what
that device is and runs there; `--json` then says of each test which nodes the CPU computed instead, and why.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import select
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

#: Seconds a test may take.
LIMIT = 120
CORE_OPSET = 26
#: Element types of ONNX that numpy has: floats, integers, bool; of 8 bits and more.
_RANDOM = ("Bernoulli", "RandomUniformLike", "RandomNormalLike", "Multinomial", "Dropout")
_PLAIN = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13})


def tests(device: str = "") -> dict[str, Any]:
    """The tests of the suite by name, each with its item; on ``device`` if one is named."""
    from onnx.backend.test import BackendTest

    from landbridge.testing import onnx_backend

    backend = on_device(device) if device else onnx_backend.LandbridgeBackend

    with warnings.catch_warnings():  # the suite computes its own expectations, infinities among them
        warnings.simplefilter("ignore")
        items = BackendTest(backend, __name__)._test_items
    return {
        name.removesuffix("_cpu"): item
        for category in items.values()
        for name, item in category.items()
        if name.endswith("_cpu")
    }


def on_device(name: str) -> Any:
    """The backend whose programs are for the device ``name``."""
    import landbridge as lb
    from landbridge.targets import Target
    from landbridge.testing.onnx_backend import LandbridgeBackend, LandbridgeRep

    device = lb.device(name)
    target = Target.from_device(device)

    class Rep(LandbridgeRep):
        def __init__(self, executable: lb.Executable) -> None:
            self.executable = executable
            self.session = lb.Session(executable, device=device)

        def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
            given = [np.asarray(each) for each in (inputs if isinstance(inputs, list | tuple) else [inputs])]
            for number, array in enumerate(given):
                self.session.set_input(number, array)
            self.session.run()
            outputs = range(len(self.session.outputs))
            return tuple(np.asarray(self.session.get_output(i).to_device("cpu")) for i in outputs)

    class OnDevice(LandbridgeBackend):
        @classmethod
        def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> LandbridgeRep:
            return Rep(lb.compile(model, target, **kwargs))

    return OnDevice


def is_core(model: Any) -> bool:
    """Whether ``model`` is of ai.onnx alone, up to CORE_OPSET, from plain tensors to plain tensors."""
    values = (*model.graph.input, *model.graph.output)
    return (
        all(o.domain not in ("", "ai.onnx") or o.version <= CORE_OPSET for o in model.opset_import)
        and all(node.domain in ("", "ai.onnx") for node in model.graph.node)
        and all(v.type.WhichOneof("value") == "tensor_type" and v.type.tensor_type.elem_type in _PLAIN for v in values)
    )


def _operators(model: Any) -> list[str]:
    return [node.op_type for node in model.graph.node]


def outcome(item: Any) -> dict[str, str]:
    """What the test ``item`` ends in, and why."""
    import unittest

    from landbridge.errors import FallbackWarning, LandbridgeError

    elsewhere: list[str] = []
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", FallbackWarning)
            item.func(unittest.TestCase())
        elsewhere = [str(each.message) for each in warned]
        found = {"outcome": "passed", "why": "", "on the CPU": "; ".join(elsewhere)}
    except AssertionError as error:
        drawn = "Not equal to tolerance" in str(error) and any(op in _RANDOM for op in _operators(item.proto[0]))
        found = {"outcome": "random" if drawn else "wrong", "why": str(error)}
    except LandbridgeError as error:
        found = {"outcome": "refused", "why": f"{type(error).__name__}: {error}"}
    except BaseException as error:
        found = {"outcome": "failed", "why": f"{type(error).__name__}: {error}"}
    (model,) = item.proto
    return found | {"core": "yes" if model is not None and is_core(model) else ""}


def serve(device: str) -> None:
    """Answer names of tests, a line each, with their outcomes."""
    warnings.simplefilter("ignore")
    known = tests(device)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the suite prints
    for line in sys.stdin:
        print(json.dumps(outcome(known[line.strip()])), file=answers, flush=True)


class Worker:
    """A process that runs tests, made anew after each that ended it."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._process: subprocess.Popen[str] | None = None

    def run(self, name: str) -> dict[str, str]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, __file__, "--serve", "--device", self._device],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        print(name, file=process.stdin, flush=True)
        ready, _, _ = select.select([process.stdout], [], [], LIMIT)
        line = process.stdout.readline() if ready else ""
        if line:
            return dict(json.loads(line))
        self.end()
        return {"outcome": "failed", "why": "the process ended" if ready else f"more than {LIMIT} s", "core": ""}

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
        self._process = None


def run_all(names: list[str], workers: int, device: str = "") -> dict[str, dict[str, str]]:
    def some(part: list[str]) -> Iterator[tuple[str, dict[str, str]]]:
        worker = Worker(device)
        for name in part:
            found = worker.run(name)
            if found["outcome"] != "passed":
                print(name, found["outcome"], found["why"][:150].replace("\n", " "), file=sys.stderr, flush=True)
            yield name, found
        worker.end()

    with ThreadPoolExecutor(workers) as pool:
        parts = pool.map(lambda part: dict(some(part)), [names[i::workers] for i in range(workers)])
        return {name: found for part in parts for name, found in part.items()}


def counts(found: dict[str, dict[str, str]]) -> list[tuple[str, ...]]:
    rows = []
    for subject, chosen in (("core", [f for f in found.values() if f["core"]]), ("all", list(found.values()))):
        by = Counter(f["outcome"] for f in chosen)
        rows.append(
            (subject, str(len(chosen)), *(str(by[each]) for each in ("passed", "wrong", "refused", "failed", "random")))
        )
    return rows


def cause(why: str) -> str:
    """``why`` without what is of one test alone, so that tests which end in the same are counted together."""
    line = next((each for each in why.split("\n") if each.lstrip().startswith("- ")), why.strip().split("\n")[0])
    line = re.sub(r"of node '[^']*'|node '[^']*'|input '[^']*'|operand '[^']*'", "", line.strip().removeprefix("- "))
    return re.sub(r"\s+", " ", re.sub(r"[\d.]+", "n", line))[:110].replace("|", "/")


def write_results(found: dict[str, dict[str, str]]) -> None:
    """The counts, and each cause of the core with its number and a test."""
    from measure import RESULTS, write

    write("onnx_suite", ("tests", "number", "passed", "wrong", "refused", "failed", "random"), counts(found))
    causes: dict[tuple[str, str], list[str]] = {}
    for name, each in found.items():
        if each["core"] and each["outcome"] != "passed":
            causes.setdefault((each["outcome"], cause(each["why"])), []).append(name)
    lines = [f"| {len(names)} | {subject} | {why} | `{names[0]}` |" for (subject, why), names in causes.items()]
    lines.sort(key=lambda line: -int(line.split()[1]))
    page = RESULTS / "onnx_suite.md"
    header = (
        "\nWhat the others of the core end in:\n\n| tests | outcome | cause | one of them |\n" + "| --- " * 4 + "|\n"
    )
    page.write_text(page.read_text() + header + "\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--device", default="")
    options = parser.parse_args()
    if options.serve:
        serve(options.device)
        return
    chosen = sorted(name for name in tests() if re.search(options.only, name))
    found = run_all(chosen, options.workers, options.device)
    for row in counts(found):
        print("{}: {}, {} passed, {} wrong, {} refused, {} failed, {} random".format(*row))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))
    if options.write:
        write_results(found)


if __name__ == "__main__":
    main()
