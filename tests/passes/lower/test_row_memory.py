"""Kernels whose operands lie in rows, against numpy: rows are scattered and guarded, so that every access counts."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from math import prod
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.codegen.native import kernel_of
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, IndexType, MemRefType, ModuleOp, NoneAttr, f32
from xdsl.ir import Block, Region

from landbridge.codegen.registry import codegen_for
from landbridge.dtypes import dtype_name
from landbridge.errors import CodegenError
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.types import VDeviceAttr, tensor_type
from landbridge.passes.lower import lower_prim, vector_unit_of
from landbridge.passes.lower.access import Linear
from landbridge.passes.lower.row_memory import PITCH, split
from landbridge.targets import Target
from landbridge.testing.sim_scratch_memory import GUARD_BYTES, POISON, Handle, table
from landbridge.vm.code_image import load_image

Array = np.ndarray[Any, Any]
#: Where an operand lies: its axis separators, or None for flat memory.
Separators = Sequence[int] | None

TARGETS = ["llvm", "llvm -mcpu=generic", "c", "c -mcpu=generic -cflags=-DLB_PORTABLE,-O1"]
RNG = np.random.default_rng(7)


class Rows:
    """An array in scattered rows, as a kernel takes it."""

    def __init__(self, array: Array, separators: Sequence[int], random: Random) -> None:
        shape, first = array.shape, separators[0]
        self.shape, self.dtype = shape, array.dtype
        count, columns = prod(shape[:first]), prod(shape[first:])
        self.handle: Handle = table("rows", count, columns * array.itemsize, 0, 4, random)
        for row, content in zip(self.handle.rows, array.reshape(count, columns), strict=True):
            row.block.data[:] = np.ascontiguousarray(content).view(np.uint8)  # type: ignore[union-attr]
        self.words = (ctypes.c_uint64 * max(count, 1))(*(row.block.address for row in self.handle.rows))  # type: ignore[union-attr]
        self.address = ctypes.addressof(self.words)

    def read(self) -> Array:
        assert not any(block.damaged() for block in self.handle.blocks()), "a kernel wrote beside its rows"
        rows = [row.block.data.view(self.dtype) for row in self.handle.rows]  # type: ignore[union-attr]
        return np.concatenate([*rows, np.empty(0, self.dtype)]).reshape(self.shape)


class Flat:
    """An array in flat memory between guards."""

    def __init__(self, array: Array) -> None:
        self.raw = np.full(array.nbytes + 2 * GUARD_BYTES, POISON, np.uint8)
        self.array = self.raw[GUARD_BYTES:-GUARD_BYTES].view(array.dtype).reshape(array.shape)
        self.array[...] = array
        self.address = self.array.ctypes.data

    def read(self) -> Array:
        assert (self.raw[:GUARD_BYTES] == POISON).all() and (self.raw[-GUARD_BYTES:] == POISON).all()
        return self.array


def run(
    build: Callable[[PrimBuilder], None],
    inputs: Sequence[tuple[Array, Separators]],
    output: tuple[tuple[int, ...], str, Separators],
    target: str = "llvm",
) -> Array:
    """The output of a PrimFunc whose operands lie where they are said to; its tasks run last first."""
    resolved, random = Target(target), Random(5)

    def place(separators: Separators) -> VDeviceAttr:
        return VDeviceAttr.of() if separators is None else VDeviceAttr.of(0, "global.vtcm", separators)

    shape, dtype, separators = output
    prim = PrimBuilder(
        "kernel",
        [tensor_type(a.shape, dtype_name(a.dtype), place(s)) for a, s in inputs],
        [tensor_type(shape, dtype, place(separators))],
    )
    build(prim)
    lowered = lower_prim(prim.finish(), vector_unit_of(resolved))
    lowered.verify()
    image = load_image(codegen_for(resolved.kind)(ModuleOp([lowered]), resolved).image)
    kernel = kernel_of(image, "kernel")
    garbage = np.frombuffer(RNG.bytes(prod(shape) * np.dtype(dtype).itemsize), dtype).reshape(shape)
    operands = [
        Flat(np.ascontiguousarray(a)) if s is None else Rows(np.ascontiguousarray(a), s, random)
        for a, s in [*inputs, (garbage, separators)]
    ]
    arguments = (ctypes.c_void_p * len(operands))(*(operand.address for operand in operands))
    for task in reversed(range(lowered.attributes["lb.tasks"].value.data)):  # type: ignore[attr-defined]
        kernel(ctypes.addressof(arguments), task, task + 1)
    for operand, (array, _) in zip(operands, inputs, strict=False):
        np.testing.assert_array_equal(operand.read(), array)
    return operands[-1].read()


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape, dtype=np.float32)


def close(actual: Array, expected: Any, terms: int = 1) -> None:
    """Equal up to float32 rounding of ``terms`` additions: sqrt(terms) x 2^-23 x 4 of the largest magnitude."""
    wide = np.asarray(expected, np.float64)
    limit = 4 * 2.0**-23 * max(terms, 1) ** 0.5 * max(float(np.abs(wide).max(initial=0)), 1e-30)
    assert np.abs(actual.astype(np.float64) - wide).max(initial=0) <= limit


def add(p: PrimBuilder, shape: Sequence[int]) -> None:
    same = [(buffer, lambda *d: d) for buffer in (*p.inputs, *p.outputs)]
    p.generic("p" * len(shape), shape, same[:2], same[2:], lambda s, x, y: x + y)


def matmul(p: PrimBuilder, m: int, n: int, k: int) -> None:
    p.generic(
        "ppr",
        [m, n, k],
        [(p.inputs[0], lambda i, j, r: (i, r)), (p.inputs[1], lambda i, j, r: (r, j))],
        [(p.outputs[0], lambda i, j, r: (i, j))],
        lambda s, acc, a, b: acc + a * b,
        init=0.0,
    )


@pytest.mark.sample(8)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("shape", "where"),
    [
        ((2, 3, 4, 5), ((2,), (2,), (2,))),
        ((2, 3, 4, 37), ((3,), (1,), (2,))),
        ((6, 130), ((1,), None, (1,))),
        ((6, 33), (None, (1,), None)),
        ((40,), ((0,), (1,), (0,))),
        ((2, 3, 5, 4), ((2, 3), (2,), None)),
        ((0, 5), ((1,), (1,), (1,))),
    ],
)
def test_pointwise(shape: tuple[int, ...], where: tuple[Separators, ...], target: str) -> None:
    x, y = normal(*shape), normal(*shape)
    z = run(lambda p: add(p, shape), [(x, where[0]), (y, where[1])], (shape, "float32", where[2]), target)
    np.testing.assert_array_equal(z, x + y)


@pytest.mark.sample(6)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("where", [((1,), None, (1,)), ((1,), (1,), (1,)), (None, (1,), None), ((0,), (2,), (1,))])
@pytest.mark.parametrize("m,n,k", [(14, 65, 5), (33, 17, 40), (1, 100, 64)])
def test_matmul(m: int, n: int, k: int, where: tuple[Separators, ...], target: str) -> None:
    a, b = normal(m, k), normal(k, n)
    c = run(lambda p: matmul(p, m, n, k), [(a, where[0]), (b, where[1])], ((m, n), "float32", where[2]), target)
    close(c, a.astype(np.float64) @ b, k)


@settings(max_examples=12)
@given(
    shape=st.lists(st.integers(1, 7), min_size=1, max_size=4),
    dtype=st.sampled_from(["float32", "int8", "float64"]),
    data=st.data(),
)
def test_transposes_of_any_shape(shape: list[int], dtype: str, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    x = RNG.integers(-99, 99, shape).astype(dtype)
    first, second = (data.draw(st.none() | st.integers(0, len(shape)).map(lambda s: (s,))) for _ in range(2))
    moved = np.ascontiguousarray(x.transpose(order))

    def build(p: PrimBuilder) -> None:
        source = (p.inputs[0], lambda *d: tuple(d[order.index(axis)] for axis in range(len(shape))))
        target = (p.outputs[0], lambda *d: d)
        p.generic("p" * len(shape), moved.shape, [source], [target], lambda s, v: v)

    np.testing.assert_array_equal(run(build, [(x, first)], (moved.shape, dtype, second)), moved)


@pytest.mark.sample(5)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("where", [((3,), (2,)), ((2,), (3,)), ((1,), None), (None, (1,))])
def test_padded_windows(where: tuple[Separators, ...], target: str) -> None:
    x, w = normal(1, 5, 9, 11), normal(6, 5, 3, 3)
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    expected = np.einsum("bchwij,ocij->bohw", seen, w.astype(np.float64))

    def build(p: PrimBuilder) -> None:
        source = p.pad(p.inputs[0], [0, 0, 1, 1], [0, 0, 1, 1], 0.0)
        p.generic(
            "pppprrr",
            [1, 6, 9, 11, 5, 3, 3],
            [
                (source, lambda b, o, h, v, c, i, j: (b, c, h + i, v + j)),
                (p.inputs[1], lambda b, o, h, v, c, i, j: (o, c, i, j)),
            ],
            [(p.outputs[0], lambda b, o, h, v, c, i, j: (b, o, h, v))],
            lambda s, acc, a, k: acc + a * k,
            init=0.0,
        )

    y = run(build, [(x, where[0]), (w, None)], ((1, 6, 9, 11), "float32", where[1]), target)
    close(y, expected, 45)


@pytest.mark.sample(5)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("where", [((1,), (1,)), ((1,), None), (None, (1,)), ((0,), (2,))])
def test_rows_that_are_normalized(where: tuple[Separators, ...], target: str) -> None:
    x = normal(9, 37)

    def build(p: PrimBuilder) -> None:
        total = p.temp([9], "float32")
        source = (p.inputs[0], lambda i, j: (i, j))
        p.generic("pr", [9, 37], [source], [(total, lambda i, j: (i,))], lambda s, acc, v: acc + v * v, init=0.0)
        p.generic(
            "pp",
            [9, 37],
            [source, (total, lambda i, j: (i,))],
            [(p.outputs[0], lambda i, j: (i, j))],
            lambda s, v, t: v / t,
        )

    y = run(build, [(x, where[0])], ((9, 37), "float32", where[1]), target)
    wide = x.astype(np.float64)
    close(y, wide / (wide * wide).sum(1, keepdims=True), 37)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_elements_found_by_computed_indices(target: str) -> None:
    x = normal(5, 7, 3)
    rows, columns = RNG.integers(0, 5, 11), RNG.integers(0, 7, 11)

    def build(p: PrimBuilder) -> None:
        p.generic(
            "pp",
            [11, 3],
            [(p.inputs[1], lambda i, j: (i,)), (p.inputs[2], lambda i, j: (i,))],
            [(p.outputs[0], lambda i, j: (i, j))],
            lambda s, r, c: s.load(p.inputs[0], [s.cast(r, "index"), s.cast(c, "index"), s.index(1)], "float32"),
        )

    y = run(build, [(x, (1,)), (rows, (0,)), (columns, None)], ((11, 3), "float32", (1,)), target)
    np.testing.assert_array_equal(y, x[rows, columns])


@pytest.mark.parametrize("target", TARGETS)
def test_truth_values(target: str) -> None:
    x, y = RNG.random((6, 21)) < 0.5, RNG.random((6, 21)) < 0.5

    def build(p: PrimBuilder) -> None:
        same = [(buffer, lambda *d: d) for buffer in (*p.inputs, *p.outputs)]
        p.generic("pp", [6, 21], same[:2], same[2:], lambda s, a, b: a ^ b)

    np.testing.assert_array_equal(run(build, [(x, (1,)), (y, (1,))], ((6, 21), "bool", (1,)), target), x ^ y)


@given(row=st.integers(-99, 99), column=st.integers(-99, 99), step=st.tuples(st.integers(-9, 9), st.integers(-9, 9)))
def test_rows_and_columns_are_told_apart(row: int, column: int, step: tuple[int, int]) -> None:
    index = Linear(row * PITCH + column, {0: step[0] * PITCH + step[1], 1: step[0] * PITCH, 2: step[1]})
    rows, columns = split(index)
    assert (rows.const, columns.const) == (row, column)
    assert [(rows.coeff(d), columns.coeff(d)) for d in range(3)] == [step, (step[0], 0), (0, step[1])]


def test_a_memref_in_rows_must_be_lowered() -> None:
    space = VDeviceAttr.of(0, "global.vtcm", (2,)).space
    for shape in ((2, 3, 4), (6,)):
        block = Block(arg_types=[MemRefType(f32, shape, NoneAttr(), space), IndexType(), IndexType()])
        block.add_op(func.ReturnOp())
        function = func.FuncOp("k", FunctionType.from_lists(list(block.arg_types), []), Region(block))
        for kind in ("llvm", "c"):
            with pytest.raises(CodegenError, match="must be static rows of columns"):
                codegen_for(kind)(ModuleOp([function.clone()]), Target(kind))
