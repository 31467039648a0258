"""The order of multiply-adds with loads of two vectors: each sum gets its terms in order, within the registers."""

from __future__ import annotations

from landbridge.codegen.llvm.paired_loads import Fetch, LaneProduct, Load, paired_steps

ROWS, COLUMNS, LANES = 4, 2, 4
#: A row has one vector of scalars, and a column a vector of weights for each of its lanes.
LOADS = [Load("rows", 16 * row) for row in range(ROWS)]
LOADS += [Load(f"column {column}", 16 * lane) for column in range(COLUMNS) for lane in range(LANES)]
TERMS = [
    LaneProduct(row * COLUMNS + column, ROWS + column * LANES + lane, row, lane)
    for lane in range(LANES)
    for row in range(ROWS)
    for column in range(COLUMNS)
]


def test_a_tile_loads_weights_in_pairs_and_adds_in_order() -> None:
    steps = paired_steps(LOADS, TERMS, ROWS + 2)
    assert steps is not None
    fetched = [step.loads for step in steps if isinstance(step, Fetch)]
    assert sorted(len(loads) for loads in fetched) == [1] * ROWS + [2] * (COLUMNS * LANES // 2)
    terms = [step for step in steps if isinstance(step, LaneProduct)]
    for number in range(ROWS * COLUMNS):
        assert [t for t in terms if t.sum == number] == [t for t in TERMS if t.sum == number]
    known: set[int] = set()
    for step in steps:
        if isinstance(step, Fetch):
            assert known.isdisjoint(step.loads)
            known.update(step.loads)
        else:
            assert {step.factor, step.scalars} <= known


def test_too_few_registers_and_nothing_to_pair() -> None:
    assert paired_steps(LOADS, TERMS, ROWS + 1) is None
    scattered = [Load(load.pointer, 2 * load.offset) for load in LOADS]
    assert paired_steps(scattered, TERMS, ROWS + 2) is None


def test_a_sum_that_would_get_its_terms_in_another_order_is_left_alone() -> None:
    loads = [Load("x", 0), Load("w", 0), Load("w", 16), Load("w", 32)]
    assert paired_steps(loads, [LaneProduct(0, n, 0, 0) for n in (1, 2, 3)], 6) is not None
    assert paired_steps(loads, [LaneProduct(0, n, 0, 0) for n in (1, 3, 2)], 6) is None
