"""Describes and draws memory plans: what lies where, from when to when, and who uses it.

Pure data in, text out: an Executable or a list of buffers becomes Arenas, an Arena becomes SVG or HTML.
"""

from __future__ import annotations

from landbridge.plan_chart.arena import Arena, ArenaBlock, Kind, Step, Use
from landbridge.plan_chart.memory_plan import MemoryPlan
from landbridge.plan_chart.of_buffers import arena_of_buffers, buffers_of, replanned
from landbridge.plan_chart.of_executable import arenas_of_executable

__all__ = [
    "Arena",
    "ArenaBlock",
    "Kind",
    "MemoryPlan",
    "Step",
    "Use",
    "arena_of_buffers",
    "arenas_of_executable",
    "buffers_of",
    "replanned",
]
