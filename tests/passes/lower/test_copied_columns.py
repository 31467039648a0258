"""Products whose columns lie apart copy them first: the same sums to the bit, whatever tasks run together."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from tests.codegen.native import kernel_of
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ModuleOp

from landbridge.analysis.verify_accesses import verify_accesses
from landbridge.codegen.registry import codegen_for
from landbridge.ir.kernel_attributes import task_count
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.types import element_count, tensor_type
from landbridge.passes.lower.prims import lower_prim, vector_unit_of
from landbridge.passes.lower.schedule import VectorUnit
from landbridge.targets import Target
from landbridge.vm.code_image import load_image

from .kernels import Array

HERE = Target("llvm")
#: Caches of Ice Lake, whatever the CPU here has, and none that is known.
CACHES = replace(vector_unit_of(HERE), l1_bytes=48 << 10, l2_bytes=1280 << 10)
UNKNOWN = replace(CACHES, l1_bytes=0, l2_bytes=0)


@dataclass(frozen=True)
class Product:
    """``batches`` products of ``rows`` by ``terms`` and ``terms`` by ``columns``, whose rows are ``pitch`` apart;
    then a bias and a maximum. ``halves``: loops that the terms are of."""

    rows: int
    terms: int
    columns: int
    pitch: int = 0
    batches: int = 1
    halves: int = 1
    dtype: str = "float32"

    ROWS: ClassVar[int] = 112

    def shapes(self) -> list[tuple[int, ...]]:
        """Data, columns, bias and results."""
        part = self.terms // self.halves
        return [
            (self.batches, self.rows, self.halves, part),
            (self.batches, self.halves, part, self.pitch or self.columns),
            (self.columns,),
            (self.batches, self.rows, self.columns),
        ]

    def lowered(self, machine: VectorUnit) -> func.FuncOp:
        """The kernel for ``machine``, every access of which is proved."""
        types = [tensor_type(shape, self.dtype) for shape in self.shapes()]
        p = PrimBuilder("kernel", types[:3], types[3:])
        extents = [self.batches, self.rows, self.columns]
        sums = p.temp(self.shapes()[3], self.dtype)
        p.generic(
            "ppprr",
            [*extents, self.halves, self.terms // self.halves],
            [(p.inputs[0], lambda b, m, n, h, k: (b, m, h, k)), (p.inputs[1], lambda b, m, n, h, k: (b, h, k, n))],
            [(sums, lambda b, m, n, h, k: (b, m, n))],
            lambda s, acc, x, w: acc + x * w,
            init=0.0,
        )
        p.generic(
            "ppp",
            extents,
            [(sums, lambda *d: d), (p.inputs[2], lambda b, m, n: (n,))],
            [(p.outputs[0], lambda *d: d)],
            lambda s, a, b: s.maximum(a + b, 0),
        )
        lowered = lower_prim(p.finish(), machine)
        verify_accesses(lowered)
        return lowered

    def inputs(self) -> list[Array]:
        """Data, columns and bias."""
        rng = np.random.default_rng(7)
        return [rng.standard_normal(shape).astype(self.dtype) for shape in self.shapes()[:3]]

    def wanted(self, x: Array, w: Array, b: Array) -> Array:
        """The results, in float64."""
        x, w = x.astype(np.float64), w.astype(np.float64)[..., : self.columns]
        return np.maximum(np.einsum("bmhk,bhkn->bmn", x, w) + b.astype(np.float64), 0)


def copied_bytes(lowered: func.FuncOp) -> int:
    """The bytes of the largest copy, or 0."""
    rooms = [op.memref.type for op in lowered.walk() if isinstance(op, memref.AllocaOp)]
    return max((element_count(r.get_shape()) * r.element_type.size for r in rooms), default=0)  # type: ignore[attr-defined]


def ran(lowered: func.FuncOp, case: Product, together: int) -> Array:
    """The result, by calls of ``together`` tasks, the last first."""
    tasks = task_count(lowered)
    assert isinstance(tasks, int)
    image = load_image(codegen_for("llvm")(ModuleOp([lowered]), HERE).image)
    kernel = kernel_of(image, "kernel")
    inputs, result = case.inputs(), np.full(case.shapes()[3], np.nan, case.dtype)
    arguments = (ctypes.c_void_p * 4)(*(a.ctypes.data for a in [*inputs, result]))
    for first in reversed(range(0, tasks, together)):
        kernel(ctypes.addressof(arguments), first, min(first + together, tasks))
    return result


CASES = [
    Product(rows=120, terms=700, columns=64, pitch=1024),
    Product(rows=301, terms=830, columns=1029),
    Product(rows=260, terms=420, columns=37, pitch=2048),
    Product(rows=115, terms=700, columns=48, pitch=1024, batches=3, halves=2),
    Product(rows=130, terms=400, columns=70, pitch=512, dtype="float64"),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("vector_bytes", "registers"), [(64, 32), (32, 16)])
@pytest.mark.parametrize("case", CASES, ids=repr)
def test_sums_of_copies_are_the_same_to_the_bit_and_right(case: Product, vector_bytes: int, registers: int) -> None:
    """Vectors that the machine has not become several of its own."""
    unit = {"vector_bytes": vector_bytes, "registers": registers}
    copying, plain = case.lowered(replace(CACHES, **unit)), case.lowered(replace(UNKNOWN, **unit))
    assert copied_bytes(copying) and not copied_bytes(plain)
    found = [ran(copying.clone(), case, together) for together in (1, 3, 1000)]
    cached = ran(plain, case, 1)
    assert all(np.array_equal(each, cached) for each in found)
    wanted = case.wanted(*case.inputs())
    # whose rounding errors add up as in a walk, of 512 steps at most
    unit_error = float(np.finfo(case.dtype).eps)
    np.testing.assert_allclose(cached, wanted, rtol=0, atol=unit_error * min(case.terms, 512) ** 0.5 * wanted.max())


AVX512 = replace(CACHES, vector_bytes=64, registers=32)


def test_a_copy_is_of_the_columns_of_a_tile_alone() -> None:
    """Four vectors of 16 in each of 700 iterations, of more than 64."""
    assert copied_bytes(CASES[0].lowered(AVX512)) == 700 * 4 * 64
    assert copied_bytes(replace(CASES[0], columns=1000).lowered(AVX512)) <= 700 * 6 * 64


def test_columns_that_are_no_longer_than_a_vector_or_lie_in_many_sets_stay() -> None:
    assert not copied_bytes(replace(CASES[0], pitch=64).lowered(AVX512)), "a panel"
    assert not copied_bytes(replace(CASES[0], pitch=1040).lowered(AVX512)), "rows of 65 lines: in all sets"
    assert not copied_bytes(replace(CASES[0], terms=200).lowered(AVX512)), "200 rows of 4 KiB fit 32 sets"


def test_rows_that_are_no_whole_lines_are_copied_unless_l1_keeps_them() -> None:
    assert copied_bytes(replace(CASES[0], pitch=1027).lowered(AVX512))
    assert not copied_bytes(replace(CASES[0], pitch=1027, terms=300).lowered(AVX512))


def test_few_rows_do_not_copy() -> None:
    assert not copied_bytes(replace(CASES[0], rows=Product.ROWS - 1).lowered(AVX512))


def test_a_copy_fits_half_of_the_cache_and_the_stack() -> None:
    long = replace(CASES[0], terms=6000)
    assert not copied_bytes(long.lowered(AVX512))
    assert 0 < copied_bytes(replace(long, terms=4000).lowered(AVX512)) <= 1 << 19
    assert not copied_bytes(replace(long, terms=2000).lowered(replace(AVX512, l2_bytes=256 << 10)))


def test_few_columns_are_copied_by_tasks_of_some_rows_each() -> None:
    few, many = replace(CASES[0], rows=1000), replace(CASES[0], rows=1000, columns=1024)
    assert task_count(few.lowered(AVX512)) == 1000 // Product.ROWS + 1, "and the rows that are left"
    tasks = task_count(many.lowered(AVX512))
    assert isinstance(tasks, int) and 16 <= tasks <= 1024 // 16


def test_a_sum_of_one_term_copies_nothing() -> None:
    assert not copied_bytes(replace(CASES[0], terms=1).lowered(AVX512))
