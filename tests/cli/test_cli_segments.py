"""Commands on programs in pieces, as data decide sizes in them: each takes them, or says which one does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import landbridge as lb
from tests.cli.command_line import invoke

pytestmark = pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The rows of x that have a number above 0, as a model and compiled."""
    folder = tmp_path_factory.mktemp("pieces")
    source, compiled = folder / "good.onnx", folder / "good.lbx"
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,4] x) => (float[M,4] y) {
        scores = ReduceMax<axes = [1], keepdims = 0>(x)
        zero = Constant<value_float = 0.0>()
        good = Greater(scores, zero)
        some = Compress<axis = 0>(x, good)
        y = Sqrt(some)
    }""")
    onnx.save(model, source)
    lb.compile(model).save(compiled)
    return source, compiled


def result(*arguments: str | Path) -> dict[str, object]:
    done = invoke([*map(str, arguments), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("sign", [1, -1])
def test_run_takes_what_comes(files: tuple[Path, Path], sign: int, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.full((5, 4), sign * 4, np.float32))
    found = result("run", files[1], "-i", f"x={tmp_path / 'x.npy'}", "--repeat", "1", "--output-dir", tmp_path)
    y = np.load(tmp_path / "y.npy")
    assert y.shape == ((5, 4) if sign > 0 else (0, 4)) and (y == 2).all()
    assert found["outputs"] == [
        {"name": "y", "shape": list(y.shape), "dtype": "float32", "file": str(tmp_path / "y.npy")}
    ]


def test_a_warning_is_a_line_of_its_own(tmp_path: Path) -> None:
    text = "g (float[N,4] x) => (int64[2,K] y) { y = NonZero(x) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}'), tmp_path / "places.onnx")
    command = [sys.executable, "-m", "landbridge", "run", "places.onnx", "--repeat", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    reported = [line for line in done.stderr.splitlines() if "warning" in line.lower()]
    assert len(reported) == 1 and reported[0].startswith("warning: these run on the host"), done.stderr


def test_at_says_sizes_of_inputs_alone(files: tuple[Path, Path]) -> None:
    assert result("run", files[1], "--at", "N=1", "--repeat", "1")
    done = invoke(["run", str(files[1]), "--at", "some=3"])
    assert done.exit_code == 2 and "legal: N" in done.output


def test_bench_and_compare(files: tuple[Path, Path]) -> None:
    assert result("bench", files[1], "--rounds", "2", "--threads", "1")["results"]
    assert result("compare", files[0])["equal"] is True


def test_inspect_knows_operators_of_the_host(files: tuple[Path, Path]) -> None:
    operators = result("inspect", files[0])["operators"]
    assert isinstance(operators, list)
    assert all(each["supported"] for each in operators)


@pytest.mark.parametrize("command", ["plan", "explain", "trace"])
def test_what_is_of_whole_programs_says_so(files: tuple[Path, Path], command: str) -> None:
    done = invoke([command, str(files[1])])
    assert done.exit_code == 1
    assert "2 segments" in done.output and "`landbridge run`" in done.output
