"""GraphBuilder: appends operations to a graph function; operators and front ends are written with it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from typing import Any, cast

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects import func
from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint

from landbridge.dtypes import dtype_name
from landbridge.errors import ShapeError
from landbridge.executable.parts import SizeGuard, StateGrowth
from landbridge.ir.allocations import tensor_alloc
from landbridge.ir.block_code import block_code
from landbridge.ir.budget import Budget
from landbridge.ir.data_dimensions import DataDimensions
from landbridge.ir.dequantized import DequantizedValues
from landbridge.ir.graph_ops import CallOp, ConcatOp, ConstantOp, HostCallOp, IfOp, LoopOp, ViewOp, YieldOp
from landbridge.ir.invariants import invariants
from landbridge.ir.iteration_numbers import read_iterations
from landbridge.ir.length_ops import LengthOp, new_length
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import NODE, set_node_name
from landbridge.ir.prim_builder import Body, PrimBuilder
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.types import HOST, VDeviceAttr, dtype_of, element_count, shape_of, tensor_type
from landbridge.records import record
from landbridge.sizes.broadcast import broadcast_shapes
from landbridge.sizes.size import Extent, dimension, dimensions_of, expected_size, never_below, of_symbol
from landbridge.sizes.terms import AboveZero, Atom
from landbridge.targets.grid import expected_length


def broadcast_map(shape: Sequence[Extent], result: Sequence[Extent]) -> AffineMap:
    """Returns the map by which loops over ``result`` read an operand of ``shape`` under numpy broadcasting."""
    lead = len(result) - len(shape)
    return AffineMap(
        len(result),
        0,
        tuple(
            AffineExpr.constant(0) if extent == 1 != result[lead + i] else AffineExpr.dimension(lead + i)
            for i, extent in enumerate(shape)
        ),
    )


@record(frozen=True, eq=False)
class BuiltConstant:
    """A constant that a builder loads: its ``value``, the ``array``, the ``hint`` for its symbol, and the ``node``."""

    value: SSAValue
    array: np.ndarray[Any, Any]
    hint: str
    node: str


@record
class Broadcasting:
    """Decides how open extents that meet in an axis broadcast: as equal; with ``either``, one of them may be 1.

    ``found_any`` says whether there were such extents. ``created`` holds the atoms for the larger of two extents.
    ``known`` replaces some of these by one of the extents, where a later operation requires it; each run tests that.
    """

    either: bool = False
    found_any: bool = False
    created: set[AboveZero] = field(default_factory=set)
    known: dict[Atom, Extent] = field(default_factory=dict)

    def begin(self, either: bool) -> None:
        """Clear what was recorded, before another search for programs begins."""
        self.either, self.found_any = either, False
        self.created.clear()
        self.known.clear()


class GraphBuilder:
    """Appends operations to ``block`` of ``module``; new values are placed on ``vdevice``.

    ``node`` names the model's node that is being built. ``budget`` limits operators that unfold one node into many.
    """

    def __init__(
        self,
        module: IRModule,
        block: Block,
        vdevice: VDeviceAttr = HOST,
        budget: Budget | None = None,
        data: DataDimensions | None = None,
        broadcasting: Broadcasting | None = None,
    ) -> None:
        self.module = module
        self.vdevice = vdevice
        self.budget = budget or Budget()
        self.node = ""
        #: Dimensions whose sizes the data decide.
        self.data = data or DataDimensions()
        self.broadcasting = broadcasting or Broadcasting()
        #: Whether this block belongs to a region, which may not run.
        self.is_nested = False
        #: Whether this block is made for the shapes of its values alone and thrown away.
        self.never_runs = False
        #: Dimensions whose sizes are elements of inputs, by name.
        self.read_dimensions: set[str] = set()
        #: Values that hold extents converted to another dtype, with these extents.
        self.whole: dict[SSAValue, np.ndarray[Any, Any]] = {}
        #: Values that come from DequantizeLinear.
        self.dequantized = DequantizedValues()
        #: Conditions on the dimensions of a run.
        self.guards: list[SizeGuard] = []
        #: How arguments that are states grow, and the argument with positions, if one has them; no names yet.
        self.growths: dict[SSAValue, tuple[StateGrowth, SSAValue | None]] = {}
        #: The counters of the loops around this block, by dimension name, as tensors of one int64.
        self.iterations: dict[str, SSAValue] = {}
        #: The lengths that lie in memory of a device, by the tensor and the capacity.
        self.lengths: dict[tuple[SSAValue, int], Extent] = {}
        #: PrimFuncs by all that they depend on.
        self.known_prims: dict[Hashable, func.FuncOp] = {}
        #: Receives the constants that are loaded from now on; None where nobody asks.
        self.built_constants: list[BuiltConstant] | None = None
        self.block = block
        self._builder = Builder(InsertPoint.at_end(block))

    def nested(self, block: Block) -> GraphBuilder:
        """Returns a builder for a block of a region of this graph."""
        inner = GraphBuilder(self.module, block, self.vdevice, self.budget, self.data, self.broadcasting)
        inner.is_nested, inner.never_runs = True, self.never_runs
        inner.read_dimensions, inner.guards, inner.whole = self.read_dimensions, self.guards, self.whole
        inner.dequantized, inner.iterations = self.dequantized, self.iterations
        inner.growths, inner.known_prims = self.growths, self.known_prims
        return inner

    def iteration(self, name: str, last: Extent, count: SSAValue) -> Extent:
        """Returns the dimension ``name``, from 0 to ``last``, that ``count`` counts in the loop of this block."""
        self.iterations = {**self.iterations, name: count}
        self.read_dimensions.add(name)
        return dimension(name, 0, never_below(last))

    def length(self, value: SSAValue, capacity: int) -> Extent:
        """Returns the integer that the one element of ``value`` is in a run, clamped to 1 and ``capacity``.

        Kernels load it, and the host does not know it. In a region, whose kernels run on the host, it is ``capacity``.
        """
        if self.is_nested or capacity == 1:
            return capacity
        if (found := self.lengths.get((value, capacity))) is None:
            expected = min(map(expected_length, self.module.targets))
            found = self.lengths[value, capacity] = new_length(len(self.lengths), 1, capacity, expected)
            self._builder.insert(LengthOp(value, *map(of_symbol, dimensions_of([found]).values())))
        return found

    def is_read(self, *extents: Extent) -> bool:
        """Returns whether ``extents`` depend on an element of an input, which a run reads."""
        return not self.read_dimensions.isdisjoint(dimensions_of(extents))

    def fewest(self, *extents: Extent) -> int:
        """Returns the smallest value that ``extents`` may have: 0, unless code is made for at least 1."""
        if self.data.names.isdisjoint(dimensions_of(extents)):
            return self.data.empties.least()
        return int(not self.data.may_be_empty)

    def expected(self, extent: Extent) -> int:
        """Returns ``expected_size``, which decides how something is computed: other sizes may give another graph."""
        self.data.weighed |= dimensions_of([extent]).keys()
        return expected_size(extent)

    def held(self, subject: str, extent: Extent, legal: Extent) -> Extent:
        """Returns ``legal``; each run checks that ``extent`` of ``subject`` equals it."""
        if extent != legal:
            self.guards.append(SizeGuard(f"{self.node}: {subject}", cast(int, extent), cast(int, legal)))
        return legal

    def grows(
        self,
        state: object,
        axis: int,
        before: Extent,
        after: Extent,
        positions: object = None,
        *,
        has_each: bool = False,
    ) -> None:
        """Note that ``state`` has content in its first ``before`` elements along ``axis``, then in ``after``.

        With ``positions``, a tensor of integers, both count from the largest of these; with ``has_each``, it has the
        position of each new element. What was noted first stays.
        """
        if isinstance(state, SSAValue) and (positions is None or isinstance(positions, SSAValue)):
            growth = StateGrowth("", axis, cast(int, before), cast(int, after), has_each=has_each)
            self.growths.setdefault(state, (growth, positions))

    def slides(self, state: object, axis: int, before: Extent, after: Extent) -> None:
        """Note that a run writes the elements of ``state`` from ``before`` to ``after`` along ``axis``, and that the
        next run begins as many elements further on in memory.
        """
        if isinstance(state, SSAValue):
            growth = StateGrowth("", axis, cast(int, before), cast(int, after), slides=True)
            self.growths.setdefault(state, (growth, None))

    def created(self, value: SSAValue) -> bool:
        """Returns whether an operation of this builder's block computes ``value``."""
        return isinstance(value.owner, Operation) and value.owner.parent_block() is self.block

    def constant(self, array: np.ndarray[Any, Any], hint: str = "c") -> SSAValue:
        """Add ``array`` to the constant table and return its value."""
        symbol = self.module.add_constant(array, hint)
        value = self._builder.insert(
            ConstantOp(symbol, tensor_type(array.shape, dtype_name(array.dtype), self.vdevice))
        ).result
        if self.built_constants is not None:
            self.built_constants.append(BuiltConstant(value, array, hint, self.node))
        return value

    def extents(self, array: np.ndarray[Any, Any]) -> SSAValue:
        """Returns an int64 tensor of ``array``, whose objects are ints and Sizes; a kernel computes its elements."""
        values = array.reshape(-1).tolist()

        def build(p: PrimBuilder) -> None:
            def chosen(s: ScalarBuilder) -> Value:
                found, at = s.const(values[0], "int64"), s.index(0)
                for number, extent in enumerate(values[1:], 1):
                    found = s.select(at.eq(number), s.const(extent, "int64"), found)
                return found

            p.generic("p", [len(values)], [], [(p.outputs[0], AffineMap.identity(1))], chosen)

        return self.reshape(self.call("extents", [], [((len(values),), "int64")], build)[0], array.shape)

    def call(
        self,
        name: str,
        inputs: Sequence[SSAValue],
        outputs: Sequence[tuple[Sequence[Extent], str]],
        build: Callable[[PrimBuilder], None],
        depends_on: Hashable = None,
    ) -> list[SSAValue]:
        """Run a PrimFunc written by ``build``; ``outputs`` are (shape, dtype) of the results.

        It is a new one, unless ``depends_on`` says what it depends on beside ``name`` and the types: then calls for
        which all of that is equal run one PrimFunc, as those of equal layers do.
        """
        types = [tensor_type(shape, dtype, self.vdevice) for shape, dtype in outputs]
        is_known = depends_on is not None and not self.iterations
        key = (name, depends_on, tuple(v.type for v in inputs), tuple(types)) if is_known else None
        function = self.known_prims.get(key) if is_known else None
        if function is None or function.parent is not self.module.op.body.block:  # a checkpoint took it back
            prim = PrimBuilder(self._fresh(name), [v.type for v in inputs], types)
            build(prim)
            function = prim.finish()
            if self.iterations:
                inputs = [*inputs, *read_iterations(function, len(inputs), self.iterations)]
            self.module.op.body.block.add_op(function)
            if is_known:
                self.known_prims[key] = function
        destinations = [self._builder.insert(tensor_alloc(t)).tensor for t in types]
        op = self._builder.insert(CallOp(function.sym_name.data, list(inputs), destinations, types, self.node or name))
        return list(op.res)

    def host_call(
        self,
        builtin: str,
        inputs: Sequence[SSAValue],
        outputs: Sequence[tuple[Sequence[Extent], str]],
        parameters: dict[str, Attribute],
    ) -> list[SSAValue]:
        """Run a host builtin on ``inputs``; ``outputs`` are (shape, dtype) of the results."""
        types = [tensor_type(shape, dtype, self.vdevice) for shape, dtype in outputs]
        destinations = [self._builder.insert(tensor_alloc(ty)).tensor for ty in types]
        op = HostCallOp.build(
            operands=[list(inputs), destinations],
            result_types=[types],
            attributes={
                "builtin": StringAttr(builtin),
                "parameters": DictionaryAttr(parameters),
                NODE: StringAttr(self.node or builtin),
            },
        )
        return list(self._builder.insert(op).res)

    def elementwise(
        self,
        name: str,
        inputs: Sequence[SSAValue],
        body: Body,
        dtype: str | None = None,
        depends_on: Hashable = None,
    ) -> SSAValue:
        """Apply ``body(s, *values)`` elementwise with numpy broadcasting; ``dtype`` is the result's (else the
        first's). ``depends_on``: what ``body`` depends on, as for ``call``."""
        shapes = [shape_of(v.type) for v in inputs]
        try:
            shape = broadcast_shapes(*shapes)
        except ValueError as error:
            raise ShapeError(f"{self.node or name}: shapes {shapes} do not broadcast") from error
        rank = len(shape)

        def build(p: PrimBuilder) -> None:
            ins = [(b, broadcast_map(s, shape)) for b, s in zip(p.inputs, shapes, strict=True)]
            p.generic("p" * rank, shape, ins, [(p.outputs[0], AffineMap.identity(rank))], body)

        return self.call(name, inputs, [(shape, dtype or dtype_of(inputs[0].type))], build, depends_on)[0]

    def reshape(self, source: SSAValue, shape: Sequence[Extent], offset: Extent = 0) -> SSAValue:
        """Returns the elements from ``offset`` on, seen as ``shape``; no bytes move."""
        old = shape_of(source.type)
        if tuple(shape) == old and not offset:
            return source
        if offset + element_count(shape) > element_count(old):
            raise ShapeError(f"{self.node}: no view of {old} as {tuple(shape)} at element {offset}")
        if isinstance(source.owner, ViewOp):  # a view of a view is one: models hold chains of thousands
            return self.reshape(source.owner.source, shape, offset + source.owner.first)
        ty = tensor_type(shape, dtype_of(source.type), self.vdevice)
        return self._builder.insert(ViewOp(source, ty, offset)).result

    def renamed(self, source: SSAValue, shape: Sequence[Extent]) -> SSAValue:
        """Returns ``source`` seen as ``shape``, which is equal to its shape by known facts; nothing is tested."""
        ty = tensor_type(shape, dtype_of(source.type), self.vdevice)
        return self._builder.insert(ViewOp(source, ty, 0)).result

    def concat(self, inputs: Sequence[SSAValue], axis: int) -> SSAValue:
        """Returns the concatenation along ``axis`` (not negative)."""
        shape = list(shape_of(inputs[0].type))
        shape[axis] = sum(shape_of(v.type)[axis] for v in inputs)
        ty = tensor_type(shape, dtype_of(inputs[0].type), self.vdevice)
        op = ConcatOp(list(inputs), axis, ty)
        if self.node:
            set_node_name(op, self.node)
        return self._builder.insert(op).result

    def branch(
        self,
        condition: SSAValue,
        then: Callable[[GraphBuilder], Sequence[SSAValue]],
        orelse: Callable[[GraphBuilder], Sequence[SSAValue]],
    ) -> list[SSAValue]:
        """Append ``lb.if`` and return its results; both branches yield values of the same types."""
        regions, types = [], []
        for build in (then, orelse):
            block = Block()
            values = list(build(self.nested(block)))
            block.add_op(YieldOp(values))
            regions.append(Region(block))
            types.append([v.type for v in values])
        if types[0] != types[1]:
            raise ShapeError(
                f"{self.node}: the branches give {_types_text(types[0])} and {_types_text(types[1])}, and which is "
                "taken shows when the model runs; have both give the same, or make the condition constant"
            )
        return list(self._builder.insert(IfOp(condition, types[0], regions[0], regions[1])).res)

    def loop(
        self,
        trips: Extent,
        carried: Sequence[SSAValue],
        scanned: Sequence[SSAValue],
        build: Callable[[GraphBuilder, Sequence[SSAValue]], tuple[Sequence[SSAValue], Sequence[SSAValue]]],
        back: tuple[Sequence[int], Sequence[int]] | None = None,
        count: SSAValue | None = None,
        condition: int | None = None,
        begins: bool = False,
    ) -> list[SSAValue]:
        """Append ``lb.loop`` and return its results. ``begins``: the loop is known to have a first iteration.

        ``build`` gets the carried values and an element of each of ``scanned``; it returns the next carried values and
        this iteration's rows. Loop-invariant operations move before the loop. ``back``: directions of scans and of
        rows.

        Raises ShapeError where an iteration carries on other types; with ``begins`` an unread value may change its
        type.
        """
        elements = [tensor_type(shape_of(v.type)[1:], dtype_of(v.type), self.vdevice) for v in scanned]
        block = Block(arg_types=[*(v.type for v in carried), *elements])
        next_values, rows = build(self.nested(block), block.args)
        if begins:
            first = list(carried)
            carried = [
                self._unread(block, at, value, v.type)
                for at, (value, v) in enumerate(zip(carried, next_values, strict=True))
            ]
            if carried != first:
                self._check_unified(block, [*next_values, *rows], build)
        found, wanted = [v.type for v in next_values], [v.type for v in carried]
        if found != wanted:
            changed = [pair for pair in zip(wanted, found, strict=True) if pair[0] != pair[1]]
            given, created = (_types_text(types) for types in zip(*changed, strict=True))
            raise ShapeError(f"{self.node}: an iteration is given {given} and carries on {created}")
        for same in invariants(block):
            block.detach_op(same)
            self._builder.insert(same)
        for row in rows:
            block.insert_arg(row.type, len(block.args))
        block.add_op(YieldOp([*next_values, *rows]))
        stacks = [tensor_type((trips, *shape_of(v.type)), dtype_of(v.type), self.vdevice) for v in rows]
        values = ([] if count is None else [count], carried, scanned, ())
        directions = back or ([0] * len(scanned), [0] * len(rows))
        op = LoopOp(
            trips, values, [*wanted, *stacks], Region(block), [*directions[0], *directions[1]], condition, self.node
        )
        return list(self._builder.insert(op).res)

    def _unread(self, block: Block, at: int, value: SSAValue, ty: Attribute) -> SSAValue:
        """Returns ``value``, first in argument ``at`` of a loop's ``block``, or zeros of ``ty`` if nothing reads it."""
        if value.type == ty or any(block.args[at].uses):
            return value
        block.erase_arg(block.args[at])
        block.insert_arg(ty, at)
        shape, dtype = shape_of(ty), dtype_of(ty)

        def build(p: PrimBuilder) -> None:
            rank = len(shape)
            p.generic("p" * rank, shape, [], [(p.outputs[0], AffineMap.identity(rank))], lambda s: s.const(0, dtype))

        return self.call("unread", [], [(shape, dtype)], build)[0]

    def _check_unified(
        self,
        block: Block,
        results: list[SSAValue],
        build: Callable[[GraphBuilder, Sequence[SSAValue]], tuple[Sequence[SSAValue], Sequence[SSAValue]]],
    ) -> None:
        """Raises ShapeError unless the body, built for the types that ``block`` now takes, is the same code."""
        again = Block(arg_types=[a.type for a in block.args])
        next_values, rows = build(self.nested(again), again.args)
        outside: dict[SSAValue, int] = {}
        created = block_code(self.module, block, results, outside)
        if created != block_code(self.module, again, [*next_values, *rows], outside):
            raise ShapeError(
                f"{self.node}: what its first iteration is given has another shape than what others are given"
            )

    def _fresh(self, name: str) -> str:
        stem = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
        self.module.prim_count += 1
        return f"{stem}_{self.module.prim_count}"


def _types_text(types: Sequence[Attribute]) -> str:
    """Returns the text for values of ``types`` in messages."""
    return ", ".join(f"{dtype_of(ty)}{list(shape_of(ty))}" for ty in types) or "nothing"
