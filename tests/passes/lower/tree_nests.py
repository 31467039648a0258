"""Small nests of every kind, with buffers: what loop transformations are tried on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from landbridge.interpreter.scalars import scalar_dtype
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.stages import view_prim
from landbridge.ir.types import shape_of, tensor_type
from landbridge.passes.lower.loop_tree import LoopTree
from landbridge.passes.lower.nest import Nest, build_nests
from landbridge.passes.lower.scan import scan_nest
from landbridge.sizes.size import Extent
from landbridge.sizes.size import largest as largest_extent

from .tree_interpreter import Array, TreeInterpreter

#: The extents of the loops of a nest.
Extents: TypeAlias = tuple[Extent, ...]


def _prim(inputs: list[Extents], outputs: list[Extents], dtype: str) -> PrimBuilder:
    types = [[tensor_type(shape, dtype) for shape in shapes] for shapes in (inputs, outputs)]
    return PrimBuilder("kernel", *types)


def _only_nest(prim: PrimBuilder) -> Nest:
    (nest,) = build_nests(view_prim(prim.finish()))
    return nest


def elementwise(extents: Extents, dtype: str) -> Nest:
    """``y[i, j] = (a[i, j] + b[j]) * a[i, j]``, in two stages."""
    p = _prim([extents, extents[1:]], [extents], dtype)
    between = p.temp(extents, dtype)
    ins = [(p.inputs[0], lambda i, j: (i, j)), (p.inputs[1], lambda i, j: (j,))]
    p.generic("pp", extents, ins, [(between, lambda i, j: (i, j))], lambda s, a, b: a + b)
    ins = [(between, lambda i, j: (i, j)), (p.inputs[0], lambda i, j: (i, j))]
    p.generic("pp", extents, ins, [(p.outputs[0], lambda i, j: (i, j))], lambda s, a, b: a * b)
    return _only_nest(p)


def product(extents: Extents, dtype: str) -> Nest:
    """``y[i, j] = -sum(a[i, k] * b[k, j])``."""
    m, n, k = extents
    p = _prim([(m, k), (k, n)], [(m, n)], dtype)
    total = p.temp((m, n), dtype)
    ins = [(p.inputs[0], lambda i, j, k: (i, k)), (p.inputs[1], lambda i, j, k: (k, j))]
    p.generic("ppr", extents, ins, [(total, lambda i, j, k: (i, j))], lambda s, acc, a, b: acc + a * b, init=0)
    negated = (total, lambda i, j: (i, j))
    p.generic("pp", (m, n), [negated], [(p.outputs[0], lambda i, j: (i, j))], lambda s, v: s.const(0, dtype) - v)
    return _only_nest(p)


def convolution(extents: Extents, dtype: str) -> Nest:
    """A convolution of one channel in a padded image: ``y[i, j] = sum(x[i + r - 1, j + c - 1] * w[r, c])``."""
    height, width, rows, columns = extents
    p = _prim([(height, width), (rows, columns)], [(height, width)], dtype)
    low, high = [1, 1], [largest_extent(rows - 2, 0), largest_extent(columns - 2, 0)]
    x = p.pad(p.inputs[0], low, high, 0)
    ins = [(x, lambda i, j, r, c: (i + r, j + c)), (p.inputs[1], lambda i, j, r, c: (r, c))]
    out = [(p.outputs[0], lambda i, j, r, c: (i, j))]
    p.generic("pprr", extents, ins, out, lambda s, acc, a, b: acc + a * b, init=0)
    return _only_nest(p)


def largest(extents: Extents, dtype: str) -> Nest:
    """``y[i] = max(x[i, j, k])``."""
    p = _prim([extents], [extents[:1]], dtype)
    out = [(p.outputs[0], lambda i, j, k: (i,))]
    ins = [(p.inputs[0], lambda i, j, k: (i, j, k))]
    p.generic("prr", extents, ins, out, lambda s, acc, a: s.maximum(acc, a), init=-100)
    return _only_nest(p)


def scan(extents: Extents, dtype: str) -> Nest:
    """``y[t, j] = x[0, j] + ... + x[t, j]`` for the iterations t, and the last of them."""
    p = _prim([extents], [extents, extents[1:]], dtype)

    def iteration(x: SSAValue, y: SSAValue, state: SSAValue) -> None:
        owned = (state, lambda t, j: (j,))
        places = [(y, lambda t, j: (t, j)), owned]
        p.generic("pp", extents, [(x, lambda t, j: (t, j)), owned], places, lambda s, v, before: [before + v] * 2)

    p.generic("p", extents[1:], [], [(p.outputs[1], lambda j: (j,))], lambda s: s.const(0, dtype))
    p.steps(extents[0], [p.inputs[0], *p.outputs], iteration)
    nest = scan_nest(view_prim(p.finish()))
    assert nest is not None
    return nest


def in_place(extents: Extents, dtype: str) -> Nest:
    """``y[i, j] = y[i, j] * y[i, j] + 1``."""
    p = _prim([], [extents], dtype)
    owned = (p.outputs[0], lambda i, j: (i, j))
    p.generic("pp", extents, [owned], [owned], lambda s, v: v * v + s.const(1, dtype))
    return _only_nest(p)


def reversed_in_place(extents: Extents, dtype: str) -> Nest:
    """``y[i] = y[n - 1 - i]``: what an iteration reads depends on those before it."""
    p = _prim([], [extents], dtype)
    back = (p.outputs[0], lambda i: (AffineExpr.constant(int(extents[0]) - 1) - i,))
    p.generic("p", extents, [back], [(p.outputs[0], lambda i: (i,))], lambda s, v: v)
    return _only_nest(p)


#: The nests, each with its number of loops.
NESTS: dict[str, tuple[Callable[[Extents, str], Nest], int]] = {
    "elementwise": (elementwise, 2),
    "product": (product, 3),
    "convolution": (convolution, 4),
    "largest": (largest, 3),
    "scan": (scan, 2),
    "in place": (in_place, 2),
    "reversed in place": (reversed_in_place, 1),
}


def results(tree: LoopTree, seed: int = 0) -> list[Array]:
    """The buffers of the nest of ``tree`` after it ran, in the order in which the nest uses them."""
    rng = np.random.default_rng(seed)
    buffers: dict[SSAValue, Array] = {}
    for buffer in (a.buffer for a in tree.nest.accesses()):
        if buffer not in buffers:
            ty: Any = buffer.type
            assert isinstance(ty, MemRefType)
            kind = scalar_dtype(ty.element_type)
            count = int(np.prod(shape_of(ty)))
            drawn = rng.standard_normal(count) if kind.kind == "f" else rng.integers(-9, 10, count)
            buffers[buffer] = drawn.astype(kind)
    TreeInterpreter(tree, buffers).run()
    return list(buffers.values())
