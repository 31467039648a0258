"""IR text as a model: what every pass dumps compiles to the program that it came from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.errors import CompileError, FallbackWarning, ModelWarning, PlacementError, TargetError
from tests.cli.command_line import invoke

SHAPE = (1, 3, 9, 8)


def network() -> Any:
    rng = np.random.default_rng(1)
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("MaxPool", ["r"], ["y"], name="pool", kernel_shape=[2, 2]),
    ]
    arrays = {"w": rng.standard_normal((5, 3, 3, 3)), "b": rng.standard_normal(5)}
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, list("nchw"))],
        [numpy_helper.from_array(a.astype(np.float32), n) for n, a in arrays.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


X = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)


def result(executable: lb.Executable) -> np.ndarray[Any, Any]:
    return np.array(lb.Session(executable)(X)[0])


@pytest.mark.parametrize("options", [{}, {"mutable": ["w"]}], ids=["constants", "parameters"])
def test_every_dump_compiles_again(tmp_path: Path, options: Any) -> None:
    executable = lb.compile(network(), dump=tmp_path, **options)
    files = sorted(tmp_path.glob("[0-9]*.mlir"))
    assert len(files) == 27
    # Folding names what it has computed: of earlier dumps the constants are those of the file that was imported.
    for file in files[-8:]:
        again = lb.compile(file.read_text(), constants=executable.constants)
        np.testing.assert_array_equal(result(again), result(executable), file.name)
        assert again.main.instructions == executable.main.instructions
        assert again.memory == executable.memory


def test_a_file_of_a_plan_compiles_on_the_command_line(tmp_path: Path) -> None:
    lb.compile(network(), dump=tmp_path)
    (plan,) = tmp_path.glob("*-plan.mlir")
    done = invoke(["compile", str(plan), "-o", str(tmp_path / "p.lbx"), "--json"])
    assert done.exit_code == 0, done.stderr
    assert lb.load(tmp_path / "p.lbx").main.inputs[0].shape == SHAPE
    done = invoke(["run", str(plan), "--repeat", "1", "--json"])
    assert done.exit_code == 0, done.stderr


def test_constants_that_nobody_gives_are_made_up_and_reported(tmp_path: Path) -> None:
    executable = lb.compile(network(), dump=tmp_path)
    (plan,) = tmp_path.glob("*-plan.mlir")
    with pytest.warns(ModelWarning, match=r"names 2 constants and holds none .*constants=executable.constants"):
        first = lb.compile(plan)
    with pytest.warns(ModelWarning):
        second = lb.compile(plan)
    np.testing.assert_array_equal(result(first), result(second))
    assert not np.array_equal(result(first), result(executable))


def test_constants_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    executable = lb.compile(network(), dump=tmp_path)
    (plan,) = tmp_path.glob("*-plan.mlir")
    name, array = next(iter(executable.constants.items()))
    with pytest.raises(CompileError, match=rf"constant '{name}' is float64.*; the IR names float32"):
        lb.compile(plan, constants={**executable.constants, name: array.astype(np.float64)})
    with pytest.raises(CompileError, match=r"constants=\['odd'\] are none of the IR's; it names"):
        lb.compile(plan, constants={**executable.constants, "odd": array})


def test_vdevices_are_found_by_name(tmp_path: Path) -> None:
    targets = {"a": "llvm -num-cores=1", "b": "llvm -num-cores=2"}
    executable = lb.compile(network(), targets, place={"pool": "b"}, dump=tmp_path)
    (plan,) = tmp_path.glob("*-plan.mlir")
    again = lb.compile(plan, dict(reversed(targets.items())), constants=executable.constants)
    assert again.vdevices == executable.vdevices
    assert [m.target for m in again.modules] == [m.target for m in executable.modules]
    with pytest.raises(TargetError, match=r"uses vdevices a, b and target= gives none for 'b'"):
        lb.compile(plan, {"a": "llvm"}, constants=executable.constants)
    with pytest.raises(TargetError, match=r"no vdevice 'bb' \(did you mean 'b'\?\); legal: a, b"):
        lb.compile(plan, {"a": "llvm", "bb": "llvm"}, constants=executable.constants)


def test_a_cpu_that_was_added_needs_no_target(tmp_path: Path) -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, (4,)) for name in "xzy"]
    node = helper.make_node("Add", ["x", "z"], ["y"], name="sum")
    graph = helper.make_graph([node], "doubles", values[:2], values[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.warns(FallbackWarning):
        executable = lb.compile(model, "opencl", dump=tmp_path)
    (plan,) = tmp_path.glob("*-plan.mlir")
    assert lb.compile(plan, "opencl").vdevices == executable.vdevices


@pytest.mark.parametrize("options", [{"place": {"pool": "cpu"}}, {"spill": {"global": "global"}}])
def test_what_is_decided_cannot_be_requested(tmp_path: Path, options: Any) -> None:
    executable = lb.compile(network(), dump=tmp_path)
    (plan,) = tmp_path.glob("*-plan.mlir")
    with pytest.raises(CompileError):
        lb.compile(plan, constants=executable.constants, **options)
    with pytest.raises(CompileError, match="are for models that are imported"):
        lb.compile(plan, shapes={"x": SHAPE})


@pytest.mark.parametrize("target", ["llvm", "opencl"])
def test_a_scope_that_the_target_does_not_have_is_refused(tmp_path: Path, target: str) -> None:
    lb.compile(network(), {"cpu": target}, dump=tmp_path)
    for file in sorted(tmp_path.glob("[0-9]*.mlir")):
        text = file.read_text().replace('"global"', '"global.vtcm"')
        with pytest.raises(
            PlacementError, match=r"in scope 'global\.vtcm' \(did you.*; legal: cpu has global"
        ) as error:
            lb.compile(text, {"cpu": target})
        assert "memory=[...]" in str(error.value), file.name


def test_a_function_that_nothing_calls_is_checked_too() -> None:
    text = (
        "builtin.module {\n"
        '  func.func @f(%0: memref<4xf32, "globl">) attributes {lb.prim} {\n    func.return\n  }\n'
        "  func.func @main() attributes {lb.input_names = [], lb.output_names = []} {\n    func.return\n  }\n}\n"
    )
    with pytest.raises(PlacementError, match=r"@f: the IR places a value of func.func in scope 'globl'"):
        lb.compile(text)
