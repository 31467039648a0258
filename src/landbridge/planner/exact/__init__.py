"""Exact search: decides whether buffers fit a capacity, by branch and bound over the buffer at a section's floor."""

from __future__ import annotations

from landbridge.planner.exact.tighten import suits, tighten

__all__ = ["suits", "tighten"]
