"""The code generator of target kind ``llvm``: lowered functions to machine code through llvmlite.

LLVM's helper processes import this package too, so it imports what makes images, and numpy with it, when one is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.func import FuncOp

    from landbridge.executable.parts import ModuleImage
    from landbridge.targets.target import Target


class LlvmGenerator:
    """Compiles the functions of a module and links them with the runtime into one image for a target.

    Public functions become kernels of ``landbridge.executable.abi`` under their names; private ones are inlined
    or called inside. Raises CodegenError for a function that has no LLVM form or an instruction set that
    cannot be linked.
    """

    def __call__(self, module: ModuleOp, target: Target) -> ModuleImage:
        from landbridge.codegen.llvm.image import generate_image
        from landbridge.executable.parts import ModuleImage

        return ModuleImage(target.to_json(), generate_image(module, target))

    def begin(self, target: Target, count: int) -> BegunModule:
        """Starts to compile code of ``target`` while about ``count`` functions are being lowered."""
        return BegunModule(target, count)

    def check(self, target: Target) -> None:
        """Raises CodegenError unless images can be linked for ``target``."""
        from landbridge.codegen.llvm.image import machine_of

        machine_of(target)


class BegunModule:
    """The ModuleImage of a target in progress: see ``landbridge.codegen.registry.BegunCode``."""

    def __init__(self, target: Target, count: int) -> None:
        from landbridge.codegen.llvm.image import BegunImage

        self._target, self._image = target, BegunImage(target, count)

    def add(self, function: FuncOp) -> None:
        """Starts to compile ``function``; raises CodegenError, as ``finish`` does again."""
        self._image.add(function)

    def finish(self, module: ModuleOp) -> ModuleImage:
        """Returns the code of all functions of ``module``; raises as ``LlvmGenerator`` does."""
        from landbridge.executable.parts import ModuleImage

        return ModuleImage(self._target.to_json(), self._image.finish(module))

    def close(self) -> None:
        """Stops all work on it."""
        self._image.close()


generate = LlvmGenerator()
