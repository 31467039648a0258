"""Programs for RISC-V of 64 bits under QEMU's user mode: without vectors, and with vectors of 128 and 256 bits."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from wheel_models import CLASSIFY, DETECT, PP_OCR, wheel_model

import landbridge as lb
from landbridge.errors import CodegenError, ExecutableError
from landbridge.executable.c_export import export_c
from landbridge.executable.instance import instance
from landbridge.executable.parts import CodeImage
from landbridge.instruction_sets.riscv64.description import RISCV64
from landbridge.targets import c_compiler
from tests.boards.board import Board, ProgramRunner
from tests.boards.test_armv7 import SMALL, feeds_of
from tests.boards.test_models import check_equal
from tests.boards.test_runtime import scaled
from tests.executable.test_c_export import HARNESS, LINKED, open_edges
from tests.selection.installed import program
from tests.whole_models.random_weights import with_random_weights
from tests.whole_models.real_input import line_of_text, picture_for_detector, speech
from tests.whole_models.test_models import SILERO, reference

SCALAR = "llvm -mtriple=riscv64-linux-gnu -mcpu=generic"
#: For vectors of 128 bits and more, and of 256 and more.
VECTORS, LONG_VECTORS = f"{SCALAR} -mattr=+v", f"{SCALAR} -mattr=+v,+zvl256b"
_HEAD = '<ir_version: 10, opset_import: ["" : 18]> g '
#: Seconds that a program may take, emulated, on a busy machine.
LIMIT = 900


def processor(bits: int) -> str:
    """QEMU's name of a CPU whose vector registers have ``bits``; 0 for none."""
    return f"rv64,v=true,vext_spec=v1.0,vlen={bits},elen=64" if bits else "rv64,v=false"


#: The bits of the processor's registers, and the target: the same code runs on longer registers than it is for.
CASES = {
    "scalar": (0, SCALAR),
    "vectors": (128, VECTORS),
    "vectors on longer ones": (256, VECTORS),
    "long vectors": (256, LONG_VECTORS),
}


@pytest.fixture(scope="module", params=CASES)
def case(
    request: pytest.FixtureRequest, riscv64_board: Board, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ProgramRunner, str]]:
    bits, target = CASES[request.param]
    runner = ProgramRunner(replace(riscv64_board, cpu=processor(bits)), tmp_path_factory.mktemp("riscv64"))
    yield runner, target
    runner.close()


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", SMALL)
def test_small_programs_on_several_threads(case: tuple[ProgramRunner, str], name: str) -> None:
    run, target = case
    model = onnx.parser.parse_model(_HEAD + SMALL[name])
    feeds = feeds_of(model)
    check_equal(run(lb.compile(model, target), feeds, threads=3), reference(model.SerializeToString()).run(None, feeds))


def words_of(model: onnx.ModelProto, target: str) -> np.ndarray[Any, Any]:
    """The words at each even offset of the code of ``model``: instructions of four bytes are among them."""
    image = lb.compile(model, target).modules[0].image
    assert isinstance(image, CodeImage)
    return np.lib.stride_tricks.sliding_window_view(np.frombuffer(image.code, np.uint8), 4)[::2].copy().view("<u4")


def test_code_has_instructions_on_vectors() -> None:
    """Those that set how long vectors are, which nothing else has."""
    model = onnx.parser.parse_model(_HEAD + SMALL["product"])
    counts = []
    for target in (SCALAR, VECTORS):
        counts.append(int((words_of(model, target) & 0xC000707F == 0xC0007057).sum()))  # vsetivli
    assert counts[0] == 0 and counts[1] > 10


def test_windows_of_one_channel_keep_their_sums_in_registers() -> None:
    """Both factors are vectors, whose product LLVM computes in a register of its own: 205 instructions move groups
    of registers where tiles are chosen as for other products, which is what spills are made of."""
    model = onnx.parser.parse_model(
        _HEAD
        + """(float[1,32,24,48] x) => (float[1,32,24,48] y) {
        a = Conv(x, v) b = Conv<group = 32, pads = [2, 2, 2, 2]>(a, w) y = Conv(b, v) }"""
    )
    for name, shape in (("v", (32, 32, 1, 1)), ("w", (32, 1, 5, 5))):
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(shape, np.float32), name))
    whole_groups = np.isin(words_of(model, VECTORS) & 0xFFF0707F, (0x22800007, 0x22800027))  # vl2re8.v, vs2r.v
    assert whole_groups.sum() < 40


@pytest.mark.parametrize("bits", [0, 128, 256, 1024])
def test_the_features_of_a_processor(riscv64_board: Board, bits: int) -> None:
    code = "from landbridge.vm import host_cpu; print(host_cpu.isa(), *sorted(host_cpu.features()))"
    isa, *found = replace(riscv64_board, cpu=processor(bits)).output(code).split()
    assert isa == "riscv64" and {"m", "a", "f", "d", "c"} <= set(found)
    lengths = {f"zvl{length}b" for length in (128, 256, 512, 1024, 2048) if length <= bits}
    assert {name for name in found if name == "v" or name.startswith("zvl")} == lengths | ({"v"} if bits else set())


@pytest.mark.parametrize(
    ("bits", "options", "lacks"),
    [
        (0, "-mattr=+v", "v"),
        (128, "-mattr=+v,+zvl256b", "zvl256b"),
        (256, "-mcpu=sifive-x280", "zvl512b"),
        (128, "-mattr=+zfa", "zfa"),
    ],
)
def test_a_processor_without_what_the_code_needs(
    riscv64_board: Board, tmp_path: Path, bits: int, options: str, lacks: str
) -> None:
    chosen = options if "-mcpu" in options else f"-mcpu=generic {options}"
    lb.compile(scaled(), f"llvm -mtriple=riscv64-linux-gnu {chosen}").save(tmp_path / "scaled.lbx")
    code = "import sys, landbridge as lb; lb.Session(lb.load(sys.argv[1]))"
    done = replace(riscv64_board, cpu=processor(bits)).python(code, str(tmp_path / "scaled.lbx"))
    assert done.returncode == 1 and "ExecutableError: the code needs CPU features this machine lacks: " in done.stderr
    assert lacks in done.stderr.rpartition("lacks: ")[2].partition(";")[0].split(", ")


def test_code_of_another_instruction_set_is_refused(riscv64_board: Board, tmp_path: Path) -> None:
    lb.compile(scaled(), VECTORS).save(tmp_path / "riscv.lbx")
    with pytest.raises(ExecutableError, match="compiled for riscv64, this machine is x86_64"):
        lb.Session(lb.load(tmp_path / "riscv.lbx"))
    lb.compile(scaled(), "raspberry-pi-4").save(tmp_path / "arm.lbx")
    done = riscv64_board.python("import sys, landbridge as lb; lb.Session(lb.load(sys.argv[1]))", f"{tmp_path}/arm.lbx")
    assert "ExecutableError: compiled for aarch64, this machine is riscv64" in done.stderr


@pytest.mark.parametrize("denormals", ["flush", "keep"])
def test_denormals_are_computed_with_in_any_case(case: tuple[ProgramRunner, str], denormals: str) -> None:
    run, target = case
    compiled = lb.compile(scaled(), f"{target} -denormals={denormals}")
    assert isinstance(compiled.modules[0].image, CodeImage) and not compiled.modules[0].image.flushes_denormals
    x = np.array([1e-39, -1e-39, 1e-38, 1, 0, -0.0, 1e-45, 2e-38], np.float32)
    (result,) = run(compiled, {"x": x})
    np.testing.assert_array_equal(result.view(np.uint32), (x + x).view(np.uint32))


def test_kernels_round_to_nearest_and_the_callers_rounding_stays(riscv64_board: Board, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(_HEAD + "(float[8] x) => (float[8] y) { y = Mul(x, x) }")
    lb.compile(model, VECTORS).save(tmp_path / "square.lbx")
    printed = riscv64_board.output(
        "import sys, ctypes, numpy as np, landbridge as lb\n"
        "m = ctypes.CDLL('libm.so.6'); x = np.full(8, 1.1, np.float32); wanted = x * x\n"
        "s = lb.Session(lb.load(sys.argv[1]), num_threads=1); s(x)\n"
        "assert m.fesetround(3) == 0\n"  # towards infinity
        "y = np.asarray(s(x)[0]); rounding = m.fegetround(); upward = x * x; m.fesetround(0)\n"
        "print((y == wanted).all(), rounding, (upward > wanted).all())",
        str(tmp_path / "square.lbx"),
    )
    assert printed == "True 3 True"


def build(folder: Path, *flags: str) -> None:
    (folder / "main.c").write_text(HARNESS)
    strict = ["-std=gnu11", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    command = [program("riscv64-linux-gnu-gcc", "boards"), *strict, *flags, "main.c", "libmodel.a", *LINKED]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def run_built(folder: Path, cpu: str, *sizes: int) -> int:
    emulator = [program("qemu-riscv64", "boards"), "-cpu", cpu, "-L", "/usr/riscv64-linux-gnu"]
    return subprocess.run([*emulator, "./run", *map(str, sizes)], cwd=folder, timeout=LIMIT).returncode


@pytest.mark.parametrize("library", ["static", "shared"])
def test_programs_for_c(tmp_path: Path, library: str) -> None:
    executable = lb.compile(open_edges(), VECTORS)
    export_c(executable, tmp_path, "model")
    if library == "shared":
        (tmp_path / "libmodel.a").unlink()
        (tmp_path / "libmodel.so").rename(tmp_path / "libmodel.a")  # the file that the harness is linked with
        (tmp_path / "libmodel.so").symlink_to("libmodel.a")
    here = lb.Session(lb.compile(open_edges()))
    width = 77
    build(tmp_path, f"-DSIZES={width}", *(["-static"] if library == "static" else ["-Wl,-rpath,."]))
    x = np.random.default_rng(width).normal(size=(1, 3, 24, width)).astype(np.float32)
    x.tofile(tmp_path / "in.0")
    (spec,) = instance(executable, {"W": width}).main.outputs
    assert run_built(tmp_path, processor(128), x.nbytes, spec.nbytes) == 0
    found = np.fromfile(tmp_path / "out.0", np.float32).reshape(spec.shape)
    # Sums in another order: 48 terms of about 2, each rounded.
    np.testing.assert_allclose(found, np.asarray(here(x)[0]), rtol=0, atol=1e-5)


@pytest.mark.parametrize("options", ["", " -mcpu=rv64gcv"])
def test_kernels_of_a_c_compiler(on_riscv64: ProgramRunner, options: str) -> None:
    compiler = program("riscv64-linux-gnu-gcc", "boards")
    executable = lb.compile(open_edges(), f"c -compiler={compiler}{options}")
    image = executable.modules[0].image
    assert isinstance(image, CodeImage) and ("v" in image.features) is bool(options)
    x = np.random.default_rng(0).normal(size=(1, 3, 24, 77)).astype(np.float32)
    (wanted,) = lb.Session(lb.compile(open_edges()))(x)
    # Sums in another order: 48 terms of about 2, each rounded.
    np.testing.assert_allclose(on_riscv64(executable, {"x": x}, threads=2)[0], np.asarray(wanted), rtol=0, atol=1e-5)


def test_compilers_that_pass_floats_otherwise_are_refused(tmp_path: Path) -> None:
    """By the target and by the header of an exported program; both take the same compiler without the option."""
    compiler = program("riscv64-linux-gnu-gcc", "boards")
    with pytest.raises(CodegenError, match=r"passes floats in integer registers .* -compiler=riscv64-linux-gnu-gcc"):
        lb.compile(open_edges(), f"c -compiler={compiler} -cflags=-mabi=lp64")
    assert isinstance(lb.compile(open_edges(), f"c -compiler={compiler}"), lb.Executable)
    export_c(lb.compile(open_edges(), SCALAR), tmp_path, "model")
    (tmp_path / "main.c").write_text('#include "model.h"\n')
    for options, legal in (("-mabi=lp64d", True), ("-mabi=lp64", False)):
        done = subprocess.run([compiler, "-E", options, "main.c"], cwd=tmp_path, capture_output=True, text=True)
        assert ("this program is code for riscv64" in done.stderr) is not legal, done.stderr


@pytest.mark.parametrize(("bits", "reason"), [("32", "registers of 32 bits"), ("64", "passes floats in integer")])
def test_macros_of_other_compilers(bits: str, reason: str) -> None:
    macros = {"__riscv": "1", "__riscv_xlen": bits}
    assert c_compiler.described(macros) is None
    assert reason in c_compiler.refusal(macros)
    if bits == "64":
        assert c_compiler.described(macros | {"__riscv_float_abi_double": "1"}) is RISCV64


def test_programs_for_c_report_a_processor_without_the_features(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(
        '#include "model.h"\nint main(void) { return model_init((model_program[1]){0}, 0, (void *)64, 0); }\n'
    )
    command = [program("riscv64-linux-gnu-gcc", "boards"), "-std=c99", "-pedantic", "-Werror", "-static", "main.c"]
    for target, cpus in (
        (SCALAR, {processor(0): 1}),
        (VECTORS, {processor(0): 7, processor(128): 1}),
        (LONG_VECTORS, {processor(128): 7, processor(256): 1}),
        (f"{SCALAR} -mattr=+zba", {processor(128): 7}),  # this emulated kernel has no riscv_hwprobe
    ):
        export_c(lb.compile(open_edges(), target), tmp_path, "model")
        subprocess.run([*command, "libmodel.a", *LINKED], cwd=tmp_path, check=True)
        assert {cpu: run_built(tmp_path, cpu) for cpu in cpus} == cpus, "7: it lacks a feature; 1: something is null"


@pytest.mark.full
def test_the_device_keeps_its_contract(riscv64_board: Board) -> None:
    command = riscv64_board.command("-m", "landbridge", "conformance", "cpu")
    done = subprocess.run(command, env=riscv64_board.environment, capture_output=True, text=True, timeout=LIMIT)
    failed = [line for line in done.stderr.splitlines() if line.startswith("FAIL")]
    # Neither Debian nor PyPI has ml-dtypes for it.
    assert all("numpy has no bfloat16; ml-dtypes has, and does not import" in line for line in failed), done.stderr
    assert int(done.stderr.split("cpu:0: ")[1].split()[0]) > 70, done.stdout + done.stderr


@pytest.mark.full
def test_direction_of_text(case: tuple[ProgramRunner, str]) -> None:
    run, target = case
    x, file = line_of_text(48, 192), wheel_model(PP_OCR, CLASSIFY)
    outputs = run(lb.compile(file, target, shapes={"x": x.shape}), {"x": x}, threads=2)
    check_equal(outputs, reference(file.read_bytes()).run(None, {"x": x}))


@pytest.mark.full
def test_detection_of_text(case: tuple[ProgramRunner, str]) -> None:
    run, target = case
    x, file = picture_for_detector(320, 320), wheel_model(PP_OCR, DETECT)
    outputs = run(lb.compile(file, target, shapes={"x": x.shape}), {"x": x}, threads=2)
    check_equal(outputs, reference(file.read_bytes()).run(None, {"x": x}))


@pytest.mark.full
def test_photo_classifier_with_random_weights(case: tuple[ProgramRunner, str]) -> None:
    run, target = case
    x = picture_for_detector(224, 224)
    model = with_random_weights("squeezenet", {"data_0": x})
    wanted = reference(model.SerializeToString()).run(None, {"data_0": x})
    check_equal(run(lb.compile(model, target), {"data_0": x}, threads=2), wanted)


@pytest.mark.full
def test_speech_detector(case: tuple[ProgramRunner, str]) -> None:
    run, target = case
    file = wheel_model(SILERO, "silero_vad_op18_ifless.onnx")
    compiled = lb.compile(file, target, shapes={"input": (1, 576), "state": (2, 1, 128), "sr": ()})
    feeds = {
        "input": speech(576)[None].copy(),
        "state": np.zeros((2, 1, 128), np.float32),
        "sr": np.array(16000, np.int64),
    }
    check_equal(run(compiled, feeds), reference(file.read_bytes()).run(None, feeds))
