"""Landbridge's verifier: checks the invariants that xdsl does not check and every pass must keep, in one walk.

On tensors: every value has a VDevice encoding that names a vdevice of the module; only ``lb.to_vdevice`` changes it;
results are written into fresh destinations. On tensors and memrefs: values are defined before they are used, callees
exist and take the arguments given, constants are those of the table, views stay in bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
from xdsl.dialects import bufferization, func, memref
from xdsl.dialects.builtin import ArrayAttr, IntAttr, MemRefType, TensorType
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from landbridge.dtypes import numpy_dtype
from landbridge.errors import VerifyError
from landbridge.identity_map import IdentityMap
from landbridge.ir.graph_ops import (
    CallOp,
    ConcatOp,
    ConstantOp,
    HostCallOp,
    IfOp,
    LoopOp,
    PackOp,
    ToVDeviceOp,
    UnpackOp,
    ViewOp,
    YieldOp,
    viewed,
)
from landbridge.ir.kernel_attributes import is_prim, task_count
from landbridge.ir.length_ops import LengthOp, reserved
from landbridge.ir.memory_ops import AllocStorageOp, AllocTensorOp, PreparedOp
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import node_name
from landbridge.ir.packing import packed_shape
from landbridge.ir.plain_attributes import ints
from landbridge.ir.traversal import operations
from landbridge.ir.types import (
    compute_type,
    dtype_of,
    element_count,
    nbytes_of,
    shape_of,
    vdevice_of,
)
from landbridge.ir.verify_aliases import check_aliases
from landbridge.ir.verify_loops import check_loop
from landbridge.ir.verify_places import check_alloc_tensor, check_place, is_nd, place_in


class KnownTypes:
    """Types that passed verification before, for the next verification of a module of the same vdevices.

    They are compared by identity, as they never change and xdsl computes their hashes anew each time.
    """

    def __init__(self) -> None:
        self.forget(None)

    def forget(self, of: object) -> None:
        """Clear the types, and record from now on those valid for the targets and vdevices ``of``."""
        self.of = of
        #: The types of values, each with the index of the vdevice that a tensor is on.
        self.places: IdentityMap[Attribute, int | None] = IdentityMap()
        #: The types of arguments, each with the memrefs of PrimFuncs that it may bind to.
        self.fits: IdentityMap[Attribute, IdentityMap[Attribute, None]] = IdentityMap()
        #: The shape and dtype of the tables' constants.
        self.tables: IdentityMap[Attribute, tuple[tuple[int, ...], np.dtype[Any]]] = IdentityMap()
        #: The types of views, each with the types of their sources, each with the elements that they begin at.
        self.views: IdentityMap[Attribute, IdentityMap[Attribute, IdentityMap[Attribute, None]]] = IdentityMap()


def verify(module: IRModule, after: str = "", known: KnownTypes | None = None) -> None:
    """Raises VerifyError, naming the pass ``after`` which it happened, unless ``module`` keeps every invariant."""
    _Verifier(module, after, KnownTypes() if known is None else known).run()


class _Verifier:
    def __init__(self, module: IRModule, after: str, known: KnownTypes) -> None:
        self.module = module
        self.after = after
        self.prims: dict[str, Sequence[Attribute]] = {}
        self.lowered: dict[str, Sequence[Attribute]] = {}
        if known.of != (module.targets, module.vdevices):
            known.forget((module.targets, module.vdevices))
        self.known = known
        self.checks: dict[type[Operation], Callable[[Any], None]] = {
            ConstantOp: self._constant,
            CallOp: self._call,
            HostCallOp: self._host_call,
            ViewOp: self._view,
            ConcatOp: self._concat,
            PackOp: self._pack,
            UnpackOp: self._unpack,
            ToVDeviceOp: self._to_vdevice,
            IfOp: self._if,
            LoopOp: self._loop,
            AllocTensorOp: self._alloc_tensor,
            AllocStorageOp: _nothing,
            PreparedOp: self._prepared,
            YieldOp: _nothing,
            LengthOp: _nothing,
            bufferization.AllocTensorOp: _nothing,
            memref.AllocOp: _nothing,
            memref.CopyOp: self._copy,
            func.ReturnOp: self._return,
        }

    def run(self) -> None:
        graphs: list[func.FuncOp] = []
        names: set[str] = set()
        for f in self.module.functions():
            name = f.sym_name.data
            if name in names:
                self.fail(f, "its name is used by another function", "one function of that name")
            names.add(name)
            if is_prim(f):
                self.prims[name] = f.function_type.inputs.data
            elif task_count(f) is not None:
                self.lowered[name] = f.function_type.inputs.data
            else:
                graphs.append(f)
        if "main" not in names:
            self.fail(self.module.op, "there is no function @main", "a graph function @main")
        for f in graphs:
            block = self.only_block(f, f.body)
            check_aliases(f, self.fail)
            for argument in block.args:
                self.type(f, argument.type)
            self.block(block, set(block.args))

    def block(self, block: Block, defined: set[SSAValue]) -> None:
        """Check ``block``; the values ``defined`` are defined before it."""
        for op in operations(block):
            if not defined.issuperset(op.operands):
                self.fail(op, "an operand is used before it is defined", "definitions first")
            check = self.checks.get(type(op))
            if check is None:
                self.fail(op, "this operation is not legal in a graph", "lb operations and destinations")
            results = op.results
            for result in results:
                self.type(op, result.type)
            check(op)
            for region in op.regions:
                inner = self.only_block(op, region)
                for argument in inner.args:
                    self.type(op, argument.type)
                defined.update(inner.args)
                self.block(inner, defined)
                defined.difference_update(inner.args)
                for hidden in inner.ops:
                    defined.difference_update(hidden.results)
            defined.update(results)

    def only_block(self, op: Operation, region: Region) -> Block:
        if len(region.blocks) != 1:
            self.fail(op, f"a body of {len(region.blocks)} blocks", "one block: a graph has no jumps")
        return region.block

    def type(self, op: Operation, ty: Attribute) -> None:
        if ty not in self.known.places:
            check_place(self.module, op, ty, self.fail)
            self.known.places[ty] = vdevice_of(ty).index.data if isinstance(ty, TensorType) else None

    def _constant(self, op: ConstantOp) -> None:
        symbol = op.symbol_name
        array = self.module.constants.get(symbol)
        if array is None:
            self.fail(op, f"constant @{symbol} is not in the table", "a symbol of the constant table")
        ty = op.result.type
        known = self.known.tables.get(ty)
        if known is None:
            known = self.known.tables[ty] = (shape_of(ty), numpy_dtype(dtype_of(ty)))
        shape, dtype = known
        if array.shape != shape or array.dtype != dtype:
            found = _show(array.shape, array.dtype.name)
            self.fail(op, f"type {_show(shape, dtype.name)}", f"{found}, as constant @{symbol} in the table")

    def _call(self, op: CallOp) -> None:
        callee = op.callee_name
        arguments = list(op.operands)
        if callee in self.lowered:
            self._lowered_call(op, arguments, self.lowered[callee])
            return
        parameters = self.prims.get(callee)
        if parameters is None:
            self.fail(op, f"callee @{callee} does not exist", "a PrimFunc of the module")
        if len(arguments) != len(parameters):
            self.fail(op, f"{len(arguments)} arguments", f"{len(parameters)}, as @{callee} takes")
        fits = self.known.fits
        for i, (argument, parameter) in enumerate(zip(arguments, parameters, strict=True)):
            ty = argument.type
            known = fits.get(ty)
            if known is not None and parameter in known:
                continue
            if not _fits(ty, parameter):
                self.fail(op, f"argument {i} is {ty}", f"{parameter}, as @{callee} takes")
            fits.setdefault(ty, IdentityMap())[parameter] = None
        self._destinations(op, arguments[op.input_count :], op.results)
        self._one_vdevice(op, arguments)

    def _lowered_call(self, op: CallOp, arguments: Sequence[SSAValue], parameters: Sequence[Attribute]) -> None:
        """Check the arguments of a lowered function: flat buffers, then, on a CPU, the first and the last task."""
        sizes = [nbytes_of(p) for p in parameters if isinstance(p, MemRefType)]
        if [nbytes_of(a.type) for a in arguments] != sizes:
            self.fail(op, f"arguments of types {_types([a.type for a in arguments])}", f"buffers of {sizes} bytes")

    def _host_call(self, op: HostCallOp) -> None:
        self._destinations(op, op.destinations, op.res)

    def _destinations(self, op: Operation, destinations: Sequence[SSAValue], results: Sequence[SSAValue]) -> None:
        for i, destination in enumerate(destinations):
            if isinstance(destination.type, MemRefType):
                if isinstance(viewed(destination), OpResult) and isinstance(viewed(destination).owner, ConstantOp):
                    self.fail(op, f"destination {i} is a constant", "memory that may be written")
                continue
            maker = destination.owner
            if isinstance(maker, Operation) and not isinstance(maker, bufferization.AllocTensorOp):
                self.fail(op, f"destination {i} is a result of {maker.name}", "alloc_tensor")
            if not destination.has_one_use():
                self.fail(op, f"destination {i} is used elsewhere too", "a destination of its own")
        expected = [d.type for d in destinations if isinstance(d.type, TensorType)]
        found = [r.type for r in results]
        if found != expected:
            self.fail(op, f"results of types {_types(found)}", f"those of its destinations, {_types(expected)}")

    def _one_vdevice(self, op: Operation, values: Sequence[SSAValue]) -> None:
        places = self.known.places
        vdevices = {place for v in values if (place := places.get(v.type)) is not None}
        if len(vdevices) > 1:
            self.fail(op, f"operands on vdevices {sorted(vdevices)}", "one vdevice; lb.to_vdevice moves a tensor")

    def _same_location(self, op: Operation, sources: Sequence[SSAValue], result: SSAValue) -> None:
        for source in sources:
            if place_in(source.type) != place_in(result.type):
                self.fail(
                    op,
                    f"the placement changes from {place_in(source.type)} to {place_in(result.type)}",
                    "lb.to_vdevice, the only operation that changes it",
                )
            if dtype_of(source.type) != dtype_of(result.type):
                self.fail(op, f"{source.type} becomes {result.type}", "one element type")

    def _view(self, op: ViewOp) -> None:
        source, result, offset = op.operands[0].type, op.results[0].type, op.attributes["offset"]
        sources = self.known.views.get(result)
        offsets = None if sources is None else sources.get(source)
        if offsets is not None and offset in offsets:
            return
        self._same_location(op, [op.source], op.result)
        if is_nd(result) and source != result:
            self.fail(op, f"{source} becomes {result}", "the same: rows of an n-D scope are not in line")
        first, have = op.first, element_count(shape_of(source))
        last = first + element_count(shape_of(result))
        if first < 0 or last > have:
            self.fail(op, f"a view of elements {first} to {last}", f"0 to {have}, the elements of its source")
        self.known.views.setdefault(result, IdentityMap()).setdefault(source, IdentityMap())[offset] = None

    def _concat(self, op: ConcatOp) -> None:
        self._same_location(op, list(op.inputs), op.result)
        axis = op.axis.value.data
        shapes = [shape_of(v.type) for v in op.inputs]
        if not shapes or not 0 <= axis < min(map(len, shapes)):
            self.fail(op, f"axis {axis} of inputs of shapes {shapes}", "an input, and an axis that each of them has")
        expected = list(shapes[0])
        expected[axis] = sum(shape_of(v.type)[axis] for v in op.inputs)
        if list(shape_of(op.result.type)) != expected:
            self.fail(op, f"a result of shape {shape_of(op.result.type)}", f"{tuple(expected)}")

    def _pack(self, op: PackOp) -> None:
        self._packed(op, op.source, op.result)

    def _unpack(self, op: UnpackOp) -> None:
        self._packed(op, op.result, op.source)

    def _packed(self, op: PackOp | UnpackOp, plain: SSAValue, packed: SSAValue) -> None:
        self._one_vdevice(op, [op.source, op.result])  # it is a kernel, which reads and writes any scope of its own
        if dtype_of(op.source.type) != dtype_of(op.result.type):
            self.fail(op, f"{op.source.type} becomes {op.result.type}", "one element type")
        shape, axes, tiles = shape_of(plain.type), ints(op.axes), ints(op.tiles)
        rank = len(shape)
        if len(axes) != len(tiles) or not all(0 <= a < rank for a in axes) or not all(t > 0 for t in tiles):
            self.fail(op, f"axes {list(axes)} and tiles {list(tiles)}", f"as many tiles over 0 as axes below {rank}")
        expected = packed_shape(shape, axes, tiles)
        if shape_of(packed.type) != expected:
            self.fail(op, f"packed shape {shape_of(packed.type)}", f"{expected}")

    def _to_vdevice(self, op: ToVDeviceOp) -> None:
        source, result = op.source.type, op.result.type
        if _show(shape_of(source), dtype_of(source)) != _show(shape_of(result), dtype_of(result)):
            self.fail(op, f"{source} becomes {result}", "the same shape and element type")

    def _copy(self, op: memref.CopyOp) -> None:
        if nbytes_of(op.source.type) != nbytes_of(op.destination.type):
            self.fail(op, f"{op.source.type} to {op.destination.type}", "as many bytes")

    def _if(self, op: IfOp) -> None:
        if dtype_of(op.condition.type) != "bool":
            self.fail(op, f"a condition of type {op.condition.type}", "a bool tensor")
        expected = [r.type for r in op.res]
        for region in (op.then_region, op.else_region):
            terminator = self.only_block(op, region).last_op
            if not isinstance(terminator, YieldOp):
                self.fail(op, "a branch without lb.yield", "lb.yield at its end")
            found = [v.type for v in terminator.values]
            if found != expected:
                self.fail(op, f"a branch yields {_types(found)}", f"the types of the results, {_types(expected)}")

    def _loop(self, op: LoopOp) -> None:
        check_loop(op, self.fail)

    def _prepared(self, op: PreparedOp) -> None:
        if not all(isinstance(buffer.type, MemRefType) for buffer in op.buffers):
            self.fail(op, "a buffer that is not a memref", "buffers of a memory-level @main")

    def _alloc_tensor(self, op: AllocTensorOp) -> None:
        check_alloc_tensor(op, self.fail)

    def _return(self, op: func.ReturnOp) -> None:
        function = op.parent_op()
        if not isinstance(function, func.FuncOp):
            return
        found = [v.type for v in op.operands]
        expected = list(function.function_type.outputs.data)
        if found != expected:
            self.fail(op, f"returned types {_types(found)}", f"those of the function, {_types(expected)}")

    def fail(self, op: Operation, found: str, expected: str) -> NoReturn:
        subject = f"@{op.sym_name.data}" if isinstance(op, func.FuncOp) else op.name
        if name := node_name(op):
            subject += f" (node {name!r})"
        when = f"after pass {self.after!r}: " if self.after else ""
        raise VerifyError(f"{when}{subject}: {found}; expected {expected}")


def _nothing(op: Operation) -> None:
    """Check nothing beyond what holds for every operation."""


def _fits(argument: Attribute, parameter: Attribute) -> bool:
    """Returns whether a graph value can bind to a PrimFunc's memref (signless, with a scope)."""
    if not isinstance(parameter, MemRefType) or not isinstance(argument, TensorType | MemRefType):
        return False
    space = argument.memory_space if isinstance(argument, MemRefType) else vdevice_of(argument).space
    return (
        _same_shape(argument.shape, parameter.shape)
        and compute_type(argument.element_type) == parameter.element_type
        and space == parameter.memory_space
    )


def _same_shape(argument: ArrayAttr[IntAttr], parameter: ArrayAttr[IntAttr]) -> bool:
    """Returns whether shapes are equal, or those of a buffer of the capacity and of what it is filled to."""
    return argument == parameter or [e.data for e in argument] == [reserved(e.data) for e in parameter]


def _show(shape: Sequence[int], dtype: str) -> str:
    return f"{dtype}[{','.join(map(str, shape))}]"


def _types(types: Sequence[Attribute]) -> str:
    return "(" + ", ".join(map(str, types)) + ")"
