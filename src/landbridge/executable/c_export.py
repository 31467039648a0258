"""Writes an Executable for C: a header, a static and a shared library, and the weights inside them or in a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from landbridge.errors import ExecutableError, InputError
from landbridge.executable import abi
from landbridge.executable.c_header import c_header
from landbridge.executable.c_program import CProgram, CWeights, c_programs
from landbridge.executable.executable import Executable
from landbridge.executable.freestanding_export import export_freestanding
from landbridge.executable.freestanding_program import freestanding_image
from landbridge.executable.parts import CodeImage
from landbridge.executable.read_only_data import ReadOnlyData
from landbridge.executable.relocatable import static_library
from landbridge.executable.shared_library import shared_library
from landbridge.files.output_file import write_together
from landbridge.instruction_sets.code_forms import ADDRESS_BYTES
from landbridge.instruction_sets.registry import instruction_set

_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]{0,60}")
#: Bytes within which instructions reach each other and data; AArch64's reach twice as far.
_REACH = 1 << 31
#: The runtime's functions, and how an exported program calls them.
_RUNTIME = {
    "run_records": abi.RUN_SYMBOL,
    "create_pool": abi.POOL_CREATE_SYMBOL,
    "destroy_pool": abi.POOL_DESTROY_SYMBOL,
}


def check_name(name: str) -> None:
    """Raises InputError for a name that ``export_c`` does not take."""
    if not _IDENTIFIER.fullmatch(name):
        raise InputError(f"{name!r} cannot begin names in C; legal: a lower-case letter, then those, digits and '_'")


def export_c(
    executable: Executable,
    folder: str | Path,
    name: str,
    *,
    separate_weights: bool = False,
    ram_bytes: int | None = None,
) -> list[Path]:
    """Writes ``name.h``, ``libname.a`` and ``libname.so`` to ``folder``, which is made if it is missing; of a program
    for target ``freestanding``, ``name.h``, ``name.c`` and ``name_weights.c``.

    ``separate_weights``: the weights are a file ``name.weights``, to be mapped, and not part of the libraries.
    ``ram_bytes``: the bytes of memory that a freestanding program may take. Returns the files. Raises InputError for a
    name that is no identifier of lower-case letters, digits and underscores, and for an option that is not for this
    program; ExecutableError for what C alone cannot run, OutputFileError as ``Executable.save``; then no file is
    written.
    """
    check_name(name)
    if freestanding_image(executable) is not None:
        if separate_weights:
            raise InputError(
                "weights of a freestanding program are constants in a C file of their own, and there is no file to "
                "map; leave --weights-apart out, and place them by the macro that the header names"
            )
        return export_freestanding(executable, folder, name, ram_bytes=ram_bytes)
    if ram_bytes is not None:
        raise InputError("--ram is for programs of target 'freestanding'; the program is for a system that has memory")
    programs, places, image = c_programs(executable)
    weights = _weights(executable, places)
    whole, table = _whole_image(image, programs)
    exports = {f"{name}_{owned}": image.symbols[symbol] for owned, symbol in _RUNTIME.items()}
    exports[f"{name}_table"] = table
    data = None
    if not separate_weights:
        exports[f"{name}_weights"] = len(whole.code)
        data = ReadOnlyData(weights, len(whole.code))
        whole = replace(whole, code=whole.code + bytes(ADDRESS_BYTES))
        if len(weights) + len(whole.code) >= _REACH:
            raise ExecutableError(
                f"code cannot address {len(weights):,} bytes of weights: export them as a separate file"
            )
    contents = {
        f"{name}.h": c_header(name, executable, programs, len(weights), image, separate_weights).encode(),
        f"lib{name}.a": static_library(whole, exports, f"{name}.o", data),
        f"lib{name}.so": shared_library(replace(whole, symbols=exports), exports, data, f"lib{name}.so"),
    }
    if separate_weights:
        contents[f"{name}.weights"] = weights
    # A header fits only its own libraries.
    return write_together(folder, contents, executable.sources, executables=(f"lib{name}.so",))


def _weights(executable: Executable, weights: CWeights) -> bytes:
    executable.check_files()
    content = bytearray(weights.nbytes)
    for name, at in weights.places.items():
        array = np.ascontiguousarray(executable.constants[name])
        content[at : at + array.nbytes] = array.tobytes()
    return bytes(content)


def _whole_image(image: CodeImage, programs: Sequence[CProgram]) -> tuple[CodeImage, int]:
    """Returns ``image`` with the tables after its slots, and the offset of a function that returns the first table."""
    code = bytearray(image.code)
    described = instruction_set(image.isa)
    form = described.for_libraries("libraries for C")
    code += bytes(-len(code) % described.elf.page)
    function = len(code)
    table = function + ADDRESS_BYTES
    code += form.address_of(function, table).ljust(ADDRESS_BYTES, b"\0")
    for program in programs:
        code += program.table(len(code), image.symbols.__getitem__)
    code += bytes(-len(code) % 16)
    return replace(image, code=bytes(code)), function
