"""Commands on programs with open dimensions: what sizes they take, and what they say of others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import landbridge as lb
from tests.cli.command_line import invoke
from tests.open_dimensions.models import Weights, model

DECLARED = ["--dim", "W=8..64:8@16"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """y = x A B, as a model and compiled for every W."""
    w = Weights()
    nodes = [helper.make_node("MatMul", ["x", w(4, 4)], ["p"]), helper.make_node("MatMul", ["p", w(4, 4)], ["y"])]
    folder = tmp_path_factory.mktemp("sizes")
    source, compiled = folder / "rows.onnx", folder / "rows.lbx"
    made = model(nodes, w, {"x": ["W", 4]}, {"y": 2})
    onnx.save(made, source)
    lb.compile(made, dims={"W": "8..64:8@16"}).save(compiled)
    return source, compiled


def result(*arguments: str | Path) -> dict[str, object]:
    done = invoke([*map(str, arguments), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("which", [0, 1])
def test_run_at_a_size(files: tuple[Path, Path], which: int, tmp_path: Path) -> None:
    declared = [] if which else DECLARED
    for at, rows in (((), 16), (("--at", "W=40"), 40)):
        result("run", files[which], *declared, *at, "--repeat", "1", "--output-dir", tmp_path)
        assert np.load(tmp_path / "y.npy").shape == (rows, 4)


def test_inputs_say_the_size_before_at_does(files: tuple[Path, Path], tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((24, 4), np.float32))
    result("run", files[1], "-i", f"x={tmp_path / 'x.npy'}", "--at", "W=40", "--repeat", "1", "--output-dir", tmp_path)
    assert np.load(tmp_path / "y.npy").shape == (24, 4)


@pytest.mark.parametrize("which", [0, 1])
def test_trace_bench_and_plan_at_a_size(files: tuple[Path, Path], which: int, tmp_path: Path) -> None:
    declared = [] if which else DECLARED
    assert result("trace", files[which], *declared, "--at", "W=40", "-o", tmp_path / "t.json")["events"]
    assert result("bench", files[which], *declared, "--at", "W=40", "--rounds", "1", "--alone")["results"]
    small, large = (result("plan", files[which], *declared, "--at", f"W={w}")["peak"] for w in (8, 64))
    assert isinstance(small, int) and isinstance(large, int) and small < large


def test_compare_and_opt(files: tuple[Path, Path]) -> None:
    done = invoke(["compare", str(files[0]), *DECLARED, "--at", "W=64"])
    assert (done.exit_code, "64x4" in done.stdout) == (0, True), done.output
    done = invoke(["opt", str(files[0]), *DECLARED])
    assert (done.exit_code, 'lb.dimensions = {W = "8..64:8@16"}' in done.stdout) == (0, True), done.output


@pytest.mark.parametrize(
    ("at", "code", "output"),
    [
        ("W=9", 1, "dimension 'W' is 9; legal: 8..64:8@16"),
        ("V=8", 1, "the program has no dimension 'V'; its open ones: W"),
        ("9", 2, "NAME=NUMBER"),
    ],
)
def test_sizes_that_cannot_be(files: tuple[Path, Path], at: str, code: int, output: str) -> None:
    for command in ("run", "trace", "bench", "plan"):
        done = invoke([command, str(files[1]), "--at", at], env={"COLUMNS": "200"})
        assert (done.exit_code, output in done.stderr) == (code, True), done.output


def test_programs_of_one_size_have_none_to_choose(files: tuple[Path, Path]) -> None:
    done = invoke(["run", str(files[0]), "--shape", "x=8x4", "--at", "W=8"], env={"COLUMNS": "200"})
    assert (done.exit_code, "every extent of the program is a number" in done.stderr) == (2, True)


@pytest.mark.parametrize("command", ["run", "bench", "trace", "explain"])
def test_inputs_that_find_no_space_are_reported_before_they_are_made(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = Weights()
    made = model([helper.make_node("Exp", ["x"], ["y"])], w, {"x": ["N", 1024]}, {"y": 2})
    lb.compile(made).save(tmp_path / "any.lbx")
    rows = 1 << 30
    monkeypatch.setattr(np.random, "default_rng", None)  # it would be called first
    done = invoke([command, str(tmp_path / "any.lbx"), "--at", f"N={rows}", "--json"])
    assert done.exit_code == 1
    error = json.loads(done.stdout)["error"]
    assert error["kind"] == "OutOfMemoryError"
    assert f"{4 * 1024 * rows:,} bytes for its inputs" in error["message"] and "are available" in error["message"]


def test_memory_that_runs_out_is_an_error_and_no_fault(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("landbridge.cli.inputs.make_inputs", none)
    done = invoke(["run", str(files[1]), "--json"])
    error = json.loads(done.stdout)["error"]
    assert (done.exit_code, error["kind"]) == (1, "OutOfMemoryError") and "memory ran out; name" in error["message"]
