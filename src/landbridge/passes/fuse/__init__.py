"""Fusion: merges calls of a graph into fewer calls of PrimFuncs with more stages.

Concatenations of scalars become transpositions first. Then each step runs over every block in program order:
elementwise calls are inlined into their only reader; elementwise calls become an epilogue of the call that computes
their input; chains that work row by row (a decomposed LayerNorm or Softmax) become one call. Fusion does not cross the
border of a branch or of a loop body.
"""

from __future__ import annotations

from landbridge.ir.module import IRModule
from landbridge.passes.fuse.epilogue import fuse_branch_epilogues, fuse_epilogues
from landbridge.passes.fuse.graph import Graph, shorten_views
from landbridge.passes.fuse.planes import concatenate_planes
from landbridge.passes.fuse.pointwise import fuse_producers, fuse_prologues, merge_operands
from landbridge.passes.fuse.row_chains import fuse_rows
from landbridge.passes.registry import register_pass


@register_pass("fuse")
def fuse(module: IRModule) -> None:
    """Merge calls into fewer PrimFuncs: elementwise chains, epilogues, row by row chains."""
    concatenate_planes(module)
    graph = Graph(module)
    for block in graph.blocks:
        merge_operands(graph, block)
        fuse_branch_epilogues(graph, block)
        fuse_producers(graph, block)
        fuse_epilogues(graph, block)
        fuse_rows(graph, block)
        fuse_prologues(graph, block)
        shorten_views(block)
