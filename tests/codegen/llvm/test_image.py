from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects import func

from landbridge.codegen.functions import call_groups
from landbridge.codegen.llvm import generate
from landbridge.codegen.llvm.compile import compile_ir
from landbridge.codegen.llvm.image import machine_of
from landbridge.codegen.llvm.isa import isa_of, required_flags
from landbridge.codegen.llvm.print_ir import print_functions
from landbridge.errors import CodegenError
from landbridge.executable import abi
from landbridge.executable.packed import PACKED_SYMBOL
from landbridge.instruction_sets.isa import Isa
from landbridge.targets.target import Target
from landbridge.vm.code_image import load_image

from ..native import call, host, parse

ADD = """
func.func @add(%a: memref<64xf32>, %b: memref<64xf32>, %c: memref<64xf32>, %begin: index, %end: index) {
  %c1 = arith.constant 1 : index
  scf.for %i = %begin to %end step %c1 {
    %x = memref.load %a[%i] : memref<64xf32>
    %y = memref.load %b[%i] : memref<64xf32>
    %z = arith.addf %x, %y : f32
    memref.store %z, %c[%i] : memref<64xf32>
  }
  func.return
}"""


def micro_kernel(rows: int, columns: int) -> str:
    """Lines of a block of ``rows`` x ``columns`` vectors of 16, the sum over k of outer products."""
    cells = [(m, n) for m in range(rows) for n in range(columns)]
    vector, width = "vector<16xf32>", columns * 16
    a, b, c = f"memref<64x{rows}xf32>", f"memref<64x{width}xf32>", f"memref<{rows}x{width}xf32>"
    lines = [f"func.func @block(%a: {a}, %b: {b}, %c: {c}, %begin: index, %end: index) {{"]
    lines += [f"%i{i} = arith.constant {i} : index" for i in range(max(rows, 65))]
    lines += [f"%w{n} = arith.constant {16 * n} : index" for n in range(columns)]
    lines.append(f"%zero = arith.constant dense<0.0> : {vector}")
    names = ", ".join(f"%r{m}_{n}" for m, n in cells)
    starts = ", ".join(f"%s{m}_{n} = %zero" for m, n in cells)
    types = ", ".join([vector] * len(cells))
    lines.append(f"{names} = scf.for %k = %i0 to %i64 step %i1 iter_args({starts}) -> ({types}) {{")
    lines += [f"%b{n} = vector.load %b[%k, %w{n}] : {b}, {vector}" for n in range(columns)]
    for m in range(rows):
        lines.append(f"%a{m} = memref.load %a[%k, %i{m}] : {a}")
        lines.append(f"%v{m} = vector.broadcast %a{m} : f32 to {vector}")
        lines += [f"%t{m}_{n} = vector.fma %v{m}, %b{n}, %s{m}_{n} : {vector}" for n in range(columns)]
    lines.append(f"scf.yield {', '.join(f'%t{m}_{n}' for m, n in cells)} : {types}")
    lines.append("}")
    lines += [f"vector.store %r{m}_{n}, %c[%i{m}, %w{n}] : {c}, {vector}" for m, n in cells]
    return "\n".join([*lines, "func.return", "}"])


def test_an_image_has_the_kernels_the_runtime_and_what_it_needs() -> None:
    made = generate(parse(ADD), host())
    assert set(made.image.symbols) == {
        "add",
        abi.RUN_SYMBOL,
        abi.POOL_CREATE_SYMBOL,
        abi.POOL_DESTROY_SYMBOL,
        PACKED_SYMBOL,
    }
    assert made.image.isa == "x86_64"
    assert Target.from_json(made.target) == host()
    assert set(made.image.imports) <= {
        "aligned_alloc",
        "dlsym",
        "free",
        "memset",
        "pthread_create",
        "pthread_join",
        "snprintf",
        "syscall",
    }


@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v3"])
def test_portable_images_need_little_and_run_here(cpu: str) -> None:
    image = generate(parse(ADD), Target({"kind": "llvm", "mcpu": cpu})).image
    assert "avx512f" not in image.features and (cpu != "x86-64" or not image.features)
    a, b, c = (np.linspace(i, 9, 64).astype(np.float32) for i in range(3))
    call(load_image(image), "add", a, b, c, end=64)
    np.testing.assert_array_equal(c, a + b)


def test_functions_that_call_each_other_are_compiled_together() -> None:
    module = parse("""
      func.func private @p() { func.return }
      func.func private @unused() { func.return }
      func.func @f(%b: index, %e: index) { func.call @p() : () -> () func.return }
      func.func @g(%b: index, %e: index) { func.call @p() : () -> () func.return }
      func.func @h(%b: index, %e: index) { func.return }
    """)
    names = {frozenset(f.sym_name.data for f in group) for group in call_groups(module)}
    assert names == {frozenset({"p", "f", "g"}), frozenset({"h"})}


def test_equal_names_are_refused() -> None:
    with pytest.raises(CodegenError, match="two functions are called 'add'"):
        generate(parse(ADD + ADD), host())


@pytest.mark.parametrize(("rows", "columns"), [(14, 2), (8, 3), (6, 4)])
def test_micro_kernels_stay_in_registers(rows: int, columns: int, tmp_path: Path) -> None:
    assembly = disassembled(rows, columns, tmp_path)
    products = sum("vfmadd" in line for line in assembly)
    assert products and products % (rows * columns) == 0
    assert not [line for line in assembly if "zmm" in line and "rsp" in line]


def test_vectors_on_the_stack_lie_in_one_cache_line_each(tmp_path: Path) -> None:
    retained = [line for line in disassembled(8, 5, tmp_path) if "zmm" in line and "(%rsp)" in line]
    assert any("vmovaps" in line for line in retained)  # which stops at an address that is no multiple
    assert not any("vmovup" in line for line in retained)


def disassembled(rows: int, columns: int, folder: Path) -> list[str]:
    """The instructions of a micro-kernel on 32 registers of 512 bits."""
    (function,) = parse(micro_kernel(rows, columns)).body.block.ops
    assert isinstance(function, func.FuncOp)
    wide = Target({"kind": "llvm", "mcpu": "x86-64-v4", "vector-bits": 512})
    text = print_functions([function], isa_of("x86_64", 512, required_flags("x86_64", "x86-64-v4", ())))
    code = folder / "kernel.o"
    code.write_bytes(compile_ir(text, machine_of(wide), vectorize=False))
    listing = subprocess.run(["objdump", "-d", code], capture_output=True, check=True, text=True).stdout
    return listing.splitlines()


def test_micro_kernels_are_right() -> None:
    image = load_image(generate(parse(micro_kernel(6, 2)), host()).image)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((64, 6)).astype(np.float32), rng.standard_normal((64, 32)).astype(np.float32)
    c = np.zeros((6, 32), np.float32)
    call(image, "block", a, b, c)
    np.testing.assert_allclose(c, a.T @ b, rtol=1e-4, atol=1e-4)


def test_fast_math_passes_on_only_what_keeps_nan_and_infinity() -> None:
    text = ADD.replace("arith.addf %x, %y :", "arith.addf %x, %y fastmath<fast> :")
    (function,) = parse(text).body.block.ops
    assert isinstance(function, func.FuncOp)
    ir = print_functions([function], Isa(256))
    assert "fadd reassoc nsz arcp contract float" in ir
    assert "nnan" not in ir and "ninf" not in ir


def test_operands_are_noalias_unless_in_place() -> None:
    (plain,) = parse(ADD).body.block.ops
    (shared,) = parse(ADD.replace("%end: index) {", "%end: index) attributes {lb.in_place} {")).body.block.ops
    assert isinstance(plain, func.FuncOp) and isinstance(shared, func.FuncOp)
    assert print_functions([plain], Isa(256)).count("noalias") == 3
    assert "noalias" not in print_functions([shared], Isa(256))


@pytest.mark.parametrize(("trips", "unrolled"), [(1, 0), (3, 1), (1000, 0)])
def test_short_loops_of_known_length_are_unrolled(trips: int, unrolled: int) -> None:
    text = ADD.replace("%begin to %end", "%c0 to %n").replace(
        "%c1 = arith.constant 1 : index",
        f"%c0 = arith.constant 0 : index %c1 = arith.constant 1 : index %n = arith.constant {trips} : index",
    )
    (function,) = parse(text).body.block.ops
    assert isinstance(function, func.FuncOp)
    assert print_functions([function], Isa(256)).count(", !llvm.loop ") == unrolled


def test_equal_address_arithmetic_is_emitted_once_a_region() -> None:
    (function,) = parse("""
      func.func @f(%a: memref<8x8xf32>, %i: index, %j: index) {
        %c1 = arith.constant 1 : index
        %k = arith.addi %i, %c1 : index
        %x = memref.load %a[%i, %j] : memref<8x8xf32>
        memref.store %x, %a[%k, %j] : memref<8x8xf32>
        memref.store %x, %a[%i, %i] : memref<8x8xf32>
        func.return
      }
    """).body.block.ops
    assert isinstance(function, func.FuncOp)
    body = print_functions([function], Isa(256)).split("define void")[0]
    assert body.count("mul nsw i64") == 1
    assert body.count("i64 8\n") == 1, "the constant part of an index becomes a displacement"
