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


def test_the_same_memory_has_one_symbol_and_other_memory_another():
    table, array = module(), np.arange(4)
    assert [table.add_constant(a, "w") for a in (array, array.copy(), array, array[:2])] == ["w", "w_1", "w", "w_2"]
    assert table.add_constant(array, "v") == "v"
    second = np.arange(4)
    assert table.add_constant(second, "w") == table.add_constant(second, "w") == "w_3"


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
