"""Builds the Executable of a planned module, without its code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, ModuleOp, StringAttr

from landbridge.analysis.kernel_workspace import temporary_bytes
from landbridge.emit.instructions import InstructionBuilder
from landbridge.errors import CodegenError
from landbridge.executable.executable import Executable
from landbridge.executable.parts import Function, StorageReport, TensorSpec, VDevice, parameter_constant
from landbridge.ir.main_attributes import aliases, frame_layouts, guards, input_elements, io_names
from landbridge.ir.memory_ops import AllocStorageOp
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import plan_quality
from landbridge.ir.traversal import operations
from landbridge.ir.types import SpaceAttr, VDeviceAttr, dtype_of, element_count, separators_of, shape_of
from landbridge.passes.lower.shared_code import Variant
from landbridge.shapes.strides import span


def emit(module: IRModule, lowered: ModuleOp, variants: Mapping[str, Variant] | None = None) -> Executable:
    """Returns the Executable of a planned ``module``, without code: its modules are empty.

    ``lowered`` has the kernels with their task counts; ``variants`` are those that share code, by name. The
    Executable's vdevices are those of the module, then one for each further scope that instructions name. Raises
    CodegenError for a called PrimFunc that was not lowered, and for a frame of other bytes than its argument.
    """
    kernels = {op.sym_name.data: op for op in operations(lowered.body.block) if isinstance(op, func.FuncOp)}
    main, vdevices = _main(module, kernels, variants or {})
    return Executable(
        functions={"main": main},
        vdevices=vdevices,
        modules=(),
        constants=module.constants | {parameter_constant(name): a for name, a in module.parameters.items()},
        memory=tuple(_reports(module)),
        scratch_bytes=max(map(temporary_bytes, kernels.values()), default=0),
        sources=module.sources,
        files=module.files,
    )


def _main(
    module: IRModule, kernels: Mapping[str, func.FuncOp], variants: Mapping[str, Variant]
) -> tuple[Function, tuple[VDevice, ...]]:
    """Returns ``@main`` with its signature, and the vdevices that its instructions number."""
    main = module.main
    names = io_names(main)
    arguments = main.body.block.args
    frames = frame_layouts(main)
    specs = [
        TensorSpec(name, shape_of(argument.type), dtype_of(argument.type))
        for argument, name in zip(arguments, (*names[0], *names[1]), strict=True)
    ]
    for i, name in enumerate(names[0]):
        if name in frames:
            specs[i] = _frame_spec(specs[i], *frames[name])
    elements = input_elements(main)
    specs = [replace(spec, elements=elements[spec.name]) if spec.name in elements else spec for spec in specs]
    first, end = len(names[0]) - len(module.parameters), len(names[0])  # parameters are the last inputs of @main
    builder = InstructionBuilder(module, kernels, variants)
    for i, argument in enumerate(arguments):
        space = argument.type.memory_space if isinstance(argument.type, MemRefType) else None
        separators = separators_of(argument.type)
        scope = space.scope if isinstance(space, SpaceAttr) else space
        if isinstance(scope, StringAttr) and not first <= i < end:
            number = builder.number_of(VDeviceAttr.of(0, scope.data))
            specs[i] = replace(specs[i], vdevice=number, axis_separators=separators)
    for argument in (*arguments[:first], *arguments[end:], *arguments[first:end]):
        builder.define(argument)
    instructions = builder.block(main.body.block)
    inputs, outputs, parameters = tuple(specs[:first]), tuple(specs[end:]), tuple(specs[first:end])
    function = Function("main", inputs, outputs, instructions, parameters, guards(main), tuple(aliases(main).items()))
    return function, tuple(builder.vdevices)


def _frame_spec(argument: TensorSpec, shape: tuple[int, ...], strides: tuple[int, ...]) -> TensorSpec:
    spec = TensorSpec(argument.name, shape, argument.dtype, strides)
    reached, given = span(shape, strides) if strides else element_count(shape), element_count(argument.shape)
    if reached != given:
        raise CodegenError(
            f"input {spec.name!r} is a frame of shape {shape} and strides {strides or 'that are dense'}, {reached} "
            f"elements, and its argument of @main has {given}; they must be equal"
        )
    return spec


def _reports(module: IRModule) -> Iterator[StorageReport]:
    """Yields the planner's result for each storage."""
    for op in operations(module.main.body.block):
        if isinstance(op, AllocStorageOp):
            device, scope = module.vdevices[op.vdevice.index.data].name, op.vdevice.scope.data
            yield StorageReport(device, scope, op.size, *plan_quality(op))
