"""Folds arithmetic with constants into the weights of convolutions and matrix multiplications, else into one step.

A bias, a BatchNormalization and the divisions and shifts of activations are steps ``x * a + b`` with constants.
Consecutive steps become one; its scale moves into constant weights where the step follows their kernel. It runs after
fusion, which makes the steps adjacent. Results differ in the last bits, as they do between any two kernels.
"""

from __future__ import annotations

from landbridge.ir.module import IRModule
from landbridge.passes.consumed_constants import ConsumedConstants
from landbridge.passes.fold_scale.rewrite import fold_call
from landbridge.passes.fuse.graph import Graph
from landbridge.passes.registry import register_pass


@register_pass("fold_scale")
def fold_scale(module: IRModule) -> None:
    """Fold multiplications, divisions and additions with constants into weights and into each other."""
    graph, consumed = Graph(module), ConsumedConstants(module)
    unchanged: set[str] = set()
    for block in graph.blocks:
        for call in graph.calls(block):
            fold_call(graph, call, consumed, unchanged)
    module.drop_unused()
