"""The storage planner: pure data in, pure data out. One call plans one (device, scope)."""

from __future__ import annotations

from landbridge.planner.buffers import Alias, Buffer, BufferId, Plan
from landbridge.planner.checker import check
from landbridge.planner.lower_bound import lower_bound
from landbridge.planner.plan import plan

__all__ = ["Alias", "Buffer", "BufferId", "Plan", "check", "lower_bound", "plan"]
