"""AArch64 objects linked here are byte for byte what lld makes of them at the same places."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from landbridge.codegen.elf_object import ElfObject
from landbridge.codegen.link import link_objects
from landbridge.codegen.llvm.compile_jobs import Job, compile_all
from landbridge.codegen.llvm.machine import Machine
from landbridge.codegen.relocations.aarch64 import AARCH64
from landbridge.errors import CodegenError
from tests.selection.installed import package

MACHINE = Machine("aarch64-unknown-linux-gnu", "cortex-a72", "")

#: Addresses of constants of every width that a load has a relocation for, of functions, of tables of distances.
TEXTS = (
    """
    @bytes = constant [3 x i8] c"abc"
    @halves = constant [2 x i16] [i16 7, i16 9]
    @words = constant [2 x i32] [i32 3, i32 4]
    @longs = constant [2 x i64] [i64 5, i64 6]
    @vector = constant <4 x float> <float 1.0, float 2.0, float 3.0, float 4.0>, align 16
    define i64 @twice(i64 %x) { %y = shl i64 %x, 1 ret i64 %y }
    """,
    """
    @bytes = external hidden constant [3 x i8]
    @halves = external hidden constant [2 x i16]
    @words = external hidden constant [2 x i32]
    @longs = external hidden constant [2 x i64]
    @vector = external hidden constant <4 x float>, align 16
    declare hidden i64 @twice(i64)
    define i64 @loads() {
      %a = load i8, ptr getelementptr (i8, ptr @bytes, i64 1), align 1
      %b = load i16, ptr getelementptr (i16, ptr @halves, i64 1), align 2
      %c = load i32, ptr getelementptr (i32, ptr @words, i64 1), align 4
      %d = load i64, ptr getelementptr (i64, ptr @longs, i64 1), align 8
      %a1 = zext i8 %a to i64
      %b1 = zext i16 %b to i64
      %c1 = zext i32 %c to i64
      %s = add i64 %a1, %b1
      %t = add i64 %s, %c1
      %u = add i64 %t, %d
      %r = call i64 @twice(i64 %u)
      %r1 = add i64 %r, 1
      ret i64 %r1
    }
    define <4 x float> @all() { %e = load <4 x float>, ptr @vector, align 16 ret <4 x float> %e }
    define ptr @which(i64 %i) { %p = getelementptr i16, ptr @halves, i64 %i ret ptr %p }
    define i64 @last(i64 %x) { %y = tail call i64 @twice(i64 %x) ret i64 %y }
    """,
    """
    @names = hidden constant [2 x ptr] [ptr @one, ptr @two]
    @distances = hidden constant [2 x i32] [
      i32 trunc (i64 sub (i64 ptrtoint (ptr @s0 to i64), i64 ptrtoint (ptr @distances to i64)) to i32),
      i32 trunc (i64 sub (i64 ptrtoint (ptr @s1 to i64), i64 ptrtoint (ptr @distances to i64)) to i32)]
    @s0 = hidden constant [2 x i8] c"a\\00"
    @s1 = hidden constant [2 x i8] c"b\\00"
    define internal i64 @one(i64 %x) noinline { ret i64 1 }
    define internal i64 @two(i64 %x) noinline { ret i64 2 }
    define i64 @choose(i64 %i, i64 %x) {
      %p = getelementptr ptr, ptr @names, i64 %i
      %t = load ptr, ptr %p
      %y = call i64 %t(i64 %x)
      ret i64 %y
    }
    """,
)


def objects(*texts: str) -> list[bytes]:
    return compile_all([Job(text, vectorize=True) for text in texts], MACHINE)


def linked_by_lld(made: list[bytes], places: list[dict[str, int]], folder: Path) -> bytes:
    """The bytes from address 0 of what lld makes of objects whose sections are put to ``places``."""
    package("ziglang", "boards")
    commands = []
    for number, data in enumerate(made):
        (folder / f"{number}.o").write_bytes(data)
        commands += [(at, f". = {at}; .part{at} : {{ {number}.o({name}) }}") for name, at in places[number].items()]
    script = " ".join(text for _, text in sorted(commands))
    (folder / "script").write_text(f"SECTIONS {{ {script} /DISCARD/ : {{ *(.eh_frame) *(.comment) *(.note*) }} }}")
    lld = [sys.executable, "-m", "ziglang", "ld.lld", "-m", "aarch64linux", "--no-relax", "-T", "script"]
    names = [f"{number}.o" for number in range(len(made))]
    cache = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [*lld, "--entry=0", *names, "-o", "out"], cwd=folder, capture_output=True, text=True, env=cache
    )
    assert done.returncode == 0, done.stderr
    elf = (folder / "out").read_bytes()
    (table,), (count,) = struct.unpack_from("<Q", elf, 32), struct.unpack_from("<H", elf, 56)
    image = bytearray()
    for i in range(count):
        kind, _, offset, address, _, size = struct.unpack_from("<IIQQQQ", elf, table + 56 * i)
        if kind == 1:
            image[len(image) :] = bytes(max(0, address + size - len(image)))
            image[address : address + size] = elf[offset : offset + size]
    return bytes(image)


def test_lld_makes_the_same(tmp_path: Path) -> None:
    made = objects(*TEXTS)
    image = link_objects(made)
    parsed = [ElfObject(data) for data in made]
    kinds = {reference.kind for obj in parsed for reference in obj.references()}
    assert kinds >= {257, 261, 275, 277, 278, 282, 283, 284, 285, 286, 299}, "each is written here"
    # Where each section came to lie is known by its contents' first symbol.
    places = []
    for obj in parsed:
        found: dict[str, int] = {}
        for symbol in obj.symbols:
            if symbol.name in image.symbols and 0 < symbol.section < len(obj.sections):
                section = obj.sections[symbol.section]
                found[section.name] = image.symbols[symbol.name] - symbol.value
        places.append(found)
    places[2][".data.rel.ro"] = min(image.relocations)
    theirs = linked_by_lld(made, places, tmp_path)
    compared = 0
    for obj, found in zip(parsed, places, strict=True):
        for section in obj.sections:
            if section.name in found:
                begin = found[section.name]
                assert image.code[begin : begin + section.size] == theirs[begin : begin + section.size], section.name
                compared += section.size
    assert compared >= 200


def test_calls_of_imports_go_through_a_slot() -> None:
    (made,) = objects(
        "declare i64 @elsewhere(i64)\n"
        "define i64 @f(i64 %x) { %y = call i64 @elsewhere(i64 %x) %z = add i64 %y, 1 ret i64 %z }"
    )
    image = link_objects([made])
    (slot,) = image.imports["elsewhere"]
    assert slot % 65536 == 0, "slots stand on pages of their own, whatever the kernel's pages are"
    (call,) = (at for at in range(0, 64, 4) if image.code[at + 3] >> 2 == 0b100101)
    (word,) = struct.unpack_from("<I", image.code, call)
    stub = call + 4 * (word & 0x3FFFFFF)
    adrp, load, branch = struct.unpack_from("<III", image.code, stub)
    page = (stub >> 12) + ((adrp >> 5 & 0x7FFFF) << 2 | adrp >> 29 & 3)
    assert (page << 12) + (load >> 10 & 0xFFF) * 8 == slot
    assert (adrp & 0x9F00001F, load & 0xFFC003FF, branch) == (0x90000010, 0xF9400210, 0xD61F0200)


@pytest.mark.parametrize(
    ("kind", "target"), [(283, 1 << 28), (280, 1 << 21), (274, 1 << 21), (261, 1 << 32), (275, 1 << 33)]
)
def test_what_does_not_reach_is_refused(kind: int, target: int) -> None:
    with pytest.raises(CodegenError, match="does not reach"):
        AARCH64.relocations[kind].write(bytearray(8), 0, target)


def test_unaligned_data_is_refused() -> None:
    with pytest.raises(CodegenError, match="not aligned"):
        AARCH64.relocations[299].write(bytearray(8), 0, 8)


def test_objects_of_two_instruction_sets_are_refused() -> None:
    text = "define void @{} {{ ret void }}"
    here = compile_all([Job(text.format("f()"), True)], Machine("x86_64-unknown-linux-gnu", "x86-64", ""))
    with pytest.raises(CodegenError, match=r"machines \[62, 183\]"):
        link_objects([*here, *objects(text.format("g()"))])
