"""Gives the buffers of @main that are filled up to a length the capacity for the longest."""

from __future__ import annotations

from landbridge.ir.module import IRModule
from landbridge.ir.reserved_lengths import reserve_in_main
from landbridge.passes.registry import register_pass


@register_pass("reserve")
def reserve(module: IRModule) -> None:
    """Give buffers that are filled up to a length, which a device knows, memory for the longest."""
    reserve_in_main(module)
