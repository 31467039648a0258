"""Operators of networks, written by hand for tests of fusion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.prim_builder import Access, PrimBuilder
from landbridge.ir.scalars import Value
from landbridge.ir.types import shape_of


def elementwise(g: GraphBuilder, f: Callable[..., Value], *inputs: SSAValue) -> SSAValue:
    return g.elementwise(g.node or "ew", list(inputs), f)


def constant(g: GraphBuilder, *shape: int, seed: int = 0) -> SSAValue:
    return g.constant(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def conv(g: GraphBuilder, x: SSAValue, channels: int, kernel: int = 1, seed: int = 0) -> SSAValue:
    """A convolution that keeps height and width."""
    n, c, h, w = shape_of(x.type)
    weights = constant(g, channels, c, kernel, kernel, seed=seed)
    pad = kernel // 2

    def build(p: PrimBuilder) -> None:
        source = p.pad(p.inputs[0], [0, 0, pad, pad], [0, 0, pad, pad], 0.0) if pad else p.inputs[0]
        p.generic(
            "pppprrr",
            [n, channels, h, w, c, kernel, kernel],
            [
                (source, lambda n, o, h, w, i, kh, kw: (n, i, h + kh, w + kw)),
                (p.inputs[1], lambda n, o, h, w, i, kh, kw: (o, i, kh, kw)),
            ],
            [(p.outputs[0], lambda n, o, h, w, i, kh, kw: (n, o, h, w))],
            lambda s, acc, a, b: acc + a * b,
            init=0.0,
        )

    return g.call("conv", [x, weights], [((n, channels, h, w), "float32")], build)[0]


def transpose(g: GraphBuilder, x: SSAValue, order: Sequence[int]) -> SSAValue:
    shape = [shape_of(x.type)[a] for a in order]

    def build(p: PrimBuilder) -> None:
        source: Access = (p.inputs[0], lambda *d: [d[list(order).index(a)] for a in range(len(order))])
        p.generic("p" * len(order), shape, [source], [(p.outputs[0], lambda *d: d)], lambda s, a: a)

    return g.call("transpose", [x], [(shape, "float32")], build)[0]


def slice_last(g: GraphBuilder, x: SSAValue, first: int, count: int, step: int = 1) -> SSAValue:
    shape = [*shape_of(x.type)[:-1], count]

    def build(p: PrimBuilder) -> None:
        source: Access = (p.inputs[0], lambda *d: [*d[:-1], d[-1] * step + first])
        p.generic("p" * len(shape), shape, [source], [(p.outputs[0], lambda *d: d)], lambda s, a: a)

    return g.call("slice", [x], [(shape, "float32")], build)[0]


def reduce_last(g: GraphBuilder, x: SSAValue, keep: bool = True, kind: str = "mean") -> SSAValue:
    """Mean or maximum over the last axis."""
    shape = shape_of(x.type)
    rank = len(shape)
    result = [*shape[:-1], 1] if keep else list(shape[:-1])

    def to(*d: Any) -> Sequence[Any]:
        return [*d[:-1], 0] if keep else d[:-1]

    def build(p: PrimBuilder) -> None:
        ins: list[Access] = [(p.inputs[0], lambda *d: d)]
        loops = "p" * (rank - 1) + "r"
        if kind == "max":
            p.generic(loops, shape, ins, [(p.outputs[0], to)], lambda s, acc, a: s.maximum(acc, a), init=-np.inf)
            return
        total = p.temp(result, "float32")
        p.generic(loops, shape, ins, [(total, to)], lambda s, acc, a: acc + a, init=0.0)
        same: list[Access] = [(total, lambda *d: d)]
        p.generic("p" * len(result), result, same, [(p.outputs[0], lambda *d: d)], lambda s, a: a * (1 / shape[-1]))

    return g.call(f"reduce_{kind}", [x], [(result, "float32")], build)[0]
