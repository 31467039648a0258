"""The target kind ``opencl``."""

from __future__ import annotations

import pytest

from landbridge.errors import TargetError
from landbridge.targets import Target


def test_the_default_is_a_gpu_that_shares_the_hosts_memory() -> None:
    target = Target("opencl")
    assert target.shares == (("cpu", "global"),)
    assert [kind.scope for kind in target.memory] == ["global"]
    assert target.memory_kind("global").importable
    assert not target.memory_kind("global").coherent
    assert Target("opencl -import-alignment=0").shares == ()
    assert target.attrs["vector-width"] == 4
    assert str(Target("opencl -fp16=1")).startswith("opencl ")  # options say everything: no JSON is needed


def test_memory_of_its_own_is_neither_shared_nor_seen_by_the_host() -> None:
    target = Target("opencl -unified-memory=0")
    assert target.shares == ()
    kind = target.memory_kind("global")
    assert (kind.host_access, kind.importable) == ("none", False)


@pytest.mark.parametrize(
    ("svm", "coherent", "importable"), [("coarse", False, False), ("fine", True, False), ("system", True, True)]
)
def test_svm_is_coherent_when_fine_grained(svm: str, coherent: bool, importable: bool) -> None:
    kind = Target(f"opencl -svm={svm}").memory_kind("global.svm")
    assert (kind.coherent, kind.importable, kind.offset_alignment) == (coherent, importable, 1)


def test_images_are_a_scope_of_rows_pixels_and_lanes() -> None:
    kind = Target("opencl -images=1").memory_kind("global.texture")
    assert (kind.ndim, kind.allocators) == (3, ("naive",))


@pytest.mark.parametrize(
    "text", ["opencl", "opencl -svm=fine -images=1 -max-workgroup-size=1024", "opencl -unified-memory=0"]
)
def test_text_and_json_are_read_back(text: str) -> None:
    target = Target(text)
    assert Target(str(target)) == target
    assert Target.from_json(target.to_json()) == target
    assert Target(target.to_dict()) == target


@pytest.mark.parametrize("text", ["opencl -memory-alignment=100", "opencl -coherence-granule=48"])
def test_alignments_are_powers_of_two(text: str) -> None:
    with pytest.raises(TargetError, match="power of two"):
        Target(text)
