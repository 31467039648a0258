"""Weights that a pass replaced are gone before it ends: their table never has them twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from graphs import graph
from nets import constant, conv, elementwise

from landbridge.passes.registry import run_pipeline


class Table(dict[str, np.ndarray[Any, Any]]):
    """A table of constants that knows the most bytes that it had."""

    peak = 0

    def __setitem__(self, symbol: str, array: np.ndarray[Any, Any]) -> None:
        super().__setitem__(symbol, array)
        self.peak = max(self.peak, self.nbytes())

    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.values())


def layers(g, x):
    for seed in range(8):
        y = conv(g, x, 16, 3, seed=seed)
        x = elementwise(g, lambda s, a, b, c: a * b + c, y, constant(g, 16, 1, 1, seed=9), constant(g, 1, 16, 1, 1))
    return [x]


@pytest.mark.parametrize("step", ["fold_scale", "pack"])
def test_a_pass_has_one_layer_twice(step: str) -> None:
    module = run_pipeline(graph([((1, 16, 4, 4), "float32")], layers), ["fuse"])
    module = replace(module, constants=Table(module.constants))
    before, largest = module.constants.nbytes(), 16 * 16 * 9 * 4
    assert before > 8 * largest
    run_pipeline(module, [step])
    assert module.constants.peak > before
    assert module.constants.peak < before + 2 * largest


def test_a_weight_that_another_call_reads_stays() -> None:
    def build(g, x):
        scaled = elementwise(g, lambda s, a, b: a * b, conv(g, x, 16, 3), constant(g, 16, 1, 1, seed=9))
        return [scaled, elementwise(g, lambda s, a: -a, conv(g, x, 16, 3))]

    module = run_pipeline(graph([((1, 16, 4, 4), "float32")], build), ["fuse", "fold_scale", "pack", "fold"])
    assert sum(array.size == 16 * 16 * 9 for array in module.constants.values()) == 2
