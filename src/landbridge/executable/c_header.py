"""The header of a program that was exported for C: constants, and functions that bind and run its records."""

from __future__ import annotations

import re
from importlib.resources import files
from textwrap import wrap

from landbridge.dtypes import numpy_dtype
from landbridge.executable.c_program import CProgram
from landbridge.executable.executable import Executable
from landbridge.executable.parts import CodeImage, TensorSpec


def c_header(name: str, executable: Executable, program: CProgram, image: CodeImage, weights_apart: bool) -> str:
    """The text of ``name.h``; ``weights_apart``: weights are a file that the application maps."""
    main = executable.main
    upper = name.upper()
    lines = [f"#define {upper}_MEMORY_BYTES UINT64_C({memory_bytes(program)})"]
    lines += [f"#define {upper}_MEMORY_ALIGNMENT {program.alignment}"]
    lines += [f"#define {upper}_WEIGHTS_BYTES UINT64_C({program.weights_bytes})"]
    lines += [f"#define {upper}_INPUTS {len(main.inputs)}", f"#define {upper}_OUTPUTS {len(main.outputs)}"]
    for kind, specs in (("INPUT", main.inputs), ("OUTPUT", main.outputs)):
        taken: set[str] = set()
        for number, spec in enumerate(specs):
            lines += _tensor(f"{upper}_{kind}", number, spec, taken)
    text = files(__package__).joinpath("c_header.h").read_text(encoding="utf-8")
    for word, value in {
        "lb_name": name,
        "LB_NAME": upper,
        "LB_CONSTANTS": "\n".join(lines),
        "LB_ISA": _wrapped(f"{image.isa}, with {', '.join(image.features) or 'no extensions'}"),
        "LB_STACK": str(executable.scratch_bytes),
        "LB_WEIGHTS_APART": str(int(weights_apart)),
        "LB_TENSORS": str(_up(8 * len(program.words), program.alignment)),
    }.items():
        text = re.sub(rf"(?<![A-Za-z0-9]){word}(?![A-Z])", value, text)
    return text


def memory_bytes(program: CProgram) -> int:
    """Bytes of memory of the program: its words, then its tensors."""
    return _up(8 * len(program.words), program.alignment) + program.tensor_bytes


def _tensor(prefix: str, number: int, spec: TensorSpec, taken: set[str]) -> list[str]:
    word = re.sub(r"[^A-Za-z0-9]+", "_", spec.name).strip("_").upper() or str(number)
    if word in taken:
        word = f"{word}_{number}"
    taken.add(word)
    strides = f", strides {list(spec.strides)}" if spec.strides else ""
    said = re.sub(r"[^ -~]|\*/", "?", f"{spec.name}: {spec.dtype} {list(spec.shape)}{strides}")
    return [
        f"/* {said} */",
        f"#define {prefix}_{word} {number}",
        f"#define {prefix}_{word}_BYTES UINT64_C({spec.nbytes})",
        f"#define {prefix}_{word}_ALIGNMENT {numpy_dtype(spec.dtype).itemsize}",
    ]


def _wrapped(text: str) -> str:
    """``text`` in lines of a comment."""
    return "\n * ".join(wrap(text, 110))


def _up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment
