"""MemoryKind: normalised scope, and facts that cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from landbridge.errors import InputError
from landbridge.memory_kind import MemoryKind, normalize_scope


def kind(**facts: Any) -> MemoryKind:
    return MemoryKind(**{"scope": "global", "host_access": "read_write", "coherent": True, **facts})


def test_empty_scope_is_global() -> None:
    assert normalize_scope("") == "global"
    assert normalize_scope("global.vtcm") == "global.vtcm"
    assert kind(scope="") == kind(scope="global")


@pytest.mark.parametrize(
    ("facts", "field"),
    [
        ({"host_access": "rw"}, "host_access"),
        ({"alignment": 48}, "alignment"),
        ({"alignment": 0}, "alignment"),
        ({"offset_alignment": 3}, "offset_alignment"),
        ({"size_multiple": 0}, "size_multiple"),
        ({"capacity": -1}, "capacity"),
        ({"max_segments": 0}, "max_segments"),
        ({"max_segments": 1.0}, "max_segments"),
        ({"segment_boundary": 3000}, "segment_boundary"),
        ({"segment_boundary": True}, "segment_boundary"),
        ({"coherence_granule": 64}, "coherence_granule"),
        ({"allocators": ()}, "allocators"),
        ({"allocators": ("buddy",)}, "allocators"),
        ({"allocators": {}}, "allocators"),
        ({"scope": 5}, "scope"),
        ({"coherent": "yes"}, "coherent"),
        ({"physically_contiguous": 1}, "physically_contiguous"),
        ({"alignment": 64.0}, "alignment"),
        ({"ndim": True}, "ndim"),
        ({"capacity": float("nan")}, "capacity"),
        ({"dlpack_device": (1, 0, 0)}, "dlpack_device"),
        ({"dlpack_device": (1, "0")}, "dlpack_device"),
    ],
)
def test_impossible_facts(facts: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError, match=rf"scope .*: {field} is .*legal"):
        kind(**facts)


@pytest.mark.parametrize(
    ("access", "readable", "writable"),
    [("none", False, False), ("read", True, False), ("write", False, True), ("read_write", True, True)],
)
def test_host_access(access: str, readable: bool, writable: bool) -> None:
    made = kind(host_access=access)
    assert (made.host_readable, made.host_writable) == (readable, writable)
