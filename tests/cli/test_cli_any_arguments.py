"""Whatever is asked of a command, it answers: done, or one message and a code that is not 0; never a traceback."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from tests.cli.command_line import invoke
from tests.vm import programs
from tests.whole_models.small_models import add

SPECIAL = ("/dev/null", "/proc/self/mem", "/", ".", "", "-", "none-such", "\udcff", "x" * 300, "a/b/c", "=", ",")
MODELS = ("add.onnx", "open.onnx", "empty.onnx", "outputs.onnx", "broken.onnx", "folder.onnx", "text.onnx", "add.lbx",
          "short.lbx", "zero.lbx", "plan.csv", "broken.csv", "folder.csv", "ir.mlir", "bytes.mlir")  # fmt: skip
ARRAYS = ("right.npy", "wrong.npy", "archive.npy", "objects.npy", "fields.npy", "swapped.npy", "nan.npy", "short.npy",
          "empty.npy", "zero.npy", "text.npy", "folder.npy")  # fmt: skip
NAMES = ("x", "y", "a", "b", "sum", "none", "", "*")
SHAPES = ("64", "0", "", "1x1x64", "64x", "-1", "99999999999999999999", "4000000000x4000000000", "0x7", "٣", "1e3")
TARGETS = ("llvm", "c", "opencl", "vulkan", "raspberry-pi-5", "x86-64-v3", "llvm -mcpu=none", "llvm -num-cores=0", "{",
           "", '{"kind": 3}', "{}", "[]", "null", "opencl -max-workgroup-size=1", "lvm",
           "llvm -num-cores=99999999999999999999")  # fmt: skip
DEVICES = ("cpu", "cpu:7", "cpu,cpu", "opencl", "vulkan", "sim:lazy", "sim:scratch", "opencl,cpu", "none", "", ",",
           "sim", "sanitize(cpu)", "cpu:99999999999999999999", "((")  # fmt: skip
ANY_NUMBERS = ("0", "1", "2", "-1", "x", "", "1.5", "nan", "inf", "-0", "1e-9")


def one_of(*values: str) -> st.SearchStrategy[str]:
    return st.sampled_from(values)


def named(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(values, st.builds("{}={}".format, one_of(*NAMES), values))


ANY_FILE = one_of(*MODELS, *ARRAYS, *SPECIAL)
VALUES = {
    "--target": one_of(*TARGETS),
    "--device": one_of(*DEVICES),
    "--place": named(one_of("cpu", "cpu@global", "sim:scratch@global.vtcm[1]", "none", "@", "cpu[9]", "")),
    "--shape": named(one_of(*SHAPES)),
    "--input": st.one_of(named(one_of(*ARRAYS, *SPECIAL)), st.builds("x={}".format, one_of(*ARRAYS))),
    "--threads": one_of(*ANY_NUMBERS),
    "--seed": one_of(*ANY_NUMBERS, "99999999999999999999"),
    "--repeat": one_of(*ANY_NUMBERS),
    "--rounds": one_of(*ANY_NUMBERS),
    "--runs": one_of(*ANY_NUMBERS),
    "--against": one_of("onnxruntime", "onnxruntime,openvino", "openvino", "none", "", ","),
    "--pause": one_of(*ANY_NUMBERS),
    "--tolerance": one_of(*ANY_NUMBERS),
    "--absolute": one_of(*ANY_NUMBERS),
    "--top": one_of(*ANY_NUMBERS),
    "--memory-cfg": named(one_of("pooled", "naive", "none", "cpu=naive", "cpu/global=pooled", "")),
    "--budget": one_of("0", "0.01", "-1", "x", "nan"),
    "--capacity": named(one_of(*ANY_NUMBERS, "64", "100000", "99999999999999999999999")),
    "--passes": one_of("fuse", "place,dedup,fold,fuse", "plan", "none", ",", "fuse,fuse"),
    "--disable": one_of("fuse.epilogue", "plan.bytes,fold.view", "fuse", ","),
    "--output": one_of("out.bin", "none/out", "folder.npy", *SPECIAL),
    "--output-dir": one_of("out", "text.onnx", "text.onnx/out", "/dev/null/x", "/proc/none"),
    "--trace": one_of("out.json", "none/out", "/dev/full"),
    "--svg": one_of("out.svg", "none/out", "/dev/full"),
    "--html": one_of("out.html", "none/out", "/dev/full"),
    "--emit-source": one_of("out.c", "none/out", "/dev/full"),
    "--dump": one_of("out", "text.onnx", "/dev/null/x"),
}
FLAGS = ("--json", "--memory", "--every", "--alone", "--list", "--verbose", "--help")
_OF_A_RUN = ("--target", "--device", "--shape", "--input", "--threads", "--seed", "--json")
OPTIONS = {
    "run": (*_OF_A_RUN, "--place", "--output-dir", "--repeat", "--trace", "--memory", "--memory-cfg"),
    "compile": ("--output", "--target", "--shape", "--json"),
    "compare": (*_OF_A_RUN, "--place", "--tolerance", "--absolute", "--every"),
    "bench": (*_OF_A_RUN, "--place", "--rounds", "--against", "--pause", "--alone"),
    "trace": (*_OF_A_RUN, "--output", "--top"),
    "explain": (*_OF_A_RUN, "--runs", "--top", "--svg", "--html"),
    "plan": ("--target", "--device", "--shape", "--place", "--capacity", "--budget", "--svg", "--html", "--json"),
    "opt": ("--passes", "--disable", "--output", "--dump", "--emit-source", "--target", "--shape", "--list", "--json"),
    "devices": ("--json", "--verbose"),
    "targets": ("--json",),
}
ARGUMENTS = {"devices": st.just(()), "targets": st.lists(one_of(*TARGETS), max_size=1).map(tuple)}


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    command = draw(st.sampled_from(sorted(OPTIONS)))
    line = [command, *draw(ARGUMENTS.get(command, st.tuples(st.one_of(one_of(*MODELS), ANY_FILE))))]
    for option in draw(st.lists(st.sampled_from(OPTIONS[command]), max_size=4)):
        line += [option] if option in FLAGS else [option, draw(VALUES[option])]
    for option, least in {"--repeat": "run", "--rounds": "bench", "--budget": "plan"}.items():
        if command == least and option not in line:  # else these take their time
            line += [option, "1" if option != "--budget" else "0.01"]
    return line


def tensor(name: str, *shape: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def model(inputs: list[onnx.ValueInfoProto], output: onnx.ValueInfoProto) -> onnx.ModelProto:
    nodes = [helper.make_node("Exp", ["x"], ["y"], name="sum")]
    graph = helper.make_graph(nodes, "exp", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Files of every name in MODELS and ARRAYS, in the working directory."""
    here = tmp_path_factory.mktemp("files")
    onnx.save(add(), here / "add.onnx")
    onnx.save(model([tensor("x", "n", 4)], tensor("y", "n", 4)), here / "open.onnx")
    onnx.save(model([tensor("x", 0, 4)], tensor("y", 0, 4)), here / "empty.onnx")
    onnx.save(model([tensor("x", 3)], tensor("z", 3)), here / "outputs.onnx")
    (here / "broken.onnx").write_bytes((here / "add.onnx").read_bytes()[:-7])
    programs.two_stages().save(here / "add.lbx")
    (here / "short.lbx").write_bytes((here / "add.lbx").read_bytes()[:5000])
    (here / "zero.lbx").write_bytes(b"")
    (here / "text.onnx").write_text("not a model\n")
    (here / "plan.csv").write_text("id,lower,upper,size\na,0,2,64\nb,1,3,32\n")
    (here / "broken.csv").write_text("id,lower,upper,size\na,2,0,64\n")
    (here / "ir.mlir").write_text((Path(__file__).parent / "add.mlir").read_text())
    (here / "bytes.mlir").write_bytes(b"\xff\xfe builtin")
    right = np.ones(64, np.float32)
    np.save(here / "right.npy", right)
    np.save(here / "wrong.npy", right[:3])
    np.savez(here / "archive", right)
    (here / "archive.npz").rename(here / "archive.npy")
    np.save(here / "objects.npy", np.array([{}, 1], object), allow_pickle=True)
    np.save(here / "fields.npy", np.zeros(64, [("a", "f4"), ("b", "i4")]))
    np.save(here / "swapped.npy", right.astype(">f4"))
    np.save(here / "nan.npy", right * np.nan)
    np.save(here / "empty.npy", np.zeros((0, 4), np.float32))
    (here / "short.npy").write_bytes((here / "right.npy").read_bytes()[:-9])
    (here / "zero.npy").write_bytes(b"")
    (here / "text.npy").write_text("1 2 3\n")
    for name in ("folder.onnx", "folder.csv", "folder.npy"):
        (here / name).mkdir()
    before = Path.cwd()
    os.chdir(here)
    yield here
    os.chdir(before)


def check(line: list[str]) -> None:
    with warnings.catch_warnings(record=True) as output:
        warnings.simplefilter("always")
        done = invoke(line)
    loud = [w for w in output if issubclass(w.category, RuntimeWarning | SyntaxWarning)]
    assert not loud, (line, [str(w.message) for w in loud])
    assert done.exception is None, (line, repr(done.exception))
    assert done.exit_code in (0, 1, 2, 3), line
    assert "Traceback" not in done.output, (line, done.output)
    if done.exit_code in (1, 2):
        errors = [text for text in done.stderr.splitlines() if "error: " in text.lower()]
        assert len(errors) == 1, (line, done.stderr)
        if "--json" in line and line[0] in OPTIONS:
            assert json.loads(done.stdout)["error"]["exit_code"] == done.exit_code, line


def test_any_arguments(folder: Path, request: pytest.FixtureRequest) -> None:
    count = 1000 if request.config.getoption("--full") else 60
    limits = settings(max_examples=count, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
    limits(given(command_lines())(check))()


@pytest.mark.sample(6)
@pytest.mark.parametrize("command", ["run", "compare", "bench", "trace"])
@pytest.mark.parametrize("file", ARRAYS)
def test_any_file_as_an_input(folder: Path, command: str, file: str) -> None:
    check([command, "add.onnx", "--input", f"x={file}", *(["--repeat", "1"] if command == "run" else [])])


@pytest.mark.sample(14)
@pytest.mark.parametrize("command", sorted(set(OPTIONS) - {"devices", "targets"}))
@pytest.mark.parametrize("file", [*MODELS, *SPECIAL])
def test_any_file_as_a_model(folder: Path, command: str, file: str) -> None:
    check([command, file])
