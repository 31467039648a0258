"""Targets: descriptions of the machine that the compiler generates code for."""

from __future__ import annotations

from landbridge.targets.kind import Option, TargetKind
from landbridge.targets.registry import get_kind, is_built_in, names, register, unregister
from landbridge.targets.tags import known_tags, register_tag
from landbridge.targets.target import Target

__all__ = [
    "Option",
    "Target",
    "TargetKind",
    "get_kind",
    "is_built_in",
    "known_tags",
    "names",
    "register",
    "register_tag",
    "unregister",
]
