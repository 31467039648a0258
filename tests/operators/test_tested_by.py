"""Every operator has a test that fails when the operator computes something else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from landbridge.operators import REGISTRY, definition, host_operator, kernel
from tests.operators import broken, tested_by

#: The parts that the tests of ``tested_by.txt`` are divided into, each of which is run in one process.
PARTS = 24


def test_every_operator_has_a_test() -> None:
    missing, stale = uncovered()
    assert not missing, "name a test of each in tests/operators/tested_by.txt, or run tests/operators/tested_by.py"
    assert not stale, "operators that are gone"


def uncovered() -> tuple[list[str], list[str]]:
    """The keys without a line, and those of lines without an operator."""
    keys, known = set(broken.keys()), set(tested_by.read())
    return sorted(keys - known), sorted(known - keys)


def test_the_tests_are_there() -> None:
    """Functions of the names; their parameters are those of the tests that ``test_tests_notice`` runs."""
    root = Path(__file__).parents[2]
    for test in tested_by.read().values():
        file, name = test.partition("[")[0].split("::")
        assert f"def {name}(" in (root / file).read_text(encoding="utf-8"), test


@pytest.mark.parametrize("add", [
    lambda: kernel("com.microsoft", "Untested")(_own(lambda c, x: x)),
    lambda: definition("com.microsoft", "Untested", inputs="X", outputs="Y")(_own(lambda n: "Y = Relu (X)")),
    lambda: host_operator("com.microsoft", "Untested")(_own(np.sort)),
])  # fmt: skip
def test_an_operator_without_a_test_is_found(add: Callable[[], Any]) -> None:
    before, _ = uncovered()
    with REGISTRY.isolated():
        add()
        missing, _ = uncovered()
    assert [key.partition(" ")[0] for key in missing if key not in before] == ["com.microsoft.Untested@1"]


def _own(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` as one of the package, whose operators have to have tests."""

    def untested(*args: Any, **named: Any) -> Any:
        return function(*args, **named)

    untested.__module__ = "landbridge.ops.untested"
    return untested


@pytest.mark.sample(1)
@pytest.mark.parametrize("part", range(PARTS))
def test_tests_notice(part: int) -> None:
    """Each test fails when its implementation is broken, which says that it runs it and compares what it makes."""
    pairs = sorted(tested_by.read().items(), key=lambda pair: pair[1])
    step = -(-len(pairs) // PARTS)
    found = tested_by.outcomes(pairs[part * step : (part + 1) * step])
    unnoticed = {key: (test, outcome) for (key, test), outcome in found.items() if outcome != "noticed"}
    assert not unnoticed


def test_a_test_that_compares_nothing_is_found() -> None:
    key, names = "ai.onnx.Relu@1 kernel", ("compares", "shape", "other", "raises")
    tests = {name: f"tests/operators/weak_tests.py::test_{name}" for name in names}
    found = tested_by.outcomes((key, test) for test in tests.values())
    assert {name: found[key, test] for name, test in tests.items()} == {
        "compares": "noticed",
        "shape": "it passes",
        "other": "it passes, and does not use the implementation",
        "raises": "it ends with ValueError before it compares: before",
    }
