"""Generates the images of targets by their code generators, and checks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp

from landbridge.codegen.registry import BegunCode, EarlyCodegen, codegen_for
from landbridge.errors import CodegenError
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.parts import ModuleImage
from landbridge.ir.finite import replace_infinities
from landbridge.ir.kernel_attributes import target_number
from landbridge.targets import Target
from landbridge.targets.arithmetic import arithmetic_of

#: Calls of a graph to a function that is left when passes have merged PrimFuncs that are equal, and fused calls.
_FUSED = 4


class Generation:
    """The images of a module's targets; code generators that can start before all functions are lowered.

    ``early``: ``begin`` and ``add`` do so. Its owner calls ``close`` in any case.
    """

    def __init__(self, early: bool) -> None:
        self._early = early
        self._begun: dict[int, BegunCode] = {}
        self._finite: dict[int, bool] = {}

    def begin(self, targets: Sequence[Target], count: int) -> None:
        """Prepares for the PrimFuncs of ``count`` calls for ``targets``, and starts work that does not depend on them,
        while the passes run.
        """
        if not self._early or self._begun:  # of the same targets: threads of a second one would never end
            return
        for number, target in enumerate(targets):
            generator = codegen_for(target.kind)
            self._finite[number] = arithmetic_of(target).infinities is False
            if isinstance(generator, EarlyCodegen):
                with suppress(CodegenError):
                    self._begun[number] = generator.begin(target, count // len(targets) // _FUSED)

    def add(self, function: FuncOp) -> None:
        """Starts to compile ``function``, which must not change. ``images`` raises its errors."""
        begun = self._begun.get(target_number(function))
        if begun is not None and self._finite[target_number(function)]:
            replace_infinities(function)
        if begun is not None:
            with suppress(CodegenError):
                begun.add(function)

    def images(self, targets: Sequence[Target], lowered: ModuleOp) -> tuple[ModuleImage, ...]:
        """Returns one image for each of ``targets``, holding the functions of ``lowered`` that are placed on it.

        Raises CodegenError as ``generate`` does.
        """
        if len(targets) == 1:
            return (generate(lowered, targets[0], self._begun.get(0)),)
        parts: list[list[FuncOp]] = [[] for _ in targets]
        for op in list(lowered.body.block.ops):
            if isinstance(op, FuncOp):
                lowered.body.block.detach_op(op)
                parts[target_number(op)].append(op)
        by_target = enumerate(zip(parts, targets, strict=True))
        return tuple(generate(ModuleOp(list(part)), target, self._begun.get(i)) for i, (part, target) in by_target)

    def close(self) -> None:
        """Stops all work of it."""
        for begun in self._begun.values():
            begun.close()


def generate(module: ModuleOp, target: Target, begun: BegunCode | None = None) -> ModuleImage:
    """Returns the code of the lowered functions of ``module`` for ``target``, for which the generator has ``begun``
    already.

    Raises CodegenError, naming the code generator: for a format that the target's device does not load, if the Target
    declares its formats, for a function without launches, and for one with another number of operands.
    """
    operands = {
        f.sym_name.data: sum(isinstance(ty, MemRefType) for ty in f.function_type.inputs)
        for f in module.body.block.ops
        if isinstance(f, FuncOp)
    }
    if begun is None and arithmetic_of(target).infinities is False:
        replace_infinities(module)
    image = codegen_for(target.kind)(module, target) if begun is None else begun.finish(module)
    who = f"the code generator of target kind {target.kind!r}"
    if not isinstance(image, ModuleImage):
        raise CodegenError(f"{who} returned {type(image).__name__}; it must return a ModuleImage")
    if isinstance(image.image, DeviceImage):
        _check(image.image, operands, target, who)
    return image


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
