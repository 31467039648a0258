"""Chooses physical layouts: convolutions run on channel blocks, matrix multiplications on packed weights.

Activations are blocked along axis 1 (``1x64x56x56`` as ``1x4x56x56x16``, the tile being the target's vector), weights
so that one vector holds consecutive output channels. Element-wise operations, pooling and concatenation follow their
operands, images as well as signals (``1x64x7500``), so that ``lb.pack`` and ``lb.unpack`` remain only where layouts
really differ. Graph inputs and outputs stay plain.
"""

from __future__ import annotations

from landbridge.analysis.free_rows import values_with_free_rows
from landbridge.ir.module import IRModule
from landbridge.passes.pack.packer import pack_graph
from landbridge.passes.place.spaces import match_spaces
from landbridge.passes.registry import register_pass


@register_pass("pack")
def pack(module: IRModule) -> None:
    """Give convolutions and matrix multiplications blocked layouts, and let their neighbours follow."""
    in_rows = bool(values_with_free_rows(module))
    pack_graph(module)
    if in_rows:
        match_spaces(module)  # plain forms of what lies in rows are in ordinary memory
