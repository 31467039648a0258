"""The code generator of target kind ``llvm``: lowered functions to machine code through llvmlite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from landbridge.executable.parts import ModuleImage

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from landbridge.targets.target import Target


class LlvmGenerator:
    """Compiles the functions of a module and links them with the runtime into one image for a target.

    Public functions become kernels of ``landbridge.executable.abi`` under their names; private ones are inlined
    or called inside. Raises CodegenError for a function that has no LLVM form or an instruction set that
    cannot be linked.
    """

    def __call__(self, module: ModuleOp, target: Target) -> ModuleImage:
        from landbridge.codegen.llvm.image import generate_image

        return ModuleImage(target.to_json(), generate_image(module, target))

    def check(self, target: Target) -> None:
        """Raise CodegenError unless images can be linked for ``target``."""
        from landbridge.codegen.llvm.image import machine_of

        machine_of(target)


generate = LlvmGenerator()
