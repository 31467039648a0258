"""Small hand-written Executables: kernels as LLVM IR, instructions as the compiler would emit them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

from landbridge.codegen.cpu_runtime.runtime_ir import runtime_ir
from landbridge.codegen.link import link_objects
from landbridge.codegen.llvm.compile import compile_ir
from landbridge.codegen.llvm.machine import Machine
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import (
    AllocStorage,
    AllocTensor,
    Call,
    If,
    Instruction,
    LoadConstant,
    View,
)
from landbridge.executable.parts import CodeImage, Function, ModuleImage, StorageReport, TensorSpec, VDevice
from landbridge.targets import Target

_HEADER = """
  %a_at = getelementptr ptr, ptr %args, i64 0
  %b_at = getelementptr ptr, ptr %args, i64 1
  %c_at = getelementptr ptr, ptr %args, i64 2
  %a = load ptr, ptr %a_at
  %b = load ptr, ptr %b_at
  %any = icmp slt i64 %begin, %end
  br i1 %any, label %loop, label %done
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %x_at = getelementptr float, ptr %a, i64 %i
  %x = load float, ptr %x_at
"""
_FOOTER = """
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


def _kernel(name: str, body: str, third: bool = False) -> str:
    head = _HEADER.replace("%any", "%c = load ptr, ptr %c_at\n  %any", 1) if third else _HEADER
    return f"define void @{name}(ptr %args, i64 %begin, i64 %end) {{\nentry:{head}{body}{_FOOTER}"


_STORE_B = "\n  %y_at = getelementptr float, ptr %b, i64 %i\n  store float %y, ptr %y_at"
_KERNELS = "\n".join(
    [
        "declare float @expm1f(float)",
        _kernel(
            "add",
            """
  %w_at = getelementptr float, ptr %b, i64 %i
  %w = load float, ptr %w_at
  %y = fadd float %x, %w
  %y_at = getelementptr float, ptr %c, i64 %i
  store float %y, ptr %y_at""",
            third=True,
        ),
        _kernel("double", "  %y = fadd float %x, %x" + _STORE_B),
        _kernel("expm1", "  %y = call float @expm1f(float %x)" + _STORE_B),
        _kernel("copy", "  %y = fadd float %x, -0.0" + _STORE_B),
        _kernel(
            "is_positive",
            """
  %p = fcmp ogt float %x, 0.0
  %y = zext i1 %p to i8
  %y_at = getelementptr i8, ptr %b, i64 %i
  store i8 %y, ptr %y_at""",
        ),
    ]
)


@cache
def code_image() -> CodeImage:
    """The kernels ``add``, ``double``, ``expm1``, ``copy`` and ``is_positive``, one element a task."""
    machine = Machine("x86_64-unknown-linux-gnu", "x86-64", "")
    linked = link_objects([compile_ir(runtime_ir("x86_64"), machine), compile_ir(_KERNELS, machine)])
    return CodeImage("x86_64", linked.code, linked.symbols, linked.imports, linked.relocations, ("sse2",))


def executable(
    inputs: Mapping[str, tuple[int, ...]],
    outputs: Mapping[str, tuple[int, ...]],
    instructions: tuple[Instruction, ...],
    constants: Mapping[str, np.ndarray] | None = None,
    image: CodeImage | None = None,
) -> Executable:
    """An Executable of one function on one vdevice, every tensor float32."""

    def specs(shapes: Mapping[str, tuple[int, ...]]) -> tuple[TensorSpec, ...]:
        return tuple(TensorSpec(name, shape, "float32") for name, shape in shapes.items())

    main = Function("main", specs(inputs), specs(outputs), instructions)
    return Executable(
        functions={"main": main},
        vdevices=(VDevice("main", 0),),
        modules=(ModuleImage(Target("llvm").to_json(), image or code_image()),),
        constants=constants or {},
        memory=(StorageReport("main", "global", 256, 256, True),),
        metadata={"model": "tiny"},
    )


def add_weights(n: int = 64, tasks: int | None = None) -> Executable:
    """``y = x + w`` with ``w = 0, 1, 2 ...``."""
    weights = np.arange(n, dtype=np.float32)
    program = (LoadConstant(2, "w", 0), Call(0, "add", (0, 2, 1), tasks or n))
    return executable({"x": (n,)}, {"y": (n,)}, program, {"w": weights})


def two_stages(n: int = 64) -> Executable:
    """``y = 2 (a + b)`` through an arena, whose last call reads and writes views."""
    half = n // 2
    program = (
        AllocStorage(3, 4 * n + 64, 0, 64),
        AllocTensor(4, 3, 64, (n,), "float32", "sum"),
        Call(0, "add", (0, 1, 4), n),
        View(5, 4, 0, (half,), "float32"),
        View(6, 2, 0, (half,), "float32"),
        Call(0, "double", (5, 6), half),
        View(7, 4, 4 * half, (half,), "float32"),
        View(8, 2, 4 * half, (half,), "float32"),
        Call(0, "double", (7, 8), half),
    )
    return executable({"a": (n,), "b": (n,)}, {"y": (n,)}, program)


def moves_data(n: int = 64) -> Executable:
    """``y = x``, by a kernel that only moves data."""
    return executable({"x": (n,)}, {"y": (n,)}, (Call(0, "copy", (0, 1), n, "reorder_x", 4 * n),))


def branches(n: int = 8) -> Executable:
    """``y = 2 x`` where ``c > 0``, else ``x``, then ``z = 2 y``; the condition is computed from the input."""
    program = (
        AllocStorage(4, 64, 0, 64),
        AllocTensor(5, 4, 0, (1,), "bool"),
        Call(0, "is_positive", (1, 5), 1),
        If(5, (Call(0, "double", (0, 2), n),), (Call(0, "copy", (0, 2), n),)),
        Call(0, "double", (2, 3), n),
    )
    return executable({"x": (n,), "c": (1,)}, {"y": (n,), "z": (n,)}, program)


def recurrent(n: int = 4) -> Executable:
    """``h_out = h_in + x``, ``y = 2 h_out``."""
    program = (Call(0, "add", (0, 1, 2), n), Call(0, "double", (2, 3), n))
    return executable({"x": (n,), "h_in": (n,)}, {"h_out": (n,), "y": (n,)}, program)
