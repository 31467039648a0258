"""One PrimFunc, lowered, compiled and run: what the tests of lowering compare with numpy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from landbridge.codegen.registry import codegen_for
from landbridge.dtypes import dtype_name
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.types import tensor_type
from landbridge.passes.lower import lower_prim, machine_of
from landbridge.target import Target
from landbridge.vm.code_image import load_image

Array = np.ndarray[Any, Any]
GUARD = 64


def run_prim(
    build: Callable[[PrimBuilder], None],
    inputs: Sequence[Array],
    outputs: Sequence[tuple[tuple[int, ...], str]],
    target: str = "llvm",
) -> list[Array]:
    """The outputs of a PrimFunc; its tasks run one by one, last first. Bytes around each output must stay."""
    resolved = Target(target)
    prim = PrimBuilder(
        "kernel",
        [tensor_type(a.shape, dtype_name(a.dtype)) for a in inputs],
        [tensor_type(shape, dtype) for shape, dtype in outputs],
    )
    build(prim)
    lowered = lower_prim(prim.finish(), machine_of(resolved))
    lowered.verify()
    tasks = lowered.attributes["lb.tasks"].value.data  # type: ignore[attr-defined]
    image = load_image(codegen_for(resolved.kind)(ModuleOp([lowered]), resolved).image)
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(image.address("kernel"))
    sources = [np.ascontiguousarray(a) for a in inputs]
    held, results = [], []
    for shape, dtype in outputs:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        raw = np.full(size + 2 * GUARD, 0xA5, np.uint8)
        held.append(raw)
        results.append(raw[GUARD : GUARD + size].view(dtype).reshape(shape))
    arguments = (ctypes.c_void_p * (len(sources) + len(results)))(*(a.ctypes.data for a in [*sources, *results]))
    for task in reversed(range(tasks)):
        kernel(ctypes.addressof(arguments), task, task + 1)
    for raw in held:
        assert (raw[:GUARD] == 0xA5).all() and (raw[-GUARD:] == 0xA5).all(), "a kernel wrote outside its output"
    return results
