"""Plugins with open dimensions: kernels of tasks on vectors take them, those of plain loops refuse them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from onnx import parser

import landbridge as lb
from landbridge.codegen import registry as codegens
from landbridge.device import registry
from landbridge.errors import CompileError, UnsupportedOperatorError
from landbridge.targets import TargetKind, c_compiler
from landbridge.targets import registry as targets
from tests.open_dimensions import models
from tests.open_dimensions.test_device_node_cases import run_on_device
from tests.selection.installed import missing
from tests.testing.c_kernels import KIND, generate
from tests.testing.mutants import Correct

LOOPS = TargetKind("loops-of-tests", "a device of plain loops", (), ("mutant",), form="loops")


def register_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register a kind of target for tasks on vectors, and one for plain loops, until the end of the test."""
    for kind in (KIND, LOOPS):
        monkeypatch.setitem(targets._kinds._known, kind.name, kind)
        monkeypatch.setitem(targets._kinds._registered, kind.name, "tests")
        monkeypatch.setitem(codegens._codegens._known, kind.name, generate)
        monkeypatch.setitem(codegens._codegens._registered, kind.name, "tests")


@pytest.fixture
def npu(monkeypatch: pytest.MonkeyPatch) -> Iterator[lb.Device]:
    """A device with memory of its own, whose kernels the compiler's C is built for."""
    if c_compiler.find() is None:
        missing("a C compiler", "debian")
    register_kinds(monkeypatch)
    registry.device("cpu")
    api = Correct()
    monkeypatch.setitem(registry._plugins._known, "mutant", api)
    monkeypatch.setattr(registry, "_types", {**registry._types, 5000: "mutant"})
    monkeypatch.setattr(registry, "_devices", {})
    yield registry.device("mutant")
    assert api.violations == []


@pytest.mark.parametrize(
    ("model", "dims", "shapes"),
    [
        ("convolutions", {"N": "1..3", "H": "16..64:8", "W": "8..256:8@64"}, [(1, 3, 16, 64), (2, 3, 40, 8)]),
        ("attention", None, [(1, 5, 32), (3, 70, 32), (8, 1, 32)]),
    ],
)
def test_a_network_of_tasks_on_vectors(
    npu: lb.Device, model: str, dims: dict[str, str] | None, shapes: list[tuple[int, ...]]
) -> None:
    proto = getattr(models, model)()
    executable = lb.compile(proto, lb.Target.from_device(npu), dims=dims)
    session, on_cpu = lb.Session(executable, device=npu), lb.Session(lb.compile(proto, dims=dims))
    for shape in (*shapes, shapes[0]):
        x = np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)
        for found, expected in zip(run_on_device(session, {"x": x}), on_cpu(x), strict=True):
            np.testing.assert_allclose(found, np.asarray(expected), rtol=1e-4, atol=1e-5)


def test_plain_loops_have_known_shapes(npu: lb.Device) -> None:
    with pytest.raises(CompileError, match="target 'loops-of-tests' makes code for known shapes only, and N, H, W are"):
        lb.compile(models.convolutions(), "loops-of-tests", dims={})
    with pytest.raises(UnsupportedOperatorError, match="unknown dimensions"):
        lb.compile(models.convolutions(), "loops-of-tests")
    text = "g (float[2, 3, 4, 5, 6] x, int64[4] v) => (float[a, b, c, d, e] y) { y = ReduceSum(x, v) }"
    sums = parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}')
    with pytest.raises(UnsupportedOperatorError, match=r"input 'v' \(10000 values\) .* constants={'v': \.\.\.}"):
        lb.compile(sums, "loops-of-tests")
