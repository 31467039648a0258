"""Memory-level IR to the Executable's data: registers, instructions and what the planner reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    i1,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from landbridge.errors import CodegenError
from landbridge.executable.executable import Function, StorageReport, TensorSpec, VDevice
from landbridge.executable.instructions import (
    AllocStorage,
    AllocTensor,
    Call,
    HostCall,
    If,
    Instruction,
    LoadConstant,
    Prepared,
    ToVDevice,
    View,
)
from landbridge.ir.attributes import (
    frame_layouts,
    ints,
    io_names,
    moved_bytes,
    node_name,
    placed_on,
    plan_quality,
    target_number,
    task_count,
    vdevice_stated,
)
from landbridge.ir.graph_ops import CallOp, ConstantOp, HostCallOp, IfOp, ToVDeviceOp, ViewOp, YieldOp
from landbridge.ir.memory_ops import AllocStorageOp, AllocTensorOp, PreparedOp
from landbridge.ir.module import IRModule
from landbridge.ir.types import VDeviceAttr, dtype_of, item_bytes, nbytes_of, separators_of, shape_of


def build_function(module: IRModule, lowered: ModuleOp) -> tuple[Function, tuple[VDevice, ...]]:
    """``@main`` of a planned module as a Function; ``lowered`` states the tasks of each kernel (``lb.tasks``).

    Also the vdevices that its instructions number: those of the module, then one for each further scope it uses.

    Raises CodegenError for a called PrimFunc that was not lowered.
    """
    main = module.main
    names = io_names(main)
    builder = _Builder(module, _tasks(lowered))
    arguments = main.body.block.args
    frames = frame_layouts(main)
    specs = [
        TensorSpec(name, shape_of(argument.type), dtype_of(argument.type))
        for argument, name in zip(arguments, (*names[0], *names[1]), strict=True)
    ]
    for i, name in enumerate(names[0]):
        if name in frames:
            specs[i] = _frame_spec(specs[i], *frames[name])
    first, end = len(names[0]) - len(module.parameters), len(names[0])  # parameters are the last inputs of @main
    for argument in (*arguments[:first], *arguments[end:], *arguments[first:end]):
        builder.define(argument)
    instructions = builder.block(main.body.block)
    inputs, outputs, parameters = tuple(specs[:first]), tuple(specs[end:]), tuple(specs[first:end])
    return Function("main", inputs, outputs, instructions, parameters), tuple(builder.vdevices)


def _frame_spec(argument: TensorSpec, shape: tuple[int, ...], strides: tuple[int, ...]) -> TensorSpec:
    spec = TensorSpec(argument.name, shape, argument.dtype, strides)
    if spec.nbytes != argument.nbytes:
        raise CodegenError(
            f"input {spec.name!r} is a frame of shape {shape} and strides {strides or 'that are dense'}, {spec.nbytes} "
            f"bytes, and its argument of @main has {argument.nbytes}; they must be equal"
        )
    return spec


def storage_reports(module: IRModule) -> tuple[StorageReport, ...]:
    """What the planner reached, one report for each storage of a planned module."""
    reports = []
    for op in module.main.body.block.ops:
        if isinstance(op, AllocStorageOp):
            lower_bound, optimal = plan_quality(op)
            reports.append(
                StorageReport(
                    device=module.vdevices[op.vdevice.index.data].name,
                    scope=op.vdevice.scope.data,
                    planned_bytes=op.nbytes.value.data,
                    lower_bound_bytes=lower_bound,
                    proved_optimal=optimal,
                )
            )
    return tuple(reports)


def scratch_bytes(lowered: ModuleOp) -> int:
    """The stack that a thread needs for the temporaries of the kernel that has most."""
    return max((_temporary_bytes(op) for op in lowered.body.block.ops if isinstance(op, func.FuncOp)), default=0)


def _temporary_bytes(function: func.FuncOp) -> int:
    if not function.body.blocks:
        return 0
    return sum(nbytes_of(op.memref.type) for op in function.body.block.ops if isinstance(op, memref.AllocaOp))


class _Builder:
    def __init__(self, module: IRModule, tasks: Mapping[str, int]) -> None:
        self.prims = module.prims()
        self.tasks = tasks
        self.vdevices = list(module.vdevices)
        self.registers: dict[SSAValue, int] = {}

    def define(self, value: SSAValue) -> int:
        number = self.registers[value] = len(self.registers)
        return number

    def block(self, block: Block) -> tuple[Instruction, ...]:
        made = (self.instruction(op) for op in block.ops)
        return tuple(instruction for instruction in made if instruction is not None)

    def instruction(self, op: Operation) -> Instruction | None:
        at = self.registers
        if isinstance(op, AllocStorageOp):
            return AllocStorage(
                dst=self.define(op.result),
                nbytes=op.nbytes.value.data,
                vdevice=self.vdevice(op.vdevice),
                alignment=op.alignment.value.data,
                shape=() if op.shape is None else ints(op.shape),
                dtype="uint8" if op.dtype is None else op.dtype.data,
            )
        if isinstance(op, AllocTensorOp):
            ty = op.result.type
            return AllocTensor(
                dst=self.define(op.result),
                storage=at[op.storage],
                offset=op.offset.value.data,
                shape=shape_of(ty),
                dtype=dtype_of(ty),
                name=op.node.data,
                axis_separators=separators_of(ty),
            )
        if isinstance(op, ConstantOp):
            place = placed_on(op)
            symbol, number = op.symbol.root_reference.data, self.vdevice(place)
            return LoadConstant(self.define(op.result), symbol, number, place.axis_separators)
        if isinstance(op, ViewOp):
            if op.source.type == op.result.type:
                at[op.result] = at[op.source]
                return None
            ty = op.result.type
            first = op.offset.value.data * item_bytes(ty)
            return View(self.define(op.result), at[op.source], first, shape_of(ty), dtype_of(ty))
        if isinstance(op, ToVDeviceOp):
            ty, there = op.result.type, self.vdevice(placed_on(op))
            return View(self.define(op.result), at[op.source], 0, shape_of(ty), dtype_of(ty), node_name(op), there)
        if isinstance(op, CallOp):
            return self.call(op)
        if isinstance(op, HostCallOp):
            return HostCall(op.builtin.data, tuple(at[v] for v in op.operands), _dictionary(op.parameters))
        if isinstance(op, memref.CopyOp):
            return ToVDevice(at[op.source], at[op.destination], node_name(op))
        if isinstance(op, IfOp):
            then, orelse = self.block(op.then_region.block), self.block(op.else_region.block)
            return If(at[op.condition], then, orelse)
        if isinstance(op, PreparedOp):
            return Prepared(tuple(at[v] for v in op.buffers))
        if isinstance(op, YieldOp | func.ReturnOp):
            return None
        raise CodegenError(f"{op.name} has no instruction; run the passes bufferize and plan first")

    def vdevice(self, place: VDeviceAttr) -> int:
        """The program's number for ``place``: a vdevice in a scope of its own is one more vdevice of the same name."""
        at = replace(self.vdevices[place.index.data], scope=place.scope.data)
        if at not in self.vdevices:
            self.vdevices.append(at)
        return self.vdevices.index(at)

    def call(self, op: CallOp) -> Call:
        name = op.callee.root_reference.data
        if name not in self.tasks:
            raise CodegenError(f"PrimFunc @{name} was not lowered; the lowered module must hold it with lb.tasks")
        function = self.prims[name]
        return Call(
            module=target_number(function),
            function=name,
            args=tuple(self.registers[v] for v in op.operands),
            tasks=self.tasks[name],
            name=node_name(op),
            moves_bytes=moved_bytes(function),
            vdevice=self.vdevice(VDeviceAttr.of(_computes(op))),
        )


def _computes(op: CallOp) -> int:
    """The number of the module's vdevice that runs a call; 0 where the text does not say."""
    place = vdevice_stated(op)
    return 0 if place is None else place.index.data


def _tasks(lowered: ModuleOp) -> dict[str, int]:
    return {
        op.sym_name.data: 1 if (tasks := task_count(op)) is None else tasks
        for op in lowered.body.block.ops
        if isinstance(op, func.FuncOp)
    }


def _dictionary(attribute: DictionaryAttr) -> dict[str, object]:
    return {key: _plain(value) for key, value in attribute.data.items()}


def _plain(attribute: Attribute) -> Any:
    """An attribute as plain data: numbers, text, lists and dictionaries of them."""
    if isinstance(attribute, IntegerAttr) and attribute.type == i1:
        return bool(attribute.value.data)
    if isinstance(attribute, IntegerAttr | FloatAttr):
        return attribute.value.data
    if isinstance(attribute, StringAttr):
        return attribute.data
    if isinstance(attribute, ArrayAttr):
        return [_plain(item) for item in attribute.data]
    if isinstance(attribute, DictionaryAttr):
        return _dictionary(attribute)
    raise CodegenError(f"attribute {attribute} of a host call is no plain data; legal: numbers, text, lists of them")
