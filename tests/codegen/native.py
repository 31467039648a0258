"""Compiling MLIR text and calling it on numpy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, math, memref, scf, vector
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from landbridge.codegen.registry import codegen_for
from landbridge.executable.abi import STORAGE_ALIGNMENT, WORKSPACE_BYTES
from landbridge.ir.dialect import Landbridge
from landbridge.targets.target import Target
from landbridge.vm.code_image import LoadedImage, load_image

Array = np.ndarray[Any, Any]

#: MLIR element type of each dtype name; an MLIR i1 in memory is a byte.
MLIR = {
    "float32": "f32",
    "float64": "f64",
    "float16": "f16",
    "bfloat16": "bf16",
    "bool": "i1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "i8",
    "uint16": "i16",
    "uint32": "i32",
    "uint64": "i64",
}


@cache
def host() -> Target:
    """The Target of this machine."""
    return Target("llvm")


def parse(text: str) -> ModuleOp:
    """The module of MLIR text over the dialects of the lowered form."""
    context = Context()
    for dialect in (
        builtin.Builtin, func.Func, arith.Arith, math.Math, memref.MemRef, scf.Scf, vector.Vector, Landbridge,
    ):  # fmt: skip
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()


def build(text: str, target: Target) -> LoadedImage:
    """The loaded image of MLIR text, compiled by the generator of ``target``'s kind."""
    return load_image(codegen_for(target.kind)(parse(text), target).image)


def kernel_of(image: LoadedImage, name: str) -> Callable[[Any, int, int], None]:
    """Kernel ``name``, which takes its operands' addresses and tasks, and works in a workspace of its own."""
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(
        image.address(name)
    )
    workspace = np.empty(WORKSPACE_BYTES + STORAGE_ALIGNMENT, np.uint8)
    start = -workspace.ctypes.data % STORAGE_ALIGNMENT

    def run(args: Any, begin: int, end: int) -> None:
        kernel(args, begin, end, workspace.ctypes.data + start)

    return run


def call(image: LoadedImage, name: str, *arrays: Array, begin: int = 0, end: int = 1) -> None:
    """Run tasks ``begin .. end`` of a kernel on the memory of ``arrays``."""
    kernel = kernel_of(image, name)
    kernel((ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays)), begin, end)


def pointwise(name: str, body: str, inputs: Mapping[str, str], output: str, size: int, lanes: int = 0) -> str:
    """A kernel that runs ``body`` over ``size`` elements: it defines ``%r`` from the names of ``inputs``.

    ``{T}`` in the body is the type of the output, and ``{T:x}`` the type of input x, scalar or of ``lanes``.
    """

    def form(element: str) -> str:
        return f"vector<{lanes}x{element}>" if lanes else element

    load, store = ("vector.load", "vector.store") if lanes else ("memref.load", "memref.store")
    args = [f"%m_{i}: memref<{size}x{MLIR[t]}>" for i, t in [*inputs.items(), ("r", output)]]
    lines = []
    for i, t in inputs.items():
        tail = f", {form(MLIR[t])}" if lanes else ""
        lines.append(f"%{i} = {load} %m_{i}[%i] : memref<{size}x{MLIR[t]}>{tail}")
        body = body.replace(f"{{T:{i}}}", form(MLIR[t]))
    lines.append(body.replace("{T}", form(MLIR[output])))
    tail = f", {form(MLIR[output])}" if lanes else ""
    lines.append(f"{store} %r, %m_r[%i] : memref<{size}x{MLIR[output]}>{tail}")
    inner = "\n    ".join(lines)
    return f"""
func.func @{name}({", ".join(args)}, %begin: index, %end: index) {{
  %step = arith.constant {lanes or 1} : index
  scf.for %i = %begin to %end step %step {{
    {inner}
  }}
  func.return
}}"""
