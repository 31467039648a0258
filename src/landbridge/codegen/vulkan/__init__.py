"""The code generator of target kind ``vulkan``: it writes lowered functions as one SPIR-V module of compute shaders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from landbridge.executable.parts import ModuleImage

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from landbridge.targets.target import Target


def generate(module: ModuleOp, target: Target) -> ModuleImage:
    """Returns the functions of ``module``, in the form of ``landbridge.passes.lower.grid``, as SPIR-V 1.5 for Vulkan
    1.2.

    Raises CodegenError for what has no SPIR-V form.
    """
    from landbridge.codegen.vulkan.image import generate_image

    return ModuleImage(target.to_json(), generate_image(module, target))
