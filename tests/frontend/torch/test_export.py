"""Modules of torch compiled and compared with torch itself."""

from __future__ import annotations

import warnings

import numpy as np
import onnx_ir as ir
import pytest

import landbridge as lb
from landbridge.errors import ImportModelError, InputError, ModelWarning
from landbridge.frontend.torch.dimensions import fixed_axes
from tests.frontend.torch.modules import BATCH, CASES, CNN, GRU, MLP, TIME, Module, nn, torch


def check(session: lb.Session, module: object, inputs: tuple[torch.Tensor, ...]) -> None:
    expected = torch.utils._pytree.tree_leaves(module(*inputs))  # type: ignore[operator]
    for result, wanted in zip(session(*inputs), expected, strict=True):
        np.testing.assert_allclose(np.asarray(result), wanted.detach().numpy(), rtol=1e-4, atol=2e-5)


@pytest.mark.sample(6)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_module_gives_what_torch_gives(case: Module) -> None:
    module, inputs = case.module(), case.inputs(2, 8)
    with warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always")
        program = lb.compile(module, inputs, dynamic_shapes=case.open_axes)
    session = lb.Session(program)
    check(session, module, inputs)
    if any(
        "torch's exporter fixed it" in str(each.message) for each in reported
    ):  # it does in some runs, and that is told
        with pytest.raises(lb.ShapeError):
            session(*case.inputs(*case.others))
    elif case.open_axes is not None:
        assert program.dimensions
        check(session, module, case.inputs(*case.others))


def test_an_exported_program_keeps_its_ranges() -> None:
    module, x = MLP().eval(), torch.randn(3, 20)
    exported = torch.export.export(module, (x,), dynamic_shapes={"x": {0: BATCH}})
    program = lb.compile(exported, target="llvm")
    assert [(dim.low, dim.high) for dim in program.dimensions.values()] == [(1, 64)]
    check(lb.Session(program), module, (torch.randn(7, 20),))
    with pytest.raises(InputError, match="has its inputs"):
        lb.compile(exported, (x,))


def test_expressions_of_dimensions_are_retained() -> None:
    program = lb.compile(CASES["unet, open"].module(), _of("unet, open"), dynamic_shapes=CASES["unet, open"].open_axes)
    assert tuple(map(str, program.main.inputs[0].shape)) == ("batch", "3", "4*h4", "4*w4")
    with pytest.raises(lb.LandbridgeError):
        lb.Session(program)(torch.randn(1, 3, 18, 16))


def _of(name: str) -> tuple[torch.Tensor, ...]:
    return CASES[name].inputs(2, 8)  # type: ignore[no-any-return]


def test_weights_are_the_modules_own_memory() -> None:
    class Sum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.randn(64, 64))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.table

    module = Sum()
    (constant,) = lb.compile(module, torch.randn(64, 64), sanitize=True).constants.values()
    assert constant.ctypes.data == module.table.data_ptr()


def test_a_target_may_stand_second_for_other_models_alone() -> None:
    x = torch.randn(3, 20)
    module = MLP().eval()
    check(lb.Session(lb.compile(module, (x,), "llvm")), module, (x,))
    check(lb.Session(lb.compile(module, target={"kind": "llvm"}, kwargs={"x": x})), module, (x,))
    with pytest.raises(InputError, match="example inputs"):
        lb.compile(module, "llvm")
    with pytest.raises(InputError, match="are for models of torch"):
        lb.compile("model.onnx", (x,))


def test_gradients_that_are_off_change_nothing() -> None:
    module, inputs = CASES["encoder"].module(), _of("encoder")
    with torch.no_grad():
        check(lb.Session(lb.compile(module, inputs)), module, inputs)


def test_axes_that_torch_fixed_are_found() -> None:
    x = ir.Value(name="x", shape=ir.Shape([2, "time", 8]))
    graph = ir.Graph([x], [], nodes=[])
    requested = {0: BATCH, 1: TIME, 2: torch.export.Dim.AUTO}
    assert list(fixed_axes({"x": requested}, graph)) == ["axis 0 of input 'x' is 2"]
    assert list(fixed_axes((requested,), graph)) == ["axis 0 of input 'x' is 2"]
    assert list(fixed_axes({"x": [None, TIME, None]}, graph)) == []


def test_a_module_in_training_mode_is_reported() -> None:
    with pytest.warns(ModelWarning, match="call eval"):
        lb.compile(GRU(), (torch.randn(9, 2, 8), torch.randn(1, 2, 16)))


def test_what_torch_cannot_export_is_reported() -> None:
    class Unsupported(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.matrix_exp(x)

    with pytest.raises(ImportModelError, match="torch cannot export Unsupported to ONNX"):
        lb.compile(Unsupported(), torch.eye(3))


def test_an_output_that_is_no_tensor_is_reported_with_the_way_out() -> None:
    class DynamicCache:
        """As transformers have for keys and values."""

    class Model(nn.Module):
        def __init__(self, kind: type) -> None:
            super().__init__()
            self.kind = kind

        def forward(self, x: torch.Tensor) -> object:
            return x + 1, self.kind()

    with pytest.raises(ImportModelError, match=r"keys and values as a DynamicCache: .*'use_cache': False"):
        lb.compile(Model(DynamicCache), torch.eye(3))
    with pytest.raises(ImportModelError, match="returns an object of Unknown: let it return tensors"):
        lb.compile(Model(type("Unknown", (), {})), torch.eye(3))


def test_a_result_is_retained_for_equal_modules(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDBRIDGE_CACHE", str(tmp_path))
    module, x = CNN().eval(), torch.randn(1, 3, 16, 16)
    first = lb.compile(module, x).metadata["seconds"]
    assert lb.compile(module, x).metadata["seconds"] == first
    with torch.no_grad():
        module.net[-1].bias.add_(1)
    changed = lb.compile(module, x)
    assert changed.metadata["seconds"] != first
    check(lb.Session(changed), module, (x,))


@pytest.mark.parametrize("by_name", [False, True])
def test_open_axes_of_variadic_arguments(by_name: bool) -> None:
    """Tensors of ``*args`` have a tuple of axes, of which an axis that torch fixes is named in a warning."""

    class Sum(nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
            return tensors[0] + tensors[1] * tensors[2]

    open_axes = tuple({0: BATCH} for _ in range(3))
    given = tuple(torch.randn(4, 3) for _ in range(3))
    program = lb.compile(Sum(), given, dynamic_shapes={"tensors": open_axes} if by_name else (open_axes,))
    session = lb.Session(program)
    check(session, Sum(), given)
    check(session, Sum(), tuple(torch.randn(7, 3) for _ in range(3)))
    graph = ir.Graph(
        [ir.Value(name=f"tensors_{i}", shape=ir.Shape([4, 3])) for i in range(3)], [], nodes=[], opset_imports={"": 18}
    )
    named = {"tensors": open_axes} if by_name else (open_axes,)
    assert list(fixed_axes(named, graph)) == [f"axis 0 of input 'tensors_{i}' is 4" for i in range(3)]
