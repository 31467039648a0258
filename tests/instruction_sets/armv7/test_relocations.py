"""Relocations of ARMv7: addends in instructions, and what is out of reach. Programs run in ``tests/boards``."""

from __future__ import annotations

import struct

import pytest

from landbridge.codegen.link import link_objects
from landbridge.codegen.llvm.compile_jobs import Job, compile_all
from landbridge.codegen.llvm.machine import Machine
from landbridge.errors import CodegenError
from landbridge.instruction_sets.armv7.relocations import ELF

MACHINE = Machine("armv7-unknown-linux-gnueabihf", "cortex-a9", "")
REL32, CALL, MOVW, MOVT = 3, 28, 45, 46
#: ``bl``, ``movw r0``, ``movt r0`` with nothing in them, and a word.
EMPTY = {REL32: 0, CALL: 0xEB000000, MOVW: 0xE3000000, MOVT: 0xE3400000}


@pytest.mark.parametrize(("kind", "distance"), [(REL32, -20), (CALL, -8), (CALL, 1 << 20), (MOVW, 0x7FFC), (MOVW, -8)])
def test_what_is_written_is_read_as_addend(kind: int, distance: int) -> None:
    code = bytearray(struct.pack("<II", 0xE1A00000, EMPTY[kind]))
    relocation = ELF.relocations[kind]
    relocation.write(code, 4, 4 + distance)
    assert relocation.read is not None and relocation.read(code, 4) == distance
    assert code[:4] == struct.pack("<I", 0xE1A00000)
    assert relocation.write is not None


@pytest.mark.parametrize("distance", [0x12345678, -0x12345678])
def test_two_halves_are_a_distance(distance: int) -> None:
    code = bytearray(struct.pack("<II", EMPTY[MOVW], EMPTY[MOVT]))
    ELF.relocations[MOVW].write(code, 0, distance)
    ELF.relocations[MOVT].write(code, 4, distance + 4)
    low, high = (word >> 4 & 0xF000 | word & 0xFFF for word in struct.unpack("<II", code))
    assert high << 16 | low == distance % (1 << 32)


@pytest.mark.parametrize("target", [6, 1 << 25, -(1 << 25) - 4])
def test_a_branch_that_does_not_reach(target: int) -> None:
    code = bytearray(struct.pack("<I", EMPTY[CALL]))
    with pytest.raises(CodegenError, match=f"does not reach {target}: 32 MiB are the most"):
        ELF.relocations[CALL].write(code, 0, target)


def test_calls_between_objects_and_of_imports() -> None:
    texts = (
        "declare i32 @g()\ndefine i32 @f() { %a = call i32 @g() ret i32 %a }",
        "declare i32 @h()\ndefine i32 @g() { %a = call i32 @h() %b = add i32 %a, 1 ret i32 %b }",
    )
    made = compile_all([Job(text, vectorize=False) for text in texts], MACHINE)
    image = link_objects(made)
    assert image.isa == "armv7" and set(image.symbols) == {"f", "g"}
    ((slot,),) = image.imports.values()
    (stub,) = (at for at in range(0, image.slots_start, 4) if image.code[at : at + 12] == ELF.stub[:12])
    (distance,) = struct.unpack_from("<i", image.code, stub + 12)
    assert stub + 4 + 8 + distance == slot >= image.slots_start
