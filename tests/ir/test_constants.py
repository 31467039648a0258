"""The constant table of a module."""

from __future__ import annotations

import cProfile
import pstats

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from landbridge.ir.module import IRModule
from landbridge.targets import Target


def module() -> IRModule:
    return IRModule(ModuleOp([]), (Target("llvm"),))


def test_equal_bytes_under_one_hint_have_one_symbol():
    table, array = module(), np.arange(4)
    given = [array, array.copy(), array, array[:2], array[:2].copy(), array.astype(np.float64), array + 1]
    assert [table.add_constant(a, "w") for a in given] == ["w", "w", "w", "w_1", "w_1", "w_2", "w_3"]
    assert table.add_constant(array, "v") == "v"
    assert table.add_constant(np.array([1.0, 0.0]), "z") != table.add_constant(np.array([1.0, -0.0]), "z")
    assert table.add_constant(np.array([np.nan]), "n") == table.add_constant(np.array([np.nan]), "n")


def test_large_arrays_that_differ_in_one_byte_are_two():
    """Wherever it is: not all pages are in the checksum."""
    table, array = module(), np.zeros(1 << 20, np.uint8)
    others = [array.copy() for _ in range(0, array.size, 40_000)]
    for i, other in enumerate(others):
        other[i * 40_000] = 1
    assert len({table.add_constant(a, "w") for a in (array, *others)}) == 1 + len(others)
    assert table.add_constant(others[3].copy(), "w") == table.add_constant(others[3], "w")


def test_a_symbol_that_was_dropped_is_not_given_for_other_values():
    table, arrays = module(), [np.full(3, i) for i in range(3)]
    symbols = [table.add_constant(a, "w") for a in arrays]
    del table.constants[symbols[1]]
    assert table.add_constant(arrays[1], "w") not in (symbols[0], symbols[2])
    assert all((table.constants[table.add_constant(a, "w")] == a).all() for a in arrays)


def test_constants_of_one_hint_are_not_compared_with_all_others():
    arrays = [np.full(2, i) for i in range(400)]

    def calls(count: int) -> int:
        table, profile = module(), cProfile.Profile()
        profile.enable()
        for array in arrays[:count]:
            table.add_constant(array)
        profile.disable()
        return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]

    assert calls(400) < 2.1 * calls(200)
