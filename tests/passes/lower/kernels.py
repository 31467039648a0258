"""One PrimFunc, lowered, compiled and run: what the tests of lowering compare with numpy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tests.codegen.native import kernel_of
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from landbridge.codegen.registry import codegen_for
from landbridge.dtypes import dtype_name
from landbridge.executable.device_image import DeviceImage
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.types import tensor_type
from landbridge.passes.lower import lowering_for
from landbridge.targets import Target
from landbridge.targets.grid import grid_limits
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
    lowered = lowering_for(resolved)(prim.finish())
    lowered.verify()
    if grid_limits(resolved) is not None:
        return _launched(lowered, resolved, inputs, outputs)
    tasks = lowered.attributes["lb.tasks"].value.data  # type: ignore[attr-defined]
    image = load_image(codegen_for(resolved.kind)(ModuleOp([lowered]), resolved).image)
    kernel = kernel_of(image, "kernel")
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


def _launched(
    lowered: func.FuncOp, target: Target, inputs: Sequence[Array], outputs: Sequence[tuple[tuple[int, ...], str]]
) -> list[Array]:
    from tests.codegen.opencl.launcher import Program  # skips where there is no driver

    image = codegen_for(target.kind)(ModuleOp([lowered]), target).image
    assert isinstance(image, DeviceImage)
    results = [np.zeros(shape, dtype) for shape, dtype in outputs]
    Program(image).on_arrays("kernel", inputs, results)
    return results
