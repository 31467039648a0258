"""Which buffers of @main are in which scope, and what of a scope is free for them."""

from __future__ import annotations

from typing import Any

from landbridge.analysis.scopes import Scope, round_up, scopes_of
from landbridge.executable.parts import VDevice
from landbridge.ir.module import IRModule
from landbridge.targets import Target

TEXT = """
func.func @k(%x: memref<10xf32, "global">, %y: memref<10xf32, "SCOPE">) attributes {lb.prim} {
  func.return
}
func.func @main(%x: memref<10xf32, "global">) {
  %w = "lb.constant"() {symbol = @w, lb.vdevice = #lb.vdevice<0, "SCOPE">} : () -> memref<10xf32, "SCOPE">
  %same = "lb.constant"() {symbol = @w, lb.vdevice = #lb.vdevice<0, "SCOPE">} : () -> memref<10xf32, "SCOPE">
  %v = "lb.constant"() {symbol = @v, lb.vdevice = #lb.vdevice<0, "SCOPE">} : () -> memref<3x5xf32, IN_ROWS>
  %far = "lb.constant"() {symbol = @far, lb.vdevice = #lb.vdevice<1, "SCOPE">} : () -> memref<10xf32, "SCOPE">
  %o = "lb.constant"() {symbol = @o, lb.vdevice = #lb.vdevice<0, "global.other">} : () -> memref<9xf32, "global.other">
  %a = memref.alloc() {lb.vdevice = #lb.vdevice<0, "SCOPE">, node = "a"} : memref<10xf32, "SCOPE">
  %b = memref.alloc() {lb.vdevice = #lb.vdevice<0, "SCOPE">, node = "a"} : memref<10xf32, "SCOPE">
  %c = memref.alloc() {lb.vdevice = #lb.vdevice<0, "SCOPE">, node = "c"} : memref<10xf32, "SCOPE">
  %unused = memref.alloc() {lb.vdevice = #lb.vdevice<0, "SCOPE">, node = "unused"} : memref<10xf32, "SCOPE">
  "lb.call"(%x, %a) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} :
    (memref<10xf32, "global">, memref<10xf32, "SCOPE">) -> ()
  "lb.call"(%x, %b) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} :
    (memref<10xf32, "global">, memref<10xf32, "SCOPE">) -> ()
  "lb.call"(%x, %c) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} :
    (memref<10xf32, "global">, memref<10xf32, "SCOPE">) -> ()
  func.return
}
"""


def scope(name: str, **facts: Any) -> Scope:
    """The scope that the buffers are in."""
    ordinary = {"scope": "global", "host_access": "read_write", "coherent": True}
    other = {**ordinary, "scope": "global.other"}
    kinds = {"global": ordinary, "global.other": other, name: {**ordinary, "scope": name, **facts}}
    target = Target({"kind": "llvm", "memory": list(kinds.values())})
    names = VDevice("cpu", 0), VDevice("cpu", 1)
    in_rows = '#lb.space<"SCOPE", [1]>' if "rows" in name else '"SCOPE"'
    module = IRModule.parse(TEXT.replace("IN_ROWS", in_rows).replace("SCOPE", name), (target, target), names)
    return scopes_of(module)[0]


def test_constants_take_of_a_scratchpad_each_once_and_in_whole_units() -> None:
    """Of 1000 bytes 40 for @w and 60 for @v, each in a block of 64 or what the memory wants; those of other scopes and
    vdevices none."""
    assert scope("global.fast", capacity=1000).free == 1000 - 2 * 64
    assert scope("global.fast", capacity=1000, alignment=128).free == 1000 - 2 * 128
    assert scope("global.fast", capacity=1000, size_multiple=96).free == 1000 - 2 * 96
    assert scope("global.fast").free is None


def test_constants_are_listed_for_scopes_that_have_no_buffers_too() -> None:
    ordinary = {"scope": "global", "host_access": "read_write", "coherent": True}
    target = Target({"kind": "llvm", "memory": [ordinary, {**ordinary, "scope": "global.other"}]})
    text = TEXT.replace("IN_ROWS", '"global"').replace("SCOPE", "global")
    module = IRModule.parse(text, (target, target), (VDevice("cpu", 0), VDevice("cpu", 1)))
    assert [(each.kind.scope, [r.name for r in each.residents]) for each in scopes_of(module)] == [
        ("global", []),
        ("global.other", ["o"]),
    ]


def test_inputs_that_lie_in_a_scope_take_of_it_as_constants_do() -> None:
    ordinary = {"scope": "global", "host_access": "read_write", "coherent": True}
    fast = {**ordinary, "scope": "global.fast", "capacity": 1000, "size_multiple": 96}
    text = """
    func.func @main(%x: memref<10xf32, "global.fast">, %y: memref<10xf32, "global">)
        attributes {lb.input_names = ["x"], lb.output_names = ["y"]} {
      func.return
    }
    """
    target = Target({"kind": "llvm", "memory": [ordinary, fast]})
    (found,) = scopes_of(IRModule.parse(text, (target,), (VDevice("cpu", 0),)))
    assert (found.index, found.kind.scope, found.free) == (0, "global.fast", 1000 - 96)
    assert [(each.name, each.ops) for each in found.residents] == [("x", [])]
    assert found.taken() == "; of its 1000 bytes the weights, inputs and outputs placed there take 96 ('x' 96)"


def test_all_that_load_a_constant_are_retained_with_it() -> None:
    found = scope("global.fast").residents
    assert [(each.name, [op.symbol_name for op in each.ops]) for each in found] == [("w", ["w", "w"]), ("v", ["v"])]


def test_rounding_up_gives_multiples() -> None:
    assert [round_up(value, 8) for value in (0, 1, 8, 9, 17)] == [0, 8, 8, 16, 24]


def test_constants_in_rows_take_whole_rows() -> None:
    """@w is ten rows of an element, @v three of five: each as long as the alignment of rows wants."""
    rows = scope("global.rows", capacity=1000, ndim=2, row_alignment=16, host_access="none")
    assert rows.free == 1000 - 10 * 16 - 3 * 32


def test_constants_in_ordinary_memory_are_used_where_they_are() -> None:
    assert scope("global", capacity=1000).free == 1000


def test_buffers_that_are_used_have_names_of_their_own() -> None:
    assert scope("global.fast").names == ["a#0", "a#1", "c"]


def test_a_buffer_is_in_use_from_its_first_step_until_after_its_last() -> None:
    """The kernels that write a, a and c are steps 0, 1 and 2; the planner's ends are not included."""
    buffers = [alloc.buffer(alloc.name, alloc.nbytes, 64) for alloc in scope("global.fast").allocs]
    assert [(b.size, b.start, b.end) for b in buffers] == [(40, 0, 1), (40, 1, 2), (40, 2, 3)]


def test_buffers_begin_where_a_device_that_shares_their_memory_can_be_given_them() -> None:
    guest = Target({"kind": "opencl", "shares": [["cpu", "global"]]})
    text = TEXT.replace("IN_ROWS", '"global"').replace("SCOPE", "global").replace("global.other", "global")
    module = IRModule.parse(text, (Target("llvm"), guest), (VDevice("cpu", 0), VDevice("opencl", 1)))
    found = scopes_of(module)[0]
    assert found.kind.offset_alignment == max(guest.memory[0].offset_alignment, guest.memory[0].coherence_granule) > 1
