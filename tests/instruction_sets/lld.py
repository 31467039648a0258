"""What lld makes of the objects that are linked here, to be compared byte for byte."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from landbridge.codegen.elf_object import ElfObject
from landbridge.codegen.link import LinkedImage, link_objects
from tests.selection.installed import package

#: Addresses and distances in data, and a call through one. It is the last of the objects that are compared.
ADDRESSES = """
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
    """


def linked_by_lld(emulation: str, made: Sequence[bytes], places: Sequence[dict[str, int]], folder: Path) -> bytes:
    """The bytes from address 0 of what lld makes of objects whose sections are put to ``places``; ``emulation`` is its
    name of the instruction set."""
    package("ziglang", "boards")
    commands = []
    for number, data in enumerate(made):
        (folder / f"{number}.o").write_bytes(data)
        commands += [(at, f". = {at}; .part{at} : {{ {number}.o({name}) }}") for name, at in places[number].items()]
    script = " ".join(text for _, text in sorted(commands))
    (folder / "script").write_text(f"SECTIONS {{ {script} /DISCARD/ : {{ *(.eh_frame) *(.comment) *(.note*) }} }}")
    lld = [sys.executable, "-m", "ziglang", "ld.lld", "-m", emulation, "--no-relax", "-T", "script"]
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


def compare(emulation: str, made: Sequence[bytes], kinds: Collection[int], folder: Path) -> tuple[LinkedImage, int]:
    """Assert that lld makes the same of ``made``, which have all of the relocation types ``kinds``; the image, and how
    many bytes were compared. The last object has addresses in ``.data.rel.ro``."""
    image = link_objects(made)
    parsed = [ElfObject(data) for data in made]
    assert {reference.kind for obj in parsed for reference in obj.references()} >= set(kinds), "each is written here"
    # Where each section came to lie is known by its contents' first symbol.
    places = []
    for obj in parsed:
        found: dict[str, int] = {}
        for symbol in obj.symbols:
            if symbol.name in image.symbols and 0 < symbol.section < len(obj.sections):
                section = obj.sections[symbol.section]
                found[section.name] = image.symbols[symbol.name] - symbol.value
        places.append(found)
    places[-1][".data.rel.ro"] = min(image.relocations)
    theirs = linked_by_lld(emulation, made, places, folder)
    compared = 0
    for obj, found in zip(parsed, places, strict=True):
        for section in obj.sections:
            if section.name in found:
                begin = found[section.name]
                assert image.code[begin : begin + section.size] == theirs[begin : begin + section.size], section.name
                compared += section.size
    return image, compared
