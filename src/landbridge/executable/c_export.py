"""Writes an Executable for C: a header, a static and a shared library, and the weights inside them or in a file."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np

from landbridge.errors import ExecutableError, InputError
from landbridge.executable import abi
from landbridge.executable.c_header import c_header
from landbridge.executable.c_program import CProgram, CWeights, c_programs
from landbridge.executable.executable import Executable
from landbridge.executable.parts import CodeImage
from landbridge.executable.read_only_data import REFERENCE_BYTES, ReadOnlyData
from landbridge.executable.relocatable import static_library
from landbridge.executable.shared_library import shared_library
from landbridge.files.output_file import check_outputs, open_output

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


def export_c(executable: Executable, folder: str | Path, name: str, *, separate_weights: bool = False) -> list[Path]:
    """Writes ``name.h``, ``libname.a`` and ``libname.so`` to ``folder``, which is made if it is missing.

    ``separate_weights``: the weights are a file ``name.weights``, to be mapped, and not part of the libraries. Returns
    the files. Raises InputError for a name that is no identifier of lower-case letters, digits and underscores,
    ExecutableError for what C alone cannot run, OutputFileError as ``Executable.save``; then no file is written.
    """
    check_name(name)
    programs, places, image = c_programs(executable)
    weights = _weights(executable, places)
    whole, table = _whole_image(image, programs)
    exports = {f"{name}_{owned}": image.symbols[symbol] for owned, symbol in _RUNTIME.items()}
    exports[f"{name}_table"] = table
    data = None
    if not separate_weights:
        exports[f"{name}_weights"] = len(whole.code)
        data = ReadOnlyData(weights, len(whole.code))
        whole = replace(whole, code=whole.code + bytes(REFERENCE_BYTES))
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
    location = Path(os.fspath(folder))
    location.mkdir(parents=True, exist_ok=True)
    files = [location / file for file in contents]
    check_outputs(files, executable.sources)
    with ExitStack() as written:  # all files or none: a header fits only its own libraries
        for file, content in zip(files, contents.values(), strict=True):
            opened = written.enter_context(open_output(file, executable.sources, executable=file.suffix == ".so"))
            opened.write(content)
            opened.flush()
    return files


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
    code += bytes(-len(code) % abi.LARGEST_PAGE[image.isa])
    function = len(code)
    table = function + 16
    code += _GIVE_ADDRESS[image.isa](function, table).ljust(16, b"\0")
    for program in programs:
        code += program.table(len(code), image.symbols.__getitem__)
    code += bytes(-len(code) % 16)
    return replace(image, code=bytes(code)), function


def _give_address_x86_64(at: int, target: int) -> bytes:
    return b"\x48\x8d\x05" + struct.pack("<i", target - (at + 7)) + b"\xc3"  # lea target(%rip), %rax; ret


def _give_address_aarch64(at: int, target: int) -> bytes:
    adr = 0x10000000 | (target - at & 3) << 29 | (target - at >> 2 & 0x7FFFF) << 5  # adr x0, target
    return struct.pack("<II", adr, 0xD65F03C0)  # ret


#: By instruction set: a function at an offset of an image that returns the address of another offset, up to 16 bytes.
_GIVE_ADDRESS: dict[str, Callable[[int, int], bytes]] = {
    "x86_64": _give_address_x86_64,
    "aarch64": _give_address_aarch64,
}
