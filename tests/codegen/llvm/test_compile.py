from __future__ import annotations

import pytest

from landbridge.codegen.llvm.compile import compile_ir, optimized
from landbridge.codegen.llvm.image import machine_of
from landbridge.codegen.llvm.isa import REDUCED
from landbridge.codegen.llvm.machine import Machine
from landbridge.errors import CodegenError
from landbridge.targets.target import Target

MACHINE = Machine("x86_64-unknown-linux-gnu", "x86-64-v3", "")


@pytest.mark.parametrize(
    "text",
    [
        "this is no IR",
        "define void @f() { ret i32 0 }",
        "define i32 @f() { %x = add i32 %y, 1 ret i32 %x }",
        "define void @f(i1 %c) { br i1 %c, label %a, label %b\na: %x = add i32 1, 1\n br label %b\n"
        "b: %y = add i32 %x, 1\n ret void }",
    ],
)
def test_bad_ir_is_an_error_and_not_the_end(text: str) -> None:
    with pytest.raises(CodegenError, match="LLVM rejects"):
        compile_ir(text, MACHINE)


def test_an_unknown_triple_is_an_error() -> None:
    with pytest.raises(CodegenError, match="cannot compile"):
        compile_ir("define void @f() { ret void }", Machine("nocpu-none-none", "generic", ""))


def test_features_reach_the_code() -> None:
    text = (
        "declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)\n"
        "define <8 x float> @f(<8 x float> %x) { %y = call <8 x float> @llvm.fma.v8f32(<8 x float> %x, <8 x float> %x, "
        "<8 x float> %x) ret <8 x float> %y }"
    )
    # Without the instruction it is a call of the C library's function.
    assert b"fmaf" not in compile_ir(text, MACHINE)
    assert b"fmaf" in compile_ir(text, Machine(MACHINE.triple, MACHINE.cpu, "-fma"))


_KERNEL = (
    "define internal void @body(ptr %p) noinline {{ %x = load <8 x float>, ptr %p, align 4\n {sum}"
    " store <8 x float> %y, ptr %p, align 4\n ret void }}\n"
    "define void @kernel(ptr %p) {{ call void @body(ptr %p)\n ret void }}\n"
)


def test_functions_that_a_kernel_calls_are_inlined_in_vector_code_too() -> None:
    called = (
        "define internal <8 x float> @twice(<8 x float> %x) { %y = fadd <8 x float> %x, %x\n ret <8 x float> %y }\n"
    )
    kernel = _KERNEL.format(sum="%y = call <8 x float> @twice(<8 x float> %x)\n")
    assert "@twice" not in str(optimized(called + kernel, MACHINE, vectorize=False))


def test_vector_code_is_simplified() -> None:
    kernel = _KERNEL.format(sum="%n = fneg <8 x float> %x\n %z = fneg <8 x float> %n\n %y = fadd <8 x float> %x, %z\n")
    assert "fneg" not in str(optimized(kernel, MACHINE, vectorize=False))


def test_only_what_has_a_table_of_relocations_can_be_linked() -> None:
    with pytest.raises(
        CodegenError,
        match=r"code for powerpc64le cannot be linked .* only that for x86_64, aarch64, armv7, riscv64; .* as C11",
    ):
        machine_of(Target({"kind": "llvm", "mtriple": "powerpc64le-unknown-linux-gnu", "mcpu": "generic"}))


@pytest.mark.parametrize(
    "triple", ["aarch64-apple-darwin", "x86_64-pc-windows-msvc", "aarch64-linux-android", "x86_64-linux-musl"]
)
def test_code_is_made_for_linux_with_glibc(triple: str) -> None:
    isa = triple.partition("-")[0]
    with pytest.raises(
        CodegenError, match=f"for Linux with glibc alone, and -mtriple={triple} .* legal: -mtriple={isa}-linux-gnu"
    ):
        machine_of(Target({"kind": "llvm", "mtriple": triple, "mcpu": "generic"}))


@pytest.mark.parametrize("triple", ["aarch64-linux-gnu_ilp32", "x86_64-linux-gnux32"])
def test_code_has_pointers_of_64_bits(triple: str) -> None:
    isa = triple.partition("-")[0]
    with pytest.raises(CodegenError, match=f"{triple} names shorter ones; legal: -mtriple={isa}-linux-gnu"):
        machine_of(Target({"kind": "llvm", "mtriple": triple, "mcpu": "generic"}))


@pytest.mark.parametrize("triple", ["aarch64", "aarch64-linux-gnu", "arm64-unknown-linux-gnu", "aarch64-none-elf"])
def test_a_triple_is_known_by_its_instruction_set(triple: str) -> None:
    target = Target({"kind": "llvm", "mtriple": triple, "mcpu": "cortex-a72"})
    assert machine_of(target) == Machine("aarch64-unknown-linux-gnu", "cortex-a72", "")
    assert (target.vector_bits, target.vector_registers) == (128, 32)


#: One counter, and an address a stride of which has to be multiplied unless strength reduction makes it a pointer.
_STRIDED = """
define float @f(ptr %p, i64 %n, i64 %s) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %more, %loop ]
  %at = mul nsw i64 %i, %s
  %where = getelementptr float, ptr %p, i64 %at
  %x = load float, ptr %where, align 4
  %more = fadd float %sum, %x
  %next = add nsw i64 %i, 1
  %last = icmp eq i64 %next, %n
  br i1 %last, label %done, label %loop
done:
  ret float %more
}
"""


def test_strength_is_reduced_where_the_module_says_so() -> None:
    plain, reduced = (compile_ir(_STRIDED + more, MACHINE, vectorize=False) for more in ("", REDUCED))
    assert plain != reduced
    # Each sets LLVM's switch for itself, whatever came before.
    assert compile_ir(_STRIDED, MACHINE, vectorize=False) == plain
    assert compile_ir(_STRIDED + REDUCED, MACHINE, vectorize=False) == reduced


def test_the_switch_of_the_process_is_as_it_was_after_an_error_too() -> None:
    reduced = compile_ir(_STRIDED + REDUCED, MACHINE, vectorize=False)
    with pytest.raises(CodegenError):
        compile_ir("this is no IR", MACHINE, vectorize=False)
    assert compile_ir(_STRIDED + REDUCED, MACHINE, vectorize=False) == reduced
