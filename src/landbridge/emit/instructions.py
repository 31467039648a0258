"""Builds the instructions of a memory-level @main: one for each operation, on registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from xdsl.dialects import func, memref
from xdsl.ir import Block, Operation, SSAValue

from landbridge.errors import CodegenError
from landbridge.executable.instructions import (
    AllocStorage,
    AllocTensor,
    Call,
    HostCall,
    If,
    Instruction,
    LoadConstant,
    Loop,
    Prepared,
    Slice,
    ToVDevice,
    View,
)
from landbridge.ir.graph_ops import CallOp, ConstantOp, HostCallOp, IfOp, LoopOp, ToVDeviceOp, ViewOp, YieldOp
from landbridge.ir.kernel_attributes import TASKS, moved_bytes, sizes_of, target_number, task_count
from landbridge.ir.memory_ops import AllocStorageOp, AllocTensorOp, PreparedOp
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import crossing_reason, declared_vdevice, node_name, placed_on
from landbridge.ir.plain_attributes import ints, plain_data
from landbridge.ir.traversal import operations
from landbridge.ir.types import VDeviceAttr, dtype_of, item_bytes, nbytes_of, separators_of, shape_of
from landbridge.passes.lower.shared_code import Variant


class InstructionBuilder:
    """Assigns registers to values, and an instruction to each operation.

    ``kernels``: lowered PrimFuncs, by name, and ``variants`` those that share code. ``vdevices`` grow as instructions
    name further scopes.
    """

    def __init__(self, module: IRModule, kernels: Mapping[str, func.FuncOp], variants: Mapping[str, Variant]) -> None:
        self.vdevices = list(module.vdevices)
        self._prims = module.prims()
        self._kernels = kernels
        self._variants = variants
        self._registers: dict[SSAValue, int] = {}
        self._count = 0
        self._shaped: dict[SSAValue, int] = {}
        self._makers: dict[type[Operation], Callable[[Any], Instruction | None]] = {
            AllocStorageOp: self._alloc_storage,
            AllocTensorOp: self._alloc_tensor,
            ConstantOp: self._constant,
            ViewOp: self._view,
            ToVDeviceOp: self._crossing,
            CallOp: self._call,
            HostCallOp: self._host_call,
            memref.CopyOp: self._copy,
            IfOp: self._if,
            LoopOp: self._loop,
            PreparedOp: self._prepared,
        }

    def define(self, value: SSAValue) -> int:
        """Returns the next register, which from now on holds ``value``."""
        number = self._registers[value] = self._new()
        return number

    def _new(self) -> int:
        self._count += 1
        return self._count - 1

    def block(self, block: Block) -> tuple[Instruction, ...]:
        """Returns the instructions of ``block``; raises CodegenError for an operation that has none."""
        instructions: list[Instruction] = []
        for op in operations(block):
            if isinstance(op, HostCallOp):
                instructions += self._shaped_constants(op)
            if not isinstance(op, YieldOp | func.ReturnOp):
                instruction = self._maker(op)(op)
                instructions += () if instruction is None else (instruction,)
        return tuple(instructions)

    def _shaped_constants(self, op: HostCallOp) -> Iterator[Instruction]:
        """Yields views that give constants read by ``op`` their shape and dtype: their registers hold bytes."""
        for value in op.operands:
            if isinstance(value.owner, ConstantOp):
                source, ty = self._registers[value], value.type
                self._shaped[value] = number = self._new()
                yield View(number, source, 0, shape_of(ty), dtype_of(ty))

    def _maker(self, op: Operation) -> Callable[[Any], Instruction | None]:
        try:
            return self._makers[type(op)]
        except KeyError:
            raise CodegenError(f"{op.name} has no instruction; run the passes bufferize and plan first") from None

    def _alloc_storage(self, op: AllocStorageOp) -> Instruction:
        return AllocStorage(
            dst=self.define(op.result),
            nbytes=op.size,
            vdevice=self.number_of(op.vdevice),
            alignment=op.alignment.value.data,
            shape=() if op.shape is None else ints(op.shape),
            dtype="uint8" if op.dtype is None else op.dtype.data,
        )

    def _alloc_tensor(self, op: AllocTensorOp) -> Instruction:
        ty = op.result.type
        return AllocTensor(
            dst=self.define(op.result),
            storage=self._registers[op.storage],
            offset=op.first,
            shape=shape_of(ty),
            dtype=dtype_of(ty),
            name=op.node.data,
            axis_separators=separators_of(ty),
        )

    def _constant(self, op: ConstantOp) -> Instruction:
        location = placed_on(op)
        symbol, number = op.symbol_name, self.number_of(location)
        return LoadConstant(self.define(op.result), symbol, number, location.axis_separators)

    def _view(self, op: ViewOp) -> Instruction | None:
        ty, source = op.result.type, self._registers[op.source]
        if op.source.type == ty:
            self._registers[op.result] = source
            return None
        first = op.first * item_bytes(ty)
        return View(self.define(op.result), source, first, shape_of(ty), dtype_of(ty))

    def _crossing(self, op: ToVDeviceOp) -> Instruction:
        """Returns the instruction of a crossing, which is a view: bufferize has made copies of all others."""
        ty, there, source = op.result.type, self.number_of(placed_on(op)), self._registers[op.source]
        return View(
            self.define(op.result), source, 0, shape_of(ty), dtype_of(ty), node_name(op), there, crossing_reason(op)
        )

    def _call(self, op: CallOp) -> Instruction:
        name = op.callee_name
        variant = self._variants.get(name)
        if variant is None and name not in self._kernels:
            raise CodegenError(f"PrimFunc @{name} was not lowered; the lowered module must hold it with {TASKS}")
        function, location = self._prims[name], declared_vdevice(op)
        if variant is None:
            kernel = self._kernels[name]
            called, tasks, sizes = name, _tasks(kernel), sizes_of(kernel)
        else:
            called, tasks, sizes = variant.function, variant.tasks, variant.words
        return Call(
            module=target_number(function),
            function=called,
            args=self._values(op.operands),
            tasks=tasks,
            name=node_name(op),
            moves_bytes=moved_bytes(function),
            vdevice=self.number_of(VDeviceAttr.of(0 if location is None else location.index.data)),
            sizes=sizes,
        )

    def _host_call(self, op: HostCallOp) -> Instruction:
        args = tuple(self._shaped[v] if v in self._shaped else self._registers[v] for v in op.operands)
        return HostCall(op.builtin.data, args, plain_data(op.parameters))

    def _copy(self, op: memref.CopyOp) -> Instruction:
        return ToVDevice(
            self._registers[op.source], self._registers[op.destination], node_name(op), crossing_reason(op)
        )

    def _if(self, op: IfOp) -> Instruction:
        then, orelse = self.block(op.then_region.block), self.block(op.else_region.block)
        return If(self._registers[op.condition], then, orelse)

    def _loop(self, op: LoopOp) -> Instruction:
        back = ints(op.back)
        slices = []
        for argument, whole, backwards in zip(op.body.block.args, op.sliced, back, strict=True):
            ty, stride = argument.type, nbytes_of(argument.type)
            first = (op.most_trips - 1) * stride if backwards else 0
            source = self._registers[whole]
            slices.append(
                Slice(self.define(argument), source, first, stride, shape_of(ty), dtype_of(ty), bool(backwards))
            )
        tested = () if op.tested is None else (self._registers[op.destinations[op.tested]],)
        return Loop(
            trips=op.most_trips,
            slices=tuple(slices),
            body=self.block(op.body.block),
            count=self._values(op.count),
            condition=tested,
            name=node_name(op),
        )

    def _prepared(self, op: PreparedOp) -> Instruction:
        return Prepared(self._values(op.buffers))

    def _values(self, values: Sequence[SSAValue]) -> tuple[int, ...]:
        return tuple(self._registers[v] for v in values)

    def number_of(self, location: VDeviceAttr) -> int:
        """Returns the program's number for ``location``: each scope of a vdevice counts as one more vdevice of that
        name."""
        at = replace(self.vdevices[location.index.data], scope=location.scope.data)
        if at not in self.vdevices:
            self.vdevices.append(at)
        return self.vdevices.index(at)


def _tasks(kernel: func.FuncOp) -> int:
    tasks = task_count(kernel)
    return 1 if tasks is None else tasks
