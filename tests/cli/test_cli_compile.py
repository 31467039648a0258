"""`landbridge compile` and `run` take what `lb.compile` takes."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.cli.compile import compile as compile_command
from landbridge.compiler.options import CompileOptions
from tests.cli.command_line import invoke

#: The parameters of ``lb.compile`` by other names than the command's: options that repeat are named in the singular.
NAMES = {
    "dims": "dim",
    "shapes": "shape",
    "inputs": "input_spec",
    "extra_outputs": "extra_output",
    "constants": "constant",
    "limits": "limit",
}
#: Those of modules of torch, which no file holds.
OF_TORCH = {"args", "kwargs", "dynamic_shapes"}
#: A first program is for the process that waits for the full one, which the command writes.
OF_A_PROCESS = {"optimize"}
#: What the command has besides: the file it writes, how it reports, and a target in the words of a device.
OF_THE_COMMAND = {"verbose", "constants", "output", "json", "device"}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A convolution with a weight, and what follows it."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv"),
        helper.make_node("Relu", ["c"], ["y"], name="relu"),
    ]
    weights = np.random.default_rng(0).standard_normal((2, 3, 1, 1)).astype(np.float32)
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 4, 5))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 2, 4, 5))],
        [numpy_helper.from_array(weights, "w")],
    )
    file = tmp_path / "net.onnx"
    file.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    )
    return file


def command(*words: str | Path) -> Any:
    return invoke([*map(str, words), "--json"])


def compiled(model: Path, *words: str) -> lb.Executable:
    file = model.with_suffix(".lbx")
    done = command("compile", model, "-o", file, *words)
    assert done.exit_code == 0, done.stderr
    return lb.load(file)


def test_verbose_says_why_the_model_was_walked(model: Path) -> None:
    done = command("compile", model, "-v")
    assert json.loads(done.stdout)["walks"] == ["the model"]
    assert "walks" not in json.loads(command("compile", model).stdout)
    opened = onnx.load(model)
    for value in (*opened.graph.input, *opened.graph.output):
        value.type.tensor_type.shape.dim[2].dim_param = "h"
    onnx.save(opened, model)
    shown = invoke(["compile", str(model), "--verbose"]).stdout
    assert "walks of the model" in shown
    assert "1      the model" in shown
    assert "a program for inputs without elements" in shown


def test_each_option_of_compile_has_one_of_the_command() -> None:
    parameters = inspect.signature(lb.compile).parameters
    of_python = {name for name, each in parameters.items() if each.kind is not each.VAR_KEYWORD}
    assert {field.name for field in fields(CompileOptions)} - {"tiles"} <= of_python  # what tune= measures
    words = set(inspect.signature(compile_command).parameters)
    assert {NAMES.get(name, name) for name in of_python - OF_TORCH - OF_A_PROCESS} == words - OF_THE_COMMAND


def test_external_data_is_in_the_folder_that_is_named(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "weights"
    folder.mkdir()
    onnx.save(onnx.load(model), model, save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "w.bin").rename(folder / "w.bin")
    assert "w.bin" in json.loads(command("compile", model).stdout)["error"]["message"]
    assert compiled(model, "--external-data", str(folder)).main
    assert command("compile", model, "--external-data", tmp_path / "absent").exit_code == 2


def test_links_lead_out_of_the_folder_where_that_is_allowed(model: Path, tmp_path: Path) -> None:
    onnx.save(onnx.load(model), model, save_as_external_data=True, location="w.bin", size_threshold=0)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "w.bin").rename(elsewhere / "w.bin")
    inside = tmp_path / "inside"
    inside.mkdir()
    model = model.rename(inside / model.name)
    (inside / "w.bin").symlink_to(elsewhere / "w.bin")
    refused = json.loads(command("compile", model).stdout)["error"]["message"]
    assert "--allow-links" in refused or "allow_links" in refused
    with pytest.warns(lb.ModelWarning, match="behind links"):
        assert compiled(model, "--allow-links").main


def test_limits_reach_the_compiler(model: Path) -> None:
    assert compiled(model, "--limit", "nodes=2", "--limit", "seconds=100.5").main
    done = command("compile", model, "--limit", "nodes=1")
    assert done.exit_code == 1 and json.loads(done.stdout)["error"]["kind"] == "BudgetError"
    for wrong in ("nodes", "nodes=many", "node=1"):
        assert command("compile", model, "--limit", wrong).exit_code in (1, 2)


def test_options_reach_the_compiler(model: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((1, 3, 4, 5), np.float32))
    done = compiled(model, "--extra-output", "c", "--on-mismatch", "copy", "--dump", str(tmp_path / "ir"))
    assert [spec.name for spec in done.main.outputs] == ["y", "c"]
    assert any((tmp_path / "ir").iterdir())
    assert compiled(model, "--constant", f"x={tmp_path / 'x.npy'}").main.inputs == ()
    assert "on_mismatch='perhaps'" in command("compile", model, "--on-mismatch", "perhaps").stderr
    assert "max_nodes" in command("compile", model, "--max-nodes", "1").stderr
    assert compiled(model, "--tune", "0").main.inputs
    assert "tune= measures kernels" in command("compile", model, "--target", "c", "--tune", "0").stderr
    assert command("compile", model, "--tune", "-1").exit_code == 2


def test_a_sanitized_program_is_the_one_that_python_compiles(model: Path) -> None:
    plain, checked = compiled(model), compiled(model, "--sanitize")
    requested = lb.compile(model, sanitize=True)
    assert checked.main.instructions == requested.main.instructions != plain.main.instructions


def test_weights_that_may_be_replaced(model: Path) -> None:
    executable = compiled(model, "--mutable", "w")
    assert [spec.name for spec in executable.main.parameters] == ["w"]
    done = command("run", model, "--mutable", "w", "--repeat", "1")
    assert done.exit_code == 0, done.stderr


def test_frames(model: Path, tmp_path: Path) -> None:
    spec = "x=dtype:uint8,layout:NHWC,mean:124/116/104,scale:0.5"
    (found,) = compiled(model, "--input-spec", spec).main.inputs
    frames = lb.InputSpec(dtype="uint8", layout="NHWC", mean=(124, 116, 104), scale=0.5)
    (expected,) = lb.compile(model, inputs={"x": frames}).main.inputs
    assert found == expected
    assert (found.dtype, found.shape) == ("uint8", (1, 4, 5, 3))
    frame = np.random.default_rng(1).integers(0, 256, found.shape, np.uint8)
    np.save(tmp_path / "frame.npy", frame)
    given = f"x={tmp_path / 'frame.npy'}"
    done = command("run", model, "--input-spec", spec, "-i", given, "--output-dir", tmp_path, "--repeat", "1")
    assert done.exit_code == 0, done.stderr
    seen = np.transpose((frame - np.array([124, 116, 104], np.float32)) * np.float32(0.5), (0, 3, 1, 2))
    (y,) = lb.Session(lb.compile(model))(np.ascontiguousarray(seen))
    # 3 products of numbers below 70 and about 1, rounded to float32
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), np.asarray(y), rtol=0, atol=3 * 3 * 210 * 2.0**-24)


def test_shapes_of_frames_are_read(model: Path) -> None:
    (found,) = compiled(model, "--input-spec", "x=shape:1x3x8x10,resize:linear,strides:240x80x10x1").main.inputs
    assert found.shape == (1, 3, 8, 10)


def test_places_devices_and_spills(model: Path) -> None:
    executable = compiled(model, "--device", "cpu,sim:scratch", "--place", "conv=sim:scratch@global.scratch")
    assert "global.scratch" in {v.scope for v in executable.vdevices}
    executable = compiled(
        model,
        "--device",
        "cpu,sim:scratch",
        "--place",
        "conv=sim:scratch@global.scratch",
        "--spill",
        "global.scratch=global",
    )
    assert [v.name for v in executable.vdevices][:1] == ["cpu"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--spill", "global"], "is not SCOPE=SCOPE"),
        (["--alias", "y"], "is not OUTPUT=INPUT"),
        (["--alias", "y=x", "--alias", "y=z"], "each once"),
        (["--spill", "a=b", "--spill", "a=c"], "each once"),
        (["--input-spec", "x=color:red"], "legal fields: dtype"),
        (["--input-spec", "x=dtype"], "is not NAME=FIELD:VALUE"),
        (["--input-spec", "x=mean:much"], "could not convert"),
        (["--input-spec", "x=dtype:uint8,dtype:int8"], "each once"),
    ],
)
def test_wrong_usage_is_named(model: Path, words: list[str], says: str) -> None:
    done = invoke(["compile", str(model), *words], env={"COLUMNS": "400"})
    assert done.exit_code == 2
    assert says in done.stderr


def test_a_compiled_file_takes_none_of_it(model: Path) -> None:
    compiled(model)
    done = invoke(["run", str(model.with_suffix(".lbx")), "--mutable", "w"], env={"COLUMNS": "400"})
    assert done.exit_code == 2
    assert "compiled already" in done.stderr
