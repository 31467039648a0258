"""Ranges of indices hold every value that running the operations one by one gives."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from random import Random
from typing import Any

import pytest
from xdsl.dialects import arith, test
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.ir import Operation, SSAValue

from landbridge.analysis.index_ranges import IndexRanges
from landbridge.analysis.linear_forms import constant

#: Operations on indices, and what they give of numbers; divisors are constants over 0.
BINARY: dict[type[Any], Callable[[int, int], int]] = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.MinSIOp: min,
    arith.MaxSIOp: max,
}
BY_CONSTANT: dict[type[Any], Callable[[int, int], int]] = {
    arith.MuliOp: lambda a, b: a * b,
    arith.FloorDivSIOp: lambda a, b: a // b,
    arith.DivSIOp: lambda a, b: a // b if a >= 0 else -(-a // b),
    arith.RemSIOp: lambda a, b: a % b if a >= 0 else -(-a % b),
}
COMPARED: dict[str, Callable[[int, int], bool]] = {
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "ult": lambda a, b: _unsigned(a) < _unsigned(b),
    "uge": lambda a, b: _unsigned(a) >= _unsigned(b),
}


def _unsigned(x: int) -> int:
    return x % (1 << 64)


class Program:
    """A few operations on two counters, in random order, and the numbers they give for each pair of counts."""

    def __init__(self, seed: int) -> None:
        self.random, self.ranges, self.operations = Random(seed), IndexRanges(), list[Operation]()
        self.values: dict[SSAValue, list[int]] = {}
        self.conditions: dict[SSAValue, list[bool]] = {}
        spans = [(self.random.randint(-3, 3), self.random.choice((1, 2, 5)), self.random.randint(1, 6)) for _ in "ab"]
        pairs = list(product(*(range(low, low + step * trips, step) for low, step, trips in spans)))
        for axis, (low, step, trips) in enumerate(spans):
            counter = self._retained(test.TestOp(result_types=[IndexType()]))
            self.ranges.count(counter, constant(low), step, constant(low + step * trips - 1))
            self.values[counter] = [pair[axis] for pair in pairs]
        self.indices = list(self.values)
        for _ in range(8):
            self._add_operation()

    def _retained(self, op: Operation) -> SSAValue:
        self.operations.append(op)
        return op.results[0]

    def _add_operation(self) -> None:
        a, b = self.random.choice(self.indices), self.random.choice(self.indices)
        made: SSAValue
        match self.random.randrange(4):
            case 0:
                kind = self.random.choice(list(BINARY))
                made = self._retained(kind(a, b))
                values = [BINARY[kind](x, y) for x, y in zip(self.values[a], self.values[b], strict=True)]
            case 1:
                kind, by = self.random.choice(list(BY_CONSTANT)), self.random.randint(1, 6)
                made = self._retained(kind(a, self._retained(arith.ConstantOp(IntegerAttr.from_index_int_value(by)))))
                values = [BY_CONSTANT[kind](x, by) for x in self.values[a]]
            case _:
                name = self.random.choice(list(COMPARED))
                condition = self._retained(arith.CmpiOp(a, b, name))
                holds = [COMPARED[name](x, y) for x, y in zip(self.values[a], self.values[b], strict=True)]
                self.conditions[condition] = holds
                c, d = self.random.choice(self.indices), self.random.choice(self.indices)
                made = self._retained(arith.SelectOp(condition, c, d))
                values = [x if first else y for first, x, y in zip(holds, self.values[c], self.values[d], strict=True)]
        self.values[made] = values
        self.indices.append(made)

    def check(self, values: list[SSAValue], reached: list[bool]) -> None:
        """Every number that a value, or a difference of two, takes in the ``reached`` runs lies in the range known."""
        for value, other in product(values, repeat=2):
            form = self.ranges.form(value).plus(self.ranges.form(other), -1 if value is not other else 0)
            low, high = self.ranges.range_of(form)
            runs = zip(self.values[value], self.values[other], reached, strict=True)
            found = [x - (y if value is not other else 0) for x, y, run in runs if run]
            assert all(low <= x <= high for x in found)
            if found:
                least, most = min(found), max(found)
                assert not self.ranges.lies_within(form, least + 1, most)
                assert not self.ranges.lies_within(form, least, most - 1)


@pytest.mark.sample(54)
@pytest.mark.parametrize("seed", range(300))
def test_no_value_is_outside_its_range_whatever_was_requested_before(seed: int) -> None:
    program = Program(seed)
    random, everywhere = program.random, [True] * len(program.values[program.indices[0]])
    conditions = list(program.conditions)

    def visit(reached: list[bool], depth: int) -> None:
        """Ask for some values, go into conditions, ask again."""
        program.check(random.sample(program.indices, 4), reached)
        for condition in random.sample(conditions, min(len(conditions), 2)) if depth < 3 else ():
            holds = random.random() < 0.6
            inside = [run and held == holds for run, held in zip(reached, program.conditions[condition], strict=True)]
            with program.ranges.where(condition, holds) as entered:
                assert entered or not any(inside)
                if entered:
                    visit(inside, depth + 1)
        program.check(random.sample(program.indices, 4), reached)

    visit(everywhere, 0)


def test_what_was_found_outside_a_condition_is_not_taken_for_what_holds_in_it() -> None:
    """A value asked for before has the same range inside a condition as one that is asked for there first."""
    compared = 0
    for seed in range(100):
        requested, fresh = Program(seed), Program(seed)
        for program in (requested, fresh):
            for value in program.indices:  # atoms are numbered in this order
                program.ranges.form(value)
        requested.check(requested.indices, [False] * len(requested.values[requested.indices[0]]))
        for first, second in zip(requested.conditions, fresh.conditions, strict=True):
            with requested.ranges.where(first) as entered, fresh.ranges.where(second):
                for value, same in zip(requested.indices, fresh.indices, strict=True) if entered else ():
                    known = requested.ranges.range_of(requested.ranges.form(value))
                    assert known == fresh.ranges.range_of(fresh.ranges.form(same))
                    compared += 1
    assert compared > 500


def _constant(number: int, ty: IndexType | IntegerType) -> SSAValue:
    return arith.ConstantOp(IntegerAttr(number, ty)).result


def test_equal_operations_give_one_value() -> None:
    """``x / 3 - x / 3`` is 0 where the quotients are computed twice; of other numbers, or rounded otherwise, not."""
    ranges, x = IndexRanges(), test.TestOp(result_types=[IndexType()]).results[0]
    ranges.count(x, constant(-9), 1, constant(9))

    def difference(first: Any, second: Any, by: int) -> tuple[float, float]:
        made = [kind(x, _constant(by, IndexType())).result for kind, by in ((first, 3), (second, by))]
        return ranges.range_of(ranges.form(made[0]).plus(ranges.form(made[1]), -1))

    assert difference(arith.FloorDivSIOp, arith.FloorDivSIOp, 3) == (0, 0)
    assert difference(arith.FloorDivSIOp, arith.DivSIOp, 3)[0] <= -1  # of -8
    assert difference(arith.FloorDivSIOp, arith.FloorDivSIOp, 9)[1] >= 2


def test_equal_numbers_of_other_widths_are_other_values() -> None:
    ranges, i8, i16 = IndexRanges(), IntegerType(8), IntegerType(16)
    least = [arith.MaxUIOp(_constant(-1, ty), _constant(7, ty)).result for ty in (i8, i16)]
    assert ranges.form(least[0]) != ranges.form(least[1])
