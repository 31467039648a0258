"""Makes the image of a module: one C file of kernels, and the bytes of workspace that each takes."""

from __future__ import annotations

from functools import partial

from xdsl.dialects.builtin import ModuleOp

from landbridge.analysis.kernel_workspace import in_workspace, temporary_bytes
from landbridge.codegen.c.print_c import print_functions
from landbridge.codegen.freestanding.lanes import LaneEmitter
from landbridge.codegen.freestanding.math import PRINTERS
from landbridge.codegen.freestanding.unit import STACK_BYTES, FreestandingUnit
from landbridge.codegen.functions import c_names, call_groups, is_kernel, operand_count
from landbridge.executable.device_image import DeviceImage, Launch, LaunchSequence
from landbridge.executable.freestanding_form import FORMAT
from landbridge.ir.kernel_attributes import task_count


def generate_image(module: ModuleOp) -> DeviceImage:
    """Returns the kernels of ``module`` as C.

    A kernel is ``void name(void **args, int64_t begin, int64_t end, void *workspace)``. Its launch has the operands,
    and one scratch buffer, its workspace, where its temporaries are too large for the stack of a microcontroller.
    """
    functions = [f for group in call_groups(module) for f in group]
    names = c_names(functions)
    sequences = {}
    for kernel in filter(is_kernel, functions):
        operands = operand_count(kernel)
        scratch = (temporary_bytes(kernel),) if in_workspace(kernel, STACK_BYTES) else ()
        tasks = task_count(kernel)
        grid = (tasks if isinstance(tasks, int) and tasks > 0 else 1, 1, 1)
        launch = Launch(names[kernel.sym_name.data], tuple(range(operands + len(scratch))), grid, (1, 1, 1))
        sequences[kernel.sym_name.data] = LaunchSequence(operands, scratch, (launch,))
    emitter = partial(LaneEmitter, FreestandingUnit(), PRINTERS)
    text = print_functions(functions, names, workspace=True, emitter=emitter)
    return DeviceImage(FORMAT, text.encode(), sequences)
