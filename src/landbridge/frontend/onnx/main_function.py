"""Builds ``@main`` of a model: one walk of its graph, and the attributes that later passes read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

import onnx_ir as ir
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from landbridge.errors import InputError, UndecidedSizeError, UnsupportedOperatorError
from landbridge.executable.parts import StateGrowth
from landbridge.frontend.onnx.branches import import_if
from landbridge.frontend.onnx.decisions import Decisions
from landbridge.frontend.onnx.earlier_walks import EarlierWalks
from landbridge.frontend.onnx.graph_walk import Branches, ControlFlow, GraphWalk, ImportsBody
from landbridge.frontend.onnx.loops import import_loop, import_scan
from landbridge.frontend.onnx.model_inputs import ModelInputs
from landbridge.frontend.onnx.shapes import check_declared
from landbridge.frontend.wanted_inputs import wanted_inputs
from landbridge.ir.budget import Budget
from landbridge.ir.data_dimensions import DataDimensions
from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.main_attributes import (
    set_frame_layouts,
    set_growths,
    set_guards,
    set_input_elements,
    set_io_names,
    set_parameter_names,
    set_supposed_dimensions,
)
from landbridge.ir.module import IRModule
from landbridge.ir.permissions import Permission
from landbridge.ir.replaced_sizes import replace_sizes
from landbridge.sizes.size import dimensions_of

CONTROL_FLOW: dict[str, ControlFlow] = {"If": import_if, "Loop": import_loop, "Scan": import_scan}


def build_main(
    module: IRModule,
    loaded: ir.Model,
    inputs: ModelInputs,
    extra_outputs: Sequence[str],
    budget: Budget,
    check_indices: bool,
    data: DataDimensions,
    branches: Branches,
    import_body: ImportsBody,
    decisions: Decisions,
    earlier: EarlierWalks,
) -> IRModule:
    """Returns ``module`` with ``@main`` of the model ``loaded``, whose inputs are ``inputs``.

    ``earlier`` gets the values of this walk.
    """
    graph = loaded.graph
    block = Block(arg_types=inputs.types())
    decisions.broadcasting.found_any = False
    g = GraphBuilder(module, block, budget=budget, data=data, broadcasting=decisions.broadcasting)
    read = [
        *inputs.elements.values(),
        *(inputs.shapes.values() if Permission.RELATE in data.permissions.granted else ()),
    ]
    g.read_dimensions |= dimensions_of(chain(*read)).keys()
    walk = GraphWalk(g, loaded.opset_imports, CONTROL_FLOW, check_indices, branches, import_body, decisions, earlier)
    walk.values.update(inputs.values(g, block))
    walk.run_graph(graph)
    if decisions.must_restart:
        raise UndecidedSizeError(f"dimensions are equal to others: {decisions.inner}")
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
    if decisions.changed:
        replace_sizes(module, decisions.extent)
    earlier.values = walk.values
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
