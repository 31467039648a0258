"""``landbridge run`` on compiled files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import landbridge as lb
from tests.cli.command_line import invoke
from tests.compiler.product_model import save_product
from tests.devices.present import first_instance
from tests.vm import programs


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """y = 2 (a + b), on 64 floats."""
    file = tmp_path / "two_stages.lbx"
    programs.two_stages().save(file)
    return file


def _save(path: Path, array: np.ndarray) -> Path:
    np.save(path, array)
    return path


def test_files_in_files_out_and_one_json_object(model: Path, tmp_path: Path) -> None:
    a = np.arange(64, dtype=np.float32)
    file_a, file_b = _save(tmp_path / "a.npy", a), _save(tmp_path / "b.npy", 10 * a)
    out = tmp_path / "out"
    done = invoke(["run", str(model), "--input", f"a={file_a}", "--input", f"b={file_b}",
         "--output-dir", str(out), "--repeat", "3", "--threads", "1", "--json"],
    )  # fmt: skip
    assert (done.exit_code, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    [output] = result["outputs"]
    assert (output["name"], output["shape"], output["dtype"]) == ("y", [64], "float32")
    np.testing.assert_array_equal(np.load(output["file"]), 22 * a)
    assert Path(output["file"]).parent == out
    assert 0 < result["latency_ms"]["min"] <= result["latency_ms"]["median"]
    assert result["copies"] == []
    assert result["compile_s"] == 0
    assert result["memory"] == [
        {
            "device": "main",
            "scope": "global",
            "planned_bytes": 256,
            "lower_bound_bytes": 256,
            "proved_optimal": True,
        }
    ]


def test_inputs_not_given_are_seeded(model: Path, tmp_path: Path) -> None:
    def outputs(seed: int, name: str) -> bytes:
        directory = tmp_path / name
        arguments = ["run", str(model), "--seed", str(seed), "--output-dir", str(directory), "--repeat", "1"]
        assert invoke(arguments).exit_code == 0
        return (directory / "y.npy").read_bytes()

    first = outputs(1, "first")
    assert first == outputs(1, "again")
    assert first != outputs(2, "other")


def test_kernels_that_move_data_are_listed_apart(tmp_path: Path) -> None:
    file = tmp_path / "moves.lbx"
    programs.moves_data().save(file)
    result = json.loads(invoke(["run", str(file), "--json"]).stdout)
    assert result["copies"] == []
    assert result["reorders"] == [{"nbytes": 256, "cause": "kernel:reorder", "tensor": "reorder_x"}]


def test_a_trace_is_written(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    done = invoke(["run", str(model), "--trace", str(file), "--json"])
    assert json.loads(done.stdout)["outputs"]
    assert str(file) in done.stderr
    names = [event["name"] for event in json.loads(file.read_text())["traceEvents"] if event["ph"] == "X"]
    assert names == ["add", "double", "double"]


def test_text_output_names_what_matters(model: Path) -> None:
    done = invoke(["run", str(model)], env={"COLUMNS": "120", "NO_COLOR": "1"})
    assert done.exit_code == 0
    for word in ("float32", "median ms", "planned bytes", "copies in one run: none"):
        assert word in done.stdout


def test_outputs_whose_names_are_no_file_names_get_files_of_their_own(tmp_path: Path) -> None:
    file, n = tmp_path / "odd.lbx", 4
    program = (programs.Call(0, "double", (0, 1), n), programs.Call(0, "copy", (0, 2), n))
    programs.executable({"x": (n,)}, {"y/1": (n,), "y:1": (n,)}, program).save(file)
    done = invoke(["run", str(file), "--output-dir", str(tmp_path / "out"), "--json"])
    files = [Path(output["file"]).name for output in json.loads(done.stdout)["outputs"]]
    assert files == ["y_1.npy", "y_1.1.npy"]


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.zeros(64), "float64"),
        (np.zeros((1, 64), np.float32), "(1, 64)"),
        (np.array([{}], dtype=object), "not a .npy file of plain values"),
    ],
)
def test_files_that_do_not_fit_an_input(model: Path, tmp_path: Path, array: np.ndarray, says: str) -> None:
    file = tmp_path / "a.npy"
    np.save(file, array, allow_pickle=True)
    done = invoke(["run", str(model), "--input", f"a={file}", "--json"])
    assert done.exit_code == 1
    reported = json.loads(done.stdout)["error"]
    assert (reported["kind"], reported["exit_code"]) == ("InputError", 1)
    assert says in reported["message"]
    assert says in done.stderr


def test_errors_of_names_files_and_devices(model: Path, tmp_path: Path) -> None:
    file = _save(tmp_path / "a.npy", np.zeros(64, np.float32))
    unknown = invoke(["run", str(model), "--input", f"c={file}"])
    assert (unknown.exit_code, "its inputs are a, b" in unknown.stderr) == (1, True)
    device = invoke(["run", str(model), "--device", "cpv"])
    assert (device.exit_code, "cpu" in device.stderr) == (1, True)
    truncated = tmp_path / "truncated.lbx"
    truncated.write_bytes(model.read_bytes()[:200])
    broken = invoke(["run", str(truncated)])
    assert (broken.exit_code, "Traceback" in broken.stderr) == (1, False)
    assert broken.stderr


def test_a_compiled_file_takes_no_target_and_no_shape(model: Path) -> None:
    for arguments in (["run", str(model), "--target", "llvm"], ["run", str(model), "--shape", "a=64"]):
        done = invoke(arguments, env={"COLUMNS": "200"})
        assert (done.exit_code, "compiled already" in done.stderr) == (2, True)
    for command in ("compile", "compare"):
        assert invoke([command, str(model)]).exit_code == 2


def test_devices_lists_the_cpu_with_its_memory() -> None:
    listed = json.loads(invoke(["devices", "--json"]).stdout)
    cpu = next(entry for entry in listed["devices"] if entry["name"] == "cpu:0")
    assert cpu["memory"][0]["scope"] == "global"
    assert cpu["attrs"]["compute_units"] >= 1
    shown = invoke(["devices"])
    assert (shown.exit_code, "cpu:0" in shown.stdout) == (0, True)


def test_memory_of_a_run(model: Path) -> None:
    done = invoke(["run", str(model), "--memory", "--memory-cfg", "cpu:0/global=naive", "--json"])
    assert (done.exit_code, done.stderr) == (0, "")
    (found,) = json.loads(done.stdout)["memory_use"]
    assert (found["device"], found["scope"]) == ("cpu:0", "global")
    assert (found["activation_bytes"], found["output_bytes"], found["input_bytes"]) == (320, 256, 0)
    assert found["planned_bytes"] == found["allocated_bytes"] == found["peak_bytes"] == 576
    assert {"nbytes": 320, "names": ["activations of tiny"]} in found["holders"]
    done = invoke(["run", str(model), "--memory"])
    assert "counted by the allocator" in done.stdout
    assert "activations of tiny" in done.stdout


@pytest.mark.parametrize("text", ["cpu:0=heap", "heap", "cpu:0/vtcm=naive", "sim:lazy=naive"])
def test_memory_cfg_that_is_wrong(model: Path, text: str) -> None:
    done = invoke(["run", str(model), "--memory-cfg", text])
    assert done.exit_code == 1
    assert "heap" in done.stderr or "does not use" in done.stderr


def test_every_device_of_a_mixed_program_is_named(tmp_path: Path) -> None:
    first_instance("opencl")
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="relu"), helper.make_node("Neg", ["a"], ["y"], name="neg")]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, 8)) for name in "xy")
    opsets = [helper.make_opsetid("", 17)]
    made = helper.make_model(helper.make_graph(nodes, "two", [x], [y]), opset_imports=opsets, ir_version=8)
    file = tmp_path / "two.lbx"
    lb.compile(made, {"cpu": "llvm", "opencl": "opencl"}, place={"relu": "opencl"}, on_mismatch="copy").save(file)
    done = invoke(["run", str(file), "--repeat", "1", "--json"])
    assert done.exit_code == 0, done.output
    assert set(json.loads(done.stdout)["device"].split(",")) == {"opencl", "cpu"}


def test_limits_of_memory_and_time(tmp_path: Path) -> None:
    """The width that a stranger's input asks for is not allocated."""
    path = tmp_path / "pad.onnx"
    graph = helper.make_graph(
        [helper.make_node("Pad", ["x", "pads"], ["y"])],
        "pad",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [4]),
            helper.make_tensor_value_info("pads", TensorProto.INT64, [2]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
    pads = _save(tmp_path / "pads.npy", np.array([0, 1 << 20]))
    requested = ["run", str(path), "--input", f"pads={pads}", "--repeat", "1"]
    assert invoke([*requested, "--memory-limit", str(64 << 20), "--time-limit", "60"]).exit_code == 0
    done = invoke([*requested, "--memory-limit", str(1 << 20)])
    assert isinstance(done.exception, lb.OutOfMemoryError) or "memory_limit" in done.stderr
    assert invoke([*requested, "--memory-limit", "5"]).exit_code == 2
    assert invoke([*requested, "--time-limit", "0"]).exit_code != 0


@pytest.fixture
def product(tmp_path: Path) -> Path:
    return save_product(tmp_path)


def test_a_first_program_runs_while_the_full_one_is_compiled(
    product: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANDBRIDGE_CACHE", str(tmp_path / "cache"))
    # no process is fast enough, so that this does not depend on the time
    monkeypatch.setattr("landbridge.compiler.background_compile.BackgroundCompile.take", lambda self: None)
    fast, found = (["run", str(product), "--seed", "3", "--output-dir", str(tmp_path), *more] for more in (
        ["--optimize", "fast", "--json"], ["--json"]))  # fmt: skip
    done = invoke(fast)
    assert (done.exit_code, done.stderr) == (0, "")
    assert json.loads(done.stdout)["first_program"] is True
    first = np.load(tmp_path / "y.npy")
    assert "run by a first program of numpy functions" in invoke([*fast[:-1]]).stdout
    done = invoke(found)
    assert json.loads(done.stdout)["first_program"] is False
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), first, rtol=1e-5, atol=1e-6)
    assert json.loads(invoke(fast).stdout)["first_program"] is False, "the cache has the full one"


def test_optimize_is_fast_or_full_and_for_models(product: Path, model: Path) -> None:
    done = invoke(["run", str(product), "--optimize", "slow"])
    assert done.exit_code == 2 and "'slow' is neither fast nor full" in done.stderr
    done = invoke(["run", str(model), "--optimize", "fast"])
    assert done.exit_code == 2 and "--optimize are for the model it came from" in done.stderr
    assert invoke(["run", str(model), "--optimize", "full"]).exit_code == 0
