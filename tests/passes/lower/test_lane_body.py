"""Bodies that load at places they compute, on vectors, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir import SSAValue

from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.types import tensor_type
from landbridge.passes.lower import lowering_for
from landbridge.targets import Target

from .kernels import run_prim

RNG = np.random.default_rng(3)
TARGETS = ["llvm", "llvm -mcpu=haswell", "llvm -mcpu=generic", "c -mcpu=generic -cflags=-O1"]


def blended(p: PrimBuilder, rows: int, width: int, along: bool) -> None:
    """Two rows, or two columns, of the data by a table of places, blended by weights of each place."""
    data, table = p.inputs[0], p.inputs[1]

    def body(s: ScalarBuilder, acc: Value, weight: Value) -> Value:
        at: list[Any] = [s.index(0), s.index(1)]
        place = s.load(table, [at[along], s.index(2)], "int64")
        last = (width if along else rows) - 1
        at[along] = s.cast(s.minimum(s.maximum(place, 0), last), "index")
        return acc + s.load(data, at, "float32") * weight

    shape = [rows, width, 2]
    p.generic(
        "ppr",
        shape,
        [(p.inputs[2], lambda i, j, k: (j if along else i, k))],
        [(p.outputs[0], lambda i, j, k: (i, j))],
        body,
        init=0.0,
    )


@settings(max_examples=25)
@given(st.integers(1, 20), st.integers(1, 70), st.booleans(), st.sampled_from(TARGETS))
def test_places_from_tables(rows: int, width: int, along: bool, target: str) -> None:
    extent = width if along else rows
    data = RNG.standard_normal((rows, width), dtype=np.float32)
    table = RNG.integers(-2, extent + 2, (extent, 2))
    weights = RNG.standard_normal((extent, 2), dtype=np.float32)
    outputs = [((rows, width), "float32")]
    (found,) = run_prim(lambda p: blended(p, rows, width, along), [data, table, weights], outputs, target)
    taken = data.astype(np.float64).take(table.clip(0, extent - 1), axis=int(along))
    expected = (taken * weights).sum(-1) if along else (taken * weights[:, :, None]).sum(1)
    assert np.abs(found - expected).max() <= 4 * 2.0**-23 * max(1.0, np.abs(expected).max())


@pytest.mark.sample(7)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("width", [3, 16, 33])
def test_counters_and_divisions(width: int, target: str) -> None:
    """What a lane's counter gives, and a division that would trap on lanes that are not there."""

    def build(p: PrimBuilder) -> None:
        def body(s: ScalarBuilder, x: Value) -> Value:
            i, j = (s.cast(s.index(d), "int64") for d in (0, 1))
            return s.select(j >= i, x, s.cast(s.binary("floordiv", j + 7, i + 1), "float32"))

        p.generic("pp", [5, width], [(p.inputs[0], lambda i, j: (i, j))], [(p.outputs[0], lambda i, j: (i, j))], body)

    x = RNG.standard_normal((5, width), dtype=np.float32)
    (found,) = run_prim(build, [x], [((5, width), "float32")], target)
    i, j = np.mgrid[:5, :width]
    assert (found == np.where(j >= i, x, ((j + 7) // (i + 1)).astype(np.float32))).all()


def test_rows_by_table_are_vectors() -> None:
    """Rows that a table names are loaded as vectors, and the table once for all lanes."""
    types = [tensor_type((8, 64), "float32"), tensor_type((8, 2), "int64"), tensor_type((8, 2), "float32")]
    prim = PrimBuilder("kernel", types, [tensor_type((8, 64), "float32")])
    blended(prim, 8, 64, along=False)
    lowered = lowering_for(Target("llvm -mcpu=x86-64-v4"))(prim.finish())
    assert {op.results[0].type.bitwidth for op in lowered.walk() if op.name == "memref.load"} <= {32, 64}  # type: ignore[attr-defined]
    assert any(op.name == "vector.load" for op in lowered.walk())


def accumulated(p: PrimBuilder, rows: int, width: int, updates: int, row_of_lane: bool) -> None:
    """Each step adds a row of updates to a row of the data, by a body that loads and stores elements itself.

    A table names the row: for each update or, with ``row_of_lane``, for each element of it.
    """
    target, done = p.outputs

    def step(table: SSAValue, new: SSAValue, target: SSAValue, done: SSAValue) -> None:
        def put(s: ScalarBuilder) -> Value:
            number, column = s.index(0), s.index(1)
            named = s.load(table, [number, column] if row_of_lane else [number, 0], "int64")
            at = [s.cast(s.minimum(s.maximum(named, 0), rows - 1), "index"), column]
            s.store(target, at, s.load(target, at, "float32") + s.load(new, [number, column], "float32"))
            return s.const(True, "bool")

        p.generic("pp", [updates, width], [], [(done, lambda *d: d)], put)

    p.generic("pp", [rows, width], [(p.inputs[0], lambda *d: d)], [(target, lambda *d: d)], lambda s, v: v)
    p.steps(updates, [*p.inputs[1:], target, done], step)


@settings(max_examples=25)
@given(st.integers(1, 9), st.integers(1, 70), st.integers(1, 9), st.booleans(), st.sampled_from(TARGETS))
def test_stores_to_rows_of_a_table(rows: int, width: int, updates: int, row_of_lane: bool, target: str) -> None:
    data = RNG.standard_normal((rows, width), dtype=np.float32)
    table = RNG.integers(-2, rows + 2, (updates, width))
    new = RNG.standard_normal((updates, width), dtype=np.float32)
    outputs = [((rows, width), "float32"), ((updates, width), "bool")]
    given = [data, table, new]
    found, _ = run_prim(lambda p: accumulated(p, rows, width, updates, row_of_lane), given, outputs, target)
    expected = data.copy()
    for number in range(updates):
        places = (table[number] if row_of_lane else np.full(width, table[number, 0])).clip(0, rows - 1)
        expected[places, np.arange(width)] += new[number]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("row_of_lane", [False, True])
def test_one_row_is_stored_as_vectors(row_of_lane: bool) -> None:
    """Lanes that store to one row are vectors; lanes that store to rows of their own are stored one by one."""
    types = [tensor_type((8, 64), "float32"), tensor_type((8, 64), "int64"), tensor_type((8, 64), "float32")]
    prim = PrimBuilder("kernel", types, [tensor_type((8, 64), "float32"), tensor_type((8, 64), "bool")])
    accumulated(prim, 8, 64, 8, row_of_lane)
    lowered = lowering_for(Target("llvm -mcpu=x86-64-v4"))(prim.finish())
    single = [op for op in lowered.walk() if op.name == "memref.store"]
    assert bool(single) == row_of_lane
