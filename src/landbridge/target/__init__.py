"""Targets: what the compiler knows of the machine it compiles for."""

from __future__ import annotations

from landbridge.target.kind import Option, TargetKind
from landbridge.target.registry import get_kind, names, register, unregister
from landbridge.target.tags import known_tags, register_tag
from landbridge.target.target import Target

__all__ = [
    "Option",
    "Target",
    "TargetKind",
    "get_kind",
    "known_tags",
    "names",
    "register",
    "register_tag",
    "unregister",
]
