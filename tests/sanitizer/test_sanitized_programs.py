"""Programs compiled with ``sanitize``: an access outside of an operand ends the run, and is not done."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from wheel_models import CLASSIFY, DETECT, PP_OCR, wheel_model

import landbridge as lb
from landbridge.cli.sanitize import EXIT_FOUND
from landbridge.errors import AccessError, SanitizerError
from landbridge.executable import instructions as ins
from landbridge.passes.lower.guards import KnownRanges
from landbridge.process.sanitizing import SANITIZE_VARIABLE
from landbridge.sanitizer import findings
from tests.analysis.test_verify_accesses import COLUMN
from tests.cli.command_line import invoke

TARGETS = ("llvm", "c")
X = np.arange(6, dtype=np.float32)

#: ``picked[i] = x[i + 2 or so]``, as the kernel of a plugin's operator may be: nothing keeps its index inside.
PICK = """builtin.module {
  func.func @pick(%x: memref<6xf32, "global">, %by: memref<1xi64, "global">, %y: memref<6xf32, "global">)
      attributes {lb.prim} {
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
        outs(%y : memref<6xf32, "global">) attrs = {lb.extents = [6 : i64]} {
    ^bb0(%a: f32):
      %zero = arith.constant 0 : index
      %n = memref.load %by[%zero] : memref<1xi64, "global">
      %shift = arith.index_cast %n : i64 to index
      %i = linalg.index 0 : index
      %j = arith.addi %i, %shift : index
      %v = memref.load %x[%j] : memref<6xf32, "global">
      linalg.yield %v : f32
    }
    func.return
  }
  func.func @main(%x: tensor<6xf32, #lb.vdevice<0, "global">>, %by: tensor<1xi64, #lb.vdevice<0, "global">>)
      -> tensor<6xf32, #lb.vdevice<0, "global">> attributes {lb.input_names = ["x", "by"], lb.output_names = ["y"]} {
    %y = bufferization.alloc_tensor() : tensor<6xf32, #lb.vdevice<0, "global">>
    %r = "lb.call"(%x, %by, %y) {callee = @pick, operandSegmentSizes = array<i32: 2, 1>, node = "picker"} :
        (tensor<6xf32, #lb.vdevice<0, "global">>, tensor<1xi64, #lb.vdevice<0, "global">>,
         tensor<6xf32, #lb.vdevice<0, "global">>) -> tensor<6xf32, #lb.vdevice<0, "global">>
    func.return %r : tensor<6xf32, #lb.vdevice<0, "global">>
  }
}
"""


def by(number: int) -> np.ndarray[Any, Any]:
    return np.array([number], np.int64)


@pytest.fixture(scope="module", params=TARGETS)
def picks(request: pytest.FixtureRequest) -> lb.Executable:
    """PICK with tests."""
    return lb.compile(PICK, request.param, sanitize=True)


def test_without_it_what_is_not_proved_does_not_compile() -> None:
    with pytest.raises(AccessError, match="sanitize=True"):
        lb.compile(PICK, sanitize=False)


def test_the_error_names_node_operand_bytes_and_extent(picks: lb.Executable) -> None:
    session = lb.Session(picks)
    with pytest.raises(SanitizerError) as error:
        session(X, by(2))
    reported = str(error.value)
    assert re.search("a load of bytes (24 to 28|28 to 32) of operand 0, argument 'x', which has 24 bytes", reported)
    assert "node 'picker'" in reported
    assert "@pick" in reported
    assert [f.kind for f in findings()] == ["out of bounds"]


def test_a_session_goes_on_after_an_error(picks: lb.Executable) -> None:
    session = lb.Session(picks)
    for wrong in (-1, 6, 2**62, -(2**63)):
        with pytest.raises(SanitizerError, match="a load of bytes"):
            session(X, by(wrong))
        assert np.array_equal(np.asarray(session(X, by(0))[0]), X)


def test_it_is_retained_in_files(picks: lb.Executable, tmp_path: Path) -> None:
    picks.save(tmp_path / "pick.lbx")
    session = lb.Session(lb.load(tmp_path / "pick.lbx"))
    with pytest.raises(SanitizerError, match=r"bytes -4 to 0 of operand 0"):
        session(X, by(-1))


def test_ir_that_was_dumped_compiles_to_the_same(tmp_path: Path) -> None:
    lb.compile(PICK, sanitize=True, dump=tmp_path)
    (dumped,) = tmp_path.glob("*-check_accesses.mlir")
    for sanitize in (True, False):
        session = lb.Session(lb.compile(dumped, sanitize=sanitize))
        assert np.array_equal(np.asarray(session(X, by(0))[0]), X)
        with pytest.raises(SanitizerError, match=r"bytes -4 to 0 of operand 0"):
            session(X, by(-1))


def test_the_variable_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def looks() -> bool:
        made = lb.compile(COLUMN).main.instructions
        return any(isinstance(each, ins.HostCall) for each in made)

    monkeypatch.setenv(SANITIZE_VARIABLE, "1")
    assert looks()
    monkeypatch.setenv(SANITIZE_VARIABLE, "0")
    assert not looks()


@pytest.mark.parametrize("target", TARGETS)
def test_a_fault_of_lowering_is_found(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A convolution whose padded reads are not tested, as though loops kept them inside."""
    monkeypatch.setattr(KnownRanges, "holds", lambda self, guard: True)
    session = lb.Session(lb.compile(COLUMN, target, sanitize=True))
    with pytest.raises(SanitizerError, match=r"a load of bytes .* of operand 0, argument 'x', which has 768 bytes"):
        session(np.ones((1, 3, 8, 8), np.float32))


def test_a_branch_that_is_not_taken_reports_nothing() -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]> g (bool c, float[6] x) => (float[6] y) {
      y = If (c) <
        then_branch = t () => (float[6] a) { a = Relu(x) },
        else_branch = e () => (float[6] b) { b = Neg(x) }
      >
    }"""
    session = lb.Session(lb.compile(onnx.parser.parse_model(text), sanitize=True))
    assert np.array_equal(np.asarray(session(np.array(True), X)[0]), X)
    assert np.array_equal(np.asarray(session(np.array(False), X)[0]), -X)


def test_weights_that_are_replaced() -> None:
    eye = ", ".join("1" if i % 9 == 0 else "0" for i in range(64))
    text = f"""<ir_version: 10, opset_import: ["" : 18]> g (float[2,8] x) => (float[2,8] y)
      <float[8,8] w = {{{eye}}}> {{ y = MatMul(x, w) }}"""
    session = lb.Session(lb.compile(onnx.parser.parse_model(text), mutable=["w"], sanitize=True))
    x = np.arange(16, dtype=np.float32).reshape(2, 8)
    assert np.array_equal(np.asarray(session(x)[0]), x)
    session.set_params({"w": 2 * np.eye(8, dtype=np.float32)})
    assert np.array_equal(np.asarray(session(x)[0]), 2 * x)


@pytest.mark.parametrize(("shift", "code"), [(6, EXIT_FOUND), (0, 0)])
def test_the_command_ends_with_its_own_code(
    shift: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SANITIZE_VARIABLE, "0")  # the command sets it, and it is to be as it was
    (tmp_path / "pick.mlir").write_text(PICK)
    np.save(tmp_path / "by.npy", by(shift))
    options = ["run", str(tmp_path / "pick.mlir"), "--sanitize", "--input", f"by={tmp_path / 'by.npy'}"]
    result = invoke(options)
    assert result.exit_code == code
    assert ("sanitizer: out of bounds" in result.stderr) == (shift != 0)


@pytest.mark.full
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("name", "shape"), [(CLASSIFY, (1, 3, 48, 96)), (DETECT, (1, 3, 96, 96))], ids=["cls", "det"])
def test_models_are_clean(name: str, shape: tuple[int, ...], target: str) -> None:
    model = wheel_model(PP_OCR, name)
    x = np.random.default_rng(0).random(shape, np.float32)
    plain, tested = (
        np.asarray(lb.Session(lb.compile(model, target, shapes={"x": shape}, sanitize=sanitize))(x)[0])
        for sanitize in (False, True)
    )
    np.testing.assert_allclose(plain, tested, rtol=1e-5, atol=1e-6)  # sums may be contracted in another way
