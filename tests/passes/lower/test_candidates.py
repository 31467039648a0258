"""ScheduleCandidate schedules: the form of each kind of nest, and predicted cycles that order its tiles."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.stages import view_prim
from landbridge.ir.types import tensor_type
from landbridge.passes.lower.candidates import ScheduleCandidate, candidates, schedule
from landbridge.passes.lower.cost import REGISTER_TILE
from landbridge.passes.lower.nest import Nest, build_nests
from landbridge.passes.lower.schedule import VectorUnit
from landbridge.passes.lower.schedule_text import weighed_text
from landbridge.passes.lower.simplify import simplify
from landbridge.targets.machine import CpuCore

#: Vectors of 16 floats, with the caches of a server.
WIDE = VectorUnit(64, 32, l1_bytes=1 << 15, l2_bytes=1 << 20, prefetches=True, unrolls=True)
Shape = tuple[int, ...]


def nest_of(build: Callable[[PrimBuilder], None], inputs: list[Shape], output: Shape) -> Nest:
    prim = PrimBuilder("k", [tensor_type(s, "float32") for s in inputs], [tensor_type(output, "float32")])
    build(prim)
    (nest,) = build_nests(view_prim(prim.finish()))
    return simplify(nest)


def product(m: int, n: int, k: int) -> Nest:
    def build(p: PrimBuilder) -> None:
        ins = [(p.inputs[0], lambda i, j, k: (i, k)), (p.inputs[1], lambda i, j, k: (k, j))]
        out = [(p.outputs[0], lambda i, j, k: (i, j))]
        p.generic("ppr", [m, n, k], ins, out, lambda s, a, x, w: a + x * w, init=0.0)

    return nest_of(build, [(m, k), (k, n)], (m, n))


def product_of_rows(m: int, n: int, k: int) -> Nest:
    def build(p: PrimBuilder) -> None:
        ins = [(p.inputs[0], lambda i, j, k: (i, k)), (p.inputs[1], lambda i, j, k: (j, k))]
        out = [(p.outputs[0], lambda i, j, k: (i, j))]
        p.generic("ppr", [m, n, k], ins, out, lambda s, a, x, w: a + x * w, init=0.0)

    return nest_of(build, [(m, k), (n, k)], (m, n))


def elementwise(rows: int, columns: int, *, transposed: bool = False) -> Nest:
    def build(p: PrimBuilder) -> None:
        ins = [(p.inputs[0], (lambda i, j: (j, i)) if transposed else (lambda i, j: (i, j)))]
        p.generic("pp", [rows, columns], ins, [(p.outputs[0], lambda i, j: (i, j))], lambda s, x: x + x)

    return nest_of(build, [(columns, rows) if transposed else (rows, columns)], (rows, columns))


@pytest.mark.parametrize(
    ("nest", "form"),
    [
        (elementwise(40, 48), "elementwise"),
        (elementwise(40, 48, transposed=True), "transposed"),
        (product(40, 48, 64), "product"),
        (product_of_rows(40, 48, 64), "sums along lanes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_operands_allow_decides_the_form(nest: Nest, form: str) -> None:
    found = candidates(nest, WIDE)
    assert {each.form for each in found} == {form}
    assert len({each.tile for each in found}) == len(found)
    assert {each.form for each in candidates(nest, VectorUnit(4, 32))} == {
        "elementwise" if nest.reduction is None else "scalars"
    }


@pytest.mark.parametrize("m", [1, 3, 14, 64])
@pytest.mark.parametrize("n", [16, 64, 192])
def test_the_first_tile_has_the_fewest_cycles(m: int, n: int) -> None:
    first, *others = candidates(product(m, n, 64), WIDE)
    assert all(first.cycles <= each.cycles * (1 + REGISTER_TILE.equal_within) for each in others)
    assert [each.cycles for each in others] == sorted(each.cycles for each in others)


def cycles(nest: Nest, machine: VectorUnit = WIDE) -> float:
    return candidates(nest, machine)[0].cycles


def test_cycles_are_those_of_multiply_adds_and_some_loads() -> None:
    least = 96 * 128 * 64 / 16 / 2  # two pipes of 16 lanes
    assert least <= cycles(product(96, 128, 64)) <= 1.5 * least
    assert cycles(product(96, 128, 128)) == pytest.approx(2 * cycles(product(96, 128, 64)))
    slow = VectorUnit(64, 32, l1_bytes=1 << 15, l2_bytes=1 << 20, core=CpuCore(vector_passes=2))
    assert cycles(product(96, 128, 64), slow) == pytest.approx(2 * cycles(product(96, 128, 64)))


def test_more_elements_have_more_cycles() -> None:
    assert cycles(elementwise(80, 48)) == pytest.approx(2 * cycles(elementwise(40, 48)), rel=0.1)
    assert cycles(elementwise(80, 48, transposed=True)) > cycles(elementwise(80, 48))


def test_each_candidate_builds_a_schedule_of_its_tile() -> None:
    def tile(each: ScheduleCandidate) -> tuple[int, int]:
        sched = each.build()
        return max(run.tile for run in sched.m_runs), max(run.tile for run in sched.n_runs)

    for each in candidates(product(28, 64, 40), WIDE):
        m, n = tile(each)
        assert m <= each.tile[0] and n <= each.tile[1]
        assert m * n <= WIDE.registers


def test_a_schedule_says_what_it_was_chosen_from() -> None:
    sched = schedule(product(28, 64, 40), WIDE)
    first, *others = weighed_text(sched)
    assert first.startswith(f"{sched.m_runs[0].tile}x{sched.n_runs[0].tile}: ") and first.endswith(" cycles")
    assert 1 <= len(others) <= 3
    assert weighed_text(schedule(elementwise(40, 48, transposed=True), WIDE)) == ()
