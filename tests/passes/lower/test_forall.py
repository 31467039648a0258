"""``lb.forall``: scalar code with loops of its own, lowered for CPUs and as plain loops, its accesses proved."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

import landbridge as lb
from landbridge.analysis.verify_accesses import verify_accesses
from landbridge.errors import AccessError
from landbridge.ir.loop_builder import LoopBuilder
from landbridge.ir.module import IRModule
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalars import Value
from landbridge.operators import kernel
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.passes.lower import lower_prim, vector_unit_of
from landbridge.passes.lower.loops import lower_loops

Array = np.ndarray[Any, Any]
#: Iterations: more than there are tasks.
ROWS, COLUMNS = 150, 21


@kernel("tests.forall", "LargestFirst")
def _largest_first(c: OpContext, x: Operand) -> Operand:
    """Each row by value, the largest first, sorted by insertion in memory of the iteration; behind it what a fill left,
    ones, and how many exchanges there were."""

    def build(p: PrimBuilder) -> None:
        retained = p.temp([COLUMNS], "float32")
        p.forall(ROWS, [*p.inputs, *p.outputs, retained], _sort)

    return c.g.call("sort", [c.value(x)], [((ROWS, COLUMNS), "float32"), ((ROWS,), "int64")], build)[0]


def _sort(s: LoopBuilder, row: Value, *memrefs: SSAValue) -> None:
    given, result, moves, retained = (
        BodyBuffer(m, kind) for m, kind in zip(memrefs, ("float32", "float32", "int64", "float32"), strict=True)
    )
    retained.fill(s, 1.0)
    zero = s.const(0, "int64")

    def insert(i: Value, count: Value) -> Sequence[Value]:
        new = given.load(s, [row, i])

        def before(hole: Value, count: Value) -> tuple[Value, Sequence[Value]]:
            above = retained.load(s, [s.inside(hole - 1, COLUMNS)])
            return (hole > 0) & (above < new), [hole, count, above]

        def move(hole: Value, count: Value, above: Value) -> Sequence[Value]:
            retained.store(s, [s.inside(hole, COLUMNS)], above)
            return [hole - 1, count + 1]

        hole, count, _ = s.repeat([i, count], before, move)
        retained.store(s, [s.inside(hole, COLUMNS)], new)
        return [count]

    # All but the last, which stays as it was filled.
    (count,) = s.loop(0, COLUMNS - 1, [zero], insert)

    def copy(i: Value) -> Sequence[Value]:
        result.store(s, [row, i], retained.load(s, [i]))
        return ()

    s.loop(0, COLUMNS, [], copy)
    (found,) = s.branch(count > 0, lambda: [count], lambda: [s.const(-1, "int64")])
    moves.store(s, [row], found)


def _model() -> Any:
    node = helper.make_node("LargestFirst", ["x"], ["y"], domain="tests.forall")
    x, y = (helper.make_tensor_value_info(name, 1, (ROWS, COLUMNS)) for name in "xy")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("tests.forall", 1)]
    return helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=opsets, ir_version=8)


def _checked(program: lb.Executable, threads: int) -> None:
    x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    (found,) = lb.Session(program, num_threads=threads)(x)
    want = np.concatenate([-np.sort(-x[:, :-1], 1), np.ones((ROWS, 1), np.float32)], 1)
    np.testing.assert_array_equal(np.asarray(found), want)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_iterations_have_memory_of_their_own_in_any_number_of_threads(target: str) -> None:
    program = lb.compile(_model(), target)
    for threads in (1, 2):
        _checked(program, threads)


def test_its_text_is_parsed_again(tmp_path: Path) -> None:
    lb.compile(_model(), dump=tmp_path)
    (text,) = tmp_path.glob("*-fuse.mlir")
    assert "scf.while" in text.read_text() and "lb.forall" in text.read_text()
    _checked(lb.compile(text), 1)


_COPY = """builtin.module {
  func.func @copy(%x: memref<8xf32, "global">, %y: memref<8xf32, "global">) attributes {lb.prim} {
    "lb.forall"(%x, %y) ({
    ^bb0(%i: index, %a: memref<8xf32, "global">, %b: memref<8xf32, "global">):
      %v = BODY
      memref.store %v, %b[%i] : memref<8xf32, "global">
    }) {count = COUNT : i64} : (memref<8xf32, "global">, memref<8xf32, "global">) -> ()
    func.return
  }
  func.func @main() {
    func.return
  }
}"""
_LOAD = 'memref.load %a[%i] : memref<8xf32, "global">'


@pytest.mark.parametrize("count", [8, 9])
@pytest.mark.parametrize("form", ["vectors", "loops"])
def test_accesses_of_all_iterations_are_proved(form: str, count: int) -> None:
    target = lb.Target("llvm -mcpu=generic")
    module = IRModule.parse(_COPY.replace("BODY", _LOAD).replace("COUNT", str(count)), (target,))
    (prim,) = module.prims().values()
    lowered = lower_loops(prim) if form == "loops" else lower_prim(prim, vector_unit_of(target))
    if count == 8:
        verify_accesses(lowered)
    else:
        with pytest.raises(AccessError, match="at elements 0 to 8"):
            verify_accesses(lowered)


def test_what_is_no_scalar_code_is_refused() -> None:
    copy = '"memref.copy"(%a, %b) : (memref<8xf32, "global">, memref<8xf32, "global">) -> ()'
    text = _COPY.replace("%v = BODY", f"%v = {_LOAD}\n      {copy}").replace("COUNT", "8")
    with pytest.raises((VerifyException, lb.CompileError), match=r"memref.copy is not legal in lb.forall"):
        IRModule.parse(text, (lb.Target("llvm -mcpu=generic"),)).op.verify()
