"""The code generator of target kind ``wasm``: lowered functions to one WebAssembly module, through llvmlite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from landbridge.executable.parts import ModuleImage

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from landbridge.targets.target import Target


def generate(module: ModuleOp, target: Target) -> ModuleImage:
    """Returns the functions of ``module``, which are of vectors, as one WebAssembly module for ``target``.

    Raises CodegenError for what has no LLVM form, and for kernels that need a function of a C library.
    """
    from landbridge.codegen.wasm.image import generate_image

    return ModuleImage(target.to_json(), generate_image(module, target))
