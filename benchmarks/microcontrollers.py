"""Prints the table of docs/run-on-a-microcontroller.md: what networks take on a Cortex-M4, in bytes and instructions.

python benchmarks/microcontrollers.py

It needs gcc-arm-none-eabi, qemu-system-arm and make.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT)]

from tests.microcontrollers.models import keyword_spotter, person_detector, quantized, sample  # noqa: E402
from tests.microcontrollers.programs import BOARDS, run_on_board  # noqa: E402

import landbridge as lb  # noqa: E402

_BOARD = BOARDS["mps2-an386"]
_CORE = ("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mthumb", "-mfloat-abi=hard")


def _row(name: str, model: onnx.ModelProto, optimize: str, folder: Path) -> str:
    shape = tuple(d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim)
    made = lb.compile(model, _BOARD.target)
    done = run_on_board(made, {"x": sample(shape, 99)}, _BOARD, folder, optimize=optimize)
    header = (folder / "model.h").read_text(encoding="utf-8")
    memory, weights = (int(n) for n in re.findall(r"MODEL_(?:MEMORY|WEIGHTS)_BYTES UINT32_C\((\d+)\)", header))
    code, stack = _code_and_stack(folder, optimize)
    numbers = (code, weights, memory, stack, done.instructions)
    return f"| {name} | `{optimize}` | " + " | ".join(f"{number:,}" for number in numbers) + " |"


def _code_and_stack(folder: Path, optimize: str) -> tuple[int, int]:
    """Returns the bytes of code and constants without the weights, and of the largest frame on the stack."""
    options = ["-std=c11", optimize, "-ffp-contract=fast", "-ffreestanding", *_CORE, "-fstack-usage"]
    compiled = folder / "model.o"
    subprocess.run(["arm-none-eabi-gcc", *options, "-c", folder / "model.c", "-o", compiled], check=True)
    listed = subprocess.run(["arm-none-eabi-size", compiled], capture_output=True, text=True, check=True).stdout
    frames = [int(line.split("\t")[1]) for line in compiled.with_suffix(".su").read_text().splitlines()]
    return int(listed.splitlines()[1].split()[0]), max(frames)


def main() -> None:
    """Prints the table."""
    print("| network | compiler | code | weights | memory | stack | instructions |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, made in (("keyword spotter", keyword_spotter()), ("person detector", person_detector())):
        with TemporaryDirectory() as folder:
            for kind, model in (("float32", made), ("int8", quantized(made, Path(folder)))):
                for optimize in ("-O2", "-Os"):
                    print(_row(f"{name}, {kind}", model, optimize, Path(folder) / kind / optimize), flush=True)


if __name__ == "__main__":
    main()
