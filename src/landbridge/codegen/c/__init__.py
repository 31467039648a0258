"""The code generator of target kind ``c``: it prints lowered functions as portable C11 for the system's compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from landbridge.executable.parts import ModuleImage

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from landbridge.executable.device_image import LaunchSequence
    from landbridge.targets.target import Target


class CGenerator:
    """Compiles the functions of a module and links them with the runtime into one image for a target.

    Public functions become kernels of ``landbridge.executable.abi`` under their names; private ones are inlined.
    Raises CodegenError for a function that has no C form, and when there is no compiler, or one for an instruction set
    that cannot be linked.
    """

    def __call__(self, module: ModuleOp, target: Target) -> ModuleImage:
        from landbridge.codegen.c.image import generate_image

        return ModuleImage(target.to_json(), generate_image(module, target))

    def check(self, target: Target) -> None:
        """Raises CodegenError unless there is a compiler for ``target`` and its objects can be linked into images."""
        from landbridge.codegen.c.compile import compiler_for

        compiler_for(target)


generate = CGenerator()


def print_source(module: ModuleOp) -> str:
    """Returns the functions of ``module`` as one C11 file that only needs the C library; raises CodegenError.

    Kernel ``name`` is ``void kernel_name(void **args, int64_t begin, int64_t end)``. With ``-DLB_PORTABLE`` no
    extension of a compiler is used.
    """
    from landbridge.codegen.c.image import source_of

    return source_of(module)


def print_kernels(module: ModuleOp) -> tuple[str, dict[str, LaunchSequence]]:
    """Returns ``print_source`` and the one launch of each kernel, by name, for devices whose compiler takes C.

    The launch is of ``kernel_name`` on all operands, and its grid is ``(tasks, 1, 1)``: a device calls the kernel with
    every task from 0 on, split as it likes. A kernel without tasks is not launched. Operands are flat memory, or tables
    of rows. Raises CodegenError.
    """
    from landbridge.codegen.c.image import kernels_of

    return kernels_of(module)
