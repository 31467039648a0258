from __future__ import annotations

import ctypes
import struct

import pytest

from landbridge.codegen.link import LinkedImage, link_objects
from landbridge.codegen.llvm.compile import compile_ir
from landbridge.codegen.llvm.machine import Machine
from landbridge.errors import CodegenError
from landbridge.executable.parts import CodeImage
from landbridge.vm.code_image import LoadedImage, load_image

MACHINE = Machine("x86_64-unknown-linux-gnu", "x86-64", "")


def link(*texts: str) -> LinkedImage:
    return link_objects([compile_ir(text, MACHINE) for text in texts])


def load(image: LinkedImage) -> LoadedImage:
    return load_image(CodeImage("x86_64", image.code, image.symbols, image.imports, image.relocations))


def call(image: LoadedImage, name: str, *arguments: int) -> int:
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(arguments))(image.address(name))
    return int(function(*arguments))


def test_objects_see_each_others_functions_and_read_only_data() -> None:
    image = link(
        "declare i64 @twice(i64)\n@table = external constant [3 x i64]\n"
        "define i64 @f(i64 %i) { %p = getelementptr i64, ptr @table, i64 %i %x = load i64, ptr %p "
        "%y = call i64 @twice(i64 %x) ret i64 %y }",
        "@table = constant [3 x i64] [i64 5, i64 7, i64 9]\n"
        "define i64 @twice(i64 %x) { %y = shl i64 %x, 1 ret i64 %y }",
    )
    assert set(image.symbols) == {"f", "twice", "table"}
    assert not image.imports
    loaded = load(image)
    assert [call(loaded, "f", i) for i in range(3)] == [10, 14, 18]


def test_what_nothing_defines_is_imported() -> None:
    text = (
        "declare i32 @toupper(i32)\ndefine i64 @{name}(i64 %x) {{ %a = trunc i64 %x to i32 "
        "%b = call i32 @toupper(i32 %a) %c = sext i32 %b to i64 %d = add i64 %c, {more} ret i64 %d }}"
    )
    image = link(text.format(name="f", more=1), text.format(name="g", more=2))
    assert set(image.imports) == {"toupper"}
    assert all(slot % 8 == 0 for slot in image.imports["toupper"])
    loaded = load(image)
    assert (call(loaded, "f", ord("a")), call(loaded, "g", ord("a"))) == (ord("A") + 1, ord("A") + 2)


def test_addresses_of_functions_become_relocations_or_imports() -> None:
    image = link(
        "declare i64 @llabs(i64)\n"
        "@own = internal constant [2 x ptr] [ptr @one, ptr @llabs]\n"
        "define internal i64 @one(i64 %x) { ret i64 1 }\n"
        "define i64 @f(i64 %i, i64 %x) { %p = getelementptr ptr, ptr @own, i64 %i %t = load ptr, ptr %p "
        "%y = call i64 %t(i64 %x) ret i64 %y }"
    )
    assert len(image.relocations) == 1
    (offset,) = struct.unpack_from("<Q", image.code, image.relocations[0])
    assert 0 <= offset < len(image.code)
    loaded = load(image)
    assert (call(loaded, "f", 0, -9), call(loaded, "f", 1, -9)) == (1, 9)


def test_the_address_of_an_import_is_a_value_too() -> None:
    image = link("declare i64 @llabs(i64)\ndefine i64 @f() { ret i64 ptrtoint (ptr @llabs to i64) }")
    llabs = ctypes.cast(ctypes.CDLL(None).llabs, ctypes.c_void_p).value
    assert call(load(image), "f") & (2**64 - 1) == llabs


def test_vector_constants_keep_their_alignment() -> None:
    image = link(
        "define i64 @f(ptr %p) { %x = load <4 x float>, ptr %p, align 4 "
        "%y = fadd <4 x float> %x, <float 1.0, float 2.0, float 3.0, float 4.0> "
        "store <4 x float> %y, ptr %p, align 4 ret i64 0 }"
    )
    memory = (ctypes.c_float * 4)(10, 20, 30, 40)
    assert call(load(image), "f", ctypes.addressof(memory)) == 0
    assert list(memory) == [11, 22, 33, 44]


@pytest.mark.parametrize("value", ["0", "7"])
def test_writable_data_is_refused(value: str) -> None:
    with pytest.raises(CodegenError, match="writable"):
        link(f"@state = global i64 {value}\ndefine ptr @f() {{ ret ptr @state }}")


def test_a_symbol_defined_twice_is_refused() -> None:
    text = "define void @f() { ret void }"
    with pytest.raises(CodegenError, match="'f' is defined twice"):
        link(text, text)


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"MZ" + bytes(200), b"\x7fELF\x02\x01" + bytes(60)])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(CodegenError, match="relocatable"):
        link_objects([data])


def test_slots_stand_on_pages_of_their_own() -> None:
    image = link(
        "declare i32 @toupper(i32)\n@names = constant [2 x ptr] [ptr @f, ptr @toupper]\n"
        "define i32 @f(i32 %x) { %y = call i32 @toupper(i32 %x) ret i32 %y }"
    )
    slots = [*image.relocations, *(slot for slots in image.imports.values() for slot in slots)]
    assert len(slots) == 3, "one call, and two addresses in a table"
    first = min(slots) // 4096 * 4096
    assert first > 0 and all(at < first for name, at in image.symbols.items() if name != "names")
    assert call(load(image), "f", ord("a")) & 0xFF == ord("A")
