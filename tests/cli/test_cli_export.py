"""``landbridge export``: files for C, inputs that are fixed, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx

from tests.cli.command_line import invoke


def test_an_input_that_chooses_the_program_is_fixed(tmp_path: Path) -> None:
    text = "g (float[2, 3] x, int64 axis) => (float[2, 3] y) { y = CumSum(x, axis) }"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}')
    onnx.save(model, tmp_path / "sums.onnx")
    np.save(tmp_path / "axis.npy", np.array(1))
    line = ["export", str(tmp_path / "sums.onnx"), "--c", str(tmp_path / "c")]
    refused = invoke(line)
    assert refused.exit_code == 1 and "elements of input 'axis' choose among 4 programs" in refused.output
    assert not (tmp_path / "c").exists()
    done = invoke([*line, "--constant", f"axis={tmp_path / 'axis.npy'}", "--json"])
    assert done.exit_code == 0, done.output
    made = json.loads(done.stdout)
    assert [spec["name"] for spec in made["inputs"]] == ["x"] and all(Path(file).exists() for file in made["files"])


def test_names_and_folders_are_looked_at_before_anything_is_compiled(tmp_path: Path) -> None:
    (tmp_path / "none.onnx").write_bytes(b"not read")
    (tmp_path / "file").write_bytes(b"")
    for options, says in (
        (["--c", str(tmp_path / "c"), "--name", "9x"], "'9x' cannot begin names in C"),
        (["--c", str(tmp_path / "file" / "c")], "file"),
    ):
        done = invoke(["export", str(tmp_path / "none.onnx"), *options])
        assert done.exit_code == 1 and says in done.output and "ONNX" not in done.output, done.output
