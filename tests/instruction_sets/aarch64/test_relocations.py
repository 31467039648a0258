"""AArch64 objects linked here are byte for byte what lld makes of them at the same places."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from landbridge.codegen.link import link_objects
from landbridge.codegen.llvm.compile_jobs import Job, compile_all
from landbridge.codegen.llvm.machine import Machine
from landbridge.errors import CodegenError
from landbridge.instruction_sets.aarch64.relocations import ELF
from tests.instruction_sets.lld import ADDRESSES, compare

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
    ADDRESSES,
)


def objects(*texts: str) -> list[bytes]:
    return compile_all([Job(text, vectorize=True) for text in texts], MACHINE)


def test_lld_makes_the_same(tmp_path: Path) -> None:
    kinds = {257, 261, 275, 277, 278, 282, 283, 284, 285, 286, 299}
    assert compare("aarch64linux", objects(*TEXTS), kinds, tmp_path)[1] >= 200


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
        ELF.relocations[kind].write(bytearray(8), 0, target)


def test_unaligned_data_is_refused() -> None:
    with pytest.raises(CodegenError, match="not aligned"):
        ELF.relocations[299].write(bytearray(8), 0, 8)


def test_objects_of_two_instruction_sets_are_refused() -> None:
    text = "define void @{} {{ ret void }}"
    here = compile_all([Job(text.format("f()"), True)], Machine("x86_64-unknown-linux-gnu", "x86-64", ""))
    with pytest.raises(CodegenError, match=r"machines 62 of 64 bits, 183 of 64 bits"):
        link_objects([*here, *objects(text.format("g()"))])
