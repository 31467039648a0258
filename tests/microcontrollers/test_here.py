"""Exported programs for microcontrollers as code of this machine's compiler: operators, errors, memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

import landbridge as lb
from landbridge.errors import BindError, CodegenError, ExecutableError, InputError
from landbridge.executable.c_export import export_c
from landbridge.ir.module import IRModule
from landbridge.targets import Target
from tests.cli.command_line import invoke
from tests.microcontrollers.programs import Program, run_here
from tests.ops import node_cases
from tests.ops.test_node_cases import NAMES
from tests.selection.installed import program

_HEAD = '<ir_version: 10, opset_import: ["" : 18]> g '
_ADD = "(float[4,8] a, float[4,8] b) => (float[4,8] y) { y = Add(a, b) }"


@pytest.fixture(scope="session", autouse=True)
def _compiler() -> None:
    program("gcc", "debian")


def _compiled(text: str, target: str = "freestanding", **options: Any) -> lb.Executable:
    return lb.compile(onnx.parser.parse_model(_HEAD + text), target, **options)


@pytest.mark.sample(20, rarer=3)
@pytest.mark.parametrize("name", NAMES)
def test_a_case_of_the_suite(name: str, tmp_path: Path) -> None:
    def run(module: IRModule, feeds: Mapping[str, np.ndarray[Any, Any]]) -> Sequence[np.ndarray[Any, Any]]:
        return run_here(lb.compile(module, module.targets[0]), feeds, tmp_path)

    try:
        node_cases.check(name, Target("freestanding"), run)
    except CodegenError as error:
        if "floats of 64 bits" not in str(error):
            raise


@pytest.mark.parametrize("bits", [32, 64, 128, 256])
def test_tiles_of_any_width(bits: int, tmp_path: Path) -> None:
    text = """(float[8,5] a, float[5,7] b, float[1,3,9,9] c, float[8,3,3,3] w) => (float[8,7] y, float[1,8] z) {
        m = MatMul(a, b) y = Softmax(m) f = Conv<pads = [1,1,1,1]>(c, w) g = GlobalAveragePool(f) z = Flatten(g) }"""
    rng = np.random.default_rng(0)
    shapes = {"a": (8, 5), "b": (5, 7), "c": (1, 3, 9, 9), "w": (8, 3, 3, 3)}
    feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    y, _ = run_here(_compiled(text, f"freestanding -vector-bits={bits}"), feeds, tmp_path / "whole")
    product = np.exp(feeds["a"] @ feeds["b"])
    np.testing.assert_allclose(y, product / product.sum(1, keepdims=True), rtol=2e-6)


def test_square_roots_without_the_instruction(tmp_path: Path) -> None:
    """Bit for bit those of IEEE 754, for denormal numbers, infinities and NaN too."""
    rng = np.random.default_rng(5)
    special = np.array([0, -0.0, np.inf, np.nan, -1, 1e-45, 1.1754944e-38, 3.4028235e38, 2, 4], np.float32)
    bits = rng.integers(0, 0x7F800000, 4086).astype(np.uint32).view(np.float32)
    values = np.concatenate([special, bits])
    (found,) = run_here(_compiled("(float[4096] a) => (float[4096] y) { y = Sqrt(a) }"), {"a": values}, tmp_path)
    with np.errstate(invalid="ignore"):
        expected = np.sqrt(values)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    whole = ~np.isnan(expected)
    np.testing.assert_array_equal(found[whole].view(np.uint32), expected[whole].view(np.uint32))


def test_rounding_keeps_signs_and_ties(tmp_path: Path) -> None:
    values = np.array(
        [0.5, 1.5, -0.5, -2.5, 2.4999998, -0.0, 8388607.5, -8388609, 3e9, np.inf, np.nan, 0.2], np.float32
    )
    text = """(float[12] a) => (float[12] r, float[12] f, float[12] c) { r = Round(a) f = Floor(a) c = Ceil(a) }"""
    found = run_here(_compiled(text), {"a": values}, tmp_path)
    for result, function in zip(found, (np.rint, np.floor, np.ceil), strict=True):
        np.testing.assert_array_equal(result, function(values))
        numbers = ~np.isnan(values)
        np.testing.assert_array_equal(np.signbit(result)[numbers], np.signbit(function(values))[numbers])


def test_a_depthwise_convolution_of_bytes_is_one_of_integers(tmp_path: Path) -> None:
    """Padding is the zero point, the sum is exact, and what is kept between layers has a byte for each element."""
    rng = np.random.default_rng(8)
    weights = rng.integers(-127, 128, 36)
    text = f"""(float[1,4,6,6] x) => (float[1,4,6,6] y) {{
        s = Constant<value = float {{0.03125}}>() z = Constant<value = uint8 {{77}}>()
        b = Constant<value = int8[4,1,3,3] {{{", ".join(map(str, weights))}}}>()
        t = Constant<value = float[4] {{0.5, 0.25, 0.125, 1.0}}>() o = Constant<value = int8[4] {{0, 0, 0, 0}}>()
        q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) w = DequantizeLinear<axis = 0>(b, t, o)
        y = Conv<pads = [1, 1, 1, 1], group = 4>(d, w) }}"""
    x = (rng.integers(-77, 178, (1, 4, 6, 6)) / 32).astype(np.float32)
    (found,) = run_here(_compiled(text), {"x": x}, tmp_path)
    kernel = weights.reshape(4, 3, 3) * np.array([0.5, 0.25, 0.125, 1]).reshape(4, 1, 1)
    padded = np.pad(x[0].astype(np.float64), [(0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    expected = np.einsum("chwij,cij->chw", windows, kernel)[None]
    np.testing.assert_array_equal(found, expected.astype(np.float32))
    # the result as float32, in another layout, and the 144 bytes that it is computed from
    assert f"MODEL_MEMORY_BYTES UINT32_C({4 * 144 + 144})" in (tmp_path / "model.h").read_text(encoding="utf-8")


def test_loops_branches_and_states(tmp_path: Path) -> None:
    step = """(int64 i, bool going, float[3] x) => (bool again, float[3] n, float[3] row) {
        again = Identity(going) half = Constant<value = float {0.5}>()
        z = Mul(x, half) n = Add(z, half) row = Sin(n) }"""
    text = f"""(float[3] a, bool c) => (float[3] y, float[140,3] rows) {{
        trips = Constant<value = int64 {{140}}>() on = Constant<value = bool {{1}}>()
        s, rows = Loop(trips, on, a) <body = body {step}>
        y = If(c) <then_branch = t () => (float[3] p) {{ p = Neg(s) }},
                   else_branch = e () => (float[3] q) {{ q = Exp(s) }}> }}"""
    executable = _compiled(text)
    a = np.array([1, 2, 3], np.float32)
    state, rows = a, []
    for _ in range(140):
        state = state * np.float32(0.5) + np.float32(0.5)
        rows.append(np.sin(state))
    for taken, expected in ((True, -state), (False, np.exp(state))):
        y, found = run_here(executable, {"a": a, "c": np.array(taken)}, tmp_path / str(taken))
        np.testing.assert_allclose(y, expected, rtol=1e-6)
        np.testing.assert_allclose(found, np.stack(rows), rtol=1e-6)
    source = (tmp_path / "True" / "model.c").read_text(encoding="utf-8")
    assert "i0 < 140" in source, "a loop of the model must be one of C"


def test_wrong_calls_are_refused(tmp_path: Path) -> None:
    executable = _compiled("(float[4,8] a, float[8,4] b) => (float[4,4] y) { e = Exp(a) m = MatMul(e, b) y = Relu(m) }")
    feeds = {"a": np.ones((4, 8), np.float32), "b": np.ones((8, 4), np.float32)}
    run_here(executable, feeds, tmp_path)
    made = Program(tmp_path / "model.so", executable)
    memory, data = made.whole.ctypes.data + made.start, feeds["a"].ctypes.data
    codes = {"null": 1, "alignment": 2, "size": 3, "index": 4, "not set": 5}
    assert made.call("set_input", 0, data) == codes["null"], "before init"
    assert made.call("run") == codes["null"]
    assert made.call("init", 0, 1 << 20) == codes["null"]
    assert made.call("init", memory + 4, made.memory_bytes) == codes["alignment"]
    assert made.call("init", memory, made.memory_bytes - 1) == codes["size"]
    assert made.call("run") == codes["null"], "after an init that failed"
    assert made.call("init", memory, made.memory_bytes) == 0
    assert made.call("run") == codes["not set"]
    assert made.call("set_input", 2, data) == codes["index"]
    assert made.call("set_output", -1, data) == codes["index"]
    assert made.call("set_input", 0, data + 2) == codes["alignment"]
    assert made.call("set_input", 0, 0) == codes["null"]
    assert [made.library.model_input_bytes(n) for n in (-1, 0, 1, 2)] == [0, 128, 128, 0]
    assert [made.library.model_output_bytes(n) for n in (-1, 0, 1)] == [0, 64, 0]


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("(double[4] a) => (double[4] y) { y = Sqrt(a) }", CodegenError, "floats of 64 bits.*cast the model"),
        ("(float[N,8] a) => (float[N,8] y) { y = Sqrt(a) }", ExecutableError, "open in N, .*--dim or --shape"),
        (
            "(float[4,4] a) => (float y) { y = Det(a) }",
            ExecutableError,
            "step that Python does .*Det.*out of the model",
        ),
        ("(float[4] a) => (int64[1,n] y) { y = NonZero(a) }", ExecutableError, "data decide sizes at 'y'|Python"),
    ],
)
@pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")
def test_what_a_microcontroller_lacks(text: str, kind: type[Exception], says: str, tmp_path: Path) -> None:
    with pytest.raises(kind, match=says):
        export_c(_compiled(text), tmp_path / "out", "model")
    assert not (tmp_path / "out").exists()


def test_memory_that_the_board_lacks(tmp_path: Path) -> None:
    executable = _compiled("(float[4,8] a, float[8,4] b) => (float[4,4] y) { e = Exp(a) y = MatMul(e, b) }")
    export_c(executable, tmp_path / "fits", "model", ram_bytes=128)
    with pytest.raises(ExecutableError, match=r"needs 128 bytes .*--ram allows 127; .*quantize"):
        export_c(executable, tmp_path / "out", "model", ram_bytes=127)
    assert not (tmp_path / "out").exists()


def test_options_of_the_other_form(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--weights-apart"):
        export_c(_compiled(_ADD), tmp_path / "out", "model", separate_weights=True)
    with pytest.raises(InputError, match="--ram is for programs of target 'freestanding'"):
        export_c(_compiled(_ADD, "llvm"), tmp_path / "out", "model", ram_bytes=1 << 20)


def test_a_session_names_the_way(tmp_path: Path) -> None:
    executable = _compiled(_ADD)
    executable.save(tmp_path / "add.lbx")
    for each in (executable, lb.load(tmp_path / "add.lbx")):
        with pytest.raises(BindError, match="freestanding-c"):
            lb.Session(each)
    export_c(lb.load(tmp_path / "add.lbx"), tmp_path / "loaded", "model")
    export_c(executable, tmp_path / "made", "model")
    for file in ("model.h", "model.c", "model_weights.c"):
        assert (tmp_path / "loaded" / file).read_bytes() == (tmp_path / "made" / file).read_bytes()


def test_the_command(tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(_HEAD + _ADD), tmp_path / "add.onnx")
    given = ["export", str(tmp_path / "add.onnx"), "-t", "cortex-m55", "--c", str(tmp_path / "out"), "--ram", "4096"]
    done = invoke(given)
    assert done.exit_code == 0, done.output
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"add.h", "add.c", "add_weights.c"}
