"""import_onnx imports an ONNX model as an IRModule."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, combinations, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import onnx_ir as ir
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from landbridge.errors import (
    CompileError,
    InputError,
    NodeError,
    ShapeError,
    UndecidedSizeError,
    UnsupportedOperatorError,
)
from landbridge.executable.parts import StateGrowth, VDevice
from landbridge.frontend.input_spec import InputSpec
from landbridge.frontend.onnx.attempts import Attempts
from landbridge.frontend.onnx.branches import import_if
from landbridge.frontend.onnx.data_rules import OF_THE_MODEL, DataRules
from landbridge.frontend.onnx.empty_specializations import from_zero, may_be_zero, name_of, where_zero
from landbridge.frontend.onnx.equal_sizes import EqualSizes
from landbridge.frontend.onnx.fitting_sizes import naming_inputs
from landbridge.frontend.onnx.found_states import prepare_states
from landbridge.frontend.onnx.graph_walk import Branches, ControlFlow, GraphWalk, ImportsBody
from landbridge.frontend.onnx.load import load_model, release
from landbridge.frontend.onnx.loops import import_loop, import_scan
from landbridge.frontend.onnx.model_inputs import ModelInputs, model_inputs
from landbridge.frontend.onnx.open_ranges import Specializations, in_open_ranges
from landbridge.frontend.onnx.parameters import promote_parameters
from landbridge.frontend.onnx.shapes import check_declared
from landbridge.frontend.wanted_inputs import wanted_inputs
from landbridge.ir.budget import MAX_NODES, Budget
from landbridge.ir.data_dimensions import DataDimensions
from landbridge.ir.empties import Empties
from landbridge.ir.graph_builder import Broadcasting, GraphBuilder
from landbridge.ir.main_attributes import (
    input_elements,
    io_names,
    set_aliases,
    set_frame_layouts,
    set_growths,
    set_guards,
    set_input_elements,
    set_io_names,
    set_parameter_names,
    set_supposed_dimensions,
)
from landbridge.ir.module import IRModule
from landbridge.ir.types import shape_of
from landbridge.sizes.size import Extent, dimension, dimensions_of
from landbridge.targets import Target

if TYPE_CHECKING:
    from onnx import ModelProto

#: The most other ranges of dimensions, in which a model computes something else, that are tried.
_MOST_OTHERS = 4
#: The most kernels of a model that is also compiled for images smaller than the window of a pool, whose results have no
#: elements. Nobody runs larger models on such images, and a second program takes as long to compile as the first.
_MOST_KERNELS = 16

CONTROL_FLOW: dict[str, ControlFlow] = {"If": import_if, "Loop": import_loop, "Scan": import_scan}


def import_onnx(  # noqa: PLR0913 - what may be stated of a model
    model: str | Path | bytes | ModelProto | ir.Model,
    shapes: Mapping[str, Sequence[int | str]] | None,
    targets: tuple[Target, ...],
    vdevices: tuple[VDevice, ...] = (VDevice("cpu", 0),),
    extra_outputs: Sequence[str] = (),
    constants: Mapping[str, Any] | None = None,
    mutable: Sequence[str] = (),
    frames: Mapping[str, InputSpec] | None = None,
    max_nodes: int = MAX_NODES,
    check_indices: bool = False,
    dimensions: Mapping[str, Extent] | None = None,
    chosen: Mapping[str, tuple[int, ...]] | None = None,
    not_empty: Collection[str] = (),
    other_specializations: list[IRModule] | None = None,
    hosts: bool = False,
    empties: Empties | None = None,
    spare_specializations: list[IRModule] | None = None,
    around: Collection[str] | None = None,
    rules: DataRules = OF_THE_MODEL,
    alias: Mapping[str, str] | Literal["auto"] | None = None,
    begin: Mapping[str, Extent] | None = None,
) -> IRModule:
    """Returns the IRModule of an ONNX model, with ``func.func @main(inputs) -> outputs`` and their names as attributes.

    ``shapes``: static shapes of inputs by name, needed if the file leaves dimensions open. ``extra_outputs``: names of
    inner values that are returned after the model's outputs. ``constants``: values of inputs that are fixed now, arrays
    or numbers by name. Such an input is not an argument of ``@main``, and values that depend only on it are folded. A
    value with text stays an argument, whose elements are open dimensions. ``mutable``: names of weights that stay
    replaceable: the last arguments of ``@main``, ``parameters`` of the module. ``frames``: the form in which the
    application has inputs, by name, if it differs from the model's. ``max_nodes``: the most nodes after functions,
    loops and recurrent layers are unfolded. ``check_indices``: indices out of range end a run with IndexRangeError.

    ``dimensions``: open dimensions stay open, in these ranges by name; if None, each extent has to be known. An input
    of sizes stays an argument, and its elements are dimensions. ``chosen``: the elements of inputs that stay arguments,
    but have these values in this program. ``not_empty``: dimensions decided by data that are at least 1 in this
    program. ``empties``: whether tensors may have no elements if inputs decide the number; they may by default.
    ``begin``: ranges of dimensions, by name, that are tried first. ``around``: names of dimensions of the enclosing
    program, if there is one.

    ``other_specializations`` receives modules for other ranges of dimensions, in which the model computes something
    else: for example, it drops an axis of one element. ``spare_specializations`` receives modules for sizes that no
    other module covers, if they can be compiled: one for runs in which an extent is 1 and broadcasts to that of another
    input, and those in which a tensor has no elements. ``hosts``: nodes without a kernel, because an input decides what
    they do, run on the host. ``rules``: which files may contain external data. ``alias``: outputs that shall have the
    memory of an input, and therefore its shape; "auto": the caches that are found.

    Raises ImportModelError (no valid model), InputError (unknown names), ShapeError (shapes that contradict each
    other), BudgetError (more than ``max_nodes``) and UnsupportedOperatorError, which lists every operator and dimension
    that cannot be compiled.
    """
    loaded, sources, files = load_model(model, max_nodes, rules)
    graph = loaded.graph
    states = prepare_states(graph, alias)
    parameters = promote_parameters(graph, mutable)
    given, branches, empties = shapes or {}, Branches(is_separate=around is not None), empties or Empties()
    decided: set[str] = set()  # dimensions that data decide, in all attempts
    specializations = Specializations()
    broadcasting = Broadcasting()
    equal = EqualSizes(broadcasting=broadcasting)

    def build(
        declared: Mapping[str, Extent] | None,
        elements: Mapping[str, tuple[Extent, ...]],
        shapes: Mapping[str, Sequence[int | str]],
    ) -> IRModule:
        known = {**elements, **(chosen or {})}
        of_inputs = None if declared is None else {n: e for n, e in declared.items() if n not in decided}
        inputs = model_inputs(graph, shapes, constants or {}, frames or {}, of_inputs, known)
        attempts.unified.pairs = list(_along_one_axis(inputs.shapes.values()))
        module = IRModule(ModuleOp([]), targets, vdevices, parameters=parameters, sources=sources, files=files)
        data = DataDimensions(declared, attempts.reads, decided, not_empty, attempts.hosts, empties, around or ())
        budget = Budget(max_nodes)
        try:
            built = _built(
                module,
                loaded,
                inputs,
                extra_outputs,
                budget,
                check_indices,
                data,
                branches,
                import_body,
                equal,
                broadcasting,
            )
        finally:
            attempts.note(data)
        set_aliases(built.main, states if alias == "auto" else {})
        return built

    def import_body(
        body: ir.Model,
        shapes: Mapping[str, Sequence[Any]],
        of_whole: Mapping[str, Extent],
        elements: Mapping[str, tuple[Any, ...]],
        lengths: Collection[str],
    ) -> IRModule:
        return import_onnx(
            body,
            shapes,
            targets,
            vdevices,
            max_nodes=max_nodes,
            check_indices=check_indices,
            dimensions=of_whole,
            chosen=elements,
            not_empty=not_empty,
            hosts=attempts.hosts,
            empties=Empties(),
            around=(*of_whole, *not_empty),
            begin={name: dimension(name, int(name in not_empty)) for name in lengths},
        )

    def in_given(declared: Mapping[str, Extent], elements: Mapping[str, tuple[Extent, ...]]) -> IRModule:
        return build(declared, elements, given)

    def attempt() -> IRModule:
        if dimensions is None:
            return build(None, {}, given)
        nonlocal specializations
        specializations = Specializations(begin=begin or {})
        return in_open_ranges(
            in_given, dimensions, decided, specializations, attempts.fixing, empties, attempts.unified, equal
        )

    def in_other_ranges(way: Specializations) -> IRModule:
        return in_open_ranges(
            in_given, dimensions or {}, decided, way, attempts.fixing, empties, attempts.unified, equal
        )

    def whole() -> IRModule:
        return in_open_ranges(lambda known, elements: build(known, elements, {}), {}, equal=equal)

    def names_of_empties(module: IRModule) -> list[str]:
        return may_be_zero([*_shapes(module).values(), *_trips(module, branches)], dimensions or {})

    def with_others(module: IRModule) -> IRModule:
        if other_specializations is not None and not decided:
            branches.refused |= branches.failed
            other_specializations.extend(_others(specializations, in_other_ranges))
            if spare_specializations is not None:
                spare_specializations.extend(_where_broadcast(specializations, broadcasting, in_other_ranges))
                spare_specializations.extend(
                    _without_windows(module, specializations, dimensions or {}, in_other_ranges)
                )
                if empties.allowed and not module.bodies:
                    inputs = _shapes(module).values()
                    spare_specializations.extend(
                        where_zero(names_of_empties(module), inputs, specializations, in_other_ranges)
                    )
        if spare_specializations is not None and empties.allowed and empties.cut and (module.bodies or decided):
            return from_zero(module, names_of_empties(module), specializations, in_other_ranges)
        return module

    attempts = Attempts(attempt, dimensions is not None, hosts, branches)
    try:
        module = with_others(attempts.all())
        if not isinstance(model, ir.Model):
            release(loaded)
        return module
    except UndecidedSizeError:
        raise
    except (ShapeError, NodeError) as error:
        if branches.failed:
            branches.refused = True
            with suppress(CompileError):
                return with_others(attempts.with_reads())
            branches.refused = False
        if not isinstance(error, ShapeError):
            raise
        named = naming_inputs(error, given, whole, _shapes)
        if named is error:
            raise  # an error must not be its own cause
        raise named from error


def _others(specializations: Specializations, search: Callable[[Specializations], IRModule]) -> Iterator[IRModule]:
    """Yields modules for other ranges of dimensions, in which the model takes another branch, found by ``search``."""
    for begin in islice(specializations.others(), _MOST_OTHERS):
        other = Specializations(begin=begin)
        with suppress(CompileError, InputError):
            yield search(other)
            specializations.taken += other.taken
            specializations.seen += other.seen


def _where_broadcast(
    specializations: Specializations, broadcasting: Broadcasting, search: Callable[[Specializations], IRModule]
) -> Iterator[IRModule]:
    """Yields a module for runs in which an extent of one input is 1 and broadcasts to that of another, found by
    ``search``.

    Yields none if ``specializations`` unified no such extents, or if a rule of the model requires that they are equal.
    """
    if not specializations.broadcast:
        return
    broadcasting.begin(either=True)
    try:
        with suppress(CompileError, InputError):
            module = search(Specializations())
            if broadcasting.found_any:
                yield module
    finally:
        broadcasting.begin(either=False)


def _without_windows(
    module: IRModule,
    specializations: Specializations,
    dimensions: Mapping[str, Extent],
    search: Callable[[Specializations], IRModule],
) -> Iterator[IRModule]:
    """Yields modules for images smaller than the window of a pool, if ``module`` is small."""
    if len(module.prims()) <= _MOST_KERNELS:
        empty = specializations.without_windows(dimensions_of(dimensions.values()))
        yield from _others(Specializations(specializations.taken, empty), search)


def _along_one_axis(shapes: Iterable[Sequence[Extent]]) -> Iterator[tuple[str, str]]:
    """Yields pairs of dimensions of two inputs of equal rank, by name, that are along the same axis, in the order of
    the inputs.
    """
    # there may be many inputs, but few different shapes
    named = dict.fromkeys(tuple(name_of(e) for e in shape) for shape in shapes)
    for one, other in combinations((names for names in named if any(names)), 2):
        for a, b in zip(one, other, strict=True) if len(one) == len(other) else ():
            if a and b and a != b:
                yield a, b


def _trips(module: IRModule, branches: Branches) -> list[tuple[Extent, ...]]:
    """Returns the elements of inputs of ``@main`` that are trip counts of loops, and not extents of shapes."""
    elements = input_elements(module.main).values()
    return [tuple(e for e in each if dimensions_of([e]).keys() & branches.trips) for each in elements]


def _shapes(module: IRModule) -> dict[str, Sequence[Extent]]:
    """Returns the shapes of the inputs of ``@main`` by name."""
    main = module.main
    names, _ = io_names(main)
    return {name: shape_of(a.type) for name, a in zip(names, main.body.block.args, strict=False)}


def _built(
    module: IRModule,
    loaded: ir.Model,
    inputs: ModelInputs,
    extra_outputs: Sequence[str],
    budget: Budget,
    check_indices: bool,
    data: DataDimensions,
    branches: Branches,
    import_body: ImportsBody,
    equal: EqualSizes,
    broadcasting: Broadcasting,
) -> IRModule:
    """Returns ``module`` with ``@main`` of the model ``loaded``, whose inputs are ``inputs``."""
    graph = loaded.graph
    block = Block(arg_types=inputs.types())
    broadcasting.found_any = False
    g = GraphBuilder(module, block, budget=budget, data=data, broadcasting=broadcasting)
    read = [*inputs.elements.values(), *(inputs.shapes.values() if branches.related else ())]
    g.read_dimensions |= dimensions_of(chain(*read)).keys()
    walk = GraphWalk(g, loaded.opset_imports, CONTROL_FLOW, check_indices, branches, import_body, equal)
    walk.values.update(inputs.values(g, block))
    walk.run_graph(graph)
    if equal.has_more:
        raise UndecidedSizeError(f"dimensions are equal to others: {equal.found}")
    wanted = [*graph.outputs, *_find(walk, graph, extra_outputs)]
    problems = [*inputs.advice, *walk.problems]
    if problems:
        listed = "\n".join(f"  - {p}" for p in problems)
        error = UnsupportedOperatorError(
            f"the model cannot be compiled; {len(problems)} problem{'s' * (len(problems) > 1)}:\n{listed}"
        )
        error.needed = wanted_inputs(block, inputs.names, walk.needed)
        raise error
    for value in graph.outputs:
        check_declared(value, walk.values[value], "output", strict=False)
    returned = walk.owned_outputs([walk.values[v] for v in wanted])
    block.add_op(func.ReturnOp(*returned))
    types = FunctionType.from_lists([a.type for a in block.args], [v.type for v in returned])
    main = func.FuncOp("main", types, Region(block))
    set_io_names(main, inputs.names, [str(v.name) for v in wanted])
    if inputs.frames:
        set_frame_layouts(main, {name: frame.layout for name, frame in inputs.frames.items()})
    if inputs.elements:
        set_input_elements(main, inputs.elements)
    if g.guards:
        set_guards(main, list(dict.fromkeys(g.guards)))
    grown = _growths(g, dict(zip(block.args, inputs.names, strict=True)))
    if grown:
        set_growths(main, grown)
    if data.supposed:
        set_supposed_dimensions(main, sorted(data.supposed))
    if module.parameters:
        set_parameter_names(main, list(module.parameters))
    Rewriter.insert_op(main, InsertPoint.at_start(module.op.body.block))
    return module


def _growths(g: GraphBuilder, arguments: Mapping[SSAValue, str]) -> list[StateGrowth]:
    """Returns how the states among ``arguments`` (names by value) grow."""
    found = []
    for value, (growth, positions) in g.growths.items():
        if value in arguments and (positions is None or positions in arguments):
            named = "" if positions is None else arguments[positions]
            found.append(replace(growth, name=arguments[value], positions=named))
    return found


def _find(walk: GraphWalk, graph: ir.Graph, names: Sequence[str]) -> list[ir.Value]:
    """Returns values of the main graph by name."""
    by_name = {v.name: v for v in walk.values if v.graph is graph or v.is_initializer()}
    by_name.update((v.name, v) for node in graph for v in node.outputs)
    missing = [n for n in names if by_name.get(n) not in walk.values]
    if missing:
        raise InputError(
            f"extra_outputs: no value {', '.join(map(repr, missing))} in the main graph; values inside a branch "
            "cannot be returned"
        )
    return [by_name[n] for n in names]
