"""Programs for ARMv7 under QEMU's user mode: words of 64 bits, addresses of 32, a Cortex-A9 without fused products."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from wheel_models import CLASSIFY, DETECT, PP_OCR, wheel_model

import landbridge as lb
from landbridge.codegen.llvm.isa import required_flags
from landbridge.dtypes import numpy_dtype
from landbridge.errors import CodegenError, ExecutableError
from tests.boards.board import Board, ProgramRunner
from tests.boards.test_models import check_equal
from tests.whole_models.random_weights import with_random_weights
from tests.whole_models.real_input import line_of_text, picture_for_detector, speech
from tests.whole_models.test_models import SILERO, reference

A9 = "llvm -mtriple=armv7-linux-gnueabihf -mcpu=cortex-a9"
#: Seconds that the tests of the contract may take, emulated, on a busy machine.
LIMIT = 500
A7 = "llvm -mtriple=armv7-linux-gnueabihf -mcpu=cortex-a7"
_HEAD = '<ir_version: 10, opset_import: ["" : 18]> g '
#: Products, windows, functions of f32, whole numbers, sizes that data decide, halves, doubles, 64-bit division.
SMALL = {
    "product": "(float[17,33] a, float[33,29] b) => (float[17,29] y) { y = MatMul(a, b) }",
    "window": """(float[1,3,33,31] a, float[8,3,3,3] b) => (float[1,8] y) {
        f = Conv<pads = [1, 1, 1, 1]>(a, b) p = Relu(f) q = GlobalAveragePool(p) y = Flatten(q) }""",
    "functions": "(float[7,65] a) => (float[7,65] y) { e = Exp(a) t = Tanh(e) s = Softmax<axis = 1>(t) y = Erf(s) }",
    "bytes": "(int8[9,64] a, int8[64,16] b) => (int32[9,16] y) { y = MatMulInteger(a, b) }",
    "choice": "(float[40] a) => (float[40] v, int64[40] i) { k = Constant<value = int64[1] {40}>() v, i = TopK(a, k) }",
    "half": "(float16[8,40] a) => (float[8,40] y) { b = Cast<to = 1>(a) y = Sigmoid(b) }",
    "double": "(double[8,40] a, double[8,40] b) => (double[8,40] y) { c = Mul(a, b) d = Sqrt(a) y = Add(c, d) }",
    "long": "(int64[8,40] a, int64[8,40] b) => (int64[8,40] y, float[8,40] z) { y = Div(a, b) z = Cast<to = 1>(y) }",
}


def feeds_of(model: onnx.ModelProto) -> dict[str, Any]:
    rng, feeds = np.random.default_rng(0), {}
    for each in model.graph.input:
        kind = onnx.helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type)
        shape = [d.dim_value for d in each.type.tensor_type.shape.dim]
        values = rng.integers(1, 100, shape) if kind.kind == "i" else rng.random(shape) + 0.1
        feeds[each.name] = values.astype(kind)
    return feeds


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", SMALL)
def test_small_programs(on_armv7: ProgramRunner, name: str) -> None:
    model = onnx.parser.parse_model(_HEAD + SMALL[name])
    feeds = feeds_of(model)
    check_equal(on_armv7(lb.compile(model, A9), feeds), reference(model.SerializeToString()).run(None, feeds))


@pytest.mark.full
def test_several_threads_and_fused_products(armv7_board: Board, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(_HEAD + SMALL["window"])
    feeds = feeds_of(model)
    program = lb.compile(model, A7)
    assert "vfpv4" in program.modules[0].image.features
    runner = ProgramRunner(replace(armv7_board, cpu="cortex-a7"), tmp_path)
    try:
        outputs = runner(program, feeds, threads=3)
    finally:
        runner.close()
    check_equal(outputs, reference(model.SerializeToString()).run(None, feeds))


def test_a_processor_without_what_the_code_needs(on_armv7: ProgramRunner) -> None:
    model = onnx.parser.parse_model(_HEAD + SMALL["product"])
    with pytest.raises(AssertionError, match=r"CPU features this machine lacks: .*vfpv4"):
        on_armv7(lb.compile(model, A7), feeds_of(model))
    with pytest.raises(AssertionError, match="compiled for aarch64, this machine is armv7"):
        on_armv7(lb.compile(model, "raspberry-pi-4"), feeds_of(model))


def test_programs_of_other_instruction_sets_are_refused_here_and_there(armv7_board: Board, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(_HEAD + SMALL["product"])
    with pytest.raises(ExecutableError, match=r"compiled for armv7, this machine is x86_64; .*landbridge compile"):
        lb.Session(lb.compile(model, A9))
    lb.compile(model).save(tmp_path / "intel.lbx")
    code = "import sys, landbridge as lb; lb.Session(lb.load(sys.argv[1]))"
    done = armv7_board.python(code, str(tmp_path / "intel.lbx"))
    assert "ExecutableError: compiled for x86_64, this machine is armv7; compile the model for it" in done.stderr


def test_larger_pages(armv7_board: Board, tmp_path: Path) -> None:
    """As kernels of 64 bits may have; with pages of 64 KiB, QEMU 7.2 ends itself."""
    model = onnx.parser.parse_model(_HEAD + SMALL["window"])
    feeds = feeds_of(model)
    runner = ProgramRunner(replace(armv7_board, page=16384), tmp_path)
    try:
        outputs = runner(lb.compile(model, A9), feeds, threads=3)
    finally:
        runner.close()
    check_equal(outputs, reference(model.SerializeToString()).run(None, feeds))


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", SMALL)
def test_without_neon(armv7_board: Board, tmp_path: Path, name: str) -> None:
    model = onnx.parser.parse_model(_HEAD + SMALL[name])
    feeds = feeds_of(model)
    program = lb.compile(model, f"{A9} -mattr=-neon")
    assert "neon" not in program.modules[0].image.features
    runner = ProgramRunner(replace(armv7_board, cpu="cortex-a9,neon=off"), tmp_path)
    try:
        check_equal(runner(program, feeds), reference(model.SerializeToString()).run(None, feeds))
        with pytest.raises(AssertionError, match=r"CPU features this machine lacks: neon"):
            runner(lb.compile(model, A9), feeds)
    finally:
        runner.close()


def test_bfloat16_without_its_package(armv7_board: Board, tmp_path: Path) -> None:
    """numpy has no such type there: arrays are its bits."""
    model = onnx.parser.parse_model(f"{_HEAD}(bfloat16[4,16] a) => (bfloat16[4,8] y) {{ y = MatMul(a, w) }}")
    rng = np.random.default_rng(0)
    weights, x = (rng.integers(-8, 8, shape).astype(numpy_dtype("bfloat16")) for shape in ((16, 8), (4, 16)))
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    lb.compile(model, A9).save(tmp_path / "narrow.lbx")
    np.save(tmp_path / "x.npy", x.view(np.uint16))
    printed = armv7_board.output(
        "import sys, numpy as np, landbridge as lb\n"
        "program = lb.load(sys.argv[1]); session = lb.Session(program, num_threads=1)\n"
        "bits = np.load(sys.argv[2]); y = session(bits.view([('bfloat16', '<u2')]))[0]\n"
        "np.save(sys.argv[3], np.asarray(y).view(np.uint16)); program.save(sys.argv[4])\n"
        "try: session(bits)\n"
        "except lb.InputError as error: print(error)",
        *(str(tmp_path / name) for name in ("narrow.lbx", "x.npy", "y.npy", "again.lbx")),
    )
    assert "dtype uint16, it takes bfloat16" in printed and "bits.view([('bfloat16', '<u2')])" in printed
    wanted = x.astype(np.float32) @ weights.astype(np.float32)  # whole numbers below 2 to the 10th, rounded once
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), wanted.astype(x.dtype).view(np.uint16))
    again = lb.load(tmp_path / "again.lbx").constants
    assert all(np.array_equal(again[name], array) for name, array in lb.load(tmp_path / "narrow.lbx").constants.items())


def test_outputs_for_a_numpy_that_knows_no_versions_of_dlpack(armv7_board: Board, tmp_path: Path) -> None:
    lb.compile(onnx.parser.parse_model(_HEAD + SMALL["functions"]), A9).save(tmp_path / "functions.lbx")
    printed = armv7_board.output(
        "import sys, numpy as np, landbridge as lb\n"
        "y = lb.Session(lb.load(sys.argv[1]))(np.ones((7, 65), np.float32))[0]\n"
        "print(np.array_equal(np.from_dlpack(y), np.asarray(y)))",
        str(tmp_path / "functions.lbx"),
    )
    assert printed == "True"


@pytest.mark.full
def test_the_device_keeps_its_contract(armv7_board: Board) -> None:
    command = armv7_board.command("-m", "landbridge", "conformance", "cpu")
    done = subprocess.run(command, env=armv7_board.environment, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 failed," in done.stderr and int(done.stderr.split("cpu:0: ")[1].split()[0]) > 60


def test_what_vectors_cannot_do_is_refused() -> None:
    model = onnx.parser.parse_model(_HEAD + SMALL["product"])
    with pytest.raises(CodegenError, match=r"vectors of armv7 take denormal floats for zeros.*leave it out"):
        lb.compile(model, f"{A9} -denormals=keep")


@pytest.mark.parametrize(("cpu", "needs"), [("cortex-a9", "vfpv3"), ("cortex-a7", "idiva"), ("cortex-a53", "crc32")])
def test_each_cpu_needs_what_it_adds(cpu: str, needs: str) -> None:
    order = ("cortex-a9", "cortex-a7", "cortex-a53")
    flags = [set(required_flags("armv7", name, ())) for name in order]
    assert flags[0] < flags[1] < flags[2] and needs in flags[order.index(cpu)]


@pytest.mark.full
def test_photo_classifier_with_random_weights(on_armv7: ProgramRunner) -> None:
    x = picture_for_detector(224, 224)
    model = with_random_weights("squeezenet", {"data_0": x})
    wanted = reference(model.SerializeToString()).run(None, {"data_0": x})
    check_equal(on_armv7(lb.compile(model, A9), {"data_0": x}, threads=2), wanted)


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "make_input", "size"),
    [(CLASSIFY, line_of_text, (48, 192)), (DETECT, picture_for_detector, (160, 160))],
    ids=["cls", "det"],
)
def test_text_networks(on_armv7: ProgramRunner, name: str, make_input: Any, size: tuple[int, int]) -> None:
    x = make_input(*size)
    file = wheel_model(PP_OCR, name)
    outputs = on_armv7(lb.compile(file, A9, shapes={"x": x.shape}), {"x": x}, threads=2)
    check_equal(outputs, reference(file.read_bytes()).run(None, {"x": x}))


@pytest.mark.full
def test_speech_detector(on_armv7: ProgramRunner) -> None:
    file = wheel_model(SILERO, "silero_vad_op18_ifless.onnx")
    program = lb.compile(file, A9, shapes={"input": (1, 576), "state": (2, 1, 128), "sr": ()})
    feeds = {
        "input": speech(576)[None].copy(),
        "state": np.zeros((2, 1, 128), np.float32),
        "sr": np.array(16000, np.int64),
    }
    check_equal(on_armv7(program, feeds), reference(file.read_bytes()).run(None, feeds))
