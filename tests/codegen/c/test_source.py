"""The printed C: portable, readable by name, and everything that has no C form is said."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from landbridge.codegen.c import generate, print_source
from landbridge.codegen.c.types import CType, literal
from landbridge.errors import CodegenError
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.types import tensor_type
from landbridge.passes.lower import lower_prim, vector_unit_of
from landbridge.targets import Target, c_compiler
from landbridge.vm.code_image import load_image
from tests.selection.installed import missing

from ..native import call, parse

STRICT = ["-std=c11", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-DLB_PORTABLE", "-O1"]


@pytest.fixture(scope="module")
def compiler() -> str:
    return c_compiler.find() or missing("a C compiler", "debian")


def matmul(m: int, n: int, k: int) -> ModuleOp:
    prim = PrimBuilder(
        "matmul",
        [tensor_type((m, k), "float32"), tensor_type((k, n), "float32")],
        [tensor_type((m, n), "float32")],
    )
    prim.generic(
        "ppr",
        [m, n, k],
        [(prim.inputs[0], lambda i, j, r: (i, r)), (prim.inputs[1], lambda i, j, r: (r, j))],
        [(prim.outputs[0], lambda i, j, r: (i, j))],
        lambda s, acc, a, b: acc + a * b,
        init=0.0,
    )
    return ModuleOp([lower_prim(prim.finish(), vector_unit_of(Target("c")))])


def test_the_source_stands_alone_as_strict_c11(compiler: str, tmp_path: Path) -> None:
    """Built by hand into a library, without Landbridge's options, it computes the same."""
    (tmp_path / "m.c").write_text(print_source(matmul(7, 37, 5)))
    library = tmp_path / "m.so"
    command = [compiler, *STRICT, "-fPIC", "-shared", str(tmp_path / "m.c"), "-o", str(library), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((7, 5), np.float32), rng.standard_normal((5, 37), np.float32)
    c = np.zeros((7, 37), np.float32)
    arguments = (ctypes.c_void_p * 3)(*(x.ctypes.data for x in (a, b, c)))
    ctypes.CDLL(str(library)).kernel_matmul(arguments, ctypes.c_int64(0), ctypes.c_int64(1000))
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-5)


def test_any_name_is_a_kernels_name() -> None:
    """C keywords, functions of the C library, and names that differ in what C does not allow."""
    names = ["double", "exp", "main", "a.b", "a-b", "1", "é"]
    function = """func.func @"{}"(%m: memref<1xi32>, %b: index, %e: index) {{
      %c = arith.constant 0 : index
      %v = arith.constant {} : i32
      memref.store %v, %m[%c] : memref<1xi32>
      func.return
    }}"""
    text = "\n".join(function.format(name, i) for i, name in enumerate(names))
    image = load_image(generate(parse(text), Target("c")).image)
    for i, name in enumerate(names):
        out = np.full(1, -1, np.int32)
        call(image, name, out)
        assert out[0] == i
    assert not any(symbol.startswith("kernel_") for symbol in image.image.symbols)


def test_recursion_is_refused() -> None:
    text = """
      func.func private @p() { func.call @p() : () -> () func.return }
      func.func @f(%b: index, %e: index) { func.call @p() : () -> () func.return }
    """
    with pytest.raises(CodegenError, match=r"'p' calls itself through .*; recursion is not compiled"):
        print_source(parse(text))


@pytest.mark.parametrize(
    ("value", "element", "text"),
    [
        (1.5, "f32", "0x1.8000000000000p+0f"),
        (0.1, "f32", "0x1.99999a0000000p-4f"),
        (-0.0, "f64", "(-0x0.0p+0)"),
        (float("-inf"), "f32", "(-(float)INFINITY)"),
        (float("nan"), "f64", "((double)NAN)"),
        (1.0, "f16", "0x3C00"),
        (1.0, "bf16", "0x3F80"),
        (-1, "i8", "255"),
        (-1, "i64", "18446744073709551615ull"),
        (-(1 << 63), "index", "(-9223372036854775807LL - 1)"),
        (True, "i1", "1"),
    ],
)
def test_literals_are_exact(value: float, element: str, text: str) -> None:
    assert literal(value, element) == text


def test_kinds() -> None:
    assert CType("f32", 16).text == "v16f32" and CType("f32", 16).is_native
    assert not CType("f32", 3).is_native and CType("index").text == "lb_index"
    with pytest.raises(CodegenError, match="type i7 has no C form"):
        print_source(parse("func.func @f(%x: memref<4xi7>, %b: index, %e: index) { func.return }"))
