"""``landbridge explain``: what it prints and draws; how long things take is no matter of tests."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.cli.command_line import invoke
from tests.vm import programs

WIDE = {"COLUMNS": "240", "NO_COLOR": "1"}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """y = softmax(x w), with a first extent that may be open."""
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("N", 64))]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ("N", 32))]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["t"], name="mm"),
        helper.make_node("Softmax", ["t"], ["y"], name="sm"),
    ]
    weights = [numpy_helper.from_array(np.ones((64, 32), np.float32), "w")]
    graph = helper.make_graph(nodes, "g", values, outputs, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_kernels_stand_beside_the_limits(model: Path, tmp_path: Path) -> None:
    line = ["explain", str(model), "--shape", "x=8x64", "--threads", "1", "--runs", "3"]
    done = invoke([*line, "--json"])
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    product, softmax = result["kernels"]
    assert (product["name"], softmax["name"]) == ("mm", "sm")
    assert (product["flops"], product["nbytes"]) == (2 * 8 * 64 * 32, 4 * (8 * 64 + 64 * 32 + 8 * 32))
    assert result["limits"]["flops"] > 1e8
    assert product["of_peak"] == pytest.approx(product["flops"] / product["seconds"] / result["limits"]["flops"])
    assert result["seconds"] == pytest.approx(product["seconds"] + softmax["seconds"])
    shown = invoke(
        [*line, "--top", "1", "--svg", str(tmp_path / "r.svg"), "--html", str(tmp_path / "r.html")], env=WIDE
    )
    assert shown.exit_code == 0, shown.output
    assert ("GFLOP/s" in shown.stderr, "% roof" in shown.stdout) == (True, True)
    assert len(ElementTree.parse(tmp_path / "r.svg").getroot().findall("{http://www.w3.org/2000/svg}circle")) == 2
    assert "mm" in (tmp_path / "r.html").read_text()


def test_the_loops_of_kernels_are_printed(model: Path) -> None:
    line = ["explain", str(model), "--shape", "x=8x64", "--threads", "1", "--runs", "1"]
    done = invoke([*line, "--loops"], env=WIDE)
    assert done.exit_code == 0, done.output
    tree = done.stdout[done.stdout.index("\nmm\n") :].splitlines()[2:]
    assert tree[0].startswith(("for d", "parallel d", "unrolled d"))
    assert any(each.strip() == "reduction by addf" for each in tree)
    assert "reduction by addf" not in invoke(line, env=WIDE).stdout


def test_an_open_program_is_explained_at_a_size(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "open.lbx"
    assert invoke(["compile", str(model), "--dim", "N=1..64", "-o", str(file)]).exit_code == 0
    for size in (3, 40):
        done = invoke(["explain", str(file), "--at", f"N={size}", "--runs", "1", "--threads", "1", "--json"])
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["kernels"][0]["flops"] == 2 * size * 64 * 32


def test_a_program_without_facts_has_times(tmp_path: Path) -> None:
    programs.two_stages().save(tmp_path / "old.lbx")
    done = invoke(["explain", str(tmp_path / "old.lbx"), "--threads", "1"], env=WIDE)
    assert done.exit_code == 0, done.output
    assert "compile it again" in done.stderr


def test_weights_that_a_session_binds_in_place(tmp_path: Path) -> None:
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[64, 64] x) => (float[64, 64] y) {
            [mm] t = MatMul(x, packed)  [add] y = Add(t, bias) }"""
    )
    weights = {"packed": np.ones((64, 64), np.float32), "bias": np.ones(64, np.float32)}
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    onnx.save(made, tmp_path / "m.onnx")
    file, options = tmp_path / "m.lbx", [word for name in weights for word in ("--mutable", name)]
    assert invoke(["compile", str(tmp_path / "m.onnx"), *options, "-o", str(file)]).exit_code == 0
    line = ["explain", str(file), "--threads", "1", "--runs", "1"]
    packed, bias = json.loads(invoke([*line, "--json"]).stdout)["replaceable_weights"]
    assert (packed["weight"], packed["binds_in_place"], packed["copy_read_by"]) == ("packed", "no", "mm+add")
    assert packed["copy"].startswith("float32[") and ", by " in packed["copy"]
    assert bias == {"weight": "bias", "binds_in_place": "yes", "copy_read_by": "", "copy": ""}
    shown = invoke(line, env=WIDE).stdout
    assert "weights that set_params replaces" in shown and "mm+add" in shown


def test_the_model_is_not_drawn_over(model: Path) -> None:
    before = model.read_bytes()
    done = invoke(["explain", str(model), "--shape", "x=8x64", "--svg", str(model)], env=WIDE)
    assert (done.exit_code, model.read_bytes()) == (1, before)
