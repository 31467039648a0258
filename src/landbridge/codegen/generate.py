"""The image of one target, from its code generator, checked against what was asked for."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp

from landbridge.codegen.registry import codegen_for
from landbridge.errors import CodegenError
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.parts import ModuleImage
from landbridge.targets import Target


def generate(module: ModuleOp, target: Target) -> ModuleImage:
    """The code of the lowered functions of ``module`` for ``target``.

    Raises CodegenError, naming the code generator: for a format that the target's device does not load, where the
    Target says which it does, for a function without launches, and for one of another number of operands.
    """
    operands = {
        f.sym_name.data: sum(isinstance(ty, MemRefType) for ty in f.function_type.inputs)
        for f in module.body.block.ops
        if isinstance(f, FuncOp)
    }
    made = codegen_for(target.kind)(module, target)
    who = f"the code generator of target kind {target.kind!r}"
    if not isinstance(made, ModuleImage):
        raise CodegenError(f"{who} returned {type(made).__name__}; it must return a ModuleImage")
    if isinstance(made.image, DeviceImage):
        _check(made.image, operands, target, who)
    return made


def _check(image: DeviceImage, operands: Mapping[str, int], target: Target, who: str) -> None:
    if target.formats and image.format not in target.formats:
        device = " or ".join(target.device_types) or "its device"
        raise CodegenError(
            f"{who} makes images of format {image.format!r}, and {device} loads "
            f"{', '.join(map(repr, target.formats))}; one of the two must name the other's"
        )
    for name, count in operands.items():
        sequence = image.functions.get(name)
        if sequence is None:
            raise CodegenError(f"{who} made no launches of function {name!r}; functions= must name each of the module")
        if sequence.operands != count:
            raise CodegenError(
                f"{who} launches {name!r} with {sequence.operands} operands, and the program calls it with {count}; "
                "its LaunchSequence must state one for each memref of the function"
            )
