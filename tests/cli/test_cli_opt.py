"""``landbridge opt``: passes by name on IR text that prints and parses in between."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from landbridge.passes import registry
from tests.cli.command_line import invoke
from tests.whole_models.small_models import add

ADD = Path(__file__).parent / "add.mlir"
STEPS = ["fold", "fuse", "bufferize", "plan"]


def test_the_passes_are_listed() -> None:
    listed = json.loads(invoke(["opt", "--list", "--json"]).stdout)["passes"]
    assert [entry["name"] for entry in listed] == registry.names()
    assert all(entry["doc"] for entry in listed)
    shown = invoke(["opt", "--list"]).stdout
    assert all(name in shown for name in STEPS)


def test_rewrites_are_listed_and_may_be_disabled(tmp_path: Path) -> None:
    listed = json.loads(invoke(["opt", "--list", "--json"]).stdout)["rewrites"]
    assert [entry["name"] for entry in listed] == [each.name for each in registry.rewrites()]
    assert "fold.view" in invoke(["opt", "--list"]).stdout
    file = tmp_path / "view.mlir"
    file.write_text("""
!t = tensor<4xf32, #lb.vdevice<0, "global">>
func.func @main() -> tensor<2xf32, #lb.vdevice<0, "global">> {
  %w = "lb.constant"() {symbol = @w} : () -> !t
  %v = "lb.view"(%w) {offset = 2 : i64} : (!t) -> tensor<2xf32, #lb.vdevice<0, "global">>
  func.return %v : tensor<2xf32, #lb.vdevice<0, "global">>
}
""")
    line = ["opt", str(file), "-p", "fold"]
    assert "lb.view" not in invoke(line).stdout
    assert "lb.view" in invoke([*line, "--disable", "fold.pack, fold.view"]).stdout
    done = invoke([*line, "--disable", "fold.views"])
    assert done.exit_code != 0
    assert "there is no rewrite 'fold.views' (did you mean 'fold.view'" in done.output


def test_without_passes_the_text_comes_back() -> None:
    done = invoke(["opt", str(ADD)])
    assert (done.exit_code, done.stdout) == (0, ADD.read_text())


def test_passes_one_by_one_through_text_give_what_they_give_at_once(tmp_path: Path) -> None:
    at_once = invoke(["opt", str(ADD), "-p", ",".join(STEPS)])
    assert at_once.exit_code == 0
    assert at_once.stdout != ADD.read_text()
    file = ADD
    for number, step in enumerate(STEPS):
        after = tmp_path / f"{number}.mlir"
        assert invoke(["opt", str(file), "-p", step, "-o", str(after)]).exit_code == 0
        file = after
    assert file.read_text() == at_once.stdout


def test_json_and_dump(tmp_path: Path) -> None:
    arguments = ["opt", str(ADD), "-p", "fuse, bufferize", "--dump", str(tmp_path), "--json"]
    result = json.loads(invoke(arguments).stdout)
    assert result["passes"] == ["fuse", "bufferize"]
    assert set(result["seconds"]) == {"fuse", "bufferize"}
    assert (tmp_path / "02-bufferize.mlir").read_text() == result["ir"]


@pytest.mark.parametrize("steps", [[], [*STEPS, "lower"]], ids=["lowers itself", "lowered already"])
def test_kernels_as_c(steps: list[str], tmp_path: Path) -> None:
    source = tmp_path / "kernels.c"
    done = invoke(["opt", str(ADD), "-p", ",".join(steps), "--emit-source", str(source)])
    assert done.exit_code == 0
    assert "(void **args, int64_t begin, int64_t end)" in source.read_text()


def test_kernels_as_the_text_of_spirv(tmp_path: Path) -> None:
    source = tmp_path / "kernels.spvasm"
    steps = ",".join([*STEPS, "lower"])
    done = invoke(["opt", str(ADD), "-p", steps, "--target", "vulkan", "--emit-source", str(source)])
    assert done.exit_code == 0
    assert "OpEntryPoint" in source.read_text() and "= OpFAdd" in source.read_text()


def test_launches_print_parse_and_become_opencl_c(tmp_path: Path) -> None:
    lowered, source = tmp_path / "lowered.mlir", tmp_path / "kernels.cl"
    steps, target = ",".join([*STEPS, "lower"]), ["--target", "opencl"]
    made = invoke(["opt", str(ADD), "-p", steps, *target, "-o", str(lowered)])
    assert made.exit_code == 0 and '"gpu.launch"' in lowered.read_text()
    again = invoke(["opt", str(lowered), *target, "--emit-source", str(source), "--json"])
    assert json.loads(again.stdout)["ir"] == lowered.read_text()
    assert "kernel __attribute__((reqd_work_group_size(" in source.read_text()


@pytest.mark.parametrize(
    ("text", "passes", "says"),
    [
        ("builtin.module {", "", "does not parse"),
        (ADD.read_text(), "bufferze", "no pass 'bufferze'"),
        (ADD.read_text().replace('"lb.call"', '"lb.cull"'), "", "does not parse"),
    ],
)
def test_errors(tmp_path: Path, text: str, passes: str, says: str) -> None:
    file = tmp_path / "bad.mlir"
    file.write_text(text)
    done = invoke(["opt", str(file), "-p", passes])
    assert (done.exit_code, done.stdout) == (1, "")
    assert says in done.stderr


@pytest.mark.parametrize("name", ["plan", "inplace"])
def test_a_pass_before_the_one_it_needs(name: str, tmp_path: Path) -> None:
    onnx.save(add(), tmp_path / "add.onnx")
    done = invoke(["opt", str(tmp_path / "add.onnx"), "-p", name])
    assert done.exit_code == 1 and "run place,bufferize before" in done.stderr
    done = invoke(["opt", str(tmp_path / "add.onnx"), "-p", f"place,bufferize,{name}"])
    assert done.exit_code == 0, done.stderr
