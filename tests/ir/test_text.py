"""IR text: what prints parses back to the same text; what does not parse says so, soon."""

from __future__ import annotations

import time

import pytest

from landbridge.errors import ParseError, VerifyError
from landbridge.ir.module import IRModule
from landbridge.ir.verifier import verify
from landbridge.targets import Target

TARGETS = (Target("llvm -mcpu=generic"),)
MAIN = "builtin.module {\n  func.func @main() attributes {a = %s} {\n    func.return\n  }\n}\n"
HOST = '#lb.vdevice<0, "global">'


@pytest.mark.parametrize("text", ["plain", "Relu_é", "卷积/1", "\\\\C3\\\\A9", "a\\22b", "\U0001f309"])
def test_text_comes_back(text: str) -> None:
    module = IRModule.parse(MAIN % f'"{text}"', TARGETS)
    again = IRModule.parse(module.print(), TARGETS)
    assert again.print() == module.print()
    assert again.main.attributes == module.main.attributes
    assert type(again.main.attributes["a"]).__name__ == "StringAttr"


def test_an_open_string_is_found_at_once() -> None:
    started = time.thread_time()
    with pytest.raises(ParseError, match="begins in line 2 is not closed"):
        IRModule.parse(MAIN % ('"' + "x" * 500), TARGETS)
    assert time.thread_time() - started < 1


def test_quotes_in_comments_and_slashes_in_strings() -> None:
    module = IRModule.parse('// an "open quote\n' + MAIN % '"a // b" // "c\n', TARGETS)
    assert module.main.attributes["a"].data == "a // b"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        "builtin.module {" * 2000,
        MAIN % "1.5 : i90",
        MAIN % ("1 : i" + "9" * 30),
        "builtin.module",
    ],
)
def test_other_text_is_a_parse_error(text: str) -> None:
    with pytest.raises(ParseError, match=r"does not parse|too deep"):
        IRModule.parse(text, TARGETS)


def test_a_graph_has_one_block() -> None:
    for body in ("", "{ func.return ^b: func.return }"):
        with pytest.raises(VerifyError, match=r"a body of . blocks"):
            verify(IRModule.parse(f"builtin.module {{ func.func private @main() -> () {body} }}", TARGETS))


@pytest.mark.parametrize(("axes", "tiles"), [("[5]", "[2]"), ("[-1]", "[2]"), ("[0]", "[0]"), ("[0]", "[2, 2]")])
def test_packing_what_is_not_there(axes: str, tiles: str) -> None:
    text = (
        f"builtin.module {{ func.func @main(%0: tensor<4xf32, {HOST}>) -> tensor<2x2xf32, {HOST}> {{"
        f'%1 = "lb.pack"(%0) {{axes = {axes}, tiles = {tiles}}} : (tensor<4xf32, {HOST}>) -> tensor<2x2xf32, {HOST}>'
        f"func.return %1 : tensor<2x2xf32, {HOST}> }} }}"
    )
    with pytest.raises(VerifyError, match="as many tiles over 0 as axes below 1"):
        verify(IRModule.parse(text, TARGETS))


@pytest.mark.parametrize(("kind", "bits"), [("f32", "0xff800000"), ("f64", "0x7ff0000000000000"), ("f16", "0xfc00")])
def test_infinities_in_dense_constants_come_back(kind: str, bits: str) -> None:
    constant = f"    %0 = arith.constant dense<{bits}> : vector<4x{kind}>\n"
    text = (MAIN % "1 : i64").replace("    func.return", constant + "    func.return")
    again = IRModule.parse(text, TARGETS).print()
    assert f"dense<{bits}> : vector<4x{kind}>" in again
    assert IRModule.parse(again, TARGETS).print() == again


def test_loops_must_stay_inside_their_operands() -> None:
    text = """
func.func @f(%0: memref<4xf32, "global">, %1: memref<EXTENTxf32, "global">) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0 * 2)>],
    iterator_types = ["parallel"]} ins(%0 : memref<4xf32, "global">)
    outs(%1 : memref<EXTENTxf32, "global">) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%2: f32, %3: f32):
    linalg.yield %2 : f32
  }
  func.return
}"""
    IRModule.parse(text.replace("EXTENT", "7"), TARGETS)
    with pytest.raises(ParseError, match=r"operand 1 of a linalg.generic has 6 elements .*\n?.*reach 0 to 6"):
        IRModule.parse(text.replace("EXTENT", "6"), TARGETS)
    with pytest.raises(ParseError, match=r"must state lb\.extents"):
        IRModule.parse(text.replace("EXTENT", "7").replace("attrs = {lb.extents = [4 : i64]} ", ""), TARGETS)


def test_bodies_give_what_outputs_hold() -> None:
    text = """
func.func @f(%0: memref<4xf32, "global">, %1: memref<4xTYPE, "global">) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
    iterator_types = ["parallel"]} ins(%0 : memref<4xf32, "global">)
    outs(%1 : memref<4xTYPE, "global">) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%2: f32, %3: TYPE):
    linalg.yield %2 : f32
  }
  func.return
}"""
    IRModule.parse(text.replace("TYPE", "f32"), TARGETS)
    with pytest.raises(ParseError, match=r"body of a linalg.generic gives f32 for outputs of f16"):
        IRModule.parse(text.replace("TYPE", "f16"), TARGETS)


DOT = """builtin.module {
  func.func @f(%0: TYPE, %1: TYPE) -> TYPE {
    %2 = "lb.byte_dot"(%0, %1) : (TYPE, OTHER) -> TYPE
    func.return %2 : TYPE
  }
  func.func @main() {
    func.return
  }
}
"""


@pytest.mark.parametrize("kind", ["i32", "vector<16xi32>"])
def test_byte_dots_come_back(kind: str) -> None:
    module = IRModule.parse(DOT.replace("TYPE", kind).replace("OTHER", kind), TARGETS)
    assert "lb.byte_dot" in module.print()
    assert IRModule.parse(module.print(), TARGETS).print() == module.print()


def test_byte_dots_are_of_words() -> None:
    with pytest.raises(ParseError, match="legal: i32, or equal vectors of it"):
        IRModule.parse(DOT.replace("TYPE", "i64").replace("OTHER", "i64"), TARGETS)
