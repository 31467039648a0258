"""Attributes have one home, and what is written there is read back."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, i64

import landbridge
from landbridge.errors import CompileError
from landbridge.ir import attributes
from landbridge.ir.module import IRModule
from landbridge.ir.types import VDeviceAttr
from landbridge.targets import Target

SOURCE = Path(landbridge.__file__).parent


def main() -> func.FuncOp:
    text = """
func.func @main(%0: tensor<2xf32, #lb.vdevice<0, "global">>) -> tensor<2xf32, #lb.vdevice<0, "global">> {
  func.return %0 : tensor<2xf32, #lb.vdevice<0, "global">>
}
"""
    return IRModule.parse(text, (Target("llvm -mcpu=x86-64-v3"),)).main


def keys() -> set[str]:
    """The keys that ``ir/attributes.py`` states."""
    return {v for k, v in vars(attributes).items() if k.isupper() and isinstance(v, str)}


def test_no_other_file_states_a_key() -> None:
    found = []
    for path in SOURCE.rglob("*.py"):
        if path == Path(attributes.__file__):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assigned = [n for n in ast.walk(tree) if isinstance(n, ast.Assign)]
        named = {id(n.value) for n in assigned if ast.unparse(n.targets[0]) == "name"}  # of an operation or attribute
        found += [
            f"{path.relative_to(SOURCE)}:{node.lineno} {node.value}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and node.value in keys() - {"node", "why"} and id(node) not in named
        ]
    assert not found


def test_names_of_inputs_and_outputs() -> None:
    function = main()
    assert attributes.io_names(function) == (("input_0",), ("output_0",))
    attributes.set_io_names(function, ["x"], ["y"])
    assert attributes.io_names(function) == (("x",), ("y",))
    attributes.set_io_names(function, [], [])
    assert attributes.io_names(function) == ((), ()), "names that are stated count, even none"
    assert attributes.parameter_names(function) == ()
    attributes.set_parameter_names(function, ["w"])
    assert attributes.parameter_names(function) == ("w",)


def test_requests_are_taken_once() -> None:
    function = main()
    attributes.set_place_requests(function, {"conv*": VDeviceAttr.of(1, "global.vtcm")})
    attributes.set_spill_requests(function, {"global.vtcm": "global"})
    assert attributes.take_place_requests(function) == {"conv*": VDeviceAttr.of(1, "global.vtcm")}
    assert attributes.take_spill_requests(function) == {"global.vtcm": "global"}
    assert attributes.take_place_requests(function) == attributes.take_spill_requests(function) == {}
    assert not function.attributes


def test_frames() -> None:
    function = main()
    attributes.set_frame_layouts(function, {"x": ((2, 3), (4, 1)), "y": ((2,), ())})
    assert attributes.frame_layouts(function) == {"x": ((2, 3), (4, 1)), "y": ((2,), ())}
    function.attributes[attributes.FRAMES] = DictionaryAttr({"x": ArrayAttr([])})
    with pytest.raises(CompileError, match=r"lb\.frames of 'x'.*two lists of integers"):
        attributes.frame_layouts(function)


def test_facts_of_functions() -> None:
    function = main()
    assert not attributes.is_prim(function) and not attributes.is_in_place(function)
    assert (attributes.target_number(function), attributes.moved_bytes(function)) == (0, 0)
    assert attributes.task_count(function) is None
    attributes.mark_prim(function)
    attributes.mark_in_place(function)
    attributes.set_target_number(function, 2)
    attributes.set_moved_bytes(function, 64)
    attributes.set_task_count(function, 0)
    assert attributes.is_prim(function) and attributes.is_in_place(function)
    assert (attributes.target_number(function), attributes.moved_bytes(function)) == (2, 64)
    assert attributes.task_count(function) == 0
    attributes.set_moved_bytes(function, 0)
    assert attributes.MOVES not in function.attributes


def test_facts_of_operations() -> None:
    op = main()
    assert attributes.node_name(op) == "" and attributes.vdevice_stated(op) is None
    attributes.set_node_name(op, "add")
    attributes.place_on(op, VDeviceAttr.of(1))
    attributes.set_plan_quality(op, 128, True)
    assert attributes.node_name(op) == "add"
    assert attributes.placed_on(op) == VDeviceAttr.of(1)
    assert attributes.plan_quality(op) == (128, True)


def test_lists_of_integers() -> None:
    assert attributes.int_array([1, 2]) == ArrayAttr([IntegerAttr(1, i64), IntegerAttr(2, i64)])
    assert attributes.ints(attributes.int_array([3, 4])) == (3, 4)
