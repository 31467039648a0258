"""Writes an Executable as C for processors without an operating system: a header, the program, and its weights."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.errors import ExecutableError
from landbridge.executable.c_header import tensor_constants
from landbridge.executable.executable import Executable
from landbridge.executable.freestanding_program import (
    ALIGNMENT,
    FreestandingProgram,
    freestanding_image,
    freestanding_program,
)
from landbridge.files.output_file import write_together
from landbridge.instruction_sets.code_forms import ADDRESS_BYTES

#: The numbers on a line of weights.
_ON_LINE = {1: 24, 2: 12, 4: 8, 8: 4}
#: Sizes and addresses of these processors have 32 bits.
_LARGEST = 1 << 31


def export_freestanding(
    executable: Executable, folder: str | Path, name: str, *, ram_bytes: int | None = None
) -> list[Path]:
    """Writes ``name.h``, ``name.c`` and ``name_weights.c`` to ``folder``, which is made if it is missing.

    ``ram_bytes``: the memory that the program may take, in bytes. Returns the files. Raises ExecutableError for a
    program that needs more, and as ``freestanding_program`` does; OutputFileError as ``Executable.save``. Then no file
    is written.
    """
    program = freestanding_program(executable, name)
    _check_sizes(executable, program, ram_bytes)
    executable.check_files()
    contents = {
        f"{name}.h": _filled("freestanding.h", name, _header_pieces(name, executable, program)),
        f"{name}.c": _source(name, executable, program),
        f"{name}_weights.c": _weights(name, executable, program),
    }
    encoded = {file: content.encode() for file, content in contents.items()}
    return write_together(folder, encoded, executable.sources)  # a header fits only its own program


def weights_bytes(executable: Executable, program: FreestandingProgram) -> int:
    """Returns the bytes of flash memory that the weights of ``program`` take."""
    return sum(executable.constants[each].nbytes for each in program.weights)


def _check_sizes(executable: Executable, program: FreestandingProgram, ram_bytes: int | None) -> None:
    needed = program.memory_bytes
    if ram_bytes is not None and needed > ram_bytes:
        planned = f"{program.tensor_bytes:,} of tensors and {program.workspace_bytes:,} of temporaries"
        raise ExecutableError(
            f"the program needs {needed:,} bytes of memory ({planned}), and --ram allows {ram_bytes:,}; `landbridge "
            "plan` shows which tensors live at the same time: make inputs smaller, quantize to int8, or cut the model "
            "there"
        )
    for what, nbytes in (("memory", needed), ("weights", weights_bytes(executable, program))):
        if nbytes >= _LARGEST:
            raise ExecutableError(
                f"the program has {nbytes:,} bytes of {what}, and addresses of 32 bits reach {_LARGEST:,}; export it "
                "for Linux ('llvm')"
            )


def _header_pieces(name: str, executable: Executable, program: FreestandingProgram) -> dict[str, str]:
    upper, main = name.upper(), executable.main
    lines = [
        f"#define {upper}_MEMORY_BYTES UINT32_C({program.memory_bytes})",
        f"#define {upper}_MEMORY_ALIGNMENT {ALIGNMENT}",
        f"#define {upper}_WEIGHTS_BYTES UINT32_C({weights_bytes(executable, program)})",
        *tensor_constants(upper, executable),
    ]
    return {
        "LB_CONSTANTS": "\n".join(lines).replace("UINT64_C", "UINT32_C"),
        "LB_TENSOR_BYTES": f"{program.tensor_bytes:,}",
        "LB_WORKSPACE_BYTES": f"{program.workspace_bytes:,}",
        "LB_COUNT": str(len(main.inputs) + len(main.outputs)),
    }


def _source(name: str, executable: Executable, program: FreestandingProgram) -> str:
    image, main = freestanding_image(executable), executable.main
    assert image is not None
    words = [f"static const int64_t {name}_words_{i}[] = {{{_numbers(w)}}};" for i, w in enumerate(program.words)]
    pieces = {
        "LB_KERNELS": image.code.decode(),
        "LB_WEIGHTS": "\n".join(_declaration(name, i, executable, w) for i, w in enumerate(program.weights)),
        "LB_WORDS": "\n".join(words),
        "LB_PREPARED": "\n".join(program.prepared),
        "LB_RUN": "\n".join(program.run),
        "LB_WORKSPACE_AT": str(program.workspace_at),
        "LB_SIZES": "".join(f"{spec.nbytes}, " for spec in (*main.inputs, *main.outputs)) + "0",
        "LB_ALIGNMENTS": "".join(f"{numpy_dtype(s.dtype).itemsize}, " for s in (*main.inputs, *main.outputs)) + "1",
    }
    return _filled("freestanding.c", name, pieces)


def _weights(name: str, executable: Executable, program: FreestandingProgram) -> str:
    parts = []
    for number, constant in enumerate(program.weights):
        array = np.ascontiguousarray(executable.constants[constant])
        size = array.dtype.itemsize if array.dtype.itemsize in _ON_LINE else 1
        words = array.reshape(-1).view(f"<u{size}") if array.size else np.zeros(1, np.uint8)
        texts = [f"0x{word:x}" for word in words.tolist()]
        count = _ON_LINE[words.dtype.itemsize]
        lines = [", ".join(texts[at : at + count]) for at in range(0, len(texts), count)]
        described = re.sub(r"[^ -~]|\*/|/\*", "?", f"{constant}: {array.dtype} {list(array.shape)}")
        head = f"/* {described} */\n{_declaration(name, number, executable, constant, define=True)}"
        parts.append("\n".join([f"{head} = {{", ",\n".join(lines), "};"]))
    return _filled("freestanding_weights.c", name, {"LB_ARRAYS": "\n".join(parts)})


def _declaration(name: str, number: int, executable: Executable, constant: str, define: bool = False) -> str:
    array = executable.constants[constant]
    size = array.dtype.itemsize if array.size and array.dtype.itemsize in _ON_LINE else 1
    length = max(array.nbytes // size, 1)
    kind = f"const uint{8 * size}_t {name}_weight_{number}[{length}]"
    if define:
        return f"LB_NAME_WEIGHTS_SECTION _Alignas({ADDRESS_BYTES}) {kind}".replace("LB_NAME", name.upper())
    return f"extern {kind};"


def _numbers(values: tuple[int, ...]) -> str:
    return ", ".join(map(str, values))


def _filled(file: str, name: str, pieces: dict[str, str]) -> str:
    """Returns template ``file`` with ``pieces`` and the program's name in the places of their words."""
    text = files(__package__).joinpath(file).read_text(encoding="utf-8")
    words = {"lb_name": name, "LB_NAME": name.upper(), **pieces}
    pattern = "|".join(rf"(?<![A-Za-z0-9]){word}(?![A-Z])" for word in sorted(words, key=len, reverse=True))
    return re.sub(pattern, lambda match: words[match[0]], text)
