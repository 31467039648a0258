"""Cuts a program into segments where data decide sizes; each segment is compiled as a program of known or open sizes.

An operation belongs to the first segment in which everything that it needs is known: its operands, and the dimensions
in its types and its kernel. A value that one segment computes and another reads is an output of the one and an input of
the other.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import field, replace

from xdsl.dialects import bufferization, func
from xdsl.dialects.builtin import (
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    StringAttr,
)
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from landbridge.executable.executable import SEGMENTS, Executable
from landbridge.executable.parts import Function, SizeGuard, TensorSpec, program_name
from landbridge.executable.segments import DIMENSIONS, BodyProgram, DataCall, Segment, segments_text
from landbridge.frontend.segment_sizes import SegmentSizes
from landbridge.frontend.segment_values import add_copy, bring, is_cut, is_cut_result, operands_of, root_of
from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.graph_ops import BODIES, DEFINES, CallOp, ConstantOp, HostCallOp, ViewOp
from landbridge.ir.main_attributes import (
    frame_layouts,
    guards,
    input_elements,
    io_names,
    parameter_names,
    set_frame_layouts,
    set_input_elements,
    set_io_names,
    set_parameter_names,
    supposed_dimensions,
)
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import node_name
from landbridge.ir.plain_attributes import int_array, plain_data
from landbridge.ir.reserved_lengths import read_whole
from landbridge.ir.traversal import operations_of
from landbridge.ir.types import dtype_of, shape_of, tensor_type
from landbridge.records import record
from landbridge.sizes.size import dimensions_of, of_symbol
from landbridge.sizes.terms import Symbol


@record(frozen=True, eq=False)
class Cut:
    """The ``modules`` of the segments that compute, and the steps of a run: ``segments``, which name modules by number,
    as text.

    ``inputs`` and ``outputs`` are those of the whole program, ``parameters`` its replaceable weights, ``guards`` the
    conditions on the dimensions of a run.
    """

    modules: list[IRModule]
    segments: list[Segment]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    parameters: tuple[TensorSpec, ...]
    guards: tuple[SizeGuard, ...]


def function_name(number: int) -> str:
    """Returns the name of the function of segment ``number``."""
    return f"segment@{number}"


def cut(module: IRModule) -> Cut | None:
    """Returns the segments of ``module``, which must not be used afterwards; None if it needs no cut."""
    if not is_in_pieces(module):
        return None
    read_whole(module)
    return _Cutter(module, []).cut()


def is_in_pieces(module: IRModule) -> bool:
    """Returns whether data decide sizes in ``module``."""
    return any(is_cut(op) for op in module.main.body.block.ops)


def in_segments(executable: Executable, whole: Cut) -> tuple[Executable, dict[str, str]]:
    """Returns ``executable``, whose programs are the segments of ``whole`` in order, as the whole program, and its
    metadata.
    """
    pieces = list(executable.functions.values())
    functions = {
        function_name(number): replace(piece, name=function_name(number))
        for number, piece in enumerate(pieces[: len(whole.modules)])
    }
    main = Function("main", whole.inputs, whole.outputs, (), whole.parameters, whole.guards)
    names = {program_name(number): function_name(number) for number in range(len(pieces))}
    memory = tuple(replace(report, program=names[report.program]) for report in executable.memory)
    program = replace(executable, functions={"main": main, **functions}, memory=memory)
    return program, {SEGMENTS: segments_text(whole.segments)}


@record(eq=False)
class _Piece:
    ops: list[Operation] = field(default_factory=list)
    calls: list[HostCallOp] = field(default_factory=list)
    #: The values computed here that later segments, calls or the caller read.
    wanted: dict[SSAValue, None] = field(default_factory=dict)


class _Cutter:
    """Cuts a program. ``modules`` receives its segments, and those of the separate programs that it runs."""

    def __init__(self, module: IRModule, modules: list[IRModule]) -> None:
        self._module, self._modules = module, modules
        self._main = module.main
        self._block = self._main.body.block
        self._names: dict[SSAValue, str] = dict(zip(self._block.args, io_names(self._main)[0], strict=False))
        self._prims = module.prims()
        self._level: dict[SSAValue, int] = dict.fromkeys(self._block.args, 0)
        self._symbol_level: dict[str, int] = {}
        self._sizes = SegmentSizes(self._prims)
        self._taken = {*self._names.values(), *io_names(self._main)[1]}
        self._given = guards(self._main)

    def cut(self) -> Cut:
        pieces = self._pieces()
        returned = list(self._block.last_op.operands) if self._block.last_op is not None else []
        inputs, outputs = io_names(self._main)
        self._name_all(pieces, returned, outputs)
        modules = self._modules
        segments: list[Segment] = []
        for piece in pieces:
            name = ""
            if piece.wanted:
                name = function_name(len(modules))
                modules.append(self._module_of(piece, returned))
            segments.append(Segment(name, tuple(map(self._data_call, piece.calls))))
        if not modules:  # everything is computed by calls, but a program must have code
            modules.append(self._module_of(_Piece(), []))
        elements = input_elements(self._main)
        frames = frame_layouts(self._main)
        count = len(inputs) - len(parameter_names(self._main))
        specs = []
        for name, argument in zip(inputs, self._block.args, strict=False):
            spec = TensorSpec(name, shape_of(argument.type), dtype_of(argument.type), elements=elements.get(name, ()))
            specs.append(replace(spec, shape=frames[name][0], strides=frames[name][1]) if name in frames else spec)
        results = tuple(
            TensorSpec(n, shape_of(v.type), dtype_of(v.type)) for n, v in zip(outputs, returned, strict=True)
        )
        return Cut(modules, segments, tuple(specs[:count]), results, tuple(specs[count:]), self._given)

    # The segment of an operation ------------------------------------------------------------------------------------

    def _pieces(self) -> list[_Piece]:
        pieces: list[_Piece] = [_Piece()]
        for op in self._block.ops:
            if isinstance(op, bufferization.AllocTensorOp | ConstantOp | func.ReturnOp):
                continue  # each segment that needs it gets a copy
            level = self._needed(op)
            while len(pieces) <= level:
                pieces.append(_Piece())
            if is_cut(op):
                assert isinstance(op, HostCallOp)
                pieces[level].calls.append(op)
                for symbol in dimensions_of(op.defines).values():
                    self._symbol_level[symbol.name] = level + 1
                level += 1
                while len(pieces) <= level:
                    pieces.append(_Piece())
            elif not isinstance(op, ViewOp):
                pieces[level].ops.append(op)
            self._level.update(dict.fromkeys(op.results, level))
        return pieces

    def _needed(self, op: Operation) -> int:
        """Returns the first segment in which everything that ``op`` needs is known."""
        values = [self._level.get(v, 0) for v in operands_of(op)]
        return max([0, *values, *(self._symbol_level.get(name, 0) for name in self._sizes.of_operation(op))])

    # Values between segments ----------------------------------------------------------------------------------------

    def _name_all(self, pieces: Sequence[_Piece], returned: Sequence[SSAValue], outputs: Sequence[str]) -> None:
        """Name the values that pass between segments; those that are outputs keep the output's name."""
        for value, name in zip(returned, outputs, strict=True):
            self._names.setdefault(value, name)
            if not is_cut_result(value):
                pieces[self._level[value]].wanted[value] = None
        for number, piece in enumerate(pieces):
            for op in piece.ops:
                for value in self._roots(op):
                    self._cross(pieces, value, number)
            for call in piece.calls:
                for value in call.inputs:
                    if is_cut_result(value) or isinstance(value, BlockArgument):
                        continue
                    again = isinstance(value.owner, ViewOp | ConstantOp)
                    pieces[number if again else self._level[value]].wanted[value] = None
                    self._name(value)
                    self._cross(pieces, root_of(value), number)
                for value in call.res:
                    self._name(value)
        for value in returned:
            if isinstance(value.owner, ViewOp):
                self._cross(pieces, root_of(value), self._level[value])

    def _roots(self, op: Operation) -> Iterator[SSAValue]:
        for value in operands_of(op):
            yield root_of(value)

    def _cross(self, pieces: Sequence[_Piece], root: SSAValue, number: int) -> None:
        """Record that segment ``number`` reads ``root``."""
        if isinstance(root, BlockArgument) or is_cut_result(root) or isinstance(root.owner, ConstantOp):
            return
        level = self._level.get(root, number)
        if level < number:
            self._name(root)
            pieces[level].wanted[root] = None

    def _name(self, value: SSAValue) -> str:
        if value not in self._names:
            stem = node_name(value.owner) if isinstance(value.owner, Operation) else ""
            name = stem = f"{stem or 'value'}"
            number = 0
            while name in self._taken:
                number += 1
                name = f"{stem}.{number}"
            self._taken.add(name)
            self._names[value] = name
        return self._names[value]

    # Segments as modules --------------------------------------------------------------------------------------------

    def _module_of(self, piece: _Piece, returned: Sequence[SSAValue]) -> IRModule:
        module = self._module
        uses = [root for op in piece.ops for root in self._roots(op)] + [root_of(v) for v in piece.wanted]
        inside = {result for op in piece.ops for result in op.results}
        free = (u for u in dict.fromkeys(uses) if u not in inside and not isinstance(u.owner, ConstantOp))
        known = list(free)
        weights = parameter_names(self._main)
        arguments = [v for v in known if self._names[v] not in weights]
        weighted = [v for v in known if self._names[v] in weights]
        symbols = self._symbols_used(piece)
        names = [self._names[v] for v in arguments]
        types = [v.type for v in arguments]
        if symbols:
            names.append(DIMENSIONS)
            types.append(tensor_type((len(symbols),), "int64"))
        block = Block(arg_types=[*types, *(v.type for v in weighted)])
        outer = [*arguments, None, *weighted] if symbols else [*arguments, *weighted]
        at: dict[SSAValue, SSAValue] = {old: new for old, new in zip(outer, block.args, strict=True) if old is not None}
        new_module = replace(
            module,
            op=ModuleOp([]),
            constants=dict(module.constants),
            parameters={n: a for n, a in module.parameters.items() if n in {self._names[v] for v in weighted}},
        )
        g = GraphBuilder(new_module, block)
        for op in piece.ops:
            add_copy(op, block, at)
        results = []
        for value in piece.wanted:
            bring(value, block, at)
            result = at[value]
            if _needs_copy(value, piece, inside, value in returned):
                g.node = self._names[value]
                result = g.elementwise("copy", [result], lambda s, v: v)
            results.append(result)
        block.add_op(func.ReturnOp(*results))
        main = func.FuncOp(
            "main", FunctionType.from_lists([a.type for a in block.args], [r.type for r in results]), Region(block)
        )
        set_io_names(main, [*names, *(self._names[v] for v in weighted)], [self._names[v] for v in piece.wanted])
        layouts = {n: each for n, each in frame_layouts(self._main).items() if n in names}
        if layouts:
            set_frame_layouts(main, layouts)
        if symbols:
            set_input_elements(main, {DIMENSIONS: [of_symbol(s) for s in symbols.values()]})
        if weighted:
            set_parameter_names(main, [self._names[v] for v in weighted])
        prims = [op for name, op in self._prims.items() if op.parent is not None]
        called = {op.callee_name for op in operations_of(main, CallOp)}
        body = new_module.op.body.block
        kernels = list(body.ops)  # the order of copies
        body.insert_ops_before([main], kernels[0]) if kernels else body.add_op(main)
        for prim in prims:
            if prim.sym_name.data in called:
                body.add_op(prim.clone())
        new_module.drop_unused()
        return new_module

    def _symbols_used(self, piece: _Piece) -> dict[str, Symbol]:
        names: set[str] = set()
        for op in piece.ops:
            names |= self._sizes.of_operation(op)
            for value in operands_of(op):
                names |= self._sizes.of_attribute(value.type)
                names |= self._sizes.of_attribute(root_of(value).type)
        for value in piece.wanted:
            names |= self._sizes.of_attribute(value.type) | self._sizes.of_attribute(root_of(value).type)
        return {name: symbol for name, symbol in self._sizes.symbols.items() if name in names}

    def _data_call(self, op: HostCallOp) -> DataCall:
        parameters = {k: v for k, v in op.parameters.data.items() if k not in (DEFINES, BODIES, "node")}
        node = op.parameters.data.get("node", StringAttr(""))
        absent = plain_data(parameters.get("absent", int_array([])))
        names = iter([self._names[value] for value in op.inputs])
        count = len(op.inputs) + len(absent)
        outputs = tuple(TensorSpec(self._names[v], shape_of(v.type), dtype_of(v.type)) for v in op.res)
        read: tuple[TensorSpec, ...] = ()
        if not op.res:
            (value,) = op.inputs
            read = (TensorSpec(self._names[value], shape_of(value.type), dtype_of(value.type), elements=op.defines),)
        return DataCall(
            op.builtin.data,
            node.data if isinstance(node, StringAttr) else "",
            tuple("" if i in absent else next(names) for i in range(count)),
            outputs,
            read,
            plain_data(DictionaryAttr(parameters)),
            tuple(name for name in dimensions_of(op.defines) if name in supposed_dimensions(self._main)),
            tuple(self._body(name) for name in op.bodies),
        )

    def _body(self, name: str) -> BodyProgram:
        """Returns the program ``name`` that a call runs; its segments are added to those of the whole."""
        body = self._module.bodies[name]
        whole = _Cutter(body, self._modules).cut()
        return BodyProgram(whole.inputs, whole.outputs, tuple(whole.segments), body.around, whole.guards)


def _needs_copy(value: SSAValue, piece: _Piece, inside: Container[SSAValue], is_returned: bool) -> bool:
    """Returns whether a result of ``piece`` has no buffer of its own."""
    root = root_of(value)
    if root not in inside:
        return True
    return not is_returned and any(other is not value and root_of(other) is root for other in piece.wanted)
