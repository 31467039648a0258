"""A vendor's kernels: a device, a target kind and a code generator that share nothing with ours but plain loops."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.codegen.registry import register_codegen
from landbridge.device import registry as devices
from landbridge.errors import BindError, CodegenError, FallbackWarning
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.parts import ModuleImage
from landbridge.targets import TargetKind, get_kind, names, register

FILE = Path(__file__).parent / "abacus_device" / "landbridge_abacus.py"
Array = np.ndarray[Any, Any]


def _abacus() -> ModuleType:
    """The plugin, registered once in this process."""
    known = sys.modules.get("landbridge_abacus")
    if known is None:
        spec = importlib.util.spec_from_file_location("landbridge_abacus", FILE)
        assert spec is not None and spec.loader is not None
        known = sys.modules["landbridge_abacus"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(known)
        register(known.ABACUS)
        register_codegen("abacus", known.generate)
    return known


@pytest.fixture
def api() -> Iterator[Any]:
    made = _abacus().AbacusDeviceAPI()
    devices.register(made)
    yield made
    devices.unregister("abacus")


def graph(
    nodes: list[Any], inputs: dict[str, tuple[int, ...]], output: str, weights: dict[str, Array], rank: int = 2
) -> Any:
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()]
    result = helper.make_tensor_value_info(output, TensorProto.FLOAT, [f"d{i}" for i in range(rank)])
    arrays = [numpy_helper.from_array(a, n) for n, a in weights.items()]
    made = helper.make_graph(nodes, "g", values, [result], arrays)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def random(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def convolution() -> Any:
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("MaxPool", ["r"], ["y"], name="pool", kernel_shape=[2, 2]),
    ]
    return graph(nodes, {"x": (1, 3, 7, 6)}, "y", {"w": random(5, 3, 3, 3), "b": random(5)}, rank=4)


def product() -> Any:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
    return graph(nodes, {"x": (5, 7)}, "y", {"w": random(7, 4)})


def on_cpu(model: Any, *arrays: Array) -> Array:
    return np.array(lb.Session(lb.compile(model))(*arrays)[0])


def on_abacus(executable: lb.Executable, *arrays: Array) -> Array:
    session = lb.Session(executable, device="abacus")
    for spec, array in zip(executable.main.inputs, arrays, strict=True):
        session.set_input(spec.name, array)
    session.run()
    return np.array(session.get_output(0).to_device("cpu"))


def target() -> lb.Target:
    return lb.Target.from_device(lb.device("abacus"))


@pytest.mark.parametrize(("model", "shape"), [(convolution(), (1, 3, 7, 6)), (product(), (5, 7))])
def test_a_network_runs_on_plain_loops(api: Any, model: Any, shape: tuple[int, ...]) -> None:
    x = random(*shape)
    found = on_abacus(lb.compile(model, target()), x)
    # sums of at most 27 products of numbers of size 1, added in another order
    np.testing.assert_allclose(found, on_cpu(model, x), rtol=0, atol=27 * 27 * 2.0**-24)
    assert api.launched


def test_what_a_generator_is_given(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    plugin = _abacus()
    generate = plugin.Generator.__call__
    monkeypatch.setattr(plugin.Generator, "__call__", lambda self, m, t: seen.extend(m.walk()) or generate(self, m, t))
    lb.compile(convolution(), target())
    assert {op.name.partition(".")[0] for op in seen} <= {"builtin", "func", "scf", "memref", "arith", "math"}
    assert not [v for op in seen for v in op.results if "vector" in str(v.type)]
    functions = [op for op in seen if op.name == "func.func"]
    assert functions and all("memref" in str(ty) for f in functions for ty in f.function_type.inputs)


def test_a_format_is_retained_in_a_file(api: Any, tmp_path: Path) -> None:
    executable = lb.compile(product(), target())
    executable.save(tmp_path / "p.lbx")
    loaded = lb.load(tmp_path / "p.lbx")
    assert loaded.modules[0].image.format == _abacus().FORMAT
    x = random(5, 7)
    np.testing.assert_array_equal(on_abacus(loaded, x), on_abacus(executable, x))


def test_a_declined_kernel_goes_to_a_cpu(api: Any) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"], name="product"),
        helper.make_node("Tanh", ["p"], ["t"], name="tanh"),
        helper.make_node("MatMul", ["t", "v"], ["y"], name="again"),
    ]
    model = graph(nodes, {"x": (5, 7)}, "y", {"w": random(7, 4), "v": random(4, 3)})
    with pytest.warns(FallbackWarning, match=r"'product\+tanh'|'tanh'.*: on the CPU, as an abacus has no math"):
        executable = lb.compile(model, target())
    assert [v.name for v in executable.vdevices] == ["abacus", "cpu"]
    x = random(5, 7)
    # 4 products of numbers below 3, of two that differ by a few units in the last place
    np.testing.assert_allclose(on_abacus(executable, x), on_cpu(model, x), rtol=0, atol=1e-5)
    assert api.launched


def test_branches_are_taken_on_the_cpu(api: Any) -> None:
    def branch(name: str, operator: str) -> Any:
        out = helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, (5, 4))
        return helper.make_graph([helper.make_node(operator, ["p", "p"], [f"{name}_y"], name=name)], name, [], [out])

    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"], name="product"),
        helper.make_node("ReduceSum", ["p"], ["s"], name="sum", keepdims=0),
        helper.make_node("Greater", ["s", "zero"], ["c"], name="compare"),
        helper.make_node("If", ["c"], ["z"], name="if", then_branch=branch("a", "Add"), else_branch=branch("b", "Mul")),
        helper.make_node("MatMul", ["z", "v"], ["y"], name="last"),
    ]
    weights = {"w": random(7, 4), "v": random(4, 3), "zero": np.zeros((), np.float32)}
    model = graph(nodes, {"x": (5, 7)}, "y", weights)
    with pytest.warns(FallbackWarning):
        executable = lb.compile(model, {"abacus": target(), "cpu": "llvm"})
    for x in (random(5, 7), -random(5, 7)):
        api.launched.clear()
        (y,) = lb.Session(executable, devices={"abacus": "abacus", "cpu": "cpu"})(x)
        np.testing.assert_allclose(np.array(y.to_device("cpu")), on_cpu(model, x), rtol=1e-5, atol=1e-4)
        assert len(api.launched) >= 2


def test_operands_in_rows_reach_kernels_as_tables(api: Any) -> None:
    nodes = [
        helper.make_node("Add", ["x", "b"], ["s"], name="sum"),
        helper.make_node("MatMul", ["s", "w"], ["y"], name="product"),
    ]
    model = graph(nodes, {"x": (5, 7)}, "y", {"b": random(5, 7), "w": random(7, 4)})
    place = {"sum": "abacus@global.rows[1]", "b": "abacus@global.rows[1]"}
    executable = lb.compile(model, target(), place=place)
    x = random(5, 7)
    np.testing.assert_allclose(on_abacus(executable, x), on_cpu(model, x), rtol=0, atol=7 * 14 * 2.0**-24)
    scopes = {v.scope for v in executable.vdevices}
    assert "global.rows" in scopes


def test_an_unknown_pair_is_refused_at_compile_with_both_names(api: Any) -> None:
    with pytest.raises(CodegenError, match=r"'abacus' makes .* format 'abacus beads, 1', and abacus loads 'old'"):
        lb.compile(product(), lb.Target({**target().to_dict(), "formats": ["old"]}))


def test_an_image_of_another_format_is_refused_at_bind(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = lb.compile(product(), "abacus")
    monkeypatch.setattr(type(api), "module_formats", lambda self, index: ("beads, 2",))
    with pytest.raises(BindError, match="kernels in abacus beads, 1, and abacus:0 loads beads, 2"):
        lb.Session(executable, device="abacus")


def _changed(**change: Any) -> Any:
    """A target kind whose generator makes sequences with ``change``."""
    name = f"abacus-{len(names())}"
    register(replace(get_kind("abacus"), name=name))

    def generate(module: Any, target: lb.Target) -> ModuleImage:
        made = _abacus().generate(module, target)
        functions = {n: replace(s, **change) for n, s in made.image.functions.items()}
        return ModuleImage(target.to_json(), replace(made.image, functions=functions))

    register_codegen(name, generate)
    return name


def test_another_number_of_operands_names_the_generator_and_both_counts(api: Any) -> None:
    kind = _changed(operands=2)
    with pytest.raises(CodegenError, match=rf"'{kind}' launches '\w+' with 2 operands, .* calls it with 3"):
        lb.compile(product(), kind)


def test_a_file_whose_launches_do_not_fit_names_the_generator_and_both_counts(api: Any) -> None:
    executable = lb.compile(product(), "abacus")
    image = executable.modules[0].image
    assert isinstance(image, DeviceImage)
    fewer = {n: replace(s, operands=2, launches=()) for n, s in image.functions.items()}
    broken = replace(executable, modules=(ModuleImage(executable.modules[0].target, replace(image, functions=fewer)),))
    with pytest.raises(BindError, match=r"3 operands, and the image .* kind 'abacus' made launches it with 2 operands"):
        lb.Session(broken, device="abacus")


def test_a_kind_wants_a_form_that_there_is() -> None:
    with pytest.raises(lb.TargetError, match="wants form 'tiles'; legal: vectors, grid, loops"):
        TargetKind("odd", "", (), ("odd",), form="tiles")  # type: ignore[arg-type]


def test_kernels_of_a_device_are_functions_by_name(api: Any, tmp_path: Path) -> None:
    executable = lb.compile(product(), "abacus")
    module = lb.Module(executable)
    ((name, kernel),) = module.kernels.items()
    x, w = random(5, 7), random(7, 4)
    given = {(5, 7): x, (7, 4): w, (5, 4): np.zeros((5, 4), np.float32)}
    tensors = [lb.asarray(given[spec.shape], device="abacus") for spec in kernel.operands]
    module[name](*tensors)
    # 7 products of numbers of size 1, summed in float32
    np.testing.assert_allclose(np.array(tensors[-1].to_device("cpu")), x @ w, rtol=0, atol=7 * 7 * 2.0**-24)
    with pytest.raises(lb.InputError, match="takes 3 tensors, 2 were given"):
        module[name](*tensors[:2])
    with pytest.raises(lb.InputError, match=r"operand 0 is float32\[5, 7\] on abacus:0; .* is not"):
        module[name](lb.asarray(x), *tensors[1:])
    with pytest.raises(lb.InputError, match=r"operand 0 is float32\[5, 7\] on abacus:0, dense"):
        module[name](tensors[1], *tensors[1:])
    with pytest.raises(lb.InputError, match=r"exported with their whole program, in a file that ends in .lbx"):
        module.export(tmp_path / "m.so")
    module.export(tmp_path / "m.lbx")
    session = lb.Session(lb.load(tmp_path / "m.lbx"), device="abacus")
    (y,) = session(*(lb.asarray(given[s.shape], device="abacus") for s in executable.main.inputs))
    np.testing.assert_allclose(np.array(y.to_device("cpu")), x @ w, rtol=0, atol=7 * 7 * 2.0**-24)
