"""The target kind ``vulkan``."""

from __future__ import annotations

import pytest

from landbridge.errors import TargetError
from landbridge.targets import Target


def test_defaults_describe_a_device_that_shares_the_hosts_memory() -> None:
    target = Target("vulkan")
    assert target.device_types == ("vulkan",)
    assert target.shares == (("cpu", "global"),)
    (memory,) = target.memory
    assert (memory.scope, memory.host_access, memory.coherent, memory.importable) == (
        "global",
        "read_write",
        True,
        True,
    )
    assert target.attrs["vector-width"] == 4


def test_a_device_with_memory_of_its_own_has_a_scope_of_the_hosts() -> None:
    target = Target("vulkan -unified-memory=0")
    assert {kind.scope: kind.host_access for kind in target.memory} == {"global": "none", "host": "read_write"}
    assert not target.memory_kind("global").coherent
    assert target.shares == (), "kernels would reach over the bus for every element"


def test_memory_that_is_not_coherent_has_the_granule_of_its_barriers() -> None:
    (memory,) = Target("vulkan -coherent-memory=0 -coherence-granule=256").memory
    assert (memory.coherent, memory.coherence_granule) == (False, 256)


def test_without_host_import_nothing_is_shared() -> None:
    target = Target("vulkan -import-alignment=0")
    assert target.shares == ()
    assert not target.memory_kind("global").importable


@pytest.mark.parametrize("option", ["memory-alignment", "coherence-granule", "import-alignment"])
def test_alignments_are_powers_of_two(option: str) -> None:
    with pytest.raises(TargetError, match=f"{option}.*power of two"):
        Target(f"vulkan -{option}=96")


def test_text_and_json_come_back() -> None:
    target = Target("vulkan -fp16=1 -max-workgroup-size=128 -memory-bytes=1073741824")
    assert Target(str(target)) == target
    assert Target.from_json(target.to_json()) == target
