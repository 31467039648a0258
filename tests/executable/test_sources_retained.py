"""A compiled program never replaces what it was compiled from: not by save, not by a command's output."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.errors import OutputFileError
from tests.cli.command_line import invoke


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model with a weight in a file of its own."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, 300)) for name in "xy")
    weight = numpy_helper.from_array(np.arange(300, dtype=np.float32), "w")
    nodes = [
        helper.make_node("Softmax", ["x"], ["r"]),
        helper.make_node("Softmax", ["r"], ["s"], axis=0),
        helper.make_node("Add", ["s", "w"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "add", [x], [y], [weight])
    path = tmp_path / "m.onnx"
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    return path


def content(folder: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()}


def test_save_and_export(model: Path) -> None:
    executable = lb.compile(str(model))
    (model.parent / "link").symlink_to(model)
    before = content(model.parent)
    os.link(model.parent / "w.bin", model.parent / "hard")  # after compiling: onnx refuses data with two names
    for name in ("m.onnx", "w.bin", "link", "hard", "../" + model.parent.name + "/m.onnx"):
        for write in (executable.save, lb.Module(executable).export):
            with pytest.raises(OutputFileError, match="made from"):
                write(model.parent / name)
    assert content(model.parent) == before | {"hard": before["w.bin"]}
    executable.save(model.parent / "m.lbx")


COMMANDS = {
    "compile": ["compile", "m.onnx", "-o", "{}"],
    "trace": ["trace", "m.onnx", "-o", "{}"],
    "run --trace": ["run", "m.onnx", "--repeat", "1", "--trace", "{}"],
    "plan --svg": ["plan", "m.onnx", "--svg", "{}"],
    "plan --html": ["plan", "m.onnx", "--html", "{}"],
    "plan csv": ["plan", "b.csv", "--svg", "{}"],
    "opt": ["opt", "m.onnx", "-o", "{}"],
    "opt --emit-source": ["opt", "m.onnx", "--emit-source", "{}"],
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_with_an_output(model: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.chdir(model.parent)
    Path("b.csv").write_text("id,lower,upper,size\n0,0,2,16\n")
    Path("link").symlink_to("b.csv" if "csv" in command else "m.onnx")
    os.mkfifo("pipe")
    before = content(model.parent)
    refused = {"link": "made from", "pipe": "pipe", "nowhere/a": "does not exist"}
    if command in ("compile", "opt"):
        refused["w.bin"] = "made from"
    for path, reason in refused.items():
        result = invoke([word.format(path) for word in COMMANDS[command]])
        assert result.exit_code == 1 and reason in result.output, result.output
    assert content(model.parent) == before
    if command in ("plan --svg", "plan --html"):  # of this model nothing is planned, so nothing is drawn
        return
    result = invoke([word.format("new") for word in COMMANDS[command]])
    assert result.exit_code == 0 and Path("new").stat().st_size, result.output


def test_a_place_is_requested_before_the_work(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("landbridge.compiler.compilation.run_pipeline", lambda *_, **__: pytest.fail("it compiled"))
    for name in ("nowhere/a", "m.onnx"):
        for words in (
            ["compile", str(model), "-o", str(model.parent / name)],
            ["trace", str(model), "-o", str(model.parent / name)],
            ["plan", str(model), "--html", str(model.parent / name)],
            ["run", str(model), "--trace", str(model.parent / name)],
        ):
            assert invoke(words).exit_code == 1
    result = invoke(["run", str(model), "--output-dir", str(model / "a")])
    assert result.exit_code == 1 and "not a folder" in result.output
    with pytest.raises(OutputFileError, match="not a folder"):
        lb.compile(str(model), dump=model / "a")


def test_outputs_of_a_run_spare_its_inputs(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(model.parent)
    np.save("y.npy", np.ones((4, 300), np.float32))
    words = ["run", "m.onnx", "--repeat", "1", "--input", "x=y.npy", "--output-dir"]
    result = invoke([*words, "."])
    assert result.exit_code == 1 and "made from" in result.output
    np.testing.assert_array_equal(np.load("y.npy"), 1)
    assert invoke([*words, "made/here"]).exit_code == 0
    np.testing.assert_allclose(np.load("made/here/y.npy"), np.tile(np.arange(300) + 0.25, (4, 1)))


def test_a_dump_spares_the_ir_it_is_of(model: Path) -> None:
    folder = model.parent / "ir"
    lb.compile(str(model), dump=folder)
    (first,) = folder.glob("00-*")
    before = first.read_text()
    result = invoke(["opt", str(first), "--dump", str(folder)])
    assert result.exit_code == 1 and "made from" in result.output
    assert first.read_text() == before


def test_a_model_that_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.onnx")
    with pytest.raises(lb.ImportModelError, match="not a regular file"):
        lb.compile(tmp_path / "m.onnx")
