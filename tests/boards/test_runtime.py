"""The runtime on AArch64: pages of any size, threads, denormal floats, tvm-ffi; what it says of wrong files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.errors import ExecutableError
from tests.boards.board import Board, ProgramRunner
from tests.whole_models.small_models import edges

GENERIC = "llvm -mtriple=aarch64-linux-gnu -mcpu=generic"


def windowed() -> ModelProto:
    """A convolution of an odd number of channels, divided by 6, and each pixel's softmax."""
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", (1, 5, 9, 13)), ("y", (1, 11, 9, 13)))
    )
    weights = np.random.default_rng(1).standard_normal((11, 5, 3, 3), dtype=np.float32)
    constants = [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(np.float32(6), "six")]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Div", ["a", "six"], ["b"]),
        helper.make_node("Softmax", ["b"], ["y"], axis=1),
    ]
    return helper.make_model(
        helper.make_graph(nodes, "windowed", [x], [y], constants),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )


def scaled() -> ModelProto:
    """``y = x + x`` on 8 floats."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (8,)) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "scaled", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("page", [4096, 16384, 65536])
def test_pages_of_every_size_and_several_threads(board: Board, tmp_path: Path, page: int) -> None:
    model = edges(24, 32)
    x = np.random.default_rng(0).normal(size=(1, 3, 24, 32)).astype(np.float32)
    runner = ProgramRunner(replace(board, page=page), tmp_path)
    try:
        (result,) = runner(lb.compile(model, GENERIC), {"x": x}, threads=3)
    finally:
        runner.close()
    (wanted,) = lb.Session(lb.compile(model))(x)
    np.testing.assert_allclose(
        result, np.asarray(wanted), rtol=0, atol=1e-5
    )  # sums in another order: 48 eps of about 2


@pytest.mark.parametrize("denormals", ["flush", "keep"])
def test_denormals_are_flushed_where_it_is_requested(on_board: ProgramRunner, denormals: str) -> None:
    x = np.array([1e-39, -1e-39, 1e-38, 1, 0, -0.0, 1e-45, 2e-38], np.float32)
    (result,) = on_board(lb.compile(scaled(), f"{GENERIC} -denormals={denormals}"), {"x": x})
    is_denormal = np.abs(x) < np.finfo(np.float32).tiny
    wanted = np.where(is_denormal & (denormals == "flush"), np.copysign(0, x), x + x)
    np.testing.assert_array_equal(result.view(np.uint32), wanted.astype(np.float32).view(np.uint32))


def test_the_callers_floats_stay_as_they_were(board: Board, tmp_path: Path) -> None:
    lb.compile(scaled(), GENERIC).save(tmp_path / "scaled.lbx")
    tiny = board.output(
        "import sys, numpy as np, landbridge as lb\n"
        "s = lb.Session(lb.load(sys.argv[1]), num_threads=1); x = np.full(8, 1e-39, np.float32)\n"
        "print(np.asarray(s(x)[0])[0], (x + x)[0] > 0)",
        str(tmp_path / "scaled.lbx"),
    )
    assert tiny == "0.0 True"


def test_packed_functions(each_python: Board, tmp_path: Path) -> None:
    lb.compile(scaled(), GENERIC).save(tmp_path / "scaled.lbx")
    printed = each_python.output(
        "import sys, numpy as np, tvm_ffi, landbridge as lb\n"
        "m = lb.Module(lb.load(sys.argv[1])); m.export(sys.argv[2]); (name,) = m\n"
        "x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)\n"
        "f = getattr(tvm_ffi.load_module(sys.argv[2]), name)\n"
        "f(tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(y)); print(y.tolist())\n"
        "try: f(tvm_ffi.from_dlpack(x))\n"
        "except TypeError as error: print(error)",
        str(tmp_path / "scaled.lbx"),
        str(tmp_path / "scaled.so"),
    )
    values, refused = printed.splitlines()
    assert values == str([2.0 * i for i in range(8)])
    assert "takes 2 tensors, 1 were given" in refused


def test_code_of_another_instruction_set_is_refused(board: Board, tmp_path: Path) -> None:
    lb.compile(scaled(), GENERIC).save(tmp_path / "arm.lbx")
    with pytest.raises(
        ExecutableError, match=r"compiled for aarch64, this machine is x86_64; .*landbridge compile .*-t llvm"
    ):
        lb.Session(lb.load(tmp_path / "arm.lbx"))
    lb.compile(scaled()).save(tmp_path / "intel.lbx")
    done = board.python("import sys, landbridge as lb; lb.Session(lb.load(sys.argv[1]))", str(tmp_path / "intel.lbx"))
    assert "ExecutableError: compiled for x86_64, this machine is aarch64" in done.stderr


def test_missing_features_are_named(board: Board, tmp_path: Path) -> None:
    lb.compile(scaled(), "raspberry-pi-5").save(tmp_path / "pi5.lbx")
    code = "import sys, landbridge as lb; lb.Session(lb.load(sys.argv[1]))"
    done = board.python(code, str(tmp_path / "pi5.lbx"))
    assert "needs CPU features this machine lacks: asimddp, asimdrdm, atomics, fphp, lrcpc" in done.stderr
    assert board.__class__(board.qemu, board.folder, "max").python(code, str(tmp_path / "pi5.lbx")).returncode == 0


def test_registers_of_sve_as_long_as_declared(board: Board, tmp_path: Path) -> None:
    """Sums, quotients, a convolution and lengths that fill no register, on 8 and on 16 lanes."""
    x = np.random.default_rng(0).standard_normal((1, 5, 9, 13), dtype=np.float32)
    wanted = lb.Session(lb.compile(windowed()))(x)[0]
    np.save(tmp_path / "x.npy", x)
    code = (
        "import sys, numpy as np, landbridge as lb\n"
        "(y,) = lb.Session(lb.load(sys.argv[1]))(np.load(sys.argv[2])); np.save(sys.argv[3], np.asarray(y))"
    )
    files = [str(tmp_path / name) for name in ("x.npy", "y.npy")]
    for bits in (256, 512):
        name = str(tmp_path / f"sve{bits}.lbx")
        compiled = lb.compile(windowed(), f"llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v1 -vector-bits={bits}")
        compiled.save(name)
        done = replace(board, cpu=f"max,sve{bits}=on,sve-default-vector-length={bits // 8}").python(code, name, *files)
        assert done.returncode == 0, done.stderr
        np.testing.assert_allclose(np.load(files[1]), np.asarray(wanted), rtol=1e-5, atol=1e-6)
        other = replace(board, cpu="max,sve384=on,sve-default-vector-length=48").python(code, name, *files)
        assert f"needs CPU features this machine lacks: sve{bits}" in other.stderr
