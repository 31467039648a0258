"""Merges calls: one PrimFunc with the stages of several, and one call in their place."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from xdsl.dialects import func, linalg, memref
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Attribute, Block, Region, SSAValue

from landbridge.ir.allocations import buffer_alloc
from landbridge.ir.graph_ops import CallOp
from landbridge.ir.kernel_attributes import mark_prim
from landbridge.ir.stages import view_generic
from landbridge.passes.fuse.graph import Graph, Key, inputs_of, value_key
from landbridge.passes.fuse.inline import inline_temporaries, tidy_operands

_STEM_LIMIT = 40


def merge(graph: Graph, calls: Sequence[CallOp], budget: int = 0) -> CallOp:
    """Replace ``calls`` by one call, at the position of the last, that does the work of all in order; returns it.

    Only these calls may read the results of all calls but the last, in the shape that they were produced in: those
    become temporaries. ``budget`` is the work that may lose its vectors for that, as in ``keeps_vectors``.
    """
    internal: dict[SSAValue, tuple[int, int]] = {
        r: (number, i) for number, c in enumerate(calls[:-1]) for i, r in enumerate(c.res)
    }
    inputs: dict[Key, SSAValue] = {}
    for call in calls:
        for value in inputs_of(call):
            if value not in internal:
                inputs.setdefault(value_key(value), value)
    key: Hashable = None
    repeats = graph.repeats(calls)
    if repeats > 1:
        at = {k: number for number, k in enumerate(inputs)}
        read = [tuple(internal.get(v) or at[value_key(v)] for v in inputs_of(c)) for c in calls]
        key = (tuple(c.callee_name for c in calls), tuple(read), budget)
    found = None if key is None else graph.known(key)
    if found is None:
        functions = [graph.owned(c) for c in calls]
        stem, given = _stem(functions), list(inputs)
        function = _concatenate(calls, functions, inputs, budget)
        graph.add(function, stem)
        if key is not None:
            graph.remember(key, function, tuple(i for i, k in enumerate(given) if k in inputs), repeats)
    else:
        function, taken = found
        values = list(inputs.items())
        inputs = dict(values[i] for i in taken)
    return run_instead(graph, calls, function, list(inputs.values()))


def run_instead(graph: Graph, calls: Sequence[CallOp], function: func.FuncOp, inputs: Sequence[SSAValue]) -> CallOp:
    """Replace ``calls`` by one call of ``function`` with ``inputs``, at the position of the last; returns it."""
    last = calls[-1]
    types = [r.type for r in last.res]
    new = CallOp(function.sym_name.data, inputs, list(last.destinations), types)
    block = last.parent
    assert block is not None  # calls come from the blocks of the graph
    block.insert_op_before(new, last)
    graph.record(new, calls)
    for before, after in zip(last.res, new.res, strict=True):
        before.replace_all_uses_with(after)
    for call in reversed(calls):
        graph.remove(call)
    return new


def _concatenate(
    calls: Sequence[CallOp], functions: Sequence[func.FuncOp], inputs: dict[Key, SSAValue], budget: int
) -> func.FuncOp:
    """Returns a new PrimFunc that runs ``functions``, one for each of ``calls``, in order.

    Its arguments are ``inputs``, by the key of each value, and the last call's destinations; results of the other calls
    become temporaries. The bodies are moved, not copied. Elementwise stages are inlined into the stages that read them
    where it pays, ``budget`` as in ``keeps_vectors``. Inputs that nothing reads any more are removed from ``inputs``.
    """
    types: dict[Key, Attribute] = {}
    bound: dict[Key, SSAValue] = {}
    temporaries: list[memref.AllocOp] = []
    for call, function in zip(calls, functions, strict=True):
        arguments = function.body.block.args
        for value, argument in zip(inputs_of(call), arguments, strict=False):
            types.setdefault(value_key(value), argument.type)
        if call is not calls[-1]:
            for result, argument in zip(call.res, arguments[len(inputs_of(call)) :], strict=True):
                temporaries.append(buffer_alloc(argument.type))
                bound[result] = temporaries[-1].memref
    outputs = functions[-1].body.block.args[len(inputs_of(calls[-1])) :]
    block = Block(temporaries, arg_types=[*(types[k] for k in inputs), *(o.type for o in outputs)])
    bound.update(zip(inputs, block.args, strict=False))
    for call, function in zip(calls, functions, strict=True):
        targets = block.args[len(inputs) :] if call is calls[-1] else [bound[r] for r in call.res]
        values = [*(bound[value_key(v)] for v in inputs_of(call)), *targets]
        _move_body(function.body.block, values, block)
    block.add_op(func.ReturnOp.create())
    inline_temporaries(block, budget)
    for key, argument in zip(list(inputs), block.args, strict=False):
        if argument.first_use is None:
            block.erase_arg(argument)
            del inputs[key]
    fused = func.FuncOp("fused", FunctionType.from_lists(list(block.arg_types), []), Region(block))
    mark_prim(fused)
    return fused


def _move_body(source: Block, values: Sequence[SSAValue], target: Block) -> None:
    """Move the stages of ``source``, its arguments replaced by ``values``, to the end of ``target``."""
    for argument, value in zip(source.args, values, strict=True):
        argument.replace_all_uses_with(value)
    for op in list(source.ops):
        if isinstance(op, func.ReturnOp):
            continue
        source.detach_op(op)
        target.add_op(op)
        if isinstance(op, linalg.ops.GenericOp):
            tidy_operands(view_generic(op))


def _stem(functions: Sequence[func.FuncOp]) -> str:
    """Returns the different words of the functions' names, without numbers, joined by ``_``; at most 40 characters."""
    words = (w for f in functions for w in f.sym_name.data.split("_") if w and not w.isdigit())
    return "_".join(dict.fromkeys(words))[:_STEM_LIMIT]
