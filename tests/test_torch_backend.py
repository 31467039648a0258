"""torch.compile(backend=): graphs of Dynamo give what torch gives, at other sizes and with other weights too."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.frontend.torch.modules import CASES, MLP, nn, torch

if True:  # after torch is known to be here
    from landbridge.errors import FallbackWarning
    from landbridge.torch_backend import landbridge_backend

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    with torch.no_grad():
        yield
    torch._dynamo.reset()


def check(compiled: object, module: object, inputs: tuple[torch.Tensor, ...]) -> None:
    results, wanted = (torch.utils._pytree.tree_leaves(run(*inputs)) for run in (compiled, module))  # type: ignore[operator]
    for result, expected in zip(results, wanted, strict=True):
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=2e-5)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "name", ["cnn", "mlp", "encoder", "encoder, padded", "attention", "bag mean", "detector", "keyed"]
)
def test_a_module_gives_what_torch_gives_at_each_size(name: str) -> None:
    case = CASES[name]
    module = case.module()
    compiled = torch.compile(module, backend=landbridge_backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        for batch in (2, 3, 5):
            check(compiled, module, case.inputs(batch, 8))


def test_dimensions_open_from_the_first_call_on() -> None:
    module = MLP().eval()
    compiled = torch.compile(module, backend=landbridge_backend, dynamic=True, options={"num_threads": 1})
    for batch in (3, 7):
        check(compiled, module, (torch.randn(batch, 20),))


def test_attention_with_weights() -> None:
    class Weighing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(32, 4, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.attention(x, x, x)  # type: ignore[no-any-return]

    module = Weighing().eval()
    check(torch.compile(module, backend=landbridge_backend), module, (torch.randn(2, 7, 32),))


def test_weights_that_change_count() -> None:
    module, inputs = MLP().eval(), (torch.randn(3, 20),)
    compiled = torch.compile(module, backend=landbridge_backend)
    check(compiled, module, inputs)
    module.first.weight.mul_(2)
    check(compiled, module, inputs)


def test_training_is_left_to_torch() -> None:
    module = MLP()
    compiled = torch.compile(module, backend=landbridge_backend)
    with torch.enable_grad(), pytest.warns(FallbackWarning, match="gradients are wanted"):
        compiled(torch.randn(3, 20)).sum().backward()
    assert module.first.weight.grad is not None


def test_a_graph_that_changes_its_inputs_is_left_to_torch() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count += 1
            return x * self.count

    compiled = torch.compile(Counting(), backend=landbridge_backend)
    with pytest.warns(FallbackWarning, match="in place"):
        assert [float(compiled(torch.ones(1))) for _ in range(3)] == [1, 2, 3]


def test_a_number_that_changes_is_left_to_torch() -> None:
    class Shifted(nn.Module):
        def forward(self, x: torch.Tensor, by: int) -> torch.Tensor:
            return x + by

    compiled = torch.compile(Shifted(), backend=landbridge_backend)
    with pytest.warns(FallbackWarning, match="not an extent of a tensor"):
        for by in (2, 3, 5):
            check(compiled, Shifted(), (torch.randn(3), by))


def test_inputs_that_are_not_contiguous() -> None:
    module = MLP().eval()
    compiled = torch.compile(module, backend=landbridge_backend)
    check(compiled, module, (torch.randn(20, 6).t()[::2],))


def test_torch_finds_it_by_name(tmp_path: Path) -> None:
    group = "torch_dynamo_backends"
    point = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][group]["landbridge"]
    installed = tmp_path / "landbridge-1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: landbridge\nVersion: 1\n")
    (installed / "entry_points.txt").write_text(f"[{group}]\nlandbridge = {point}\n")
    program = "import torch; print(torch._dynamo.list_backends(), torch.compile(torch.nn.ReLU(), backend='landbridge'))"
    path = os.pathsep.join([str(tmp_path), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    child = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert child.returncode == 0 and "'landbridge'" in child.stdout, child.stderr
