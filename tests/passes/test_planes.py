"""Concatenations of numbers: planes that are written in place, and one transposition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tests.passes.graphs import graph
from tests.passes.native import NativeRun
from tests.passes.nets import conv, elementwise, transpose
from tests.passes.test_bufferize import build as compile_module

from landbridge.ir.graph_ops import CallOp, ConcatOp
from landbridge.ir.module import IRModule
from landbridge.passes.fuse.planes import concatenate_planes
from landbridge.passes.registry import run_pipeline
from landbridge.targets import Target

Array = np.ndarray[Any, Any]


def concatenated(shape: Sequence[int], axis: int, parts: int) -> Callable[..., Any]:
    """Parts that kernels compute, side by side."""

    def build(g: Any, *inputs: Any) -> list[Any]:
        assert all(tuple(shape) == tuple(x.type.get_shape()) for x in inputs) and len(inputs) == parts
        return [g.concat([elementwise(g, lambda s, a: a + 1.0, x) for x in inputs], axis)]

    return build


def inputs_of(shape: Sequence[int], parts: int) -> list[Array]:
    return [np.random.default_rng(i).standard_normal(shape, np.float32) for i in range(parts)]


def axes(module: IRModule) -> list[int]:
    return [op.axis.value.data for op in module.main.walk() if isinstance(op, ConcatOp)]


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("shape", "axis", "parts", "planes"),
    [
        ((1, 9, 31, 1), 3, 8, True),
        ((277, 1), 1, 2, True),
        ((7, 40, 1, 1), 2, 3, True),
        ((270, 1), 1, 19, True),
        ((1, 1, 290), 1, 3, False),  # parts are lines
        ((277, 2), 1, 3, False),
        ((30, 1), 1, 3, False),  # few numbers
        ((290, 1), 0, 2, False),
    ],
)
def test_numbers_side_by_side_are_planes_transposed(
    shape: tuple[int, ...], axis: int, parts: int, planes: bool
) -> None:
    build = concatenated(shape, axis, parts)
    module = run_pipeline(graph([(shape, "float32")] * parts, build), ["fuse"])
    assert (axes(module) == [0]) is (planes or axis == 0)
    xs = inputs_of(shape, parts)
    (found,) = NativeRun(compile_module(module))(*xs)
    np.testing.assert_array_equal(found, np.concatenate([x + 1 for x in xs], axis))


def test_no_part_is_copied_and_what_transposes_the_result_back_reads_planes() -> None:
    """Channels last, then first: of four maps each is computed in its place, and only the last kernel is left."""
    shape = (1, 14, 20, 1)

    def build(g: Any, *inputs: Any) -> list[Any]:
        (whole,) = concatenated(shape, 3, 4)(g, *inputs)
        return [elementwise(g, lambda s, a: a * 2.0, transpose(g, whole, [0, 3, 1, 2]))]

    module = run_pipeline(graph([(shape, "float32")] * 4, build), ["fuse"])
    assert len([op for op in module.main.walk() if isinstance(op, CallOp)]) == 4 + 1
    xs = inputs_of(shape, 4)
    compiled = compile_module(module)
    assert not [m for m in module.prims() if m.startswith("copy")]
    (found,) = NativeRun(compiled)(*xs)
    wanted = np.concatenate([x + 1 for x in xs], 3).transpose(0, 3, 1, 2) * 2
    np.testing.assert_array_equal(found, wanted)


def test_parts_that_are_inputs_or_the_same_are_copied_to_their_planes() -> None:
    shape = (300, 1)

    def build(g: Any, x: Any, y: Any) -> list[Any]:
        both = elementwise(g, lambda s, a, b: a * b, x, y)
        return [g.concat([x, both, both, y], 1), both]

    module = run_pipeline(graph([(shape, "float32")] * 2, build), ["fuse"])
    x, y = inputs_of(shape, 2)
    found, both = NativeRun(compile_module(module))(x, y)
    np.testing.assert_array_equal(found, np.concatenate([x, x * y, x * y, y], 1))
    np.testing.assert_array_equal(both, x * y)


def test_what_a_convolution_makes_may_be_in_blocks_and_stays_a_part() -> None:
    def build(g: Any, x: Any) -> list[Any]:
        made = [conv(g, x, 32, seed=i) for i in range(2)]
        return [g.concat(made, 3)]

    module = graph([((1, 3, 20, 1), "float32")], build)
    concatenate_planes(module)
    assert axes(module) == [3]


def test_devices_without_vectors_of_a_cpu_keep_them() -> None:
    module = graph([((277, 1), "float32")] * 2, concatenated((277, 1), 1, 2))
    module.targets = (Target("opencl -device-class=gpu"),)
    concatenate_planes(module)
    assert axes(module) == [1]
