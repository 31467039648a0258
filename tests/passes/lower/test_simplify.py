"""The rules of ``passes/lower/simplify.py``, each on a nest of a few loops."""

from __future__ import annotations

from dataclasses import replace

from landbridge.ir.module import IRModule
from landbridge.ir.stages import view_prim
from landbridge.passes.lower.access import ElementAccess, Guard, Linear
from landbridge.passes.lower.nest import Nest, build_nests
from landbridge.passes.lower.simplify import drop_held_guards, drop_unit_loops, join_loops, simplify


def copy(loops: dict[str, int], source: str, target: str, access: str) -> Nest:
    """The nest that copies ``source`` to ``target`` over ``loops``: it reads at ``access`` and writes at the loops."""
    names, extents = ", ".join(loops), ", ".join(f"{e} : i64" for e in loops.values())
    maps = f"affine_map<({names}) -> ({access})>, affine_map<({names}) -> ({names})>"
    parallel = ", ".join(['"parallel"'] * len(loops))
    text = f"""
func.func @k(%x: {source}, %y: {target}) attributes {{lb.prim}} {{
  linalg.generic {{indexing_maps = [{maps}], iterator_types = [{parallel}]}}
    ins(%x : {source}) outs(%y : {target}) attrs = {{lb.extents = [{extents}]}} {{
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }}
  func.return
}}"""
    (nest,) = build_nests(view_prim(IRModule.parse(text, ()).prims()["k"]))
    return nest


def guarded(nest: Nest, index: Linear, extent: int) -> Nest:
    """``nest`` with a test of what it reads."""
    (stage,) = nest.stages
    (read,) = stage.reads
    assert isinstance(read, ElementAccess)
    return replace(nest, stages=[replace(stage, reads=(replace(read, guards=(Guard(index, extent),)),))])


def shown(nest: Nest) -> str:
    """Loops, then the element that is read and the tests before it: ``4 8: 8i + j``."""
    (stage,) = nest.stages
    (read,) = stage.reads
    assert isinstance(read, ElementAccess)
    tests = "".join(f" if 0 <= {_sum(g.index)} < {g.extent}" for g in read.guards)
    return f"{' '.join(str(d.extent) for d in nest.dims)}: {_sum(read.index)}{tests}"


def _sum(x: Linear) -> str:
    terms = [f"{c if c != 1 else ''}{'ijkl'[d]}" for d, c in sorted(x.coeffs.items())]
    return " + ".join([*terms, *([str(x.const)] if x.const or not terms else [])])


M4, M8X4, M1X4 = "memref<4xf32>", "memref<8x4xf32>", "memref<1x4xf32>"


def test_a_loop_of_one_iteration_is_removed() -> None:
    nest = copy({"a": 1, "b": 4}, M1X4, M1X4, "a, b")
    assert shown(nest) == "1 4: 4i + j"
    assert shown(drop_unit_loops(nest)) == "4: i"
    assert shown(drop_unit_loops(nest, keep=1)) == "1 4: 4i + j"


def test_loops_that_walk_memory_as_one_are_one() -> None:
    nest = copy({"a": 8, "b": 4}, M8X4, M8X4, "a, b")
    assert shown(nest) == "8 4: 4i + j"
    assert shown(join_loops(nest)) == "32: i"
    assert shown(join_loops(nest, keep=1)) == "8 4: 4i + j"


def test_loops_of_a_transposition_stay() -> None:
    nest = copy({"a": 4, "b": 8}, M8X4, "memref<4x8xf32>", "b, a")
    assert shown(join_loops(nest)) == shown(nest) == "4 8: i + 4j"


def test_a_test_that_always_holds_goes() -> None:
    nest = copy({"a": 4}, M4, M4, "a")
    inside, outside = guarded(nest, Linear(1, {0: 1}), 5), guarded(nest, Linear(1, {0: 1}), 4)
    assert shown(inside) == "4: i if 0 <= i + 1 < 5"
    assert shown(drop_held_guards(inside)) == "4: i"
    assert shown(drop_held_guards(outside)) == shown(outside) == "4: i if 0 <= i + 1 < 4"


def test_all_rules_together() -> None:
    nest = copy({"a": 1, "b": 8, "c": 4}, "memref<1x8x4xf32>", "memref<1x8x4xf32>", "a, b, c")
    assert shown(simplify(nest)) == "32: i"
