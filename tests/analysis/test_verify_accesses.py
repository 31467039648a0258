"""Lowered functions that stay inside their buffers are proved to, and each way out of them is an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, gpu, memref, scf, vector
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.parser import Parser

import landbridge as lb
from landbridge.analysis.verify_accesses import verify_accesses
from landbridge.errors import AccessError
from landbridge.passes.lower.guards import KnownRanges
from landbridge.passes.lower.peeling import Peeling


def function(body: str, tasks: int = 8) -> func.FuncOp:
    """``body`` in a function of two buffers of 64 elements, i64 ``%n`` and f32 ``%x``, and its tasks."""
    text = f"""func.func @kernel(%x: memref<64xf32>, %n: memref<64xi64>, %begin: index, %end: index) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c7 = arith.constant 7 : index
      %c8 = arith.constant 8 : index
      %c9 = arith.constant 9 : index
      %c64 = arith.constant 64 : index
      {body}
      func.return
    }}"""
    context = Context()
    for dialect in (builtin.Builtin, func.Func, arith.Arith, memref.MemRef, scf.Scf, vector.Vector, gpu.GPU):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    (made,) = module.body.block.ops
    assert isinstance(made, func.FuncOp)
    made.attributes["lb.tasks"] = IntegerAttr(tasks, i64)
    return made


#: What is right, and a change of its text that makes it wrong.
PAIRS = {
    "constant": ("%v = memref.load %x[%c7] : memref<64xf32>", "%c7", "%c64"),
    "first lanes": (
        """%mask = vector.create_mask %c8 : vector<16xi1>
           %c56 = arith.constant 56 : index
           %zero = arith.constant dense<0.0> : vector<16xf32>
           %v = vector.maskedload %x[%c56], %mask, %zero
             : memref<64xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>""",
        "create_mask %c8",
        "create_mask %c9",
    ),
    "first lanes from an index": (
        """scf.for %t = %begin to %end step %c1 {
             %i = arith.muli %t, %c9 : index
             %left = arith.subi %c64, %i : index
             %mask = vector.create_mask %left : vector<16xi1>
             %zero = arith.constant dense<0.0> : vector<16xf32>
             vector.maskedstore %x[%i], %mask, %zero : memref<64xf32>, vector<16xi1>, vector<16xf32>
           }""",
        "subi %c64, %i",
        "addi %c64, %i",
    ),
    "tasks": (
        """scf.for %t = %begin to %end step %c1 {
             %i = arith.muli %t, %c8 : index
             %v = vector.load %x[%i] : memref<64xf32>, vector<8xf32>
           }""",
        "vector<8xf32>",
        "vector<9xf32>",
    ),
    "rows": (
        """scf.for %t = %begin to %end step %c1 {
             %i = arith.muli %t, %c8 : index
             scf.for %k = %c0 to %c8 step %c1 {
               %j = arith.addi %i, %k : index
               %v = memref.load %x[%j] : memref<64xf32>
             }
           }""",
        "%c0 to %c8",
        "%c0 to %c9",
    ),
    "steps": (
        """scf.for %k = %c1 to %c64 step %c7 {
             %j = arith.addi %k, %c7 : index
             %i = arith.subi %j, %c7 : index
             %v = memref.load %x[%i] : memref<64xf32>
           }""",
        "%i]",
        "%j]",
    ),
    "blocks that end in whole steps": (
        """%c24 = arith.constant 24 : index
           scf.for %b = %c0 to %c64 step %c24 {
             %stop = arith.addi %b, %c24 : index
             %high = arith.minsi %stop, %c64 : index
             scf.for %k = %b to %high step %c8 {
               %v = vector.load %x[%k] : memref<64xf32>, vector<8xf32>
             }
           }""",
        "constant 24",
        "constant 23",
    ),
    "quotient and remainder": (
        """scf.for %t = %c0 to %c64 step %c1 {
             %q = arith.divui %t, %c8 : index
             %r = arith.remui %t, %c8 : index
             %p = arith.muli %q, %c8 : index
             %i = arith.addi %p, %r : index
             %v = memref.load %x[%i] : memref<64xf32>
           }""",
        "%t, %c8 : index\n             %p",
        "%t, %c9 : index\n             %p",
    ),
    "quotient of what is 5 or more": (
        """%c5 = arith.constant 5 : index
           %c4 = arith.constant 4 : index
           scf.for %k = %c0 to %c64 step %c1 {
             %t = arith.maxsi %k, %c5 : index
             %q = arith.divui %t, %c4 : index
             %i = arith.subi %q, %c1 : index
             %v = memref.load %x[%i] : memref<64xf32>
           }""",
        "%q, %c1",
        "%q, %c2",
    ),
    "test": (
        """scf.for %t = %c0 to %c9 step %c1 {
             %a = arith.muli %t, %c8 : index
             %i = arith.subi %a, %c8 : index
             %in = arith.cmpi ult, %i, %c64 : index
             scf.if %in {
               %v = memref.load %x[%i] : memref<64xf32>
             }
           }""",
        "ult",
        "slt",
    ),
    "both tests": (
        """scf.for %t = %c0 to %c64 step %c1 {
             %i = arith.subi %t, %c8 : index
             %a = arith.cmpi sge, %i, %c0 : index
             %b = arith.cmpi slt, %i, %c64 : index
             %in = arith.andi %a, %b : i1
             scf.if %in {
               memref.store %z, %x[%i] : memref<64xf32>
             }
           }""",
        "arith.andi",
        "arith.ori",
    ),
    "other branch": (
        """scf.for %t = %c0 to %c64 step %c1 {
             %i = arith.addi %t, %c7 : index
             %out = arith.cmpi sge, %i, %c64 : index
             scf.if %out {
             } else {
               %v = memref.load %x[%i] : memref<64xf32>
             }
           }""",
        "sge",
        "sgt",
    ),
    "clipped loop": (
        """scf.for %t = %c0 to %c8 step %c1 {
             %d = arith.subi %c1, %t : index
             %l = arith.maxsi %d, %c0 : index
             %u = arith.subi %c9, %t : index
             %h = arith.minsi %u, %c2 : index
             scf.for %k = %l to %h step %c1 {
               %s = arith.addi %t, %k : index
               %y = arith.subi %s, %c1 : index
               %i = arith.muli %y, %c8 : index
               %v = vector.load %x[%i] : memref<64xf32>, vector<8xf32>
             }
           }""",
        "%k = %l to",
        "%k = %c0 to",
    ),
    "clamped data": (
        """%a = memref.load %n[%c0] : memref<64xi64>
           %lo = arith.constant 0 : i64
           %hi = arith.constant 63 : i64
           %b = arith.maxsi %a, %lo : i64
           %c = arith.minsi %b, %hi : i64
           %i = arith.index_cast %c : i64 to index
           %v = memref.load %x[%i] : memref<64xf32>""",
        "%b, %hi",
        "%a, %hi",
    ),
    "negative data counts from the end": (
        """%a = memref.load %n[%c0] : memref<64xi64>
           %lo = arith.constant -64 : i64
           %hi = arith.constant 63 : i64
           %size = arith.constant 64 : i64
           %zero = arith.constant 0 : i64
           %b = arith.maxsi %a, %lo : i64
           %c = arith.minsi %b, %hi : i64
           %below = arith.cmpi slt, %c, %zero : i64
           %wrapped = arith.addi %c, %size : i64
           %d = arith.select %below, %wrapped, %c : i64
           %i = arith.index_cast %d : i64 to index
           %v = memref.load %x[%i] : memref<64xf32>""",
        "arith.constant -64",
        "arith.constant -65",
    ),
    "a sum that wraps": (
        """%a = memref.load %n[%c0] : memref<64xi64>
           %zero = arith.constant 0 : i64
           %most = arith.constant 60 : i64
           %three = arith.constant 3 : i64
           %b = arith.maxsi %a, %zero : i64
           %c = arith.minsi %b, %most : i64
           %s = arith.addi %c, %three : i64
           %d = arith.maxsi %s, %zero : i64
           %i = arith.index_cast %s : i64 to index
           %v = memref.load %x[%i] : memref<64xf32>""",
        "arith.minsi %b, %most",
        "arith.maxsi %b, %most",
    ),
    "a condition of a while": (
        """%left = scf.while (%i = %c0) : (index) -> index {
             %in = arith.cmpi ult, %i, %c64 : index
             scf.condition(%in) %i : index
           } do {
           ^bb0(%j: index):
             %v = memref.load %x[%j] : memref<64xf32>
             %k = arith.addi %j, %c1 : index
             scf.yield %k : index
           }""",
        "cmpi ult",
        "cmpi ule",
    ),
    "the smaller without a sign, of what memory holds": (
        """%a = memref.load %n[%c0] : memref<64xi64>
           %most = arith.constant 63 : i64
           %b = arith.minui %a, %most : i64
           %i = arith.index_cast %b : i64 to index
           %v = memref.load %x[%i] : memref<64xf32>""",
        "arith.minui",
        "arith.minsi",
    ),
    "mask": (
        """%m = arith.constant dense<[true, true, true, true, true, true, true, true]> : vector<8xi1>
           %p = arith.constant dense<0.0> : vector<8xf32>
           %c60 = arith.constant 56 : index
           %v = vector.maskedload %x[%c60], %m, %p : memref<64xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>""",
        "constant 56",
        "constant 57",
    ),
    "masked tail": (
        """%m = arith.constant dense<[true, true, true, false, false, false, false, false]> : vector<8xi1>
           %p = arith.constant dense<0.0> : vector<8xf32>
           %c61 = arith.constant 61 : index
           vector.maskedstore %x[%c61], %m, %p : memref<64xf32>, vector<8xi1>, vector<8xf32>""",
        "true, true, true, false",
        "true, true, true, true",
    ),
    "work-items": (
        """"gpu.launch"(%c2, %c1, %c1, %c8, %c1, %c1)
               <{operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0>}> ({
           ^bb0(%a0: index, %a1: index, %a2: index, %a3: index, %a4: index, %a5: index,
                %a6: index, %a7: index, %a8: index, %a9: index, %a10: index, %a11: index):
             %g = "gpu.block_id"() <{dimension = #gpu<dim x>}> : () -> index
             %t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
             %base = arith.muli %g, %c8 : index
             %i = arith.addi %base, %t : index
             %l = memref.alloc() : memref<16xf32>
             %v = memref.load %l[%i] : memref<16xf32>
             "gpu.terminator"() : () -> ()
           }) : (index, index, index, index, index, index) -> ()""",
        "(%c2, ",
        "(%c7, ",
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_what_is_inside_is_proved_and_what_is_not_is_an_error(name: str) -> None:
    right, old, new = PAIRS[name]
    assert right.count(old) == 1
    zero = "%z = arith.constant 0.0 : f32\n"
    verify_accesses(function(zero + right))
    with pytest.raises(AccessError, match=r"@kernel (reads|writes) .* at elements"):
        verify_accesses(function(zero + right.replace(old, new)))


def test_conditions_end_with_their_block() -> None:
    """What was computed of a value where a test holds is forgotten behind it."""
    body = """scf.for %t = %c0 to %c64 step %c1 {{
      %d = arith.muli %t, %c2 : index
      %q = arith.divui %d, %c1 : index
      %in = arith.cmpi ult, %d, %c64 : index
      scf.if %in {{
        %v = memref.load %x[%q] : memref<64xf32>
      }}
      {after}
    }}"""
    verify_accesses(function(body.format(after="")))
    with pytest.raises(AccessError, match="0 to 126"):
        verify_accesses(function(body.format(after="%w = memref.load %x[%q] : memref<64xf32>")))


def test_an_access_of_other_elements_than_the_buffer_has_is_an_error() -> None:
    """64 numbers of 64 bits are twice the memory of 64 of 32."""
    for wrong in (
        """%v = arith.constant 0.0 : f64
           "memref.store"(%v, %x, %c0) : (f64, memref<64xf32>, index) -> ()""",
        """%v = arith.constant dense<0.0> : vector<4xf64>
           "vector.store"(%v, %x, %c0) : (vector<4xf64>, memref<64xf32>, index) -> ()""",
    ):
        with pytest.raises(AccessError, match=r"@kernel accesses operand 0, a memref<64xf32>, as f64 by"):
            verify_accesses(function(wrong))


UNKNOWN = {
    "copy": '"memref.copy"(%x, %x) : (memref<64xf32>, memref<64xf32>) -> ()',
    "a call with a buffer after one without": """func.call @other(%c0) : (index) -> ()
      func.call @other(%x) : (memref<64xf32>) -> ()""",
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_understood_is_an_error(name: str) -> None:
    with pytest.raises(AccessError, match=r"@kernel has a .*are unknown"):
        verify_accesses(function(UNKNOWN[name]))


def test_more_tasks_than_there_are() -> None:
    body = "scf.for %t = %begin to %end step %c1 { %v = memref.load %x[%t] : memref<64xf32> }"
    verify_accesses(function(body, tasks=64))
    with pytest.raises(AccessError, match=r"operand 0, .*at elements 0 to 64 by memref.load.*it has 64"):
        verify_accesses(function(body, tasks=65))


def padded_conv(kernel: tuple[int, int], pads: list[int], width: int, channels: int = 2) -> onnx.ModelProto:
    """A convolution of 3 x 8 x ``width`` to ``channels``."""
    out = (1, channels, 8 + pads[0] + pads[2] - kernel[0] + 1, width + pads[1] + pads[3] - kernel[1] + 1)
    x, y = (helper.make_tensor_value_info(n, 1, s) for n, s in (("x", (1, 3, 8, width)), ("y", out)))
    weights = numpy_helper.from_array(np.ones((channels, 3, *kernel), np.float32), "w")
    node = helper.make_node("Conv", ["x", "w"], ["y"], kernel_shape=kernel, pads=pads)
    graph = helper.make_graph([node], "conv", [x], [y], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


COLUMN, SQUARE = padded_conv((3, 1), [1, 0, 1, 0], 8), padded_conv((3, 3), [1, 1, 1, 1], 7)
TARGETS = ("llvm", "c", "opencl", "opencl -device-class=cpu -vector-bits=512 -vector-registers=32", "vulkan")


@pytest.mark.parametrize("model", [COLUMN, SQUARE], ids=["column", "square"])
@pytest.mark.parametrize("target", TARGETS)
def test_guards_taken_for_known_are_found(model: onnx.ModelProto, target: str, monkeypatch: Any) -> None:
    """Lowering that leaves out the tests of padded reads, as though loops kept them true."""
    monkeypatch.setattr(KnownRanges, "holds", lambda self, guard: True)
    with pytest.raises(AccessError, match=r"@conv.* reads operand 0"):
        lb.compile(model, target)


def test_a_row_taken_for_an_inner_one_is_found(monkeypatch: Any) -> None:
    monkeypatch.setattr(Peeling, "_inner_rows", lambda self: (0, 24))
    monkeypatch.setattr(KnownRanges, "within", lambda self, dim, low, high: self.tested(self._guards))
    with pytest.raises(AccessError, match=r"@conv.* reads operand 0"):
        lb.compile(padded_conv((3, 3), [1, 1, 1, 1], 24, channels=16), "llvm")  # whose rows are a row's points
