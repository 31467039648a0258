"""Kernels for a simulated device: the compiler's C as a shared library, whose functions take arrays."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from landbridge.codegen.c import print_kernels
from landbridge.errors import CodegenError, KernelBuildError
from landbridge.executable.device_image import DeviceImage, Launch
from landbridge.executable.parts import ModuleImage
from landbridge.targets import Option, Target, TargetKind, c_compiler
from landbridge.targets.arithmetic import ARITHMETIC_OPTIONS

_int = ctypes.c_int64

FORMAT = "mutant-elf"
KIND = TargetKind(
    name="mutant",
    doc="the device that mutants are made of",
    options=(
        Option("vector-bits", "int", "Bits of a vector register.", 128, minimum=32),
        Option("vector-registers", "int", "Vector registers.", 16, minimum=4),
        *ARITHMETIC_OPTIONS,
    ),
    device_types=("mutant",),
    default_for=("mutant",),
    formats=(FORMAT,),
)


#: Workgroups of the device for each task of a kernel: the first does it, the others are there to be counted.
PLACES = 4096


def generate(module: ModuleOp, target: Target, edit: Callable[[str], str] = str) -> ModuleImage:
    """The code generator of ``KIND``; ``edit`` changes the C that it prints."""
    compiler = c_compiler.find()
    if compiler is None:
        raise CodegenError("target 'mutant' needs a C compiler and finds none")
    text, printed = print_kernels(module)
    sequences = {name: replace(each, launches=tuple(map(_spread, each.launches))) for name, each in printed.items()}
    with TemporaryDirectory() as folder:
        source, library = Path(folder, "kernels.c"), Path(folder, "kernels.so")
        source.write_text(edit(text), encoding="utf-8")
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-std=gnu11", "-w", source, "-o", library], check=True)
        return ModuleImage(target.to_json(), DeviceImage(FORMAT, library.read_bytes(), sequences))


def _spread(launch: Launch) -> Launch:
    return replace(launch, grid=(launch.grid[0] * PLACES, *launch.grid[1:]))


def loaded(binary: bytes) -> Library:
    """``binary`` as a library, or KernelBuildError."""
    try:
        with NamedTemporaryFile(suffix=".so") as file:
            file.write(binary)
            file.flush()
            return Library(ctypes.CDLL(file.name))
    except OSError as error:
        raise KernelBuildError(f"mutant: {error}") from error


class Library:
    """What ``sim:lazy`` takes for a module: its attributes are functions of grid, block and arrays."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Callable[..., None]:
        return partial(_call, getattr(self._library, name))

    def run(self, name: str, grid: tuple[int, int, int], operands: Sequence[int | list[int]]) -> None:
        """Call a function on addresses: of an operand in rows, on those of all its rows."""
        tables = {i: (ctypes.c_void_p * len(o))(*o) for i, o in enumerate(operands) if isinstance(o, list)}
        addresses = [ctypes.addressof(tables[i]) if i in tables else o for i, o in enumerate(operands)]
        getattr(self._library, name)((ctypes.c_void_p * len(operands))(*addresses), _int(0), _int(grid[0] // PLACES))


def _call(function: Any, grid: tuple[int, int, int], block: tuple[int, int, int], *arrays: Any) -> None:
    addresses = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
    function(addresses, _int(0), _int(grid[0] // PLACES))
