"""Programs for JavaScript: what Node computes with them, and what is refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest

import landbridge as lb
from landbridge.errors import ExecutableError, InputError
from landbridge.executable.wasm_export import export_wasm
from tests.cli.command_line import invoke
from tests.selection.installed import program

#: A preparation of weights, functions of C, inputs and outputs of several types.
_MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 8, 12, 12] x, bool[4] flag, int64[4] n, double[4] d)
=> (float[1, 8, 12, 12] y, int64[4] m, bool[4] even, double[4] power, double[4] rest, float[4] sine)
<int64[4] two = {2, 2, 2, 2}, int64[4] zero = {0, 0, 0, 0}, double[4] half = {0.5, -1.5, 2.0, 0.0}>
{
    c = Conv<pads = [1, 1, 1, 1]> (x, w)
    y = Softmax (c)
    m = Mul (n, two)
    r = Mod (n, two)
    e = Equal (r, zero)
    even = And (e, flag)
    power = Pow (d, half)
    rest = Mod<fmod = 1> (d, half)
    large = Cast<to = 1> (n)
    sine = Sin (large)
}
"""
_RUN = """
import { load } from "./net.mjs";
const program = await load();
const given = JSON.parse(await new Promise((done) => {
  let text = ""; process.stdin.on("data", (part) => (text += part)).on("end", () => done(text));
}));
const found = [];
for (const inputs of given) {
  for (const [name, values] of Object.entries(inputs)) {
    const { data } = program.inputs[name];
    data.set(values.map(data instanceof BigInt64Array ? BigInt : Number));
  }
  program.run();
  const outputs = Object.entries(program.outputs);
  found.push(Object.fromEntries(outputs.map(([name, { data }]) => [name, Array.from(data, (x) => String(x))])));
}
console.log(JSON.stringify(found));
"""


def model() -> onnx.ModelProto:
    parsed = onnx.parser.parse_model(_MODEL)
    weights = np.random.default_rng(1).standard_normal((8, 8, 3, 3)).astype(np.float32)
    parsed.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    return parsed


def test_node_computes_what_a_session_does(tmp_path: Path) -> None:
    executable, rng = lb.compile(model(), "wasm"), np.random.default_rng(0)
    files = export_wasm(executable, tmp_path / "site", "net")
    assert [file.name for file in files] == ["net.wasm", "net.weights", "net.mjs"]
    runs = [
        {
            "x": rng.standard_normal((1, 8, 12, 12)).astype(np.float32),
            "flag": np.array([flag, True, False, not flag]),
            "n": rng.integers(-(1 << 40), 1 << 40, 4),
            "d": np.array([rng.random(), -rng.random(), np.inf, 0.0]),
        }
        for flag in (True, False, True)
    ]
    (tmp_path / "site" / "run.mjs").write_text(_RUN)
    done = subprocess.run(
        [program("node", "chromium"), tmp_path / "site" / "run.mjs"],
        input=json.dumps([{name: [_text(x) for x in value.flat] for name, value in run.items()} for run in runs]),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    session = lb.Session(executable, device="wasm")
    for inputs, found in zip(runs, json.loads(done.stdout), strict=True):
        for name, value in inputs.items():
            session.set_input(name, value)
        session.run()
        for number, spec in enumerate(executable.main.outputs):
            expected = np.asarray(session.get_output(number).to_device("cpu"))
            values = np.array([_value(text) for text in found[spec.name]], expected.dtype).reshape(expected.shape)
            # of its own, JavaScript has sine and power; the engine's kernels are the same
            close = 1e-6 if spec.name == "sine" else 1e-14 if spec.name == "power" else 0
            np.testing.assert_allclose(values, expected, rtol=close, atol=0)


def _text(value: np.generic) -> str:
    """A number as JavaScript reads it."""
    return str(int(value)) if value.dtype.kind in "bi" else str(float(value)).replace("inf", "Infinity")


def _value(text: str) -> int | float:
    return int(text) if text.lstrip("-").isdigit() else float(text)


def small(text: str, target: str = "wasm", **options: object) -> lb.Executable:
    return lb.compile(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}'), target, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "target", "says"),
    [
        (
            "g (bool c, float[4] x) => (float[4] y) { y = If(c) <then_branch = t () => (float[4] p) { p = Exp(x) }, "
            "else_branch = e () => (float[4] q) { q = Sin(x) }> }",
            "wasm",
            "fix by constants= .* what If and Loop depend on",
        ),
        ("g (float[N] x) => (float[N] y) { y = Exp(x) }", "wasm", "give each dimension a number"),
        ("g (float[4] x) => (float[4] y) { y = Exp(x) }", "llvm", "none in WebAssembly; compile it for target 'wasm'"),
        ("g (bfloat16[4] x) => (bfloat16[4] y) { y = Neg(x) }", "wasm", "of bfloat16, of which JavaScript has no"),
        ("g (double[4] x) => (double[4] y) { y = Erf(x) }", "wasm", "erf of float64, which JavaScript does not"),
    ],
)
def test_what_is_refused_writes_no_file(text: str, target: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(ExecutableError, match=says):
        export_wasm(small(text, target), tmp_path / "site", "net")
    assert not (tmp_path / "site").exists()


def test_names_are_checked(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'9x'"):
        export_wasm(small("g (float[4] x) => (float[4] y) { y = Exp(x) }"), tmp_path, "9x")


def test_the_command_takes_one_form(tmp_path: Path) -> None:
    file = tmp_path / "exp.onnx"
    onnx.save(
        onnx.parser.parse_model(
            '<ir_version: 8, opset_import: ["": 18]> g (float[4] x) => (float[4] y) { y = Exp(x) }'
        ),
        file,
    )
    done = invoke(["export", str(file), "--wasm", str(tmp_path / "site")])
    assert done.exit_code == 0 and (tmp_path / "site" / "exp.mjs").exists(), done.output
    for options in (
        [],
        ["--c", str(tmp_path / "c"), "--wasm", str(tmp_path / "w")],
        ["--wasm", "w", "--weights-apart"],
    ):
        refused = invoke(["export", str(file), *options])
        assert refused.exit_code == 2 and "--c" in refused.stderr


#: What is printed of a program that is loaded from the folder which is the first argument.
_PRINTS = """
import { load } from "./net.mjs";
try {
  const program = await load(process.argv[2]);
  for (const name of program.inputNames) {
    program.inputs[name].data.fill(-2);
  }
  program.run();
  console.log(JSON.stringify(program.outputNames.map((name) => [name, Array.from(program.outputs[name].data)])));
} catch (error) {
  console.log(error.message);
}
"""


def printed(site: Path, folder: str = ".") -> str:
    (site / "prints.mjs").write_text(_PRINTS)
    done = subprocess.run(
        [program("node", "chromium"), site / "prints.mjs", folder], capture_output=True, text=True, timeout=120
    )
    return done.stdout.strip() or done.stderr


def test_names_are_those_of_the_model_in_its_order(tmp_path: Path) -> None:
    """An output that is an input, names that are numbers, and words that the module has itself."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[2] x, float[2] u) => (float[2] z, float[2] v, float[2] x) '
        "{ z = Relu(x)  v = Neg(u) }"
    )
    graph = model.graph
    renamed = {"z": "10", "v": "9", "u": "LB_NAME"}
    for node in graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
        node.output[:] = [renamed.get(name, name) for name in node.output]
    for value in (*graph.input, *graph.output):
        value.name = renamed.get(value.name, value.name)
    export_wasm(lb.compile(model, "wasm"), tmp_path, "net")
    assert json.loads(printed(tmp_path)) == [["10", [0, 0]], ["9", [2, 2]], ["x", [-2, -2]]]


def test_files_of_another_export_are_refused_and_another_folder_is_not(tmp_path: Path) -> None:
    for name, count in (("a", 4), ("b", 8)):
        export_wasm(small(f"g (float[{count}] x) => (float[{count}] y) {{ y = Neg(x) }}"), tmp_path / name, "net")
    assert json.loads(printed(tmp_path / "a")) == [["y", [2] * 4]]
    for end in ("wasm", "weights"):
        (tmp_path / "c").mkdir(exist_ok=True)
        (tmp_path / "c" / f"net.{end}").write_bytes((tmp_path / "a" / f"net.{end}").read_bytes())
    assert json.loads(printed(tmp_path / "a", "../c")) == [["y", [2] * 4]]
    assert "of another export" in printed(tmp_path / "b", "../c")
