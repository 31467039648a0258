"""How often models with open dimensions are walked, and what their imports take.

python benchmarks/import_walks.py [--before SRC] [--rounds 3]

For those models of real_models.toml whose wheels are downloaded already, and that have open dimensions if nothing is
stated. Walks are those until the first program is built; others are for programs of other sizes, most of which end
soon, as there is no such program. Seconds are processor seconds of the whole import, the least of ``--rounds``.
``--before``: the folder ``src`` of another commit. Its runs and those of this commit are interleaved.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def main() -> None:
    sys.path.insert(0, str(ROOT / "examples" / "ocr"))
    from measure import write
    from wheel_models import cache_folder

    parser = argparse.ArgumentParser()
    parser.add_argument("--before", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="a part of the names of models")
    arguments = parser.parse_args()
    sources = [*([] if arguments.before is None else [arguments.before]), ROOT / "src"]
    children = [_Child(source, arguments.rounds) for source in sources]
    rows: list[tuple[object, ...]] = []
    sums = [0.0] * 3 * len(children)
    for wheel in tomllib.loads((ROOT / "benchmarks" / "real_models.toml").read_text())["wheel"]:
        folder = cache_folder() / "wheels" / wheel["requirement"].replace("==", "-")
        for model in wheel["models"]:
            file = folder / model["file"]
            if not file.exists() or arguments.only not in str(file):
                continue
            found = [child.imported(file) for child in children]
            if not all(each["is_open"] for each in found):
                continue
            row = [each[name] for each in found for name in ("walks", "others", "seconds")]
            sums = [a + b for a, b in zip(sums, row, strict=True)]
            rows.append((f"{wheel['requirement']} {file.stem}", *row))
            print(*rows[-1], file=sys.stderr, flush=True)
    rows.append((f"mean of {len(rows)} models", *(each / len(rows) for each in sums)))
    columns = [f"{name}{before}" for before in (" before", "")[-len(children) :] for name in ("walks", "others", "s")]
    write("import_walks", ("model", *columns), rows)


class _Child:
    """A process that imports models with the package in ``source``."""

    def __init__(self, source: Path, rounds: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--child", str(rounds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(source), "LANDBRIDGE_CACHE": "0"},
        )

    def imported(self, file: Path) -> dict[str, Any]:
        """The walks and the seconds of the import of ``file``."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(file, file=self._process.stdin, flush=True)
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found


def child(rounds: int) -> None:
    """Import the files whose paths come by stdin, and print what each took."""
    import warnings

    from landbridge.errors import CompileError, InputError
    from landbridge.ir.empties import Empties

    warnings.simplefilter("ignore")
    counter = _Counter()
    for line in sys.stdin:
        seconds, is_open, first, every = 0.0, False, 0, 0
        for _ in range(rounds):
            counter.begin()
            began = time.process_time()
            try:
                is_open = _imported(line.strip(), Empties())
            except (CompileError, InputError):
                is_open = _imported(line.strip(), Empties(allowed=False))
            spent = time.process_time() - began
            seconds, first, every = min(seconds or spent, spent), counter.first, counter.walks
        found = {"walks": first, "others": every - first, "seconds": seconds, "is_open": is_open}
        print(json.dumps(found), flush=True)


def _imported(file: str, empties: Any) -> bool:
    """Import ``file`` as a compile does; returns whether it has open dimensions."""
    from inspect import signature

    from landbridge.compiler import compilation
    from landbridge.compiler.options import CompileOptions
    from landbridge.executable.parts import VDevice
    from landbridge.process.garbage import collector_paused
    from landbridge.targets import Target

    plain = dict.fromkeys(signature(CompileOptions).parameters)
    listed = dict.fromkeys(("extra_outputs", "mutable", "unpacked"), ())
    numbers = {"max_nodes": 1 << 20, "check_indices": False, "sanitize": False, "allow_links": False}
    stated: dict[str, Any] = {**plain, **listed, **numbers, "on_mismatch": "error"}
    options = CompileOptions(**stated)
    with collector_paused():
        targets, devices = (Target("llvm -mcpu=x86-64-v3"),), (VDevice("cpu", 0),)
        imports: Any = compilation._import
        more = ([], "the model") if "walks" in signature(imports).parameters else ()
        found: Any = imports(file, targets, devices, options, frozenset(), empties, *more)
    programs = found[0] if isinstance(found, tuple) else found
    return any(program.module.dimensions() for program in programs)


class _Counter:
    """Counts walks of models: ``first`` are those until the first program is built."""

    def __init__(self) -> None:
        from landbridge.frontend.onnx import importer

        patched: Any = importer
        self.walks = self.first = 0
        inputs, every = patched.model_inputs, patched.Attempts.all

        def walked(*arguments: Any, **named: Any) -> Any:
            self.walks += 1
            return inputs(*arguments, **named)

        def attempted(attempts: Any) -> Any:
            found = every(attempts)
            self.first = self.walks
            return found

        patched.model_inputs, patched.Attempts.all = walked, attempted

    def begin(self) -> None:
        self.walks = self.first = 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(int(sys.argv[2]))
    else:
        main()
