"""Makes a device image of OpenCL C source of a module of lowered functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import Float64Type, MemRefType, ModuleOp

from landbridge.codegen.c.print_c import text_of as c_text_of
from landbridge.codegen.functions import errors_of
from landbridge.codegen.grid import GridFunction, GridKernel, grid_functions
from landbridge.codegen.opencl.arith import EXPANDED
from landbridge.codegen.opencl.print_kernel import print_kernel, text_of
from landbridge.codegen.opencl.unit import OpenCLUnit
from landbridge.executable.device_image import DeviceImage
from landbridge.targets.grid import grid_limits, most_binding_bytes

if TYPE_CHECKING:
    from landbridge.targets.target import Target

_FP64 = "cl_khr_fp64"


def generate_image(module: ModuleOp, target: Target) -> DeviceImage:
    """Returns the kernels of all functions of ``module``; raises CodegenError."""
    functions = grid_functions(module)
    limits = grid_limits(target)
    doubles = any(_uses_doubles(f) for f in functions)
    version = target.options.get("opencl-c", 120)
    assert isinstance(version, int)
    return DeviceImage(
        format="opencl-c",
        # A CPU addresses with 64 bits, and widening an index costs time; a GPU computes faster on 32.
        code=print_source(functions, limits is not None and limits.core_vectors, most_binding_bytes(target)).encode(),
        functions={f.name: f.sequence for f in functions},
        options=f"-cl-std=CL{version // 100}.{version // 10 % 10}",
        requires=(_FP64,) if doubles else (),
    )


def print_source(functions: list[GridFunction], wide: bool = False, most_bytes: int | None = None) -> str:
    """Returns one file of OpenCL C: every kernel of ``functions``, and what they share. Indices have 64 bits when
    ``wide``, or when 32 are not enough for all of them, where no buffer of a run has more than ``most_bytes``.
    """
    unit = OpenCLUnit()
    kernels = [k for f in functions for k in f.kernels]
    texts = [_named(f, k, unit) for f in functions for k in f.kernels]
    wide = wide or any(k.is_large(most_bytes) for k in kernels)
    index = ("long", "ulong") if wide else ("int", "uint")
    head = [f"#define LB_INDEX {index[0]}", f"#define LB_UNSIGNED_INDEX {index[1]}"]
    if any(_uses_doubles(f) for f in functions):
        head += [f"#pragma OPENCL EXTENSION {_FP64} : enable", "#define LB_F64 1"]
    head += [f"#define {name}f lb_{name}_float" for name in sorted({*EXPANDED.values()})]
    return "\n".join(
        [
            *head,
            text_of("prelude.cl"),
            c_text_of("landbridge.codegen.c", "common.h"),
            *unit.definitions.values(),
            "",
            *texts,
        ]
    )


def _named(function: GridFunction, kernel: GridKernel, unit: OpenCLUnit) -> str:
    with errors_of(function.name):
        return print_kernel(unit, kernel)


def _uses_doubles(function: GridFunction) -> bool:
    for kernel in function.kernels:
        for op in kernel.body.walk():
            for value in (*op.operands, *op.results):
                ty = value.type
                element = ty if not isinstance(ty, MemRefType) else ty.element_type
                if isinstance(getattr(element, "element_type", element), Float64Type):
                    return True
    return False
