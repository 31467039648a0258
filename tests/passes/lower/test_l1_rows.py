"""Rows of a register block beside L1, which a walk of its sets, line by line, says whether they fit."""

from __future__ import annotations

from collections import OrderedDict, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.stages import view_prim
from landbridge.ir.types import tensor_type
from landbridge.passes.lower.candidates import schedule
from landbridge.passes.lower.l1_rows import l1_rows
from landbridge.passes.lower.nest import Nest, build_nests
from landbridge.passes.lower.schedule import VectorUnit

#: A core with AVX-512; its nearest cache is of 8 lines a set, of 64 sets.
CORE = VectorUnit(64, 32, l1_bytes=32 << 10, l2_bytes=1 << 20)
COLUMNS = 32


def product(pitch: int, terms: int = 1024, rows: int = 56) -> Nest:
    """``rows`` of ``terms`` numbers, ``pitch`` numbers apart, by columns."""
    p = PrimBuilder(
        "kernel",
        [tensor_type((rows, pitch), "float32"), tensor_type((COLUMNS // 16, terms, 16), "float32")],
        [tensor_type((rows, COLUMNS // 16, 16), "float32")],
    )
    p.generic(
        "pppr",
        [rows, COLUMNS // 16, 16, terms],
        [(p.inputs[0], lambda m, j, c, k: (m, k)), (p.inputs[1], lambda m, j, c, k: (j, k, c))],
        [(p.outputs[0], lambda m, j, c, k: (m, j, c))],
        lambda s, acc, x, w: acc + x * w,
        init=0.0,
    )
    (nest,) = build_nests(view_prim(p.finish()))
    return nest


def lost(pitch: int, rows: int, associativity: int) -> int:
    """Lines that are read again of numbers that ``rows`` rows read in iterations, of sets that keep the last
    ``associativity``."""
    sets: defaultdict[int, OrderedDict[int, None]] = defaultdict(OrderedDict)
    seen, again = set(), 0
    for iteration in range(64):
        for row in range(rows):
            line = (row * pitch + iteration) * 4 // 64
            retained = sets[line % 64]
            if line not in retained:
                again += line in seen
                seen.add(line)
                retained[line] = None
                if len(retained) > associativity:
                    retained.popitem(last=False)
            retained.move_to_end(line)
    return again


@given(
    st.one_of(st.integers(1024, 6000), st.sampled_from([1024, 1536, 2048, 2560, 3072, 1280, 4096])), st.integers(1, 12)
)
def test_rows_are_retained_up_to_those_whose_lines_a_set_has_no_space_for(pitch: int, associativity: int) -> None:
    nest = product(pitch)
    sched = schedule(nest, CORE)
    assert sched.m_dim is not None
    retained = l1_rows(nest, sched.lane, sched.m_dim, sched.inner, associativity << 12, 4096, 14)
    if pitch % 16 == 0:
        assert not lost(pitch, retained, associativity)
        assert retained == 14 or lost(pitch, retained + 1, associativity)


@pytest.mark.parametrize(("pitch", "most"), [(1024, 8), (3072, 8), (4096, 8), (1040, 14), (1552, 14)])
def test_blocks_have_as_many_rows(pitch: int, most: int) -> None:
    """Of two vectors of columns, 14 by two is best else."""
    tile = max(run.tile for run in schedule(product(pitch), CORE).m_runs)
    assert tile == 14 if most == 14 else tile <= most


def test_a_core_whose_cache_is_not_known_is_requested_nothing() -> None:
    unknown = VectorUnit(64, 32)
    assert schedule(product(1024), unknown).m_runs == schedule(product(1040), unknown).m_runs
