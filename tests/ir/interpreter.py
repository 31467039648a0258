"""An interpreter of graph IR in numpy: the oracle for operators and passes.

It shares nothing with the compiler but the IR: graph operations act on ndarrays, and the body of each
``linalg.generic`` is evaluated once over the whole grid of loop indices. Slow, but real models pass through it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import arith, bufferization, func, linalg, memref
from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, MemRefType, StringAttr
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from landbridge.dtypes import numpy_dtype
from landbridge.ir.graph_ops import (
    CallOp,
    ConcatOp,
    ConstantOp,
    IfOp,
    LoopOp,
    PackOp,
    ToVDeviceOp,
    UnpackOp,
    ViewOp,
    YieldOp,
)
from landbridge.ir.module import IRModule
from landbridge.ir.plain_attributes import ints
from landbridge.ir.prim_ops import ForallOp, PadOp, StepsOp
from landbridge.ir.stages import Generic, Operand, view_generic
from landbridge.ir.types import dtype_of, element_count, shape_of
from tests.ir.interpreter_loops import run_forall
from tests.ir.interpreter_scalars import Grid, evaluate, scalar_dtype

Array: TypeAlias = np.ndarray[Any, Any]
Env: TypeAlias = dict[SSAValue, Array]

#: Loop points evaluated at once; a larger grid is cut along its longest parallel loop.
CHUNK = 1 << 23


def run_module(module: IRModule, inputs: Mapping[str, Array]) -> list[Array]:
    """The outputs of ``@main`` for inputs by name; every input must have the shape and dtype of its argument."""
    main = module.main
    names = names_of(main, "lb.input_names")
    env: Env = {}
    for name, argument in zip(names, main.body.block.args, strict=True):
        array = np.asarray(inputs[name])
        wanted = (shape_of(argument.type), numpy_dtype(dtype_of(argument.type)))
        if (array.shape, array.dtype) != wanted:
            raise ValueError(f"input {name!r} is {array.shape} {array.dtype}, the module takes {wanted}")
        env[argument] = array
    return _run_block(module, main.body.block, env)


def names_of(main: func.FuncOp, key: str) -> list[str]:
    """The strings of ``lb.input_names`` or ``lb.output_names``."""
    attr = main.attributes[key]
    assert isinstance(attr, ArrayAttr)
    return [a.data for a in attr.data if isinstance(a, StringAttr)]


def _run_block(module: IRModule, block: Block, env: Env) -> list[Array]:
    """Run a graph block in ``env``; the operands of its terminator."""
    prims = module.prims()
    for op in block.ops:
        match op:
            case func.ReturnOp() | YieldOp():
                return [env[v] for v in op.operands]
            case ConstantOp():
                env[op.result] = module.constants[op.symbol.string_value()]
            case bufferization.AllocTensorOp():
                env[op.tensor] = _garbage(op.tensor.type)
            case CallOp():
                outputs = [np.copy(env[d]) for d in op.destinations]
                run_prim(prims[op.callee.string_value()], [*(env[v] for v in op.inputs), *outputs])
                env.update(zip(op.res, outputs, strict=True))
            case ViewOp():
                shape, start = shape_of(op.result.type), op.offset.value.data
                flat = np.ascontiguousarray(env[op.source]).reshape(-1)
                env[op.result] = flat[start : start + element_count(shape)].reshape(shape)
            case ConcatOp():
                env[op.result] = np.concatenate([env[v] for v in op.inputs], op.axis.value.data)
            case PackOp():
                env[op.result] = pack(env[op.source], ints(op.axes), ints(op.tiles))
            case UnpackOp():
                env[op.result] = unpack(env[op.source], ints(op.axes), shape_of(op.result.type))
            case ToVDeviceOp():
                env[op.result] = env[op.source]
            case IfOp():
                taken = op.then_region if env[op.condition].item() else op.else_region
                env.update(zip(op.res, _run_block(module, taken.block, env), strict=True))
            case LoopOp():
                env.update(zip(op.res, _run_loop(module, op, env), strict=True))
            case _:
                raise TypeError(f"{op.name} is no graph operation that the interpreter knows")
    raise TypeError("a graph block without a terminator")


def _run_loop(module: IRModule, op: LoopOp, env: Env) -> list[Array]:
    block, back = op.body.block, ints(op.back)
    state, rows = [env[v] for v in op.carried], [env.setdefault(r, _garbage(r.type)) for r in op.res[len(op.carried) :]]
    trips = min([op.trips.value.data, *(int(env[v].item()) for v in op.count)])
    iteration = 0
    while iteration < trips and (op.condition is None or state[op.condition.value.data].item()):
        places = [trips - 1 - iteration if backwards else iteration for backwards in back]
        elements = [env[v][at] for v, at in zip(op.scanned, places, strict=False)]
        yielded = _run_block(module, block, env | dict(zip(block.args, [*state, *elements], strict=False)))
        state = [np.copy(value) for value in yielded[: len(state)]]
        for stack, row, at in zip(rows, yielded[len(state) :], places[len(elements) :], strict=True):
            stack[at] = row
        iteration += 1
    return [*state, *rows]


def pack(array: Array, axes: Sequence[int], tiles: Sequence[int]) -> Array:
    """``lb.pack``, one cut after another; padding is poison, so that a kernel that lets it through is found out."""
    for axis, tile in zip(axes, tiles, strict=True):
        shape = list(array.shape)
        shape[axis] += -shape[axis] % tile
        padded = np.full(shape, _poison(array.dtype), array.dtype)
        padded[tuple(slice(e) for e in array.shape)] = array
        cut = padded.reshape(*shape[:axis], shape[axis] // tile, tile, *shape[axis + 1 :])
        array = np.moveaxis(cut, axis + 1, -1)
    return array


def unpack(array: Array, axes: Sequence[int], shape: Sequence[int]) -> Array:
    """``lb.unpack`` to the logical ``shape``: the cuts undone from the last to the first."""
    for axis in reversed(axes):
        joined = np.moveaxis(array, -1, axis + 1)
        old = joined.shape
        array = joined.reshape(*old[:axis], old[axis] * old[axis + 1], *old[axis + 2 :])
    return array[tuple(slice(e) for e in shape)]


def run_prim(function: func.FuncOp, arguments: Sequence[Array]) -> None:
    """Run a PrimFunc on arrays for its memrefs, inputs then outputs, which it writes."""
    env: Env = {}
    for formal, array in zip(function.body.block.args, arguments, strict=True):
        env[formal] = signless(array)
    for op in function.body.block.ops:
        match op:
            case memref.AllocOp():
                env[op.memref] = _garbage(op.memref.type)
            case arith.ConstantOp():
                env[op.result] = np.asarray(_number(op.value), scalar_dtype(op.result.type))
            case linalg.ops.FillOp():
                env[op.outputs[0]][...] = env[op.inputs[0]]
            case PadOp():
                source, target = env[op.source], env[op.destination]
                target[...] = np.asarray(_number(op.value), target.dtype)
                low = ints(op.low)
                target[tuple(slice(a, a + e) for a, e in zip(low, source.shape, strict=True))] = source
            case linalg.ops.GenericOp():
                _run_generic(view_generic(op), env)
            case StepsOp():
                _run_steps(op, env)
            case ForallOp():
                run_forall(op, env)
            case func.ReturnOp():
                return
            case _:
                raise TypeError(f"{op.name} is no stage of a PrimFunc")


def _run_steps(op: StepsOp, env: Env) -> None:
    """Stages that are iterated: in iteration t each at t of its first loop, on the arrays of the buffers themselves."""
    inside: Env = dict(zip(op.body.block.args, (env[b] for b in op.buffers), strict=True))
    for iteration in range(op.iterations):
        for stage in op.body.block.ops:
            match stage:
                case arith.ConstantOp():
                    inside[stage.result] = np.asarray(_number(stage.value), scalar_dtype(stage.result.type))
                case linalg.ops.FillOp():
                    inside[stage.outputs[0]][...] = inside[stage.inputs[0]]
                case linalg.ops.GenericOp():
                    g = view_generic(stage)
                    _run_grid(g, inside, ((iteration, iteration + 1), *((0, e) for e in g.extents[1:])))


def signless(array: Array) -> Array:
    """The array as the IR's signless integers: unsigned elements seen as signed of the same width."""
    return array.view(array.dtype.str.replace("u", "i")) if array.dtype.kind == "u" else array


def _run_generic(g: Generic, env: Env) -> None:
    """Evaluate one stage, cut into chunks of the longest parallel loop when its grid is large."""
    if 0 in g.extents:
        return
    parallel = [d for d, kind in enumerate(g.iterators) if kind == "p"]
    points = element_count(g.extents)
    contraction = _contraction(g)
    if contraction is not None and _einsum(g, contraction, env):
        return
    if points <= CHUNK or not parallel:
        _run_grid(g, env, tuple((0, e) for e in g.extents))
        return
    longest = max(parallel, key=lambda d: g.extents[d])
    step = max(1, g.extents[longest] * CHUNK // points)
    for start in range(0, g.extents[longest], step):
        stop = min(start + step, g.extents[longest])
        _run_grid(g, env, tuple((start, stop) if d == longest else (0, e) for d, e in enumerate(g.extents)))


def _run_grid(g: Generic, env: Env, ranges: tuple[tuple[int, int], ...]) -> None:
    """Evaluate the stage for the loop indices in ``ranges``: reductions point by point, parallel loops at once."""
    axes = [
        np.arange(a, b).reshape([-1 if i == d else 1 for i in range(len(ranges))]) for d, (a, b) in enumerate(ranges)
    ]
    reduced = [d for d, kind in enumerate(g.iterators) if kind == "r"]
    for point in np.ndindex(*(ranges[d][1] - ranges[d][0] for d in reduced)):
        indices = list(axes)
        for d, i in zip(reduced, point, strict=True):
            indices[d] = np.full([1] * len(ranges), ranges[d][0] + i)
        shape = tuple(1 if d in reduced else b - a for d, (a, b) in enumerate(ranges))
        scalars: dict[SSAValue, Array] = {}
        for operand in (*g.ins, *g.outs):
            where = tuple(_affine(e, indices) for e in operand.map.results)
            scalars[operand.scalar] = env[operand.buffer][where] if where else env[operand.buffer][()]
        values = evaluate(g.body, Grid(scalars, env, indices))
        for operand, value in zip(g.outs, values, strict=True):
            where = tuple(np.broadcast_to(_affine(e, indices), shape) for e in operand.map.results)
            buffer = env[operand.buffer]
            buffer[where if where else ()] = np.broadcast_to(value, shape) if where else np.asarray(value).reshape(())


def _affine(expr: AffineExpr, indices: Sequence[Array]) -> Array:
    """An index expression over grids of loop indices."""
    match expr:
        case AffineConstantExpr():
            return np.asarray(expr.value)
        case AffineDimExpr():
            return indices[expr.position]
        case AffineBinaryOpExpr():
            a, b = _affine(expr.lhs, indices), _affine(expr.rhs, indices)
            match expr.kind:
                case AffineBinaryOpKind.Add:
                    return a + b
                case AffineBinaryOpKind.Mul:
                    return a * b
                case AffineBinaryOpKind.FloorDiv:
                    return a // b
                case AffineBinaryOpKind.CeilDiv:
                    return -(-a // b)
                case AffineBinaryOpKind.Mod:
                    return a % b
    raise TypeError(f"no affine expression: {expr}")


def _linear(expr: AffineExpr, dims: int) -> tuple[list[int], int] | None:
    """(coefficient of each dim, constant) of a linear expression, else None."""
    at = [np.asarray(0)] * dims
    if "floordiv" in str(expr) or "mod" in str(expr) or "ceildiv" in str(expr):
        return None
    constant = int(_affine(expr, at))
    coefficients = []
    for d in range(dims):
        unit = list(at)
        unit[d] = np.asarray(1)
        coefficients.append(int(_affine(expr, unit)) - constant)
    return coefficients, constant


def _contraction(g: Generic) -> tuple[Operand, Operand] | None:
    """The two factors of a stage ``accumulator += a * b`` over floats."""
    if not g.reduces or len(g.outs) != 1:
        return None
    ops = list(g.body.ops)
    if len(ops) != 3 or not isinstance(ops[0], arith.MulfOp) or not isinstance(ops[1], arith.AddfOp):
        return None
    if set(ops[1].operands) != {ops[0].result, g.outs[0].scalar} or ops[2].operands[0] is not ops[1].result:
        return None
    by_scalar = {operand.scalar: operand for operand in g.ins}
    factors = [by_scalar.get(v) for v in ops[0].operands]  # type: ignore[call-overload]
    if factors[0] is None or factors[1] is None:
        return None
    return factors[0], factors[1]


def _strided(operand: Operand, g: Generic, array: Array) -> tuple[Array, list[int]] | None:
    """A view of ``array`` over the loops that its map uses, and those loops; None when the map is not linear."""
    strides, offset = [0] * len(g.extents), 0
    for axis, expr in enumerate(operand.map.results):
        linear = _linear(expr, len(g.extents))
        if linear is None:
            return None
        for d, coefficient in enumerate(linear[0]):
            strides[d] += coefficient * array.strides[axis]
        offset += linear[1] * array.strides[axis]
    if offset or not array.size:
        return None
    used = [d for d, stride in enumerate(strides) if stride]
    view = np.lib.stride_tricks.as_strided(
        array, [g.extents[d] for d in used], [strides[d] for d in used], writeable=False
    )
    return view, used


def _einsum(g: Generic, factors: tuple[Operand, Operand], env: Env) -> bool:
    """Evaluate a contraction by einsum (BLAS); False when its maps need the general path."""
    views = [_strided(f, g, env[f.buffer]) for f in factors]
    out = g.outs[0]
    if views[0] is None or views[1] is None:
        return False
    if not all(isinstance(e, AffineDimExpr) or str(e) == "0" for e in out.map.results):
        return False
    retained = [e.position for e in out.map.results if isinstance(e, AffineDimExpr)]
    lost = [d for d, k in enumerate(g.iterators) if k == "p" and g.extents[d] > 1 and d not in retained]
    seen = {d for view in views if view for d in view[1]}
    if lost or any(d not in seen and g.extents[d] > 1 for d in range(len(g.extents))):
        return False
    shown = [d for d in retained if d in seen]
    total = np.einsum(*views[0], *views[1], shown, optimize=True)
    target = env[out.buffer]
    target += total.reshape(target.shape).astype(target.dtype)
    return True


def _number(attr: Attribute) -> float | int:
    if isinstance(attr, FloatAttr | IntegerAttr):
        return attr.value.data
    raise TypeError(f"{attr} is no scalar constant")


def _poison(dtype: np.dtype[Any]) -> Any:
    """A value that shows when it is read before it is written."""
    return True if dtype.kind == "b" else 77 if dtype.kind in "iu" else np.nan


def _garbage(ty: Attribute) -> Array:
    dtype = scalar_dtype(ty.element_type) if isinstance(ty, MemRefType) else numpy_dtype(dtype_of(ty))
    return np.full(shape_of(ty), _poison(dtype), dtype)
