"""Kernels that could not reach a place are refused where it is asked for."""

from __future__ import annotations

import pytest
from tests.passes.place.test_images import model

import landbridge as lb
from landbridge.errors import PlacementError
from landbridge.targets import Target

MEMORY = [
    {"scope": "global", "host_access": "read_write", "coherent": True},
    {"scope": "global.vtcm", "host_access": "none", "coherent": False, "ndim": 2},
]


@pytest.mark.parametrize(
    ("place", "node", "does"), [("twice", "twice", "writes tensor 'twice'"), ("x", "twice", "reads input 'x'")]
)
@pytest.mark.parametrize("kind", ["opencl", "vulkan"])
def test_grids_reach_no_rows(kind: str, place: str, node: str, does: str) -> None:
    target = Target({"kind": kind, "memory": MEMORY})
    with pytest.raises(PlacementError) as refused:
        lb.compile(model((4, 3, 2)), target=target, place={place: f"{kind}@global.vtcm[1]"})
    for text in (f"node '{node}' {does}", "'global.vtcm' with axis separators [1]", f"target '{kind}'", "legal:"):
        assert text in str(refused.value)
