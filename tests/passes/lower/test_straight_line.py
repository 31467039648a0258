"""Value numbers of loads against the addresses that they stand for, and what merged loads read."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import f32
from xdsl.ir.affine import AffineDimExpr

from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.types import tensor_type
from landbridge.passes.lower.access import ElementAccess, Guard, Linear
from landbridge.passes.lower.straight_line import (
    LoadNumber,
    LoadNumbers,
    Picked,
    TransposedRow,
    Unrolled,
    interleaved_vectors,
    merged_scalars,
    transposed_rows,
)

#: The loops of a nest in these tests: of the rows, of the columns, which are vectors of 4, of the iterations.
ROWS, COLUMNS, ITERATIONS = range(3)
LOOPS = (Unrolled(ROWS), Unrolled(COLUMNS, 4))
COPIES = list(product(range(4), range(3), range(5)))

coefficients = st.dictionaries(st.sampled_from((ROWS, COLUMNS, ITERATIONS)), st.integers(-3, 3))
indices = st.builds(Linear, st.integers(-5, 5), coefficients)


def access(index: Linear, *guards: Guard) -> ElementAccess:
    prim = PrimBuilder("k", [tensor_type((64,), "float32")], [])
    return ElementAccess(prim.inputs[0], index, f32, guards)


def nothing_holds(_: Guard) -> bool:
    """Returns whether a guard is known to hold: none is."""
    return False


def value(x: Linear, copy: tuple[int, int, int]) -> int:
    """Returns the index ``x`` in a copy of the body, if the loops around are at 0."""
    row, column, iteration = copy
    at = {ROWS: row, COLUMNS: 4 * column, ITERATIONS: iteration}
    return x.const + sum(c * at[d] for d, c in x.coeffs.items()) + sum(s * at[e.used_dims().pop()] for s, e in x.rest)


def numbered(numbers: LoadNumbers, a: ElementAccess) -> dict[tuple[int, int, int], LoadNumber]:
    return {copy: numbers.number(a, copy[:2], (ITERATIONS, copy[2])) for copy in COPIES}


@given(indices, indices)
def test_loads_are_equal_where_element_and_padding_are(index: Linear, padded: Linear) -> None:
    a = access(index, Guard(padded, 7))
    found = numbered(LoadNumbers(LOOPS, nothing_holds), a)
    for one, other in product(COPIES, repeat=2):
        same = all(value(x, one) == value(x, other) for x in (index, padded))
        assert (found[one] == found[other]) is same
    first = COPIES[0]
    assert all(n.offset == value(index, copy) - value(index, first) for copy, n in found.items())


@given(indices, indices)
def test_guards_that_hold_make_no_difference(index: Linear, padded: Linear) -> None:
    guard = Guard(padded, 7)
    a = access(index, guard)
    found = numbered(LoadNumbers(LOOPS, lambda g: g is guard), a)
    for one, other in product(COPIES, repeat=2):
        assert (found[one] == found[other]) is (value(index, one) == value(index, other))


def test_two_accesses_never_share_a_load() -> None:
    """A stage between them may have stored the element."""
    index, numbers = Linear(0, {ROWS: 1}), LoadNumbers(LOOPS, nothing_holds)
    one, other = (numbered(numbers, access(index)) for _ in range(2))
    assert not set(one.values()) & set(other.values())


@pytest.mark.parametrize("dim", [ROWS, COLUMNS, ITERATIONS])
def test_copies_along_a_loop_without_known_distance_share_nothing(dim: int) -> None:
    x = Linear(0, {}, ((2, AffineDimExpr(dim)),))  # stands for any expression of the loop
    found = numbered(LoadNumbers(LOOPS, nothing_holds), access(x))
    at = {copy: copy[dim] for copy in COPIES}
    for one, other in product(COPIES, repeat=2):
        assert (found[one] == found[other]) is (at[one] == at[other])
        assert found[one].offset == 0


def test_iterations_share_no_scalar_that_is_a_memory_operand() -> None:
    """Row 1 reads in iteration 0 what row 0 reads in iteration 1."""
    a = access(Linear(0, {ROWS: 1, ITERATIONS: 1}))
    shared, separate = (
        numbered(LoadNumbers(LOOPS, nothing_holds, lane=COLUMNS, memory_scalars=scalars), a)
        for scalars in (False, True)
    )
    assert shared[1, 0, 0] == shared[0, 0, 1] and separate[1, 0, 0] != separate[0, 0, 1]
    assert separate[1, 0, 0] == separate[1, 2, 0]


offsets = st.sets(st.integers(-20, 20), min_size=1)


@given(offsets, st.sampled_from([2, 4, 8]))
def test_scalars_are_lanes_of_vectors_that_are_read_completely(found: set[int], lanes: int) -> None:
    a = access(Linear(0, {}))
    reads = [LoadNumber(a, (), offset) for offset in found]
    merged = merged_scalars(reads, lanes)
    for number, picked in merged.items():
        (lane,) = picked.lanes
        assert picked.count == 1 and picked.length == lanes and 0 <= lane < lanes
        assert picked.first.offset + lane == number.offset
        assert all(picked.first._replace(offset=picked.first.offset + i) in reads for i in range(lanes))
    for number in reads:
        if number not in merged:  # no vector around it is read completely
            around = ({number.offset - i + k for k in range(lanes)} for i in range(lanes))
            assert not any(vector <= found for vector in around)


def test_a_run_of_scalars_takes_the_fewest_vectors() -> None:
    a = access(Linear(0, {}))
    for length in range(4, 23):
        merged = merged_scalars([LoadNumber(a, (), 3 + i) for i in range(length)], 4)
        assert len(merged) == length and len({picked.first for picked in merged.values()}) == -(-length // 4)


def test_scalars_of_other_guards_are_not_merged() -> None:
    a = access(Linear(0, {}))
    assert not merged_scalars([LoadNumber(a, (i // 2,), i) for i in range(8)], 4)


@given(offsets, st.integers(2, 4), st.sampled_from([4, 8]))
def test_interleaved_vectors_cover_what_is_loaded(found: set[int], stride: int, lanes: int) -> None:
    a = access(Linear(0, {}))
    reads = [LoadNumber(a, (), offset) for offset in found]
    merged = interleaved_vectors(reads, stride, lanes)
    for number, picked in merged.items():
        assert [picked.first.offset + at for at in picked.lanes] == [number.offset + stride * i for i in range(lanes)]
    loaded, read = (
        {(p.first.offset, at) for p in merged.values() for at in places(p)} for places in (everything, picked_lanes)
    )
    assert loaded == read
    runs = sum(offset - 1 not in found for offset in found)
    assert len(reads) - len(merged) <= runs * (stride - 1)


def everything(picked: Picked) -> range:
    return range(picked.count * picked.length)


def picked_lanes(picked: Picked) -> tuple[int, ...]:
    return picked.lanes


def test_rows_of_a_transposed_block_follow_one_another() -> None:
    a = access(Linear(0, {}))
    reads = [LoadNumber(a, (), offset) for offset in (4, 5, 6, 9, 10)]
    blocks = {TransposedRow(reads[0], 3): 3, TransposedRow(reads[3], 2): 2}
    rows = transposed_rows(reads)
    assert list(rows) == reads and {row: list(rows.values()).count(row) for row in blocks} == blocks
