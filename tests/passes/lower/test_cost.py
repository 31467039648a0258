"""Tuning numbers: they are in cost.py alone, and each says where it was measured or that it was chosen."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import landbridge
from landbridge.passes.lower import cost
from landbridge.passes.lower.cost import ELEMENTWISE, SUM_ORDER
from landbridge.targets.machine import CpuCore

ROOM = Path(landbridge.__file__).parent / "passes" / "lower"
COST = ("cost.py", "grid/cost.py")
#: Numbers of the room that decide no schedule, with the reason.
OTHERS = {
    ("cached_columns.py", "MANY"): "more than any",
    ("checked.py", "_OUT_OF_RANGE"): "an index that no memory has",
    ("checked.py", "_UNSIGNED_AT_LEAST"): "MLIR's number of a predicate",
    ("extents_operand.py", "EXTENTS_TYPE"): "a type",
    ("grid/cpu_tasks.py", "MAX_LANES"): "a limit of OpenCL C",
    ("image_memory.py", "_SEPARATORS"): "the form of an image",
    ("row_memory.py", "PITCH"): "more than any",
    ("scan_schedule.py", "_ONE"): "a run of one tile",
    ("schedule_text.py", "_SHOWN"): "of a report",
    ("serial.py", "ONE"): "a tile of one element",
}


def numbers_of(source: str) -> set[str]:
    """The names that ``source`` assigns an expression with a number to at module level."""
    found = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            constants = [each for each in ast.walk(node.value) if isinstance(each, ast.Constant)]
            if any(isinstance(each.value, int | float) and not isinstance(each.value, bool) for each in constants):
                found |= {name.id for t in targets for name in ast.walk(t) if isinstance(name, ast.Name)}
    return found


def test_numbers_of_a_module_are_found() -> None:
    source = "A = 1 << 4\nB, _C = 2, 0.5\nD: int = min(3, E)\nE = frozenset(('x',))\nF = True\ndef f():\n    g = 7\n"
    assert numbers_of(source) == {"A", "B", "_C", "D"}


def test_tuning_numbers_are_in_cost_alone() -> None:
    files = {str(file.relative_to(ROOM)): file.read_text() for file in ROOM.rglob("*.py")}
    found = {(name, number) for name, text in files.items() if name not in COST for number in numbers_of(text)}
    assert found == OTHERS.keys(), "a tuning number belongs in cost.py; a line of OTHERS that nothing has can go"


@pytest.mark.parametrize("name", COST)
def test_each_number_says_where_it_is_from(name: str) -> None:
    """A comment ends with where its number was measured, or with when it was chosen; it holds for the fields below."""
    origin = re.compile(r"(Chosen, \d{4}-\d\d-\d\d|Measured: (see above|.*?, \d{4}-\d\d-\d\d))")
    comment, inside, fields = "", False, 0
    for line in (ROOM / name).read_text().splitlines():
        if line.startswith("    #:"):
            comment = comment + line.strip().removeprefix("#:") if inside else line.strip().removeprefix("#:")
            inside = True
            continue
        inside = False
        if line.startswith("class "):
            comment = ""
        if re.match(r"    \w+: .* = ", line):
            fields += 1
            assert origin.search(comment), f"{name}: {line.strip()} says neither Measured nor Chosen: {comment}"
    assert fields > 10


def test_partial_sums_fill_the_pipes_of_multiply_adds() -> None:
    in_flight = CpuCore().multiply_adds_in_flight
    assert [SUM_ORDER.partial_sums(n) for n in (1, 2, 3, 4, 5, in_flight)] == [4, 4, 2, 2, 1, 1]
    assert all(n * SUM_ORDER.partial_sums(n) <= in_flight for n in range(1, in_flight + 1))


def test_long_bodies_have_fewer_copies() -> None:
    assert [ELEMENTWISE.copies(n) for n in (1, 12, 13, 40, 41)] == [4, 4, 2, 2, 1]


def test_records_of_numbers_are_frozen() -> None:
    with pytest.raises(AttributeError):
        cost.TASKS.enough = 3  # type: ignore[misc]
