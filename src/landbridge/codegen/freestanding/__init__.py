"""The code generator of target kind ``freestanding``: C11 that needs no C library, for `landbridge export --c`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from landbridge.executable.parts import ModuleImage

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from landbridge.targets.target import Target


def generate(module: ModuleOp, target: Target) -> ModuleImage:
    """Returns the kernels of ``module`` as C; raises CodegenError for what has no such form, as f64."""
    from landbridge.codegen.freestanding.image import generate_image

    return ModuleImage(target.to_json(), generate_image(module))
