"""RISC-V objects linked here are byte for byte what lld makes of them at the same places. Programs run in
``tests/boards``."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from landbridge.codegen.elf_object import ElfObject
from landbridge.codegen.link import link_objects
from landbridge.codegen.llvm.compile_jobs import Job, compile_all
from landbridge.codegen.llvm.machine import Machine
from landbridge.errors import CodegenError
from landbridge.instruction_sets.riscv64.relocations import ELF
from tests.instruction_sets.lld import ADDRESSES, compare

BASELINE = "+m,+a,+f,+d,+c"
MACHINE = Machine("riscv64-unknown-linux-gnu", "generic", BASELINE)
#: As linkers that shorten code want it: more references, and places that they may shorten.
RELAXED = Machine("riscv64-unknown-linux-gnu", "generic", f"{BASELINE},+relax")
BRANCH, JAL, CALL, HI20, LO12_I, LO12_S, ADD32, RVC_BRANCH, RVC_JUMP, PCREL32 = 16, 17, 19, 23, 24, 25, 35, 44, 45, 57

#: Addresses of constants, of functions, of tables of distances, and a table of jumps.
TEXTS = (
    """
    @longs = constant [2 x i64] [i64 5, i64 6]
    @floats = constant [600 x float] zeroinitializer
    define i64 @twice(i64 %x) { %y = shl i64 %x, 1 ret i64 %y }
    """,
    """
    @longs = external hidden constant [2 x i64]
    @floats = external hidden global [600 x float]
    declare hidden i64 @twice(i64)
    define i64 @loads() {
      %a = load i64, ptr getelementptr (i64, ptr @longs, i64 1), align 8
      %r = call i64 @twice(i64 %a)
      store float 1.0, ptr getelementptr (float, ptr @floats, i64 3)
      ret i64 %r
    }
    define ptr @which(i64 %i) { %p = getelementptr float, ptr @floats, i64 %i ret ptr %p }
    define i64 @last(i64 %x) { %y = tail call i64 @twice(i64 %x) ret i64 %y }
    """,
    ADDRESSES,
)
#: Each case calls another function, so that there is a table.
JUMPS = "\n".join(
    [
        *(f"declare i32 @h{n}(i32)" for n in range(6)),
        "define i32 @jumps(i32 %i, i32 %j) { switch i32 %i, label %d [",
        *(f"i32 {n}, label %c{n}" for n in range(6)),
        "]",
        *(f"c{n}: %x{n} = call i32 @h{n}(i32 %j) %y{n} = add i32 %x{n}, 1 ret i32 %y{n}" for n in range(6)),
        "d: ret i32 0 }",
    ]
)


def objects(*texts: str, machine: Machine = MACHINE) -> list[bytes]:
    return compile_all([Job(text, vectorize=True) for text in texts], machine)


def test_lld_makes_the_same(tmp_path: Path) -> None:
    _, compared = compare("elf64lriscv", objects(*TEXTS), {2, CALL, HI20, LO12_I, LO12_S}, tmp_path)
    assert compared >= 2500


def test_objects_for_linkers_that_shorten_code_are_linked_as_they_are() -> None:
    (made,), (plain,) = objects(JUMPS, machine=RELAXED), objects(JUMPS)
    kinds = {reference.kind for reference in ElfObject(made).references()}
    assert kinds >= {CALL, 51, ADD32, 39} and 51 not in {r.kind for r in ElfObject(plain).references()}
    image = link_objects([made])
    function = image.symbols["jumps"]
    (at,) = (at for at in range(function, function + 64, 2) if _address(image.code, at) is not None)
    table = _address(image.code, at)
    assert table is not None
    places = [table + word for word in struct.unpack_from("<6i", image.code, table)]
    assert len(set(places)) == 6 and all(function < place < table for place in places), "cases of the function"


def _address(code: bytes, at: int) -> int | None:
    """What AUIPC and ADDI at ``at`` give; None for others."""
    first, second = struct.unpack_from("<II", code, at)
    register = first >> 7 & 31
    if first & 0x7F != 0x17 or second & 0xFFFFF != register << 15 | register << 7 | 0x13:
        return None
    return at + _signed(first >> 12, 20) * 4096 + _signed(second >> 20, 12)


def _signed(value: int, bits: int) -> int:
    return value - ((value >> bits - 1) << bits)


def test_calls_of_imports_go_through_a_slot() -> None:
    (made,) = objects(
        "declare i64 @elsewhere(i64)\n"
        "define i64 @f(i64 %x) { %y = call i64 @elsewhere(i64 %x) %z = add i64 %y, 1 ret i64 %z }"
    )
    image = link_objects([made])
    (slot,) = image.imports["elsewhere"]
    assert slot % 4096 == 0
    (stub,) = (at for at in range(0, image.slots_start, 16) if image.code[at + 8 : at + 16] == ELF.stub[8:])
    high, load = struct.unpack_from("<II", image.code, stub)
    assert stub + _signed(high >> 12, 20) * 4096 + _signed(load >> 20, 12) == slot
    assert (high & 0xFFF, load & 0xFFFFF) == (0xE17, 0xE3E03)
    assert image.slot_references == ((stub, HI20, slot), (stub + 4, LO12_I, stub)), "the second names the first"


@pytest.mark.parametrize("distance", [0, 2047, 2048, -2048, -2049, 0x12345678, -0x12345678])
def test_two_halves_are_a_distance(distance: int) -> None:
    for second, empty in ((LO12_I, 0x13), (LO12_S, 0x23)):
        code = bytearray(struct.pack("<II", 0x17, empty))
        ELF.relocations[HI20].write(code, 0, distance)
        ELF.relocations[second].write(code, 4, 4 + distance)
        high, low = struct.unpack("<II", code)
        bits = low >> 20 if second == LO12_I else low >> 25 << 5 | low >> 7 & 31
        assert _signed(high >> 12, 20) * 4096 + _signed(bits, 12) == distance
        assert (high & 0xFFF, low & 0x7F) == (0x17, empty)


@pytest.mark.parametrize(
    ("kind", "empty", "distance", "word"),
    [  # by the GNU assembler
        (BRANCH, 0x00B50063, 0x0AA, 0x0AB50563),  # beq a0, a1, . + 0xaa
        (BRANCH, 0x00B50063, -4096, 0x80B50063),
        (JAL, 0x0000006F, 0x0A5A5A, 0x25BA506F),  # j . + 0xa5a5a
        (JAL, 0x0000006F, -2, 0xFFFFF06F),
        (RVC_BRANCH, 0xC101, 0xA4, 0xC155),  # c.beqz a0, . + 0xa4
        (RVC_JUMP, 0xA001, -0x156, 0xB56D),  # c.j . - 0x156
    ],
)
def test_branches(kind: int, empty: int, distance: int, word: int) -> None:
    code = bytearray(struct.pack("<III", 0, empty, 0))
    ELF.relocations[kind].write(code, 4, 4 + distance)
    assert struct.unpack("<III", code) == (0, word, 0)


@pytest.mark.parametrize(
    ("kind", "target"),
    [(HI20, 1 << 31), (BRANCH, 4096), (BRANCH, 3), (JAL, 1 << 20), (RVC_JUMP, 2048), (PCREL32, 1 << 31)],
)
def test_what_does_not_reach_is_refused(kind: int, target: int) -> None:
    with pytest.raises(CodegenError, match=f"does not reach {target}"):
        ELF.relocations[kind].write(bytearray(8), 0, target)


def test_objects_of_32_bits_are_refused() -> None:
    text = "define void @f() { ret void }"
    made = compile_all([Job(text, True)], Machine("riscv32-unknown-linux-gnu", "generic", BASELINE))
    with pytest.raises(CodegenError, match=r"machines 243 of 32 bits cannot .* legal: .*243 of 64 bits \(riscv64\)"):
        link_objects(made)
