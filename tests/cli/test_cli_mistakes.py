"""What a newcomer does wrong on the command line: each is told what it is, and the way out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

import landbridge as lb
from tests.cli.command_line import invoke
from tests.devices.present import first_instance
from tests.plugins.test_open_dimensions import LOOPS, register_kinds
from tests.whole_models.small_models import add

PYRAMID = """<ir_version: 8, opset_import: ["": 18]> pyramid (float[n, 1, h, w] x) => (float[n, 1, p, q] y) {
    a = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x)
    b = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (a)
    s = Constant <value = float[4] {1.0, 1.0, 2.0, 2.0}> ()
    c = Resize <mode = "nearest"> (b, , s)
    y = Add (a, c)
}"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    onnx.save(add(), "add.onnx")
    onnx.save(parser.parse_model(PYRAMID), "pyramid.onnx")
    return tmp_path


def refused(*line: str) -> str:
    done = invoke(list(line))
    assert done.exit_code in (1, 2), done.output
    return " ".join(done.stderr.split())


def test_files_that_are_no_arrays(here: Path) -> None:
    Path("text.npy").write_text("1 2 3\n")
    Path("zero.npy").write_bytes(b"")
    np.savez("a.npz", one=np.ones(3), two=np.ones(3))
    assert "begins with '1 2 3\\n'; write the array with numpy.save" in refused("run", "add.onnx", "-i", "x=text.npy")
    assert "it is empty" in refused("run", "add.onnx", "-i", "x=zero.npy")
    assert "an archive of one, two" in refused("run", "add.onnx", "-i", "x=a.npz")


def test_extents_as_other_programs_show_them(here: Path) -> None:
    for shape in ("x=1x1x8x8", "x=1×1×8×8", "x=[1, 1, 8, 8]", "x=1,1,8,8", "x=1X1X8X8", "x=(1,1,8,8)"):
        done = invoke(["run", "pyramid.onnx", "--shape", shape, "--json"])
        assert json.loads(done.stdout)["outputs"][0]["shape"] == [1, 1, 4, 4], shape
    done = invoke(["run", "pyramid.onnx", "--shape", "x=n, 1, max_h, 8", "--at", "max_h=12", "--json"])
    assert json.loads(done.stdout)["outputs"][0]["shape"][1:] == [1, 6, 4]


def test_extents_that_do_not_fit_name_the_input_and_what_fits(here: Path) -> None:
    reported = refused("run", "pyramid.onnx", "--shape", "x=1x1x321x320")
    assert "input 'x' cannot be (1, 1, 321, 320): axis 2 is 321, legal are multiples of 4, as 320 or 324" in reported
    assert "axis 3" not in reported
    reported = refused("run", "pyramid.onnx", "--at", "h=321")
    assert "dimension 'h' is 321" in reported
    assert "multiples of 4, as 320 or 324" in reported


def test_what_is_proposed_for_unknown_extents_is_no_program_by_itself(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_kinds(monkeypatch)
    reported = refused("compile", "pyramid.onnx", "--target", LOOPS.name)
    proposed = reported.split("--shape '")[1].split("'")[0]
    assert proposed == "x=<n>x1x<h>x<w>"
    assert "is not NAME=DIMxDIM" in refused("compile", "pyramid.onnx", "--target", LOOPS.name, "--shape", proposed)


def test_inputs_without_elements_are_reported(here: Path) -> None:
    onnx.save(parser.parse_model(PYRAMID.split("{")[0] + "{ y = Relu (x) }"), "relu.onnx")
    done = invoke(["run", "relu.onnx", "--shape", "x=0x1x8x8"])
    assert (done.exit_code, "0x1x8x8: it has no elements" in done.stderr) == (0, True)


def test_an_error_is_an_object_where_json_is_requested(here: Path) -> None:
    for line, kind, code in (
        (["run", "none.onnx", "--json"], "UsageError", 2),
        (["run", "add.onnx", "--json", "--no-such"], "UsageError", 2),
        (["run", "add.onnx", "--json", "--device", "gpu"], "UnknownDeviceError", 1),
        (["compile", "add.onnx", "--json", "-o", "no/such/a.lbx"], "OutputFileError", 1),
    ):
        done = invoke(line)
        reported = json.loads(done.stdout)["error"]
        assert (done.exit_code, reported["kind"], reported["exit_code"]) == (code, kind, code), line
        assert reported["message"]


def test_bench_and_compare_without_onnxruntime_fail(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert "pip install onnxruntime; --alone" in refused("bench", "add.onnx")
    assert "pip install onnxruntime" in refused("compare", "add.onnx")


def test_a_target_that_is_a_device() -> None:
    assert "'cpu' is a device, and no target; code for it is of target 'llvm' or 'c'" in refused("targets", "cpu")
    assert "code for it is of target 'opencl'" in refused("targets", "opencl:0")


@pytest.mark.parametrize(("created_for", "given"), [("vulkan", "opencl"), ("opencl", "vulkan")])
def test_a_device_that_a_file_cannot_use_names_the_one_it_can(here: Path, created_for: str, given: str) -> None:
    first_instance("opencl")
    first_instance("vulkan")
    assert invoke(["compile", "add.onnx", "-d", created_for, "-o", "add.lbx"]).exit_code == 0
    for device in (given, "cpu"):
        reported = refused("run", "add.lbx", "--device", device)
        assert f"--device {created_for}" in reported, reported


def test_a_device_that_gives_memory_alone_is_reported(here: Path) -> None:
    first_instance("vulkan")
    lb.compile("add.onnx").save("add.lbx")
    done = invoke(["run", "add.lbx", "--device", "vulkan"])
    assert done.exit_code == 0
    assert "the kernels are code of a CPU and run there" in done.stderr
    assert invoke(["run", "add.lbx"]).stderr == ""


def test_absent_drivers_are_listed_with_the_way_out() -> None:
    program = "import sys; from landbridge.cli import main; sys.argv = ['landbridge', 'devices', *sys.argv[1:]]; main()"
    no_drivers = {**os.environ, "OCL_ICD_VENDORS": "/none", "VK_DRIVER_FILES": "/none", "VK_ICD_FILENAMES": "/none"}
    shown = subprocess.run([sys.executable, "-c", program], env=no_drivers, capture_output=True, text=True, check=True)
    reported = " ".join(shown.stdout.split())
    assert "opencl: none; " in reported
    assert "vulkan: none; no Vulkan driver finds a device; install" in reported
    shown = subprocess.run(
        [sys.executable, "-c", program, "--json"], env=no_drivers, capture_output=True, text=True, check=True
    )
    assert {"opencl", "vulkan"} <= set(json.loads(shown.stdout)["absent"])


@pytest.mark.parametrize("columns", ["80", None])
def test_tables_break_no_word(columns: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", columns)
    shown = invoke(["devices"]).stdout
    words = shown.split()
    for scope in ("global.pinned", "global.scratch", "read_write", "coherent"):
        assert scope in words
    assert max(map(len, shown.splitlines())) <= (80 if columns else 200)


def test_flags_take_no_value() -> None:
    shown = invoke(["run", "--help"], env={"COLUMNS": "100"}).stdout
    for line in shown.splitlines():
        assert not ("--sanitize" in line and "bool" in line), line


def test_percentiles_are_in_order(here: Path) -> None:
    done = invoke(["run", "add.onnx", "--repeat", "50", "--json"])
    result = json.loads(done.stdout)
    times = result["latency_ms"]
    assert times["min"] <= times["p50"] <= times["p90"] <= times["p99"]
    assert times["p50"] == pytest.approx(times["median"])
    assert result["runs_per_s"] > 0


def test_archives_are_told_apart(here: Path) -> None:
    for inside, says in (("m/data.pkl", "torch.onnx.export"), ("net.onnx", "give net.onnx"), ("x.npy", "numpy arrays")):
        with zipfile.ZipFile("model.onnx", "w") as archive:
            archive.writestr(inside, b"")
        assert says in refused("run", "model.onnx")
