"""Shared libraries written without a linker, read by the system's loader."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from landbridge.errors import ExecutableError
from landbridge.executable.packed import PackedKernel, with_packed_functions
from landbridge.executable.parts import CodeImage, TensorSpec
from landbridge.executable.shared_library import shared_library
from landbridge.instruction_sets.registry import instruction_set

PAGE = instruction_set("x86_64").elf.page
RETURN_7 = b"\xb8\x07\x00\x00\x00\xc3"  # mov $7, %eax; ret
#: jmp *slot(%rip), with the slot at the start of the second page.
JUMP_TO_SLOT = b"\xff\x25" + struct.pack("<i", PAGE - 64 - 6)
#: mov slot(%rip), %rax; ret, with the slot 8 bytes further.
LOAD_SLOT = b"\x48\x8b\x05" + struct.pack("<i", PAGE + 8 - 128 - 7) + b"\xc3"


def image() -> CodeImage:
    """``seven`` returns 7, ``absolute`` is the C library's labs, ``address`` returns the address of ``seven``."""
    code = bytearray(2 * PAGE)
    code[: len(RETURN_7)] = RETURN_7
    code[64 : 64 + len(JUMP_TO_SLOT)] = JUMP_TO_SLOT
    code[128 : 128 + len(LOAD_SLOT)] = LOAD_SLOT
    symbols = {"seven": 0, "absolute": 64, "address": 128}
    return CodeImage("x86_64", bytes(code), symbols, {"labs": (PAGE,)}, (PAGE + 8,))


def load(made: bytes, directory: Path) -> ctypes.CDLL:
    path = directory / "made.so"
    path.write_bytes(made)
    return ctypes.CDLL(str(path))


def test_the_loader_fills_the_slots(tmp_path: Path) -> None:
    library = load(shared_library(image(), ["seven", "absolute", "address"]), tmp_path)
    assert library.seven() == 7
    library.absolute.restype = ctypes.c_long
    assert library.absolute(ctypes.c_long(-(1 << 40))) == 1 << 40
    library.address.restype = ctypes.c_void_p
    assert library.address() == ctypes.cast(library.seven, ctypes.c_void_p).value


def test_only_exports_are_visible(tmp_path: Path) -> None:
    library = load(shared_library(image(), ["seven"]), tmp_path)
    assert library.seven() == 7
    with pytest.raises(AttributeError):
        library.address  # noqa: B018


@pytest.mark.parametrize("count", [1, 2, 50, 1000])
def test_every_symbol_is_found(count: int, tmp_path: Path) -> None:
    names = [f"f{i}" for i in range(count)]
    library = load(shared_library(replace(image(), symbols=dict.fromkeys(names, 0)), names), tmp_path)
    assert all(getattr(library, name)() == 7 for name in names)


def test_images_that_cannot_be_exported() -> None:
    with pytest.raises(ExecutableError, match="for x86_64, aarch64, armv7, riscv64; this image is for powerpc64le"):
        shared_library(replace(image(), isa="powerpc64le"), [])
    with pytest.raises(ExecutableError, match="function 'late' shares a page"):
        shared_library(replace(image(), symbols={"late": PAGE + 64}), ["late"])


def test_packed_functions_need_the_checker_and_a_known_instruction_set() -> None:
    kernels = {"seven": PackedKernel(1, (TensorSpec("", (2, 3), "float32"),))}
    with pytest.raises(ExecutableError, match="has no landbridge_packed_v3"):
        with_packed_functions(image(), kernels)
    known = replace(image(), symbols={**image().symbols, "landbridge_packed_v3": 0})
    made = with_packed_functions(known, kernels)
    assert made.code.startswith(known.code) and made.symbols["__tvm_ffi_seven"] > len(known.code)
    with pytest.raises(
        ExecutableError, match="made for images of x86_64, aarch64, armv7, riscv64; this is for powerpc64le"
    ):
        with_packed_functions(replace(known, isa="powerpc64le"), kernels)
