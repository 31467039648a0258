"""compile(): IR in, an Executable that runs out; targets, placement, dumps and the errors of each."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ArrayAttr, StringAttr

from landbridge.compiler.api import compile
from landbridge.compiler.compilation import PIPELINE
from landbridge.errors import CompileError, PlacementError, TargetError
from landbridge.executable.instructions import Call, LoadConstant, ToVDevice
from landbridge.executable.parts import TensorSpec, VDevice
from landbridge.passes.registry import names
from landbridge.targets import Target
from tests.passes.graphs import add, double, graph, relu, row_sums
from tests.passes.native import NativeRun


def model():
    def build(g, x):
        bias = g.constant(np.arange(16, dtype=np.float32), "bias")
        a = relu(g, x)
        return [row_sums(g, add(g, a, bias)), double(g, a)]

    module = graph([((8, 16), "float32")], build)
    module.main.attributes["lb.input_names"] = ArrayAttr([StringAttr("x")])
    module.main.attributes["lb.output_names"] = ArrayAttr([StringAttr("sums"), StringAttr("twice")])
    return module


def expected(x):
    a = np.maximum(x, 0)
    return (a + np.arange(16, dtype=np.float32)).sum(1), a * 2


def check(exe):
    x = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
    for out, wanted in zip(NativeRun(exe)(x), expected(x), strict=True):
        np.testing.assert_allclose(out, wanted, rtol=1e-5)


def test_ir_compiles_for_this_host_and_is_left_as_it_was():
    module = model()
    before = module.print()
    exe = compile(module)
    assert module.print() == before and set(module.constants) == {"bias"}
    check(exe)
    assert exe.main.inputs == (TensorSpec("x", (8, 16), "float32"),)
    assert exe.main.outputs == (TensorSpec("sums", (8,), "float32"), TensorSpec("twice", (8, 16), "float32"))
    assert exe.vdevices == (VDevice("cpu", 0),)
    assert [m.target for m in exe.modules] == [Target("llvm").to_json()]
    assert not any(i.moves_bytes for i in exe.main.instructions if isinstance(i, Call))
    assert exe.metadata["landbridge"] and float(exe.metadata["seconds.codegen"]) > 0


@pytest.mark.parametrize("target", ["llvm", {"kind": "llvm", "mcpu": "x86-64-v3"}, Target("llvm -mcpu=x86-64-v2")])
def test_a_target_is_text_a_dict_or_a_target(target):
    check(compile(model(), target))


def test_nodes_run_where_they_are_placed_and_crossings_are_copies():
    exe = compile(model(), {"a": "llvm", "b": "llvm -mcpu=x86-64-v3"}, place={"a*d": "b"})
    check(exe)
    assert [v.name for v in exe.vdevices] == ["a", "b"] and len(exe.modules) == 2
    on_b = [i for i in exe.main.instructions if isinstance(i, Call) and i.module == 1]
    assert [i.name.split("+")[0] for i in on_b] == ["add"]
    assert [i.vdevice for i in exe.main.instructions if isinstance(i, LoadConstant)] == [1]
    assert sum(isinstance(i, ToVDevice) for i in exe.main.instructions) == 2
    assert {(r.device, r.proved_optimal) for r in exe.memory} == {("a", True), ("b", True)}


def test_vdevices_of_one_target_share_its_module():
    exe = compile(model(), {"a": "llvm", "b": "llvm"}, place={"add": "b"})
    check(exe)
    assert len(exe.modules) == 1


def test_dump_shows_each_pass(tmp_path):
    compile(model(), dump=tmp_path / "ir")
    files = sorted(p.name for p in (tmp_path / "ir").iterdir())
    assert files[0] == "00-import.mlir" and files[-1] == "lowered.mlir" and len(files) == len(PIPELINE) + 2
    assert "dense" not in (tmp_path / "ir" / "00-import.mlir").read_text()


def test_the_pipeline_is_made_of_passes():
    assert set(PIPELINE) <= set(names())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"place": {"add": "gpu"}}, PlacementError, "no such vdevice .*legal: cpu"),
        (
            {"place": {"conv*": "cpu"}},
            PlacementError,
            "matches no node, input, output or constant; legal: nodes add, double",
        ),
        ({"on_mismatch": "ignore"}, CompileError, "legal: 'error', 'copy'"),
        ({"shapes": {"x": (1,)}}, CompileError, "is IR already"),
        ({"target": {}}, TargetError, "names no vdevice"),
        ({"target": "llwm"}, TargetError, "llvm"),
    ],
)
def test_what_cannot_be_is_reported(arguments, error, message):
    with pytest.raises(error, match=message):
        compile(model(), **arguments)
