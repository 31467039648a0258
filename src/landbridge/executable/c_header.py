"""The header of a program that is exported for C: constants, and functions that bind and run its records."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from textwrap import wrap

from landbridge.dtypes import numpy_dtype
from landbridge.executable import abi
from landbridge.executable.c_program import CProgram
from landbridge.executable.c_sizes import bytes_of, c_sizes, template
from landbridge.executable.cpu_features import cpuid_bits, hwcap_bits, saved_registers, sve_bytes
from landbridge.executable.executable import Executable
from landbridge.executable.parts import CodeImage, TensorSpec
from landbridge.sizes.size import Size

_USAGE = """ *   static _Alignas(LB_NAME_MEMORY_ALIGNMENT) unsigned char memory[LB_NAME_MEMORY_BYTES];
 *   lb_name_program self;
 *   lb_name_init(&self, memory, sizeof memory);
 *   lb_name_set_input(&self, 0, frame);  lb_name_set_output(&self, 0, result);
 *   lb_name_run(&self);"""
_OPEN_USAGE = """ *   lb_name_sizes sizes = {...};  if (lb_name_check_sizes(&sizes) != LB_NAME_OK) ...
 *   void *memory = ...;  lb_name_memory_bytes(&sizes) of them, at a multiple of LB_NAME_MEMORY_ALIGNMENT
 *   lb_name_program self;
 *   lb_name_init(&self, &sizes, memory, lb_name_memory_bytes(&sizes));
 *   lb_name_set_input(&self, 0, frame);  lb_name_set_output(&self, 0, result);
 *   lb_name_run(&self);"""


def c_header(
    name: str,
    executable: Executable,
    programs: Sequence[CProgram],
    weights_bytes: int,
    image: CodeImage,
    separate_weights: bool,
) -> str:
    """Returns the text of ``name.h``; ``separate_weights``: the weights are a file that the application maps."""
    main = executable.main
    upper = name.upper()
    alignment = max(program.alignment for program in programs)
    tensors = max(8 * (len(program.words) + len(program.sizes)) for program in programs)
    workspace_at = tensors + -tensors % alignment
    workspace_bytes = executable.scratch_bytes if executable.scratch_bytes > abi.STACK_TEMPORARY_BYTES else 0
    tensors = workspace_at + workspace_bytes
    tensors += -tensors % alignment
    lines = []
    if not executable.is_open:
        lines += [f"#define {upper}_MEMORY_BYTES UINT64_C({tensors + programs[0].tensor_bytes})"]
    lines += [f"#define {upper}_MEMORY_ALIGNMENT {alignment}"]
    lines += [f"#define {upper}_WEIGHTS_BYTES UINT64_C({weights_bytes})"]
    lines += [f"#define {upper}_INPUTS {len(main.inputs)}", f"#define {upper}_OUTPUTS {len(main.outputs)}"]
    for kind, specs in (("INPUT", main.inputs), ("OUTPUT", main.outputs)):
        taken: set[str] = set()
        for number, spec in enumerate(specs):
            lines += _tensor(f"{upper}_{kind}", number, spec, taken)
    extent_values = [{spec.name: number for number, spec in enumerate(specs)} for specs in (main.outputs, main.inputs)]
    for output, input in main.aliases:
        which = f"Output {extent_values[0][output]} may be set to the address of input {extent_values[1][input]}"
        lines += [f"/* {which}: it is updated there. */"]
    for number, spec in enumerate(main.inputs):
        if any(isinstance(extent, Size) for extent in spec.elements or ()):
            lines += [f"/* Elements of input {number} are dimensions: give it the numbers that {name}_sizes has. */"]
    text = files(__package__).joinpath("c_header.h").read_text(encoding="utf-8")
    pieces = {
        "LB_USAGE": _OPEN_USAGE if executable.is_open else _USAGE,
        "LB_CHECK_CPU": files(__package__).joinpath(f"c_cpu_{image.isa}.h").read_text(encoding="utf-8").rstrip(),
        "LB_SIZES": "",
    }
    if executable.is_open:
        pieces |= {"LB_SIZES": template().rstrip(), **c_sizes(programs)}
    for word, value in {
        **pieces,
        **_cpu(image),
        "lb_name": name,
        "LB_NAME": upper,
        "LB_CONSTANTS": "\n".join(lines),
        "LB_ISA": _wrapped(f"{image.isa}, with {', '.join(image.features) or 'no extensions'}"),
        "LB_MACHINE": image.isa,
        "LB_STACK": str(abi.KERNEL_STACK_BYTES),
        "LB_WORKSPACE_AT": str(workspace_at),
        "LB_WORKSPACE_BYTES": str(workspace_bytes),
        "LB_WEIGHTS_APART": str(int(separate_weights)),
        "LB_OPEN": str(int(executable.is_open)),
        "LB_TENSORS": str(tensors),
        "LB_ALIGNMENTS": "".join(f"{numpy_dtype(s.dtype).itemsize}, " for s in (*main.inputs, *main.outputs)) + "1",
    }.items():
        text = re.sub(rf"(?<![A-Za-z0-9]){word}(?![A-Z])", lambda _, value=value: value, text)  # type: ignore[misc]
    return text


def _cpu(image: CodeImage) -> dict[str, str]:
    """Returns the values that the check of the CPU in the header compares."""
    if image.isa == "aarch64":
        wanted = {
            f"LB_HWCAP_{which}": f"{hwcap_bits(kind, image.features)}ul"
            for which, kind in (("FIRST", 16), ("SECOND", 26))
        }
        return {**wanted, "LB_SVE_BYTES": str(sve_bytes(image.features))}
    rows = [
        f"{{{leaf}u, {part}, {register}, {bits}u}}"
        for (leaf, part, register), bits in cpuid_bits(image.features).items()
    ]
    return {"LB_WANTED": ", ".join(rows) or "{1, 0, 3, 1 << 26}", "LB_SAVED": f"{saved_registers(image.features)}"}


def _tensor(prefix: str, number: int, spec: TensorSpec, taken: set[str]) -> list[str]:
    word = re.sub(r"[^A-Za-z0-9]+", "_", spec.name).strip("_").upper() or str(number)
    while not taken.isdisjoint(names := {word + suffix for suffix in ("", "_BYTES", "_ALIGNMENT")}):
        word = f"{word}_{number}"
    taken |= names
    strides = f", strides {list(spec.strides)}" if spec.strides else ""
    nbytes = bytes_of(spec)
    sized = [] if isinstance(nbytes, Size) else [f"#define {prefix}_{word}_BYTES UINT64_C({nbytes})"]
    text = re.sub(r"[^ -~]|\*/", "?", f"{spec.name}: {spec.dtype} [{', '.join(map(str, spec.shape))}]{strides}")
    return [
        f"/* {text} */",
        f"#define {prefix}_{word} {number}",
        *sized,
        f"#define {prefix}_{word}_ALIGNMENT {numpy_dtype(spec.dtype).itemsize}",
    ]


def _wrapped(text: str) -> str:
    """Returns ``text`` wrapped into the lines of a comment."""
    return "\n * ".join(wrap(text, 110))
