"""The code generator of target kind ``llvm``: lowered functions to x86-64 machine code through llvmlite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from landbridge.executable.executable import ModuleImage

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from landbridge.target.target import Target


def generate(module: ModuleOp, target: Target) -> ModuleImage:
    """Compile the functions of ``module`` and the runtime into one image for ``target``.

    Public functions become kernels of ``landbridge.executable.abi`` under their names; private ones are inlined
    or called inside. Raises CodegenError for a function that has no LLVM form or a CPU that is not x86-64.
    """
    from landbridge.codegen.llvm.image import generate_image

    return ModuleImage(target.to_json(), generate_image(module, target))
