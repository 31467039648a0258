"""Programs on emulated boards with a Cortex-M, without a C library, against onnxruntime and this machine's CPU."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import landbridge as lb
from tests.microcontrollers.models import keyword_spotter, person_detector, quantized, sample
from tests.microcontrollers.programs import BOARDS, EXAMPLE, Array, run_on_board
from tests.selection.installed import program

_HEAD = '<ir_version: 10, opset_import: ["" : 18]> g '
#: Functions that a C library would have: those of floats, of whole numbers of 64 bits, and rounding.
_FUNCTIONS = """(float[5,13] a, int64[7] i, int64[7] j) => (float[5,13] y, float[5,13] z, int64[7] k) {
    e = Exp(a) l = Log(e) t = Tanh(l) r = Erf(t) s = Sigmoid(r) n = Sin(a) c = Cos(e) p = Pow(e, s) q = Sqrt(p)
    f = Floor(a) o = Round(a) u = Ceil(a) w = Atan(n) x = Acosh(e1) v = Mod<fmod = 1>(a, e)
    e1 = Add(e, e) y = Sum(l, r, s, n, c, q, w, x) z = Sum(f, o, u, v) k = Div(i, j) }"""
#: The boards of each change: one without and one with the rounding instructions of later cores.
_FIRST = ("mps2-an386", "mps3-an547")
#: A step of an int8 network's output, between 0 and 1.
_STEP = 1 / 255


@pytest.fixture(scope="session", autouse=True)
def _programs() -> None:
    for name in ("arm-none-eabi-gcc", "qemu-system-arm", "make"):
        program(name, "microcontrollers")


@cache
def _model(name: str) -> onnx.ModelProto:
    made = keyword_spotter() if name.startswith("keywords") else person_detector()
    if not name.endswith("int8"):
        return made
    with TemporaryDirectory() as folder:
        return quantized(made, Path(folder))


def _feeds(model: onnx.ModelProto, seed: int = 99) -> dict[str, Array]:
    return {"x": sample(tuple(d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim), seed)}


def _reference(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    return list(onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds))


def _on_this_cpu(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    session = lb.Session(lb.compile(model))
    for name, array in feeds.items():
        session.set_input(name, array)
    session.run()
    return [np.array(session.get_output(number)) for number in range(len(model.graph.output))]


@pytest.mark.parametrize(
    "board", [*_FIRST, *(pytest.param(name, marks=pytest.mark.full) for name in BOARDS if name not in _FIRST)]
)
@pytest.mark.parametrize("name", ["keywords", "keywords-int8", "person", "person-int8"])
def test_networks_give_what_onnxruntime_gives(name: str, board: str, tmp_path: Path) -> None:
    model = _model(name)
    feeds = _feeds(model)
    found = run_on_board(lb.compile(model, BOARDS[board].target), feeds, BOARDS[board], tmp_path).outputs
    # of int8 the largest of two classes may be a step from where f32's rounding leaves it, after ten layers
    bound = 1.01 * _STEP if name.endswith("int8") else 1e-6
    for expected in (_reference(model, feeds), _on_this_cpu(model, feeds)):
        np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=bound)


@pytest.mark.parametrize("board", _FIRST)
def test_functions_of_no_library(board: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(_HEAD + _sorted(_FUNCTIONS))
    rng = np.random.default_rng(3)
    whole = [rng.integers(-(1 << 40), 1 << 40, 7), rng.integers(1, 1 << 33, 7)]
    feeds: dict[str, Array] = {"a": np.abs(rng.standard_normal((5, 13))).astype(np.float32) + 0.1}
    feeds |= dict(zip("ij", whole, strict=True))
    found = run_on_board(lb.compile(model, BOARDS[board].target), feeds, BOARDS[board], tmp_path).outputs
    expected = _reference(model, feeds)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-6)
    np.testing.assert_array_equal(found[2], expected[2])


def _sorted(text: str) -> str:
    """Returns ``text`` with ``e1`` before the node that reads it."""
    return text.replace(" e1 = Add(e, e)", "").replace("l = Log(e)", "l = Log(e) e1 = Add(e, e)")


def test_what_it_prints_and_where_it_lies(tmp_path: Path) -> None:
    """Results come by semihosting; weights are constants in flash, and RAM has the arena that the header states."""
    model, board = _model("keywords"), BOARDS["mps2-an386"]
    feeds = _feeds(model)
    done = run_on_board(lb.compile(model, board.target), feeds, board, tmp_path, "-DPRINTED_FLOATS=12")
    printed = [float(word) for word in done.printed.splitlines()[0].split()]
    np.testing.assert_allclose(printed, _reference(model, feeds)[0][0], atol=1e-6)
    listed = subprocess.run(["arm-none-eabi-nm", "-S", done.elf], capture_output=True, text=True, check=True).stdout
    symbols = {name: (int(at, 16), int(size, 16), kind) for at, size, kind, name in _sized(listed)}
    weights = {
        name: size for name, (at, size, _) in symbols.items() if name.startswith("model_weight_") and at < 4 << 20
    }
    header = (tmp_path / "model.h").read_text(encoding="utf-8")
    assert f"#define MODEL_WEIGHTS_BYTES UINT32_C({sum(weights.values())})" in header
    at, size, kind = symbols["memory"]
    assert at >= 0x20000000 and kind in "bB" and f"#define MODEL_MEMORY_BYTES UINT32_C({size})" in header
    undefined = subprocess.run(["arm-none-eabi-nm", "-u", done.elf], capture_output=True, text=True, check=True).stdout
    assert not undefined.strip()


def _sized(listed: str) -> list[tuple[str, str, str, str]]:
    rows = [line.split() for line in listed.splitlines()]
    return [(row[0], row[1], row[2], row[3]) for row in rows if len(row) == 4]


def test_the_example_as_its_page_has_it(tmp_path: Path) -> None:
    page = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    work = shutil.copytree(EXAMPLE, tmp_path / "example")
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    script = "set -e\n" + "".join(blocks)
    command = ["bash", "-c", script]
    done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    product = np.array([1, 2, 3], np.float32) @ np.array([[1, 0.5], [-1, 2], [0.25, -0.5]], np.float32)
    expected = np.exp(product) / np.exp(product).sum()
    (printed,) = re.findall(r"^(0\.\d{6}) (0\.\d{6})$", done.stdout + done.stderr, re.MULTILINE)
    np.testing.assert_allclose([float(text) for text in printed], expected, atol=2e-6)


def test_a_tile_takes_few_instructions(tmp_path: Path) -> None:
    """2.66 million products of the keyword spotter: with their loads, and all else, two instructions each."""
    model, board = _model("keywords"), BOARDS["mps2-an386"]
    done = run_on_board(lb.compile(model, board.target), _feeds(model), board, tmp_path)
    assert done.instructions < 5.6e6, done.instructions
