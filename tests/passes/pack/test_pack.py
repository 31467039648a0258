"""Packing keeps every result, and leaves layout changes only where plain and blocked values meet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.passes.graphs import graph
from tests.passes.native import NativeRun
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from landbridge.codegen.llvm import generate
from landbridge.emit import emit
from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.graph_ops import CallOp, PackOp, UnpackOp
from landbridge.ir.module import IRModule
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.types import shape_of
from landbridge.passes.lower import lower_module
from landbridge.passes.registry import run_pipeline

BACK = ("fold", "dedup", "assign_targets", "bufferize", "inplace", "moves", "plan")


class Net:
    """Builds a network with seeded weights."""

    def __init__(self, g: GraphBuilder) -> None:
        self.g, self.rng = g, np.random.default_rng(3)

    def weights(self, *shape: int) -> SSAValue:
        return self.g.constant((self.rng.standard_normal(shape) * 0.3).astype(np.float32), "w")

    def conv(self, x: SSAValue, channels: int, kernel: int, stride: int = 1, groups: int = 1) -> SSAValue:
        n, c, h, w = shape_of(x.type)
        pad = kernel // 2
        oh, ow = (h + 2 * pad - kernel) // stride + 1, (w + 2 * pad - kernel) // stride + 1
        weights = self.weights(channels, c // groups, kernel, kernel)

        def build(p: PrimBuilder) -> None:
            source = p.pad(p.inputs[0], [0, 0, pad, pad], [0, 0, pad, pad], 0.0) if pad else p.inputs[0]
            if groups == 1:
                p.generic(
                    "pppprrr",
                    [n, channels, oh, ow, c, kernel, kernel],
                    [
                        (source, lambda n, o, y, x, i, a, b: (n, i, y * stride + a, x * stride + b)),
                        (p.inputs[1], lambda n, o, y, x, i, a, b: (o, i, a, b)),
                    ],
                    [(p.outputs[0], lambda n, o, y, x, i, a, b: (n, o, y, x))],
                    lambda s, acc, a, b: acc + a * b,
                    init=0.0,
                )
            else:
                p.generic(
                    "pppprr",
                    [n, c, oh, ow, kernel, kernel],
                    [
                        (source, lambda n, o, y, x, a, b: (n, o, y * stride + a, x * stride + b)),
                        (p.inputs[1], lambda n, o, y, x, a, b: (o, 0, a, b)),
                    ],
                    [(p.outputs[0], lambda n, o, y, x, a, b: (n, o, y, x))],
                    lambda s, acc, a, b: acc + a * b,
                    init=0.0,
                )

        return self.g.call("conv", [x, weights], [((n, channels, oh, ow), "float32")], build)[0]

    def bias(self, x: SSAValue) -> SSAValue:
        return self.g.elementwise("bias", [x, self.weights(shape_of(x.type)[1], 1, 1)], lambda s, a, b: a + b)

    def relu(self, x: SSAValue) -> SSAValue:
        return self.g.elementwise("relu", [x], lambda s, a: s.maximum(a, 0.0))

    def average(self, x: SSAValue) -> SSAValue:
        n, c, h, w = shape_of(x.type)

        def build(p: PrimBuilder) -> None:
            p.generic(
                "pprr",
                [n, c, h, w],
                [(p.inputs[0], lambda *d: d)],
                [(p.outputs[0], lambda n, c, h, w: (n, c, 0, 0))],
                lambda s, acc, a: acc + a,
                init=0.0,
            )

        total = self.g.call("sum", [x], [((n, c, 1, 1), "float32")], build)[0]
        return self.g.elementwise("scale", [total], lambda s, a: a * (1 / (h * w)))


def squeeze_excite(g: GraphBuilder, x: SSAValue) -> Sequence[SSAValue]:
    """Channels that fill no whole block, a gate, a residual that reads its own input, concatenations of both kinds."""
    n = Net(g)
    stem = n.relu(n.bias(n.conv(x, 24, 3, 2)))
    wide = n.bias(n.conv(n.relu(n.conv(stem, 24, 3, 1, 24)), 40, 1))
    gate = n.conv(n.relu(n.conv(n.average(wide), 10, 1)), 40, 1)
    gate = g.elementwise("sigmoid", [gate], lambda s, a: s.sigmoid(a))
    scaled = g.elementwise("mul", [wide, gate], lambda s, a, b: a * b)
    residual = g.elementwise("add", [scaled, n.conv(scaled, 40, 3)], lambda s, a, b: a + b)
    ragged = n.bias(n.conv(g.concat([residual, stem], 1), 32, 1))
    whole = g.concat([ragged, n.conv(ragged, 16, 3)], 1)
    # a reciprocal: what a padded lane holds may not be finite
    return [g.elementwise("reciprocal", [n.conv(whole, 24, 1)], lambda s, a: 1.0 / (a * a + 1.0)), gate]


def classifier(g: GraphBuilder, x: SSAValue) -> Sequence[SSAValue]:
    """A matrix multiplication whose columns fill no whole panel, behind a convolution."""
    n = Net(g)
    features = n.average(n.relu(n.conv(x, 48, 3)))
    flat = g.reshape(features, (1, 48))
    weights, bias = n.weights(48, 37), n.weights(37)

    def build(p: PrimBuilder) -> None:
        p.generic(
            "ppr",
            [1, 37, 48],
            [(p.inputs[0], lambda i, j, k: (i, k)), (p.inputs[1], lambda i, j, k: (k, j))],
            [(p.outputs[0], lambda i, j, k: (i, j))],
            lambda s, acc, a, b: acc + a * b,
            init=0.0,
        )

    y = g.call("matmul", [flat, weights], [((1, 37), "float32")], build)[0]
    return [g.elementwise("bias", [y, bias], lambda s, a, b: a + b)]


NETS = {"squeeze_excite": squeeze_excite, "classifier": classifier}


def native(module: IRModule, x: np.ndarray) -> list[np.ndarray]:
    module = run_pipeline(module, BACK)
    lowered: ModuleOp = lower_module(module)
    return NativeRun(replace(emit(module, lowered), modules=(generate(lowered, module.targets[0]),)))(x)


@pytest.mark.sample(2)
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("name", NETS)
def test_packed_network_gives_the_same(name: str, fused: bool) -> None:
    x = np.random.default_rng(1).standard_normal((1, 3, 33, 33)).astype(np.float32)
    front = ("fold", "fuse") if fused else ("fold",)
    plain = native(run_pipeline(graph([(x.shape, "float32")], NETS[name]), front), x)
    packed = native(run_pipeline(graph([(x.shape, "float32")], NETS[name]), (*front, "pack")), x)
    for a, b in zip(plain, packed, strict=True):
        # the same sums in another order: float32 rounding of some hundred terms
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5 * float(np.abs(a).max()))


def operations(module: IRModule) -> Counter[str]:
    return Counter(op.name for op in module.main.body.block.ops)


def test_layouts_change_only_where_they_meet() -> None:
    def build(g: GraphBuilder, x: SSAValue) -> Sequence[SSAValue]:
        n = Net(g)
        y = n.relu(n.conv(n.relu(n.conv(n.relu(n.conv(x, 32, 3)), 32, 3)), 32, 1))
        return [g.concat([y, n.conv(y, 16, 1)], 1)]

    module = run_pipeline(graph([((1, 3, 16, 16), "float32")], build), ("fold", "fuse", "pack", "fold"))
    counts = operations(module)
    assert counts[PackOp.name] == 0, "the stem reads the plain input, everything after it is blocked"
    assert counts[UnpackOp.name] == 1, "the graph's output is plain"


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("channels", "width", "stride", "blocked"),
    [
        (8, 32, 1, False),  # 32 pixels fill two vectors of 16, 8 channels half of one
        (12, 60, 1, False),
        (12, 17, 1, True),  # 17 pixels are 17 of 32 lanes
        (8, 32, 2, True),  # every second pixel
        (16, 32, 1, True),
    ],
)
def test_few_channels_stay_plain_where_lines_fill_vectors(
    channels: int, width: int, stride: int, *, blocked: bool
) -> None:
    def build(g: GraphBuilder, x: SSAValue) -> Sequence[SSAValue]:
        return [Net(g).conv(x, channels, 3, stride)]

    shape = (1, 3, 9, width)
    module = run_pipeline(graph([(shape, "float32")], build), ("fold", "pack", "fold"))
    assert (operations(module)[UnpackOp.name] == 1) is blocked
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    (found,), (plain,) = native(module, x), native(run_pipeline(graph([(shape, "float32")], build), ("fold",)), x)
    np.testing.assert_allclose(found, plain, rtol=1e-5, atol=1e-5)


def test_few_channels_of_blocked_data_are_blocked() -> None:
    def build(g: GraphBuilder, x: SSAValue) -> Sequence[SSAValue]:
        n = Net(g)
        return [n.conv(n.conv(x, 32, 3), 8, 1)]

    module = run_pipeline(graph([((1, 3, 9, 32), "float32")], build), ("fold", "pack", "fold"))
    assert operations(module)[UnpackOp.name] == 1 and operations(module)[PackOp.name] == 0
    assert (
        shape_of(next(op for op in module.main.body.block.ops if isinstance(op, UnpackOp)).operands[0].type)[-1] == 16
    )


def test_weights_are_packed_at_compile_time() -> None:
    module = run_pipeline(graph([((1, 3, 33, 33), "float32")], classifier), ("fold", "fuse", "pack", "fold"))
    shapes = {array.shape for array in module.constants.values()}
    assert (3, 3, 3, 3, 16) in shapes, "48 x 3 x 3 x 3 in blocks of 16 output channels"
    assert (3, 48, 16) in shapes, "48 x 37 in panels of 16 columns"
    assert all(isinstance(op, CallOp) or op.name != PackOp.name for op in module.main.body.block.ops)


def test_text_survives(tmp_path: object) -> None:
    module = run_pipeline(graph([((1, 3, 33, 33), "float32")], squeeze_excite), ("fold", "fuse", "pack"))
    text = module.print()
    again = IRModule.parse(text, module.targets, module.vdevices, module.constants)
    assert again.print() == text
    assert isinstance(again.main, func.FuncOp)


def test_programs_of_one_model_share_packed_weights() -> None:
    weights = np.random.default_rng(0).standard_normal((32, 32, 3, 3)).astype(np.float32)
    modules = [graph([((1, 32, 8, width), "float32")], lambda g, x: [Net(g).conv(x, 32, 3)]) for width in (8, 16)]
    found = []
    for packs in (None, {}):
        for built in modules:
            (symbol,) = built.constants
            module = replace(built, op=built.op.clone(), constants={symbol: weights}, packs=packs)
            packed = run_pipeline(module, ["pack", "fold"]).constants
            found += [array for array in packed.values() if array.shape != weights.shape]
    alone, *others = found
    assert len(others) == 3
    assert [np.shares_memory(alone, each) for each in others] == [False, False, False]
    assert np.shares_memory(*others[1:])
    assert all(np.array_equal(alone, each) for each in others)
