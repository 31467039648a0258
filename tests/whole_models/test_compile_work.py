"""What compiling costs grows with the nodes of a model, not with their square: calls are counted, not seconds."""

from __future__ import annotations

import cProfile
import pstats

import pytest

import landbridge as lb
from tests.whole_models.big_graphs import FAMILIES, softmaxes

TARGET = "llvm -mcpu=x86-64-v3"
NODES = 100
#: Fusion works in groups of some size, and some work begins only where kernels are many: these are linear from so many
#: nodes on.
GROUPS = {"elementwise": 400, "unnamed_constants": 200}


def calls_of(name: str, nodes: int, mutable: bool = False) -> dict[str, int]:
    """How often each function of Python or C is called while a model of ``nodes`` nodes is compiled.

    ``mutable``: its weights stay replaceable.
    """
    model = FAMILIES[name](nodes)
    weights = [tensor.name for tensor in model.graph.initializer] if mutable else []
    profile = cProfile.Profile()
    profile.enable()
    try:
        lb.compile(model, TARGET, mutable=weights)
    finally:
        profile.disable()
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    return {f"{file}:{line} {function}": calls for (file, line, function), (_, calls, *_) in stats.items()}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", FAMILIES)
def test_twice_the_nodes_are_twice_the_calls(name):
    lb.compile(softmaxes(2), TARGET)  # what is imported and cached
    nodes = GROUPS.get(name, NODES)
    check_linear(calls_of(name, nodes), calls_of(name, 2 * nodes), nodes)


@pytest.mark.full
def test_twice_the_layers_with_replaceable_weights_are_twice_the_calls():
    lb.compile(softmaxes(2), TARGET)
    check_linear(calls_of("products", NODES, mutable=True), calls_of("products", 2 * NODES, mutable=True), NODES)


def check_linear(once: dict[str, int], twice: dict[str, int], nodes: int) -> None:
    """Whether twice as many nodes than ``nodes`` are no more than about twice as many calls."""
    assert sum(twice.values()) < 2.3 * sum(once.values())
    # A function that is called often, too often with twice the nodes: what hides in the sum.
    grown = {
        function: (once.get(function, 0), count)
        for function, count in twice.items()
        if count > 60 * nodes and count > 2.6 * once.get(function, 0)
    }
    assert not grown, f"called more than 2.6 times as often for twice the nodes: {grown}"
