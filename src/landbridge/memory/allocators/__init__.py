"""Allocators, which supply the memory of tensors and programs, and adaptors that stack on them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from landbridge.memory.allocators.base import Allocator, Block, NdSize, QueuedUse
from landbridge.memory.allocators.default import default_allocator, set_default_allocator, set_memory_cfg
from landbridge.memory.allocators.keepers import trim
from landbridge.memory.allocators.memory_cfg import MemoryCfg
from landbridge.memory.allocators.naive import NaiveAllocator
from landbridge.memory.allocators.pooled import PooledAllocator, PoolState

if TYPE_CHECKING:
    from landbridge.memory.allocators.arena import ArenaAllocator
    from landbridge.memory.allocators.contiguous import ContiguousAllocator
    from landbridge.memory.allocators.failure_callback import FailureCallbackAllocator
    from landbridge.memory.allocators.limiting import LimitingAllocator
    from landbridge.memory.allocators.logging import LoggingAllocator
    from landbridge.memory.allocators.size_classes import SizeClassAllocator
    from landbridge.memory.allocators.statistics import Counters, StatisticsAllocator
    from landbridge.memory.allocators.tracking import Holding, TrackingAllocator
    from landbridge.memory.allocators.workspace import StackAllocator, workspace

__all__ = [
    "Allocator",
    "ArenaAllocator",
    "Block",
    "ContiguousAllocator",
    "Counters",
    "FailureCallbackAllocator",
    "Holding",
    "LimitingAllocator",
    "LoggingAllocator",
    "MemoryCfg",
    "NaiveAllocator",
    "NdSize",
    "PoolState",
    "PooledAllocator",
    "QueuedUse",
    "SizeClassAllocator",
    "StackAllocator",
    "StatisticsAllocator",
    "TrackingAllocator",
    "default_allocator",
    "set_default_allocator",
    "set_memory_cfg",
    "trim",
    "workspace",
]

#: Names that few programs use, and their modules: each is imported when its name is first used.
_ADAPTORS = {
    "ArenaAllocator": "arena",
    "ContiguousAllocator": "contiguous",
    "Counters": "statistics",
    "FailureCallbackAllocator": "failure_callback",
    "Holding": "tracking",
    "LimitingAllocator": "limiting",
    "LoggingAllocator": "logging",
    "SizeClassAllocator": "size_classes",
    "StackAllocator": "workspace",
    "StatisticsAllocator": "statistics",
    "TrackingAllocator": "tracking",
    "workspace": "workspace",
}


def __getattr__(name: str) -> Any:
    if name not in _ADAPTORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_ADAPTORS[name]}"), name)
    return value
