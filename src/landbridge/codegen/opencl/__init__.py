"""The code generator of target kind ``opencl``: it prints lowered functions as OpenCL C, which the driver compiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from landbridge.executable.parts import ModuleImage

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from landbridge.targets.target import Target


def generate(module: ModuleOp, target: Target) -> ModuleImage:
    """Returns the functions of ``module``, in the form of ``landbridge.passes.lower.grid``, as OpenCL C source for
    ``target``.

    Raises CodegenError for what has no OpenCL C form.
    """
    from landbridge.codegen.opencl.image import generate_image

    return ModuleImage(target.to_json(), generate_image(module, target))
