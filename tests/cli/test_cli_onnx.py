"""Commands on ONNX files: ``compile``, ``run``, ``opt``, and ``compare`` with onnxruntime."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from landbridge.cli.compare import _difference
from landbridge.cli.reference import Reference
from tests.cli.command_line import invoke
from tests.plugins.test_open_dimensions import LOOPS, register_kinds

WEIGHTS = np.linspace(-1, 1, 8, dtype=np.float32)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """y = relu(x + w) * 2, with a batch that the file leaves open."""
    nodes = [
        helper.make_node("Add", ["x", "w"], ["sum"], name="add"),
        helper.make_node("Relu", ["sum"], ["positive"], name="relu"),
        helper.make_node("Add", ["positive", "positive"], ["y"], name="twice"),
    ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 8])],
        [numpy_helper.from_array(WEIGHTS, "w")],
    )
    file = tmp_path / "tiny.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), file)
    return file


def test_compile_then_run(model: Path, tmp_path: Path) -> None:
    compiled = invoke(["compile", str(model), "--shape", "x=4x8", "--json"])
    assert compiled.exit_code == 0
    described = json.loads(compiled.stdout)
    file = Path(described["file"])
    assert file == model.with_suffix(".lbx")
    assert described["bytes"] == file.stat().st_size
    assert described["inputs"] == [{"name": "x", "shape": [4, 8], "dtype": "float32"}]
    assert described["constant_bytes"] == WEIGHTS.nbytes
    assert described["compile_s"] > 0
    x = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    for program, shape in ((file, []), (model, ["--shape", "x=4x8"])):
        out = tmp_path / program.suffix
        arguments = ["run", str(program), *shape, "--input", f"x={tmp_path / 'x.npy'}", "--output-dir", str(out)]
        done = invoke([*arguments, "--repeat", "1", "--json"])
        assert done.exit_code == 0
        assert (json.loads(done.stdout)["compile_s"] > 0) == (program is model)
        np.testing.assert_allclose(np.load(out / "y.npy"), 2 * np.maximum(x + WEIGHTS, 0), rtol=1e-6)


def test_compile_writes_where_it_is_reported(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "sub.lbx"
    arguments = ["compile", str(model), "--shape", "x=1x8", "-o", str(file), "-t", "llvm -mcpu=generic"]
    done = invoke(arguments, env={"COLUMNS": "120"})
    assert (done.exit_code, file.exists()) == (0, True)
    assert "sub.lbx" in done.stdout


def test_a_file_runs_as_it_is(model: Path) -> None:
    """What it leaves open stays so; without --at a run is of a likely size."""
    for command in ("run", "compare"):
        done = invoke([command, str(model), "--json"])
        assert done.exit_code == 0, done.stderr
        assert json.loads(done.stdout)


def test_open_dimensions_of_plain_loops_and_files_that_are_no_models_are_errors(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_kinds(monkeypatch)
    for command in ("compile", "opt"):
        done = invoke([command, str(model), "--target", LOOPS.name])
        assert (done.exit_code, done.stdout) == (1, "")
        assert "'x'" in done.stderr and "--shape" in done.stderr
    junk = tmp_path / "junk.onnx"
    junk.write_bytes(b"\x00junk")
    for command in ("run", "compile", "compare", "opt"):
        done = invoke([command, str(junk)])
        assert (done.exit_code, "Traceback" in done.stderr) == (1, False)
        assert done.stderr


def test_opt_imports_a_model(model: Path) -> None:
    done = invoke(["opt", str(model), "--shape", "x=2x8", "-p", "fuse"])
    assert done.exit_code == 0
    assert "func.func @main" in done.stdout
    assert "2x8xf32" in done.stdout


def test_compare_finds_no_difference(model: Path) -> None:
    done = invoke(["compare", str(model), "--shape", "x=4x8", "--every", "--json"])
    assert done.exit_code == 0
    result = json.loads(done.stdout)
    assert (result["equal"], result["first_difference"]) == (True, None)
    assert result["intermediates_compared"] == 3
    assert "no difference" in invoke(["compare", str(model), "--shape", "x=4x8"]).stdout


def test_compare_names_the_first_tensor_that_differs(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    true_values = Reference.values

    def wrong_values(self: Reference, feeds: Mapping[str, Any]) -> dict[str, Any]:
        values = true_values(self, feeds)
        return {**values, "positive": values["positive"] + 1, "y": values["y"] + 2}

    monkeypatch.setattr(Reference, "values", wrong_values)
    done = invoke(["compare", str(model), "--shape", "x=4x8", "--json"])
    assert done.exit_code == 3
    result = json.loads(done.stdout)
    assert (result["equal"], result["first_difference"]["name"]) == (False, "positive")
    assert result["first_difference"]["max_abs_error"] == pytest.approx(1)
    assert result["intermediates_different"] == ["positive", "y"]
    shown = invoke(["compare", str(model), "--shape", "x=4x8"])
    assert (shown.exit_code, "differs is 'positive'" in shown.stdout) == (3, True)


def test_compare_without_onnxruntime_says_how_to_get_it(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    done = invoke(["compare", str(model), "--shape", "x=4x8"])
    assert (done.exit_code, "pip install onnxruntime" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("ours", "expected", "equal", "error"),
    [
        (np.float32([1, 2]), np.float32([1, 2.0001]), True, pytest.approx(1e-4, rel=0.1)),
        (np.float32([1, 2]), np.float32([1, 2.001]), False, pytest.approx(1e-3, rel=0.1)),
        (np.float32([np.nan, np.inf]), np.float32([np.nan, np.inf]), True, 0),
        (np.float32([np.nan, 1]), np.float32([0, 1]), False, None),
        (np.float32([np.inf, 1]), np.float32([0, 1]), False, None),
        (np.int64([1, 2]), np.int64([1, 3]), False, 1),
        (np.array([True]), np.array([True]), True, 0),
        (np.float32([]), np.float32([]), True, 0),
        (np.float32([1]), np.float64([1]), False, None),
        (np.float32([1]), np.float32([[1]]), False, None),
    ],
)
def test_differences(ours: np.ndarray, expected: np.ndarray, equal: bool, error: object) -> None:
    found = _difference("t", ours, expected, tolerance=1e-4)
    assert (found["equal"], found["max_abs_error"]) == (equal, error)
    json.dumps(found, allow_nan=False)


def test_errors_below_the_absolute_tolerance_are_none() -> None:
    ours, expected = np.float32([0, 2e-6]), np.float32([3e-7, 2e-6])
    assert not _difference("t", ours, expected, tolerance=1e-4)["equal"]
    assert _difference("t", ours, expected, tolerance=1e-4, absolute=5e-7)["equal"]


def test_check_indices_names_what_is_out_of_range(tmp_path: Path) -> None:
    """It is an option of run and of compile, and no option of what is compiled already."""
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[4] x, int64[2] i) => (float[2] y) { y = Gather(x, i) }'
    model, indices = tmp_path / "pick.onnx", tmp_path / "i.npy"
    onnx.save(onnx.parser.parse_model(text), model)
    np.save(indices, np.array([0, 100]))
    command = ["run", str(model), "--input", f"i={indices}", "--repeat", "1"]
    assert invoke(command).exit_code == 0
    done = invoke([*command, "--check-indices"])
    assert done.exit_code != 0
    assert "indices[1] is 100; legal: -4..3" in done.stderr + str(done.exception)
    compiled = tmp_path / "pick.lbx"
    assert invoke(["compile", str(model), "-o", str(compiled), "--check-indices"]).exit_code == 0
    command[1] = str(compiled)
    done = invoke(command)
    assert done.exit_code != 0
    assert "indices[1] is 100" in done.stderr + str(done.exception)
    assert invoke([*command, "--check-indices"]).exit_code == 2
