"""The header of a program that is exported for C: constants, and functions that bind and run its records."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from math import prod
from textwrap import wrap

from landbridge.dtypes import dtype as dtype_of
from landbridge.executable import abi
from landbridge.executable.c_program import CProgram
from landbridge.executable.c_sizes import bytes_of, c_sizes, template
from landbridge.executable.executable import Executable
from landbridge.executable.parts import CodeImage, StateGrowth, TensorSpec
from landbridge.executable.state_growth import slides_of
from landbridge.instruction_sets.registry import instruction_set
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
    lines += tensor_constants(upper, executable)
    for number, spec in enumerate(main.inputs):
        if any(isinstance(extent, Size) for extent in spec.elements or ()):
            lines += [f"/* Elements of input {number} are dimensions: give it the numbers that {name}_sizes has. */"]
    text = files(__package__).joinpath("c_header.h").read_text(encoding="utf-8")
    processor = instruction_set(image.isa).processor
    pieces = {
        "LB_USAGE": _OPEN_USAGE if executable.is_open else _USAGE,
        "LB_CHECK_CPU": processor.check_source().rstrip(),
        "LB_SIZES": "",
    }
    if executable.is_open:
        pieces |= {"LB_SIZES": template().rstrip(), **c_sizes(programs)}
    for word, value in {
        **pieces,
        **processor.check_values(image.features),
        "lb_name": name,
        "LB_NAME": upper,
        "LB_CONSTANTS": "\n".join(lines),
        "LB_ISA": _wrapped(f"{image.isa}, with {', '.join(image.features) or 'no extensions'}"),
        "LB_MACHINE": image.isa,
        "LB_CONDITION": instruction_set(image.isa).c_language.condition,
        "LB_STACK": str(abi.KERNEL_STACK_BYTES),
        "LB_WORKSPACE_AT": str(workspace_at),
        "LB_WORKSPACE_BYTES": str(workspace_bytes),
        "LB_WEIGHTS_APART": str(int(separate_weights)),
        "LB_OPEN": str(int(executable.is_open)),
        "LB_TENSORS": str(tensors),
        "LB_ALIGNMENTS": "".join(f"{dtype_of(s.dtype).itemsize}, " for s in (*main.inputs, *main.outputs)) + "1",
    }.items():
        text = re.sub(rf"(?<![A-Za-z0-9]){word}(?![A-Z])", lambda _, value=value: value, text)  # type: ignore[misc]
    return text


def tensor_constants(upper: str, executable: Executable) -> list[str]:
    """Returns the lines of a header that describe inputs and outputs: numbers, shapes, dtypes, bytes, alignments and
    which may share memory. ``upper`` begins their names.
    """
    main, slides = executable.main, slides_of(executable)
    lines = [f"#define {upper}_INPUTS {len(main.inputs)}", f"#define {upper}_OUTPUTS {len(main.outputs)}"]
    for kind, specs in (("INPUT", main.inputs), ("OUTPUT", main.outputs)):
        taken: set[str] = set()
        for number, spec in enumerate(specs):
            slide = slides.get(spec.name) if kind == "INPUT" else None
            lines += _tensor(f"{upper}_{kind}", number, spec, taken, slide)
    extent_values = [{spec.name: number for number, spec in enumerate(specs)} for specs in (main.outputs, main.inputs)]
    for output, input in main.aliases:
        which = f"Output {extent_values[0][output]} may be set to the address of input {extent_values[1][input]}"
        lines += [f"/* {which}: it is updated there. */"]
    return lines


def _tensor(prefix: str, number: int, spec: TensorSpec, taken: set[str], slide: StateGrowth | None) -> list[str]:
    word = re.sub(r"[^A-Za-z0-9]+", "_", spec.name).strip("_").upper() or str(number)
    while not taken.isdisjoint(names := {word + suffix for suffix in ("", "_BYTES", "_ALIGNMENT", "_SLIDE")}):
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
        f"#define {prefix}_{word}_ALIGNMENT {dtype_of(spec.dtype).itemsize}",
        *([] if slide is None else _slide(f"{prefix}_{word}_SLIDE", spec, slide)),
    ]


def _slide(constant: str, spec: TensorSpec, slide: StateGrowth) -> list[str]:
    """Returns how ``spec``, a state that slides, gets to the next run; ``constant``: the elements from run to run."""
    step = prod((slide.after - slide.before, *spec.shape[slide.axis + 1 :]))
    if isinstance(step, int):
        by, lines = constant, [f"#define {constant} {step}"]
    else:
        by, lines = f"{step} elements", []
    return [
        *lines,
        f"/* A run reads the first {slide.before} of {slide.after} along axis {slide.axis}, and writes the others. Set "
        "this input and its output",
        f"   further on by {by} for the next run, in memory that goes on there.",
        "   At its end, copy the window to its begin, all but the last of these elements. */",
    ]


def _wrapped(text: str) -> str:
    """Returns ``text`` wrapped into the lines of a comment."""
    return "\n * ".join(wrap(text, 110))
