"""The verifier: each invariant broken once, and the message says where and what is legal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from landbridge.errors import VerifyError
from landbridge.ir.module import IRModule
from landbridge.ir.verifier import KnownTypes, verify
from landbridge.targets import Target

HOST = '#lb.vdevice<0, "global">'
GOOD = """
builtin.module {
  func.func @relu(%0: memref<4xf32, "global">, %1: memref<4xf32, "global">) attributes {lb.prim} {
    func.return
  }
  func.func @main(%0: tensor<4xf32, HOST>) -> tensor<4xf32, HOST> {
    %1 = "lb.constant"() {symbol = @w} : () -> tensor<2x2xf32, HOST>
    %2 = bufferization.alloc_tensor() : tensor<4xf32, HOST>
    %3 = "lb.call"(%0, %2) {callee = @relu, node = "Relu_0", operandSegmentSizes = array<i32: 1, 1>} : (tensor<4xf32, HOST>, tensor<4xf32, HOST>) -> tensor<4xf32, HOST>
    %4 = "lb.view"(%3) {offset = 2 : i64} : (tensor<4xf32, HOST>) -> tensor<2xf32, HOST>
    %5 = "lb.concat"(%4, %4) {axis = 0 : i64} : (tensor<2xf32, HOST>, tensor<2xf32, HOST>) -> tensor<4xf32, HOST>
    func.return %5 : tensor<4xf32, HOST>
  }
}
"""  # noqa: E501


def parse(*changes: tuple[str, str]) -> IRModule:
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    constants = {"w": np.zeros((2, 2), np.float32)}
    return IRModule.parse(text.replace("HOST", HOST), (Target("llvm"),), constants=constants)


def test_a_good_module_passes():
    verify(parse(), "nothing")


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ([("@main(", "@other(")], ["@main"]),
        ([("callee = @relu", "callee = @gelu")], ["after pass 'fuse'", "Relu_0", "@gelu does not exist"]),
        ([("symbol = @w", "symbol = @v")], ["lb.constant", "@v is not in the table"]),
        ([("tensor<2x2xf32, HOST>", "tensor<4xf32, HOST>")], ["float32[4]", "float32[2,2]"]),
        ([('memref<4xf32, "global">, %1', 'memref<5xf32, "global">, %1')], ["argument 0", "memref<5xf32"]),
        ([('memref<4xf32, "global">, %1', 'memref<4xf32, "vtcm">, %1')], ["argument 0", "vtcm"]),
        ([("-> tensor<2xf32, HOST>", "-> tensor<3xf32, HOST>"), ("tensor<2xf32, HOST>", "tensor<3xf32, HOST>")],
         ["lb.view", "2 to 5", "0 to 4"]),
        ([("axis = 0 : i64} : (tensor<2xf32, HOST>, tensor<2xf32, HOST>) -> tensor<4xf32, HOST>",
           "axis = 0 : i64} : (tensor<2xf32, HOST>, tensor<2xf32, HOST>) -> tensor<3xf32, HOST>"),
          ("func.return %5 : tensor<4xf32, HOST>", "func.return %5 : tensor<3xf32, HOST>"),
          (") -> tensor<4xf32, HOST> {", ") -> tensor<3xf32, HOST> {")], ["lb.concat", "(3,)", "(4,)"]),
        ([("%1 = \"lb.constant\"() {symbol = @w} : () -> tensor<2x2xf32, HOST>",
           "%1 = \"lb.constant\"() {symbol = @w} : () -> tensor<2x2xf32>")], ["no placement"]),
        ([("tensor<2x2xf32, HOST>", 'tensor<2x2xf32, #lb.vdevice<7, "global">>')], ["vdevice 7", "0 to 0"]),
        ([("tensor<2x2xf32, HOST>", 'tensor<2x2xf32, #lb.vdevice<0, "vtcm">>')], ["'vtcm'", "global"]),
    ],
)  # fmt: skip
def test_what_is_broken_is_named(changes, parts):
    known = KnownTypes()
    verify(parse(), "import", known)
    for each in (None, known):
        with pytest.raises(VerifyError) as caught:
            verify(parse(*changes), "fuse", each)
        for part in parts:
            assert part in str(caught.value)


def test_what_was_verified_for_other_vdevices_is_looked_at_again():
    module, known = parse(), KnownTypes()
    verify(module, "import", known)
    with pytest.raises(VerifyError, match="vdevice"):
        verify(replace(module, vdevices=()), "place", known)


def test_a_placement_changes_only_at_to_vdevice():
    other = '#lb.vdevice<1, "global">'
    text = GOOD.replace("-> tensor<2xf32, HOST>", f"-> tensor<2xf32, {other}>")
    text = text.replace(
        "(tensor<2xf32, HOST>, tensor<2xf32, HOST>)", f"(tensor<2xf32, {other}>, tensor<2xf32, {other}>)"
    )
    module = IRModule.parse(text.replace("HOST", HOST), (Target("llvm"),), constants={"w": np.zeros((2, 2), "f4")})
    module.vdevices = module.vdevices * 2
    with pytest.raises(VerifyError, match=r"lb.view: the placement changes .* lb.to_vdevice"):
        verify(module)


def test_a_destination_belongs_to_one_call():
    shared = GOOD.replace(
        "    func.return %5",
        '    %6 = "lb.call"(%0, %2) {callee = @relu, operandSegmentSizes = array<i32: 1, 1>} : '
        "(tensor<4xf32, HOST>, tensor<4xf32, HOST>) -> tensor<4xf32, HOST>\n    func.return %5",
    )
    with pytest.raises(VerifyError, match="destination 0 is used elsewhere"):
        verify(parse((GOOD, shared)))
    with pytest.raises(VerifyError, match=r"destination 0 is a result of lb\.concat"):
        verify(
            parse(
                (
                    "    func.return %5 :",
                    '    %6 = "lb.call"(%0, %5) {callee = @relu, operandSegmentSizes = array<i32: 1, 1>} : '
                    "(tensor<4xf32, HOST>, tensor<4xf32, HOST>) -> tensor<4xf32, HOST>\n    func.return %6 :",
                )
            )
        )


def test_use_before_definition_and_foreign_operations_are_found():
    module = parse()
    ops = list(module.main.body.block.ops)
    module.main.body.block.detach_op(ops[3])
    module.main.body.block.insert_op_before(ops[3], ops[2])
    with pytest.raises(VerifyError, match="used before it is defined"):
        verify(module)
    with pytest.raises(VerifyError, match=r"arith.constant: this operation is not legal in a graph"):
        verify(parse(("    func.return %5", "    %6 = arith.constant 1 : i32\n    func.return %5")))


LOOP = """
builtin.module {
  func.func @main(%0: tensor<4xf32, HOST>, %1: tensor<9x4xf32, HOST>, %2: tensor<1xi1, HOST>) -> tensor<4xf32, HOST> {
    %3, %4, %5 = "lb.loop"(%0, %2, %1) ({
    ^bb0(%6: tensor<4xf32, HOST>, %7: tensor<1xi1, HOST>, %8: tensor<4xf32, HOST>, %9: tensor<4xf32, HOST>):
      "lb.yield"(%8, %7, %6) : (tensor<4xf32, HOST>, tensor<1xi1, HOST>, tensor<4xf32, HOST>) -> ()
    }) {trips = 9 : i64, back = [0, 1], operandSegmentSizes = array<i32: 0, 2, 1, 0>} : (tensor<4xf32, HOST>, tensor<1xi1, HOST>, tensor<9x4xf32, HOST>) -> (tensor<4xf32, HOST>, tensor<1xi1, HOST>, tensor<9x4xf32, HOST>)
    func.return %3 : tensor<4xf32, HOST>
  }
}
"""  # noqa: E501


def loop(old: str, new: str) -> IRModule:
    assert old in LOOP or not old
    return IRModule.parse(LOOP.replace(old, new, 1).replace("HOST", HOST), (Target("llvm"),))


def test_a_good_loop_passes():
    module = loop("", "")
    verify(module)
    assert IRModule.parse(module.print(), (Target("llvm"),)).print() == module.print()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("trips = 9", "trips = 8", "a slice along its axis of 8 iterations"),
        ("back = [0, 1]", "back = [0, 2]", "directions .* 0 or 1 for each"),
        ("back = [0, 1]", "back = []", "directions .* 0 or 1 for each"),
        ("back = [0, 1]", "back = [0]", "a body of 4 arguments; expected one for each"),
        ("back = [0, 1]", "condition = 1 : i64, back = [0, 1]", "rows where the iterations are known"),
        ("back = [0, 1]", "condition = 0 : i64, back = [0, 1]", "carried value 0 as its condition"),
        ("%9: tensor<4xf32", "%9: tensor<2x2xf32", r"a slice along its axis of 9 iterations"),
    ],
)
def test_loops_whose_parts_do_not_fit(old: str, new: str, message: str):
    with pytest.raises(VerifyError, match=message):
        verify(loop(old, new))
